//! From the JSON form of events back to events, for those that travelled.

use std::sync::Arc;

use super::approval::InputHash;
use super::event::{BlockId, EndReason, Event, EventKind, RunEnd, RunId};
use crate::error::Error;
use crate::json::{Object, RawJson};
use crate::model::{CallId, Content, File, Message, MessageId, ModelRef, Source, ToolResult, Usage};

impl Event {
    /// Reads the text of one event.
    ///
    /// `None` when it is none, when it is of a kind that this version does not know, or when it lacks what makes its kind.
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(&Object::parse(text).ok()?)
    }

    /// As [`parse`](Self::parse). Members that this version does not know are skipped.
    pub fn read(object: &Object<'_>) -> Option<Self> {
        Some(Self {
            run_id: RunId(object.string("runId")?.into()),
            step: object.read("step").unwrap_or_default(),
            kind: read_kind(object)?,
        })
    }
}

fn read_kind(object: &Object<'_>) -> Option<EventKind> {
    let block = || object.string("id")?.parse().ok().map(BlockId);
    let delta = || object.string("delta");
    let call_id = || object.string("callId").map(CallId::new);
    let tool_name = || object.string("toolName");
    let input = || object.get("input").map(RawJson::from);
    let message = || Some(Arc::new(Message::read(&object.object("message")?).ok()?));
    let message_id = || object.string("messageId").map(MessageId::new);
    Some(match object.string("type")?.as_str() {
        "run-start" => EventKind::RunStart,
        "step-start" => EventKind::StepStart,
        "message-added" => EventKind::MessageAdded(message()?),
        "text-start" => EventKind::TextStart(block()?),
        "text-delta" => EventKind::TextDelta(block()?, delta()?),
        "text-end" => EventKind::TextEnd(block()?),
        "reasoning-start" => EventKind::ReasoningStart(block()?),
        "reasoning-delta" => EventKind::ReasoningDelta(block()?, delta()?),
        "reasoning-end" => EventKind::ReasoningEnd(block()?),
        "tool-input-start" => {
            EventKind::ToolInputStart { block: block()?, call_id: call_id()?, tool_name: tool_name()? }
        }
        "tool-input-delta" => EventKind::ToolInputDelta(block()?, delta()?),
        "tool-input-end" => EventKind::ToolInputEnd(block()?),
        "tool-call" => EventKind::ToolCall {
            call_id: call_id()?,
            tool_name: tool_name()?,
            input: input()?,
            server: object.string("server"),
        },
        "approval-request" => EventKind::ApprovalRequest {
            call_id: call_id()?,
            tool_name: tool_name()?,
            input: input()?,
            input_hash: InputHash::parse(&object.string("inputHash")?)?,
        },
        "approval-response" => EventKind::ApprovalResponse { call_id: call_id()?, allowed: object.boolean("allowed")? },
        "tool-start" => EventKind::ToolStart {
            call_id: call_id()?,
            input: input()?,
            client_side: object.boolean("clientSide").unwrap_or(false),
        },
        "tool-progress" => {
            EventKind::ToolProgress { call_id: call_id()?, data: object.get("data").map(RawJson::from)? }
        }
        "sub-agent-event" => {
            EventKind::SubAgentEvent { call_id: call_id()?, event: Box::new(Event::read(&object.object("event")?)?) }
        }
        "tool-result" => EventKind::ToolResult(Arc::new(read_result(object)?)),
        "source" => EventKind::Source(Source::read(&object.object("source")?)),
        "file" => EventKind::File(File::read(&object.object("file")?).ok()?),
        "step-retry" => EventKind::StepRetry {
            attempt: object.read("attempt")?,
            delay: object.integer("delayMs").unwrap_or_default(),
            error: Error::read(&object.object("error")?),
            model: object.object("model").map(|model| ModelRef::read(&model)),
        },
        "compaction-start" => EventKind::CompactionStart,
        "compaction-end" => EventKind::CompactionEnd {
            message: message()?,
            replaced: object.read("replaced").unwrap_or_default(),
            tokens_before: object.integer("tokensBefore").unwrap_or_default(),
            tokens_after: object.integer("tokensAfter").unwrap_or_default(),
        },
        "schema-unchecked" => {
            EventKind::SchemaUnchecked { tool_name: tool_name(), keywords: object.read("keywords").unwrap_or_default() }
        }
        "limit-reached" => {
            let limit = object.string("limit")?;
            EventKind::LimitReached { limit: LIMITS.into_iter().find(|known| *known == limit)? }
        }
        "steer-delivered" => EventKind::SteerDelivered { id: message_id()? },
        "steer-dropped" => EventKind::SteerDropped { id: message_id()? },
        "checkpoint-saved" => EventKind::CheckpointSaved { seq: object.integer("seq")? },
        "step-end" => EventKind::StepEnd { message: message()?, usage: usage(object) },
        "run-suspended" => EventKind::RunSuspended,
        "run-end" => EventKind::RunEnd(RunEnd {
            reason: EndReason::from_name(&object.string("stopReason")?)?,
            usage: usage(object),
            error: object.object("error").map(|error| Error::read(&error)),
            text: object.string("text").unwrap_or_default(),
            output: object.get("output").map(RawJson::from),
            message: message(),
        }),
        _ => return None,
    })
}

/// An `output` without `content` is the text that stands for both.
fn read_result(object: &Object<'_>) -> Option<ToolResult> {
    let mut result = ToolResult::read(object).ok()?;
    if object.get("content").is_none() {
        result.content = vec![Content::Text(object.string("output").unwrap_or_default())];
        result.output = None;
    }
    Some(result)
}

fn usage(object: &Object<'_>) -> Usage {
    object.object("usage").map(|usage| Usage::read(&usage)).unwrap_or_default()
}

/// What [`EventKind::LimitReached`] names.
const LIMITS: [&str; 5] = ["steps", "tokens", "cost", "time", "loop"];
