//! The streams of one child's callers: what the machine puts out goes to the response that waits for it, or waits for one.

use std::collections::{BTreeMap, VecDeque};

use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{RpcError, code};
use crablet::mcp::transport::shim::{MAX_MESSAGE_BYTES, WINDOW_BYTES};

use super::bridge::{Call, Callers, Exchange, Output, failure};
use super::event_log::{EventId, EventLog, LoggedEvent};
use super::lane::{LaneSender, Piece};

/// The streams, and the lines that the child has not taken.
#[derive(Debug)]
pub(crate) struct Streams {
    callers: Callers,
    open: BTreeMap<Exchange, Stream>,
    /// The stream of a session for what belongs to no request.
    own: Option<Exchange>,
    /// Messages of no request while there is no such stream.
    unheard: VecDeque<RawJson>,
    log: EventLog,
    lines: VecDeque<String>,
    line_bytes: usize,
}

#[derive(Debug)]
struct Stream {
    /// `None` while its client is away.
    lane: Option<LaneSender>,
    /// How many events it has carried.
    events: u64,
    /// Whether its client, who is away, has seen the start of it and so can take it up again.
    can_resume: bool,
}

impl Stream {
    fn new(lane: LaneSender) -> Self {
        Self { lane: Some(lane), events: 0, can_resume: false }
    }

    fn is_heard(&self) -> bool {
        self.lane.as_ref().is_some_and(|lane| !lane.is_closed())
    }
}

impl Streams {
    pub(crate) fn new(callers: Callers) -> Self {
        Self {
            callers,
            open: BTreeMap::new(),
            own: None,
            unheard: VecDeque::new(),
            log: EventLog::default(),
            lines: VecDeque::new(),
            line_bytes: 0,
        }
    }

    /// Opens the stream of a request. Gives it back unless the child has too much to do already, which is answered.
    pub(crate) fn open(&mut self, call: Call, lane: LaneSender) -> Option<Call> {
        self.open.insert(call.exchange, Stream::new(lane));
        if self.open.len() > MAX_STREAMS || self.line_bytes > WINDOW_BYTES + MAX_MESSAGE_BYTES {
            let error = RpcError::new(code::INTERNAL_ERROR, "the server has too much to do; wait for answers");
            self.send(call.exchange, failure(&call.id, error), true);
            return None;
        }
        // Somebody waits for the answer to a question, and the client may have no stream of its own for it.
        if !self.is_own_heard() {
            let (questions, others) = std::mem::take(&mut self.unheard).into_iter().partition(is_request);
            self.unheard = others;
            let questions: VecDeque<RawJson> = questions;
            questions.into_iter().for_each(|question| self.send(call.exchange, question, false));
        }
        Some(call)
    }

    /// Opens a session's own stream in place of an earlier one, or takes up a stream after an event. Gives the stream, or
    /// nothing when what followed the event is not known any more.
    pub(crate) fn listen(&mut self, new: Exchange, lane: LaneSender, after: Option<EventId>) -> Option<Exchange> {
        let Some(after) = after else {
            if let Some(earlier) = self.own.replace(new) {
                self.open.remove(&earlier);
            }
            self.open.insert(new, Stream::new(lane));
            self.tell_unheard(new);
            return Some(new);
        };
        let events = self.log.after(after)?;
        let is_over = self.log.has_end_of(after.stream);
        if !is_over && !self.open.contains_key(&after.stream) {
            return None;
        }
        let arrived = events
            .into_iter()
            .all(|LoggedEvent { id, message, is_last }| lane.give(Piece { id: Some(id), message, is_last }));
        if let Some(stream) = self.open.get_mut(&after.stream) {
            stream.lane = Some(lane).filter(|_| arrived);
        }
        if self.own == Some(after.stream) {
            self.tell_unheard(after.stream);
        }
        Some(after.stream)
    }

    /// A client closed a stream. Whether that ends a request.
    pub(crate) fn left(&mut self, exchange: Exchange) -> bool {
        if self.callers == Callers::Stateless {
            return self.open.remove(&exchange).is_some();
        }
        // The client may come back for the rest, and may be back already; the request goes on.
        if let Some(stream) = self.open.get_mut(&exchange)
            && let Some(lane) = stream.lane.take_if(|lane| lane.is_closed())
        {
            stream.can_resume = lane.is_stream() || stream.events > 0;
        }
        false
    }

    /// Takes what the machine puts out.
    pub(crate) fn take(&mut self, output: Output) {
        match output {
            Output::ToChild(line) => {
                self.line_bytes += line.len();
                self.lines.push_back(line);
            }
            Output::ToCaller { exchange, message } => {
                let is_open = |stream: &Stream| stream.is_heard() || stream.can_resume;
                let of_request = exchange.filter(|exchange| self.open.get(exchange).is_some_and(is_open));
                match of_request.or(self.own.filter(|_| self.is_own_heard())) {
                    Some(exchange) => self.send(exchange, message, false),
                    // A stateless caller that is gone wants nothing more.
                    None if self.callers == Callers::Handshake => self.keep(message),
                    None => {}
                }
            }
            Output::Answer { exchange, message } => self.send(exchange, message, true),
            Output::Unanswered(exchange) => drop(self.open.remove(&exchange)),
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
        self.open.values().any(|stream| stream.lane.is_some())
    }

    fn is_own_heard(&self) -> bool {
        self.own.and_then(|own| self.open.get(&own)).is_some_and(Stream::is_heard)
    }

    fn tell_unheard(&mut self, stream: Exchange) {
        for message in std::mem::take(&mut self.unheard) {
            self.send(stream, message, false);
        }
    }

    fn send(&mut self, exchange: Exchange, message: RawJson, is_last: bool) {
        let Some(stream) = self.open.get_mut(&exchange) else { return };
        stream.events += 1;
        let id = EventId { stream: exchange, number: stream.events };
        // An answer by itself is no stream that could be resumed.
        let is_stream = !is_last || stream.events > 1 || stream.lane.as_ref().is_none_or(LaneSender::is_stream);
        if self.callers == Callers::Handshake && is_stream {
            self.log.push(LoggedEvent { id, message: message.clone(), is_last });
        }
        let id = Some(id).filter(|_| self.callers == Callers::Handshake);
        let arrived = stream.lane.as_ref().is_some_and(|lane| lane.give(Piece { id, message, is_last }));
        if is_last {
            self.open.remove(&exchange);
        } else if !arrived {
            // Whoever reads too slowly is cut off, and leaves.
            stream.lane = None;
            stream.can_resume = true;
        }
    }

    fn keep(&mut self, message: RawJson) {
        if self.unheard.len() >= MAX_UNHEARD {
            self.unheard.pop_front();
        }
        self.unheard.push_back(message);
    }
}

fn is_request(message: &RawJson) -> bool {
    Object::parse(message.as_str()).is_ok_and(|message| message.get("id").is_some() && message.get("method").is_some())
}

/// The most requests and streams that one child has open.
const MAX_STREAMS: usize = 256;

/// The most messages of no request that wait for a stream; older ones are dropped.
const MAX_UNHEARD: usize = 256;
