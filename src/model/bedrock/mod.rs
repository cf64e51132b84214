//! Amazon Bedrock's ConverseStream (docs.aws.amazon.com/bedrock, API reference), signed with Signature Version 4 or with a
//! Bedrock API key.

mod converse;
mod decode;
mod encode;
mod event_stream;
mod sigv4;

#[cfg(all(test, feature = "models"))]
pub(super) use event_stream::frame_of_event;

use std::sync::Arc;

use super::encoded::EncodedCache;
use super::http::{Credentials, HttpRequest, ResponseHead};
use super::request::{Access, FileKinds, Model, ModelRequest};
use super::{Counting, Decoder, Wire, output};
use crate::error::Error;
use crate::time::Millis;

/// A model or inference profile in a region such as `us-east-1`.
///
/// [`Credentials::Key`] is a Bedrock API key; [`Credentials::Aws`] signs each attempt.
pub fn model(region: &str, id: impl Into<Arc<str>>) -> Model {
    Model {
        provider: "bedrock".into(),
        id: id.into(),
        access: Access::Http {
            wire: WIRE,
            base_url: Some(format!("https://bedrock-runtime.{region}.amazonaws.com").into()),
            headers: Arc::default(),
        },
        files: FileKinds::default(),
        prices: None,
    }
}

/// The wire.
#[derive(Debug)]
struct Bedrock;

/// The wire protocol, for a [`Model`] that is put together by hand. Its address names the region.
pub const WIRE: &dyn Wire = &Bedrock;

impl Wire for Bedrock {
    fn name(&self) -> &'static str {
        "bedrock"
    }

    fn encode(&self, request: &ModelRequest, cache: &mut EncodedCache) -> Result<HttpRequest, Error> {
        let request = &*output::prepared(request, encode::output_style(request));
        let path = format!("/model/{}/converse-stream", sigv4::uri_encoded(&request.model.id));
        Ok(encode::body(request, cache)?.into_request(request, "", &path))
    }

    fn authorize(&self, request: &mut HttpRequest, credentials: &Credentials, now: Millis) -> Result<(), Error> {
        match credentials {
            Credentials::Aws(keys) => sigv4::sign(request, keys, "bedrock", now),
            other => other.apply(request, |key| ("authorization", format!("Bearer {key}"))),
        }
    }

    fn counting(&self, _provider: &str) -> Counting {
        Counting { cache_apart: true, ..Counting::default() }
    }

    fn decoder(&self, request: &ModelRequest, head: &ResponseHead) -> Box<dyn Decoder> {
        let decoder = Box::new(decode::BedrockDecoder::new(head, &request.tools));
        output::decoder(request, encode::output_style(request), decoder)
    }
}
