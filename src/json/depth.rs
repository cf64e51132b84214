use super::string::plain;

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
#[cfg_attr(crablet_small, optimize(speed))]
pub fn is_deeper_than(text: &str, limit: usize) -> bool {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = behind_string(bytes, at),
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

/// Where the string ends that begins here, behind its first quote.
#[cfg_attr(crablet_small, optimize(speed))]
fn behind_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        at += plain(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') | None => return at + 1,
            Some(_) => at += 1,
        }
    }
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
