//! A client of an agent service.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;

use super::DEFAULT_PREFIX;
use super::chain::Streams;
use super::event::SessionEvent;
use super::input::{Input, InputBody};
use super::names::Names;
use super::session_events::{EventsFrom, PlacedEvent, SessionEvents};
use super::store::PATIENCE;
use crate::agent::{EventKind, InputHash, ToolOutput};
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Prompt};
use crate::model::CallId;

/// Talks to the workers of an agent service, in Rust or in JavaScript.
#[derive(Clone)]
pub struct AgentClient {
    streams: Streams,
    names: Names,
}

impl AgentClient {
    /// A client of the agent of this name, whose workers use the usual prefix.
    ///
    /// # Errors
    ///
    /// `invalid-input` when no agent has that name.
    pub fn new(context: Context, name: &str) -> Result<Self, Error> {
        Self::with_prefix(context, DEFAULT_PREFIX, name)
    }

    /// As [`new`](Self::new), where subjects and streams begin with another prefix.
    ///
    /// # Errors
    ///
    /// As for `new`.
    pub fn with_prefix(context: Context, prefix: &str, name: &str) -> Result<Self, Error> {
        Ok(Self { streams: Streams::new(context, PATIENCE), names: Names::new(prefix, name)? })
    }

    /// How long an input is sent again while the server is away. Default 30 seconds.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { streams: Streams::new(self.streams.context, patience), names: self.names }
    }

    /// The session of this id, which begins with its first input.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the id is empty or too long for a subject: more than 256 letters, of which those that are no letters
    /// of ASCII, digits, `-` or `_` make the whole id a third longer.
    pub fn session(&self, id: &str) -> Result<RemoteSession, Error> {
        self.names.input(id)?;
        Ok(RemoteSession { client: self.clone(), id: id.into() })
    }
}

impl fmt::Debug for AgentClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AgentClient").field("names", &self.names).finish_non_exhaustive()
    }
}

/// A conversation that a worker of the service keeps.
///
/// What is sent is awaited: it resolves once it is stored, and the events tell what became of it.
#[derive(Clone, Debug)]
pub struct RemoteSession {
    client: AgentClient,
    id: Arc<str>,
}

impl RemoteSession {
    /// The id of the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Sends a prompt. A run begins when its turn comes: prompts of a session are worked on in their order.
    pub fn prompt(&self, input: impl Into<Prompt>) -> SendInput {
        self.send(InputBody::Prompt(input.into().0))
    }

    /// A message that is worked on when the run would otherwise end; without a run it begins one.
    pub fn follow_up(&self, input: impl Into<Prompt>) -> SendInput {
        self.send(InputBody::FollowUp(input.into().0))
    }

    /// A message that the run takes before its next step. Without a run, and without a prompt before it that waits, it is refused.
    pub fn steer(&self, input: impl Into<Prompt>) -> SendInput {
        self.send(InputBody::Steer(input.into().0))
    }

    /// Aborts the run at work, or that of the prompt before it. Prompts that wait are worked on all the same.
    pub fn abort(&self, reason: Option<&str>) -> SendInput {
        self.send(InputBody::Abort { reason: reason.map(str::to_owned) })
    }

    /// Allows a call that an `approval-request` told of; with the hash of the request for no other input.
    pub fn allow(&self, call_id: &CallId, input_hash: Option<InputHash>) -> SendInput {
        self.decide(call_id, true, None, input_hash)
    }

    /// Denies a call that an `approval-request` told of. The model reads the reason.
    pub fn deny(&self, call_id: &CallId, reason: Option<&str>, input_hash: Option<InputHash>) -> SendInput {
        self.decide(call_id, false, reason, input_hash)
    }

    /// Gives the result of a call of a client-side tool: the answer to a question.
    pub fn tool_result(&self, call_id: &CallId, output: impl Into<ToolOutput>) -> SendInput {
        self.send(InputBody::ToolResult { call_id: call_id.to_string(), output: output.into() })
    }

    /// The events in their order, from a place on.
    ///
    /// # Errors
    ///
    /// `storage` when they cannot be read: no worker has set the service up, the server is away, or it forbids it.
    pub async fn events(&self, from: EventsFrom) -> Result<SessionEvents, Error> {
        SessionEvents::open(&self.client.streams, &self.client.names.events(&self.id)?, from).await
    }

    /// Sends a prompt and gives the events of its run, from its `input-accepted` on, until it ends or waits for a person.
    ///
    /// # Errors
    ///
    /// As for [`events`](Self::events) and [`SendInput`].
    pub async fn run(&self, input: impl Into<Prompt>) -> Result<RemoteRun, Error> {
        self.run_as(&super::nonce()?, input).await
    }

    /// As [`run`](Self::run) for a prompt with an id of your own: sent again, it gives the events of the run that it began before.
    ///
    /// # Errors
    ///
    /// As for `run`.
    pub async fn run_as(&self, input_id: &str, input: impl Into<Prompt>) -> Result<RemoteRun, Error> {
        // Hears before it speaks, so that nothing is missed.
        let mut events = self.events(EventsFrom::New).await?;
        if self.prompt(input).id(input_id).await?.is_duplicate {
            events = self.events(EventsFrom::Start).await?;
        }
        Ok(RemoteRun { events, input_id: input_id.to_owned(), is_accepted: false, is_over: false })
    }

    fn decide(&self, call_id: &CallId, allow: bool, reason: Option<&str>, input_hash: Option<InputHash>) -> SendInput {
        self.send(InputBody::Approve {
            call_id: call_id.to_string(),
            allow,
            reason: reason.map(str::to_owned),
            input_hash: input_hash.map(|hash| hash.to_string()),
        })
    }

    fn send(&self, body: InputBody) -> SendInput {
        SendInput { session: self.clone(), id: None, body }
    }
}

/// An input that is sent once this is awaited.
///
/// # Errors
///
/// `storage` when it cannot be stored: no worker has set the service up, JetStream is full, or the server stayed away longer than
/// the client's patience, and then it may have been stored. `limit` when it is longer than the server takes. `invalid-input` for an
/// id that is empty.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct SendInput {
    session: RemoteSession,
    id: Option<String>,
    body: InputBody,
}

impl SendInput {
    /// An id that tells this input from others of the service, which makes sending it again harmless within the service's window
    /// for duplicates. Default: a random one.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

impl IntoFuture for SendInput {
    type Output = Result<InputReceipt, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { session, id, body } = self;
            let AgentClient { streams, names } = &session.client;
            let id = match id {
                Some(id) if id.is_empty() => {
                    return Err(Error::new(ErrorKind::InvalidInput, "the id of an input is not empty"));
                }
                Some(id) => id,
                None => super::nonce()?,
            };
            let input = Input { id, body };
            let text = serde_json::to_string(&input)
                .map_err(|error| Error::new(ErrorKind::InvalidInput, format!("the input is no JSON: {error}")))?;
            let most = streams.max_bytes();
            if text.len() > most {
                let message = format!(
                    "an input of {} bytes is longer than the {most} that the server takes: give files by their address",
                    text.len()
                );
                return Err(Error::new(ErrorKind::Limit, message));
            }
            let is_duplicate = streams.publish(&names.input(&session.id)?, &input.id, &text).await?;
            Ok(InputReceipt { input_id: input.id, is_duplicate })
        })
    }
}

/// What the stream says of an input that it has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputReceipt {
    /// The id that events name the input by.
    pub input_id: String,
    /// Whether an input with this id was stored before: nothing more comes of this one.
    pub is_duplicate: bool,
}

/// The events of the run of one prompt. Dropping it does not abort the run.
#[derive(Debug)]
pub struct RemoteRun {
    events: SessionEvents,
    input_id: String,
    is_accepted: bool,
    is_over: bool,
}

impl RemoteRun {
    /// The next event; `None` once the run has ended or waits for a person.
    ///
    /// # Errors
    ///
    /// What the prompt was refused with; what a session failed with that no worker can go on with; `storage` when the events cannot
    /// be read.
    pub async fn next(&mut self) -> Result<Option<PlacedEvent>, Error> {
        while !self.is_over {
            let placed = self.events.next().await?;
            match &placed.event {
                SessionEvent::InputRefused { input_id, error } if *input_id == self.input_id => {
                    self.is_over = true;
                    return Err(error.clone());
                }
                SessionEvent::InputAccepted { input_id, .. } => self.is_accepted |= *input_id == self.input_id,
                SessionEvent::SessionFailed { error } if self.is_accepted => {
                    self.is_over = true;
                    return Err(error.clone());
                }
                _ => {}
            }
            if self.is_accepted {
                self.is_over = matches!(placed.event.kind(), Some(EventKind::RunEnd(_) | EventKind::RunSuspended));
                return Ok(Some(placed));
            }
        }
        Ok(None)
    }
}
