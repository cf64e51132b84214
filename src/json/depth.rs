/// How deep a value may be nested that is read as a whole, such as the input of a tool or a message of a caller.
///
/// As deep as serde_json reads a value; people's values stay far below.
pub const MAX_VALUE_DEPTH: usize = 128;

/// How deep a message of a peer may be nested.
///
/// Far more than data of people has, and far less than what a program that reads it by recursion can take: JavaScript's
/// `JSON.stringify` fails at some thousand levels.
pub const MAX_MESSAGE_DEPTH: usize = 512;

/// Whether arrays and objects of a JSON text are nested deeper than this. Takes one look at each byte and no memory; of a text
/// that is no JSON the answer means nothing.
pub fn is_deeper_than(text: &str, limit: usize) -> bool {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_texts() {
        assert!(!is_deeper_than(r#"[{"a":"[[[\"[[[","b":[]},[[]]]"#, 3));
        assert!(is_deeper_than(r#"[{"a":"[[[\"[[[","b":[]},[[]]]"#, 2));
        assert!(!is_deeper_than("1", 0));
        assert!(is_deeper_than(&"[".repeat(1_000_000), MAX_MESSAGE_DEPTH));
    }
}
