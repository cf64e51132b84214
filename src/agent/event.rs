//! What a user interface shows: the events of a run.

use std::sync::Arc;

use super::approval::InputHash;
use crate::error::Error;
use crate::json::RawJson;
use crate::model::{CallId, File, Message, MessageId, ModelRef, Source, StopReason, ToolResult, Usage};

/// One event of a run. A transcript can be rebuilt from events alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The run.
    pub run_id: RunId,
    /// The step, from 0.
    pub step: u32,
    /// What happened.
    pub kind: EventKind,
}

/// Names a run; unique within its session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunId(pub Arc<str>);

/// Names a text or reasoning block; unique within its run, failed attempts included. Written as text in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId(pub u32);

/// What happened. The kebab-case JSON names are stable; kinds and fields may be added.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// `run-start`: a run began, or was resumed.
    RunStart,
    /// `step-start`: a model call is about to be made.
    StepStart,
    /// `message-added`: a user message entered the history.
    MessageAdded(Arc<Message>),
    /// `text-start`
    TextStart(BlockId),
    /// `text-delta`
    TextDelta(BlockId, String),
    /// `text-end`
    TextEnd(BlockId),
    /// `reasoning-start`
    ReasoningStart(BlockId),
    /// `reasoning-delta`
    ReasoningDelta(BlockId, String),
    /// `reasoning-end`
    ReasoningEnd(BlockId),
    /// `tool-input-start`: the model began to write a call.
    ToolInputStart {
        /// The block that deltas name.
        block: BlockId,
        /// The call.
        call_id: CallId,
        /// Its tool.
        tool_name: String,
    },
    /// `tool-input-delta`: more JSON text of the arguments.
    ToolInputDelta(BlockId, String),
    /// `tool-input-end`
    ToolInputEnd(BlockId),
    /// `tool-call`: a call is complete and about to be prepared.
    ToolCall {
        /// The call.
        call_id: CallId,
        /// Its tool.
        tool_name: String,
        /// As the model wrote it; a JSON string when it is not valid JSON.
        input: RawJson,
        /// The MCP server of the tool.
        server: Option<String>,
    },
    /// `approval-request`: a person is asked.
    ApprovalRequest {
        /// The call.
        call_id: CallId,
        /// Its tool.
        tool_name: String,
        /// The input that would run.
        input: RawJson,
        /// Names that input: a decision that says it holds for no other.
        input_hash: InputHash,
    },
    /// `approval-response`: a person answered.
    ApprovalResponse {
        /// The call.
        call_id: CallId,
        /// Whether it may run.
        allowed: bool,
    },
    /// `tool-start`: the tool was handed to the host.
    ToolStart {
        /// The call.
        call_id: CallId,
        /// The input that runs.
        input: RawJson,
        /// Whether the caller's own client performs it, so that the run waits for its result.
        client_side: bool,
    },
    /// `tool-progress`
    ToolProgress {
        /// The call.
        call_id: CallId,
        /// What the tool reported.
        data: RawJson,
    },
    /// `sub-agent-event`: something happened in the run of the agent that works on the call.
    SubAgentEvent {
        /// The call.
        call_id: CallId,
        /// What happened. Its run, steps and blocks are those of the sub-agent's run.
        event: Box<Event>,
    },
    /// `tool-result`: the call has its one result.
    ToolResult(Arc<ToolResult>),
    /// `source`
    Source(Source),
    /// `file`
    File(File),
    /// `step-retry`: the attempt failed and another follows; everything since `step-start` is void.
    StepRetry {
        /// The number of the attempt to come, from 2.
        attempt: u32,
        /// The wait before it, in milliseconds.
        delay: u64,
        /// What went wrong.
        error: Error,
        /// The model that makes it, when it is another than before.
        model: Option<ModelRef>,
    },
    /// `compaction-start`: the history is too long to be sent whole.
    CompactionStart,
    /// `compaction-end`: from now on a message is sent in the place of older ones. The history keeps them.
    CompactionEnd {
        /// What is sent.
        message: Arc<Message>,
        /// How many messages of the history it stands for.
        replaced: usize,
        /// About how many tokens were sent before.
        tokens_before: u64,
        /// About how many are sent now.
        tokens_after: u64,
    },
    /// `schema-unchecked`: a schema has keywords that are not checked, and no validator of the host that could.
    SchemaUnchecked {
        /// The tool whose input has the schema; `None` for the output of the run.
        tool_name: Option<String>,
        /// The keywords, as JSON pointers into the schema.
        keywords: Vec<String>,
    },
    /// `limit-reached`
    LimitReached {
        /// Which: `steps`, `tokens`, `cost`, `time` or `loop`.
        limit: &'static str,
    },
    /// `steer-delivered`: a steered message entered the history; its `message-added` follows.
    SteerDelivered {
        /// The message.
        id: MessageId,
    },
    /// `steer-dropped`: the run ended before it could be delivered, or it was taken out of the queue.
    SteerDropped {
        /// The message.
        id: MessageId,
    },
    /// `checkpoint-saved`
    CheckpointSaved {
        /// Its number.
        seq: u64,
    },
    /// `step-end`: the assistant message and all results are in the history.
    StepEnd {
        /// The assistant message.
        message: Arc<Message>,
        /// Tokens of the step, failed attempts and sub-agents included.
        usage: Usage,
    },
    /// `run-suspended`: only approvals and client-side tools are open; nothing more happens until one is answered. Comes again
    /// after an answer that leaves others open.
    RunSuspended,
    /// `run-end`: always the last event of a run, and always there.
    RunEnd(RunEnd),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// Why: a model's stop reason, or a reason of the loop.
    pub reason: EndReason,
    /// Tokens of the run, failed attempts and sub-agents included.
    pub usage: Usage,
    /// What went wrong, when something did.
    pub error: Option<Error>,
    /// The text of the last answer since the user spoke; empty when there is none.
    pub text: String,
    /// The object that the agent's output asks for, after the repairs of [`Schema::check`](crate::json::Schema::check).
    pub output: Option<RawJson>,
    /// The answer of a step that was cut short, as the history keeps it: such a step has no `step-end`. Each of its calls
    /// has its `tool-result`.
    pub message: Option<Arc<Message>>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The model's last answer ended for this reason.
    Model(StopReason),
    /// A tool or the hook `stopWhen` asked for the end.
    Terminated,
    /// A limit was reached.
    Limit,
}

impl EndReason {
    /// The kebab-case name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model(reason) => reason.as_str(),
            Self::Terminated => "terminated",
            Self::Limit => "limit",
        }
    }
}
