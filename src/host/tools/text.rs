/// The text of a file, its byte order mark included, or `None` when it is no text: it has a zero byte near its beginning, or
/// is not UTF-8.
pub(super) fn decode(content: Vec<u8>) -> Option<String> {
    if content.iter().take(LOOKED_AT).any(|byte| *byte == 0) {
        return None;
    }
    String::from_utf8(content).ok()
}

/// The lines of a text, without their ends and without a byte order mark. An end of line at the end starts no line.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_prefix('\u{feff}').unwrap_or(text).lines()
}

/// The beginning of a text, at most this many bytes and never cut inside a character.
pub(crate) fn clipped(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or(text)
}

/// How much of a file is looked at to tell text from other data.
const LOOKED_AT: usize = 8_192;
