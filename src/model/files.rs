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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(media_type: &str, data: &str) -> File {
        File { media_type: media_type.into(), data: FileData::Base64(data.into()), name: None }
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
