//! What the shim remembers between its runs: small JSON files that only their owner can read.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crablet::json::Object;
use serde::Serialize;

use crate::owner_only;

/// The directory of these files, mode 0700.
#[derive(Clone, Debug)]
pub(crate) struct StateDirectory(PathBuf);

/// A file with a list of entries, mode 0600. Every call reads it anew, since other runs of the program change it.
#[derive(Clone, Debug)]
pub(crate) struct PrivateFile {
    directory: PathBuf,
    name: &'static str,
    most_bytes: u64,
}

/// What tells one state of a file from the next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Version {
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Version {
    /// `None` when there is no file.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        let metadata = fs::metadata(file).ok()?;
        Some(Self { modified: metadata.modified().ok(), bytes: metadata.len() })
    }
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("no directory for the tokens is known; set HOME (LOCALAPPDATA on Windows), or name one with --state-dir")]
    NoDirectory,
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("{0} can be read by others; run `chmod 600 {0}`, and revoke the tokens if others may have read it")]
    Exposed(String),
    #[error("{}: not a file of the shim; repair it, or delete it and grant anew", .0.display())]
    Malformed(PathBuf),
}

impl StateDirectory {
    /// The directory that the caller chose, or that of the user.
    pub(crate) fn locate(chosen: Option<PathBuf>) -> Result<Self, StateError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let of_user = || match variable("XDG_STATE_HOME") {
            Some(state) => Some(state.join("crablet")),
            None if cfg!(windows) => variable("LOCALAPPDATA").map(|data| data.join("crablet")),
            None if cfg!(target_os = "macos") => {
                variable("HOME").map(|home| home.join("Library/Application Support/crablet"))
            }
            None => variable("HOME").map(|home| home.join(".local/state/crablet")),
        };
        chosen.or_else(of_user).map(Self).ok_or(StateError::NoDirectory)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &'static str) -> PrivateFile {
        PrivateFile { directory: self.0.clone(), name, most_bytes: MAX_FILE_BYTES }
    }

    /// A file whose entries hold what strangers sent.
    pub(crate) fn large_file(&self, name: &'static str) -> PrivateFile {
        PrivateFile { most_bytes: MAX_LARGE_FILE_BYTES, ..self.file(name) }
    }

    /// Makes the directory if there is none.
    pub(crate) fn create(&self) -> io::Result<()> {
        owner_only::create_directory(&self.0)
    }
}

impl PrivateFile {
    /// The entries of the list; none when there is no file yet. Those that this version does not understand are left out.
    pub(crate) fn read<T>(
        &self,
        list: &str,
        read_entry: impl Fn(&Object<'_>) -> Option<T>,
    ) -> Result<Vec<T>, StateError> {
        let path = self.path();
        let failed = |error| StateError::File { file: path.clone(), error };
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(failed)?,
        };
        if owner_only::is_exposed(&file.metadata().map_err(failed)?) {
            return Err(StateError::Exposed(path.display().to_string()));
        }
        let mut text = String::new();
        file.take(self.most_bytes).read_to_string(&mut text).map_err(failed)?;
        let file = Object::parse(&text).map_err(|_| StateError::Malformed(path.clone()))?;
        Ok(file.objects(list).iter().filter_map(read_entry).collect())
    }

    /// Changes the list while no other run of the program does.
    pub(crate) fn change<T: Serialize, R>(
        &self,
        list: &str,
        read_entry: impl Fn(&Object<'_>) -> Option<T>,
        edit: impl FnOnce(&mut Vec<T>) -> R,
    ) -> Result<R, StateError> {
        let failed = |error| StateError::File { file: self.directory.clone(), error };
        StateDirectory(self.directory.clone()).create().map_err(failed)?;
        let lock = owner_only::open(&self.directory.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut entries = self.read(list, read_entry)?;
        let outcome = edit(&mut entries);
        let text = serde_json::to_string_pretty(&serde_json::json!({ "version": 1, list: entries }))
            .map_err(|error| failed(error.into()))?;
        // Written aside and renamed, so that a reader sees the old file or the new one.
        let draft = self.directory.join(format!("{}.new", self.name));
        let written = owner_only::open(&draft).and_then(|mut file| {
            file.set_len(0)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, self.path())
        });
        written.map_err(failed)?;
        Ok(outcome)
    }

    /// Tells one state of the file from the next.
    pub(crate) fn version(&self) -> Option<Version> {
        Version::of(&self.path())
    }

    fn path(&self) -> PathBuf {
        self.directory.join(self.name)
    }
}

/// Room for hundreds of entries with long lists.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Room for some hundred definitions of tools, each up to 32 KiB.
const MAX_LARGE_FILE_BYTES: u64 = 32 << 20;

#[cfg(test)]
impl StateDirectory {
    /// A directory that no other test has.
    pub(crate) fn scratch(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("crablet-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        Self(directory)
    }

    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
#[path = "state_golden_tests.rs"]
mod golden_tests;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn word(entry: &Object<'_>) -> Option<serde_json::Value> {
        Some(serde_json::json!({ "word": entry.string("word")? }))
    }

    #[test]
    fn entries_are_kept_for_their_owner_only() {
        let directory = StateDirectory::scratch("state");
        let file = directory.file("words.json");
        assert!(file.read("words", word).unwrap().is_empty());
        file.change("words", word, |words| words.push(serde_json::json!({ "word": "a" }))).unwrap();
        file.change("words", word, |words| words.push(serde_json::json!({ "unknown": "b" }))).unwrap();
        assert_eq!(file.read("words", word).unwrap().len(), 1);
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&file.directory).unwrap().permissions().mode() & 0o777, 0o700);
        directory.remove();
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let directory = StateDirectory::scratch("exposed");
        let file = directory.file("words.json");
        file.change("words", word, |words| words.push(serde_json::json!({ "word": "a" }))).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(file.read("words", word), Err(StateError::Exposed(_))));
        directory.remove();
    }
}
