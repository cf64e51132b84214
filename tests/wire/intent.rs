//! One conversation that uses every feature a request can have.

use std::sync::Arc;

use crablet::json::RawJson;
use crablet::model::{
    AssistantMessage, Body, CallId, Content, File, FileData, Message, MessageId, Model, ModelRequest, Origin, Part,
    RequestOptions, StopReason, ToolCall, ToolInput, ToolMessage, ToolResult, ToolSpec, Usage, UserMessage,
};

pub(crate) fn message(id: &str, body: Body) -> Arc<Message> {
    Arc::new(Message { id: MessageId::new(id), body })
}

pub(crate) fn user(id: &str, content: Vec<Content>) -> Arc<Message> {
    message(id, Body::User(UserMessage { content, origin: Origin::Prompt }))
}

pub(crate) fn text(text: &str) -> Content {
    Content::Text(text.to_owned())
}

pub(crate) fn image() -> Content {
    Content::File(File { media_type: "image/png".into(), data: FileData::Base64("aGk=".into()), name: None })
}

pub(crate) fn assistant(id: &str, model: &Model, content: Vec<Part>) -> Arc<Message> {
    message(
        id,
        Body::Assistant(AssistantMessage {
            content,
            model: model.reference(),
            stop_reason: StopReason::ToolUse,
            usage: Usage::default(),
        }),
    )
}

pub(crate) fn call(id: &str, name: &str, input: &str) -> Part {
    let input = RawJson::parse(input).map_or_else(
        |error| ToolInput::Malformed { text: input.to_owned(), reason: error.to_string() },
        ToolInput::Json,
    );
    Part::ToolCall(ToolCall { call_id: CallId::new(id), tool_name: name.into(), input, replay: None })
}

pub(crate) fn result(id: &str, name: &str, content: Vec<Content>, is_error: bool) -> ToolResult {
    ToolResult { call_id: CallId::new(id), tool_name: name.into(), content, output: None, details: None, is_error }
}

pub(crate) fn results(id: &str, results: Vec<ToolResult>) -> Arc<Message> {
    message(id, Body::Tool(ToolMessage { results }))
}

pub(crate) fn tool(name: &str, schema: &str) -> ToolSpec {
    ToolSpec { name: name.into(), description: "Finds things.".into(), input_schema: RawJson::parse(schema).unwrap() }
}

pub(crate) fn raw(json: &str) -> RawJson {
    RawJson::parse(json).unwrap()
}

/// A question with a picture, reasoning, two parallel calls with their results, and a second question.
pub(crate) fn conversation(model: &Model, reasoning: &str) -> ModelRequest {
    let schema = r#"{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}"#;
    ModelRequest {
        model: model.clone(),
        instructions: Some("Be brief.".into()),
        messages: vec![
            user("1", vec![text("What is this?"), image()]),
            assistant(
                "2",
                model,
                vec![
                    Part::Reasoning { text: "Hm.".into(), replay: Some(raw(reasoning)) },
                    Part::Text { text: "I look.".into(), replay: None },
                    call("call_1", "find", r#"{"q": "a"}"#),
                    call("call_2", "find", r#"{"q": "b"}"#),
                ],
            ),
            results(
                "3",
                vec![
                    result("call_1", "find", vec![text("A.")], false),
                    result("call_2", "find", vec![text("No such thing.")], true),
                ],
            ),
            user("4", vec![text("And now?")]),
        ],
        tools: vec![tool("find", schema)].into(),
        options: RequestOptions::default().into(),
    }
}
