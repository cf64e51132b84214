use super::super::{Era, RequestId, STEADY};
use super::headers::SessionId;
use super::{DEFAULT_RETRY, LONGEST_RETRY, RESUMPTION_LIMIT};
use crate::json::RawJson;
use crate::sse::SseParser;
use crate::time::Millis;

/// One HTTP request with its answer, and with the further GET requests that take up its stream again.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) purpose: Purpose,
    pub(super) era: Era,
    /// What is posted; `None` for GET and DELETE.
    pub(super) message: Option<RawJson>,
    /// The headers that the client asked for.
    pub(super) headers: Vec<(String, String)>,
    /// The session it was sent in.
    pub(super) session: Option<SessionId>,
    /// Whether it was sent with the version header.
    pub(super) sends_version: bool,
    /// Whether it is the second try, without that header.
    pub(super) omits_version: bool,
    pub(super) status: u16,
    pub(super) retry_after: Option<u64>,
    /// Where a redirect leads that was not followed.
    pub(super) location: Option<String>,
    pub(super) reading: Reading,
    pub(super) resumption: Resumption,
    /// Since when the stream is open.
    pub(super) opened: Option<Millis>,
    /// Whether the answer to the request came.
    pub(super) answered: bool,
    pub(super) has_timer: bool,
}

/// What an exchange is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    Request {
        id: RequestId,
        opens_session: bool,
    },
    Notify {
        announces: bool,
    },
    Listen,
    /// The one stream of the transport before this one.
    Legacy,
    Delete,
}

/// How far the answer is.
#[derive(Debug)]
pub(super) enum Reading {
    /// Nothing came yet.
    Head,
    /// An event stream.
    Stream(Box<SseParser>),
    /// A JSON document, or the body of a refusal.
    Document(Vec<u8>),
    /// A body that nobody needs.
    Rest,
    /// Between two openings of the stream.
    Waiting,
}

/// Where a broken stream can be taken up again.
#[derive(Debug, Default)]
pub(super) struct Resumption {
    pub(super) last_event_id: Option<String>,
    pub(super) retry: Option<u64>,
    /// Whether the stream was open at least once.
    pub(super) was_open: bool,
    attempts: u32,
}

impl Reading {
    /// Looks at the first bytes of a body, which tell what it is more surely than its media type: some servers call events JSON,
    /// and JSON events.
    pub(super) fn look_at(&mut self, bytes: &[u8]) {
        /// How events begin. No JSON does.
        const EVENTS: [&[u8]; 5] = [b"event:", b"data:", b"id:", b"retry:", b":"];
        match self {
            Self::Stream(parser)
                if parser.is_unused() && matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) =>
            {
                *self = Self::Document(Vec::new());
            }
            Self::Document(document) if document.len() < EVENTS[0].len() => {
                let start = [document, bytes].concat();
                if EVENTS.iter().any(|events| start.starts_with(events)) {
                    let mut parser = Box::new(SseParser::new());
                    parser.push(document);
                    *self = Self::Stream(parser);
                }
            }
            _ => {}
        }
    }
}

impl Exchange {
    pub(super) fn new(
        purpose: Purpose,
        era: Era,
        message: impl Into<Option<RawJson>>,
        headers: Vec<(String, String)>,
    ) -> Self {
        Self {
            purpose,
            era,
            message: message.into(),
            headers,
            session: None,
            sends_version: false,
            omits_version: false,
            status: 0,
            retry_after: None,
            location: None,
            reading: Reading::Head,
            resumption: Resumption::default(),
            opened: None,
            answered: false,
            has_timer: false,
        }
    }

    pub(super) fn request_id(&self) -> Option<&RequestId> {
        match &self.purpose {
            Purpose::Request { id, .. } => Some(id),
            _ => None,
        }
    }

    pub(super) fn opens_session(&self) -> bool {
        matches!(self.purpose, Purpose::Request { opens_session: true, .. })
    }

    /// Whether it is between two openings of its stream.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.reading, Reading::Waiting)
    }

    /// How long to wait before the stream is opened again; `None` when that is over or was never possible.
    ///
    /// The stream of a request needs an event to go on from. The listening stream does not: what it missed belongs to no
    /// request. Each wait in a row is twice the one before.
    pub(super) fn next_wait(&mut self) -> Option<u64> {
        let is_possible = match self.purpose {
            Purpose::Request { .. } => self.resumption.last_event_id.is_some() && !self.answered,
            Purpose::Listen => self.resumption.was_open,
            Purpose::Notify { .. } | Purpose::Legacy | Purpose::Delete => false,
        };
        if !is_possible || self.era == Era::Stateless || self.resumption.attempts >= RESUMPTION_LIMIT {
            return None;
        }
        let wait = self.resumption.retry.unwrap_or(DEFAULT_RETRY);
        let wait = wait.saturating_mul(1 << self.resumption.attempts);
        self.resumption.attempts += 1;
        Some(wait.min(LONGEST_RETRY))
    }

    /// The stream ended. A listening stream that stood for a while makes the next failure the first again: proxies end what
    /// brings nothing, often after a minute, and then no event would ever do so.
    pub(super) fn note_end(&mut self, now: Millis) {
        let stood = self.opened.take().map_or(0, |opened| now.since(opened));
        if self.purpose == Purpose::Listen && stood >= STEADY {
            self.resumption.attempts = 0;
        }
    }

    pub(super) fn method(&self) -> &'static str {
        match (&self.purpose, &self.resumption.last_event_id) {
            (Purpose::Delete, _) => "DELETE",
            (Purpose::Listen | Purpose::Legacy, _) | (_, Some(_)) => "GET",
            _ => "POST",
        }
    }
}

impl Resumption {
    /// Notes how far a stream came. A newer event makes the next failure the first again.
    pub(super) fn note(&mut self, last_event_id: &str, retry: Option<u64>) {
        self.retry = retry.or(self.retry);
        if !last_event_id.is_empty() && self.last_event_id.as_deref() != Some(last_event_id) {
            self.last_event_id = Some(last_event_id.to_owned());
            self.attempts = 0;
        }
    }

    /// The stream must not be opened again.
    pub(super) fn give_up(&mut self) {
        self.attempts = RESUMPTION_LIMIT;
    }
}
