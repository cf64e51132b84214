use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::host::{MaybeSend, MaybeSync};
use crate::mcp::client::{ClientOptions, Standing};
use crate::mcp::protocol::{Era, EraRecord};

/// What of a connection outlasts the client at work: a connection that is made anew has it too.
#[derive(Clone, Default)]
pub(super) struct Lasting {
    pub(super) changes: Changes,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    record: Option<EraRecord>,
    standing: Option<Standing>,
    resume_id: Option<String>,
}

impl Lasting {
    /// Gives a new client what its predecessor found and was asked to keep up.
    pub(super) fn remind(&self, client: &mut ClientOptions) {
        let known = self.known();
        client.known_era = known.record.or(client.known_era);
        if let Some(standing) = &known.standing {
            client.standing = standing.clone();
        }
    }

    /// A stateless server is asked again: its answer also says what it offers.
    pub(super) fn keep_record(&self, record: EraRecord) {
        self.known().record = Some(record).filter(|record| record.era != Era::Stateless);
    }

    pub(super) fn keep_standing(&self, standing: &Standing) {
        self.known().standing = Some(standing.clone());
    }

    pub(super) fn keep_resume_id(&self, id: Option<String>) {
        self.known().resume_id = id;
    }

    pub(super) fn resume_id(&self) -> Option<String> {
        self.known().resume_id.clone()
    }

    /// Nothing can panic while the lock is held that would leave half a value behind.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Functions that are called when the server's tools have changed. One that gives `false` is not called again.
#[derive(Clone, Default)]
pub(super) struct Changes(Arc<Mutex<Vec<Arc<dyn OnChange>>>>);

trait OnChange: MaybeSend + MaybeSync {
    fn call(&self) -> bool;
}

impl<F: Fn() -> bool + MaybeSend + MaybeSync> OnChange for F {
    fn call(&self) -> bool {
        self()
    }
}

impl Changes {
    pub(super) fn add(&self, call: impl Fn() -> bool + MaybeSend + MaybeSync + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(call));
    }

    pub(super) fn tell(&self) {
        // No lock is held while a function is called.
        let calls = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let wanted: Vec<_> = calls.into_iter().filter(|change| change.call()).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(wanted);
    }
}
