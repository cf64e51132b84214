//! JSON as people write it by hand: with comments and trailing commas, which editors such as VS Code and Cursor take.

use std::borrow::Cow;

/// The text as plain JSON. Blanks take the place of comments and trailing commas, so that every other byte stays where it is and
/// errors keep their line and column. What is no JSON for another reason stays as wrong as it was.
pub(crate) fn plain_json(text: &str) -> Cow<'_, str> {
    let mut bytes = Cow::Borrowed(text.as_bytes());
    let mut last_comma = None;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let length = match byte {
            b'"' => string_length(rest),
            b'/' => comment_length(rest),
            _ => 1,
        };
        match byte {
            b'/' if length > 1 => blank(&mut bytes, at, length),
            b'}' | b']' => {
                if let Some(comma) = last_comma.take() {
                    blank(&mut bytes, comma, 1);
                }
            }
            b',' => last_comma = Some(at),
            byte if byte.is_ascii_whitespace() => {}
            _ => last_comma = None,
        }
        at += length;
    }
    match bytes {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Whole characters were replaced by blanks.
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Puts blanks over a part, but for the ends of its lines.
fn blank(bytes: &mut Cow<'_, [u8]>, at: usize, length: usize) {
    let part = bytes.to_mut().get_mut(at..at + length).unwrap_or_default();
    part.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

/// The bytes of the string that a text starts with; all of the text when it has no end.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// The bytes of the comment that a text starts with; 1 when it starts with none, or with one that has no end.
fn comment_length(text: &[u8]) -> usize {
    if text.starts_with(b"//") {
        return text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    }
    if text.starts_with(b"/*") {
        let end = text.get(2..).unwrap_or_default().windows(2).position(|pair| pair == b"*/");
        return end.map_or(1, |end| end + 4);
    }
    1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_become_blanks() {
        for (text, plain) in [
            ("{} // é", "{}      "),
            ("// a\r\n{\"a\":1,}\r\n", "    \r\n{\"a\":1 }\r\n"),
            ("[1, /* x\ny */ 2,\n]", "[1,     \n     2 \n]"),
            ("[1, // x, ]\n]", "[1         \n]"),
            ("{\"a\":[1,],/**/}", "{\"a\":[1 ]     }"),
        ] {
            assert_eq!(plain_json(text), plain, "{text}");
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(plain).is_ok(), "{plain}");
        }
    }

    #[test]
    fn strings_are_left_alone() {
        for text in [r#"{"a":"// b","c":"/* d */","e":",]"}"#, r#"["\\","x\",]//"]"#, r#""\"//"#, "\"\\"] {
            assert!(matches!(plain_json(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        for text in ["[1,,]", "{\"a\":1 /* b", "[1 2]", "{'a':1}", "/", "[1] / [2]", "/*/"] {
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&plain_json(text)).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_other_byte_stays_where_it_is(text in "[\\[\\]{},/*\"\\\\a é\n]{0,40}") {
            let plain = plain_json(&text);
            prop_assert_eq!(plain.len(), text.len());
            prop_assert_eq!(plain.matches('\n').count(), text.matches('\n').count());
        }

        #[test]
        fn what_is_json_stays_as_it_is(value: Vec<(String, Option<bool>)>) {
            let text = serde_json::to_string(&value).unwrap();
            prop_assert_eq!(plain_json(&text), text.as_str());
        }
    }
}
