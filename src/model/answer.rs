//! What all HTTP wires share of decoding: telling streams, documents and errors apart, and ending every answer once.

use std::mem;

use super::Decoder;
use super::event::ModelEvent;
use super::failure;
use super::http::ResponseHead;
use crate::error::{Error, ErrorKind};
use crate::json::Object;
use crate::sse::{MAX_EVENT_BYTES, SseParser};

/// What one wire makes of the payloads of an answer.
pub(super) trait Protocol: Send {
    /// Reads a payload that is a delta and nothing else, without walking it. `false`, and nothing done, for all others.
    fn scan(&mut self, _payload: &str, _events: &mut Vec<ModelEvent>) -> bool {
        false
    }

    /// One payload of the stream.
    fn payload(&mut self, payload: &Object<'_>, events: &mut Vec<ModelEvent>);

    /// The whole answer as one document, from servers that do not stream.
    fn document(&mut self, document: &Object<'_>, events: &mut Vec<ModelEvent>);

    /// The `[DONE]` of OpenAI's family.
    fn done(&mut self, events: &mut Vec<ModelEvent>);

    /// The bytes are at their end and no last event was given. Gives one.
    fn end(&mut self, events: &mut Vec<ModelEvent>);
}

/// The decoder of an HTTP answer over one wire.
///
/// What an answer is, its bytes decide and not its content type, which many servers get wrong: a document begins with a
/// brace or a bracket, and no event stream does.
pub(super) struct AnswerDecoder {
    head: ResponseHead,
    /// Boxed, so that this decoder is compiled once and not for every wire. Not `Debug`, since what a `dyn` type can do is linked
    /// even when nobody asks for it.
    protocol: Box<dyn Protocol>,
    state: State,
    /// The beginning of the answer, to show what came instead of a stream.
    beginning: Vec<u8>,
    saw_payload: bool,
    kept: Kept,
}

/// How much of an answer is kept, in bytes.
#[derive(Debug, Default)]
pub(super) struct Kept(usize);

/// The most bytes of one answer that are kept: two events of the largest kind, such as pictures, or fifty times the longest text. A
/// stream that never ends must not fill the memory, where an answer is several times: in the message, in the events of its end
/// and in what is saved.
const MAX_ANSWER_BYTES: usize = 2 * MAX_EVENT_BYTES;

impl Kept {
    /// Counts the events that came of a payload, which are those from `before` on. Of one without events the decoder may
    /// keep all. Too much fails the answer.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(super) fn add(&mut self, payload: usize, before: usize, events: &mut Vec<ModelEvent>) {
        let new = events.get(before..).unwrap_or_default();
        self.0 += if new.is_empty() { payload } else { new.iter().map(ModelEvent::size).sum() };
        if self.0 > MAX_ANSWER_BYTES && !is_over(events) {
            fail(events, ErrorKind::Limit, &format!("the answer is larger than {MAX_ANSWER_BYTES} bytes"));
        }
    }
}

enum State {
    /// Nothing came yet but white space.
    Undecided,
    Stream(Box<SseParser>),
    Document(Vec<u8>),
    ErrorBody(Vec<u8>),
    Over,
}

/// The most bytes of an error that are read: enough for every one seen, and for pages of gateways the beginning. The answer is
/// over there.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How much of an answer that is no stream is shown.
const MAX_BEGINNING: usize = 80;

impl AnswerDecoder {
    pub(super) fn new(head: &ResponseHead, protocol: impl Protocol + 'static) -> Self {
        let is_error = head.status != 0 && !(200..300).contains(&head.status);
        let state = if is_error { State::ErrorBody(Vec::new()) } else { State::Undecided };
        Self {
            head: head.clone(),
            protocol: Box::new(protocol),
            state,
            beginning: Vec::new(),
            saw_payload: false,
            kept: Kept::default(),
        }
    }

    #[cfg_attr(crablet_small, optimize(speed))]
    fn read_stream(&mut self, events: &mut Vec<ModelEvent>) {
        let State::Stream(mut parser) = mem::replace(&mut self.state, State::Over) else { return };
        loop {
            match parser.next_event() {
                Ok(Some(event)) => {
                    let before = events.len();
                    self.read_event(event.name, event.data, events);
                    self.kept.add(event.data.len(), before, events);
                    if is_over(events) {
                        return;
                    }
                }
                Ok(None) => break,
                Err(error) => return fail(events, ErrorKind::MalformedStream, &error.to_string()),
            }
        }
        self.state = State::Stream(parser);
    }

    #[cfg_attr(crablet_small, optimize(speed))]
    fn read_event(&mut self, name: &str, data: &str, events: &mut Vec<ModelEvent>) {
        let data = data.trim_ascii();
        if data.is_empty() {
            return;
        }
        self.saw_payload = true;
        if data == "[DONE]" {
            return self.protocol.done(events);
        }
        if name != "error" && self.protocol.scan(data, events) {
            return;
        }
        match Object::parse(data) {
            Ok(payload) if name == "error" => {
                events.push(ModelEvent::Failed(failure::from_error_object(&payload, &self.head)));
            }
            Ok(payload) => self.read_payload(&payload, events),
            Err(_) if name == "error" => events.push(ModelEvent::Failed(failure::from_text(data, &self.head))),
            // Servers forget the empty line between two events.
            Err(_) if data.contains('\n') && data.lines().all(is_payload) => {
                for line in data.lines() {
                    self.read_event(name, line, events);
                    if is_over(events) {
                        return;
                    }
                }
            }
            // A number or a list is JSON from the future and skipped like any other unknown event.
            Err(_) if serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok() => {}
            Err(error) => {
                let shown: String = data.chars().take(MAX_BEGINNING).collect();
                fail(
                    events,
                    ErrorKind::MalformedStream,
                    &format!("an event of the stream is not JSON ({error}): {shown}"),
                );
            }
        }
    }

    fn read_payload(&mut self, payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
        let before = events.len();
        match failure::from_object(payload, &self.head) {
            Some(error) => events.push(ModelEvent::Failed(error)),
            None => self.protocol.payload(payload, events),
        }
        end_at_last(events, before);
    }

    fn finish_stream(&mut self, parser: &mut SseParser, events: &mut Vec<ModelEvent>) {
        // Servers forget the last empty line. A payload that was cut in the middle is no JSON and so not taken for one.
        if let Some(event) = parser.finish() {
            let data = event.data.trim();
            if data.lines().all(is_payload) || Object::parse(data).is_ok() {
                self.read_event(event.name, event.data, events);
            }
        }
        if is_over(events) {
            return;
        }
        if let Some(error) = failure::from_stray(parser.stray(), &self.head) {
            return events.push(ModelEvent::Failed(error));
        }
        if !self.saw_payload && !self.is_announced_as_stream() {
            let beginning = String::from_utf8_lossy(&self.beginning);
            let told = format!("the answer is neither an event stream nor JSON; it begins with: {}", beginning.trim());
            return fail(events, ErrorKind::MalformedStream, &told);
        }
        self.protocol.end(events);
    }

    /// Whether an answer without any payload is a stream all the same: one that was cut early, or only kept alive.
    fn is_announced_as_stream(&self) -> bool {
        let announced = self.head.header("content-type").is_some_and(|value| value.contains("text/event-stream"));
        let begins = |field: &&[u8]| self.beginning.starts_with(field);
        (announced && !begins(&b"<".as_slice())) || [b":".as_slice(), b"data:", b"event:", b"id:"].iter().any(begins)
    }

    fn finish_document(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) {
        let text = String::from_utf8_lossy(bytes);
        // Google's stream without its `alt=sse` is a list of what would be the payloads.
        if let Some(payloads) = Object::parse_all(&text) {
            for payload in payloads {
                self.read_payload(&payload, events);
                if is_over(events) {
                    return;
                }
            }
            return self.protocol.end(events);
        }
        match Object::parse(&text) {
            Ok(document) => match failure::from_object(&document, &self.head)
                .or_else(|| failure::from_no_answer(&document, &self.head))
            {
                Some(error) => events.push(ModelEvent::Failed(error)),
                None => {
                    let before = events.len();
                    self.protocol.document(&document, events);
                    end_at_last(events, before);
                    if !is_over(events) {
                        self.protocol.end(events);
                    }
                }
            },
            Err(error) if error.is_eof() => fail(events, ErrorKind::StreamTruncated, "the answer was cut off"),
            Err(error) => fail(events, ErrorKind::MalformedStream, &format!("the answer is not valid JSON: {error}")),
        }
    }
}

impl Decoder for AnswerDecoder {
    #[cfg_attr(crablet_small, optimize(speed))]
    fn push(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) {
        let mut bytes = bytes;
        if let State::Undecided = self.state {
            let is_blank = |byte: &u8| byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(byte);
            let Some(start) = bytes.iter().position(|byte| !is_blank(byte)) else { return };
            bytes = bytes.get(start..).unwrap_or_default();
            self.state = match bytes.first() {
                Some(b'{' | b'[') => State::Document(Vec::new()),
                _ => State::Stream(Box::default()),
            };
        }
        let room = MAX_BEGINNING.saturating_sub(self.beginning.len());
        self.beginning.extend(bytes.iter().take(room));
        match &mut self.state {
            State::Stream(parser) => {
                parser.push(bytes);
                self.read_stream(events);
            }
            State::Document(document) => {
                document.extend_from_slice(bytes);
                if document.len() > MAX_EVENT_BYTES {
                    self.state = State::Over;
                    fail(events, ErrorKind::Limit, &format!("the answer is larger than {MAX_EVENT_BYTES} bytes"));
                }
            }
            State::ErrorBody(body) => {
                let room = MAX_ERROR_BYTES.saturating_sub(body.len());
                body.extend(bytes.iter().take(room));
                // What is read says enough. The rest may have no end.
                if body.len() == MAX_ERROR_BYTES {
                    self.finish(events);
                }
            }
            State::Undecided | State::Over => {}
        }
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        match mem::replace(&mut self.state, State::Over) {
            State::Undecided => fail(events, ErrorKind::StreamTruncated, "the answer is empty"),
            State::Stream(mut parser) => self.finish_stream(&mut parser, events),
            State::Document(bytes) => self.finish_document(&bytes, events),
            State::ErrorBody(body) => {
                let body = String::from_utf8_lossy(&body);
                events.push(ModelEvent::Failed(failure::from_response(&self.head, &body)));
            }
            State::Over => {}
        }
    }
}

/// The bytes of U+FEFF in UTF-8; none of them begins a document or a field of a stream.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Ends the answer with an error of the decoder's own.
pub(super) fn fail(events: &mut Vec<ModelEvent>, kind: ErrorKind, message: &str) {
    events.push(ModelEvent::Failed(Error::new(kind, message.to_owned())));
}

/// Whether a line of an event is an event's whole data.
fn is_payload(line: &str) -> bool {
    line.trim() == "[DONE]" || Object::parse(line).is_ok()
}

/// Leaves out what follows the last event of the answer among those from `before` on: a payload may say more after what failed it,
/// such as the other calls when there were too many.
fn end_at_last(events: &mut Vec<ModelEvent>, before: usize) {
    if let Some(last) = events.iter().skip(before).position(ModelEvent::is_last) {
        events.truncate(before + last + 1);
    }
}

pub(super) fn is_over(events: &[ModelEvent]) -> bool {
    events.last().is_some_and(ModelEvent::is_last)
}
