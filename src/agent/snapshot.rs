//! Writes the state of a session: its first line and the line of each checkpoint. What they look like stands in the
//! documentation of [`Session::snapshot`](super::Session::snapshot).

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::call::{AfterValidation, Call, Stage};
use super::conversation::Conversation;
use super::input::ToolOutput;
use super::output::Output;
use super::queue::{Queue, QueuedMessage};
use super::run::{Phase, Run};
use super::timers::{Purpose, Timer};
use super::tokens;
use crate::json::RawJson;
use crate::model::{CallId, ToolInput, Usage};

/// The value of `format`.
pub(super) const FORMAT: &str = "crablet-session";

/// The version that is written.
pub(super) const VERSION: u64 = 2;

/// The first line.
pub(super) struct Header {
    pub(super) seed: u64,
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("format", FORMAT)?;
        map.serialize_entry("version", &VERSION)?;
        map.serialize_entry("seed", &format_args!("{:016x}", self.seed))?;
        map.end()
    }
}

/// The line that makes what stands before it count: where the session is, and all that is small.
pub(super) struct State<'session> {
    pub(super) conversation: &'session Conversation,
    pub(super) run: Option<&'session Run>,
}

impl Serialize for State<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Conversation { tools, ids, checkpoints, tree, token_scale, steers, follow_ups, .. } = self.conversation;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "state")?;
        map.serialize_entry("head", &tree.head())?;
        map.serialize_entry("nextId", &ids.next)?;
        map.serialize_entry("checkpoint", &checkpoints.asked)?;
        if *token_scale != tokens::EXACT {
            map.serialize_entry("tokenScale", token_scale)?;
        }
        if !tools.found().is_empty() {
            map.serialize_entry("foundTools", tools.found())?;
        }
        map.serialize_entry("steers", steers)?;
        map.serialize_entry("followUps", follow_ups)?;
        map.serialize_entry("run", &self.run)?;
        map.end()
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl Serialize for QueuedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("content", &self.content)?;
        map.end()
    }
}

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The attempt in flight is lost with the process, but its tokens were spent.
        let in_flight = match &self.phase {
            Phase::Calling(call) => call.answer.usage(),
            Phase::Summarizing(summarizing) => summarizing.call.answer.usage(),
            _ => Usage::default(),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("steps", &self.steps)?;
        map.serialize_entry("blocks", &self.blocks)?;
        map.serialize_entry("usage", &self.usage.plus(in_flight))?;
        map.serialize_entry("stepUsage", &self.step_usage.plus(in_flight))?;
        if let Some(active_tools) = &self.active_tools {
            map.serialize_entry("activeTools", active_tools)?;
        }
        if self.fallback > 0 {
            map.serialize_entry("fallback", &self.fallback)?;
            map.serialize_entry("attemptsBefore", &self.attempts_before)?;
        }
        if let Some(output) = &self.output {
            map.serialize_entry("output", output)?;
        }
        map.serialize_entry("timers", &self.timers.set)?;
        map.serialize_entry("phase", &self.phase)?;
        map.end()
    }
}

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.schema.name)?;
        if let Some(description) = &self.schema.description {
            map.serialize_entry("description", description)?;
        }
        map.serialize_entry("schema", &self.schema.schema)?;
        map.serialize_entry("repairs", &self.repairs)?;
        map.end()
    }
}

impl Serialize for Timer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id.0)?;
        map.serialize_entry("at", &self.at)?;
        map.serialize_entry("purpose", self.purpose.name())?;
        if let Some(call_id) = self.purpose.call_id() {
            map.serialize_entry("callId", call_id)?;
        }
        map.end()
    }
}

impl Purpose {
    fn name(&self) -> &'static str {
        match self {
            Self::RunTimeout => "run-timeout",
            Self::ModelSilence => "model-silence",
            Self::Retry => "retry",
            Self::Tool(_) => "tool",
            Self::Hook(_) => "hook",
            Self::Approval(_) => "approval",
            Self::StepHook => "step-hook",
        }
    }

    fn call_id(&self) -> Option<&CallId> {
        match self {
            Self::Tool(call_id) | Self::Hook(call_id) | Self::Approval(call_id) => Some(call_id),
            Self::RunTimeout | Self::ModelSilence | Self::Retry | Self::StepHook => None,
        }
    }
}

impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::BetweenSteps => map.serialize_entry("type", "between-steps")?,
            Self::Saving { .. } => map.serialize_entry("type", "saving")?,
            Self::Preparing { hook, question, attempt } => {
                map.serialize_entry("type", "preparing")?;
                map.serialize_entry("hook", &hook.0)?;
                map.serialize_entry("question", question.name())?;
                map.serialize_entry("attempt", attempt)?;
            }
            Self::Summarizing(summarizing) => {
                map.serialize_entry("type", "summarizing")?;
                map.serialize_entry("attempt", &summarizing.next.number)?;
            }
            Self::Calling(call) => {
                map.serialize_entry("type", "calling")?;
                map.serialize_entry("attempt", &call.attempt)?;
            }
            Self::Waiting { attempt } => {
                map.serialize_entry("type", "waiting")?;
                map.serialize_entry("attempt", attempt)?;
            }
            Self::Tools { batch, .. } => {
                map.serialize_entry("type", "tools")?;
                map.serialize_entry("calls", &batch.calls)?;
            }
            Self::ValidatingOutput { hook, output } => {
                map.serialize_entry("type", "validating-output")?;
                map.serialize_entry("hook", &hook.0)?;
                map.serialize_entry("output", output)?;
            }
            Self::Ending { end, .. } => {
                map.serialize_entry("type", "ending")?;
                map.serialize_entry("stopReason", end.reason.as_str())?;
                map.serialize_entry("text", &end.text)?;
                map.serialize_entry("usage", &end.usage)?;
                if let Some(output) = &end.output {
                    map.serialize_entry("output", output)?;
                }
                if let Some(message) = &end.message {
                    map.serialize_entry("message", message)?;
                }
                if let Some(error) = &end.error {
                    map.serialize_entry("error", error)?;
                }
            }
            // Not seen outside the machine: the session drops the run before an input is done.
            Self::Over => map.serialize_entry("type", "over")?,
        }
        map.end()
    }
}

impl Serialize for Call {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("callId", &self.call.call_id)?;
        if self.spent != Usage::default() {
            map.serialize_entry("spent", &self.spent)?;
        }
        map.serialize_entry("stage", self.stage.name())?;
        match &self.stage {
            // The result has a line of its own.
            Stage::Waiting | Stage::Done { .. } => {}
            Stage::Validating { input, then } => {
                self.write_input(&mut map, input)?;
                map.serialize_entry("then", then.name())?;
            }
            Stage::AskingBefore { input, hook } => {
                self.write_input(&mut map, input)?;
                map.serialize_entry("hook", &hook.0)?;
            }
            Stage::AwaitingApproval { input }
            | Stage::Ready { input }
            | Stage::Recording { input, .. }
            | Stage::Running { input } => self.write_input(&mut map, input)?,
            Stage::Delegated { input } => {
                self.write_input(&mut map, input)?;
                if let Some(nested) = &self.session {
                    map.serialize_entry("session", &nested.session.state())?;
                }
            }
            Stage::AskingAfter { hook, input, output } => {
                self.write_input(&mut map, input)?;
                map.serialize_entry("hook", &hook.0)?;
                map.serialize_entry("output", output)?;
            }
        }
        map.end()
    }
}

impl Call {
    /// The input, unless it is the very text that the message has.
    fn write_input<M: SerializeMap>(&self, map: &mut M, input: &RawJson) -> Result<(), M::Error> {
        match &self.call.input {
            ToolInput::Json(own) if own == input => Ok(()),
            _ => map.serialize_entry("input", input),
        }
    }
}

impl Stage {
    fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Validating { .. } => "validating",
            Self::AskingBefore { .. } => "asking-before",
            Self::AwaitingApproval { .. } => "awaiting-approval",
            Self::Ready { .. } => "ready",
            // Whoever reads this cannot know whether it was handed out after the saving, so it counts as handed out.
            Self::Recording { .. } | Self::Running { .. } => "started",
            Self::Delegated { .. } => "delegated",
            Self::AskingAfter { .. } => "asking-after",
            Self::Done { .. } => "done",
        }
    }
}

impl AfterValidation {
    fn name(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Approval => "approval",
            Self::Ask => "ask",
            Self::Run => "run",
        }
    }
}

/// Written as `{content, output?, details?, isError, terminate}`.
impl Serialize for ToolOutput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("content", &self.content)?;
        if let Some(output) = &self.output {
            map.serialize_entry("output", output)?;
        }
        if let Some(details) = &self.details {
            map.serialize_entry("details", details)?;
        }
        map.serialize_entry("isError", &self.is_error)?;
        map.serialize_entry("terminate", &self.terminate)?;
        map.end()
    }
}
