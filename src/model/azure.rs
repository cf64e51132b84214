//! OpenAI's protocols as Azure serves them: the resource's own address, and a header of its own for the key
//! (learn.microsoft.com/azure/ai-foundry/openai, API version v1).

use std::sync::Arc;

use super::encoded::EncodedCache;
use super::http::{Credentials, HttpRequest, ResponseHead};
use super::request::{Access, FileKinds, Model, ModelRequest};
use super::{Decoder, Wire, openai_chat, openai_responses};
use crate::error::Error;
use crate::time::Millis;

/// A deployment of a resource such as `https://name.openai.azure.com`, over the Responses protocol.
///
/// A key is sent as `api-key`. For tokens of Microsoft Entra use
/// [`Credentials::Headers`](super::Credentials) with `authorization`.
pub fn model(resource: &str, deployment: impl Into<Arc<str>>) -> Model {
    at(RESPONSES, resource, deployment.into())
}

/// The same over the Chat Completions protocol, for models that have only that.
pub fn chat_model(resource: &str, deployment: impl Into<Arc<str>>) -> Model {
    at(CHAT, resource, deployment.into())
}

/// The Responses protocol on Azure, for a [`Model`] that is put together by hand.
pub const RESPONSES: &dyn Wire = &Azure { name: "azure-responses", wire: openai_responses::WIRE };

/// The Chat Completions protocol on Azure, for a [`Model`] that is put together by hand.
pub const CHAT: &dyn Wire = &Azure { name: "azure-chat", wire: openai_chat::WIRE };

fn at(wire: &'static dyn Wire, resource: &str, id: Arc<str>) -> Model {
    let resource = resource.trim_end_matches('/');
    let base_url = if resource.ends_with(PATH) { resource.to_owned() } else { format!("{resource}{PATH}") };
    Model {
        provider: "azure".into(),
        id,
        access: Access::Http { wire, base_url: Some(base_url.into()), headers: Arc::default() },
        files: FileKinds::default(),
        prices: None,
    }
}

const PATH: &str = "/openai/v1";

/// One of OpenAI's wires with another way to authorize.
struct Azure {
    name: &'static str,
    wire: &'static dyn Wire,
}

impl Wire for Azure {
    fn name(&self) -> &'static str {
        self.name
    }

    fn encode(&self, request: &ModelRequest, cache: &mut EncodedCache) -> Result<HttpRequest, Error> {
        self.wire.encode(request, cache)
    }

    fn authorize(&self, request: &mut HttpRequest, credentials: &Credentials, _now: Millis) -> Result<(), Error> {
        credentials.apply(request, |key| ("api-key", key.to_owned()))
    }

    fn decoder(&self, request: &ModelRequest, head: &ResponseHead) -> Box<dyn Decoder> {
        self.wire.decoder(request, head)
    }
}
