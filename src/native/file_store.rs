//! Conversations in a folder.

use std::fs::{self, File};
use std::io::{ErrorKind as IoErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Store, Stored, conflict};

/// Keeps conversations in a folder, each in a folder of its own below it with a file for each write.
///
/// A file is named after the version it makes and appears under that name whole and at once, and only if there is none of
/// that name yet. So of two writers, in this process or another, one is refused with `conflict`, and a crash or a power cut
/// leaves no half of a checkpoint. There is no lock that could stay behind. The file store of the npm package reads and
/// writes the same files. The file system must know hard links, as all common ones but FAT do.
#[derive(Clone, Debug)]
pub struct FileStore {
    folder: PathBuf,
}

impl FileStore {
    /// The store of this folder. It is made with the first write.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn place(&self, id: &str) -> Result<Place, Error> {
        let name = encoded(id);
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            let message = format!("the id of a conversation has 1 to {MAX_NAME_BYTES} letters, and {id:?} does not");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(Place { id: id.to_owned(), folder: self.folder.join(name) })
    }

    fn write(&self, id: &str, expected: u64, lines: String, kind: Writing) -> BoxFuture<'static, Result<u64, Error>> {
        let place = self.place(id);
        Box::pin(blocking(move || place?.write(expected, lines.as_bytes(), kind)))
    }
}

impl Store for FileStore {
    fn read(&self, id: &str) -> BoxFuture<'static, Result<Option<Stored>, Error>> {
        let place = self.place(id);
        Box::pin(blocking(move || place?.read()))
    }

    fn append(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>> {
        self.write(id, expected, lines, Writing::Append)
    }

    fn replace(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>> {
        self.write(id, expected, lines, Writing::Replace)
    }

    fn delete(&self, id: &str) -> BoxFuture<'static, Result<(), Error>> {
        let place = self.place(id);
        Box::pin(blocking(move || {
            let Place { folder, .. } = place?;
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != IoErrorKind::NotFound => Err(failure("removed", &folder, &error)),
                _ => Ok(()),
            }
        }))
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        let folder = self.folder.clone();
        Box::pin(blocking(move || {
            let mut ids = Vec::new();
            for name in names(&folder)? {
                if let Some(id) = decoded(&name)
                    && !versions(&folder.join(&name))?.is_empty()
                {
                    ids.push(id);
                }
            }
            ids.sort_unstable();
            Ok(ids)
        }))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Writing {
    Append,
    Replace,
}

/// Where one conversation is kept.
struct Place {
    id: String,
    folder: PathBuf,
}

impl Place {
    fn read(&self) -> Result<Option<Stored>, Error> {
        for _ in 0..MAX_READS {
            let versions = versions(&self.folder)?;
            let Some(version) = versions.last().copied() else { return Ok(None) };
            if let Some(text) = self.text(&versions)? {
                return Ok(Some(Stored { version, text }));
            }
            // Somebody replaced it meanwhile.
        }
        Err(conflict(&self.id, 0))
    }

    /// The files from the latest that is a whole conversation; `None` when one is gone.
    fn text(&self, versions: &[u64]) -> Result<Option<String>, Error> {
        let mut texts = Vec::new();
        for version in versions.iter().rev() {
            let path = self.file(*version);
            match fs::read_to_string(&path) {
                Ok(text) => texts.push(text),
                Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(failure("read", &path, &error)),
            }
            if texts.last().is_some_and(|text| text.starts_with(BEGINNING)) {
                break;
            }
        }
        texts.reverse();
        Ok(Some(texts.concat()))
    }

    fn write(&self, expected: u64, lines: &[u8], kind: Writing) -> Result<u64, Error> {
        let failed = |error: std::io::Error| failure("written", &self.folder, &error);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let version = expected + 1;
        let path = self.file(version);
        let unfinished = self.folder.join(format!(
            ".{version}-{}-{}",
            std::process::id(),
            UNFINISHED.fetch_add(1, Ordering::Relaxed)
        ));
        let outcome = write_synced(&unfinished, lines).and_then(|()| fs::hard_link(&unfinished, &path));
        let _gone = fs::remove_file(&unfinished);
        match outcome {
            Err(error) if matches!(error.kind(), IoErrorKind::AlreadyExists | IoErrorKind::NotFound) => {
                return Err(conflict(&self.id, expected));
            }
            outcome => outcome.map_err(failed)?,
        }
        if !self.follows(expected)? {
            fs::remove_file(&path).map_err(failed)?;
            return Err(conflict(&self.id, expected));
        }
        sync_folder(&self.folder).map_err(failed)?;
        if kind == Writing::Replace {
            self.forget_before(version)?;
        }
        Ok(version)
    }

    /// Whether the version that was just written is the one after the expected one, and not one that another writer has left
    /// behind. Whoever replaces a conversation removes its older files from the oldest on: while the expected one is
    /// there, so was every later one.
    fn follows(&self, expected: u64) -> Result<bool, Error> {
        if expected == 0 { Ok(versions(&self.folder)? == [1]) } else { Ok(self.file(expected).exists()) }
    }

    fn forget_before(&self, version: u64) -> Result<(), Error> {
        let older = versions(&self.folder)?.into_iter().filter(|older| *older < version);
        for path in older.map(|older| self.file(older)) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != IoErrorKind::NotFound => return Err(failure("removed", &path, &error)),
                _ => {}
            }
        }
        // What a writer was at when its process ended.
        for name in names(&self.folder)? {
            let made = name.strip_prefix('.').and_then(|rest| rest.split('-').next()?.parse::<u64>().ok());
            if made.is_some_and(|made| made <= version) {
                let _gone = fs::remove_file(self.folder.join(name));
            }
        }
        Ok(())
    }

    fn file(&self, version: u64) -> PathBuf {
        self.folder.join(format!("{version:010}{EXTENSION}"))
    }
}

fn write_synced(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Elsewhere than on Unix a folder cannot be synced, and need not be.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// The versions that have a file, in order.
fn versions(folder: &Path) -> Result<Vec<u64>, Error> {
    let names = names(folder)?;
    let mut versions: Vec<u64> = names.iter().filter_map(|name| name.strip_suffix(EXTENSION)?.parse().ok()).collect();
    versions.sort_unstable();
    Ok(versions)
}

/// The names in a folder; none when it is not there.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = |error: std::io::Error| failure("read", folder, &error);
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), IoErrorKind::NotFound | IoErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    Ok(names)
}

/// An id as the name of a folder: what is not plain becomes `%` and two hexadecimal digits.
fn encoded(id: &str) -> String {
    let mut name = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|id| encoded(id) == name)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::new(ErrorKind::Storage, "the runtime ended before the file was written")),
    }
}

fn failure(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Storage, format!("{} could not be {what}: {error}", path.display()))
}

/// How a text begins that is a whole conversation and not an addition to one.
const BEGINNING: &str = "{\"format\":";

const EXTENSION: &str = ".jsonl";

/// File systems allow 255 bytes.
const MAX_NAME_BYTES: usize = 200;

/// How often a conversation may be replaced while it is read.
const MAX_READS: u32 = 10;

/// Makes the names of unfinished files.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);
