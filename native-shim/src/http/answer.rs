//! What goes back over HTTP, as hyper takes it.

use std::convert::Infallible;
use std::time::Duration;

use crablet::host::mcp::{HttpBody, HttpResponse, Sleep};
use crablet::mcp::server::http::Answer;
use futures_util::StreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::time::sleep;

/// The body of any answer of the shim.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

/// An answer of a status and nothing else.
pub(crate) fn empty(status: StatusCode) -> Response<AnswerBody> {
    written(Answer::empty(status.as_u16()))
}

/// An answer of the crate.
pub(crate) fn written(answer: impl Into<HttpResponse>) -> Response<AnswerBody> {
    let HttpResponse { status, headers, body } = answer.into();
    let body = match body {
        HttpBody::Whole(text) if text.is_empty() => Empty::new().boxed_unsync(),
        HttpBody::Whole(text) => Full::new(Bytes::from(text)).boxed_unsync(),
        HttpBody::Events(events) => {
            StreamBody::new(events.map(|event| Ok(Frame::data(Bytes::from(event))))).boxed_unsync()
        }
    };
    let mut response = Response::new(body);
    // The crate gives no other.
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(response.headers_mut(), headers);
    response
}

/// Sets headers of an answer.
pub(crate) fn set(headers: &mut HeaderMap, more: Vec<(&'static str, String)>) {
    for (name, value) in more {
        // What a client sent and cannot be sent back is left out.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// How answers wait.
pub(crate) fn waiting() -> Sleep {
    Sleep::new(|milliseconds| sleep(Duration::from_millis(milliseconds)))
}
