//! The tokens at rest: one file that only its owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crablet::Millis;
use crablet::json::Object;
use crablet::mcp::transport::shim::Token;
use serde::{Serialize, Serializer};

use crate::origin::Origin;

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
pub(crate) struct GrantFile {
    directory: PathBuf,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrantError {
    #[error("no directory for the tokens is known; set HOME, or name one with --state-dir")]
    NoDirectory,
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("{0} can be read by others; run `chmod 600 {0}`, and revoke the tokens if others may have read it")]
    Exposed(String),
    #[error("{}: not a file of tokens; repair it, or delete it and grant anew", .0.display())]
    Malformed(PathBuf),
    #[error("the file holds {MAX_GRANTS} tokens already; revoke some (`crablet-shim tokens` lists them)")]
    TooMany,
}

impl GrantFile {
    /// The file in the directory that the caller chose, or in the user's state directory.
    pub(crate) fn locate(chosen: Option<PathBuf>) -> Result<Self, GrantError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let of_user = || match variable("XDG_STATE_HOME") {
            Some(state) => Some(state.join("crablet")),
            None if cfg!(target_os = "macos") => {
                variable("HOME").map(|home| home.join("Library/Application Support/crablet"))
            }
            None => variable("HOME").map(|home| home.join(".local/state/crablet")),
        };
        let directory = chosen.or_else(of_user).ok_or(GrantError::NoDirectory)?;
        Ok(Self { directory })
    }

    /// The grants; none when there is no file yet.
    pub(crate) fn read(&self) -> Result<Vec<Grant>, GrantError> {
        let path = self.path();
        let failed = |error| GrantError::File { file: path.clone(), error };
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(failed)?,
        };
        if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(GrantError::Exposed(path.display().to_string()));
        }
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        let file = Object::parse(&text).map_err(|_| GrantError::Malformed(path.clone()))?;
        Ok(file.objects("grants").iter().filter_map(read_grant).collect())
    }

    /// Adds a grant.
    pub(crate) fn add(&self, grant: Grant) -> Result<(), GrantError> {
        self.change(|grants| {
            if grants.len() >= MAX_GRANTS {
                return Err(GrantError::TooMany);
            }
            grants.push(grant);
            Ok(())
        })
    }

    /// Removes the grants of a key id, and says whether there was one.
    pub(crate) fn revoke(&self, key_id: &str) -> Result<bool, GrantError> {
        self.change(|grants| {
            let before = grants.len();
            grants.retain(|grant| grant.token.key_id() != key_id);
            Ok(grants.len() < before)
        })
    }

    fn change<T>(&self, edit: impl FnOnce(&mut Vec<Grant>) -> Result<T, GrantError>) -> Result<T, GrantError> {
        let failed = |error| GrantError::File { file: self.directory.clone(), error };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).map_err(failed)?;
        let lock = private_file(&self.directory.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut grants = self.read()?;
        let outcome = edit(&mut grants)?;
        let text = serde_json::to_string_pretty(&serde_json::json!({ "version": 1, "grants": grants }))
            .map_err(|error| failed(error.into()))?;
        // Written aside and renamed, so that a reader sees the old file or the new one.
        let draft = self.directory.join("grants.json.new");
        let written = private_file(&draft).and_then(|mut file| {
            file.set_len(0)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, self.path())
        });
        written.map_err(failed)?;
        Ok(outcome)
    }

    fn path(&self) -> PathBuf {
        self.directory.join("grants.json")
    }
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
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

/// Room for [`MAX_GRANTS`] with long lists.
const MAX_FILE_BYTES: u64 = 1 << 20;

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

    fn file(name: &str) -> GrantFile {
        let directory = std::env::temp_dir().join(format!("crablet-grants-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        GrantFile::locate(Some(directory)).unwrap()
    }

    #[test]
    fn a_grant_is_kept_for_its_owner_only_until_it_is_revoked() {
        let file = file("kept");
        assert!(file.read().unwrap().is_empty());
        file.add(grant(1, &["https://a.example"])).unwrap();
        file.add(grant(2, &[])).unwrap();
        assert_eq!(file.read().unwrap().len(), 2);
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&file.directory).unwrap().permissions().mode() & 0o777, 0o700);
        let key = grant(1, &[]).token.key_id().to_owned();
        assert!(file.revoke(&key).unwrap());
        assert!(!file.revoke(&key).unwrap());
        assert_eq!(file.read().unwrap().len(), 1);
        fs::remove_dir_all(&file.directory).unwrap();
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let file = file("exposed");
        file.add(grant(1, &[])).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(file.read(), Err(GrantError::Exposed(_))));
        fs::remove_dir_all(&file.directory).unwrap();
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
