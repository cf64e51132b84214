//! A request that stands alone: a machine of its own, which ends with it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_channel::mpsc;
use futures_util::future::{abortable, select};
use futures_util::stream::{self, StreamExt};

use super::session::{initialize_line, said};
use super::{Framing, HttpHandler, HttpResponse, Listener, OpenExchange, busy, lock};
use crate::host::Host;
use crate::json::RawJson;
use crate::mcp::protocol::Revision;
use crate::mcp::server::http::{Exchange, Lane, Piece, PostedRequest};

impl<H: Host> HttpHandler<H> {
    /// Answers a request of the stateless era, or one of a client of the handshake era that has no session.
    pub(super) async fn ask_once(
        &self,
        request: PostedRequest,
        revision: Option<Revision>,
        caller: Option<&str>,
    ) -> HttpResponse {
        let Some(place) = Place::take(self) else {
            return busy(&request.id, "too many requests are at work; try again later");
        };
        let exchange = place.exchange;
        // What the client would have said first. The answer to it goes nowhere.
        let hello = revision.filter(|_| request.method != "initialize").map(initialize_line);
        let is_greeted = hello.is_some();
        let mut lines = vec![request.raw.as_str().to_owned()];
        lines.splice(0..0, hello);
        let (left, mut leaving) = mpsc::unbounded();
        let (lane, open) = OpenExchange::new(exchange, left);
        let (out, mut said_lines) = mpsc::channel(0);
        let server = lock(&self.0.server).clone();
        let arriving = stream::iter(lines).chain(stream::pending());
        let (serving, control) = server.serve_said(arriving, out, caller);
        let speaking = async move {
            let mut is_greeting = is_greeted;
            while let Some(line) = said_lines.next().await {
                if std::mem::take(&mut is_greeting) {
                    continue;
                }
                let Some((is_last, message)) = answer_of(&line.line) else { continue };
                if !lane.give(Piece { id: None, message, is_last }) || is_last {
                    return;
                }
            }
        };
        let (working, task) = abortable(async move {
            // A client that is gone wants nothing more: what is dropped here is cancelled.
            select(select(serving, Box::pin(speaking)), leaving.next()).await;
        });
        if request.method == "subscriptions/listen" {
            lock(&self.0.listeners).insert(exchange, Listener { control, task });
        }
        self.0.host.spawn(async move {
            let _is_closed = working.await;
            drop(place);
        });
        let framing = if revision.is_some() { Framing::Unbound } else { Framing::Stateless };
        HttpResponse::of_request(open, framing, &self.0.sleep).await
    }
}

/// A message, and whether it is the answer.
fn answer_of(line: &str) -> Option<(bool, RawJson)> {
    let (is_answer, _, message) = said(line)?;
    Some((is_answer, message))
}

/// A request's place among those at work.
struct Place<H: Host> {
    handler: HttpHandler<H>,
    exchange: Exchange,
}

impl<H: Host> Place<H> {
    fn take(handler: &HttpHandler<H>) -> Option<Self> {
        let before = handler.0.requests.fetch_add(1, Ordering::Relaxed);
        let place = Self { handler: HttpHandler(Arc::clone(&handler.0)), exchange: handler.exchange() };
        (before < handler.0.options.max_requests).then_some(place)
    }
}

impl<H: Host> Drop for Place<H> {
    fn drop(&mut self) {
        self.handler.0.requests.fetch_sub(1, Ordering::Relaxed);
        lock(&self.handler.0.listeners).remove(&self.exchange);
    }
}
