//! JSON strings written, and read as text, whatever they hold.

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    // Writing fails only for values that JSON has no form for.
    serde_json::to_string(text).unwrap_or_default()
}

/// Reads the JSON text of one string. Half a surrogate pair reads as U+FFFD; `None` when it is no string.
pub fn read_string(json: &str) -> Option<String> {
    if !json.starts_with('"') {
        return None;
    }
    crate::work::count(json.len());
    serde_json::from_str(json).ok().or_else(|| read_units(json))
}

/// The slow way, for strings that hold half a pair: as UTF-16, replacing what is no character.
fn read_units(json: &str) -> Option<String> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut units = Vec::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
            continue;
        }
        units.push(match characters.next()? {
            'b' => 8,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'u' => u16::from_str_radix(characters.as_str().get(..4)?, 16).ok().inspect(|_| {
                characters.nth(3);
            })?,
            other => u16::try_from(u32::from(other)).ok()?,
        });
    }
    Some(String::from_utf16_lossy(&units))
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
        assert_eq!(read_string("12"), None);
        assert_eq!(read_string("null"), None);
    }
}
