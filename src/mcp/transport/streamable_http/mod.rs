//! Streamable HTTP as a machine: JSON-RPC messages become POST requests, and their answers, JSON or event streams, become
//! messages.
//!
//! Sources: revision 2025-11-25, "Streamable HTTP" (sessions, the listening GET stream, resumption) and revision
//! 2026-07-28, "Streamable HTTP" (every request by itself). The machine speaks both at once; each message says for which
//! era it was written. A server that knows neither is tried with HTTP+SSE, the transport before.

mod answer;
mod exchange;
mod headers;
mod io;
mod legacy;
pub mod mirrored;
mod refusal;

use std::collections::VecDeque;

pub use io::{Effect, ExchangeId, Input, StreamableHttpOptions};

use self::exchange::{Exchange, Purpose, Reading};
use self::headers::SessionId;
use self::legacy::Legacy;
use super::{Era, Inbound, OPAQUE_FAILURE, Outbound, RequestId, Revision};
use crate::error::{Error, ErrorKind};
use crate::ordered_map::OrderedMap;
use crate::time::Millis;

/// How long a stream may stay open after its answer, in milliseconds. Well-behaved servers close it at once, which keeps
/// the connection usable for the next request; an abort would cost a new connection each time.
const LINGER: u64 = 1_000;

/// The wait before a broken stream is opened again when the server named none, in milliseconds.
const DEFAULT_RETRY: u64 = 1_000;

/// The longest wait that a server may ask for before a stream is opened again, in milliseconds: five minutes.
const LONGEST_RETRY: u64 = 300_000;

/// How often in a row a stream is opened again without a single new event.
const RESUMPTION_LIMIT: u32 = 5;

/// How long requests wait for the answer to `notifications/initialized`, in milliseconds. Servers refuse what comes before
/// it; one that never answers it must not hold up everything.
const ANNOUNCE_LIMIT: u64 = 5_000;

/// How long a notification may go without an answer, in milliseconds. Nobody waits for it, but it holds a connection.
const NOTIFY_LIMIT: u64 = 30_000;

/// How long closing waits for the answer to DELETE, in milliseconds. The server drops idle sessions by itself.
const CLOSE_LIMIT: u64 = 2_000;

/// The machine. Give it [`Input`]s, and after each take [`Effect`]s until there are none.
#[derive(Debug)]
pub struct StreamableHttp {
    options: StreamableHttpOptions,
    next_exchange: u64,
    exchanges: OrderedMap<ExchangeId, Exchange>,
    session: Session,
    legacy: Legacy,
    effects: VecDeque<Effect>,
    over: bool,
}

/// What a server of the handshake era remembers of us, and what was learnt about it.
#[derive(Debug, Default)]
struct Session {
    id: Option<SessionId>,
    /// The revision that was agreed on.
    era: Option<Era>,
    version_header: VersionHeader,
    /// Requests that wait until the server has taken the first notification after `initialize`.
    held: VecDeque<Outbound>,
    phase: SessionPhase,
    listening: bool,
    /// Whether the listening stream broke for good, so that it is opened again once the server answers anything.
    lost_stream: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SessionPhase {
    /// No `initialize` was answered, or the session is in use.
    #[default]
    Settled,
    /// `initialize` was answered; the next notification is `notifications/initialized`.
    Opened,
    /// That notification is on its way.
    Announced,
}

/// Whether the server's CORS rules let `MCP-Protocol-Version` through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum VersionHeader {
    #[default]
    Untried,
    Accepted,
    Omitted,
}

impl StreamableHttp {
    /// A machine that does nothing until it is told to send.
    pub fn new(options: StreamableHttpOptions) -> Self {
        Self {
            options,
            next_exchange: 0,
            exchanges: OrderedMap::new(),
            session: Session::default(),
            legacy: Legacy::default(),
            effects: VecDeque::new(),
            over: false,
        }
    }

    /// Takes note of what happened. Never fails and never blocks: what goes wrong is told by [`Inbound`].
    pub fn handle(&mut self, now: Millis, input: Input) {
        if self.over {
            return;
        }
        match input {
            Input::Outbound(outbound) => self.take_outbound(now, outbound),
            Input::Head { exchange, head } => self.take_head(now, exchange, &head),
            Input::Bytes { exchange, bytes } => self.take_bytes(now, exchange, &bytes),
            Input::End { exchange } => self.take_end(now, exchange),
            Input::Failed { exchange, error } => self.take_failure(now, exchange, error),
            Input::Authorizing { exchange } => {
                let request_id = self.exchanges.get(&exchange).and_then(|exchange| exchange.request_id().cloned());
                if let Some(request_id) = request_id {
                    self.deliver(Inbound::Authorizing { request_id });
                }
            }
            Input::Timer { exchange } => self.take_timer(now, exchange),
        }
    }

    /// The next thing to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    fn take_outbound(&mut self, now: Millis, outbound: Outbound) {
        match outbound {
            Outbound::Request { .. } if self.session.phase == SessionPhase::Announced => {
                self.session.held.push_back(outbound);
            }
            Outbound::Request { id, message, era, headers, opens_session } => {
                if opens_session {
                    self.forget_session();
                }
                let purpose = Purpose::Request { id, opens_session };
                self.post(Exchange::new(purpose, era, message, headers));
            }
            Outbound::Notify { message, era, headers } => {
                let announces = self.session.phase == SessionPhase::Opened;
                let key = self.post(Exchange::new(Purpose::Notify { announces }, era, message, headers));
                self.set_timer(key, now.after(if announces { ANNOUNCE_LIMIT } else { NOTIFY_LIMIT }));
                if announces {
                    self.session.phase = SessionPhase::Announced;
                    self.session.era = Some(era);
                }
            }
            Outbound::Cancel { id } => self.cancel(&id),
            Outbound::Close => self.close(now),
        }
    }

    fn cancel(&mut self, id: &RequestId) {
        self.session.held.retain(|held| !matches!(held, Outbound::Request { id: candidate, .. } if candidate == id));
        let found = self.exchanges.iter().find(|(_, exchange)| exchange.request_id() == Some(id));
        if let Some(key) = found.map(|(key, _)| *key) {
            self.abandon(key);
        }
    }

    fn close(&mut self, now: Millis) {
        for key in self.exchanges.keys().copied().collect::<Vec<_>>() {
            self.abandon(key);
        }
        self.session.held.clear();
        let Some(session) = self.session.id.take() else { return self.finish() };
        let era = self.session.era.unwrap_or(Era::Handshake(Revision::LATEST));
        let mut exchange = Exchange::new(Purpose::Delete, era, None, Vec::new());
        exchange.session = Some(session);
        let key = self.send("DELETE", exchange);
        self.set_timer(key, now.after(CLOSE_LIMIT));
    }

    fn finish(&mut self) {
        self.over = true;
        let reason = Error::new(ErrorKind::ConnectionClosed, "the client closed the connection");
        self.deliver(Inbound::Closed { reason, exit_code: None, stderr_tail: None });
    }

    fn forget_session(&mut self) {
        let listening = self.exchanges.iter().find(|(_, exchange)| exchange.purpose == Purpose::Listen);
        if let Some(key) = listening.map(|(key, _)| *key) {
            self.abandon(key);
        }
        // The old transport has its one stream from the start.
        let listening = matches!(self.legacy, Legacy::Open(_));
        self.session = Session { version_header: self.session.version_header, listening, ..Session::default() };
    }

    fn post(&mut self, mut exchange: Exchange) -> ExchangeId {
        if exchange.era != Era::Stateless && !exchange.opens_session() {
            exchange.session.clone_from(&self.session.id);
        }
        self.send("POST", exchange)
    }

    /// Opens the stream of messages that belong to no request.
    fn listen(&mut self, era: Era) {
        self.session.listening = true;
        let mut exchange = Exchange::new(Purpose::Listen, era, None, Vec::new());
        exchange.session.clone_from(&self.session.id);
        self.send("GET", exchange);
    }

    fn send(&mut self, method: &'static str, mut exchange: Exchange) -> ExchangeId {
        let key = ExchangeId(self.next_exchange);
        self.next_exchange += 1;
        exchange.sends_version = self.sends_version(&exchange);
        let request = headers::request(method, self.address(method), &exchange);
        self.effects.push_back(Effect::Fetch { exchange: key, request });
        self.exchanges.insert(key, exchange);
        key
    }

    /// The version header exists since revision 2025-06-18 and is not for `initialize`, which agrees on a version.
    fn sends_version(&self, exchange: &Exchange) -> bool {
        match exchange.era {
            Era::Stateless => true,
            Era::Handshake(revision) => {
                revision >= Revision::V2025_06_18
                    && !exchange.opens_session()
                    && exchange.purpose != Purpose::Legacy
                    && !exchange.omits_version
                    && self.session.version_header != VersionHeader::Omitted
            }
        }
    }

    /// Stops an exchange that nobody waits for any more.
    fn abandon(&mut self, key: ExchangeId) {
        if self.remove(key).is_some_and(|exchange| !exchange.is_waiting()) {
            self.abort(key);
        }
    }

    fn abort(&mut self, key: ExchangeId) {
        self.effects.push_back(Effect::Abort { exchange: key });
    }

    fn remove(&mut self, key: ExchangeId) -> Option<Exchange> {
        let exchange = self.exchanges.remove(&key)?;
        if exchange.has_timer {
            self.effects.push_back(Effect::ClearTimer { exchange: key });
        }
        Some(exchange)
    }

    fn set_timer(&mut self, key: ExchangeId, at: Millis) {
        if let Some(exchange) = self.exchanges.get_mut(&key) {
            exchange.has_timer = true;
            self.effects.push_back(Effect::SetTimer { exchange: key, at });
        }
    }

    fn clear_timer(&mut self, key: ExchangeId) {
        if let Some(exchange) = self.exchanges.get_mut(&key)
            && std::mem::take(&mut exchange.has_timer)
        {
            self.effects.push_back(Effect::ClearTimer { exchange: key });
        }
    }

    fn take_timer(&mut self, now: Millis, key: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        exchange.has_timer = false;
        match (&exchange.purpose, &exchange.reading) {
            (Purpose::Delete, _) => {
                self.abandon(key);
                self.finish();
            }
            (Purpose::Notify { announces: true }, Reading::Head) => {
                exchange.purpose = Purpose::Notify { announces: false };
                self.set_timer(key, now.after(NOTIFY_LIMIT));
                self.settle(now);
            }
            (Purpose::Legacy, _) => {
                self.abort(key);
                self.end_legacy(key, None);
            }
            (_, Reading::Waiting) => self.reopen(key),
            _ => self.abandon(key),
        }
    }

    /// Opens a broken stream again, after its wait.
    fn reopen(&mut self, key: ExchangeId) {
        let Some(mut exchange) = self.remove(key) else { return };
        exchange.reading = Reading::Head;
        exchange.session.clone_from(&self.session.id);
        self.send("GET", exchange);
    }

    fn take_failure(&mut self, now: Millis, key: ExchangeId, error: Error) {
        let Some(exchange) = self.exchanges.get(&key) else { return };
        match exchange.reading {
            Reading::Head => {
                let may_omit_version = exchange.sends_version
                    && exchange.era != Era::Stateless
                    && self.session.version_header == VersionHeader::Untried
                    && error.code() == Some(OPAQUE_FAILURE);
                let is_after_initialize = self.session.era.is_some() && error.code() == Some(OPAQUE_FAILURE);
                match (may_omit_version, is_after_initialize) {
                    (true, _) => self.retry_without_version(key),
                    (false, true) => self.fail(now, key, refusal::opaque(&error)),
                    (false, false) => self.fail(now, key, error),
                }
            }
            Reading::Stream(_) | Reading::Document(_) => {
                let message = format!("the connection broke before the server's answer was complete: {error}");
                self.fail(now, key, Error::new(ErrorKind::ConnectionClosed, message));
            }
            Reading::Rest => drop(self.remove(key)),
            Reading::Waiting => {}
        }
    }

    /// A server whose CORS rules do not list the header fails the preflight, so that the request never left.
    fn retry_without_version(&mut self, key: ExchangeId) {
        let Some(mut exchange) = self.remove(key) else { return };
        exchange.omits_version = true;
        self.send(exchange.method(), exchange);
    }

    /// The exchange has no answer and will have none, unless its stream can be opened again.
    fn fail(&mut self, now: Millis, key: ExchangeId, error: Error) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        exchange.note_end(now);
        if let Some(wait) = exchange.next_wait() {
            exchange.reading = Reading::Waiting;
            return self.set_timer(key, now.after(wait));
        }
        let Some(exchange) = self.remove(key) else { return };
        match exchange.purpose {
            Purpose::Request { .. } if exchange.answered => {}
            Purpose::Request { id, .. } => self.deliver(Inbound::RequestEnded { id, reason: Err(error) }),
            Purpose::Notify { announces } => {
                self.deliver(Inbound::Warning(format!("a notification did not reach the server: {error}")));
                if announces {
                    self.settle(now);
                }
            }
            Purpose::Listen => {
                self.session.listening = false;
                self.session.lost_stream = exchange.resumption.was_open;
            }
            Purpose::Legacy => self.end_legacy(key, None),
            Purpose::Delete => self.finish(),
        }
    }

    /// The server has taken `notifications/initialized`: what was held may go, and the listening stream opens.
    fn settle(&mut self, now: Millis) {
        self.session.phase = SessionPhase::Settled;
        // First the stream, so that nothing that the requests set off is missed.
        if let Some(era) = self.session.era.filter(|_| self.options.listen && !self.session.listening) {
            self.listen(era);
        }
        for held in std::mem::take(&mut self.session.held) {
            self.take_outbound(now, held);
        }
    }

    fn deliver(&mut self, inbound: Inbound) {
        self.effects.push_back(Effect::Deliver(inbound));
    }
}
