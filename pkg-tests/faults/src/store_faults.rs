//! A store that fails: the real file store, and whatever happens between it and the session.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crablet::host::{BoxFuture, Store, Stored};
use crablet::native::FileStore;
use crablet::{Error, ErrorKind};
use tokio::sync::{Notify, Semaphore};

use crate::damage::damage;
use crate::plan::Kind;
use crate::world::{Way, World};

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
        let exchange = self.world.exchange(self.seed, Way::Store);
        let Some(fault) = exchange.fault.clone() else { return write().await };
        let note = |place: &str| self.world.injected(&exchange, format!("write to version {expected}: {place}"));
        let mut dice = fault.dice();
        match fault.kind {
            Kind::Cut => match dice.roll(3) {
                0 => note("not written"),
                1 => {
                    let _unsaid = write().await;
                    note("written, but not acknowledged");
                }
                _ => {
                    // As a process leaves it that was killed while it wrote.
                    let unfinished = self.folder.join(&id).join(format!(".{}-1-1", expected + 1));
                    let _no_folder_yet = std::fs::write(unfinished, &lines.as_bytes()[..dice.roll(lines.len())]);
                    note("half written");
                }
            },
            Kind::Duplicate => {
                let first = write().await;
                let second = write().await;
                note("twice");
                if second.is_ok() {
                    let told = "the store took a second write of the same version";
                    return Err(Error::new(ErrorKind::Internal, told));
                }
                return if dice.one_in(2) { first } else { second };
            }
            Kind::Corrupt => {
                let version = write().await?;
                note("answered with another version");
                return Ok(version + 1 + dice.roll(3) as u64);
            }
            Kind::Stall => {
                let is_written = dice.one_in(2);
                if is_written {
                    let _unsaid = write().await;
                }
                note(if is_written { "written, and no answer" } else { "no answer" });
                self.stall().await;
            }
            Kind::Delay => {
                note("late");
                tokio::time::sleep(Duration::from_millis(1 + dice.roll(10) as u64)).await;
                return write().await;
            }
            Kind::Reorder | Kind::Throttle => return write().await,
        }
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
        let exchange = self.world.exchange(self.seed, Way::Store);
        let note = |place: String| self.world.injected(&exchange, format!("read: {place}"));
        let Some(fault) = exchange.fault.clone() else { return self.inner.read(&id).await };
        match fault.kind {
            Kind::Cut => {
                note("failed".into());
                Err(gone())
            }
            Kind::Corrupt => {
                let Some(stored) = self.inner.read(&id).await? else { return Ok(None) };
                let mut bytes = stored.text.into_bytes();
                note(damage(&mut bytes, &mut fault.dice()));
                self.is_damaged.store(true, Ordering::Relaxed);
                Ok(Some(Stored { version: stored.version, text: String::from_utf8_lossy(&bytes).into_owned() }))
            }
            Kind::Stall => {
                note("no answer".into());
                self.stall().await;
                Err(gone())
            }
            _ => self.inner.read(&id).await,
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
