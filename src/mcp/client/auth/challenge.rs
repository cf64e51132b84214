use super::tokens::scopes;
use crate::model::ResponseHead;

/// What a server says it wants when it refuses a request (RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9728, section
/// 5.1; RFC 9449, section 9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    pub(super) resource_metadata: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) error: Option<String>,
    /// Whether it wants a proof of possession, and would not take a bearer token.
    pub(super) is_dpop: bool,
}

impl Challenge {
    /// The challenge of an answer; empty where there is none, or where the browser may not see it. A bearer token comes
    /// before a proof.
    pub(super) fn read(head: &ResponseHead) -> Self {
        let mut found = [Self::default(), Self { is_dpop: true, ..Self::default() }];
        let mut was_found = [false, false];
        for (name, value) in &head.headers {
            if name == "www-authenticate" {
                read_header(value, &mut found, &mut was_found);
            }
        }
        let [bearer, dpop] = found;
        match was_found {
            [false, true] => dpop,
            _ => bearer,
        }
    }

    /// The scopes it names.
    pub(super) fn scopes(&self) -> Vec<String> {
        scopes(self.scope.as_deref().unwrap_or_default())
    }
}

/// The challenges of one header: a scheme each, with its parameters. Of several for one scheme the first counts.
fn read_header(header: &str, found: &mut [Challenge; 2], was_found: &mut [bool; 2]) {
    let mut current = None;
    let mut rest = header;
    loop {
        rest = skip(rest, b" \t,");
        let end = rest.bytes().position(|byte| b" \t,=".contains(&byte)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        match skip(behind, b" \t").strip_prefix('=') {
            Some(behind) => {
                let (value, behind) = value(skip(behind, b" \t="));
                rest = behind;
                let Some(challenge) = current.and_then(|scheme: usize| found.get_mut(scheme)) else { continue };
                let field = match word.to_ascii_lowercase().as_str() {
                    "resource_metadata" => &mut challenge.resource_metadata,
                    "scope" => &mut challenge.scope,
                    "error" => &mut challenge.error,
                    _ => continue,
                };
                *field = field.take().or(Some(value).filter(|value| !value.is_empty()));
            }
            None if word.is_empty() => return,
            None => {
                rest = behind;
                current = ["bearer", "dpop"].iter().position(|scheme| word.eq_ignore_ascii_case(scheme));
                let was_found = current.and_then(|scheme| was_found.get_mut(scheme));
                if was_found.is_some_and(|was_found| std::mem::replace(was_found, true)) {
                    current = None;
                }
            }
        }
    }
}

/// The text without these bytes at its start.
fn skip<'text>(text: &'text str, bytes: &[u8]) -> &'text str {
    let end = text.bytes().position(|byte| !bytes.contains(&byte)).unwrap_or(text.len());
    text.get(end..).unwrap_or_default()
}

/// A token or a quoted text, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.bytes().position(|byte| b" \t,".contains(&byte)).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => value.extend(characters.next()),
            other => value.push(other),
        }
    }
    (value, characters.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(values: &[&str]) -> Challenge {
        let headers = values.iter().map(|value| ("www-authenticate".to_owned(), (*value).to_owned()));
        Challenge::read(&ResponseHead { status: 401, headers: headers.collect() })
    }

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let expected = Challenge {
            resource_metadata: Some("https://a.example/meta,data".to_owned()),
            scope: Some("a b".to_owned()),
            error: Some("insufficient_scope".to_owned()),
            is_dpop: false,
        };
        let bearer =
            r#"Bearer error="insufficient_scope", scope="a b",resource_metadata="https://a.example/meta,data""#;
        assert_eq!(read(&[bearer]), expected);
        assert_eq!(read(&[&format!(r#"Basic realm="x", charset=utf-8, {bearer}, DPoP algs="ES256""#)]), expected);
        assert_eq!(read(&["Negotiate abc==", "DPoP algs=ES256", bearer]), expected);
        assert_eq!(read(&["bearer"]), Challenge::default());
    }

    #[test]
    fn a_proof_is_wanted_where_only_that_is_offered() {
        let challenge = read(&[r#"DPoP error=use_dpop_nonce, resource_metadata = "https://a.example/m""#]);
        assert!(challenge.is_dpop);
        assert_eq!(challenge.error.as_deref(), Some("use_dpop_nonce"));
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://a.example/m"));
    }

    #[test]
    fn quoted_texts_may_hold_anything() {
        let challenge = read(&[r#"Bearer realm="say \"Bearer scope=x\", please", scope=s"#]);
        assert_eq!(challenge.scope.as_deref(), Some("s"));
        assert_eq!(read(&[r#"Bearer scope="unfinished"#]).scope.as_deref(), Some("unfinished"));
    }

    proptest! {
        #[test]
        fn any_header_is_read_to_its_end(header: String) {
            let _ = read(&[&header]);
        }
    }
}
