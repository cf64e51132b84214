//! Text of a page, made fit for a terminal and for a model that shall see what a person sees.

use sha2::{Digest, Sha256};

/// The text without control characters, marks that turn the direction of writing, and characters that cannot be seen; cut to
/// so many characters. Line breaks stay.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let mut kept = text.chars().filter(|character| !is_hidden(*character));
    let mut cleaned: String = kept.by_ref().take(limit).collect();
    if kept.next().is_some() {
        cleaned.push('…');
    }
    cleaned
}

/// As [`clean`], on one line.
pub(crate) fn clean_line(text: &str, limit: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    clean(&words.join(" "), limit)
}

/// Whether a text has characters that [`clean`] takes out.
pub(crate) fn has_hidden(text: &str) -> bool {
    text.chars().any(is_hidden)
}

/// The first characters of a digest, in lower case letters and digits that are not mistaken for each other.
pub(crate) fn short_digest(parts: &[&str], length: usize) -> String {
    let letter = |byte: u8| ALPHABET.get(usize::from(byte % 32)).copied().map_or('a', char::from);
    digest(parts).into_iter().take(length).map(letter).collect()
}

/// The digest of these texts, of which none can be moved into its neighbour.
pub(crate) fn digest(parts: &[&str]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}

/// What a person does not see, and a model or a terminal does.
pub(crate) fn is_hidden(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Soft hyphen, marks of direction, joiners, invisible operators, variation selectors, interlinear marks, tags.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        character => character.is_control(),
    }
}

const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_taken_out() {
        assert_eq!(clean("a\u{1b}[2Jb\u{202e}c\u{e0041}d\u{200b}\ne", 100), "a[2Jbcd\ne");
        assert_eq!(clean_line(" a\n\tb  c ", 100), "a b c");
        assert_eq!(clean("ab\u{202e}c", 2), "ab…");
        assert_eq!(clean("äöü", 3), "äöü");
        assert!(has_hidden("a\u{2066}b") && has_hidden("\u{7}") && !has_hidden("Grüße, 世界 🦀\n"));
    }

    #[test]
    fn parts_of_a_digest_keep_apart() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_eq!(short_digest(&["a"], 4).len(), 4);
    }
}
