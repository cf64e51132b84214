//! The calls of one answer: prepared in call order, run side by side, their results kept in call order.

use super::call::{Call, Stage};
use super::context::Context;
use super::definition::Terminate;
use super::effect::HookId;
use super::input::{Input, InputError};
use crate::model::{CallId, ToolCall, ToolResult, Usage};

/// The calls of one answer.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) calls: Vec<Call>,
}

impl Batch {
    /// The calls of an answer.
    pub(super) fn new(calls: Vec<ToolCall>) -> Self {
        Self { calls: calls.into_iter().map(Call::new).collect() }
    }

    /// The calls of an answer, each shown as complete.
    pub(super) fn announced(calls: Vec<ToolCall>, context: &mut Context<'_>) -> Self {
        let batch = Self::new(calls);
        for call in &batch.calls {
            call.announce(context);
        }
        batch
    }

    /// Brings every call as far as it can come without an answer from outside.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) {
        self.count_the_spent(context);
        for call in &mut self.calls {
            call.advance_within(context);
        }
        for call in &mut self.calls {
            if matches!(call.stage, Stage::Waiting) {
                call.prepare(context);
            }
            if !call.is_prepared() {
                return;
            }
        }
        for call in &mut self.calls {
            call.started_is_saved(context);
        }
        self.start_what_may(context);
    }

    /// Gives the input to the session that waits for it, if one of a call does.
    pub(super) fn hand_down(&mut self, context: &mut Context<'_>, input: Input) -> Result<(), InputError> {
        self.count_the_spent(context);
        let call = self.calls.iter_mut().find(|call| call.waits_within(&input)).ok_or(InputError::Unexpected)?;
        call.hand_down(context, input)
    }

    /// Whether the session of a call waits for this input.
    pub(super) fn waits_within(&self, input: &Input) -> bool {
        self.calls.iter().any(|call| call.waits_within(input))
    }

    /// What the sub-agents of the calls have taken so far.
    pub(super) fn spent_within(&self) -> Usage {
        self.calls.iter().fold(Usage::default(), |sum, call| sum.plus(call.spent_within()))
    }

    /// Takes from what is left what sub-agents have taken.
    fn count_the_spent(&self, context: &mut Context<'_>) {
        context.left = context.left.without(&self.spent_within());
    }

    /// The call with this id.
    ///
    /// # Errors
    ///
    /// `Unexpected` when there is none.
    pub(super) fn call(&mut self, call_id: &CallId) -> Result<&mut Call, InputError> {
        self.calls.iter_mut().find(|call| call.call.call_id == *call_id).ok_or(InputError::Unexpected)
    }

    /// The call that a hook is asked about.
    ///
    /// # Errors
    ///
    /// `Unexpected` when there is none.
    pub(super) fn asked(&mut self, id: HookId) -> Result<&mut Call, InputError> {
        self.calls.iter_mut().find(|call| call.is_asked(id)).ok_or(InputError::Unexpected)
    }

    /// Whether a hook is asked by this id.
    pub(super) fn is_asking(&self, id: HookId) -> bool {
        self.calls.iter().any(|call| call.is_asked(id))
    }

    /// Stops everything and gives each call that has none an error for its result.
    pub(super) fn interrupt(&mut self, context: &mut Context<'_>, reason: &str) {
        for call in &mut self.calls {
            call.interrupt(context, reason);
        }
    }

    /// Whether only approvals and client-side tools are open.
    pub(super) fn is_suspended(&self) -> bool {
        let idle =
            |call: &Call| call.is_done() || call.waits_for_a_person() || (matches!(call.stage, Stage::Ready { .. }));
        self.calls.iter().any(Call::waits_for_a_person) && self.calls.iter().all(idle)
    }

    /// The results in call order, once each call has one, and whether the tools asked for the end of the run.
    pub(super) fn results(&self, policy: Terminate) -> Option<(Vec<ToolResult>, bool)> {
        let mut asking = 0;
        let mut results = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            let Stage::Done { result, terminate, .. } = &call.stage else { return None };
            asking += usize::from(*terminate);
            results.push(ToolResult::clone(result));
        }
        let terminate = match policy {
            Terminate::All => asking == self.calls.len(),
            Terminate::Any => asking > 0,
        };
        Some((results, terminate))
    }

    /// Starts the calls that are allowed and have a place, in call order.
    fn start_what_may(&mut self, context: &mut Context<'_>) {
        let places =
            usize::try_from(context.conversation.agent.policy.max_concurrent_tools.max(1)).unwrap_or(usize::MAX);
        let mut at_work = self.calls.iter().filter(|call| call.is_at_work()).count();
        let mut at_work_by_tool: Vec<String> =
            self.calls.iter().filter(|call| call.is_at_work()).map(|call| call.call.tool_name.clone()).collect();
        let mut one_has_run = false;
        let mut sequential_open = false;
        for call in &mut self.calls {
            let is_sequential = call.is_sequential();
            if matches!(call.stage, Stage::Ready { .. }) {
                if is_sequential && one_has_run && !context.conversation.steers.is_empty() {
                    call.refuse(context, SKIPPED);
                } else if is_sequential && (sequential_open || at_work > 0) {
                    // It runs alone: what comes after it in the batch waits too, so that its turn comes.
                    return;
                } else if at_work >= places {
                    return;
                } else if call.has_no_place(&at_work_by_tool) {
                    // Those of other tools do not wait for it.
                } else {
                    call.start(context);
                    if call.is_at_work() {
                        at_work += 1;
                        at_work_by_tool.push(call.call.tool_name.clone());
                    }
                }
            }
            if is_sequential {
                if call.is_at_work() || matches!(call.stage, Stage::Running { .. } | Stage::Delegated { .. }) {
                    return;
                }
                one_has_run |= matches!(call.stage, Stage::Done { was_run: true, .. });
                sequential_open |= !call.is_done();
            }
        }
    }
}

/// The result of a sequential call that gave way to a steered message.
const SKIPPED: &str = "Not run, because the user sent a new message first. Call it again if it is still wanted.";
