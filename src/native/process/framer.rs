use std::borrow::Cow;
use std::fmt;
use std::mem;

use memchr::memchr;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::mcp::transport::shim::MAX_MESSAGE_BYTES;

/// The longest message on one line, in bytes: as much as a frame to the client carries.
pub const MAX_LINE_BYTES: usize = MAX_MESSAGE_BYTES;

/// Cuts a server's standard output into lines and tells messages from everything else that servers print there.
///
/// A newline is the only frame, though messages that share a line are taken apart. A carriage return before it, blank lines and a byte
/// order mark are skipped, invalid UTF-8 is replaced, and a last line without a newline counts when it is whole. No more than [`MAX_LINE_BYTES`] are held.
#[derive(Debug, Default)]
pub struct LineFramer {
    line: Vec<u8>,
    /// The line is too long and nobody's message: the rest of it is skipped.
    skipping: bool,
    /// What is left of the line that the stream ended in.
    left: std::vec::IntoIter<Line>,
}

/// One line of a server's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A JSON-RPC message, or a batch, in valid UTF-8 and without a newline.
    Message(String),
    /// Something else, cut to [`Line::NOISE_BYTES`]: for a log, never for the client.
    Noise(String),
    /// The start of what looks like a message with more than [`MAX_LINE_BYTES`]. What it answers cannot be known, so
    /// that the connection cannot go on.
    TooLong,
}

impl Line {
    /// How much of a line that is no message is kept, in bytes.
    pub const NOISE_BYTES: usize = 1024;
}

impl LineFramer {
    /// A framer at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what was read, and gives the lines that ended in it.
    pub fn push(&mut self, bytes: &[u8], lines: &mut Vec<Line>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let newline = memchr(b'\n', rest);
            let (piece, after) = rest.split_at(newline.map_or(rest.len(), |at| at + 1));
            rest = after;
            if !self.skipping {
                self.line.extend_from_slice(piece);
            }
            if newline.is_some() {
                self.skipping = false;
                read_line(mem::take(&mut self.line), lines);
            } else if self.line.len() > MAX_LINE_BYTES {
                self.skipping = true;
                read_line(mem::take(&mut self.line), lines);
            }
        }
    }

    /// The line that the stream ended in, if any: what is in it one by one, until there is no more.
    pub fn finish(&mut self) -> Option<Line> {
        if self.left.as_slice().is_empty() {
            let mut lines = Vec::new();
            read_line(mem::take(&mut self.line), &mut lines);
            self.left = lines.into_iter();
        }
        self.left.next()
    }
}

/// Reads a line, in which there is nothing when it is blank. A message that has a line to itself keeps the memory it was read into.
fn read_line(mut line: Vec<u8>, lines: &mut Vec<Line>) {
    line.truncate(line.trim_ascii_end().len());
    let without_mark = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line);
    let before = line.len() - without_mark.trim_ascii_start().len();
    line.drain(..before);
    let may_be_message = matches!(line.first(), Some(b'{' | b'['));
    if may_be_message && line.len() > MAX_LINE_BYTES {
        return lines.push(Line::TooLong);
    }
    if !may_be_message {
        return lines.extend(noise(&line));
    }
    let text = String::from_utf8(line).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    if is_json_rpc(&text) { lines.push(Line::Message(text)) } else { read_shared_line(&text, lines) }
}

/// Reads a line that is not one message: several, whose writer has lost the newlines between them, as two threads do that write at once.
/// What follows them and is none is noise, and so is a line that begins with something else, which may only quote a message.
fn read_shared_line(text: &str, lines: &mut Vec<Line>) {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<JsonRpc>();
    let mut rest = text;
    while let Some(Ok(JsonRpc(true))) = values.next() {
        let (message, behind) = rest.split_at(rest.len() - (text.len() - values.byte_offset()));
        lines.push(Line::Message(message.trim_ascii().to_owned()));
        rest = behind;
    }
    lines.extend(noise(rest.trim_ascii().as_bytes()));
}

fn noise(bytes: &[u8]) -> Option<Line> {
    let kept = bytes.get(..Line::NOISE_BYTES).unwrap_or(bytes);
    (!kept.is_empty()).then(|| Line::Noise(String::from_utf8_lossy(kept).into_owned()))
}

/// Whether a text is valid JSON that claims to be JSON-RPC: an object with `jsonrpc`, or an array of such.
fn is_json_rpc(text: &str) -> bool {
    serde_json::from_str::<JsonRpc>(text).is_ok_and(|JsonRpc(is_json_rpc)| is_json_rpc)
}

/// The name of a member, which is copied only when it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Walks the outermost members only; the rest is skipped without being kept.
struct JsonRpc(bool);

impl<'de> Deserialize<'de> for JsonRpc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Outer;

        impl<'de> Visitor<'de> for Outer {
            type Value = JsonRpc;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object or an array of objects")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonRpc, A::Error> {
                let mut found = false;
                while let Some(Name(name)) = map.next_key()? {
                    map.next_value::<IgnoredAny>()?;
                    found |= name == "jsonrpc";
                }
                Ok(JsonRpc(found))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<JsonRpc, A::Error> {
                let (mut any, mut all) = (false, true);
                while let Some(JsonRpc(is_json_rpc)) = elements.next_element()? {
                    any = true;
                    all &= is_json_rpc;
                }
                Ok(JsonRpc(any && all))
            }
        }

        deserializer.deserialize_any(Outer)
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<Line> {
        let (mut framer, mut lines) = (LineFramer::new(), Vec::new());
        for chunk in chunks {
            framer.push(chunk, &mut lines);
        }
        lines.extend(std::iter::from_fn(|| framer.finish()));
        lines
    }

    fn message(text: &str) -> Line {
        Line::Message(text.to_owned())
    }

    #[test]
    fn byte_order_mark_carriage_returns_and_blank_lines_are_skipped() {
        let output = b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\"}\r\n\r\n \n{\"jsonrpc\":\"2.0\",\"id\":1}";
        assert_eq!(lines(&[output]), [message(r#"{"jsonrpc":"2.0"}"#), message(r#"{"jsonrpc":"2.0","id":1}"#)]);
    }

    #[test]
    fn what_is_not_json_rpc_is_noise() {
        let output =
            b"starting\nnull\n42\n{\"level\":\"info\"}\n{\"jsonrpc\":\"2.0\", oops}\n[]\n[{\"jsonrpc\":\"2.0\"},1]\n";
        let lines = lines(&[output]);
        assert_eq!(lines.len(), 7);
        assert!(lines.iter().all(|line| matches!(line, Line::Noise(_))), "{lines:?}");
    }

    #[test]
    fn messages_that_share_a_line_are_taken_apart() {
        let (one, two) = (r#"{"jsonrpc":"2.0","id":1,"result":{"a":"}{"}}"#, r#"[{"jsonrpc":"2.0","id":2}]"#);
        let both = [message(one), message(two)];
        for output in [format!("{one}{two}\n"), format!("{one}{two}"), format!(" {one} \t{two}\r\n\n")] {
            assert_eq!(lines(&[output.as_bytes()]), both, "{output}");
        }
        let noise = |text: &str| Line::Noise(text.to_owned());
        assert_eq!(lines(&[format!("{one}done {two}\n").as_bytes()]), [message(one), noise(&format!("done {two}"))]);
        assert_eq!(lines(&[format!("{one}{{\"level\":1}}").as_bytes()]), [message(one), noise("{\"level\":1}")]);
        let quoted = format!("sent {one}");
        assert_eq!(lines(&[quoted.as_bytes()]), [noise(&quoted)]);
    }

    #[test]
    fn a_batch_is_a_message() {
        let batch = r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#;
        assert_eq!(lines(&[batch.as_bytes()]), [message(batch)]);
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        assert_eq!(lines(&[b"{\"jsonrpc\":\"\xff\"}\n"]), [message("{\"jsonrpc\":\"\u{fffd}\"}")]);
    }

    #[test]
    fn long_lines_are_bounded() {
        let chunk = vec![b'x'; 1 << 20];
        let (mut framer, mut lines) = (LineFramer::new(), Vec::new());
        for _ in 0..40 {
            framer.push(&chunk, &mut lines);
            assert!(framer.line.len() <= MAX_LINE_BYTES + chunk.len());
        }
        framer.push(b"\n{\"jsonrpc\":\"2.0\"}\n", &mut lines);
        assert_eq!(lines, [Line::Noise("x".repeat(Line::NOISE_BYTES)), message(r#"{"jsonrpc":"2.0"}"#)]);

        let (mut framer, mut lines) = (LineFramer::new(), Vec::new());
        framer.push(b"{", &mut lines);
        for _ in 0..40 {
            framer.push(&chunk, &mut lines);
        }
        assert_eq!(lines, [Line::TooLong]);
    }

    proptest! {
        #[test]
        fn chunking_changes_nothing(cuts in prop::collection::vec(0usize..120, 0..8)) {
            let output: &[u8] = "log\n{\"jsonrpc\":\"2.0\",\"id\":\"é€😀\"}{\"jsonrpc\":1}\r\n\n{\"jsonrpc\":\"2.0\",\n\u{feff}{\"jsonrpc\":\"2.0\"}".as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(output.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut start = 0;
            for cut in cuts {
                chunks.push(&output[start..cut]);
                start = cut;
            }
            chunks.push(&output[start..]);
            prop_assert_eq!(lines(&chunks), lines(&[output]));
        }

        #[test]
        fn no_bytes_make_it_panic(chunks: Vec<Vec<u8>>) {
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            lines(&chunks);
        }
    }
}
