//! Signed tokens that the client makes itself: what is to be signed, and the whole with its signature (RFC 7515).

use super::options::PrivateKey;
use super::random::{Random, hash};
use crate::base64url;
use crate::json::RawJson;
use crate::jsonrpc::Params;
use crate::time::Millis;

/// How long an assertion of the client is valid, in seconds: longer than any difference of clocks that servers forgive.
const ASSERTION_LIFETIME: u64 = 300;

/// The client's proof of itself for a token request (RFC 7523, section 2.2).
pub(super) fn client_assertion(
    now: Millis,
    random: &mut Random,
    client: &str,
    audience: &str,
    key: &PrivateKey,
) -> String {
    let mut header = Params::new().with("alg", key.algorithm.as_str()).with("typ", "JWT");
    if let Some(key_id) = &key.key_id {
        header.set("kid", key_id);
    }
    let seconds = now.0 / 1_000;
    let claims = Params::new()
        .with("iss", client)
        .with("sub", client)
        .with("aud", audience)
        .with("jti", &random.text())
        .with("iat", &seconds)
        .with("exp", &(seconds + ASSERTION_LIFETIME));
    unsigned(&header, &claims)
}

/// What a proof of possession is about (RFC 9449, section 4.2).
#[derive(Debug)]
pub(super) struct Proof<'request> {
    pub(super) method: &'request str,
    pub(super) url: &'request str,
    /// The token that is shown with it.
    pub(super) token: Option<&'request str>,
    /// What the server wants repeated.
    pub(super) nonce: Option<&'request str>,
}

impl Proof<'_> {
    /// The text to sign. `public_key` is a JSON Web Key.
    pub(super) fn unsigned(&self, now: Millis, random: &mut Random, public_key: &RawJson) -> String {
        let header = Params::new().with("typ", "dpop+jwt").with("alg", "ES256").with("jwk", public_key);
        let mut claims = Params::new()
            .with("jti", &random.text())
            .with("htm", self.method)
            .with("htu", self.url.split(['?', '#']).next().unwrap_or_default())
            .with("iat", &(now.0 / 1_000));
        if let Some(token) = self.token {
            claims.set("ath", &hash(token));
        }
        if let Some(nonce) = self.nonce {
            claims.set("nonce", nonce);
        }
        unsigned(&header, &claims)
    }
}

/// A signed token from what was signed and its signature.
pub(super) fn signed(unsigned: &str, signature: &[u8]) -> String {
    [unsigned, ".", &base64url::encode(signature)].concat()
}

fn unsigned(header: &Params, claims: &Params) -> String {
    let part = |part: &Params| base64url::encode(part.to_raw().as_str().as_bytes());
    [part(header), part(claims)].join(".")
}
