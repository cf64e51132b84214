//! A conversation in a file.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind as IoErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Store};

/// Keeps the last snapshot of one conversation in a file.
///
/// A snapshot replaces the one before in one step, so the file holds a whole snapshot at any moment, also after a crash or
/// a power cut. While the store is open, nobody else can open it: a second writer would undo what the first one saved. The
/// lock is a file beside it, `<name>.lock`, and ends with the process at the latest.
#[derive(Clone, Debug)]
pub struct FileStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Held for as long as the store is open.
    _lock: File,
}

impl FileStore {
    /// Opens the store of this file, which need not exist yet. Its folder must.
    ///
    /// # Errors
    ///
    /// `conflict` while another store of this file is open, in this process or another; `storage` when the folder cannot be
    /// written.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let lock_path = beside(&path, "lock");
        let failed = |error| failure("opened", &lock_path, &error);
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self(Arc::new(Inner { path, _lock: lock }))),
            Err(TryLockError::WouldBlock) => {
                let message = format!("{} is open elsewhere: close it there, or use another file", path.display());
                Err(Error::new(ErrorKind::Conflict, message))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// The snapshot that was saved last, for [`Runner::restore`](crate::host::Runner::restore); `None` when there is none.
    ///
    /// # Errors
    ///
    /// `storage` when the file cannot be read.
    pub async fn load(&self) -> Result<Option<String>, Error> {
        let store = self.0.clone();
        blocking(move || match fs::read_to_string(&store.path) {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(error) if error.kind() == IoErrorKind::NotFound => Ok(None),
            Err(error) => Err(failure("read", &store.path, &error)),
        })
        .await
    }
}

impl Store for FileStore {
    fn save(&self, snapshot: String) -> BoxFuture<'static, Result<(), Error>> {
        let store = self.0.clone();
        Box::pin(blocking(move || {
            replace(&store.path, snapshot.as_bytes()).map_err(|error| failure("written", &store.path, &error))
        }))
    }
}

/// Writes a new file and puts it in the place of the old one, each step on the disk before the next.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let new_path = beside(path, "new");
    let mut new = File::create(&new_path)?;
    new.write_all(content)?;
    new.sync_all()?;
    fs::rename(&new_path, path)?;
    // Elsewhere than on Unix a folder cannot be synced, and need not be.
    if cfg!(unix)
        && let Some(folder) = path.parent()
    {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The path of a helper file: the whole name with a further extension.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
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
