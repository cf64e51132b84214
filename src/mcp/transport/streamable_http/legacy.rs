//! HTTP+SSE, the transport of revision 2024-11-05: one event stream carries all answers of the server, and names in its
//! first event the address that messages are posted to.
//!
//! It is tried when `initialize` is refused in the way of a server that knows no newer transport (revision 2025-03-26,
//! "Backwards compatibility").

use super::super::{Era, Inbound, Outbound, RequestId, Revision};
use super::exchange::{Exchange, Purpose};
use super::{ExchangeId, StreamableHttp};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::time::Millis;

/// How long a server may take to name the address, in milliseconds. It is the first thing that it says.
const ENDPOINT_LIMIT: u64 = 10_000;

/// What is known of the old transport.
#[derive(Debug, Default)]
pub(super) enum Legacy {
    /// Nothing: the newer one is in use or was not refused yet.
    #[default]
    Untried,
    /// The stream is opened. The request that was refused waits for it, with the refusal.
    Opening { id: RequestId, message: RawJson, era: Era, refusal: Error },
    /// It is in use: the address that messages are posted to.
    Open(String),
    /// The server has neither.
    Absent,
}

impl StreamableHttp {
    /// Whether this refusal is that of a server which may have the old transport.
    pub(super) fn may_be_legacy(&self, key: ExchangeId) -> bool {
        let exchange = self.exchanges.get(&key);
        matches!(self.legacy, Legacy::Untried)
            && exchange.is_some_and(|exchange| exchange.opens_session() && matches!(exchange.status, 400 | 404 | 405))
    }

    /// Opens the stream of the old transport.
    pub(super) fn try_legacy(&mut self, now: Millis, key: ExchangeId, refusal: Error) {
        let Some(Exchange { purpose: Purpose::Request { id, .. }, message: Some(message), era, .. }) = self.remove(key)
        else {
            return;
        };
        self.legacy = Legacy::Opening { id, message, era, refusal };
        let stream = Exchange::new(Purpose::Legacy, Era::Handshake(Revision::V2024_11_05), None, Vec::new());
        let key = self.send("GET", stream);
        self.set_timer(key, now.after(ENDPOINT_LIMIT));
    }

    /// The first event: where messages are posted to.
    pub(super) fn take_endpoint(&mut self, now: Millis, key: ExchangeId, reference: &str) {
        let Legacy::Opening { id, message, era, .. } = &self.legacy else { return };
        let request = Outbound::Request {
            id: id.clone(),
            message: message.clone(),
            era: *era,
            headers: Vec::new(),
            opens_session: true,
        };
        match resolve(&self.options.url, reference.trim()) {
            Some(address) => {
                self.legacy = Legacy::Open(address);
                self.clear_timer(key);
                self.take_outbound(now, request);
            }
            None => {
                let message = "the server's event stream names another origin for its messages, which is not trusted";
                self.abort(key);
                self.end_legacy(key, Some(Error::new(ErrorKind::Protocol, message)));
            }
        }
    }

    /// The stream is over, or there was none.
    pub(super) fn end_legacy(&mut self, key: ExchangeId, error: Option<Error>) {
        self.remove(key);
        match std::mem::replace(&mut self.legacy, Legacy::Absent) {
            Legacy::Opening { id, refusal, .. } => {
                self.deliver(Inbound::RequestEnded { id, reason: Err(error.unwrap_or(refusal)) });
            }
            Legacy::Open(_) => {
                for key in self.exchanges.keys().copied().collect::<Vec<_>>() {
                    self.abandon(key);
                }
                self.over = true;
                let message = "the server ended the event stream that carries its answers";
                let reason = Error::new(ErrorKind::ConnectionClosed, message);
                self.deliver(Inbound::Closed { reason, exit_code: None, stderr_tail: None });
            }
            Legacy::Untried | Legacy::Absent => {}
        }
    }

    /// Where a message is posted to.
    pub(super) fn address(&self, method: &str) -> &str {
        match &self.legacy {
            Legacy::Open(address) if method == "POST" => address,
            _ => &self.options.url,
        }
    }
}

/// The address that a reference means beside another one; `None` when it is of another origin.
fn resolve(base: &str, reference: &str) -> Option<String> {
    let path_start = base.find("://").map(|position| position + 3)?;
    let rest = base.get(path_start..)?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let origin = base.get(..path_start + authority.len())?;
    if let Some(rest) = reference.strip_prefix(origin) {
        return rest.starts_with(['/', '?']).then(|| reference.to_owned());
    }
    // Browsers read a backslash as a slash.
    if reference.contains("://") || reference.starts_with("//") || reference.contains('\\') || reference.is_empty() {
        return None;
    }
    if reference.starts_with('/') {
        return Some(format!("{origin}{reference}"));
    }
    let path = base.split(['?', '#']).next()?;
    if reference.starts_with('?') {
        return Some(format!("{path}{reference}"));
    }
    let folder = path.get(origin.len()..)?.rfind('/').and_then(|last| path.get(..=origin.len() + last));
    Some(format!("{}{reference}", folder.map_or_else(|| format!("{origin}/"), str::to_owned)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_a_server_names_is_of_its_own_origin(reference in "[a-z:/?@.#\\\\ ]{0,20}|https://a.example(:8)?.{0,12}") {
            if let Some(address) = resolve("https://a.example:8/x/sse", &reference) {
                let rest = address.strip_prefix("https://a.example:8").expect("another origin");
                prop_assert!(rest.starts_with(['/', '?']), "{}", address);
            }
        }
    }

    #[test]
    fn references_are_resolved_within_the_origin() {
        let base = "https://a.example:8/x/sse?y=1";
        for (reference, expected) in [
            ("/message?sessionId=1", Some("https://a.example:8/message?sessionId=1")),
            ("message?s=1", Some("https://a.example:8/x/message?s=1")),
            ("?s=1", Some("https://a.example:8/x/sse?s=1")),
            ("https://a.example:8/m", Some("https://a.example:8/m")),
            ("https://a.example:80/m", None),
            ("https://a.example:8@evil.example/m", None),
            ("https://evil.example/m", None),
            ("//evil.example/m", None),
            ("\\evil.example", None),
            ("", None),
        ] {
            assert_eq!(resolve(base, reference).as_deref(), expected, "{reference}");
        }
        assert_eq!(resolve("http://a.example", "m").as_deref(), Some("http://a.example/m"));
    }
}
