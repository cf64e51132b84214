//! What wires that take only some files need to know of one.

use super::message::{File, FileData};

/// The media type of a picture as services write it, if it is one of the four that all of them take.
#[cfg(any(feature = "anthropic", feature = "bedrock"))]
pub(super) fn picture_type(media_type: &str) -> Option<&'static str> {
    match media_type {
        "image/png" => Some("image/png"),
        "image/jpeg" | "image/jpg" => Some("image/jpeg"),
        "image/gif" => Some("image/gif"),
        "image/webp" => Some("image/webp"),
        _ => None,
    }
}

/// The text of a file that is nothing else, given by value.
pub(super) fn plain_text(file: &File) -> Option<String> {
    let is_text = file.media_type.starts_with("text/")
        || matches!(file.media_type.as_str(), "application/json" | "application/xml" | "application/yaml");
    match &file.data {
        FileData::Base64(data) if is_text => String::from_utf8(from_base64(data)?).ok(),
        _ => None,
    }
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'\r' | b'\n' => continue,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

/// Adds the bytes of another Base64 text to those of this one. Each text ends with its own padding, so that behind one that
/// has any nothing can be written. `None` when one of them is no Base64.
#[cfg(feature = "bedrock")]
pub(super) fn with_base64(text: &str, more: &str) -> Option<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if !text.ends_with('=') {
        return Some(format!("{text}{more}"));
    }
    let bytes = [from_base64(text)?, from_base64(more)?].concat();
    let mut joined = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for position in 0..4 {
            let index = (bits >> (18 - 6 * position)) & 63;
            let character = ALPHABET.get(index as usize).filter(|_| position <= group.len());
            joined.push(character.map_or('=', |character| char::from(*character)));
        }
    }
    Some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(media_type: &str, data: &str) -> File {
        File { media_type: media_type.into(), data: FileData::Base64(data.into()), name: None }
    }

    #[test]
    #[cfg(feature = "bedrock")]
    fn texts_are_joined_by_their_bytes() {
        for (text, more, joined) in
            [("", "YQ==", "YQ=="), ("YWJj", "YQ==", "YWJjYQ=="), ("YQ==", "Yg==", "YWI="), ("YWI=", "Y/+/", "YWJj/78=")]
        {
            assert_eq!(with_base64(text, more).as_deref(), Some(joined), "{text} {more}");
        }
        assert_eq!(with_base64("YQ==", "%"), None);
    }

    #[test]
    fn text_is_read_from_its_bytes() {
        for (data, text) in
            [("", ""), ("YQ==", "a"), ("YWI", "ab"), ("YWJj", "abc"), ("w6nigqw=", "é€"), ("YQ\r\n==", "a")]
        {
            assert_eq!(plain_text(&file("text/plain", data)).as_deref(), Some(text), "{data}");
        }
        assert_eq!(plain_text(&file("text/plain", "%")), None);
        assert_eq!(plain_text(&file("text/plain", "/w==")), None, "no UTF-8");
        assert_eq!(plain_text(&file("application/zip", "YQ==")), None);
    }
}
