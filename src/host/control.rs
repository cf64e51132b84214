//! What can be done to a run from outside while it works.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_channel::oneshot;
use futures_util::FutureExt;

use super::Prompt;
use super::driver::Driver;
use crate::agent::{Approval, Input, InputHash, ToolOutput};
use crate::error::Error;
use crate::json::RawJson;
use crate::model::{CallId, MessageId};

/// Steers a run from anywhere: from another task, from a tool, from a button. Every call takes effect before it returns.
///
/// The controls of a run that has ended reach nothing, even when another run of the same conversation is at work.
#[derive(Clone, Debug)]
pub struct RunControl {
    driver: Arc<Driver>,
    run: u64,
}

impl RunControl {
    pub(super) fn new(driver: Arc<Driver>, run: u64) -> Self {
        Self { driver, run }
    }

    /// Stops the run. Before this returns, requests are closed and the cancel tokens of tools have fired; the run still
    /// gives its closing events. Does nothing when the run is over.
    pub fn abort(&self, reason: Option<&str>) {
        // The only refusal is that no run is active: then there is nothing to stop.
        let _idle = self.input(Input::Abort { reason: reason.map(str::to_owned) });
    }

    /// Adds a user message, delivered before the next step or between sequential calls. What is returned can be awaited to
    /// learn whether it was delivered, and need not be.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the run is over.
    pub fn steer(&self, message: impl Into<Prompt>) -> Result<Steered, Error> {
        let (id, outcome) = self.driver.steer(self.run, message.into().0)?;
        Ok(Steered { id, outcome })
    }

    /// Adds a user message that is worked on when the run would otherwise end. Gives its id, with which it can be edited
    /// while it waits.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the run is over.
    pub fn follow_up(&self, message: impl Into<Prompt>) -> Result<MessageId, Error> {
        Ok(self.driver.follow_up(self.run, message.into().0)?)
    }

    /// Decides about a call that waits for an approval.
    ///
    /// # Errors
    ///
    /// `invalid-input` when no such call waits.
    pub fn approve(&self, call_id: CallId, decision: Approval) -> Result<(), Error> {
        self.input(Input::Approval { call_id, decision, input_hash: None })
    }

    /// As [`approve`](Self::approve), for a decision that travelled: it holds for the input that the request named and no
    /// other.
    ///
    /// # Errors
    ///
    /// `invalid-input` when no such call waits, or one with another input.
    pub fn approve_input(&self, call_id: CallId, decision: Approval, input_hash: InputHash) -> Result<(), Error> {
        self.input(Input::Approval { call_id, decision, input_hash: Some(input_hash) })
    }

    /// Gives the result of a call that the caller's own client performs.
    ///
    /// # Errors
    ///
    /// `invalid-input` when no such call waits.
    pub fn tool_result(&self, call_id: CallId, output: ToolOutput) -> Result<(), Error> {
        self.input(Input::ToolEnded { call_id, output })
    }

    /// Reports the progress of a call that the caller's own client performs.
    ///
    /// # Errors
    ///
    /// `invalid-input` when no such call waits.
    pub fn tool_progress(&self, call_id: CallId, data: RawJson) -> Result<(), Error> {
        self.input(Input::ToolProgress { call_id, data })
    }

    fn input(&self, input: Input) -> Result<(), Error> {
        self.driver.input_of_run(self.run, input).map_err(Error::from)
    }
}

/// A steered message. A future of whether it was delivered: `false` when the run ended before, or it was taken out of the
/// queue.
#[derive(Debug)]
pub struct Steered {
    id: MessageId,
    outcome: oneshot::Receiver<bool>,
}

impl Steered {
    /// The id of the message, with which it can be edited while it waits.
    pub fn id(&self) -> &MessageId {
        &self.id
    }
}

impl Future for Steered {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        // A conversation that is gone delivers nothing.
        self.outcome.poll_unpin(context).map(|told| told.unwrap_or(false))
    }
}
