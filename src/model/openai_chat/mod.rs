//! The OpenAI Chat Completions protocol, as OpenAI and those who follow it speak it.

mod calls;
mod decode;
mod details;
mod encode;
mod profile;
mod progress;
mod scan;

use std::sync::Arc;

pub use profile::Profile;
use profile::ReasoningReplay;

use super::answer::AnswerDecoder;
use super::encoded::EncodedCache;
use super::http::{Credentials, HttpRequest, ResponseHead};
use super::request::{Access, FileKinds, Model, ModelRequest};
use super::{Counting, Decoder, Wire, output};
use crate::error::Error;
use crate::time::Millis;

/// A model of one of the known servers, at its own address unless [`Model::with_base_url`] gives another.
pub fn model(profile: Profile, id: impl Into<Arc<str>>) -> Model {
    Model {
        provider: profile.name().into(),
        id: id.into(),
        access: Access::Http { wire: WIRE, base_url: None, headers: Arc::default() },
        files: FileKinds::default(),
        prices: None,
    }
}

/// A model of the server at this address, such as `http://localhost:8080/v1`. Known servers are recognised.
pub fn compatible(base_url: &str, id: impl Into<Arc<str>>) -> Model {
    model(Profile::of_base_url(base_url), id).with_base_url(base_url)
}

/// The wire. The provider's name in the request chooses the profile.
#[derive(Debug)]
struct OpenAiChat;

/// The wire protocol, for a [`Model`] that is put together by hand.
pub const WIRE: &dyn Wire = &OpenAiChat;

impl Wire for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai-chat"
    }

    fn encode(&self, request: &ModelRequest, cache: &mut EncodedCache) -> Result<HttpRequest, Error> {
        let traits = Profile::of_model(&request.model).traits();
        let request = &*output::prepared(request, traits.output_style(request));
        Ok(encode::body(request, traits, cache)?.into_request(request, traits.base_url, "/chat/completions"))
    }

    fn authorize(&self, request: &mut HttpRequest, credentials: &Credentials, _now: Millis) -> Result<(), Error> {
        credentials.apply(request, |key| ("authorization", format!("Bearer {key}")))
    }

    /// xAI counts what was reasoned apart from what was written; the others count it in.
    fn counting(&self, provider: &str) -> Counting {
        Counting { reasoning_apart: provider == "xai", says_cost: provider == "openrouter", ..Counting::default() }
    }

    fn decoder(&self, request: &ModelRequest, head: &ResponseHead) -> Box<dyn Decoder> {
        let says_cost = request.model.counting().says_cost;
        let traits = Profile::of_model(&request.model).traits();
        let keeps_member = traits.replay == ReasoningReplay::AsItCame;
        let decoder = decode::ChatDecoder::new(&request.tools, says_cost, keeps_member);
        let decoder = Box::new(AnswerDecoder::new(head, decoder));
        let style = traits.output_style(request);
        output::decoder(request, style, decoder)
    }
}
