//! A conversation with an agent: prompts in, runs out.

use std::fmt;
use std::sync::Arc;

use super::driver::Driver;
use super::runner::Parts;
use super::{Host, Prompt, Run, effects};
use crate::agent::{Input, InputError, QueuedMessage, Save, Session, Status};
use crate::error::{Error, ErrorKind};
use crate::model::{Message, MessageId};

/// A conversation with an agent. At most one run works on it at a time.
pub struct Conversation<H> {
    host: H,
    parts: Arc<Parts<H>>,
    driver: Arc<Driver>,
}

impl<H: Host> Conversation<H> {
    pub(super) fn new(host: H, parts: Arc<Parts<H>>, session: Session) -> Self {
        let driver = Arc::new(Driver::new(&host, session, parts.recorder.clone()));
        Self { host, parts, driver }
    }

    pub(super) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Starts a run with this prompt. Nothing happens until the run is read.
    ///
    /// # Errors
    ///
    /// `busy` while another run is active or not yet read to its end; `invalid-input` when the prompt is empty.
    pub fn send(&self, prompt: impl Into<Prompt>) -> Result<Run<H>, Error> {
        let Prompt(content) = prompt.into();
        let number = self.driver.attach_new().ok_or_else(busy)?;
        if let Err(refused) = self.driver.input(Input::Prompt(content)) {
            self.driver.detach();
            return Err(refused.into());
        }
        Ok(self.run(number))
    }

    /// Goes on with the run that was active when the conversation was saved or its run detached; `None` when there is
    /// none, as after a run whose end was saved, or when it is already being read.
    pub fn resume(&self) -> Option<Run<H>> {
        if self.driver.is_done() {
            return None;
        }
        Some(self.run(self.driver.attach()?))
    }

    /// The whole conversation as JSON text. Can be taken at any moment, also in the middle of a run, and restored in
    /// another process with [`Runner::restore`](super::Runner::restore).
    pub fn snapshot(&self) -> String {
        self.driver.session(Session::snapshot)
    }

    /// The messages so far, oldest first.
    pub fn history(&self) -> Vec<Arc<Message>> {
        self.driver.session(|session| session.history().to_vec())
    }

    /// What the conversation is doing.
    pub fn status(&self) -> Status {
        self.driver.session(Session::status)
    }

    /// Messages that wait to be delivered before the next step, in order.
    pub fn steers(&self) -> Vec<QueuedMessage> {
        self.driver.session(|session| session.steers().cloned().collect())
    }

    /// Messages that wait until the run would otherwise end, in order. They stay when a run is aborted or fails.
    pub fn follow_ups(&self) -> Vec<QueuedMessage> {
        self.driver.session(|session| session.follow_ups().cloned().collect())
    }

    /// Puts another message in the place of one that waits in a queue.
    ///
    /// # Errors
    ///
    /// `invalid-input` when no such message waits: it may have been delivered.
    pub fn edit_queued(&self, id: &MessageId, message: impl Into<Prompt>) -> Result<(), Error> {
        let Prompt(content) = message.into();
        self.driver.input(Input::EditQueued { id: id.clone(), content }).map_err(Error::from)
    }

    /// Takes a message out of its queue, so that it is not delivered.
    ///
    /// # Errors
    ///
    /// `invalid-input` when no such message waits: it may have been delivered.
    pub fn unqueue(&self, id: &MessageId) -> Result<(), Error> {
        self.driver.input(Input::Unqueue { id: id.clone() }).map_err(Error::from)
    }

    /// Goes to another place of the conversation's tree: what comes next follows this message, `None` for an empty history.
    /// What followed it so far stays in the tree.
    ///
    /// # Errors
    ///
    /// `busy` while a run is active; `invalid-input` when there is no such message, or when it is an answer with tool calls.
    pub fn seek(&self, to: Option<&MessageId>) -> Result<(), Error> {
        let outcome = self.driver.edit_session(|session| session.seek(to));
        self.save();
        Ok(outcome?)
    }

    /// Names a place of the conversation's tree; `None` takes the name away.
    ///
    /// # Errors
    ///
    /// `invalid-input` when there is no such message.
    pub fn label(&self, id: &MessageId, label: Option<String>) -> Result<(), Error> {
        let outcome = self.driver.edit_session(|session| session.label(id, label));
        self.save();
        Ok(outcome?)
    }

    /// Reads the session: its tree, its history.
    pub fn read<T>(&self, read: impl FnOnce(&Session) -> T) -> T {
        self.driver.session(read)
    }

    /// What has changed since the last time this was asked, for a caller that keeps the saved form without a journal. The
    /// lines of a [`Save::Append`] belong behind what the calls before gave. With a journal, what it was not yet given: for a
    /// caller that is about to drop the conversation and saves the rest itself.
    pub fn changes(&self) -> Save {
        self.driver.changes()
    }

    /// The state of a conversation that begins with this one's history up to a message.
    pub(super) fn fork(&self, last: &MessageId, seed: u64) -> Result<String, Error> {
        let fork = self.driver.session(|session| session.fork(last, seed))?;
        Ok(fork.snapshot())
    }

    /// Saves what waits to be saved although no run is read.
    fn save(&self) {
        for effect in self.driver.take_checkpoint_effects() {
            effects::start(&self.host, &self.parts, &self.driver, effect);
        }
    }

    fn run(&self, number: u64) -> Run<H> {
        Run::new(self.host.clone(), self.parts.clone(), self.driver.clone(), number)
    }
}

impl<H> fmt::Debug for Conversation<H> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Conversation").finish_non_exhaustive()
    }
}

impl From<InputError> for Error {
    fn from(refused: InputError) -> Self {
        Self::new(refused.kind(), refused.to_string())
    }
}

fn busy() -> Error {
    Error::new(
        ErrorKind::Busy,
        "a run of this conversation is not finished: read it to its end, drop it, or use its controls to steer it",
    )
}
