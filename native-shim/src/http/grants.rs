//! Tokens for HTTP. Unlike those of the WebSocket they travel, with every request, so that they are a kind of their own:
//! neither front takes the other's.

use crablet::Millis;
use crablet::json::Object;
use crablet::mcp::transport::shim::Token;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::grants::{Kept, read_origins, read_time};
use crate::origin::{self, Origin};

/// A token that opens the HTTP front. Only its digest is kept: whoever reads the file cannot use it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HttpGrant {
    key_id: String,
    sha256: TokenDigest,
    /// The origins it works for; none for a program that sends no `Origin`.
    pub(crate) origins: Vec<Origin>,
    pub(crate) servers: Vec<String>,
    granted_at: Millis,
}

impl HttpGrant {
    /// A grant that this token opens.
    pub(crate) fn new(token: &Token, origins: Vec<Origin>, servers: Vec<String>, granted_at: Millis) -> Self {
        let sha256 = TokenDigest::of(&token.reveal());
        Self { key_id: token.key_id().to_owned(), sha256, origins, servers, granted_at }
    }

    /// Whether a text is the token. The secret has 256 random bits, so that its plain digest is as good as a slow one.
    pub(crate) fn is_opened_by(&self, text: &str) -> bool {
        TokenDigest::of(text).0.ct_eq(&self.sha256.0).into()
    }

    /// Whether a client with this `Origin` header, or without one, may use the token.
    pub(crate) fn allows_origin(&self, header: Option<&str>) -> bool {
        origin::allow(&self.origins, header)
    }

    pub(crate) fn allows_server(&self, server: &str) -> bool {
        self.servers.iter().any(|allowed| allowed == server)
    }

    /// Who it is for, for a list that people read.
    pub(crate) fn holder(&self) -> String {
        origin::list(&self.origins)
    }
}

impl Kept for HttpGrant {
    const FILE: &'static str = "http-grants.json";

    fn read(entry: &Object<'_>) -> Option<Self> {
        Some(Self {
            key_id: entry.string("keyId")?,
            sha256: TokenDigest::read(&entry.string("sha256")?)?,
            origins: read_origins(entry)?,
            servers: entry.read("servers")?,
            granted_at: read_time(entry),
        })
    }

    fn key_id(&self) -> &str {
        &self.key_id
    }

    fn servers(&self) -> &[String] {
        &self.servers
    }
}

/// The SHA-256 of a token as it is printed; written in hexadecimal.
#[derive(Clone, Debug)]
struct TokenDigest([u8; 32]);

impl TokenDigest {
    fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    fn read(hex: &str) -> Option<Self> {
        let digit = |place| u8::from_str_radix(hex.get(place..place + 2)?, 16).ok();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(digit).collect::<Option<_>>()?;
        bytes.try_into().ok().map(Self)
    }
}

impl Serialize for TokenDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::GrantFile;
    use crate::state::StateDirectory;

    #[test]
    fn a_token_is_known_again_and_cannot_be_read_from_the_file() {
        let directory = StateDirectory::scratch("http-grants");
        let file = GrantFile::<HttpGrant>::of(&directory);
        let token = Token::from_random([1; 9], [2; 32]);
        file.add(HttpGrant::new(&token, vec![], vec!["files".into()], Millis(1))).unwrap();
        let [grant] = file.read().unwrap().try_into().unwrap();
        assert!(grant.is_opened_by(&token.reveal()) && grant.allows_server("files"));
        assert!(!format!("{grant:?}{}", serde_json::to_string(&grant).unwrap()).contains(&token.reveal()[13..]));
        let others = [Token::from_random([1; 9], [3; 32]).reveal(), token.key_id().to_owned(), String::new()];
        assert!(others.iter().all(|other| !grant.is_opened_by(other)));
        assert!(file.revoke(token.key_id()).unwrap());
        assert!(file.read().unwrap().is_empty());
        directory.remove();
    }

    #[test]
    fn an_entry_with_a_digest_that_is_none_opens_nothing() {
        for digest in ["", "00", "zz", "é", &"0".repeat(63), &"0".repeat(66)] {
            let text = format!(r#"{{"keyId":"a","sha256":"{digest}","origins":[],"servers":[]}}"#);
            assert!(HttpGrant::read(&Object::parse(&text).unwrap()).is_none(), "{digest:?}");
        }
    }
}
