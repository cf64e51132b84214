use super::{BoxFuture, MaybeSend, MaybeSync};
use crate::base64url;
use crate::error::{Error, ErrorKind};
use crate::mcp::client::auth::PrivateKey;

/// A private key of the platform.
pub trait SigningKey: MaybeSend + MaybeSync + 'static {
    /// The public half as a JSON Web Key with the members that its thumbprint has (RFC 7638); empty for a key that was
    /// given.
    fn public_key(&self) -> &str;

    /// The signature over these bytes in the form of JSON Web Signatures: for ECDSA the two numbers one after the other.
    ///
    /// # Errors
    ///
    /// `internal` when the platform fails.
    fn sign(&self, message: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>>;
}

/// The bytes of a private key in PEM.
///
/// # Errors
///
/// `invalid-input` for anything but PKCS #8.
pub(crate) fn pkcs8(key: &PrivateKey) -> Result<Vec<u8>, Error> {
    let text = key.pem.expose();
    let inner = text.split_once("-----BEGIN PRIVATE KEY-----").and_then(|(_, rest)| rest.split_once("-----END"));
    let letters =
        inner.map(|(inner, _)| inner.chars().filter(|letter| !letter.is_ascii_whitespace() && *letter != '='));
    let letters = letters.map(|letters| {
        letters.map(|letter| match letter {
            '+' => '-',
            '/' => '_',
            other => other,
        })
    });
    letters.and_then(|letters| base64url::decode(&letters.collect::<String>())).ok_or_else(|| unreadable(key))
}

pub(crate) fn unreadable(key: &PrivateKey) -> Error {
    let algorithm = key.algorithm.as_str();
    Error::new(
        ErrorKind::InvalidInput,
        [
            "the private key is no ",
            algorithm,
            " key in PKCS #8, in a text that begins with -----BEGIN PRIVATE KEY-----",
        ]
        .concat(),
    )
}
