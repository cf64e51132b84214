//! A run: one prompt being worked on, step by step, as plain data.

use super::answer::Answer;
use super::call::Stage;
use super::context::Context;
use super::conversation::Conversation;
use super::effect::{HookId, ModelCallId, TimerId};
use super::event::{EndReason, EventKind, RunEnd, RunId};
use super::input::{HookReply, Input, InputError};
use super::output::Output;
use super::plan::StepPlan;
use super::step_hooks::StepQuestion;
use super::summarizing::Summarizing;
use super::timers::{Purpose, Timers};
use super::tools::Batch;
use crate::json::RawJson;
use crate::model::{CallId, Content, ModelRef, Origin, Usage};
use crate::time::Millis;

/// The active run of a session.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    /// How many steps have begun.
    pub(super) steps: u32,
    /// How many blocks have begun, failed attempts included.
    pub(super) blocks: u32,
    /// Tokens of the run without the attempt in flight.
    pub(super) usage: Usage,
    /// Tokens of the step without the attempt in flight.
    pub(super) step_usage: Usage,
    /// The only tools of the step, where a hook said so.
    pub(super) active_tools: Option<Vec<String>>,
    pub(super) plan: StepPlan,
    /// The object that the run shall end with.
    pub(super) output: Option<Output>,
    /// How many models have failed in this run, each for good.
    pub(super) fallback: usize,
    /// The attempts that they made in this step.
    pub(super) attempts_before: u32,
    /// Whether the step was shortened already because the provider called it too long. Once is enough to try.
    pub(super) shortened: bool,
    pub(super) timers: Timers,
    pub(super) phase: Phase,
}

/// What a run is at.
#[derive(Debug)]
pub(super) enum Phase {
    /// The next step may begin.
    BetweenSteps,
    /// The step has begun; the model is called once this checkpoint is safe.
    Saving { seq: u64 },
    /// A hook is asked about the step; then comes this attempt of its model call.
    Preparing { hook: HookId, question: StepQuestion, attempt: u32 },
    /// A model says in short what the next attempt leaves out.
    Summarizing(Box<Summarizing>),
    /// The model answers.
    Calling(Box<ModelCall>),
    /// An attempt failed; the next one begins when its timer is due.
    Waiting { attempt: u32 },
    /// The calls of the answer are worked on.
    Tools {
        batch: Batch,
        /// The suspension that was announced, or the checkpoint that must be safe before it is.
        suspension: Suspension,
    },
    /// The last answer is the object that was asked for, unless the host's validator says otherwise.
    ValidatingOutput { hook: HookId, output: RawJson },
    /// All is done but the saving.
    Ending { end: RunEnd, seq: u64 },
    /// Over; the session drops the run.
    Over,
}

/// How far a suspension has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspension {
    /// The run works.
    None,
    /// It will be suspended once this checkpoint is safe.
    Saving { seq: u64 },
    /// It is suspended, and said so.
    Announced,
}

/// One attempt of a model call.
#[derive(Debug)]
pub(super) struct ModelCall {
    pub(super) id: ModelCallId,
    /// From 1.
    pub(super) attempt: u32,
    /// The model that was asked.
    pub(super) model: ModelRef,
    pub(super) answer: Answer,
    /// When the last bytes came; `None` before the first.
    pub(super) last_data: Option<Millis>,
    /// Whether bytes came since the silence timer was set.
    pub(super) data_since_timer: bool,
}

impl Run {
    /// Begins a run with a prompt.
    ///
    /// # Errors
    ///
    /// `InvalidOutput` when the agent's output has a schema that cannot be used.
    pub(super) fn start(
        conversation: &mut Conversation,
        now: Millis,
        prompt: Vec<Content>,
    ) -> Result<Self, InputError> {
        let output = Self::expected_output(conversation)?;
        let mut run = Self {
            id: conversation.ids.run(),
            steps: 0,
            blocks: 0,
            usage: Usage::default(),
            step_usage: Usage::default(),
            active_tools: None,
            plan: StepPlan::default(),
            output,
            fallback: 0,
            attempts_before: 0,
            shortened: false,
            timers: Timers::default(),
            phase: Phase::BetweenSteps,
        };
        let timeout = conversation.agent.policy.timeout;
        let message = conversation.push_user(prompt, Origin::Prompt);
        let mut context = run.context(conversation, now);
        context.emit(EventKind::RunStart);
        context.emit(EventKind::MessageAdded(message));
        if let Some(timeout) = timeout {
            context.set_timer(Purpose::RunTimeout, timeout);
        }
        run.report_unchecked_output(conversation, now);
        Ok(run)
    }

    /// Takes an input that belongs to a run.
    ///
    /// # Errors
    ///
    /// `Unexpected` when nothing waits for it; the run is then unchanged.
    pub(super) fn handle(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        input: Input,
    ) -> Result<(), InputError> {
        let is_answer = matches!(input, Input::Approval { .. } | Input::ToolEnded { .. });
        self.take(conversation, now, input)?;
        if is_answer && let Phase::Tools { suspension, .. } = &mut self.phase {
            // Where others are still open, the run is suspended anew, and whoever waits for that is told.
            *suspension = Suspension::None;
        }
        Ok(())
    }

    /// Hands an input to what waits for it.
    fn take(&mut self, conversation: &mut Conversation, now: Millis, input: Input) -> Result<(), InputError> {
        if self.waits_within(&input) {
            let (batch, mut context) = self.tools(conversation, now)?;
            return batch.hand_down(&mut context, input);
        }
        match input {
            Input::ModelEvents { call, events } if matches!(self.phase, Phase::Summarizing(_)) => {
                self.summary_events(conversation, now, call, events)
            }
            Input::ModelEnded { call, outcome } if matches!(self.phase, Phase::Summarizing(_)) => {
                self.summary_ended(conversation, now, call, outcome)
            }
            Input::ModelEvents { call, events } => self.model_events(conversation, now, call, events),
            Input::ModelEnded { call, outcome } => self.model_ended(conversation, now, call, outcome),
            Input::Timer { timer } => self.timer(conversation, now, timer),
            Input::InputValidated { call_id, outcome } => {
                let (batch, mut context) = self.tools(conversation, now)?;
                batch.call(&call_id)?.validated(&mut context, outcome)
            }
            Input::ToolProgress { call_id, data } => {
                let (batch, mut context) = self.tools(conversation, now)?;
                if !matches!(batch.call(&call_id)?.stage, Stage::Running { .. }) {
                    return Err(InputError::Unexpected);
                }
                context.emit(EventKind::ToolProgress { call_id, data });
                Ok(())
            }
            Input::ToolEnded { call_id, output } => {
                let (batch, mut context) = self.tools(conversation, now)?;
                batch.call(&call_id)?.ended(&mut context, output)
            }
            Input::ToolNotClaimed { call_id } => {
                let (batch, mut context) = self.tools(conversation, now)?;
                batch.call(&call_id)?.not_claimed(&mut context)
            }
            Input::HookReplied { hook, reply } => self.hook_replied(conversation, now, hook, reply),
            Input::HookSpent { hook, usage } => {
                if !matches!(&self.phase, Phase::Preparing { hook: asked, .. } if *asked == hook) {
                    return Err(InputError::Unexpected);
                }
                self.step_usage = self.step_usage.plus(usage);
                self.usage = self.usage.plus(usage);
                Ok(())
            }
            Input::Approval { call_id, decision, input_hash } => {
                let (batch, mut context) = self.tools(conversation, now)?;
                batch.call(&call_id)?.decided(&mut context, decision, input_hash)
            }
            Input::Prompt(_)
            | Input::Steer(_)
            | Input::FollowUp(_)
            | Input::EditQueued { .. }
            | Input::Unqueue { .. }
            | Input::Abort { .. }
            | Input::ToolsChanged(_)
            | Input::CheckpointSaved { .. }
            | Input::CheckpointFailed { .. } => Err(InputError::Unexpected),
        }
    }

    /// Goes on as far as it can without an answer from outside.
    pub(super) fn advance(&mut self, conversation: &mut Conversation, now: Millis) {
        loop {
            match &self.phase {
                Phase::BetweenSteps => self.begin_step(conversation, now),
                Phase::Saving { seq } if conversation.is_saved(*seq) => self.first_attempt(conversation, now),
                Phase::Tools { .. } => {
                    self.advance_tools(conversation, now);
                    if matches!(self.phase, Phase::Tools { .. }) {
                        return;
                    }
                }
                Phase::Ending { seq, .. } if conversation.is_saved(*seq) => self.say_end(conversation, now),
                _ => return,
            }
        }
    }

    /// A checkpoint is safe.
    pub(super) fn checkpoint_saved(&mut self, conversation: &mut Conversation, now: Millis, seq: u64) {
        self.context(conversation, now).emit(EventKind::CheckpointSaved { seq });
    }

    /// Whether the run, or one of a sub-agent, waits for this answer of the host.
    pub(super) fn awaits(&self, input: &Input) -> bool {
        let has_call = |call_id: &CallId| match &self.phase {
            Phase::Tools { batch, .. } => batch.calls.iter().any(|call| call.call.call_id == *call_id),
            _ => false,
        };
        let own = match input {
            Input::ModelEvents { call: id, .. } | Input::ModelEnded { call: id, .. } => match &self.phase {
                Phase::Calling(call) => call.id == *id,
                Phase::Summarizing(summarizing) => summarizing.call.id == *id,
                _ => false,
            },
            Input::Timer { timer } => self.timers.set.iter().any(|set| set.id == *timer),
            Input::InputValidated { call_id, .. }
            | Input::ToolProgress { call_id, .. }
            | Input::ToolEnded { call_id, .. }
            | Input::ToolNotClaimed { call_id }
            | Input::Approval { call_id, .. } => has_call(call_id),
            Input::HookReplied { hook: id, .. } | Input::HookSpent { hook: id, .. } => match &self.phase {
                Phase::Preparing { hook, .. } | Phase::ValidatingOutput { hook, .. } => hook == id,
                Phase::Tools { batch, .. } => batch.is_asking(*id),
                _ => false,
            },
            _ => false,
        };
        own || self.waits_within(input)
    }

    fn waits_within(&self, input: &Input) -> bool {
        matches!(&self.phase, Phase::Tools { batch, .. } if batch.waits_within(input))
    }

    /// Tokens of the run so far, those of the attempt in flight and of sub-agents at work included.
    pub(super) fn usage_so_far(&self) -> Usage {
        self.usage.plus(match &self.phase {
            Phase::Calling(call) => call.answer.usage(),
            Phase::Summarizing(summarizing) => summarizing.call.answer.usage(),
            Phase::Tools { batch, .. } => batch.spent_within(),
            _ => Usage::default(),
        })
    }

    /// Whether the run waits for approvals and client-side tools only.
    pub(super) fn is_suspended(&self) -> bool {
        matches!(self.phase, Phase::Tools { suspension: Suspension::Announced, .. })
    }

    /// Whether nothing but the saving is left of the run, so that nothing can be added to it.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// What the parts of the run need to act.
    pub(super) fn context<'run>(&'run mut self, conversation: &'run mut Conversation, now: Millis) -> Context<'run> {
        let step = self.steps.saturating_sub(1);
        let left = self.left(conversation);
        let active_tools = self.active_tools.as_deref();
        Context { now, run_id: &self.id, step, active_tools, left, timers: &mut self.timers, conversation }
    }

    /// The batch that is worked on, and what it needs to act.
    fn tools<'run>(
        &'run mut self,
        conversation: &'run mut Conversation,
        now: Millis,
    ) -> Result<(&'run mut Batch, Context<'run>), InputError> {
        let step = self.steps.saturating_sub(1);
        let left = self.left(conversation);
        let Phase::Tools { batch, .. } = &mut self.phase else { return Err(InputError::Unexpected) };
        let active_tools = self.active_tools.as_deref();
        let timers = &mut self.timers;
        Ok((batch, Context { now, run_id: &self.id, step, active_tools, left, timers, conversation }))
    }

    fn hook_replied(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        hook: HookId,
        reply: Result<HookReply, String>,
    ) -> Result<(), InputError> {
        if matches!(self.phase, Phase::Preparing { .. }) {
            return self.step_hook_replied(conversation, now, hook, reply);
        }
        if let Phase::ValidatingOutput { hook: asked, .. } = &self.phase {
            if *asked != hook {
                return Err(InputError::Unexpected);
            }
            self.output_validated(conversation, now, reply);
            return Ok(());
        }
        let (batch, mut context) = self.tools(conversation, now)?;
        batch.asked(hook)?.hook_replied(&mut context, reply);
        Ok(())
    }

    fn advance_tools(&mut self, conversation: &mut Conversation, now: Millis) {
        let step = self.steps.saturating_sub(1);
        let left = self.left(conversation);
        let active_tools = self.active_tools.as_deref();
        let Phase::Tools { batch, suspension } = &mut self.phase else { return };
        let timers = &mut self.timers;
        let mut context = Context { now, run_id: &self.id, step, active_tools, left, timers, conversation };
        batch.advance(&mut context);
        if let Some((results, terminate)) = batch.results(context.conversation.agent.policy.terminate) {
            let spent = batch.spent_within();
            self.step_usage = self.step_usage.plus(spent);
            self.usage = self.usage.plus(spent);
            self.finish_batch(conversation, now, results, terminate.then_some(EndReason::Terminated));
        } else if batch.is_suspended() {
            if *suspension == Suspension::None {
                // Saved first: whoever reads of the suspension may end the process.
                *suspension = Suspension::Saving { seq: context.conversation.checkpoint() };
            }
            if let Suspension::Saving { seq } = suspension
                && context.conversation.is_saved(*seq)
            {
                *suspension = Suspension::Announced;
                context.emit(EventKind::RunSuspended);
            }
        } else {
            *suspension = Suspension::None;
        }
    }

    fn timer(&mut self, conversation: &mut Conversation, now: Millis, id: TimerId) -> Result<(), InputError> {
        let timer = self.timers.fired(id).ok_or(InputError::Unexpected)?;
        match timer.purpose {
            Purpose::RunTimeout => self.time_is_up(conversation, now),
            Purpose::ModelSilence if matches!(self.phase, Phase::Summarizing(_)) => {
                self.summary_is_silent(conversation, now);
            }
            Purpose::ModelSilence => self.model_is_silent(conversation, now),
            Purpose::Retry => {
                if let Phase::Waiting { attempt } = self.phase {
                    self.prepare_call(conversation, now, attempt);
                }
            }
            Purpose::Approval(call_id) => {
                if let Ok((batch, mut context)) = self.tools(conversation, now)
                    && let Ok(call) = batch.call(&call_id)
                {
                    call.approval_expired(&mut context);
                }
            }
            Purpose::StepHook => self.step_hook_timed_out(conversation, now),
            Purpose::Tool(call_id) => {
                if let Ok((batch, mut context)) = self.tools(conversation, now)
                    && let Ok(call) = batch.call(&call_id)
                {
                    call.timed_out(&mut context);
                }
            }
            Purpose::Hook(call_id) => {
                let limit = conversation.agent.policy.hook_timeout.unwrap_or_default();
                if let Ok((batch, mut context)) = self.tools(conversation, now)
                    && let Ok(call) = batch.call(&call_id)
                {
                    call.asking_timed_out(&mut context, limit);
                }
            }
        }
        Ok(())
    }
}
