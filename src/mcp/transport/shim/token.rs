use std::fmt;

use crate::base64url;
use crate::error::{Error, ErrorKind};

/// A shared secret between the shim and one client, printed by `crablet-shim grant`.
///
/// Written `<key-id>.<secret>`: the key id is public and names the grant, the secret is 256 bits in base64url. `Debug`
/// shows the key id only.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    key_id: String,
    secret: [u8; SECRET_BYTES],
}

impl Token {
    /// A token made of unpredictable bytes.
    pub fn from_random(key_id: [u8; 9], secret: [u8; 32]) -> Self {
        Self::from_parts(base64url::encode(&key_id), secret)
    }

    pub(super) fn from_parts(key_id: String, secret: [u8; SECRET_BYTES]) -> Self {
        Self { key_id, secret }
    }

    /// Reads a token as `crablet-shim grant` printed it.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the text is no token; the message does not repeat it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text.trim()).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                "this is not a shim token; copy the whole line that `crablet-shim grant` printed (<key-id>.<secret>)",
            )
        })
    }

    /// The public half, which names the grant.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The whole token, secret included: for the one moment it is handed to its owner, and for the file it is kept in.
    pub fn reveal(&self) -> String {
        format!("{}.{}", self.key_id, base64url::encode(&self.secret))
    }

    pub(super) fn secret(&self) -> &[u8] {
        &self.secret
    }

    fn read(text: &str) -> Option<Self> {
        let (key_id, secret) = text.split_once('.')?;
        if !is_key_id(key_id) {
            return None;
        }
        let secret = base64url::decode(secret)?.try_into().ok()?;
        Some(Self { key_id: key_id.to_owned(), secret })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Token({}.…)", self.key_id)
    }
}

/// Whether a text can be a key id: it stands between dots in a subprotocol and in lists for people.
pub(super) fn is_key_id(text: &str) -> bool {
    (1..=MAX_KEY_ID_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

const SECRET_BYTES: usize = 32;

/// Longer than the 12 characters that `grant` makes, short enough for one line of a list.
const MAX_KEY_ID_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let token = Token::from_random([1; 9], [2; 32]);
        assert_eq!(token.reveal(), "AQEBAQEBAQEB.AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI");
        assert_eq!(Token::parse(&format!(" {}\n", token.reveal())).unwrap(), token);
    }

    #[test]
    fn what_is_no_token_is_refused_without_repeating_it() {
        for text in ["", "AQEB", ".AgIC", "AQEB.AgIC", "AQ EB.AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI"] {
            let error = Token::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(text.is_empty() || !error.message().contains(text));
        }
    }

    #[test]
    fn debug_hides_the_secret() {
        assert_eq!(format!("{:?}", Token::from_random([1; 9], [2; 32])), "Token(AQEBAQEBAQEB.…)");
    }
}
