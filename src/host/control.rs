//! What can be done to a run from outside while it works.

use std::sync::Arc;

use super::Prompt;
use super::driver::Driver;
use crate::agent::{Approval, Input, ToolOutput};
use crate::error::Error;
use crate::json::RawJson;
use crate::model::CallId;

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

    /// Adds a user message, delivered before the next step or between sequential calls.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the run is over.
    pub fn steer(&self, message: impl Into<Prompt>) -> Result<(), Error> {
        self.input(Input::Steer(message.into().0))
    }

    /// Adds a user message that is worked on when the run would otherwise end.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the run is over.
    pub fn follow_up(&self, message: impl Into<Prompt>) -> Result<(), Error> {
        self.input(Input::FollowUp(message.into().0))
    }

    /// Decides about a call that waits for an approval.
    ///
    /// # Errors
    ///
    /// `invalid-input` when no such call waits.
    pub fn approve(&self, call_id: CallId, decision: Approval) -> Result<(), Error> {
        self.input(Input::Approval { call_id, decision })
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
