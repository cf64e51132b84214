//! Keys that providers repeat in their errors.

/// Takes out what looks like a key: providers repeat the key that they refuse.
pub(super) fn redacted(message: &str) -> String {
    const SEPARATORS: [char; 7] = [' ', '\n', '\t', '"', '\'', '`', '='];
    let mut result = String::with_capacity(message.len());
    let mut follows_key = false;
    for piece in message.split_inclusive(SEPARATORS) {
        let word = piece.trim_end_matches(SEPARATORS);
        let core = word.trim_matches(|character: char| !character.is_ascii_alphanumeric() && character != '*');
        if is_secret(core, follows_key) {
            result.push_str(&piece.replacen(core, "[redacted]", 1));
        } else {
            result.push_str(piece);
        }
        let lower = word.to_ascii_lowercase();
        let announces_key = ["key:", "token:", "provided:", "bearer"].iter().any(|end| lower.ends_with(end));
        follows_key = announces_key || (follows_key && word.is_empty());
    }
    result
}

fn is_secret(word: &str, follows_key: bool) -> bool {
    const PREFIXES: &[&str] =
        &["sk-", "sk_", "pk-", "xai-", "gsk_", "csk-", "hf_", "AIza", "AKIA", "ABSK", "key-", "ya29."];
    // What the provider masked itself is left: it tells which key was meant.
    if word.contains('*') {
        return false;
    }
    let is_long = word.len() >= 40
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && word.bytes().any(|byte| byte.is_ascii_digit());
    is_long
        || (word.len() >= 12 && PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
        || (follows_key && word.len() >= 8 && word.bytes().any(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_providers_repeat_are_taken_out() {
        for (message, expected) in [
            (
                "Incorrect API key provided: sk-proj-abcdef0123456789. You can",
                "Incorrect API key provided: [redacted]. You can",
            ),
            ("Incorrect API key provided: sk-inval****-key.", "Incorrect API key provided: sk-inval****-key."),
            ("Bearer abcdef0123 is wrong", "Bearer [redacted] is wrong"),
            (
                "the model `rig/definitely-not-a-doubleword-model` does not exist",
                "the model `rig/definitely-not-a-doubleword-model` does not exist",
            ),
            ("see 0123456789abcdef0123456789abcdef0123456789", "see [redacted]"),
        ] {
            assert_eq!(redacted(message), expected);
        }
    }
}
