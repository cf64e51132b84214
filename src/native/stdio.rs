//! MCP servers that are processes: started by this program, spoken to over their standard input and output.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt;

use super::process::{ExitReport, ProcessEvent, ProcessOutput, ServerCommand, ServerProcess};
use crate::error::{Error, ErrorKind};
use crate::host::Host;
use crate::host::mcp::{Carrier, ConnectOptions, Connection, Delivery};
use crate::json::RawJson;
use crate::mcp::client::{Opening, TransportKind};
use crate::mcp::transport::{Inbound, Outbound, RequestId};

impl Connection {
    /// Starts a server and connects to it over its standard input and output.
    ///
    /// The process ends with the connection: its input closes, and if that is not enough its process group is ended. A
    /// server that ended is started again by the next call.
    pub fn stdio<H: Host>(
        host: &H,
        name: impl Into<Arc<str>>,
        command: ServerCommand,
        options: ConnectOptions,
    ) -> Self {
        let name = name.into();
        let server = name.clone();
        Self::over(host, name, TransportKind::Pipe, options, move |carrier| {
            carry(command.clone(), server.clone(), carrier)
        })
    }
}

/// Carries the messages of one client to a process until the connection is over.
async fn carry(command: ServerCommand, server: Arc<str>, mut carrier: Carrier) {
    let ServerProcess { input, mut output, log: _log } = ServerProcess::start(command);
    let mut messages = VecDeque::new();
    if !carrier.deliver(Delivery::Opened(Opening::default())).await {
        return;
    }
    loop {
        let step = tokio::select! {
            biased;
            event = output.next() => Step::Event(event),
            ready = input.ready(), if !messages.is_empty() => {
                if let (Ok(ready), Some((_, message))) = (ready, messages.pop_front()) {
                    ready.send(message);
                }
                continue;
            }
            outbound = carrier.outbound.next() => Step::Outbound(outbound),
        };
        let inbound = match step {
            Step::Event(Some(ProcessEvent::Message(text))) => received(text),
            Step::Event(Some(ProcessEvent::Exited(report))) => exited(report, &server),
            Step::Event(None) => exited(ExitReport::default(), &server),
            Step::Outbound(Some(Outbound::Close)) => {
                drop(input);
                ended(output).await;
                let reason = Error::new(ErrorKind::ConnectionClosed, "the client closed the connection");
                let closed = Inbound::Closed { reason, exit_code: None, stderr_tail: None };
                carrier.deliver(Delivery::Inbound(closed)).await;
                return;
            }
            Step::Outbound(Some(outbound)) => {
                enqueue(&mut messages, outbound);
                continue;
            }
            Step::Outbound(None) => return,
        };
        let is_last = matches!(inbound, Inbound::Closed { .. });
        if !carrier.deliver(Delivery::Inbound(inbound)).await || is_last {
            return;
        }
    }
}

/// What the carrier waits for.
enum Step {
    Event(Option<ProcessEvent>),
    Outbound(Option<Outbound>),
}

fn enqueue(messages: &mut VecDeque<(Option<RequestId>, String)>, outbound: Outbound) {
    match outbound {
        Outbound::Request { id, message, .. } => messages.push_back((Some(id), message.as_str().to_owned())),
        Outbound::Notify { message, .. } => messages.push_back((None, message.as_str().to_owned())),
        Outbound::Cancel { id } => messages.retain(|(queued, _)| queued.as_ref() != Some(&id)),
        Outbound::Close => {}
    }
}

fn received(text: String) -> Inbound {
    match RawJson::parse(text) {
        Ok(message) => Inbound::Message { request_id: None, status: None, message },
        Err(error) => Inbound::Warning(format!("the MCP server wrote a line that is not JSON: {error}")),
    }
}

fn exited(report: ExitReport, server: &str) -> Inbound {
    Inbound::Closed {
        reason: Error::new(ErrorKind::ConnectionClosed, report.describe(server)),
        exit_code: report.code,
        stderr_tail: Some(report.stderr_tail).filter(|tail| !tail.is_empty()),
    }
}

/// Waits for the end of a process that was told to end. The patience of its command bounds it.
async fn ended(mut output: ProcessOutput) {
    while let Some(event) = output.next().await {
        if matches!(event, ProcessEvent::Exited(_)) {
            return;
        }
    }
}
