use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_channel::mpsc;
use futures_util::stream::StreamExt;

use super::{Carrier, ConnectOptions, Connection, Delivery, send};
use crate::error::{Error, ErrorKind};
use crate::host::Host;
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

impl Connection {
    /// Connects to the server at the other end of a pipe. A pipe cannot be opened again, so that calls after its end fail.
    pub fn pipe<H: Host>(host: &H, name: impl Into<Arc<str>>, end: PipeEnd, options: ConnectOptions) -> Self {
        let end = Mutex::new(Some(end));
        Self::over(host, name.into(), TransportKind::Pipe, options, move |carrier| {
            let end = end.lock().unwrap_or_else(PoisonError::into_inner).take();
            carry(end, carrier)
        })
    }
}

/// Carries the messages of one client through a pipe until the connection is over.
async fn carry(end: Option<PipeEnd>, mut carrier: Carrier) {
    let Some(PipeEnd { sender, receiver }) = end else {
        return close(&mut carrier, "the pipe to the MCP server has ended, and a pipe cannot be opened again").await;
    };
    if !carrier.deliver(Delivery::Opened(Opening::default())).await {
        return;
    }
    let mut work = Work { sender, receiver, waiting: VecDeque::new() };
    loop {
        match poll_fn(|context| work.poll_step(&mut carrier, context)).await {
            Step::Received(Some(message)) => {
                let inbound = Inbound::Message { request_id: None, status: None, message };
                if !carrier.deliver(Delivery::Inbound(inbound)).await {
                    return;
                }
            }
            Step::Received(None) => return close(&mut carrier, "the MCP server closed the pipe").await,
            Step::Outbound(None) => return,
            Step::Outbound(Some(Outbound::Close)) => {
                return close(&mut carrier, "the client closed the connection").await;
            }
            Step::Outbound(Some(outbound)) => work.enqueue(outbound),
        }
    }
}

async fn close(carrier: &mut Carrier, reason: &'static str) {
    let reason = Error::new(ErrorKind::ConnectionClosed, reason);
    carrier.deliver(Delivery::Inbound(Inbound::Closed { reason, exit_code: None, stderr_tail: None })).await;
}

struct Work {
    sender: mpsc::Sender<RawJson>,
    receiver: mpsc::Receiver<RawJson>,
    waiting: VecDeque<(Option<RequestId>, RawJson)>,
}

/// What the carrier waits for.
enum Step {
    Received(Option<RawJson>),
    Outbound(Option<Outbound>),
}

impl Work {
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
        if let Poll::Ready(message) = self.receiver.poll_next_unpin(context) {
            return Poll::Ready(Step::Received(message));
        }
        carrier.outbound.poll_next_unpin(context).map(Step::Outbound)
    }
}
