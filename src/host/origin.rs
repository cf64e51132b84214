//! What an error may show of an address.

/// Scheme, host and port of an address: what may be shown, since paths and queries can hold keys.
pub(crate) fn origin(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |colon| colon + 3);
    let rest = url.get(authority..).unwrap_or_default();
    let end = rest.find(['/', '?', '#']).map_or(url.len(), |slash| authority + slash);
    match rest.get(..end - authority).and_then(|host| host.rfind('@')) {
        Some(at) => url.get(authority + at + 1..end).unwrap_or_default(),
        None => url.get(..end).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::origin;

    #[test]
    fn an_origin_has_no_path_no_query_and_no_password() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/v1/chat?key=secret", "http://127.0.0.1:8080"),
            ("https://example.com", "https://example.com"),
            ("https://example.com?key=secret", "https://example.com"),
            ("https://user:secret@example.com/v1", "example.com"),
            ("https://user:p@secret@example.com/v1", "example.com"),
            ("", ""),
        ] {
            assert_eq!(origin(url), expected, "{url}");
        }
    }
}
