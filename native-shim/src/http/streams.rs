//! What the machine puts out: messages go to the streams of the callers, lines wait until the child takes them.

use std::collections::VecDeque;

use crablet::host::mcp::LaneSender;
use crablet::jsonrpc::{RpcError, code};
use crablet::mcp::server::http::{EventId, Exchange};
use crablet::mcp::transport::shim::{MAX_MESSAGE_BYTES, WINDOW_BYTES};

use super::bridge::{Call, Callers, Output, failure};

/// The streams, and the lines that the child has not taken.
#[derive(Debug)]
pub(crate) struct Streams {
    callers: crablet::mcp::server::http::Streams<LaneSender>,
    lines: VecDeque<String>,
    line_bytes: usize,
}

impl Streams {
    pub(crate) fn new(callers: Callers) -> Self {
        use crablet::mcp::server::http::Streams;
        let callers = match callers {
            Callers::Handshake => Streams::of_session(),
            Callers::Stateless => Streams::of_requests(),
        };
        Self { callers, lines: VecDeque::new(), line_bytes: 0 }
    }

    /// Opens the stream of a request. Gives it back unless the child has too much to do already, which is answered.
    pub(crate) fn open(&mut self, call: Call, lane: LaneSender) -> Option<Call> {
        let has_room = self.callers.open(call.exchange, lane);
        if !has_room || self.line_bytes > WINDOW_BYTES + MAX_MESSAGE_BYTES {
            let error = RpcError::new(code::INTERNAL_ERROR, "the server has too much to do; wait for answers");
            self.callers.answer(call.exchange, failure(&call.id, error));
            return None;
        }
        Some(call)
    }

    /// See [`crablet::mcp::server::http::Streams::listen`].
    pub(crate) fn listen(&mut self, new: Exchange, lane: LaneSender, after: Option<EventId>) -> Option<Exchange> {
        self.callers.listen(new, lane, after)
    }

    /// A client closed a stream. Whether that ends a request.
    pub(crate) fn left(&mut self, exchange: Exchange) -> bool {
        self.callers.left(exchange)
    }

    /// Takes what the machine puts out.
    pub(crate) fn take(&mut self, output: Output) {
        match output {
            Output::ToChild(line) => {
                self.line_bytes += line.len();
                self.lines.push_back(line);
            }
            Output::ToCaller { exchange, message } => self.callers.tell(exchange, message),
            Output::Answer { exchange, message } => self.callers.answer(exchange, message),
            Output::Unanswered(exchange) => self.callers.end(exchange),
        }
    }

    pub(crate) fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    /// The next line for the child.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let line = self.lines.pop_front()?;
        self.line_bytes -= line.len();
        Some(line)
    }

    /// The child takes nothing more.
    pub(crate) fn forget_lines(&mut self) {
        self.lines.clear();
        self.line_bytes = 0;
    }

    /// Whether anyone waits for the child.
    pub(crate) fn are_used(&self) -> bool {
        self.callers.are_used()
    }
}
