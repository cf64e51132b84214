//! Where the checkpoints of one conversation go.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::checkpoints::Saver;
use super::driver::Driver;
use super::{BoxFuture, MaybeSend, MaybeSync, Store};
use crate::agent::{Save, Session};
use crate::error::Error;

/// Keeps the checkpoints of one conversation. A function of a [`Save`] that gives a future is one.
///
/// With a journal, a tool that is not repeatable runs only after the checkpoint that records its start is saved. A save
/// that fails ends the run with kind `storage`.
pub trait Journal: MaybeSend + MaybeSync + 'static {
    /// Writes a checkpoint. Calls do not overlap within one conversation; the future resolves when the checkpoint survives a
    /// crash.
    ///
    /// # Errors
    ///
    /// `conflict` when somebody else wrote the conversation, `storage` for everything else.
    fn write(&self, save: Save) -> BoxFuture<'static, Result<(), Error>>;
}

impl<F, Saving> Journal for F
where
    F: Fn(Save) -> Saving + MaybeSend + MaybeSync + 'static,
    Saving: Future<Output = Result<(), Error>> + MaybeSend + 'static,
{
    fn write(&self, save: Save) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self(save))
    }
}

/// What makes checkpoints and saves them. Only a runner that was given a journal has one, so that other programs do not hold the
/// code for it.
pub(super) trait Recorder: MaybeSend + MaybeSync {
    /// What a checkpoint saves that the session asks for now.
    fn changes(&self, session: &mut Session) -> Save;

    /// Saves the checkpoints that wait, unless somebody else does already.
    fn save(&self, driver: &Arc<Driver>) -> Option<BoxFuture<'static, ()>>;
}

/// Records in a journal.
pub(super) struct JournalRecorder(pub(super) Arc<dyn Journal>);

impl Recorder for JournalRecorder {
    fn changes(&self, session: &mut Session) -> Save {
        session.changes()
    }

    fn save(&self, driver: &Arc<Driver>) -> Option<BoxFuture<'static, ()>> {
        Some(Box::pin(Saver::claim(driver)?.save_all(self.0.clone())))
    }
}

/// The journal of a conversation in a store.
pub(super) struct StoredJournal {
    pub(super) store: Arc<dyn Store>,
    pub(super) id: String,
    /// The version that this writer wrote last.
    pub(super) version: Arc<AtomicU64>,
}

impl Journal for StoredJournal {
    fn write(&self, save: Save) -> BoxFuture<'static, Result<(), Error>> {
        let expected = self.version.load(Ordering::Relaxed);
        let writing = match save {
            Save::Append(lines) => self.store.append(&self.id, expected, lines),
            Save::Replace(lines) => self.store.replace(&self.id, expected, lines),
        };
        let version = self.version.clone();
        Box::pin(async move {
            version.store(writing.await?, Ordering::Relaxed);
            Ok(())
        })
    }
}
