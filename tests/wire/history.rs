//! Histories as they come to be: by other providers, with aborted turns, orphans, foreign ids and files of every kind.

use std::sync::Arc;

use crablet::model::openai_chat::{self, Profile};
use crablet::model::{
    AssistantMessage, Body, Content, File, FileData, FileKinds, Message, Model, Part, Source, StopReason, ToolResult,
    Usage, anthropic, azure, bedrock, gemini, openai_responses, vertex,
};
use proptest::prelude::*;

use super::intent::{call, message, raw, result, results, user};

/// Models of all wires, and those whose servers differ most.
pub(crate) fn models() -> Vec<Model> {
    vec![
        anthropic::model("claude-sonnet-4-5"),
        anthropic::model("claude-opus-4-8"),
        openai_chat::model(Profile::OpenAi, "gpt-5.2"),
        openai_chat::model(Profile::Mistral, "mistral-large-latest"),
        openai_chat::model(Profile::DeepSeek, "deepseek-chat"),
        openai_chat::model(Profile::LlamaCpp, "gemma"),
        openai_chat::model(Profile::OpenRouter, "anthropic/claude-sonnet-4.5"),
        openai_chat::model(Profile::Groq, "llama").with_files(FileKinds::NONE),
        openai_responses::model("gpt-5.2"),
        azure::model("https://name.openai.azure.com", "deployment"),
        azure::chat_model("https://name.openai.azure.com", "deployment"),
        gemini::model("gemini-2.5-flash"),
        gemini::model("gemini-3-flash-preview"),
        vertex::model("project", "global", "gemini-3-pro"),
        bedrock::model("us-east-1", "us.anthropic.claude-sonnet-4-5-v1:0"),
        bedrock::model("us-east-1", "amazon.nova-pro-v1:0"),
    ]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-zé\"\\\\ ]{1,8}", 1 => Just(String::new()), 1 => Just(" \n".to_owned())]
}

fn file() -> impl Strategy<Value = Content> {
    let media_type = prop::sample::select(vec![
        "image/png",
        "image/jpg",
        "image/svg+xml",
        "audio/wav",
        "application/pdf",
        "text/plain",
        "video/mp4",
        "application/x-unknown",
        "",
    ]);
    let data = prop_oneof![
        Just(FileData::Base64("aGk=".into())),
        Just(FileData::Base64("no base64".into())),
        Just(FileData::Url("https://example.com/file".into())),
        Just(FileData::Url("s3://bucket/key".into())),
    ];
    let name = prop::option::of(prop::sample::select(vec!["a.pdf", "größe  2.txt", ""]));
    (media_type, data, name).prop_map(|(media_type, data, name)| {
        Content::File(File { media_type: media_type.into(), data, name: name.map(str::to_owned) })
    })
}

fn content() -> impl Strategy<Value = Vec<Content>> {
    prop::collection::vec(prop_oneof![2 => words().prop_map(Content::Text), 1 => file()], 0..4)
}

/// Ids of every provider, some of them the same ones again.
fn id() -> impl Strategy<Value = String> {
    let known = ["call_1", "call_1_2", "functions.t:0", "call_abc|fc_1", "a\nb", "abcDEF123", "", "ünï"];
    prop_oneof![
        prop::sample::select(known.map(str::to_owned).to_vec()),
        (0u8..3).prop_map(|number| format!("{}{number}", "x".repeat(70))),
    ]
}

fn tool_name() -> impl Strategy<Value = String> {
    prop::sample::select(["t", "files/read.txt", "7zip", "gone"].map(str::to_owned).to_vec())
}

/// Blocks with the data of each wire, whoever wrote the message.
fn part() -> impl Strategy<Value = Part> {
    let reasoning = prop::sample::select(vec![
        r#"{"signature":"c2ln"}"#,
        r#"{"redacted":"cmVk"}"#,
        r#"{"thoughtSignature":"c2ln"}"#,
        r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"RU5D"}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"Hm.","signature":"c2ln","index":0}]}"#,
        "{}",
    ]);
    let provider = prop::sample::select(vec![
        ("server_tool_use", r#"{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}"#),
        ("web_search_tool_result", r#"{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}"#),
        ("mcp_tool_use", r#"{"type":"mcp_tool_use","id":"mcp_1","name":"t","server_name":"s","input":{}}"#),
        ("web_search_call", r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#),
        ("computer_call", r#"{"type":"computer_call","id":"cu_1","call_id":"call_9","action":{"type":"screenshot"}}"#),
        ("executableCode", r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#),
    ]);
    let text = prop::option::of(prop::sample::select(vec![r#"{"thoughtSignature":"c2ln"}"#, r#"{"refusal":true}"#]));
    let input = prop::sample::select(vec!["{}", r#"{"q": "a"}"#, "[1]", "\"x\"", r#"{"a":1"#, ""]);
    prop_oneof![
        3 => (words(), text).prop_map(|(text, replay)| Part::Text { text, replay: replay.map(raw) }),
        2 => (words(), prop::option::of(reasoning)).prop_map(|(text, replay)| Part::Reasoning { text, replay: replay.map(raw) }),
        4 => (id(), tool_name(), input).prop_map(|(id, name, input)| call(&id, &name, input)),
        1 => provider.prop_map(|(kind, block)| Part::Provider { kind: kind.into(), replay: raw(block) }),
        1 => Just(Part::Source(Source::default())),
        1 => file().prop_map(|content| match content {
            Content::File(file) => Part::File(file),
            other => panic!("{other:?} is no file"),
        }),
    ]
}

fn tool_result() -> impl Strategy<Value = ToolResult> {
    (id(), tool_name(), content(), any::<bool>())
        .prop_map(|(id, name, content, is_error)| result(&id, &name, content, is_error))
}

/// What happens next in a conversation.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    User(Vec<Content>),
    /// Blocks, how the answer ended, and which calls get a result, in which order.
    Assistant(Vec<Part>, StopReason, Vec<prop::sample::Index>),
    /// Results that need not belong to anything.
    Results(Vec<ToolResult>),
    /// The last message is put in place of an earlier one, as a hook may do.
    Replace(prop::sample::Index),
    Drop(prop::sample::Index),
    /// Another model writes and reads from here on.
    Switch(prop::sample::Index),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let answered = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    let parts = prop::collection::vec(part(), 0..6);
    prop_oneof![
        3 => content().prop_map(Step::User),
        4 => (parts, prop::sample::select(StopReason::ALL), answered)
            .prop_map(|(parts, stop, answered)| Step::Assistant(parts, stop, answered)),
        1 => prop::collection::vec(tool_result(), 0..3).prop_map(Step::Results),
        1 => any::<prop::sample::Index>().prop_map(Step::Replace),
        1 => any::<prop::sample::Index>().prop_map(Step::Drop),
        2 => any::<prop::sample::Index>().prop_map(Step::Switch),
    ]
}

fn wires_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "web_search_call" | "computer_call" => &["openai-responses", "azure-responses"],
        "executableCode" => &["gemini", "vertex"],
        _ => &["anthropic"],
    }
}

/// The history after this step.
pub(crate) fn apply(step: Step, number: usize, models: &[Model], model: &mut Model, history: &mut Vec<Arc<Message>>) {
    let id = number.to_string();
    match step {
        Step::User(content) => history.push(user(&id, content)),
        Step::Assistant(mut content, mut stop_reason, answered) => {
            // A wire's decoder makes only blocks of its own.
            let wire = model.reference().wire;
            content.retain(|part| match part {
                Part::Provider { kind, .. } => wires_of(kind).contains(&&*wire),
                _ => true,
            });
            // Only Anthropic pauses.
            if stop_reason == StopReason::ToolUse && &*wire != "anthropic" {
                stop_reason = StopReason::Stop;
            }
            let calls: Vec<_> = content
                .iter()
                .filter_map(|part| match part {
                    Part::ToolCall(call) => Some(call.clone()),
                    _ => None,
                })
                .collect();
            let spoken = AssistantMessage { content, model: model.reference(), stop_reason, usage: Usage::default() };
            history.push(message(&id, Body::Assistant(spoken)));
            if !calls.is_empty() && !answered.is_empty() {
                let answer = |at: prop::sample::Index| {
                    let call = at.get(&calls);
                    result(call.call_id.as_str(), &call.tool_name, vec![Content::Text("ok".into())], false)
                };
                history.push(results(&format!("{id}r"), answered.into_iter().map(answer).collect()));
            }
        }
        Step::Results(given) => history.push(results(&id, given)),
        Step::Replace(at) => {
            if let Some(last) = history.pop() {
                let place = at.index(history.len() + 1);
                if let Some(message) = history.get_mut(place) {
                    *message = last;
                }
            }
        }
        Step::Drop(at) if !history.is_empty() => {
            history.remove(at.index(history.len()));
        }
        Step::Drop(_) => {}
        Step::Switch(at) => *model = at.get(models).clone(),
    }
}
