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
    /// The challenge of an answer; empty where there is none, or where the browser may not see it.
    pub(super) fn read(head: &ResponseHead) -> Self {
        let headers = head.headers.iter().filter(|(name, _)| name == "www-authenticate");
        let mut challenges = headers.flat_map(|(_, value)| parse(value)).collect::<Vec<_>>();
        let position = |wanted: &str| challenges.iter().position(|(scheme, _)| scheme.eq_ignore_ascii_case(wanted));
        let (index, is_dpop) = match (position("bearer"), position("dpop")) {
            (Some(index), _) => (index, false),
            (None, Some(index)) => (index, true),
            (None, None) => return Self::default(),
        };
        let (_, params) = challenges.swap_remove(index);
        let param = |wanted: &str| {
            let found = params.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        Self { resource_metadata: param("resource_metadata"), scope: param("scope"), error: param("error"), is_dpop }
    }
}

type Params = Vec<(String, String)>;

/// The challenges of one header: a scheme each, with its parameters. What is no parameter is skipped.
fn parse(header: &str) -> Vec<(String, Params)> {
    let mut challenges: Vec<(String, Params)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        match behind.trim_start_matches([' ', '\t']).strip_prefix('=') {
            Some(behind) => {
                let (value, behind) = value(behind.trim_start_matches([' ', '\t', '=']));
                if let Some((_, params)) = challenges.last_mut() {
                    params.push((word.to_owned(), value));
                }
                rest = behind;
            }
            None if word.is_empty() => return challenges,
            None => {
                challenges.push((word.to_owned(), Params::new()));
                rest = behind;
            }
        }
    }
}

/// A token or a quoted text, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find([' ', '\t', ',']).unwrap_or(text.len()));
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
