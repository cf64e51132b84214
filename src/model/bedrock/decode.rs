//! The bytes of an answer: frames, one document, or an error.

use std::mem;

use super::super::Decoder;
use super::super::answer::{Kept, fail, is_over};
use super::super::event::ModelEvent;
use super::super::failure;
use super::super::http::ResponseHead;
use super::super::request::ToolSpec;
use super::converse::ConverseDecoder;
use super::event_stream::{Frame, FrameParser};
use crate::error::ErrorKind;
use crate::json::Object;

/// The decoder of an answer.
#[derive(Debug)]
pub(super) struct BedrockDecoder {
    head: ResponseHead,
    converse: ConverseDecoder,
    state: State,
    kept: Kept,
}

#[derive(Debug)]
enum State {
    Undecided,
    Frames(FrameParser),
    /// A whole answer, or an error.
    Document(Vec<u8>),
    Over,
}

/// The most bytes of a document; the same as of a frame.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

impl BedrockDecoder {
    pub(super) fn new(head: &ResponseHead, tools: &[ToolSpec]) -> Self {
        let state = if self::is_error(head) { State::Document(Vec::new()) } else { State::Undecided };
        Self { head: head.clone(), converse: ConverseDecoder::new(tools), state, kept: Kept::default() }
    }

    fn read_frames(&mut self, events: &mut Vec<ModelEvent>) {
        let State::Frames(mut parser) = mem::replace(&mut self.state, State::Over) else { return };
        loop {
            match parser.next_frame() {
                Ok(Some(frame)) => {
                    let before = events.len();
                    self.read_frame(&frame, events);
                    self.kept.add(frame.payload.len(), before, events);
                }
                Ok(None) => break,
                Err(error) => fail(events, ErrorKind::MalformedStream, &error.to_string()),
            }
            if is_over(events) {
                return;
            }
        }
        self.state = State::Frames(parser);
    }

    /// An event; or one of two forms of error, the one with its words in the payload and the other in the headers.
    fn read_frame(&mut self, frame: &Frame, events: &mut Vec<ModelEvent>) {
        let text = String::from_utf8_lossy(&frame.payload);
        let payload = Object::parse(&text);
        let error = frame.header(":exception-type").or_else(|| frame.header(":error-code"));
        match (frame.header(":message-type"), error) {
            (Some("exception" | "error"), code) | (_, code @ Some(_)) => {
                let told =
                    payload.ok().and_then(|payload| payload.string("message").or_else(|| payload.string("Message")));
                let message = told.as_deref().or_else(|| frame.header(":error-message")).unwrap_or_default();
                let error = failure::from_words(code.unwrap_or_default(), message, &ResponseHead::default());
                events.push(ModelEvent::Failed(error));
            }
            _ => match payload {
                Ok(payload) => {
                    self.converse.event(frame.header(":event-type").unwrap_or_default(), &payload, events);
                }
                Err(error) => {
                    fail(events, ErrorKind::MalformedStream, &format!("an event of the stream is not JSON: {error}"));
                }
            },
        }
    }

    fn read_document(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) {
        let text = String::from_utf8_lossy(bytes);
        if is_error(&self.head) {
            return events.push(ModelEvent::Failed(failure::from_response(&self.head, &text)));
        }
        match Object::parse(&text) {
            Ok(document) if document.get("output").is_some() => self.converse.document(&document, events),
            Ok(document) => {
                events.push(ModelEvent::Failed(failure::from_error_object(&document, &self.head)));
            }
            Err(error) if error.is_eof() => fail(events, ErrorKind::StreamTruncated, "the answer was cut off"),
            Err(error) => {
                fail(events, ErrorKind::MalformedStream, &format!("the answer is neither frames nor JSON: {error}"));
            }
        }
    }
}

impl Decoder for BedrockDecoder {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) {
        if let (State::Undecided, Some(first)) = (&self.state, bytes.first()) {
            // A frame begins with its length, whose first byte is 0: none is as long as 16 MiB and more.
            let is_frames = *first < b' ' && !first.is_ascii_whitespace();
            self.state = if is_frames { State::Frames(FrameParser::default()) } else { State::Document(Vec::new()) };
        }
        match &mut self.state {
            State::Frames(parser) => {
                parser.push(bytes);
                self.read_frames(events);
            }
            State::Document(document) => {
                document.extend_from_slice(bytes);
                if document.len() > MAX_DOCUMENT_BYTES {
                    self.state = State::Over;
                    fail(events, ErrorKind::Limit, &format!("the answer is larger than {MAX_DOCUMENT_BYTES} bytes"));
                }
            }
            State::Undecided | State::Over => {}
        }
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        match mem::replace(&mut self.state, State::Over) {
            State::Undecided => fail(events, ErrorKind::StreamTruncated, "the answer is empty"),
            State::Frames(_) => self.converse.end(events),
            State::Document(bytes) => self.read_document(&bytes, events),
            State::Over => {}
        }
    }
}

fn is_error(head: &ResponseHead) -> bool {
    head.status != 0 && !(200..300).contains(&head.status)
}
