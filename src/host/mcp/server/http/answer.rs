//! What goes back over HTTP.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{Either, select};
use futures_util::stream::Stream;

use super::lane::OpenExchange;
use crate::host::{BoxFuture, MaybeSend, MaybeSync};
use crate::mcp::server::http::{Answer, Piece, event, opening_event, status_of};

/// Waits for this many milliseconds, in the way of a platform.
#[derive(Clone)]
pub struct Sleep(Arc<dyn SleepFunction>);

trait SleepFunction: MaybeSend + MaybeSync {
    fn sleep(&self, milliseconds: u64) -> BoxFuture<'static, ()>;
}

impl<F, Sleeping> SleepFunction for F
where
    F: Fn(u64) -> Sleeping + MaybeSend + MaybeSync,
    Sleeping: Future<Output = ()> + MaybeSend + 'static,
{
    fn sleep(&self, milliseconds: u64) -> BoxFuture<'static, ()> {
        Box::pin(self(milliseconds))
    }
}

impl Sleep {
    /// The way of a platform to wait.
    pub fn new<F, Sleeping>(sleep: F) -> Self
    where
        F: Fn(u64) -> Sleeping + MaybeSend + MaybeSync + 'static,
        Sleeping: Future<Output = ()> + MaybeSend + 'static,
    {
        Self(Arc::new(sleep))
    }

    pub(super) fn start(&self, milliseconds: u64) -> BoxFuture<'static, ()> {
        self.0.sleep(milliseconds)
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sleep")
    }
}

/// An answer over HTTP.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The headers, in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: HttpBody,
}

/// What the answer to a request is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A session: a stream can be taken up again.
    Session,
    /// Nothing, though the client is of the handshake era.
    Unbound,
    /// Nothing, as in the stateless era: some errors have a status of their own.
    Stateless,
}

/// The body of an answer.
#[derive(Debug)]
pub enum HttpBody {
    /// It is complete; often empty.
    Whole(String),
    /// It comes bit by bit, until the stream ends. Dropping it says that the client is gone.
    Events(Box<EventStream>),
}

impl From<Answer> for HttpResponse {
    fn from(answer: Answer) -> Self {
        let Answer { status, headers, message } = answer;
        let body = message.map(|message| message.as_str().to_owned()).unwrap_or_default();
        Self { status, headers, body: HttpBody::Whole(body) }
    }
}

impl HttpResponse {
    /// The answer to a request: its first message alone where that is the whole of it, else a stream of events.
    pub async fn of_request(mut open: OpenExchange, framing: Framing, sleep: &Sleep) -> Self {
        let first = match select(Box::pin(open.next()), sleep.start(PATIENCE)).await {
            Either::Left((first, _)) => Some(first),
            Either::Right(_) => None,
        };
        match first {
            Some(Some(piece)) if piece.is_last => {
                let status = if framing == Framing::Stateless { status_of(&piece.message) } else { 200 };
                Answer::json(status, piece.message).into()
            }
            // It was cancelled: nothing follows.
            Some(None) => Answer::empty(202).into(),
            Some(Some(piece)) => Self::of_stream(open, Some(piece), framing == Framing::Session, sleep),
            None => Self::of_stream(open, None, framing == Framing::Session, sleep),
        }
    }

    /// A stream of events. One that `is_new` in a session begins with something to resume after.
    pub fn of_stream(open: OpenExchange, first: Option<Piece>, is_new: bool, sleep: &Sleep) -> Self {
        open.becomes_stream();
        let mut start = if is_new { opening_event(open.exchange) } else { String::new() };
        let mut is_over = false;
        if let Some(piece) = first {
            is_over = piece.is_last;
            start.push_str(&event(piece.id, &piece.message));
        }
        let stream = EventStream {
            open,
            start: Some(start).filter(|start| !start.is_empty()),
            ping: sleep.start(PING_INTERVAL),
            sleep: sleep.clone(),
            is_silent: true,
            is_over,
        };
        let headers = vec![("cache-control", "no-store".to_owned()), ("content-type", "text/event-stream".to_owned())];
        Self { status: 200, headers, body: HttpBody::Events(Box::new(stream)) }
    }
}

/// The body of a stream of events.
pub struct EventStream {
    open: OpenExchange,
    start: Option<String>,
    ping: BoxFuture<'static, ()>,
    sleep: Sleep,
    /// Whether nothing was sent since the last ping was due.
    is_silent: bool,
    is_over: bool,
}

impl Stream for EventStream {
    type Item = String;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<String>> {
        if let Some(start) = self.start.take() {
            return Poll::Ready(Some(start));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        match self.open.poll_next(context) {
            Poll::Ready(Some(piece)) => {
                self.is_over = piece.is_last;
                self.is_silent = false;
                return Poll::Ready(Some(event(piece.id, &piece.message)));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        while self.ping.as_mut().poll(context).is_ready() {
            self.ping = self.sleep.start(PING_INTERVAL);
            // A comment, which tells a client that is gone from one that waits.
            if std::mem::replace(&mut self.is_silent, true) {
                return Poll::Ready(Some(":\n\n".to_owned()));
            }
        }
        Poll::Pending
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventStream").finish_non_exhaustive()
    }
}

/// How long an answer may take before a stream is opened for it: clients give up on an answer without a head. In
/// milliseconds.
const PATIENCE: u64 = 5_000;

/// How often a silent stream says that it is there, in milliseconds: a silence lasts at most twice as long.
const PING_INTERVAL: u64 = 15_000;
