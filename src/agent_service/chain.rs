//! Messages of JetStream that each name the one before, with patience while the server is away.

use std::fmt::Display;
use std::time::Duration;

use async_nats::jetstream::context::{Context, PublishError, PublishErrorKind};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{LastRawMessageError, LastRawMessageErrorKind};
use async_nats::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::names::Place;
use crate::error::{Error, ErrorKind};

/// What can be tried again went wrong, or what cannot.
pub(super) enum Failure {
    Passing(String),
    Lasting(String),
}

/// The streams of one connection. What fails because the server is away is tried again.
#[derive(Clone)]
pub(super) struct Streams {
    pub(super) context: Context,
    patience: Duration,
}

impl Streams {
    pub(super) const fn new(context: Context, patience: Duration) -> Self {
        Self { context, patience }
    }

    /// The most bytes of a message's body.
    pub(super) fn max_bytes(&self) -> usize {
        match self.context.client().server_info().max_payload {
            0 => DEFAULT_MAX_PAYLOAD,
            bytes => bytes,
        }
        .saturating_sub(HEADROOM)
    }

    /// The last message of a subject.
    pub(super) async fn last(&self, place: &Place) -> Result<Option<StreamMessage>, Error> {
        let mut patience = self.patience("read");
        loop {
            match self.try_last(place).await {
                Ok(message) => return Ok(message),
                Err(failure) => patience.after(failure).await?,
            }
        }
    }

    async fn try_last(&self, place: &Place) -> Result<Option<StreamMessage>, Failure> {
        let stream = self.context.get_stream_no_info(&place.stream).await.map_err(passing)?;
        found(stream.get_last_raw_message_by_subject(&place.subject).await)
    }

    /// The first message of a subject from a sequence on.
    pub(super) async fn next(&self, place: &Place, from: u64) -> Result<Option<StreamMessage>, Error> {
        let mut patience = self.patience("read");
        loop {
            match self.try_next(place, from).await {
                Ok(message) => return Ok(message),
                Err(failure) => patience.after(failure).await?,
            }
        }
    }

    async fn try_next(&self, place: &Place, from: u64) -> Result<Option<StreamMessage>, Failure> {
        let stream = self.context.get_stream_no_info(&place.stream).await.map_err(passing)?;
        found(stream.get_first_raw_message_by_subject(&place.subject, from).await)
    }

    /// Adds a message behind the one with this sequence, 0 for none. Of two that build on the same one, the second is
    /// refused: `None`. A message that was stored although its answer was lost is known by its bytes, which hold an id.
    pub(super) async fn chain(
        &self,
        place: &Place,
        previous: u64,
        id: &str,
        payload: &str,
    ) -> Result<Option<u64>, Error> {
        let mut patience = self.patience("written");
        loop {
            match self.try_chain(place, previous, id, payload).await {
                Ok(sequence) => return Ok(sequence),
                Err(failure) => patience.after(failure).await?,
            }
        }
    }

    async fn try_chain(&self, place: &Place, previous: u64, id: &str, payload: &str) -> Result<Option<u64>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_MESSAGE_ID, id);
        headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, previous.to_string().as_str());
        let sent = self.context.publish_with_headers(place.subject.clone(), headers, payload.to_owned().into()).await;
        let answered = match sent {
            Ok(answer) => answer.await,
            Err(error) => Err(error),
        };
        let error = match answered {
            Ok(stored) => return Ok(Some(stored.sequence)),
            Err(error) => error,
        };
        match error.kind() {
            PublishErrorKind::WrongLastSequence => {
                let last = self.try_last(place).await?;
                Ok(last.filter(|last| last.payload == payload.as_bytes()).map(|last| last.sequence))
            }
            _ => Err(publish_failure(error)),
        }
    }

    /// Takes a message away; nothing happens when it is gone already.
    pub(super) async fn delete(&self, stream: &str, sequence: u64) -> Result<(), Error> {
        let mut patience = self.patience("deleted");
        loop {
            let request = DeleteRequest { seq: sequence, no_erase: true };
            let answer: Result<Answer, _> = self.context.request(format!("STREAM.MSG.DELETE.{stream}"), &request).await;
            match answer {
                // The server answered: an error says that there is no such message.
                Ok(_) => return Ok(()),
                Err(error) => patience.after(passing(error)).await?,
            }
        }
    }

    /// Stores a message, also where it is only known later that it was: the server knows it by its id. Whether one with this
    /// id was stored before.
    pub(super) async fn publish(&self, place: &Place, id: &str, payload: &str) -> Result<bool, Error> {
        let mut patience = self.patience("sent");
        loop {
            let mut headers = HeaderMap::new();
            headers.insert(header::NATS_MESSAGE_ID, id);
            let body = payload.to_owned().into();
            let sent = self.context.publish_with_headers(place.subject.clone(), headers, body).await;
            let answered = match sent {
                Ok(answer) => answer.await,
                Err(error) => Err(error),
            };
            let failure = match answered {
                Ok(stored) => return Ok(stored.duplicate),
                Err(error) => publish_failure(error),
            };
            patience.after(failure).await?;
        }
    }

    /// Waits between attempts while the server is away, for as long as there is patience.
    pub(super) fn patience(&self, what: &'static str) -> Patience {
        Patience { what, deadline: Instant::now() + self.patience, wait: FIRST_WAIT }
    }
}

/// How long something is tried again.
pub(super) struct Patience {
    what: &'static str,
    deadline: Instant,
    wait: Duration,
}

impl Patience {
    /// Waits before the next attempt, or says that there is none.
    pub(super) async fn after(&mut self, failure: Failure) -> Result<(), Error> {
        let error = match failure {
            Failure::Passing(_) if Instant::now() + self.wait <= self.deadline => {
                tokio::time::sleep(self.wait).await;
                self.wait = (self.wait * 2).min(MAX_WAIT);
                return Ok(());
            }
            Failure::Passing(error) | Failure::Lasting(error) => error,
        };
        Err(Error::new(ErrorKind::Storage, format!("a message of NATS could not be {}: {error}", self.what)))
    }
}

/// A message that was looked for.
fn found(result: Result<StreamMessage, LastRawMessageError>) -> Result<Option<StreamMessage>, Failure> {
    let error = match result {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    match error.kind() {
        LastRawMessageErrorKind::NoMessageFound => Ok(None),
        LastRawMessageErrorKind::JetStream(refused) if refused.code() < 500 => Err(lasting(error)),
        _ => Err(passing(error)),
    }
}

fn publish_failure(error: PublishError) -> Failure {
    match error.kind() {
        PublishErrorKind::MaxPayloadExceeded => lasting(error),
        _ => passing(error),
    }
}

#[derive(Serialize)]
struct DeleteRequest {
    seq: u64,
    no_erase: bool,
}

/// What JetStream answers a request with, where that it answered is enough.
#[derive(Deserialize)]
struct Answer {}

pub(super) fn passing(error: impl Display) -> Failure {
    Failure::Passing(error.to_string())
}

pub(super) fn lasting(error: impl Display) -> Failure {
    Failure::Lasting(error.to_string())
}

/// What a server takes unless it is told otherwise.
const DEFAULT_MAX_PAYLOAD: usize = 1024 * 1024;
/// What subject and headers of a message may take of it.
const HEADROOM: usize = 4096;
const FIRST_WAIT: Duration = Duration::from_millis(50);
const MAX_WAIT: Duration = Duration::from_secs(2);
