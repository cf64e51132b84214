//! The OpenAI Responses protocol (platform.openai.com/docs, API reference "Responses"), without anything stored at the
//! provider.

mod decode;
mod encode;

use std::sync::Arc;

use super::answer::AnswerDecoder;
use super::encoded::EncodedCache;
use super::http::{Credentials, HttpRequest, ResponseHead};
use super::request::{Access, FileKinds, Model, ModelRequest};
use super::{Decoder, Wire, output};
use crate::error::Error;
use crate::time::Millis;

/// A model of OpenAI, or of a server that speaks its protocol once the address is changed with
/// [`Model::with_base_url`].
pub fn model(id: impl Into<Arc<str>>) -> Model {
    Model {
        provider: "openai".into(),
        id: id.into(),
        access: Access::Http { wire: WIRE, base_url: None, headers: Arc::default() },
        files: FileKinds::default(),
        prices: None,
    }
}

/// The wire.
#[derive(Debug)]
struct OpenAiResponses;

/// The wire protocol, for a [`Model`] that is put together by hand.
pub const WIRE: &dyn Wire = &OpenAiResponses;

const BASE_URL: &str = "https://api.openai.com/v1";

impl Wire for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn encode(&self, request: &ModelRequest, cache: &mut EncodedCache) -> Result<HttpRequest, Error> {
        let request = &*output::prepared(request, encode::output_style(request));
        Ok(encode::body(request, cache)?.into_request(request, BASE_URL, "/responses"))
    }

    fn authorize(&self, request: &mut HttpRequest, credentials: &Credentials, _now: Millis) -> Result<(), Error> {
        credentials.apply(request, |key| ("authorization", format!("Bearer {key}")))
    }

    fn decoder(&self, request: &ModelRequest, head: &ResponseHead) -> Box<dyn Decoder> {
        let decoder = Box::new(AnswerDecoder::new(head, decode::ResponseDecoder::new(&request.tools)));
        output::decoder(request, encode::output_style(request), decoder)
    }
}
