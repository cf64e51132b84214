//! The names of subjects and streams, the same for the npm package.

use crate::base64url;
use crate::error::{Error, ErrorKind};

/// A stream and a subject in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) stream: String,
    pub(super) subject: String,
}

/// The stream and subject that a key of a bucket is.
pub(super) fn key_of(bucket: &str, key: &str) -> Place {
    Place { stream: format!("KV_{bucket}"), subject: format!("$KV.{bucket}.{key}") }
}

/// The id of a session as a token of a subject: itself when it is of letters, digits, `-` and `_`, else `=` and the base64url
/// of its UTF-8.
pub(super) fn token_of(session: &str) -> Result<String, Error> {
    let token =
        if is_plain(session) { session.to_owned() } else { format!("={}", base64url::encode(session.as_bytes())) };
    if session.is_empty() || token.len() > MAX_TOKEN {
        let message = format!("the id of a session has 1 to {MAX_TOKEN} letters as a token of a subject");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(token)
}

/// The id that [`token_of`] was given; `None` when it was none.
pub(super) fn session_of(token: &str) -> Option<String> {
    match token.strip_prefix('=') {
        Some(encoded) => String::from_utf8(base64url::decode(encoded)?).ok(),
        None => is_plain(token).then(|| token.to_owned()),
    }
}

pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

const MAX_TOKEN: usize = 256;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    #[test]
    fn ids_travel_as_tokens_of_subjects() {
        for (id, token) in
            [("user-7", "user-7"), ("user:7/чат", "=dXNlcjo3L9GH0LDRgg"), ("=x", "=PXg"), ("a.b", "=YS5i")]
        {
            assert_eq!(token_of(id).unwrap(), token);
            assert_eq!(session_of(token).unwrap(), id);
        }
        assert_eq!(token_of("").unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(token_of(&"é".repeat(200)).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(session_of("a.b"), None);
    }
}
