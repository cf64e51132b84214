//! The checkpoints of a conversation in its log.

use std::sync::{Arc, Mutex, PoisonError};

use super::record::Kind;
use super::session_inputs::SessionInputs;
use super::store::Logs;
use crate::agent::Save;
use crate::error::Error;
use crate::host::{BoxFuture, Journal, conflict};

/// Saves one conversation in its log until it is [closed](Self::close): with each checkpoint goes which inputs are in it.
#[derive(Clone)]
pub(super) struct LogJournal(Arc<Shared>);

struct Shared {
    logs: Arc<Logs>,
    session: String,
    inputs: Arc<Mutex<SessionInputs>>,
    state: Mutex<State>,
    /// Held while something is written.
    writing: tokio::sync::Mutex<()>,
}

struct State {
    version: u64,
    is_closed: bool,
    failure: Option<Error>,
}

impl LogJournal {
    pub(super) fn new(logs: Arc<Logs>, session: String, inputs: Arc<Mutex<SessionInputs>>, version: u64) -> Self {
        let state = Mutex::new(State { version, is_closed: false, failure: None });
        Self(Arc::new(Shared { logs, session, inputs, state, writing: tokio::sync::Mutex::new(()) }))
    }

    /// Writes nothing more: what another worker goes on with.
    pub(super) fn close(&self) {
        self.with_state(|state| state.is_closed = true);
    }

    /// Resolves when nothing is being written.
    pub(super) async fn is_idle(&self) {
        let _turn = self.0.writing.lock().await;
    }

    /// What made a write fail.
    pub(super) fn failure(&self) -> Option<Error> {
        self.with_state(|state| state.failure.clone())
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Journal for LogJournal {
    fn write(&self, save: Save) -> BoxFuture<'static, Result<(), Error>> {
        let journal = self.clone();
        let lock = |shared: &Shared| shared.inputs.lock().unwrap_or_else(PoisonError::into_inner).kept_in(save.text());
        // At once: what is given to the session from now on is not in these lines.
        let (taken, settled) = lock(&self.0);
        Box::pin(async move {
            let shared = &journal.0;
            let _turn = shared.writing.lock().await;
            let (expected, is_closed) = journal.with_state(|state| (state.version, state.is_closed));
            if is_closed {
                return Err(conflict(&shared.session, expected));
            }
            let kind = if matches!(save, Save::Append(_)) { Kind::Append } else { Kind::Replace };
            match shared.logs.write(&shared.session, expected, kind, save.text(), taken).await {
                Ok(version) => {
                    journal.with_state(|state| state.version = version);
                    let mut inputs = shared.inputs.lock().unwrap_or_else(PoisonError::into_inner);
                    settled.into_iter().for_each(|sequence| inputs.settle(sequence));
                    Ok(())
                }
                Err(error) => {
                    journal.with_state(|state| state.failure = Some(error.clone()));
                    Err(error)
                }
            }
        })
    }
}
