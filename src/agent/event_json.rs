//! The JSON form of events: `{"type", "runId", "step", …}` with names in camel case, as JavaScript gets them.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::event::{BlockId, Event, EventKind, RunEnd, RunId};
use crate::model::{Content, ToolResult, optional};

impl EventKind {
    /// The kebab-case name: the `type` of the JSON form.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunStart => "run-start",
            Self::StepStart => "step-start",
            Self::MessageAdded(_) => "message-added",
            Self::TextStart(_) => "text-start",
            Self::TextDelta(..) => "text-delta",
            Self::TextEnd(_) => "text-end",
            Self::ReasoningStart(_) => "reasoning-start",
            Self::ReasoningDelta(..) => "reasoning-delta",
            Self::ReasoningEnd(_) => "reasoning-end",
            Self::ToolInputStart { .. } => "tool-input-start",
            Self::ToolInputDelta(..) => "tool-input-delta",
            Self::ToolInputEnd(_) => "tool-input-end",
            Self::ToolCall { .. } => "tool-call",
            Self::ApprovalRequest { .. } => "approval-request",
            Self::ApprovalResponse { .. } => "approval-response",
            Self::ToolStart { .. } => "tool-start",
            Self::ToolProgress { .. } => "tool-progress",
            Self::SubAgentEvent { .. } => "sub-agent-event",
            Self::ToolResult(_) => "tool-result",
            Self::Source(_) => "source",
            Self::File(_) => "file",
            Self::StepRetry { .. } => "step-retry",
            Self::CompactionStart => "compaction-start",
            Self::CompactionEnd { .. } => "compaction-end",
            Self::SchemaUnchecked { .. } => "schema-unchecked",
            Self::LimitReached { .. } => "limit-reached",
            Self::SteerDelivered { .. } => "steer-delivered",
            Self::SteerDropped { .. } => "steer-dropped",
            Self::CheckpointSaved { .. } => "checkpoint-saved",
            Self::StepEnd { .. } => "step-end",
            Self::RunSuspended => "run-suspended",
            Self::RunEnd(_) => "run-end",
        }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("runId", &self.run_id)?;
        map.serialize_entry("step", &self.step)?;
        write_kind(&self.kind, &mut map)?;
        map.end()
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// As text, so that ids of all kinds look alike.
impl Serialize for BlockId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

fn write_kind<M: SerializeMap>(kind: &EventKind, map: &mut M) -> Result<(), M::Error> {
    match kind {
        EventKind::RunStart | EventKind::StepStart | EventKind::CompactionStart | EventKind::RunSuspended => Ok(()),
        EventKind::SteerDelivered { id } | EventKind::SteerDropped { id } => map.serialize_entry("messageId", id),
        EventKind::MessageAdded(message) => map.serialize_entry("message", message),
        EventKind::TextStart(id)
        | EventKind::TextEnd(id)
        | EventKind::ReasoningStart(id)
        | EventKind::ReasoningEnd(id)
        | EventKind::ToolInputEnd(id) => map.serialize_entry("id", id),
        EventKind::TextDelta(id, delta)
        | EventKind::ReasoningDelta(id, delta)
        | EventKind::ToolInputDelta(id, delta) => {
            map.serialize_entry("id", id)?;
            map.serialize_entry("delta", delta)
        }
        EventKind::ToolInputStart { block, call_id, tool_name } => {
            map.serialize_entry("callId", call_id)?;
            map.serialize_entry("toolName", tool_name)?;
            map.serialize_entry("id", block)
        }
        EventKind::ToolCall { call_id, tool_name, input, server } => {
            map.serialize_entry("callId", call_id)?;
            map.serialize_entry("toolName", tool_name)?;
            map.serialize_entry("input", input)?;
            optional(map, "server", server.as_ref())
        }
        EventKind::ApprovalRequest { call_id, tool_name, input, input_hash } => {
            map.serialize_entry("callId", call_id)?;
            map.serialize_entry("toolName", tool_name)?;
            map.serialize_entry("input", input)?;
            map.serialize_entry("inputHash", input_hash)
        }
        EventKind::ApprovalResponse { call_id, allowed } => {
            map.serialize_entry("callId", call_id)?;
            map.serialize_entry("allowed", allowed)
        }
        EventKind::ToolStart { call_id, input, client_side } => {
            map.serialize_entry("callId", call_id)?;
            map.serialize_entry("input", input)?;
            optional(map, "clientSide", client_side.then_some(client_side))
        }
        EventKind::ToolProgress { call_id, data } => {
            map.serialize_entry("callId", call_id)?;
            map.serialize_entry("data", data)
        }
        EventKind::SubAgentEvent { call_id, event } => {
            map.serialize_entry("callId", call_id)?;
            map.serialize_entry("event", event)
        }
        EventKind::ToolResult(result) => write_result(result, map),
        EventKind::Source(source) => map.serialize_entry("source", source),
        EventKind::File(file) => map.serialize_entry("file", file),
        EventKind::StepRetry { attempt, delay, error, model } => {
            map.serialize_entry("attempt", attempt)?;
            map.serialize_entry("delayMs", delay)?;
            map.serialize_entry("error", error)?;
            optional(map, "model", model.as_ref())
        }
        EventKind::CompactionEnd { message, replaced, tokens_before, tokens_after } => {
            map.serialize_entry("message", message)?;
            map.serialize_entry("replaced", replaced)?;
            map.serialize_entry("tokensBefore", tokens_before)?;
            map.serialize_entry("tokensAfter", tokens_after)
        }
        EventKind::SchemaUnchecked { tool_name, keywords } => {
            optional(map, "toolName", tool_name.as_ref())?;
            map.serialize_entry("keywords", keywords)
        }
        EventKind::LimitReached { limit } => map.serialize_entry("limit", limit),
        EventKind::CheckpointSaved { seq } => map.serialize_entry("seq", seq),
        EventKind::StepEnd { message, usage } => {
            map.serialize_entry("message", message)?;
            map.serialize_entry("usage", usage)
        }
        EventKind::RunEnd(end) => write_end(end, map),
    }
}

/// `output` is what the tool returned, else its text. `content` is what the model reads; it is left out when it is no
/// more than `output` once again.
fn write_result<M: SerializeMap>(result: &ToolResult, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("callId", &result.call_id)?;
    map.serialize_entry("toolName", &result.tool_name)?;
    match (&result.output, result.content.as_slice()) {
        (None, [Content::Text(text)]) => map.serialize_entry("output", text)?,
        (Some(output), content) => {
            map.serialize_entry("output", output)?;
            map.serialize_entry("content", content)?;
        }
        (None, content) => {
            map.serialize_entry("output", &joined_text(content))?;
            map.serialize_entry("content", content)?;
        }
    }
    optional(map, "details", result.details.as_ref())?;
    map.serialize_entry("isError", &result.is_error)
}

fn write_end<M: SerializeMap>(end: &RunEnd, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("stopReason", end.reason.as_str())?;
    map.serialize_entry("text", &end.text)?;
    map.serialize_entry("usage", &end.usage)?;
    optional(map, "output", end.output.as_ref())?;
    optional(map, "message", end.message.as_ref())?;
    optional(map, "error", end.error.as_ref())
}

fn joined_text(content: &[Content]) -> String {
    let text = |content: &Content| match content {
        Content::Text(text) => Some(text.clone()),
        Content::File(_) => None,
    };
    content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
