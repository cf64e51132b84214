//! What comes to a session at work, and what it says.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::Subscriber;

use super::chain::{Streams, passing};
use super::event::SessionEvent;
use super::event_log::EventLog;
use super::names::Place;
use super::session_inputs::{ReadInput, SessionInputs};
use crate::error::Error;
use crate::host::BoxFuture;
use crate::model::MessageId;

/// The inputs and the events of a session at work.
pub(super) struct Listening {
    pub(super) place: Place,
    pub(super) events: EventLog,
    pub(super) inputs: Arc<Mutex<SessionInputs>>,
    /// Hears that inputs come; they are read from the stream.
    pub(super) hint: Subscriber,
    pub(super) hears: bool,
}

/// Messages of the stream, each with its sequence.
pub(super) type Messages = Vec<(u64, String)>;

impl Listening {
    /// Reads what came.
    pub(super) async fn read(&self, streams: &Streams) -> Result<(), Error> {
        let messages = self.reading(streams).await?;
        self.take_in(messages);
        Ok(())
    }

    pub(super) fn reading(&self, streams: &Streams) -> BoxFuture<'static, Result<Messages, Error>> {
        let (streams, place, mut from) = (streams.clone(), self.place.clone(), lock(&self.inputs).next());
        Box::pin(async move {
            let mut messages = Vec::new();
            while let Some(message) = streams.next(&place, from).await? {
                from = message.sequence + 1;
                messages.push((message.sequence, String::from_utf8_lossy(&message.payload).into_owned()));
            }
            Ok(messages)
        })
    }

    pub(super) fn take_in(&self, messages: Messages) {
        for (sequence, text) in messages {
            let pushed = lock(&self.inputs).push(sequence, &text);
            if let Err((input_id, error)) = pushed {
                self.events.push(&SessionEvent::InputRefused { input_id, error });
            }
        }
    }

    pub(super) fn refuse(&self, refused: &ReadInput, error: Error) {
        lock(&self.inputs).settle(refused.sequence);
        self.events.push(&SessionEvent::InputRefused { input_id: refused.input.id.clone(), error });
    }

    pub(super) fn accept(&self, accepted: &ReadInput, message_id: Option<String>) {
        self.events.push(&SessionEvent::InputAccepted {
            input_id: accepted.input.id.clone(),
            input_type: accepted.input.body.name().to_owned(),
            message_id: message_id.map(MessageId::new),
        });
    }
}

/// Hears that inputs of a session come.
pub(super) async fn subscribe(streams: &Streams, place: &Place) -> Result<Subscriber, Error> {
    let mut patience = streams.patience("subscribed to");
    loop {
        match streams.context.client().subscribe(place.subject.clone()).await {
            Ok(hint) => return Ok(hint),
            Err(error) => patience.after(passing(error)).await?,
        }
    }
}

/// The inputs, for a moment.
pub(super) fn lock(inputs: &Mutex<SessionInputs>) -> MutexGuard<'_, SessionInputs> {
    inputs.lock().unwrap_or_else(PoisonError::into_inner)
}
