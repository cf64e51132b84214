//! The calls that a run asks a person about, or a client to perform, and their answers.

use std::collections::HashMap;

use super::input::InputBody;
use crate::agent::{Approval, Event, EventKind, InputHash};
use crate::error::{Error, ErrorKind};
use crate::host::RunControl;
use crate::model::CallId;

/// What is asked, by the id of the call.
#[derive(Default)]
pub(super) struct AskedCalls(HashMap<String, Asked>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Approval,
    Result,
}

impl AskedCalls {
    /// Follows an event of the run.
    pub(super) fn note(&mut self, event: &Event) {
        match &innermost(event).kind {
            EventKind::ApprovalRequest { call_id, .. } => {
                self.0.insert(call_id.to_string(), Asked::Approval);
            }
            EventKind::ToolStart { call_id, client_side: true, .. } => {
                self.0.insert(call_id.to_string(), Asked::Result);
            }
            EventKind::ApprovalResponse { call_id, .. } => {
                self.0.remove(call_id.as_str());
            }
            EventKind::ToolResult(result) => {
                self.0.remove(result.call_id.as_str());
            }
            _ => {}
        }
    }

    /// Nothing is asked any more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Gives the run an answer; `None` when the call does not wait for one of this kind.
    pub(super) fn answer(&self, run: &RunControl, answer: &InputBody) -> Option<Result<(), Error>> {
        match answer {
            InputBody::Approve { call_id, allow, reason, input_hash } if self.waits(call_id, Asked::Approval) => {
                let decision = if *allow { Approval::Allow } else { Approval::Deny { reason: reason.clone() } };
                Some(approve(run, CallId::new(call_id.clone()), decision, input_hash.as_deref()))
            }
            InputBody::ToolResult { call_id, output } if self.waits(call_id, Asked::Result) => {
                Some(run.tool_result(CallId::new(call_id.clone()), output.clone()))
            }
            _ => None,
        }
    }

    fn waits(&self, call_id: &str, asked: Asked) -> bool {
        self.0.get(call_id) == Some(&asked)
    }
}

/// The event of the agent that acts, however deep it is inside of others.
pub(super) fn innermost(event: &Event) -> &Event {
    let mut event = event;
    while let EventKind::SubAgentEvent { event: within, .. } = &event.kind {
        event = within;
    }
    event
}

fn approve(run: &RunControl, call_id: CallId, decision: Approval, input_hash: Option<&str>) -> Result<(), Error> {
    let Some(text) = input_hash else { return run.approve(call_id, decision) };
    let hash = InputHash::parse(text)
        .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "this is not the inputHash of an approval request"))?;
    run.approve_input(call_id, decision, hash)
}
