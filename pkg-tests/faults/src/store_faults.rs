//! A store that fails: the real file store, and whatever happens between it and the session.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crablet::host::{BoxFuture, Store, Stored};
use crablet::native::FileStore;
use crablet::{Error, ErrorKind};
use tokio::sync::{Notify, Semaphore};

use crate::store_damage::{self, ReadAct, WriteAct};
use crate::world::World;

/// The file store of one script, under faults.
#[derive(Clone)]
pub(crate) struct FaultyStore {
    inner: Arc<FileStore>,
    folder: PathBuf,
    world: Arc<World>,
    seed: u64,
    /// Is told when a call never answers.
    pub(crate) stalled: Arc<Notify>,
    has_stalled: Arc<AtomicBool>,
    /// Closed when the script is over: then what never answered fails, as every connection does at last.
    over: Arc<Semaphore>,
    /// Whether what was read last was damaged: such a session is only looked at.
    pub(crate) is_damaged: Arc<AtomicBool>,
}

#[derive(Clone, Copy)]
enum Write {
    Append,
    Replace,
}

impl FaultyStore {
    pub(crate) fn new(folder: PathBuf, world: Arc<World>, seed: u64) -> Self {
        let inner = Arc::new(FileStore::new(&folder));
        Self {
            inner,
            folder,
            world,
            seed,
            stalled: Arc::default(),
            has_stalled: Arc::default(),
            over: Arc::new(Semaphore::new(0)),
            is_damaged: Arc::default(),
        }
    }

    async fn write(self, id: String, expected: u64, lines: String, how: Write) -> Result<u64, Error> {
        let write = || match how {
            Write::Append => self.inner.append(&id, expected, lines.clone()),
            Write::Replace => self.inner.replace(&id, expected, lines.clone()),
        };
        let Some((act, mishap)) = store_damage::write(&self.world, self.seed, expected, lines.len()) else {
            return write().await;
        };
        match act {
            WriteAct::NotWritten => {}
            WriteAct::Unacknowledged => drop(write().await),
            WriteAct::HalfWritten { bytes } => {
                let unfinished = self.folder.join(&id).join(format!(".{}-1-1", expected + 1));
                let _no_folder_yet = std::fs::write(unfinished, &lines.as_bytes()[..bytes]);
            }
            WriteAct::Twice { is_first } => {
                let first = write().await;
                let second = write().await;
                mishap.happened();
                if second.is_ok() {
                    let told = "the store took a second write of the same version";
                    return Err(Error::new(ErrorKind::Internal, told));
                }
                return if is_first { first } else { second };
            }
            WriteAct::AnotherVersion { further } => {
                let version = write().await?;
                mishap.happened();
                return Ok(version + further);
            }
            WriteAct::Unanswered { is_written } => {
                if is_written {
                    let _unsaid = write().await;
                }
                mishap.happened();
                self.stall().await;
                return Err(gone());
            }
            WriteAct::Late { milliseconds } => {
                mishap.happened();
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                return write().await;
            }
        }
        mishap.happened();
        Err(gone())
    }

    /// Whether a call has been kept waiting since the conversation was opened.
    pub(crate) fn is_stalled(&self) -> bool {
        self.has_stalled.load(Ordering::Relaxed)
    }

    /// Does not answer while the script lasts.
    async fn stall(&self) {
        self.has_stalled.store(true, Ordering::Relaxed);
        self.stalled.notify_one();
        drop(self.over.acquire().await);
    }

    /// Ends what does not answer.
    pub(crate) fn end(&self) {
        self.over.close();
    }

    async fn fetch(self, id: String) -> Result<Option<Stored>, Error> {
        self.has_stalled.store(false, Ordering::Relaxed);
        self.is_damaged.store(false, Ordering::Relaxed);
        let stored = self.inner.read(&id).await;
        let text = stored.as_ref().ok().and_then(|stored| Some(stored.as_ref()?.text.as_str()));
        let Some((act, mishap)) = store_damage::read(&self.world, self.seed, text) else { return stored };
        mishap.happened();
        match act {
            ReadAct::Failed => Err(gone()),
            ReadAct::Damaged { text } => {
                self.is_damaged.store(true, Ordering::Relaxed);
                Ok(stored?.map(|stored| Stored { version: stored.version, text }))
            }
            ReadAct::Unanswered => {
                self.stall().await;
                Err(gone())
            }
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Storage, "the disk is gone")
}

impl Store for FaultyStore {
    fn read(&self, id: &str) -> BoxFuture<'static, Result<Option<Stored>, Error>> {
        Box::pin(self.clone().fetch(id.to_owned()))
    }

    fn append(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>> {
        Box::pin(self.clone().write(id.to_owned(), expected, lines, Write::Append))
    }

    fn replace(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>> {
        Box::pin(self.clone().write(id.to_owned(), expected, lines, Write::Replace))
    }

    fn delete(&self, id: &str) -> BoxFuture<'static, Result<(), Error>> {
        self.inner.delete(id)
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        self.inner.list()
    }
}
