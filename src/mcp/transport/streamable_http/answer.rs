use super::super::{Era, Inbound, RequestId};
use super::exchange::{Exchange, Purpose, Reading};
use super::headers::SessionId;
use super::legacy::Legacy;
use super::{ExchangeId, LINGER, SessionPhase, StreamableHttp, VersionHeader, headers, refusal};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::jsonrpc::{self, answers, code, excerpt};
use crate::model::ResponseHead;
use crate::sse::MAX_EVENT_BYTES;
use crate::time::Millis;

/// The most bytes of a JSON answer: as much as one event of a stream may have.
const DOCUMENT_LIMIT: usize = MAX_EVENT_BYTES;

/// The most bytes of a refusal that are read: more than any JSON-RPC error, less than some error pages.
const REFUSAL_LIMIT: usize = 64 * 1024;

/// How an answer comes in: head, bytes, end.
impl StreamableHttp {
    pub(super) fn take_head(&mut self, now: Millis, key: ExchangeId, head: &ResponseHead) {
        self.note_version_header(key);
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        let status = head.status;
        let is_success = (200..300).contains(&status);
        let is_stream = is_success && media_type(head).eq_ignore_ascii_case("text/event-stream");
        let is_resumed = exchange.resumption.was_open;
        exchange.status = status;
        exchange.location = head.header("location").filter(|_| (300..400).contains(&status)).map(str::to_owned);
        exchange.retry_after = milliseconds(head.header("retry-after"));
        exchange.resumption.was_open |= is_stream;
        exchange.opened = is_stream.then_some(now);
        exchange.reading = if is_stream { Reading::Stream(Box::default()) } else { Reading::Document(Vec::new()) };
        match exchange.purpose.clone() {
            Purpose::Delete => {
                self.abandon(key);
                self.finish();
            }
            Purpose::Notify { announces } if is_success => {
                exchange.reading = Reading::Rest;
                self.set_timer(key, now.after(LINGER));
                if announces {
                    self.settle(now);
                }
            }
            Purpose::Notify { .. } => {}
            Purpose::Listen | Purpose::Legacy if is_stream => {}
            Purpose::Legacy => {
                self.abort(key);
                self.end_legacy(key, None);
            }
            // It may not have noticed yet that the last one broke, or be out of order.
            Purpose::Listen if is_resumed && matches!(status, 409 | 429 | 500..) => {
                self.abort(key);
                self.fail(now, key, refusal::from_status(status, None));
            }
            Purpose::Listen => {
                self.session.listening = false;
                self.abandon(key);
            }
            Purpose::Request { id, opens_session } => {
                if is_success && opens_session {
                    self.session.id = SessionId::read(head.header(headers::SESSION));
                    self.session.phase = SessionPhase::Opened;
                }
                if let Some(era) = self.session.era
                    && is_success
                    && std::mem::take(&mut self.session.lost_stream)
                {
                    self.listen(era);
                }
                let refusal = match status {
                    202 | 204 => return self.acknowledged(now, key, id, status),
                    _ if is_success && matches!(self.legacy, Legacy::Open(_)) => {
                        return self.acknowledged(now, key, id, status);
                    }
                    401 | 403 => Some(refusal::from_status(status, None)),
                    _ if is_resumed && !is_stream => Some(refusal::not_resumed(status)),
                    _ => None,
                };
                match refusal {
                    Some(error) => self.break_off(now, key, error),
                    None => self.deliver(Inbound::Activity { request_id: id }),
                }
            }
        }
    }

    pub(super) fn take_bytes(&mut self, now: Millis, key: ExchangeId, bytes: &[u8]) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        let is_success = (200..300).contains(&exchange.status);
        let limit = if is_success { DOCUMENT_LIMIT } else { REFUSAL_LIMIT };
        if is_success && exchange.request_id().is_some() {
            exchange.reading.look_at(bytes);
        }
        match &mut exchange.reading {
            Reading::Stream(parser) => {
                parser.push(bytes);
                self.read_events(now, key);
            }
            Reading::Document(document) if document.len() + bytes.len() > limit => {
                let error = if limit == REFUSAL_LIMIT {
                    refusal::from_status(exchange.status, exchange.retry_after)
                } else {
                    let message = format!("the server's answer is larger than the limit of {DOCUMENT_LIMIT} bytes");
                    Error::new(ErrorKind::Limit, message)
                };
                return self.break_off(now, key, error);
            }
            Reading::Document(document) => document.extend_from_slice(bytes),
            Reading::Head | Reading::Rest | Reading::Waiting => return,
        }
        if let Some(request_id) = self.exchanges.get(&key).and_then(|exchange| exchange.request_id().cloned()) {
            self.deliver(Inbound::Activity { request_id });
        }
    }

    pub(super) fn take_end(&mut self, now: Millis, key: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        match std::mem::replace(&mut exchange.reading, Reading::Rest) {
            Reading::Stream(mut parser) => {
                // A server that forgot the last empty line has still said everything.
                let has_last = parser.finish().is_some_and(|event| event.name == "message");
                let last = has_last.then(|| parser.take_data());
                exchange.reading = Reading::Stream(parser);
                if let Some(message) = last.and_then(|data| RawJson::parse(data).ok()) {
                    self.take_message(now, key, message);
                }
                self.take_stream_end(now, key);
            }
            Reading::Document(document) => self.take_document(now, key, document),
            Reading::Rest => drop(self.remove(key)),
            Reading::Waiting => exchange.reading = Reading::Waiting,
            Reading::Head => {
                let message = "the server closed the connection before it answered";
                self.fail(now, key, Error::new(ErrorKind::ConnectionClosed, message));
            }
        }
    }

    fn read_events(&mut self, now: Millis, key: ExchangeId) {
        loop {
            let Some(exchange) = self.exchanges.get_mut(&key) else { return };
            let Reading::Stream(parser) = &mut exchange.reading else { return };
            let is_legacy = exchange.purpose == Purpose::Legacy;
            let (is_event, is_message) = match parser.next_event() {
                Ok(Some(event)) if is_legacy && event.name == "endpoint" => {
                    let reference = event.data.to_owned();
                    self.take_endpoint(now, key, &reference);
                    continue;
                }
                // Only events named `message`, or not named, are JSON-RPC; an empty one merely carries an id.
                Ok(Some(event)) => (true, event.name == "message" && !event.data.is_empty()),
                Ok(None) => (false, false),
                Err(error) => return self.break_off(now, key, Error::new(ErrorKind::Limit, error.to_string())),
            };
            exchange.resumption.note(parser.last_event_id(), parser.retry());
            match is_message.then(|| RawJson::parse(parser.take_data())) {
                Some(Ok(message)) => self.take_message(now, key, message),
                Some(Err(error)) => {
                    self.deliver(Inbound::Warning(format!("the server sent an event that is not JSON: {error}")));
                }
                None if is_event => {}
                None => return,
            }
        }
    }

    /// A message of a stream. The answer ends the request at once, though the stream may stay open.
    fn take_message(&mut self, now: Millis, key: ExchangeId, message: RawJson) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        let request_id = exchange.request_id().cloned();
        let answered = request_id.clone().filter(|id| !exchange.answered && answers(message.as_str(), id));
        // An answer, which may be large, is a message and not read once more for it.
        if answered.is_none() && !jsonrpc::is_message(message.as_str()) {
            return self.take_stray(now, key, &message);
        }
        exchange.answered |= answered.is_some();
        let status = exchange.status;
        self.deliver(Inbound::Message { request_id, status: Some(status), message });
        if let Some(id) = answered {
            self.deliver(Inbound::RequestEnded { id, reason: Ok(()) });
            self.set_timer(key, now.after(LINGER));
        }
    }

    /// JSON of a stream that is no message: what some servers keep the stream open with, or an answer that is none.
    fn take_stray(&mut self, now: Millis, key: ExchangeId, other: &RawJson) {
        if matches!(other.as_str(), "{}" | "null") {
            return;
        }
        let error = jsonrpc::no_message(other.as_str());
        let id = self.exchanges.get(&key).and_then(Exchange::request_id);
        match jsonrpc::stray_id(other.as_str()) {
            Some(named) if id.is_some_and(|id| id.matches(&named)) => self.break_off(now, key, error),
            _ => self.deliver(Inbound::Warning(error.to_string())),
        }
    }

    fn take_stream_end(&mut self, now: Millis, key: ExchangeId) {
        if self.exchanges.get(&key).is_some_and(|exchange| exchange.answered) {
            return drop(self.remove(key));
        }
        let message = "the server ended the stream without an answer to the request";
        self.fail(now, key, Error::new(ErrorKind::ConnectionClosed, message));
    }

    fn take_document(&mut self, now: Millis, key: ExchangeId, document: Vec<u8>) {
        let Some(exchange) = self.exchanges.get(&key) else { return };
        let whole = String::from_utf8(document).unwrap_or_else(|error| crate::sse::text(error.as_bytes()).into_owned());
        let text = whole.trim_start_matches('\u{feff}').trim();
        if !(200..300).contains(&exchange.status) {
            return self.take_refusal(now, key, text);
        }
        let Some(id) = exchange.request_id().cloned() else { return drop(self.remove(key)) };
        let status = exchange.status;
        let is_empty = text.is_empty();
        // Megabytes are not copied for nothing.
        let text = if text.len() == whole.len() { whole } else { text.to_owned() };
        let problem = match RawJson::parse(text) {
            Ok(other) if !jsonrpc::is_message(other.as_str()) => {
                return self.fail(now, key, jsonrpc::no_message(other.as_str()));
            }
            Ok(message) => return self.answered(key, id, status, message),
            Err(_) if is_empty => "the server answered with an empty body".to_owned(),
            Err(error) => format!("the server's answer is not JSON: {error}"),
        };
        self.fail(now, key, Error::new(ErrorKind::Protocol, format!("{problem} (HTTP {status})")));
    }

    fn answered(&mut self, key: ExchangeId, id: RequestId, status: u16, message: RawJson) {
        self.remove(key);
        self.deliver(Inbound::Message { request_id: Some(id.clone()), status: Some(status), message });
        self.deliver(Inbound::RequestEnded { id, reason: Ok(()) });
    }

    fn take_refusal(&mut self, now: Millis, key: ExchangeId, body: &str) {
        let Some(exchange) = self.exchanges.get(&key) else { return };
        let status = exchange.status;
        let rpc_error = refusal::rpc_error(body);
        let from_status = match &exchange.location {
            Some(location) => refusal::elsewhere(status, location),
            None => refusal::from_status(status, exchange.retry_after),
        };
        let Some(id) = exchange.request_id().cloned() else { return self.fail(now, key, from_status) };
        // Other services have errors of the same shape.
        let is_rpc = rpc_error.is_some() && body.contains("\"jsonrpc\"");
        if !is_rpc && self.may_be_legacy(key) {
            return self.try_legacy(now, key, from_status);
        }
        let is_about_session = exchange.era != Era::Stateless
            && !exchange.opens_session()
            && refusal::is_about_session(status, rpc_error.as_ref(), body);
        let error = match (&exchange.session, rpc_error) {
            (Some(session), _) if is_about_session => {
                if self.session.id.as_ref() == Some(session) {
                    self.session.id = None;
                }
                refusal::session_expired(status)
            }
            (None, Some(error)) if is_about_session && error.code != code::METHOD_NOT_FOUND => {
                refusal::session_unseen(status, &error.message)
            }
            (None, None) if is_about_session && status == 400 => {
                refusal::session_unseen(status, excerpt(body).as_str())
            }
            (_, Some(_)) => match RawJson::parse(body) {
                Ok(message) => return self.answered(key, id, status, message),
                Err(_) => from_status,
            },
            (_, None) => from_status,
        };
        self.fail(now, key, error);
    }

    /// The server took the request and will answer elsewhere, which only the listening stream can be.
    fn acknowledged(&mut self, now: Millis, key: ExchangeId, id: RequestId, status: u16) {
        if self.session.listening {
            if let Some(exchange) = self.exchanges.get_mut(&key) {
                exchange.purpose = Purpose::Notify { announces: false };
                exchange.reading = Reading::Rest;
                self.set_timer(key, now.after(LINGER));
            }
            return self.deliver(Inbound::Activity { request_id: id });
        }
        let message = format!("the server took the request and gave no answer to it (HTTP {status})");
        self.break_off(now, key, Error::new(ErrorKind::Protocol, message));
    }

    /// Stops reading an answer that is of no use.
    fn break_off(&mut self, now: Millis, key: ExchangeId, error: Error) {
        if let Some(exchange) = self.exchanges.get_mut(&key) {
            exchange.resumption.give_up();
        }
        self.abort(key);
        self.fail(now, key, error);
    }

    /// An answer of any kind proves that the header came through, and one without it that the header was in the way.
    fn note_version_header(&mut self, key: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&key) else { return };
        if exchange.sends_version && self.session.version_header == VersionHeader::Untried {
            self.session.version_header = VersionHeader::Accepted;
        } else if exchange.omits_version && self.session.version_header != VersionHeader::Omitted {
            self.session.version_header = VersionHeader::Omitted;
            let message = "the server's CORS rules do not allow the request header MCP-Protocol-Version; requests are \
                sent without it. Add it to Access-Control-Allow-Headers";
            self.deliver(Inbound::Warning(message.to_owned()));
        }
    }
}

/// The media type without its parameters.
fn media_type(head: &ResponseHead) -> &str {
    let value = head.header("content-type").unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// A number of seconds in milliseconds. The date form is not read: no MCP server is known to send it.
fn milliseconds(value: Option<&str>) -> Option<u64> {
    value?.trim().parse::<u64>().ok().map(|seconds| seconds.saturating_mul(1_000))
}
