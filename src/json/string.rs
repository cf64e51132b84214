//! JSON strings written, and read as text, whatever they hold.

use std::str::Chars;

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    // Writing fails only for values that JSON has no form for.
    serde_json::to_string(text).unwrap_or_default()
}

/// Reads the JSON text of one string. Half a surrogate pair reads as U+FFFD; `None` when it is no string.
pub fn read_string(json: &str) -> Option<String> {
    crate::work::count(json.len());
    unescaped(json.strip_prefix('"')?.trim_ascii_end().strip_suffix('"')?)
}

/// The text of a string as it is written between its quotes. Half a surrogate pair reads as U+FFFD; `None` for an escape that there
/// is not.
#[cfg_attr(crablet_small, optimize(speed))]
pub(crate) fn unescaped(written: &str) -> Option<String> {
    let mut text = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((plain, escape)) = rest.split_once('\\') {
        let mut characters = escape.chars();
        text.push_str(plain);
        text.push(escaped(&mut characters)?);
        rest = characters.as_str();
    }
    text.push_str(rest);
    Some(text)
}

/// The character of an escape, behind its backslash.
fn escaped(characters: &mut Chars<'_>) -> Option<char> {
    Some(match characters.next()? {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let first = unit(characters)?;
            let second = second_half(characters.as_str()).filter(|_| (0xd800..0xdc00).contains(&first));
            if second.is_some() {
                characters.nth(5);
            }
            let mut decoded = char::decode_utf16([Some(first), second].into_iter().flatten());
            decoded.next()?.unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        character @ ('"' | '\\' | '/') => character,
        _ => return None,
    })
}

/// The second half of a pair, where one follows.
fn second_half(text: &str) -> Option<u16> {
    unit(&mut text.strip_prefix("\\u")?.chars()).filter(|unit| (0xdc00..0xe000).contains(unit))
}

fn unit(characters: &mut Chars<'_>) -> Option<u16> {
    let digits = characters.as_str().get(..4)?;
    characters.nth(3);
    u16::from_str_radix(digits, 16).ok()
}

/// How many bytes come before the first quote, backslash or control character. Eight are looked at together: a byte that is zero in
/// one of the differences is the first that borrows.
#[cfg_attr(crablet_small, optimize(speed))]
pub(crate) fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = ONES << 7;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, bytes) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        let below = |word: u64, least: u8| word.wrapping_sub(ONES * u64::from(least)) & !word;
        let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let found = (below(word, 0x20) | is(b'"') | is(b'\\')) & HIGHEST;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + rest.iter().position(is_special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pair_reads_as_the_replacement_character() {
        assert_eq!(read_string(r#""a\ud83db\n\"""#).as_deref(), Some("a\u{fffd}b\n\""));
        assert_eq!(read_string(r#""\ude00\ud83d\ude00\u00e9é🦀""#).as_deref(), Some("\u{fffd}😀éé🦀"));
        assert_eq!(read_string(r#""\ud83d\ud83d\ude00\udg00""#), None);
        assert_eq!(read_string(r#""\ud83d\ud83d\ude00\ud83d\u0041""#).as_deref(), Some("\u{fffd}😀\u{fffd}A"));
        for text in ["12", "\"", r#""\""#, r#""\x""#, r#""\u00""#] {
            assert_eq!(read_string(text), None, "{text}");
        }
        assert_eq!(read_string("null"), None);
    }
}
