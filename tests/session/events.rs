//! The JSON form of every event is pinned, and events alone are enough to rebuild the conversation.

use std::sync::Arc;

use crablet::agent::{BlockId, EndReason, Event, EventKind, RunEnd, RunId};
use crablet::model::{
    AssistantMessage, Body, CallId, Content, File, FileData, Message, MessageId, ModelRef, Origin, Part, Source,
    StopReason, ToolResult, Usage, UserMessage,
};
use crablet::{Error, ErrorKind};

use crate::harness::raw;

fn call() -> CallId {
    CallId::new("c1")
}

fn result() -> ToolResult {
    ToolResult {
        call_id: call(),
        tool_name: "search".into(),
        content: vec![Content::Text("two hits".into())],
        output: None,
        details: None,
        is_error: false,
    }
}

fn usage() -> Usage {
    Usage { input: Some(10), output: Some(5), ..Usage::default() }
}

fn every_kind() -> Vec<EventKind> {
    let id = BlockId(3);
    let user = UserMessage { content: vec![Content::Text("hi".into())], origin: Origin::Steered };
    let assistant = AssistantMessage {
        content: vec![Part::Text { text: "hello".into(), replay: None }],
        model: ModelRef { wire: "anthropic".into(), provider: "anthropic".into(), id: "m".into() },
        stop_reason: StopReason::Stop,
        usage: usage(),
    };
    let cut = AssistantMessage { stop_reason: StopReason::Aborted, ..assistant.clone() };
    let error = Error::new(ErrorKind::Overloaded, "busy").with_status(529);
    vec![
        EventKind::RunStart,
        EventKind::StepStart,
        EventKind::MessageAdded(Arc::new(Message { id: MessageId::new("m1"), body: Body::User(user) })),
        EventKind::TextStart(id),
        EventKind::TextDelta(id, "a\"b".into()),
        EventKind::TextEnd(id),
        EventKind::ReasoningStart(id),
        EventKind::ReasoningDelta(id, "hm".into()),
        EventKind::ReasoningEnd(id),
        EventKind::ToolInputStart { block: id, call_id: call(), tool_name: "search".into() },
        EventKind::ToolInputDelta(id, "{\"q\"".into()),
        EventKind::ToolInputEnd(id),
        EventKind::ToolCall {
            call_id: call(),
            tool_name: "search".into(),
            input: raw(r#"{"q":1.0}"#),
            server: Some("docs".into()),
        },
        EventKind::ToolCall { call_id: call(), tool_name: "search".into(), input: raw("{}"), server: None },
        EventKind::ApprovalRequest {
            call_id: call(),
            tool_name: "search".into(),
            input: raw("{}"),
            input_hash: crablet::agent::InputHash::of(&raw("{}")),
        },
        EventKind::ApprovalResponse { call_id: call(), allowed: true },
        EventKind::ToolStart { call_id: call(), input: raw("{}"), client_side: false },
        EventKind::ToolStart { call_id: call(), input: raw("{}"), client_side: true },
        EventKind::ToolProgress { call_id: call(), data: raw(r#"{"done":0.5}"#) },
        EventKind::ToolResult(Arc::new(result())),
        EventKind::ToolResult(Arc::new(ToolResult {
            output: Some(raw(r#"{"hits":2}"#)),
            details: Some(raw("[1]")),
            is_error: true,
            ..result()
        })),
        EventKind::Source(Source { url: Some("https://example.com".into()), title: None, replay: None }),
        EventKind::File(File { media_type: "image/png".into(), data: FileData::Base64("AA==".into()), name: None }),
        EventKind::StepRetry { attempt: 2, delay: 750, error: error.clone(), model: None },
        EventKind::StepRetry {
            attempt: 3,
            delay: 0,
            error: error.clone(),
            model: Some(ModelRef { wire: "openai-chat".into(), provider: "groq".into(), id: "other".into() }),
        },
        EventKind::CompactionStart,
        EventKind::CompactionEnd {
            message: Arc::new(Message {
                id: MessageId::new("m3"),
                body: Body::User(UserMessage {
                    content: vec![Content::Text("in short".into())],
                    origin: Origin::Compacted,
                }),
            }),
            replaced: 12,
            tokens_before: 9_000,
            tokens_after: 400,
        },
        EventKind::SchemaUnchecked { tool_name: Some("search".into()), keywords: vec!["/properties/q/pattern".into()] },
        EventKind::LimitReached { limit: "steps" },
        EventKind::SteerDelivered { id: MessageId::new("m4") },
        EventKind::SteerDropped { id: MessageId::new("m5") },
        EventKind::SubAgentEvent {
            call_id: CallId::new("c1"),
            event: Box::new(Event { run_id: RunId("run_2".into()), step: 0, kind: EventKind::RunStart }),
        },
        EventKind::CheckpointSaved { seq: 4 },
        EventKind::StepEnd {
            message: Arc::new(Message { id: MessageId::new("m2"), body: Body::Assistant(assistant) }),
            usage: usage(),
        },
        EventKind::RunSuspended,
        EventKind::RunEnd(RunEnd {
            reason: EndReason::Model(StopReason::Stop),
            usage: usage(),
            error: None,
            text: "hello".into(),
            output: Some(raw(r#"{"hits":2}"#)),
            message: None,
        }),
        EventKind::RunEnd(RunEnd {
            reason: EndReason::Limit,
            usage: Usage::default(),
            error: Some(error),
            text: String::new(),
            output: None,
            message: Some(Arc::new(Message { id: MessageId::new("m4"), body: Body::Assistant(cut) })),
        }),
    ]
}

#[test]
fn the_json_form_of_every_event_is_pinned() {
    let written: Vec<String> = every_kind()
        .into_iter()
        .map(|kind| serde_json::to_string(&Event { run_id: RunId("run_1".into()), step: 2, kind }).unwrap())
        .collect();
    let golden: Vec<&str> = include_str!("golden/events.jsonl").lines().collect();
    assert_eq!(written, golden, "\n{}", written.join("\n"));
}

#[test]
fn every_event_is_read_back_from_its_json_form() {
    for kind in every_kind() {
        let event = Event { run_id: RunId("run_1".into()), step: 2, kind };
        assert_eq!(Event::parse(&serde_json::to_string(&event).unwrap()), Some(event));
    }
    for text in ["[]", r#"{"type":"run-start"}"#, r#"{"type":"from-the-future","runId":"r","step":0}"#] {
        assert_eq!(Event::parse(text), None, "{text}");
    }
}
