//! What a worker tells the work on one of its sessions, and the messages that this work holds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::jetstream::{AckKind, Message};
use tokio::sync::Notify;

use super::retry::failed_wait;
use super::session_inputs::SessionInputs;
use std::time::Duration;

/// How the work on a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkEnd {
    /// Nothing is left to do.
    Done,
    /// Another worker goes on.
    Lost,
    /// The service is stopped.
    HandedOver,
    /// The session could not be saved, and is to be tried again.
    Failed,
}

/// Shared by a worker and the work on one session.
#[derive(Default)]
pub(super) struct Orders {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    deliveries: Vec<Arc<Message>>,
    is_draining: bool,
    is_stopped: bool,
}

impl Orders {
    /// Holds a message of the consumer until the work ends.
    pub(super) fn hold(&self, message: Message) {
        self.lock().deliveries.push(Arc::new(message));
        self.changed.notify_one();
    }

    /// The work takes no further prompt.
    pub(super) fn drain(&self) {
        self.lock().is_draining = true;
        self.changed.notify_one();
    }

    /// The work stops at once: what is not saved is left to whoever goes on.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    pub(super) fn is_draining(&self) -> bool {
        let state = self.lock();
        state.is_draining || state.is_stopped
    }

    /// Resolves when a message was added or something was ordered. To be awaited by the work alone.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Says to the server that the messages are being worked on.
    pub(super) async fn working(&self) {
        let deliveries = self.lock().deliveries.clone();
        for message in deliveries {
            // The next beat says it again.
            let _away = message.ack_with(AckKind::Progress).await;
        }
    }

    /// Answers the messages: what is settled is not delivered again. With an `alarm` one of them comes back after that time, since
    /// a run waits that long for a person.
    pub(super) async fn settle(&self, end: WorkEnd, inputs: Option<&SessionInputs>, mut alarm: Option<Duration>) {
        let deliveries = std::mem::take(&mut self.lock().deliveries);
        for message in deliveries {
            let (sequence, delivered) = message
                .info()
                .map_or((0, 1), |info| (info.stream_sequence, u32::try_from(info.delivered).unwrap_or(u32::MAX)));
            let is_settled = inputs.is_some_and(|inputs| inputs.is_settled(sequence));
            let is_read = inputs.is_some_and(|inputs| inputs.is_read(sequence));
            let answer = match end {
                WorkEnd::Lost => continue,
                WorkEnd::Failed => AckKind::Nak(Some(failed_wait(delivered))),
                WorkEnd::HandedOver => AckKind::Nak(None),
                WorkEnd::Done if is_settled => match alarm.take() {
                    Some(due) => AckKind::Nak(Some(due)),
                    None => AckKind::Ack,
                },
                // It waits for a run that waits for a person.
                WorkEnd::Done if is_read => AckKind::Nak(Some(SUSPENDED)),
                WorkEnd::Done => AckKind::Nak(None),
            };
            // A message that is not answered is delivered again, and known then.
            let _away = message.ack_with(answer).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a prompt is looked at again that waits for a run that waits for a person.
const SUSPENDED: Duration = Duration::from_secs(30);
