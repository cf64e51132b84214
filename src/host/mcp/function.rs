use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{AbortHandle, Abortable, abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::{Carrier, Delivery};
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, MaybeSend, MaybeSync};
use crate::json::RawJson;
use crate::mcp::client::Opening;
use crate::mcp::transport::{Inbound, Outbound, RequestId};
use crate::ordered_map::OrderedMap;

/// A function as a transport: it takes a JSON-RPC message and gives the answer, or a batch of notifications and the
/// answer; `None` for a message that has no answer. Dropping its future tells it that nobody waits.
///
/// It is called in the order of the messages. Implemented by closures that give a future.
pub trait RequestFunction: MaybeSend + MaybeSync + 'static {
    /// Takes one message.
    ///
    /// # Errors
    ///
    /// Whatever kept it from answering; fails the request.
    fn request(&self, message: RawJson) -> BoxFuture<'static, Result<Option<RawJson>, Error>>;
}

impl<F, Answering> RequestFunction for F
where
    F: Fn(RawJson) -> Answering + MaybeSend + MaybeSync + 'static,
    Answering: Future<Output = Result<Option<RawJson>, Error>> + MaybeSend + 'static,
{
    fn request(&self, message: RawJson) -> BoxFuture<'static, Result<Option<RawJson>, Error>> {
        Box::pin(self(message))
    }
}

/// Carries the messages of one client through a function until the connection is over.
pub(super) async fn carry(function: Arc<dyn RequestFunction>, carrier: Carrier) {
    let mut work = Work { function, carrier, running: OrderedMap::new(), answers: FuturesUnordered::new() };
    work.run().await;
}

struct Work {
    function: Arc<dyn RequestFunction>,
    carrier: Carrier,
    running: OrderedMap<RequestId, AbortHandle>,
    answers: FuturesUnordered<Abortable<BoxFuture<'static, Answer>>>,
}

/// The request, if it was one, and what the function gave for it.
type Answer = (Option<RequestId>, Result<Option<RawJson>, Error>);

/// What the carrier waits for.
enum Step {
    Outbound(Option<Outbound>),
    Answer(Answer),
}

impl Work {
    async fn run(&mut self) {
        let mut deliveries = vec![Delivery::Opened(Opening::default())];
        loop {
            for delivery in deliveries {
                let is_last = matches!(delivery, Delivery::Inbound(Inbound::Closed { .. }));
                if !self.carrier.deliver(delivery).await || is_last {
                    return;
                }
            }
            deliveries = match poll_fn(|context| self.poll_step(context)).await {
                Step::Outbound(Some(outbound)) => self.take_outbound(outbound),
                Step::Outbound(None) => return,
                Step::Answer((id, answer)) => self.take_answer(id, answer),
            };
        }
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        if let Poll::Ready(outbound) = self.carrier.outbound.poll_next_unpin(context) {
            return Poll::Ready(Step::Outbound(outbound));
        }
        while let Poll::Ready(Some(ended)) = self.answers.poll_next_unpin(context) {
            if let Ok(answer) = ended {
                return Poll::Ready(Step::Answer(answer));
            }
        }
        Poll::Pending
    }

    fn take_outbound(&mut self, outbound: Outbound) -> Vec<Delivery> {
        match outbound {
            Outbound::Request { id, message, .. } => self.call(Some(id), message),
            Outbound::Notify { message, .. } => self.call(None, message),
            Outbound::Cancel { id } => {
                if let Some(handle) = self.running.remove(&id) {
                    handle.abort();
                }
            }
            Outbound::Close => {
                let reason = Error::new(ErrorKind::ConnectionClosed, "the client closed the connection");
                return vec![Delivery::Inbound(Inbound::Closed { reason, exit_code: None, stderr_tail: None })];
            }
        }
        Vec::new()
    }

    fn call(&mut self, id: Option<RequestId>, message: RawJson) {
        let answering = self.function.request(message);
        let name = id.clone();
        let answering: BoxFuture<'static, Answer> = Box::pin(async move { (name, answering.await) });
        let (answering, handle) = abortable(answering);
        if let Some(id) = id {
            self.running.insert(id, handle);
        }
        self.answers.push(answering);
    }

    fn take_answer(&mut self, id: Option<RequestId>, answer: Result<Option<RawJson>, Error>) -> Vec<Delivery> {
        let Some(id) = id else {
            let warning = answer.err().map(|error| format!("a notification did not reach the server: {error}"));
            return warning.map(|warning| Delivery::Inbound(Inbound::Warning(warning))).into_iter().collect();
        };
        self.running.remove(&id);
        let mut deliveries = Vec::new();
        let reason = answer.map(|message| {
            let message =
                message.map(|message| Inbound::Message { request_id: Some(id.clone()), status: None, message });
            deliveries.extend(message.map(Delivery::Inbound));
        });
        deliveries.push(Delivery::Inbound(Inbound::RequestEnded { id, reason }));
        deliveries
    }
}
