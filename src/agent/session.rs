//! The conversation: its history, its queues and the run that is active.

use std::sync::Arc;

use super::definition::Agent;
use super::effect::Effect;
use super::event::Event;
use super::input::{Input, InputError};
use crate::model::Message;
use crate::time::Millis;

/// A conversation with an agent.
///
/// The caller gives inputs with [`handle`](Self::handle), then performs every effect of
/// [`poll_effect`](Self::poll_effect) and shows every event of [`poll_event`](Self::poll_event) until both are empty.
#[derive(Debug)]
pub struct Session {
    agent: Arc<Agent>,
    history: Vec<Arc<Message>>,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Nothing: a prompt is welcome.
    Idle,
    /// A run is active.
    Running,
    /// A run waits for approvals or client-side tools.
    Suspended,
}

impl Session {
    /// An empty conversation. The seed makes its ids; use a random one.
    pub fn new(agent: Arc<Agent>, _seed: u64) -> Self {
        Self { agent, history: Vec::new() }
    }

    /// The conversation that [`snapshot`](Self::snapshot) saved. What was open is handed out again as effects.
    ///
    /// # Errors
    ///
    /// When the text is not a snapshot, is damaged, or was written by a newer version.
    pub fn restore(_snapshot: &str, agent: Arc<Agent>, _now: Millis) -> Result<Self, RestoreError> {
        Ok(Self::new(agent, 0))
    }

    /// Takes an input. Never blocks, never panics.
    ///
    /// # Errors
    ///
    /// When the input does not fit the state; the session is then unchanged.
    pub fn handle(&mut self, _now: Millis, _input: Input) -> Result<(), InputError> {
        Ok(())
    }

    /// What the host must do next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        None
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// The whole conversation as JSON text: can be saved at any moment and restored anywhere.
    pub fn snapshot(&self) -> String {
        String::new()
    }

    /// What the session is doing.
    pub fn status(&self) -> Status {
        Status::Idle
    }

    /// The messages so far, oldest first.
    pub fn history(&self) -> &[Arc<Message>] {
        &self.history
    }

    /// The agent's definition.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }
}

/// Why a snapshot could not be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Not JSON, or not a snapshot.
    #[error("this is not a crablet snapshot: {0}")]
    Malformed(String),
    /// Written by a newer version.
    #[error("this snapshot has format version {0}, which is newer than this crablet reads; update crablet")]
    TooNew(u64),
}
