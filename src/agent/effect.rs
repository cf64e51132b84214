//! What a session asks of its host.

use std::sync::Arc;

use super::definition::ToolDefinition;
use super::event::RunId;
use super::journal::Save;
use crate::json::RawJson;
use crate::model::{CallId, Message, ModelRef, ModelRequest, ToolResult};
use crate::time::Millis;

/// Something the host must do. Each names the [`Input`](super::Input) that answers it.
///
/// Exhaustive on purpose: a host that does not know an effect would lose it.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Call the model; answered by `ModelEvents` and one `ModelEnded`.
    CallModel {
        /// Names this attempt. A later attempt of the same step has another.
        call: ModelCallId,
        /// What to send.
        request: Arc<ModelRequest>,
    },
    /// Stop a model call at once. Not answered; events that still come are ignored.
    CancelModel {
        /// The attempt.
        call: ModelCallId,
    },
    /// Ask the host's own validator; answered by `InputValidated`.
    ValidateInput {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: Arc<ToolDefinition>,
        /// The input, valid against the JSON Schema.
        input: RawJson,
    },
    /// Run a tool; answered by any number of `ToolProgress` and one `ToolEnded`.
    CallTool {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: Arc<ToolDefinition>,
        /// The validated input.
        input: RawJson,
        /// By what a later host may claim the result, where the tool is `claimable`: the same text after a restore, and
        /// another one for any other call.
        claim_key: Option<Arc<str>>,
    },
    /// Claim the result of a `claimable` tool that an earlier host started; the tool is not run. Answered by any number of
    /// `ToolProgress` and one `ToolEnded` or `ToolNotClaimed`. Only asked for after a restore.
    ClaimTool {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: Arc<ToolDefinition>,
        /// The input that it was started with.
        input: RawJson,
        /// The key that its `CallTool` had.
        claim_key: Arc<str>,
    },
    /// Tell a running tool to stop. Not answered; what it still reports is ignored.
    CancelTool {
        /// The call.
        call_id: CallId,
    },
    /// Ask a hook; answered by `HookReplied`.
    AskHook {
        /// Names the question.
        hook: HookId,
        /// The run that asks.
        run_id: RunId,
        /// The question.
        question: HookQuestion,
    },
    /// Ask a person; answered by `Approval`. Also shown as an `approval-request` event.
    AskApproval {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: Arc<ToolDefinition>,
        /// The input that the approval is bound to.
        input: RawJson,
    },
    /// Send `Input::Timer` at this time or later. Replaces a timer with the same id.
    SetTimer {
        /// The timer.
        timer: TimerId,
        /// When.
        at: Millis,
    },
    /// Forget a timer.
    ClearTimer {
        /// The timer.
        timer: TimerId,
    },
    /// Do this for the agent of a tool, whose functions, keys and hooks are other ones. Only effects that need them are
    /// wrapped so, once for each level of sub-agents; the answers are not wrapped, since their ids are unique.
    OfSubAgent {
        /// The tool that is the agent.
        tool: Arc<ToolDefinition>,
        /// What to do.
        effect: Box<Self>,
    },
    /// Save the session; answered by `CheckpointSaved` or `CheckpointFailed`.
    ///
    /// The host saves checkpoints in their order. It may join those that wait with [`Save::then`]. After one that failed it
    /// saves no [`Save::Append`] any more until a [`Save::Replace`] was saved. Only asked for when the agent has a store.
    Checkpoint {
        /// Grows by one with each.
        seq: u64,
        /// What has changed since the checkpoint before.
        save: Save,
    },
}

impl Effect {
    /// The effect without the sub-agents that it is for.
    pub fn innermost(&self) -> &Self {
        match self {
            Self::OfSubAgent { effect, .. } => effect.innermost(),
            effect => effect,
        }
    }

    /// Whether a function of the agent performs it.
    pub(super) fn is_for_a_function(&self) -> bool {
        match self {
            Self::CallModel { .. }
            | Self::ValidateInput { .. }
            | Self::CallTool { .. }
            | Self::ClaimTool { .. }
            | Self::AskHook { .. }
            | Self::AskApproval { .. }
            | Self::OfSubAgent { .. } => true,
            Self::CancelModel { .. }
            | Self::CancelTool { .. }
            | Self::SetTimer { .. }
            | Self::ClearTimer { .. }
            | Self::Checkpoint { .. } => false,
        }
    }
}

impl HookQuestion {
    /// Whether the one who is asked may call models in the name of the run.
    #[cfg(feature = "host")]
    pub(crate) fn may_call_models(&self) -> bool {
        matches!(self, Self::PrepareStep { .. } | Self::PrepareContext { .. } | Self::StopWhen { .. })
    }
}

/// Names one attempt of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelCallId(pub u64);

/// Names a question to a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HookId(pub u64);

/// Names a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(pub u64);

/// A question to a hook.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HookQuestion {
    /// May this call run, and with what input? Asked after validation.
    BeforeToolCall {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: Arc<ToolDefinition>,
        /// The validated input.
        input: RawJson,
    },
    /// Shall this result be changed?
    AfterToolCall {
        /// The tool.
        tool: Arc<ToolDefinition>,
        /// The input that was run.
        input: RawJson,
        /// The result so far.
        result: ToolResult,
    },
    /// Is this the object that the run shall end with? Asked where the agent's output has a validator, of an object that
    /// fits the JSON Schema. `Continue` takes it; `Deny`, or an error, says for the model to read what is wrong.
    ValidateOutput {
        /// The object.
        output: RawJson,
    },
    /// With which model and tools shall this step be made? Asked once a step.
    PrepareStep {
        /// The step, from 0.
        step: u32,
        /// What would be sent.
        request: Arc<ModelRequest>,
    },
    /// Shall the run end here? Asked after each batch of tool calls that would be followed by another step.
    StopWhen {
        /// The step that is over, from 0.
        step: u32,
        /// The messages of the run: its prompt and all that came after.
        messages: Vec<Arc<Message>>,
    },
    /// Shall another body be sent? Asked by the host, for each attempt of a model call over HTTP, once the request is encoded.
    /// To ask costs that the body is printed, parsed and printed again.
    FormatRequest {
        /// The model that is called.
        model: ModelRef,
        /// The body, without credentials.
        body: RawJson,
    },
    /// Which messages shall this step send? Asked once a step, after [`PrepareStep`](Self::PrepareStep).
    PrepareContext {
        /// The step, from 0.
        step: u32,
        /// What would be sent.
        request: Arc<ModelRequest>,
    },
}
