//! Google's Gemini protocol (ai.google.dev/api, `streamGenerateContent` of version v1beta).

mod decode;
mod encode;
mod partial;

use std::sync::Arc;

#[cfg(feature = "vertex")]
pub(super) use encode::{Platform, body, output_style};

use super::answer::AnswerDecoder;
use super::encoded::EncodedCache;
use super::http::{Credentials, HttpRequest, ResponseHead};
use super::request::{Access, FileKinds, Model, ModelRequest};
use super::{Counting, Decoder, Wire, output};
use crate::error::Error;
use crate::time::Millis;

/// A model of the Gemini API.
pub fn model(id: impl Into<Arc<str>>) -> Model {
    Model {
        provider: "gemini".into(),
        id: id.into(),
        access: Access::Http { wire: WIRE, base_url: None, headers: Arc::default() },
        files: FileKinds::default(),
        prices: None,
    }
}

/// The wire.
#[derive(Debug)]
struct Gemini;

/// The wire protocol, for a [`Model`] that is put together by hand.
pub const WIRE: &dyn Wire = &Gemini;

const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

impl Wire for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn encode(&self, request: &ModelRequest, cache: &mut EncodedCache) -> Result<HttpRequest, Error> {
        let request = &*output::prepared(request, encode::output_style(request));
        let body = encode::body(request, encode::Platform::Gemini, cache)?;
        // Both forms of the address are in use: with the version and without.
        let version = match &request.model.access {
            Access::Http { base_url: Some(address), .. } if !has_version(address) => "/v1beta",
            _ => "",
        };
        let path = format!("{version}/models/{}:streamGenerateContent?alt=sse", request.model.id);
        Ok(body.into_request(request, BASE_URL, &path))
    }

    fn authorize(&self, request: &mut HttpRequest, credentials: &Credentials, _now: Millis) -> Result<(), Error> {
        credentials.apply(request, |key| ("x-goog-api-key", key.to_owned()))
    }

    fn counting(&self, _provider: &str) -> Counting {
        Counting { reasoning_apart: true, ..Counting::default() }
    }

    fn decoder(&self, request: &ModelRequest, head: &ResponseHead) -> Box<dyn Decoder> {
        let decoder = Box::new(AnswerDecoder::new(head, decode::ContentDecoder::new(&request.tools)));
        output::decoder(request, encode::output_style(request), decoder)
    }
}

fn has_version(address: &str) -> bool {
    let last = address.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    last.starts_with("v1")
}
