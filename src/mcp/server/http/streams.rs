//! The streams of one session, or of requests that stand alone: what the server says goes to the response that waits for it,
//! or waits for one.

use std::collections::{BTreeMap, VecDeque};

use super::event_log::{EventLog, LoggedEvent};
use super::{EventId, Exchange};
use crate::json::{Object, RawJson};

/// A message on its way to a response.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The event's name, where the stream can be resumed.
    pub id: Option<EventId>,
    /// The message.
    pub message: RawJson,
    /// Whether the stream ends with it.
    pub is_last: bool,
}

/// The way to a response.
pub trait Lane {
    /// Gives a message; `false` when nobody takes it, or what was given before is not taken fast enough.
    fn give(&self, piece: Piece) -> bool;
    /// Whether nobody takes any more.
    fn is_closed(&self) -> bool;
    /// Whether the client has seen the start of an event stream.
    fn is_stream(&self) -> bool;
}

/// The streams.
#[derive(Debug)]
pub struct Streams<L> {
    /// Whether a client may come back for what it missed, as it may in a session.
    can_resume: bool,
    open: BTreeMap<Exchange, Stream<L>>,
    /// The stream of a session for what belongs to no request.
    own: Option<Exchange>,
    /// Messages of no request while there is no such stream.
    unheard: VecDeque<RawJson>,
    log: EventLog,
}

#[derive(Debug)]
struct Stream<L> {
    /// `None` while its client is away.
    lane: Option<L>,
    /// How many events it has carried.
    events: u64,
    /// Whether its client, who is away, has seen the start of it and so can take it up again.
    can_resume: bool,
}

impl<L: Lane> Stream<L> {
    fn new(lane: L) -> Self {
        Self { lane: Some(lane), events: 0, can_resume: false }
    }

    fn is_heard(&self) -> bool {
        self.lane.as_ref().is_some_and(|lane| !lane.is_closed())
    }
}

impl<L: Lane> Streams<L> {
    /// The streams of a session, which are kept for clients that come back.
    pub fn of_session() -> Self {
        Self::new(true)
    }

    /// The streams of requests that stand alone: one whose client is gone is over.
    pub fn of_requests() -> Self {
        Self::new(false)
    }

    fn new(can_resume: bool) -> Self {
        Self { can_resume, open: BTreeMap::new(), own: None, unheard: VecDeque::new(), log: EventLog::default() }
    }

    /// Opens the stream of a request. There are too many if this gives `false`: the request is to be answered with a failure.
    #[must_use]
    pub fn open(&mut self, exchange: Exchange, lane: L) -> bool {
        self.open.insert(exchange, Stream::new(lane));
        if self.open.len() > MAX_STREAMS {
            return false;
        }
        // Somebody waits for the answer to a question, and the client may have no stream of its own for it.
        if !self.is_own_heard() {
            let (questions, others) = std::mem::take(&mut self.unheard).into_iter().partition(is_request);
            self.unheard = others;
            let questions: VecDeque<RawJson> = questions;
            questions.into_iter().for_each(|question| self.send(exchange, question, false));
        }
        true
    }

    /// Opens a session's own stream in place of an earlier one, or takes up a stream after an event. Gives the stream, or
    /// nothing when what followed the event is not known any more.
    pub fn listen(&mut self, new: Exchange, lane: L, after: Option<EventId>) -> Option<Exchange> {
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
    pub fn left(&mut self, exchange: Exchange) -> bool {
        if !self.can_resume {
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

    /// Sends a message that ends no request, about one or about none.
    pub fn tell(&mut self, exchange: Option<Exchange>, message: RawJson) {
        let is_open = |stream: &Stream<L>| stream.is_heard() || stream.can_resume;
        let of_request = exchange.filter(|exchange| self.open.get(exchange).is_some_and(is_open));
        match of_request.or(self.own.filter(|_| self.is_own_heard())) {
            Some(exchange) => self.send(exchange, message, false),
            // A client that is gone for good wants nothing more.
            None if self.can_resume => self.keep(message),
            None => {}
        }
    }

    /// Answers a request, whose stream ends with it.
    pub fn answer(&mut self, exchange: Exchange, message: RawJson) {
        self.send(exchange, message, true);
    }

    /// Ends the stream of a request that gets no answer any more.
    pub fn end(&mut self, exchange: Exchange) {
        self.open.remove(&exchange);
    }

    /// Whether anyone waits for the server.
    pub fn are_used(&self) -> bool {
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
        let is_stream = !is_last || stream.events > 1 || stream.lane.as_ref().is_none_or(Lane::is_stream);
        if self.can_resume && is_stream {
            self.log.push(LoggedEvent { id, message: message.clone(), is_last });
        }
        let id = Some(id).filter(|_| self.can_resume);
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

/// The most requests and streams that are open at once.
const MAX_STREAMS: usize = 256;

/// The most messages of no request that wait for a stream; older ones are dropped.
const MAX_UNHEARD: usize = 256;
