use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::file_store::{FileEntry, FileError, FileKind, FileStore};
use super::path::{InvalidPath, normal_path};
use crate::host::BoxFuture;

/// Files in memory: for a conversation's own drafts, and for tests. All files together have at most 64 MiB.
#[derive(Default)]
pub struct MemoryFiles(Mutex<BTreeMap<String, Vec<u8>>>);

impl MemoryFiles {
    /// A store with these files, by path.
    ///
    /// # Errors
    ///
    /// When a path does not stay below the root.
    pub fn new<P: AsRef<str>, C: Into<Vec<u8>>>(files: impl IntoIterator<Item = (P, C)>) -> Result<Self, InvalidPath> {
        let normal = |(path, content): (P, C)| Ok((normal_path(path.as_ref())?, content.into()));
        Ok(Self(Mutex::new(files.into_iter().map(normal).collect::<Result<_, _>>()?)))
    }

    /// All files, by path.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        // Nothing fails while the lock is held, so a poisoned map is still a whole one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list_now(&self, folder: &str, limit: usize) -> Option<Vec<FileEntry>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let files = self.lock();
        let mut entries: Vec<FileEntry> = Vec::new();
        for (path, content) in files.range(prefix.clone()..) {
            let Some(rest) = path.strip_prefix(&prefix) else { break };
            let (name, kind) = match rest.split_once('/') {
                Some((name, _)) => (name, FileKind::Folder),
                None => (rest, FileKind::File(u64::try_from(content.len()).ok())),
            };
            if entries.last().is_none_or(|last| last.name != name) {
                if entries.len() >= limit {
                    break;
                }
                entries.push(FileEntry { name: name.to_owned(), kind });
            }
        }
        (folder.is_empty() || !entries.is_empty()).then_some(entries)
    }

    fn read_now(&self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, FileError> {
        let files = self.lock();
        let Some(content) = files.get(path) else { return Ok(None) };
        let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        if size > max_bytes {
            return Err(FileError::TooLarge { path: path.to_owned(), size, max_bytes });
        }
        Ok(Some(content.clone()))
    }

    fn write_now(&self, path: &str, content: Vec<u8>) -> Result<(), FileError> {
        let mut files = self.lock();
        let is_above = |above: &str, below: &str| below.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
        if let Some(other) = files.keys().find(|other| is_above(other, path) || is_above(path, other)) {
            let in_the_way = if is_above(path, other) { path } else { other };
            return Err(FileError::InTheWay(in_the_way.to_owned()));
        }
        let others: usize = files.iter().filter(|(other, _)| *other != path).map(|(_, content)| content.len()).sum();
        if others + content.len() > MAX_TOTAL_BYTES {
            let max_bytes = u64::try_from(MAX_TOTAL_BYTES).unwrap_or(u64::MAX);
            return Err(FileError::Full { path: path.to_owned(), max_bytes });
        }
        files.insert(path.to_owned(), content);
        Ok(())
    }
}

impl FileStore for MemoryFiles {
    fn list<'a>(&'a self, folder: &'a str, limit: usize) -> BoxFuture<'a, Result<Option<Vec<FileEntry>>, FileError>> {
        Box::pin(async move { Ok(self.list_now(folder, limit)) })
    }

    fn read<'a>(&'a self, path: &'a str, max_bytes: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>, FileError>> {
        Box::pin(async move { self.read_now(path, max_bytes) })
    }

    fn write<'a>(&'a self, path: &'a str, content: Vec<u8>) -> BoxFuture<'a, Result<(), FileError>> {
        Box::pin(async move { self.write_now(path, content) })
    }
}

impl fmt::Debug for MemoryFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.lock().keys()).finish()
    }
}

/// The most bytes of all files together.
const MAX_TOTAL_BYTES: usize = 64 * 1024 * 1024;
