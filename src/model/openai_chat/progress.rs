//! Whether text that arrives in pieces is a whole object yet.

use crate::json::Object;

/// Follows the brackets of an object that is being written. Every byte is looked at once, and the whole is parsed once.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The outermost bracket was closed, and nothing came after it.
    is_closed: bool,
    /// What the parser said about the closed text.
    is_whole: Option<bool>,
}

impl Progress {
    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &str) {
        crate::work::count(piece.len());
        for byte in piece.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b' ' | b'\n' | b'\r' | b'\t' => continue,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.is_closed = self.depth == 0 && matches!(byte, b'}' | b']') && !self.in_string;
            self.is_whole = None;
        }
    }

    /// Whether the pieces so far, which are this text, are one whole object.
    pub(super) fn is_whole(&mut self, text: &str) -> bool {
        self.is_closed && *self.is_whole.get_or_insert_with(|| Object::parse(text).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_what_the_parser_says(pieces in prop::collection::vec(r#"[\[\]{}",:\\1a ]{0,4}|\{\}|\{"a":|"b"\}|\}"#, 0..8)) {
            let mut progress = Progress::default();
            let mut text = String::new();
            for piece in pieces {
                progress.push(&piece);
                text.push_str(&piece);
                prop_assert_eq!(progress.is_whole(&text), Object::parse(&text).is_ok(), "{}", text);
            }
        }
    }
}
