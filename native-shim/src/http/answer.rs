//! What goes back over HTTP.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crablet::json::{Object, RawJson};
use crablet::jsonrpc::code;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};

use super::bridge::{HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION};
use super::child::OpenExchange;
use super::event_log::EventId;
use super::lane::Piece;

/// The body of any answer of the shim.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

/// The header that names a session.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// An answer of a status and nothing else.
pub(crate) fn empty(status: StatusCode) -> Response<AnswerBody> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A message as the whole answer.
pub(crate) fn json(status: StatusCode, message: &RawJson) -> Response<AnswerBody> {
    let mut response = empty(status);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    *response.body_mut() = Full::new(Bytes::copy_from_slice(message.as_str().as_bytes())).boxed_unsync();
    response
}

/// The answer to a request: its first message alone where that is the whole of it, else a stream of events.
pub(crate) async fn answer_to(mut open: OpenExchange, is_stateless: bool) -> Response<AnswerBody> {
    match timeout(PATIENCE, open.lane.pieces.recv()).await {
        Ok(Some(piece)) if piece.is_last => {
            open.lane.took(&piece);
            let status = if is_stateless { status_of(&piece.message) } else { StatusCode::OK };
            json(status, &piece.message)
        }
        // It was cancelled: nothing follows.
        Ok(None) => empty(StatusCode::ACCEPTED),
        Ok(Some(piece)) => event_stream(open, Some(piece), !is_stateless),
        Err(_) => event_stream(open, None, !is_stateless),
    }
}

/// A stream of events. One that can be resumed begins with an event of no data, which gives the client something to
/// resume after.
pub(crate) fn event_stream(open: OpenExchange, first: Option<Piece>, can_resume: bool) -> Response<AnswerBody> {
    open.lane.becomes_stream();
    let mut start = String::new();
    if can_resume {
        let id = EventId { stream: open.exchange, number: 0 };
        start = format!("id: {id}\nretry: {RETRY_MILLISECONDS}\ndata:\n\n");
    }
    let mut is_over = false;
    if let Some(piece) = first {
        is_over = piece.is_last;
        start.push_str(&written(&open, &piece));
    }
    let mut ping = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let start = Some(Bytes::from(start)).filter(|start| !start.is_empty());
    let mut response = empty(StatusCode::OK);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    *response.body_mut() = EventStream { open, start, ping, is_over }.boxed_unsync();
    response
}

/// The status that goes with an answer in the stateless era (2026-07-28, "Streamable HTTP").
fn status_of(message: &RawJson) -> StatusCode {
    let error = Object::parse(message.as_str()).ok().and_then(|message| message.object("error")?.read::<i64>("code"));
    match error {
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// A message as an event.
fn written(open: &OpenExchange, piece: &Piece) -> String {
    open.lane.took(piece);
    let mut event = piece.id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    // A line break, which can only be white space of JSON here, would end the data.
    for line in piece.message.as_str().split(['\n', '\r']).filter(|line| !line.is_empty()) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event
}

/// The body of a stream of events.
struct EventStream {
    open: OpenExchange,
    start: Option<Bytes>,
    ping: Interval,
    is_over: bool,
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = |bytes: Bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        if let Some(start) = self.start.take() {
            return frame(start);
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        match self.open.lane.pieces.poll_recv(context) {
            Poll::Ready(Some(piece)) => {
                self.is_over = piece.is_last;
                self.ping.reset();
                let event = written(&self.open, &piece);
                frame(event.into())
            }
            Poll::Ready(None) => Poll::Ready(None),
            // A comment, which tells a client that is gone from one that waits.
            Poll::Pending => match self.ping.poll_tick(context) {
                Poll::Ready(_) => frame(Bytes::from_static(b":\n\n")),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

/// How long an answer may take before a stream is opened for it: clients give up on an answer without a head.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a silent stream says that it is there.
const PING_INTERVAL: Duration = Duration::from_secs(15);

/// How long a client shall wait before it takes up a broken stream; both are on one machine.
const RETRY_MILLISECONDS: u64 = 500;
