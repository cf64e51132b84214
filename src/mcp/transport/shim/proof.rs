use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::token::{Token, is_key_id};
use crate::base64url;
use crate::time::Millis;

/// How old, or how far ahead of the shim's clock, a client's proof may be, in milliseconds.
///
/// Both clocks are the same machine's, so this only has to cover the time that opening a socket takes; the shim
/// remembers used nonces for at least as long.
pub const MAX_PROOF_AGE: u64 = 60_000;

/// What a client's proof is bound to, so that it opens this one door and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofContext<'a> {
    /// Host and port as dialled, such as `127.0.0.1:6735`; the shim reads it from the `Host` header. A program that
    /// squats on another port can replay the proof nowhere.
    pub authority: &'a str,
    /// The page's or extension's origin as in the `Origin` header; empty for a client that sends none.
    pub origin: &'a str,
    /// The name of the server, as in the path.
    pub server: &'a str,
}

/// A client's proof that it holds a token, carried as a subprotocol:
/// `crablet.proof.<key-id>.<nonce>.<ms>.<mac>` with
/// `mac = base64url(HMAC-SHA256(secret, "client|<nonce>|<ms>|<authority>|<origin>|<server>"))`.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientProof {
    key_id: String,
    nonce: String,
    made_at: Millis,
    mac: Vec<u8>,
}

impl ClientProof {
    /// A fresh proof. The nonce must be unpredictable and never used before.
    pub fn new(token: &Token, nonce: [u8; 16], made_at: Millis, context: ProofContext<'_>) -> Self {
        let nonce = base64url::encode(&nonce);
        let mac = client_mac(token, &nonce, made_at, context).finalize().into_bytes().to_vec();
        Self { key_id: token.key_id().to_owned(), nonce, made_at, mac }
    }

    /// Reads a subprotocol; `None` when it is no proof. Nothing is verified yet.
    pub fn parse(subprotocol: &str) -> Option<Self> {
        let mut parts = subprotocol.strip_prefix(PREFIX)?.split('.');
        let (key_id, nonce, made_at, mac) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let nonce_is_whole = base64url::decode(nonce).is_some_and(|bytes| bytes.len() == 16);
        if parts.next().is_some() || !is_key_id(key_id) || !nonce_is_whole {
            return None;
        }
        let is_number = !made_at.is_empty() && made_at.bytes().all(|byte| byte.is_ascii_digit());
        let made_at = Millis(made_at.parse().ok().filter(|_| is_number)?);
        Some(Self { key_id: key_id.to_owned(), nonce: nonce.to_owned(), made_at, mac: base64url::decode(mac)? })
    }

    /// The text to offer as a subprotocol.
    pub fn to_subprotocol(&self) -> String {
        let Self { key_id, nonce, made_at, mac } = self;
        format!("{PREFIX}{key_id}.{nonce}.{}.{}", made_at.0, base64url::encode(mac))
    }

    /// Which grant the client says it holds.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The client's nonce, which a shim accepts once and answers with [`server_proof`].
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Whether it was made within [`MAX_PROOF_AGE`] of now, before or after.
    pub fn is_fresh(&self, now: Millis) -> bool {
        now.since(self.made_at).max(self.made_at.since(now)) <= MAX_PROOF_AGE
    }

    /// Whether it was made with this token for this place; compared in constant time.
    pub fn verify(&self, token: &Token, context: ProofContext<'_>) -> bool {
        client_mac(token, &self.nonce, self.made_at, context).verify_slice(&self.mac).is_ok()
    }
}

/// Shows what is public; the code is left out, since it opens the door until it is used.
impl fmt::Debug for ClientProof {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key_id, made_at, .. } = self;
        formatter.debug_struct("ClientProof").field("key_id", key_id).field("made_at", made_at).finish_non_exhaustive()
    }
}

/// The shim's answer to a client's nonce: `base64url(HMAC-SHA256(secret, "server|<nonce>"))`.
pub fn server_proof(token: &Token, nonce: &str) -> String {
    base64url::encode(&server_mac(token, nonce).finalize().into_bytes())
}

/// Whether a shim's answer shows that it holds the same token; compared in constant time.
pub fn verify_server_proof(token: &Token, nonce: &str, proof: &str) -> bool {
    base64url::decode(proof).is_some_and(|bytes| server_mac(token, nonce).verify_slice(&bytes).is_ok())
}

fn client_mac(token: &Token, nonce: &str, made_at: Millis, context: ProofContext<'_>) -> Hmac<Sha256> {
    let ProofContext { authority, origin, server } = context;
    // The server's name stands last because it alone may hold the separator.
    mac(token, &format!("client|{nonce}|{}|{authority}|{origin}|{server}", made_at.0))
}

fn server_mac(token: &Token, nonce: &str) -> Hmac<Sha256> {
    mac(token, &format!("server|{nonce}"))
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
fn mac(token: &Token, text: &str) -> Hmac<Sha256> {
    Hmac::new_from_slice(token.secret()).expect("HMAC takes keys of every length").chain_update(text)
}

const PREFIX: &str = "crablet.proof.";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLACE: ProofContext<'_> =
        ProofContext { authority: "127.0.0.1:6735", origin: "https://app.example", server: "files" };

    fn token() -> Token {
        Token::from_random([1; 9], [2; 32])
    }

    fn proof() -> ClientProof {
        ClientProof::new(&token(), [3; 16], Millis(1_700_000_000_000), PLACE)
    }

    /// Computed with another implementation: `hmac.new(b"\x02" * 32, text, "sha256")` of Python.
    #[test]
    fn the_wire_form_is_pinned() {
        assert_eq!(
            proof().to_subprotocol(),
            "crablet.proof.AQEBAQEBAQEB.AwMDAwMDAwMDAwMDAwMDAw.1700000000000.6yK6p42CwrfE649o75EZyotR9X9bj1RT6vnL2yUJLbc"
        );
        assert_eq!(server_proof(&token(), proof().nonce()), "tJfoZ4YCNGQCtYgCrb_yFgRq8mvDdycxy3WyEzMRaeY");
    }

    #[test]
    fn a_proof_opens_only_the_place_it_was_made_for() {
        let proof = ClientProof::parse(&proof().to_subprotocol()).unwrap();
        assert!(proof.verify(&token(), PLACE));
        for elsewhere in [
            ProofContext { authority: "127.0.0.1:6736", ..PLACE },
            ProofContext { authority: "localhost:6735", ..PLACE },
            ProofContext { origin: "https://evil.example", ..PLACE },
            ProofContext { origin: "", ..PLACE },
            ProofContext { server: "shell", ..PLACE },
        ] {
            assert!(!proof.verify(&token(), elsewhere), "{elsewhere:?}");
        }
        assert!(!proof.verify(&Token::from_random([1; 9], [4; 32]), PLACE));
    }

    #[test]
    fn a_proof_ages_in_both_directions_of_the_clock() {
        for (offset, fresh) in [(0, true), (60_000, true), (60_001, false)] {
            assert_eq!(proof().is_fresh(Millis(1_700_000_000_000 + offset)), fresh);
            assert_eq!(proof().is_fresh(Millis(1_700_000_000_000 - offset)), fresh);
        }
    }

    #[test]
    fn the_shim_proves_itself_over_the_nonce() {
        let answer = server_proof(&token(), "nonce");
        assert!(verify_server_proof(&token(), "nonce", &answer));
        assert!(!verify_server_proof(&token(), "other", &answer));
        assert!(!verify_server_proof(&Token::from_random([1; 9], [4; 32]), "nonce", &answer));
        assert!(!verify_server_proof(&token(), "nonce", ""));
    }

    #[test]
    fn what_is_no_proof_is_not_read() {
        let good = proof().to_subprotocol();
        let signed = good.replace("1700000000000", "+1700000000000");
        let short_nonce = good.replace("AwMDAwMDAwMDAwMDAwMDAw", "AwMD");
        for text in ["", "mcp", "crablet.proof.", "crablet.proof.a.b.1.c", &format!("{good}.x"), &signed, &short_nonce]
        {
            assert_eq!(ClientProof::parse(text), None, "{text}");
        }
    }

    #[test]
    fn debug_hides_the_code() {
        let code = base64url::encode(&proof().mac);
        assert!(!format!("{:?}", proof()).contains(&code));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = ClientProof::parse(&text);
            let _ = ClientProof::parse(&format!("crablet.proof.{text}"));
            let _ = verify_server_proof(&token(), &text, &text);
        }

        #[test]
        fn a_changed_code_is_refused(position in 0usize..32, bit in 0u32..8) {
            let mut changed = proof();
            changed.mac[position] ^= 1 << bit;
            prop_assert!(!changed.verify(&token(), PLACE));
        }
    }
}
