use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_channel::mpsc;
use futures_util::stream::{Stream, StreamExt};

use super::{Carrier, ConnectOptions, Connection, Delivery, send};
use crate::error::{Error, ErrorKind};
use crate::host::{Host, MaybeSend, MaybeSync};
use crate::json::RawJson;
use crate::mcp::client::{Opening, TransportKind};
use crate::mcp::transport::{Inbound, Outbound, RequestId};

/// The most messages that wait in one direction of a pipe. A peer that reads takes each at once.
const WAITING_LIMIT: usize = 1_024;

/// One end of a way on which JSON-RPC messages go in both directions: a message port, or a server in the same program.
#[derive(Debug)]
pub struct PipeEnd {
    /// Takes messages for the other end.
    pub sender: mpsc::Sender<RawJson>,
    /// Gives the messages of the other end, and ends when that is dropped.
    pub receiver: mpsc::Receiver<RawJson>,
}

impl PipeEnd {
    /// Sends a message once the pipe has a place for it; whether the other end is still there.
    pub async fn send(&mut self, message: RawJson) -> bool {
        send(&mut self.sender, message).await
    }

    /// The next message; `None` once the other end is gone.
    pub async fn next(&mut self) -> Option<RawJson> {
        self.receiver.next().await
    }
}

/// Both ends of a pipe.
pub fn pipe() -> (PipeEnd, PipeEnd) {
    let (to_server, from_client) = mpsc::channel(WAITING_LIMIT);
    let (to_client, from_server) = mpsc::channel(WAITING_LIMIT);
    (PipeEnd { sender: to_server, receiver: from_server }, PipeEnd { sender: to_client, receiver: from_client })
}

/// What comes from the other end of a port.
#[derive(Debug)]
#[non_exhaustive]
pub enum Arrival {
    /// A message of the server.
    Message(RawJson),
    /// A request has no answer, and the port knows why.
    Failed(RequestId, Error),
}

impl Connection {
    /// Connects to the server at the other end of a pipe. A pipe cannot be opened again, so that calls after its end fail.
    pub fn pipe<H: Host>(host: &H, name: impl Into<Arc<str>>, end: PipeEnd, options: ConnectOptions) -> Self {
        let end = Mutex::new(Some(end));
        Self::port(host, name, options, move || {
            let PipeEnd { sender, receiver } = end.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            Some((sender, receiver.map(Arrival::Message)))
        })
    }

    /// Connects to the server at a port: `open` gives where messages go to and what comes, for each connection anew, and
    /// `None` when it cannot be opened again.
    pub fn port<H: Host, Arrivals>(
        host: &H,
        name: impl Into<Arc<str>>,
        options: ConnectOptions,
        open: impl Fn() -> Option<(mpsc::Sender<RawJson>, Arrivals)> + MaybeSend + MaybeSync + 'static,
    ) -> Self
    where
        Arrivals: Stream<Item = Arrival> + Unpin + MaybeSend + 'static,
    {
        Self::over(host, name.into(), TransportKind::Pipe, options, move |carrier| carry(open(), carrier))
    }
}

/// Carries the messages of one client through a port until the connection is over.
async fn carry<Arrivals: Stream<Item = Arrival> + Unpin>(
    ends: Option<(mpsc::Sender<RawJson>, Arrivals)>,
    mut carrier: Carrier,
) {
    let Some((sender, arrivals)) = ends else {
        return close(&mut carrier, "the pipe to the MCP server has ended, and a pipe cannot be opened again").await;
    };
    if !carrier.deliver(Delivery::Opened(Opening::default())).await {
        return;
    }
    let mut work = Work { sender, arrivals, waiting: VecDeque::new() };
    loop {
        let inbound = match poll_fn(|context| work.poll_step(&mut carrier, context)).await {
            Step::Arrived(Some(Arrival::Message(message))) => {
                Inbound::Message { request_id: None, status: None, message }
            }
            Step::Arrived(Some(Arrival::Failed(id, reason))) => Inbound::RequestEnded { id, reason: Err(reason) },
            Step::Arrived(None) => return close(&mut carrier, "the MCP server closed the pipe").await,
            Step::Outbound(None) => return,
            Step::Outbound(Some(Outbound::Close)) => {
                return close(&mut carrier, "the client closed the connection").await;
            }
            Step::Outbound(Some(outbound)) => {
                work.enqueue(outbound);
                continue;
            }
        };
        if !carrier.deliver(Delivery::Inbound(inbound)).await {
            return;
        }
    }
}

async fn close(carrier: &mut Carrier, reason: &'static str) {
    let reason = Error::new(ErrorKind::ConnectionClosed, reason);
    carrier.deliver(Delivery::Inbound(Inbound::Closed { reason, exit_code: None, stderr_tail: None })).await;
}

struct Work<Arrivals> {
    sender: mpsc::Sender<RawJson>,
    arrivals: Arrivals,
    waiting: VecDeque<(Option<RequestId>, RawJson)>,
}

/// What the carrier waits for.
enum Step {
    Arrived(Option<Arrival>),
    Outbound(Option<Outbound>),
}

impl<Arrivals: Stream<Item = Arrival> + Unpin> Work<Arrivals> {
    fn enqueue(&mut self, outbound: Outbound) {
        match outbound {
            Outbound::Request { id, message, .. } => self.waiting.push_back((Some(id), message)),
            Outbound::Notify { message, .. } => self.waiting.push_back((None, message)),
            Outbound::Cancel { id } => self.waiting.retain(|(waiting, _)| waiting.as_ref() != Some(&id)),
            Outbound::Close => {}
        }
    }

    fn poll_step(&mut self, carrier: &mut Carrier, context: &mut Context<'_>) -> Poll<Step> {
        while !self.waiting.is_empty()
            && let Poll::Ready(ready) = self.sender.poll_ready(context)
        {
            // An end that is gone shows when it is read from.
            let message = self.waiting.pop_front();
            if let (Ok(()), Some((_, message))) = (ready, message) {
                drop(self.sender.start_send(message));
            }
        }
        if let Poll::Ready(arrival) = self.arrivals.poll_next_unpin(context) {
            return Poll::Ready(Step::Arrived(arrival));
        }
        carrier.outbound.poll_next_unpin(context).map(Step::Outbound)
    }
}
