use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::token::{Token, is_key_id};
use crate::base64url;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, filled, quoted_list};

/// The subprotocol of a pairing.
pub const PAIRING_SUBPROTOCOL: &str = "crablet.pair.v1";

/// The path of a pairing.
pub const PAIRING_PATH: &str = "/pair";

/// A code that `crablet-shim pair` shows in the terminal and a person types into the page: 60 bits, good for a few minutes
/// and a few attempts.
///
/// Both sides derive the token from it, so that neither code nor token travels. Written `XXXX-XXXX-XXXX` in the alphabet of
/// Crockford's base 32, which has no letters that look like digits. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode(String);

impl PairingCode {
    /// A code made of unpredictable bytes.
    pub fn from_random(random: [u8; CODE_LETTERS]) -> Self {
        let letter = |byte: u8| ALPHABET.get(usize::from(byte % 32)).copied().map_or('0', char::from);
        Self(random.into_iter().map(letter).collect())
    }

    /// Reads a code as people type it: in either case, with or without dashes and spaces, `O` for zero, `I` or `L` for one.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the text is no code; the message does not repeat it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let letter = |typed: char| match typed.to_ascii_uppercase() {
            'O' => Some('0'),
            'I' | 'L' => Some('1'),
            letter => u8::try_from(letter).is_ok_and(|byte| ALPHABET.contains(&byte)).then_some(letter),
        };
        let typed = text.chars().filter(|typed| !matches!(typed, '-' | ' ' | '\t' | '\n' | '\r'));
        let letters: Option<String> = typed.map(letter).collect();
        letters.filter(|letters| letters.len() == CODE_LETTERS).map(Self).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                "this is not a pairing code; type the twelve letters and digits that `crablet-shim pair` shows",
            )
        })
    }

    /// The code as it is shown: in three groups. For the terminal of its owner, and for the file that it waits in.
    pub fn reveal(&self) -> String {
        let Self(letters) = self;
        let groups: Vec<&str> =
            (0..CODE_LETTERS).step_by(4).filter_map(|start| letters.get(start..start + 4)).collect();
        groups.join("-")
    }

    /// What the token is made of: the shared secret, bound to both nonces, the place and the servers.
    fn token(&self, request: &PairRequest, answer: &PairAnswer, context: PairContext<'_>) -> Token {
        let secret = self.mac("token", &answer.bound(request, context)).finalize().into_bytes();
        Token::from_parts(answer.key_id.clone(), secret.into())
    }

    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
    fn mac(&self, purpose: &str, text: &str) -> Hmac<Sha256> {
        let mac = Hmac::new_from_slice(self.0.as_bytes()).expect("HMAC takes keys of every length");
        mac.chain_update(format!("pair-{purpose}|{text}"))
    }
}

impl fmt::Debug for PairingCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PairingCode(…)")
    }
}

/// Where a pairing takes place, so that what one shim is told opens no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairContext<'a> {
    /// Host and port as dialled, such as `127.0.0.1:6735`.
    pub authority: &'a str,
    /// The origin of the page or extension; empty for a client that sends none.
    pub origin: &'a str,
}

/// The client's first and only frame: it knows the code.
#[derive(Clone, PartialEq, Eq)]
pub struct PairRequest {
    nonce: String,
    proof: Vec<u8>,
}

impl PairRequest {
    /// Shows knowledge of a code. The nonce must be unpredictable and never used before.
    pub fn new(code: &PairingCode, nonce: [u8; 16], context: PairContext<'_>) -> Self {
        let nonce = base64url::encode(&nonce);
        let proof = code.mac("client", &place(&nonce, context)).finalize().into_bytes().to_vec();
        Self { nonce, proof }
    }

    /// The frame: `{ "nonce", "proof" }`, both base64url, with
    /// `proof = HMAC-SHA256(code, "pair-client|<nonce>|<authority>|<origin>")`.
    pub fn to_frame(&self) -> Vec<u8> {
        filled(r#"{"nonce":$,"proof":$}"#, &[&self.nonce, &base64url::encode(&self.proof)]).into_bytes()
    }

    /// Reads a frame; nothing is verified yet.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let frame = Object::parse(std::str::from_utf8(frame).ok()?).ok()?;
        let nonce = frame.string("nonce").filter(|nonce| is_nonce(nonce))?;
        Some(Self { nonce, proof: base64url::decode(&frame.string("proof")?)? })
    }

    /// Whether it was made with this code for this place; compared in constant time.
    pub fn verify(&self, code: &PairingCode, context: PairContext<'_>) -> bool {
        code.mac("client", &place(&self.nonce, context)).verify_slice(&self.proof).is_ok()
    }
}

/// The shim's answer to a request that was right.
#[derive(Clone, PartialEq, Eq)]
pub struct PairAnswer {
    key_id: String,
    nonce: String,
    /// The servers that the token opens.
    servers: Vec<String>,
    proof: Vec<u8>,
}

impl PairAnswer {
    /// Answers a verified request, and gives the token that both sides have from now on. Both random values must be
    /// unpredictable.
    pub fn new(
        code: &PairingCode,
        request: &PairRequest,
        context: PairContext<'_>,
        (key_id, nonce): ([u8; 9], [u8; 16]),
        servers: Vec<String>,
    ) -> (Self, Token) {
        let (key_id, nonce) = (base64url::encode(&key_id), base64url::encode(&nonce));
        let mut answer = Self { key_id, nonce, servers, proof: Vec::new() };
        answer.proof = code.mac("shim", &answer.bound(request, context)).finalize().into_bytes().to_vec();
        let token = code.token(request, &answer, context);
        (answer, token)
    }

    /// The frame: `{ "keyId", "nonce", "servers", "proof" }`.
    pub fn to_frame(&self) -> Vec<u8> {
        let Self { key_id, nonce, servers, proof } = self;
        let values = [key_id, nonce, &quoted_list(servers), &base64url::encode(proof)];
        filled(r#"{"keyId":$,"nonce":$,"servers":@,"proof":$}"#, &values.map(String::as_str)).into_bytes()
    }

    /// Reads a frame; nothing is verified yet.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let frame = Object::parse(std::str::from_utf8(frame).ok()?).ok()?;
        Some(Self {
            key_id: frame.string("keyId").filter(|key_id| is_key_id(key_id))?,
            nonce: frame.string("nonce").filter(|nonce| is_nonce(nonce))?,
            servers: frame.read("servers")?,
            proof: base64url::decode(&frame.string("proof")?)?,
        })
    }

    /// The token and the servers that it opens, if the answer is of a shim that knows the code.
    pub fn accept(
        self,
        code: &PairingCode,
        request: &PairRequest,
        context: PairContext<'_>,
    ) -> Option<(Token, Vec<String>)> {
        code.mac("shim", &self.bound(request, context)).verify_slice(&self.proof).ok()?;
        let token = code.token(request, &self, context);
        Some((token, self.servers))
    }

    /// Everything that both sides agree on. The servers' names stand last, as JSON, since they may hold any letter.
    fn bound(&self, request: &PairRequest, context: PairContext<'_>) -> String {
        let Self { key_id, nonce, servers, .. } = self;
        format!("{}|{nonce}|{key_id}|{}", place(&request.nonce, context), quoted_list(servers))
    }
}

impl fmt::Debug for PairRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PairRequest").finish_non_exhaustive()
    }
}

impl fmt::Debug for PairAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PairAnswer").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

fn place(nonce: &str, context: PairContext<'_>) -> String {
    let PairContext { authority, origin } = context;
    format!("{nonce}|{authority}|{origin}")
}

fn is_nonce(text: &str) -> bool {
    base64url::decode(text).is_some_and(|bytes| bytes.len() == 16)
}

/// Sixty bits: more than can be tried while a code lives, by whoever heard the request and has the machines for it.
const CODE_LETTERS: usize = 12;

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLACE: PairContext<'_> = PairContext { authority: "127.0.0.1:6735", origin: "https://app.example" };

    fn code() -> PairingCode {
        PairingCode::from_random([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255])
    }

    fn answered(request: &PairRequest) -> (PairAnswer, Token) {
        PairAnswer::new(&code(), request, PLACE, ([7; 9], [8; 16]), vec!["files".into(), "a|b".into()])
    }

    #[test]
    fn a_code_is_read_as_people_type_it() {
        assert_eq!(code().reveal(), "1234-5678-9ABZ");
        for typed in ["1234-5678-9ABZ", "123456789abz", " l234 5678 9abz\n", "I234-5678-9ABZ"] {
            assert_eq!(PairingCode::parse(typed).unwrap(), code(), "{typed}");
        }
        for typed in ["", "1234-5678-9AB", "1234-5678-9ABU", "1234-5678-9ABZZ", "é234-5678-9ABZ"] {
            assert_eq!(PairingCode::parse(typed).unwrap_err().kind(), ErrorKind::InvalidInput, "{typed}");
        }
    }

    #[test]
    fn both_sides_have_the_same_token_and_it_is_in_no_frame() {
        let request = PairRequest::new(&code(), [3; 16], PLACE);
        let received = PairRequest::parse(&request.to_frame()).unwrap();
        assert!(received.verify(&code(), PLACE));
        let (answer, token) = answered(&received);
        let parsed = PairAnswer::parse(&answer.to_frame()).unwrap();
        let (accepted, servers) = parsed.accept(&code(), &request, PLACE).unwrap();
        assert_eq!((accepted, servers.as_slice()), (token.clone(), ["files".to_owned(), "a|b".to_owned()].as_slice()));
        let frames = [request.to_frame(), answer.to_frame()].concat();
        let secret = token.reveal().split_once('.').unwrap().1.to_owned();
        for hidden in [code().reveal(), secret, code().0] {
            assert!(!String::from_utf8_lossy(&frames).contains(&hidden));
        }
    }

    #[test]
    fn nothing_is_accepted_elsewhere_or_with_another_code() {
        let request = PairRequest::new(&code(), [3; 16], PLACE);
        let other = PairingCode::from_random([0; 12]);
        assert!(!request.verify(&other, PLACE));
        let elsewhere = [
            PairContext { authority: "127.0.0.1:6736", ..PLACE },
            PairContext { origin: "https://evil.example", ..PLACE },
            PairContext { origin: "", ..PLACE },
        ];
        for place in elsewhere {
            assert!(!request.verify(&code(), place), "{place:?}");
            assert!(answered(&request).0.accept(&code(), &request, place).is_none(), "{place:?}");
        }
        assert!(answered(&request).0.accept(&other, &request, PLACE).is_none());
        let another = PairRequest::new(&code(), [4; 16], PLACE);
        assert!(answered(&request).0.accept(&code(), &another, PLACE).is_none());
        let mut widened = answered(&request).0;
        widened.servers.push("shell".into());
        assert!(widened.accept(&code(), &request, PLACE).is_none());
    }

    #[test]
    fn debug_hides_the_code() {
        assert_eq!(format!("{:?}", code()), "PairingCode(…)");
    }

    proptest! {
        #[test]
        fn any_frame_is_read_or_refused(bytes: Vec<u8>, text: String) {
            let _ = (PairRequest::parse(&bytes), PairAnswer::parse(&bytes), PairingCode::parse(&text));
        }
    }
}
