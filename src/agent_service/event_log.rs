//! Publishes the events of one session in their order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::chain::Streams;
use super::event::SessionEvent;
use super::event_queue::{EventQueue, Said, Tail};
use super::names::Place;
use super::task::OwnedTask;
use crate::error::Error;
use crate::host::conflict;

/// Publishes the events of one session in their order, in a task of its own. Each message names the one that it follows, so that of
/// two workers one is refused. Dropping it publishes nothing more.
pub(super) struct EventLog {
    shared: Arc<Shared>,
    _task: OwnedTask,
}

struct Shared {
    streams: Streams,
    place: Place,
    session: String,
    state: Mutex<State>,
    /// Something waits to be published.
    added: Notify,
    /// Something was published, or nothing can be any more.
    moved: Notify,
}

struct State {
    queue: EventQueue,
    failure: Option<Error>,
}

impl EventLog {
    pub(super) fn new(streams: Streams, place: Place, session: String, worker: String, tail: Tail) -> Self {
        let state = Mutex::new(State { queue: EventQueue::new(worker, tail), failure: None });
        let shared = Arc::new(Shared { streams, place, session, state, added: Notify::new(), moved: Notify::new() });
        let task = OwnedTask::spawn(publish(shared.clone()));
        Self { shared, _task: task }
    }

    pub(super) fn push(&self, event: &SessionEvent) {
        let most = self.shared.streams.max_bytes();
        self.shared.lock().queue.push(event, most);
        self.shared.added.notify_one();
    }

    pub(super) fn push_said(&self, said: Said) {
        let most = self.shared.streams.max_bytes();
        self.shared.lock().queue.push_said(said, most);
        self.shared.added.notify_one();
    }

    /// Whether more may come.
    pub(super) fn has_room(&self) -> bool {
        self.shared.lock().queue.has_room()
    }

    /// Resolves when something was published. To be awaited by one at a time.
    ///
    /// # Errors
    ///
    /// What made publishing fail; `conflict` when another worker goes on with the session.
    pub(super) async fn moved(&self) -> Result<(), Error> {
        if let Some(error) = &self.shared.lock().failure {
            return Err(error.clone());
        }
        self.shared.moved.notified().await;
        self.shared.lock().failure.clone().map_or(Ok(()), Err)
    }

    /// Resolves when all is published.
    ///
    /// # Errors
    ///
    /// As for [`moved`](Self::moved).
    pub(super) async fn flush(&self) -> Result<(), Error> {
        while !self.shared.lock().queue.is_empty() {
            self.moved().await?;
        }
        self.shared.lock().failure.clone().map_or(Ok(()), Err)
    }
}

async fn publish(shared: Arc<Shared>) {
    loop {
        let id = match super::nonce() {
            Ok(id) => id,
            Err(error) => return shared.fail(error),
        };
        let (previous, message) = {
            let mut state = shared.lock();
            (state.queue.previous(), state.queue.next_message(&id, shared.streams.max_bytes()))
        };
        let Some(message) = message else {
            shared.added.notified().await;
            continue;
        };
        match shared.streams.chain(&shared.place, previous, &id, &message).await {
            Ok(Some(sequence)) => shared.lock().queue.published(sequence),
            Ok(None) => return shared.fail(conflict(&shared.session, previous)),
            Err(error) => return shared.fail(error),
        }
        shared.moved.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.queue.clear();
        state.failure = Some(error);
        drop(state);
        self.moved.notify_one();
    }
}
