//! The tokens at rest: one file that only its owner can read.

use crablet::Millis;
use crablet::json::Object;
use crablet::mcp::transport::shim::Token;
use serde::{Serialize, Serializer};

use crate::origin::Origin;
use crate::state::{PrivateFile, StateDirectory, StateError};

/// A token and what it opens.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Grant {
    #[serde(serialize_with = "reveal")]
    pub(crate) token: Token,
    /// The origins it works for; none for a program that sends no `Origin`.
    pub(crate) origins: Vec<Origin>,
    pub(crate) servers: Vec<String>,
    pub(crate) granted_at: Millis,
}

impl Grant {
    /// Whether a client with this `Origin` header, or without one, may use the token.
    pub(crate) fn allows_origin(&self, header: Option<&str>) -> bool {
        match header {
            Some(header) => self.origins.iter().any(|origin| origin.matches(header)),
            None => self.origins.is_empty(),
        }
    }

    pub(crate) fn allows_server(&self, server: &str) -> bool {
        self.servers.iter().any(|allowed| allowed == server)
    }
}

/// The file of grants. Every call reads it anew, so that what another run of the program granted or revoked counts at
/// once.
#[derive(Clone, Debug)]
pub(crate) struct GrantFile(PrivateFile);

/// Why a grant cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrantError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the file holds {MAX_GRANTS} tokens already; revoke some (`crablet-shim tokens` lists them)")]
    TooMany,
}

impl GrantFile {
    /// The file in this directory.
    pub(crate) fn of(directory: &StateDirectory) -> Self {
        Self(directory.file("grants.json"))
    }

    /// The grants; none when there is no file yet.
    pub(crate) fn read(&self) -> Result<Vec<Grant>, GrantError> {
        Ok(self.0.read("grants", read_grant)?)
    }

    /// Adds a grant.
    pub(crate) fn add(&self, grant: Grant) -> Result<(), GrantError> {
        self.0.change("grants", read_grant, |grants| {
            if grants.len() >= MAX_GRANTS {
                return Err(GrantError::TooMany);
            }
            grants.push(grant);
            Ok(())
        })?
    }

    /// Removes the grants of a key id, and says whether there was one.
    pub(crate) fn revoke(&self, key_id: &str) -> Result<bool, GrantError> {
        let removed = self.0.change("grants", read_grant, |grants| {
            let before = grants.len();
            grants.retain(|grant| grant.token.key_id() != key_id);
            grants.len() < before
        });
        Ok(removed?)
    }
}

/// A grant that this version understands. One that it does not opens nothing.
fn read_grant(object: &Object<'_>) -> Option<Grant> {
    let origins: Vec<String> = object.read("origins")?;
    let origins = origins.iter().map(|origin| Origin::parse(origin)).collect::<Result<_, _>>().ok()?;
    Some(Grant {
        token: Token::parse(&object.string("token")?).ok()?,
        origins,
        servers: object.read("servers")?,
        granted_at: Millis(object.integer("grantedAt").unwrap_or(0)),
    })
}

fn reveal<S: Serializer>(token: &Token, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&token.reveal())
}

/// More than anyone keeps apart by hand; the file is read at every connection.
const MAX_GRANTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(key: u8, origins: &[&str]) -> Grant {
        Grant {
            token: Token::from_random([key; 9], [2; 32]),
            origins: origins.iter().map(|origin| Origin::parse(origin).unwrap()).collect(),
            servers: vec!["files".into()],
            granted_at: Millis(1),
        }
    }

    #[test]
    fn a_grant_is_kept_until_it_is_revoked() {
        let directory = StateDirectory::scratch("grants");
        let file = GrantFile::of(&directory);
        assert!(file.read().unwrap().is_empty());
        file.add(grant(1, &["https://a.example"])).unwrap();
        file.add(grant(2, &[])).unwrap();
        assert_eq!(file.read().unwrap().len(), 2);
        let key = grant(1, &[]).token.key_id().to_owned();
        assert!(file.revoke(&key).unwrap());
        assert!(!file.revoke(&key).unwrap());
        assert_eq!(file.read().unwrap().len(), 1);
        directory.remove();
    }

    #[test]
    fn origins_are_compared_whole() {
        let web = grant(1, &["https://a.example"]);
        assert!(web.allows_origin(Some("https://a.example")));
        for other in [None, Some("null"), Some("https://a.example.evil"), Some("http://a.example"), Some("")] {
            assert!(!web.allows_origin(other), "{other:?}");
        }
        let native = grant(1, &[]);
        assert!(native.allows_origin(None) && !native.allows_origin(Some("https://a.example")));
    }
}
