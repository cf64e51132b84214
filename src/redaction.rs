//! Takes keys and tokens out of texts that people come to see: peers repeat what they refuse.

use std::cmp::Reverse;

use crate::{base64url, percent};

/// What is shorter, in bytes, is left where it is: it is no secret, and it may be part of a word.
pub(crate) const SHORTEST_SECRET: usize = 8;

const REDACTED: &str = "[redacted]";

/// A text without these secrets, as they are or as peers write them down, also where it was shortened in the middle of one;
/// `None` when there is nothing of them in it.
pub(crate) fn redacted(text: &str, secrets: &[String]) -> Option<String> {
    let mut forms: Vec<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
    forms.retain(|form| !form.is_empty());
    // A form that begins with another would keep its end.
    forms.sort_by_key(|form| Reverse(form.len()));
    let mut clean = text.to_owned();
    for form in &forms {
        clean = clean.replace(form.as_str(), REDACTED);
    }
    // Only now: what is the beginning of one form may be the whole of another.
    for form in &forms {
        clean = without_beginnings(&clean, form);
    }
    (clean != text).then_some(clean)
}

/// A secret as it is; in a JSON text and in one within that; in an address; and in Base64 of both alphabets.
fn forms(secret: &str) -> Vec<String> {
    let encoded = base64url::encode(secret.as_bytes());
    let standard = encoded.replace('-', "+").replace('_', "/");
    let once = escaped(secret);
    vec![secret.to_owned(), escaped(&once), once, percent::encode(secret), encoded, standard]
}

/// How it stands between the quotes of a JSON text.
fn escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The text without what a shortened text in it ends with, where that is the beginning of a form.
fn without_beginnings(text: &str, form: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for piece in text.split_inclusive(ENDS) {
        let kept = piece.trim_end_matches(ENDS);
        match before_start_of(kept, form) {
            // A quote that is escaped ends nothing, and the text around it may be JSON, which it has to stay.
            Some(before) if !kept.ends_with('\\') => {
                clean.extend([before, REDACTED, piece.get(kept.len()..).unwrap_or_default().trim_end_matches('…')]);
            }
            _ => clean.push_str(piece),
        }
    }
    clean
}

/// Where a text that was shortened ends, beside its own end.
const ENDS: [char; 2] = ['…', '"'];

/// What stands before the beginning of a form, where a text ends in one.
fn before_start_of<'text>(text: &'text str, form: &str) -> Option<&'text str> {
    (SHORTEST_SECRET..form.len()).rev().find_map(|length| form.get(..length).and_then(|start| text.strip_suffix(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_taken_out_also_where_a_shortened_text_ends_in_it() {
        let secrets = ["planted-secret".to_owned()];
        for (text, expected) in [
            ("planted-secret twice: planted-secret", "[redacted] twice: [redacted]"),
            ("the key planted-sec…", "the key [redacted]"),
            ("the key planted-sec", "the key [redacted]"),
            ("the key planted-sec… (HTTP 401)", "the key [redacted] (HTTP 401)"),
            (r#"{"error":"planted-sec"}"#, r#"{"error":"[redacted]"}"#),
        ] {
            assert_eq!(redacted(text, &secrets).as_deref(), Some(expected));
        }
        for text in ["the tree was planted", "", "…", "\"\""] {
            assert_eq!(redacted(text, &secrets), None, "{text}");
        }
        assert_eq!(redacted("all of it", &[String::new()]), None);
    }

    #[test]
    fn a_secret_is_found_however_it_is_written() {
        let secret = "planted\"/+ kéy?>".to_owned();
        for written in [
            r#"planted"/+ kéy?>"#,
            r#"planted\"/+ kéy?>"#,
            "planted%22%2F%2B%20k%C3%A9y%3F%3E",
            "cGxhbnRlZCIvKyBrw6l5Pz4",
            "cGxhbnRlZCIvKyBrw6l5Pz4=",
        ] {
            let clean = redacted(&format!("refused {written} here"), std::slice::from_ref(&secret)).unwrap();
            assert!(clean.starts_with("refused [redacted]") && clean.ends_with(" here"), "{written}: {clean}");
        }
        // With the characters in which the two alphabets differ.
        let secret = "??>>??>>".to_owned();
        for written in ["Pz8-Pj8_Pj4", "Pz8+Pj8/Pj4"] {
            assert_eq!(redacted(written, std::slice::from_ref(&secret)).as_deref(), Some(REDACTED));
        }
    }

    #[test]
    fn a_text_in_json_stays_json_when_the_secret_holds_a_quote() {
        let secret = "planted-\"quoted\"-value".to_owned();
        let told = |message: &str| serde_json::json!({ "error": { "message": message } }).to_string();
        for message in [
            format!("refused {secret} here"),
            format!("refused {} here", serde_json::json!({ "key": secret })),
            format!("refused {secret} and {} and {secret}", serde_json::json!([secret])),
        ] {
            let clean = redacted(&told(&message), std::slice::from_ref(&secret)).unwrap();
            let read: serde_json::Value = serde_json::from_str(&clean).unwrap();
            assert!(
                !clean.contains("planted") && read["error"]["message"].as_str().unwrap().contains(REDACTED),
                "{clean}"
            );
        }
    }

    #[test]
    fn a_secret_within_another_leaves_nothing_of_it() {
        let secrets = ["planted-one".to_owned(), "planted-one-and-more".to_owned()];
        assert_eq!(redacted("it is planted-one-and-more", &secrets).as_deref(), Some("it is [redacted]"));
    }
}
