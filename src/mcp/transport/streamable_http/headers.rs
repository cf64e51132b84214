use std::fmt;

use super::exchange::Exchange;
use crate::model::HttpRequest;

/// The header in which a server names its session, and a client repeats it.
pub(super) const SESSION: &str = "mcp-session-id";

/// The HTTP request of an exchange.
pub(super) fn request(method: &'static str, url: &str, exchange: &Exchange) -> HttpRequest {
    let body = exchange.message.as_ref().filter(|_| method == "POST").map(|message| message.as_str().as_bytes());
    let mut request =
        HttpRequest { method, url: url.to_owned(), headers: Vec::new(), body: body.unwrap_or_default().to_vec() };
    match method {
        "POST" => {
            request.set_header("content-type", "application/json");
            request.set_header("accept", "application/json, text/event-stream");
        }
        "GET" => request.set_header("accept", "text/event-stream"),
        _ => {}
    }
    for (name, value) in exchange.headers.iter().filter(|_| method == "POST") {
        request.set_header(name, value.as_str());
    }
    if exchange.sends_version {
        request.set_header("mcp-protocol-version", exchange.era.version());
    }
    if let Some(session) = &exchange.session {
        request.set_header(SESSION, session.0.as_str());
    }
    if let Some(event_id) = exchange.resumption.last_event_id.as_ref().filter(|_| method == "GET") {
        request.set_header("last-event-id", event_id.as_str());
    }
    request
}

/// The id of a session: whoever knows it can act in it, so it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SessionId(String);

impl SessionId {
    /// The id in an answer's header. The specification allows visible ASCII only; anything else could not be sent back.
    pub(super) fn read(value: Option<&str>) -> Option<Self> {
        let id = value.filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()))?;
        Some(Self(id.to_owned()))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionId(..)")
    }
}
