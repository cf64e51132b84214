//! The Anthropic Messages protocol (platform.claude.com/docs, Messages API, version 2023-06-01).

mod decode;
mod encode;
mod scan;

use std::sync::Arc;

use super::answer::AnswerDecoder;
use super::encoded::EncodedCache;
use super::http::{Credentials, HttpRequest, ResponseHead};
use super::request::{Access, FileKinds, Model, ModelRequest};
use super::{Counting, Decoder, Wire, output};
use crate::error::Error;
use crate::time::Millis;

/// A model of Anthropic, or of a server that speaks its protocol once the address is changed with
/// [`Model::with_base_url`].
pub fn model(id: impl Into<Arc<str>>) -> Model {
    Model {
        provider: "anthropic".into(),
        id: id.into(),
        access: Access::Http { wire: WIRE, base_url: None, headers: Arc::default() },
        files: FileKinds::default(),
        prices: None,
    }
}

/// Lets browsers call the API directly. Without this header the API sends no CORS headers and a page sees only a network
/// error. The key is then visible to whoever uses the page: only for keys that belong to the user.
pub fn with_direct_browser_access(model: Model) -> Model {
    model.with_header("anthropic-dangerous-direct-browser-access", "true")
}

/// The wire.
#[derive(Debug)]
struct Anthropic;

/// The wire protocol, for a [`Model`] that is put together by hand.
pub const WIRE: &dyn Wire = &Anthropic;

const BASE_URL: &str = "https://api.anthropic.com";

const VERSION: &str = "2023-06-01";

impl Wire for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn encode(&self, request: &ModelRequest, cache: &mut EncodedCache) -> Result<HttpRequest, Error> {
        let request = &*output::prepared(request, encode::output_style(request));
        let body = encode::body(request, cache)?;
        // Both forms of the address are in use: with the version, as in AI SDK, and without, as in Anthropic's own.
        let has_version = match &request.model.access {
            Access::Http { base_url: Some(address), .. } => address.trim_end_matches('/').ends_with("/v1"),
            _ => false,
        };
        let path = if has_version { "/messages" } else { "/v1/messages" };
        let mut http = body.into_request(request, BASE_URL, path);
        if http.header("anthropic-version").is_none() {
            http.set_header("anthropic-version", VERSION);
        }
        Ok(http)
    }

    fn authorize(&self, request: &mut HttpRequest, credentials: &Credentials, _now: Millis) -> Result<(), Error> {
        credentials.apply(request, |key| ("x-api-key", key.to_owned()))
    }

    fn counting(&self, _provider: &str) -> Counting {
        Counting { cache_apart: true, ..Counting::default() }
    }

    fn decoder(&self, request: &ModelRequest, head: &ResponseHead) -> Box<dyn Decoder> {
        let decoder = Box::new(AnswerDecoder::new(head, decode::MessageDecoder::new(&request.tools)));
        output::decoder(request, encode::output_style(request), decoder)
    }
}
