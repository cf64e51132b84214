//! Saves checkpoints, one after another.

use std::sync::{Arc, Weak};

use super::Journal;
use super::driver::Driver;
use super::effects::no_panic;
use crate::agent::{Input, Save};
use crate::error::{Error, ErrorKind};
use crate::planted::{self, Defect};

/// Checkpoints that wait to be saved.
pub(super) struct Waiting {
    pub(super) seqs: Vec<u64>,
    /// All of them in one.
    pub(super) save: Save,
    /// Why they cannot be saved: they build on one that failed.
    pub(super) gap: Option<Error>,
}

/// The right to save the checkpoints of a conversation. There is one at a time, so that saves never overlap.
pub(super) struct Saver {
    driver: Weak<Driver>,
    holds_claim: bool,
    /// Whether it has taken checkpoints and does not know yet what became of them.
    is_writing: bool,
}

impl Saver {
    /// `None` while somebody else saves; what waits by then is saved too.
    pub(super) fn claim(driver: &Arc<Driver>) -> Option<Self> {
        driver.begin_saving().then(|| Self { driver: Arc::downgrade(driver), holds_claim: true, is_writing: false })
    }

    /// Saves until nothing waits. Checkpoints that come in during a save share the next one.
    pub(super) async fn save_all(mut self, journal: Arc<dyn Journal>) {
        while let Some(Waiting { seqs, save, gap }) = self.take() {
            let outcome = match gap {
                Some(error) => Err(error),
                None if planted::is(Defect::SavesNothing) && matches!(save, Save::Append(_)) => Ok(()),
                None => match no_panic(async { journal.write(save).await }).await {
                    Ok(outcome) => outcome,
                    Err(panic) => Err(Error::new(ErrorKind::Storage, panic)),
                },
            };
            let Some(driver) = self.driver.upgrade() else { return };
            driver.was_saved(outcome.as_ref().err());
            self.is_writing = false;
            for seq in seqs {
                driver.post(match &outcome {
                    Ok(()) => Input::CheckpointSaved { seq },
                    Err(error) => Input::CheckpointFailed { seq, error: error.clone() },
                });
            }
        }
    }

    fn take(&mut self) -> Option<Waiting> {
        let taken = self.driver.upgrade()?.take_checkpoints();
        self.holds_claim = taken.is_some();
        self.is_writing = taken.is_some();
        taken
    }
}

/// A saver that is dropped in its work, as at the end of a runtime, does not keep others from saving. What it was writing may
/// be lost, and nothing may be added behind that.
impl Drop for Saver {
    fn drop(&mut self) {
        if self.holds_claim
            && let Some(driver) = self.driver.upgrade()
        {
            if self.is_writing {
                let message = "the checkpoint before was not saved to its end";
                driver.was_saved(Some(&Error::new(ErrorKind::Storage, message)));
            }
            driver.end_saving();
        }
    }
}
