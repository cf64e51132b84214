//! Gemini as Google Cloud serves it: an address with project and location, and an OAuth token instead of a key
//! (cloud.google.com/vertex-ai/generative-ai/docs, API version v1).

use std::sync::Arc;

use super::encoded::EncodedCache;
use super::http::{Credentials, HttpRequest, ResponseHead};
use super::request::{Access, FileKinds, Model, ModelRequest};
use super::{Counting, Decoder, Wire, gemini, output};
use crate::error::Error;
use crate::time::Millis;

/// A model of a project in a location such as `europe-west4` or `global`. The credentials are an access token, which the
/// caller's supplier renews.
pub fn model(project: &str, location: &str, id: impl Into<Arc<str>>) -> Model {
    let host = match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        location => format!("{location}-aiplatform.googleapis.com"),
    };
    let base_url = format!("https://{host}/v1/projects/{project}/locations/{location}");
    Model {
        provider: "vertex".into(),
        id: id.into(),
        access: Access::Http { wire: WIRE, base_url: Some(base_url.into()), headers: Arc::default() },
        files: FileKinds::default(),
        prices: None,
    }
}

/// The wire protocol, for a [`Model`] that is put together by hand. Its address ends with project and location.
pub const WIRE: &dyn Wire = &Vertex;

struct Vertex;

impl Wire for Vertex {
    fn name(&self) -> &'static str {
        "vertex"
    }

    fn encode(&self, request: &ModelRequest, cache: &mut EncodedCache) -> Result<HttpRequest, Error> {
        let path = format!("/publishers/google/models/{}:streamGenerateContent?alt=sse", request.model.id);
        let request = &*output::prepared(request, gemini::output_style(request));
        Ok(gemini::body(request, gemini::Platform::Vertex, cache)?.into_request(request, "", &path))
    }

    fn authorize(&self, request: &mut HttpRequest, credentials: &Credentials, _now: Millis) -> Result<(), Error> {
        credentials.apply(request, |token| ("authorization", format!("Bearer {token}")))
    }

    fn counting(&self, provider: &str) -> Counting {
        gemini::WIRE.counting(provider)
    }

    fn decoder(&self, request: &ModelRequest, head: &ResponseHead) -> Box<dyn Decoder> {
        gemini::WIRE.decoder(request, head)
    }
}
