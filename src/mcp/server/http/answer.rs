use super::super::dispatch::{MISSING_CAPABILITY, UNSUPPORTED_VERSION};
use super::message::null;
use super::{EventId, Exchange, HEADER_MISMATCH, SESSION_NOT_FOUND};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{self, RpcError, code};

/// An answer that is complete: no stream follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, in lower case. `content-type` is among them where there is a body.
    pub headers: Vec<(&'static str, String)>,
    /// A message, if the body is one. Without one, the body is empty.
    pub message: Option<RawJson>,
}

impl Answer {
    /// A status and nothing else.
    pub fn empty(status: u16) -> Self {
        Self { status, headers: vec![("cache-control", "no-store".to_owned())], message: None }
    }

    /// A message as the whole answer.
    pub fn json(status: u16, message: RawJson) -> Self {
        let headers = vec![
            ("cache-control", "no-store".to_owned()),
            ("content-type", "application/json".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
        ];
        Self { status, headers, message: Some(message) }
    }

    /// The failure of a request, or of something whose id is not known.
    pub fn failed(status: u16, id: Option<&RawJson>, error: RpcError) -> Self {
        let null = null();
        Self::json(status, jsonrpc::response(id.unwrap_or(&null), &Err(error)))
    }

    /// The answer for a session that is not there (2025-11-25, "Session Management").
    pub fn no_session() -> Self {
        let message = "there is no such session, or it has ended: send initialize for a new one";
        Self::failed(404, None, RpcError::new(SESSION_NOT_FOUND, message))
    }

    /// The answer for a stream that cannot be taken up after this event.
    pub fn lost_events() -> Self {
        let message = "what followed this event is not known any more; ask again for what is missing";
        Self::failed(400, None, RpcError::new(code::INVALID_REQUEST, message))
    }

    pub(super) fn not_allowed(allowed: &'static str) -> Self {
        let mut answer = Self::empty(405);
        answer.headers.push(("allow", allowed.to_owned()));
        answer
    }
}

/// The status that goes with an answer of the stateless era that is no stream.
pub fn status_of(message: &RawJson) -> u16 {
    let error = Object::parse(message.as_str()).ok().and_then(|message| message.object("error")?.read::<i64>("code"));
    match error {
        Some(code::METHOD_NOT_FOUND) => 404,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => 400,
        _ => 200,
    }
}

/// A message as an event of a stream.
pub fn event(id: Option<EventId>, message: &RawJson) -> String {
    let mut event = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    // A line break, which can only be white space of JSON here, would end the data.
    for line in message.as_str().split(['\n', '\r']).filter(|line| !line.is_empty()) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event
}

/// The event of no data that a stream begins with which can be resumed: it gives the client something to resume after
/// (2025-11-25, "Sending Messages to the Server").
pub fn opening_event(stream: Exchange) -> String {
    let id = EventId { stream, number: 0 };
    format!("id: {id}\nretry: {RETRY_MILLISECONDS}\ndata:\n\n")
}

/// How long a client shall wait before it takes up a broken stream.
const RETRY_MILLISECONDS: u64 = 500;
