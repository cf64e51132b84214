//! A push parser for `text/event-stream` (WHATWG HTML, 9.2.6), fed with bytes that are cut anywhere.
//!
//! ```
//! use crablet::sse::SseParser;
//!
//! let mut parser = SseParser::new();
//! parser.push(b"event: greeting\nda");
//! assert_eq!(parser.next_event()?, None);
//!
//! parser.push(b"ta: hello\n\n");
//! let event = parser.next_event()?.expect("the event is whole");
//! assert_eq!((event.name, event.data), ("greeting", "hello"));
//! # Ok::<(), crablet::sse::SseTooLarge>(())
//! ```

use std::borrow::Cow;
use std::mem;

use crate::work;

/// The most bytes of one line, and of one event's data. Images come as base64 in one event and reach about 20 MiB; a
/// stream without line ends must not fill the memory.
pub const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// The most bytes that [`SseParser::stray`] keeps: enough for every error seen.
const MAX_STRAY_BYTES: usize = 64 * 1024;

/// The parser. Bytes go in with [`push`](Self::push), then [`next_event`](Self::next_event) is called until it has none.
///
/// Every byte is looked at once, whatever the size of the chunks: lines are found with a cursor, and what is left of a
/// chunk is moved at most once.
#[derive(Debug, Default)]
pub struct SseParser {
    buffer: Vec<u8>,
    /// Start of the line being read.
    line_start: usize,
    /// Everything before it has been searched for a line end.
    searched: usize,
    started: bool,
    skip_line_feed: bool,
    failed: bool,
    event: String,
    data: String,
    has_data: bool,
    id: Option<String>,
    last_event_id: String,
    retry: Option<u64>,
    dispatched: Dispatched,
    /// Lines since the last event that look like JSON that was forgotten to be put into one.
    stray: String,
}

/// An event of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'parser> {
    /// The type; `message` when the stream names none.
    pub name: &'parser str,
    /// The data lines, joined with line feeds.
    pub data: &'parser str,
    /// The `id` field of this event, if it has one. [`SseParser::last_event_id`] is the one that is sticky.
    pub id: Option<&'parser str>,
}

/// A line or an event is larger than [`MAX_EVENT_BYTES`]. Nothing more comes out of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {MAX_EVENT_BYTES} bytes")]
pub struct SseTooLarge;

/// What the last event was made of; kept so that the event can be lent.
#[derive(Debug, Default)]
struct Dispatched {
    event: String,
    data: String,
    id: Option<String>,
}

impl SseParser {
    /// A parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed {
            return;
        }
        if self.line_start > 0 {
            work::count(self.buffer.len() - self.line_start);
            self.buffer.drain(..self.line_start);
            self.searched -= self.line_start;
            self.line_start = 0;
        }
        work::count(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event of what was pushed.
    ///
    /// # Errors
    ///
    /// [`SseTooLarge`], once.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseTooLarge> {
        while !self.failed && self.skip_byte_order_mark() {
            let Some(end) = self.find_line_end() else { break };
            let line = self.line_start..end;
            let is_carriage_return = self.buffer.get(end) == Some(&b'\r');
            self.line_start = end + 1;
            self.searched = end + 1;
            self.skip_line_feed = is_carriage_return;
            if line.is_empty() {
                if self.dispatch() {
                    return Ok(Some(self.dispatched.lend()));
                }
                continue;
            }
            let buffer = mem::take(&mut self.buffer);
            self.field(buffer.get(line).unwrap_or_default());
            self.buffer = buffer;
            if self.data.len() > MAX_EVENT_BYTES {
                return Err(self.fail());
            }
        }
        if self.buffer.len() - self.line_start > MAX_EVENT_BYTES {
            return Err(self.fail());
        }
        Ok(None)
    }

    /// The stream is at its end. Gives the event that it ends within, if there is one.
    ///
    /// The specification discards such an event. A caller that can tell a whole payload from one that was cut, such as a
    /// reader of JSON, may use it: servers forget the last empty line.
    pub fn finish(&mut self) -> Option<SseEvent<'_>> {
        if self.failed {
            return None;
        }
        let rest = self.buffer.split_off(self.line_start.min(self.buffer.len()));
        self.buffer.clear();
        self.line_start = 0;
        self.searched = 0;
        let rest = if mem::take(&mut self.skip_line_feed) { rest.strip_prefix(b"\n").unwrap_or(&rest) } else { &rest };
        if !rest.is_empty() {
            self.field(rest);
        }
        let last_event_id = self.last_event_id.clone();
        let has_event = self.dispatch();
        self.last_event_id = last_event_id;
        has_event.then(|| self.dispatched.lend())
    }

    /// The data of the event that was given last, which can be large, to keep.
    #[cfg(feature = "mcp")]
    pub(crate) fn take_data(&mut self) -> String {
        mem::take(&mut self.dispatched.data)
    }

    /// Whether nothing was pushed yet.
    #[cfg(feature = "mcp")]
    pub(crate) fn is_unused(&self) -> bool {
        !self.started && self.buffer.is_empty()
    }

    /// What came after the last event and is no field but looks like JSON, or is a field named `error`; cut after 64 KiB. The
    /// specification ignores such lines. Servers that fail within a stream write their error like that.
    pub fn stray(&self) -> &str {
        &self.stray
    }

    /// The id to send as `Last-Event-ID` when the stream is opened again; empty for none.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// How long the server asks to wait before the stream is opened again, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Skips the mark at the start of the stream; `false` when it takes more bytes to know.
    fn skip_byte_order_mark(&mut self) -> bool {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        if self.started || self.buffer.is_empty() {
            return self.started;
        }
        if self.buffer.len() < MARK.len() && MARK.starts_with(&self.buffer) {
            return false;
        }
        if self.buffer.starts_with(MARK) {
            self.line_start = MARK.len();
            self.searched = MARK.len();
        }
        self.started = true;
        true
    }

    #[cfg_attr(crablet_small, optimize(speed))]
    fn find_line_end(&mut self) -> Option<usize> {
        if self.skip_line_feed {
            if *self.buffer.get(self.line_start)? == b'\n' {
                self.line_start += 1;
                self.searched = self.line_start;
            }
            self.skip_line_feed = false;
        }
        let unsearched = self.buffer.get(self.searched..)?;
        let found = line_end(unsearched);
        work::count(found.unwrap_or(unsearched.len()));
        if found.is_none() {
            self.searched = self.buffer.len();
        }
        found.map(|offset| self.searched + offset)
    }

    #[cfg_attr(crablet_small, optimize(speed))]
    fn field(&mut self, line: &[u8]) {
        // Checked as text, searched for the colon, and its value copied.
        work::count(3 * line.len());
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = text(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            b"data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(&value);
            }
            b"event" => value.as_ref().clone_into(&mut self.event),
            b"id" if !value.contains('\0') => self.id = Some(value.into_owned()),
            b"retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok();
            }
            b"error" => self.keep_stray(value.as_bytes()),
            _ => self.keep_stray(line),
        }
    }

    fn keep_stray(&mut self, line: &[u8]) {
        let is_json = !self.stray.is_empty() || line.starts_with(b"{") || line.starts_with(b"[");
        if is_json && self.stray.len() + line.len() < MAX_STRAY_BYTES {
            self.stray.push_str(&text(line));
            self.stray.push('\n');
        }
    }

    /// The empty line that ends an event; whether there was one.
    #[cfg_attr(crablet_small, optimize(speed))]
    fn dispatch(&mut self) -> bool {
        let event = mem::take(&mut self.event);
        let id = self.id.take();
        if let Some(id) = &id {
            self.last_event_id.clone_from(id);
        }
        if !mem::take(&mut self.has_data) {
            return false;
        }
        mem::swap(&mut self.dispatched.data, &mut self.data);
        self.data.clear();
        self.stray.clear();
        self.dispatched.event = event;
        self.dispatched.id = id;
        true
    }

    fn fail(&mut self) -> SseTooLarge {
        *self = Self { failed: true, ..Self::default() };
        SseTooLarge
    }
}

impl Dispatched {
    #[cfg_attr(crablet_small, optimize(speed))]
    fn lend(&self) -> SseEvent<'_> {
        let name = if self.event.is_empty() { "message" } else { &self.event };
        SseEvent { name, data: &self.data, id: self.id.as_deref() }
    }
}

/// Where the first `\n` or `\r` is. Eight bytes are looked at together: nearly all bytes of a stream are none.
#[cfg_attr(crablet_small, optimize(speed))]
fn line_end(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // A byte that is zero borrows from its own high bit.
    let has_zero = |word: u64| word.wrapping_sub(LOW) & !word & HIGH != 0;
    let mut searched = 0;
    for word in bytes.as_chunks().0 {
        let word = u64::from_ne_bytes(*word);
        let feed = u64::from_ne_bytes([b'\n'; 8]);
        let carriage_return = u64::from_ne_bytes([b'\r'; 8]);
        if has_zero(word ^ feed) || has_zero(word ^ carriage_return) {
            break;
        }
        searched += 8;
    }
    let rest = bytes.get(searched..)?;
    Some(searched + rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?)
}

/// The text with replacement characters for what is not UTF-8, which is looked for only where the quick check fails.
#[cfg_attr(crablet_small, optimize(speed))]
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Owned = (String, String, Option<String>);

    fn parse<'chunk>(chunks: impl IntoIterator<Item = &'chunk [u8]>) -> (Vec<Owned>, SseParser) {
        let mut parser = SseParser::new();
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk);
            while let Some(event) = parser.next_event().unwrap() {
                events.push((event.name.to_owned(), event.data.to_owned(), event.id.map(str::to_owned)));
            }
        }
        (events, parser)
    }

    fn event(name: &str, data: &str, id: Option<&str>) -> Owned {
        (name.to_owned(), data.to_owned(), id.map(str::to_owned))
    }

    #[test]
    fn all_three_line_ends_may_be_mixed() {
        let (events, _) = parse([b"event: a\r\ndata: 1\ndata: 2\r\r\n".as_slice(), b"data: 3\n\r\n"]);
        assert_eq!(events, [event("a", "1\n2", None), event("message", "3", None)]);
    }

    #[test]
    fn an_id_is_sticky_but_not_with_nul() {
        let (events, parser) = parse([b"id: 1\ndata: a\n\nid: 2\x003\ndata: b\n\n".as_slice()]);
        assert_eq!(events, [event("message", "a", Some("1")), event("message", "b", None)]);
        assert_eq!(parser.last_event_id(), "1");
    }

    #[test]
    fn an_event_that_the_end_cuts_off_is_given_apart() {
        let (events, mut parser) = parse([b"data: a\n\nid: 7\ndata: {\"b\"".as_slice()]);
        assert_eq!(events.len(), 1);
        assert_eq!(parser.finish().unwrap().data, "{\"b\"");
        assert_eq!(parser.last_event_id(), "", "the id of an event that was not dispatched does not count");
        assert_eq!(parser.finish(), None);
    }

    #[test]
    fn comments_and_unknown_fields_make_no_event() {
        let (events, parser) = parse([b": ping\n\nfoo: bar\n\nevent: x\n\nretry: 10\nretry: 1x\n\n".as_slice()]);
        assert_eq!(events, []);
        assert_eq!(parser.retry(), Some(10));
    }

    #[test]
    fn json_that_is_in_no_event_is_kept_until_the_next_one() {
        let (events, mut parser) = parse([b"data: a\n\n[{\n  \"error\": {\"code\": 503}\n}".as_slice()]);
        assert_eq!(events.len(), 1);
        assert_eq!(parser.finish(), None);
        assert_eq!(parser.stray(), "[{\n  \"error\": {\"code\": 503}\n}\n");
        let (_, parser) = parse([b"{\"a\":1}\ndata: a\n\n".as_slice()]);
        assert_eq!(parser.stray(), "");
        let (_, parser) = parse([b"{\n".as_slice(), &b"x\n".repeat(100_000)]);
        assert!(parser.stray().len() <= MAX_STRAY_BYTES);
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let mut parser = SseParser::new();
        let chunk = vec![b'x'; 4 * 1024 * 1024];
        let refused = (0..16).any(|_| {
            parser.push(&chunk);
            parser.next_event().is_err()
        });
        assert!(refused);
        parser.push(b"\n\ndata: a\n\n");
        assert_eq!(parser.next_event(), Ok(None));
        assert!(parser.buffer.capacity() == 0);
    }

    #[test]
    fn many_data_lines_do_not_fill_the_memory() {
        let mut parser = SseParser::new();
        let line = [b"data: ".as_slice(), &vec![b'x'; 1024 * 1024], b"\n"].concat();
        let refused = (0..64).any(|_| {
            parser.push(&line);
            parser.next_event().is_err()
        });
        assert!(refused);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            text in "(\u{feff})?([a-c:é🦀 \r\n\0]|data|event|id|retry: 5|\r\n){0,60}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let bytes = text.as_bytes();
            let whole = parse([bytes]);
            let mut offsets: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            offsets.push(bytes.len());
            offsets.sort_unstable();
            let mut start = 0;
            let pieces: Vec<_> = offsets.into_iter().map(|end| &bytes[mem::replace(&mut start, end)..end]).collect();
            let cut = parse(pieces);
            prop_assert_eq!(&whole.0, &cut.0);
            let single = parse(bytes.chunks(1));
            prop_assert_eq!(&whole.0, &single.0);
            prop_assert_eq!(whole.1.last_event_id(), single.1.last_event_id());
        }
    }
}
