//! The tokens at rest: one file that only its owner can read.

use std::marker::PhantomData;

use crablet::Millis;
use crablet::json::Object;
use crablet::mcp::transport::shim::Token;
use serde::{Serialize, Serializer};

use crate::extension::ExtensionId;
use crate::origin::{self, Origin};
use crate::state::{PrivateFile, StateDirectory, StateError};

/// A token and what it opens.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Grant {
    #[serde(serialize_with = "reveal")]
    pub(crate) token: Token,
    /// The origins it works for; none for a program that sends no `Origin`, and for an extension.
    pub(crate) origins: Vec<Origin>,
    /// The extension that uses it over native messaging, and nobody otherwise: its token is never shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extension: Option<ExtensionId>,
    pub(crate) servers: Vec<String>,
    /// Whether its holder may offer tools to local agents, and how freely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exposes: Option<Exposure>,
    /// Whether the token itself opens a server too, from clients of plain `mcp`, and not only a proof of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) plain: bool,
    pub(crate) granted_at: Millis,
}

/// What a page may offer to local agents without being asked for again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Exposure {
    /// Tools that may destroy something, or do not say that they do not.
    pub(crate) allow_destructive: bool,
    /// Tools that are new or changed since the page first showed its tools.
    pub(crate) accept_changes: bool,
}

impl Exposure {
    pub(crate) fn read(object: &Object<'_>) -> Self {
        let says = |name| object.boolean(name).unwrap_or_default();
        Self { allow_destructive: says("allowDestructive"), accept_changes: says("acceptChanges") }
    }
}

impl Grant {
    /// A token for pages, or for programs where there are no origins.
    pub(crate) fn new(token: Token, origins: Vec<Origin>, servers: Vec<String>, granted_at: Millis) -> Self {
        Self { token, origins, extension: None, servers, exposes: None, plain: false, granted_at }
    }

    /// Whether a client with this `Origin` header, or without one, may use the token.
    pub(crate) fn allows_origin(&self, header: Option<&str>) -> bool {
        self.extension.is_none() && origin::allow(&self.origins, header)
    }

    /// Whether the token opens this server, or [`EXPOSING`].
    pub(crate) fn allows_server(&self, server: &str) -> bool {
        if server == EXPOSING { self.exposes.is_some() } else { self.servers.iter().any(|allowed| allowed == server) }
    }

    /// Who it is for, for a list that people read.
    pub(crate) fn holder(&self) -> String {
        let holder = match &self.extension {
            Some(extension) => format!("the extension {extension}, over native messaging"),
            None => origin::list(&self.origins),
        };
        if self.plain { format!("{holder}, also as it is (mcp.auth)") } else { holder }
    }
}

/// In the place of a server's name: the client offers tools of its own. No server has an empty name.
pub(crate) const EXPOSING: &str = "";

/// What a grant file holds.
pub(crate) trait Kept: Serialize + Sized {
    /// The name of the file.
    const FILE: &'static str;

    /// An entry that this version understands. One that it does not opens nothing.
    fn read(entry: &Object<'_>) -> Option<Self>;

    /// The public part of the token, which names the grant.
    fn key_id(&self) -> &str;

    /// The servers that it opens.
    fn servers(&self) -> &[String];
}

impl Kept for Grant {
    const FILE: &'static str = "grants.json";

    fn read(entry: &Object<'_>) -> Option<Self> {
        let extension = match entry.get("extension") {
            Some(_) => Some(ExtensionId::parse(&entry.string("extension")?).ok()?),
            None => None,
        };
        let token = Token::parse(&entry.string("token")?).ok()?;
        let exposes = entry.object("exposes").map(|exposes| Exposure::read(&exposes));
        let grant = Self::new(token, read_origins(entry)?, entry.read("servers")?, read_time(entry));
        let plain = entry.boolean("plain").unwrap_or_default();
        Some(Self { extension, exposes, plain, ..grant })
    }

    fn key_id(&self) -> &str {
        self.token.key_id()
    }

    fn servers(&self) -> &[String] {
        &self.servers
    }
}

/// A file of grants. Every call reads it anew, so that what another run of the program granted or revoked counts at
/// once.
#[derive(Clone, Debug)]
pub(crate) struct GrantFile<G = Grant> {
    file: PrivateFile,
    holds: PhantomData<fn() -> G>,
}

/// Why a grant cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrantError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the file holds {MAX_GRANTS} tokens already; revoke some (`crablet-shim tokens` lists them)")]
    TooMany,
}

impl<G: Kept> GrantFile<G> {
    /// The file in this directory.
    pub(crate) fn of(directory: &StateDirectory) -> Self {
        Self { file: directory.file(G::FILE), holds: PhantomData }
    }

    /// The grants; none when there is no file yet.
    pub(crate) fn read(&self) -> Result<Vec<G>, GrantError> {
        Ok(self.file.read(LIST, G::read)?)
    }

    /// Adds a grant.
    pub(crate) fn add(&self, grant: G) -> Result<(), GrantError> {
        self.file.change(LIST, G::read, |grants| {
            if grants.len() >= MAX_GRANTS {
                return Err(GrantError::TooMany);
            }
            grants.push(grant);
            Ok(())
        })?
    }

    /// Removes the grants of a key id, and says whether there was one.
    pub(crate) fn revoke(&self, key_id: &str) -> Result<bool, GrantError> {
        let removed = self.file.change(LIST, G::read, |grants| {
            let before = grants.len();
            grants.retain(|grant| grant.key_id() != key_id);
            grants.len() < before
        });
        Ok(removed?)
    }
}

impl GrantFile {
    /// Lets an extension use exactly these servers over native messaging, under this token unless it may use them already.
    pub(crate) fn allow_extension(
        &self,
        extension: &ExtensionId,
        servers: &[String],
        token: Token,
        now: Millis,
    ) -> Result<(), GrantError> {
        self.file.change(LIST, Grant::read, |grants| {
            let is_its = |grant: &Grant| grant.extension.as_ref() == Some(extension);
            if grants.iter().any(|grant| is_its(grant) && grant.servers == servers) {
                return Ok(());
            }
            grants.retain(|grant| !is_its(grant));
            if grants.len() >= MAX_GRANTS {
                return Err(GrantError::TooMany);
            }
            let extension = Some(extension.clone());
            grants.push(Grant { extension, ..Grant::new(token, Vec::new(), servers.to_vec(), now) });
            Ok(())
        })?
    }

    /// Removes what an extension was allowed over native messaging.
    pub(crate) fn forget_extension(&self, extension: &ExtensionId) -> Result<(), GrantError> {
        let forget = |grants: &mut Vec<Grant>| grants.retain(|grant| grant.extension.as_ref() != Some(extension));
        Ok(self.file.change(LIST, Grant::read, forget)?)
    }
}

/// A token that nobody has yet.
pub(crate) fn new_token() -> Result<Token, getrandom::Error> {
    let (mut key_id, mut secret) = ([0; 9], [0; 32]);
    getrandom::fill(&mut key_id)?;
    getrandom::fill(&mut secret)?;
    Ok(Token::from_random(key_id, secret))
}

/// The `origins` of an entry; `None` when one of them is none.
pub(crate) fn read_origins(entry: &Object<'_>) -> Option<Vec<Origin>> {
    let origins: Vec<String> = entry.read("origins")?;
    origins.iter().map(|origin| Origin::parse(origin)).collect::<Result<_, _>>().ok()
}

/// When an entry was granted.
pub(crate) fn read_time(entry: &Object<'_>) -> Millis {
    Millis(entry.integer("grantedAt").unwrap_or(0))
}

fn reveal<S: Serializer>(token: &Token, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&token.reveal())
}

/// The name of the list in the file.
const LIST: &str = "grants";

/// More than anyone keeps apart by hand; the file is read at every connection.
const MAX_GRANTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(key: u8, origins: &[&str]) -> Grant {
        let origins = origins.iter().map(|origin| Origin::parse(origin).unwrap()).collect();
        Grant::new(Token::from_random([key; 9], [2; 32]), origins, vec!["files".into()], Millis(1))
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

    #[test]
    fn what_an_extension_may_use_is_replaced_and_opens_nothing_else() {
        let directory = StateDirectory::scratch("extension-grants");
        let file = GrantFile::of(&directory);
        let extension = ExtensionId::parse("notes@example.org").unwrap();
        let allow = |key, servers: &[&str]| {
            let servers: Vec<_> = servers.iter().map(|server| (*server).to_owned()).collect();
            file.allow_extension(&extension, &servers, Token::from_random([key; 9], [2; 32]), Millis(1)).unwrap();
            file.read().unwrap()
        };
        file.add(grant(1, &["https://a.example"])).unwrap();
        let first = allow(2, &["files"]);
        assert_eq!(first.len(), 2);
        assert!(!first[1].allows_origin(None) && !first[1].allows_origin(Some("")));
        assert_eq!(allow(3, &["files"])[1].token, first[1].token);
        let replaced = allow(4, &["files", "notes"]);
        assert_eq!((replaced.len(), replaced[1].servers.len()), (2, 2));
        file.forget_extension(&extension).unwrap();
        assert_eq!(file.read().unwrap().len(), 1);
        directory.remove();
    }
}
