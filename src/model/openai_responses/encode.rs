//! The request.

use super::super::body::{RequestBody, invalid, number};
use super::super::draft::{Draft, refuse_cached_content};
use super::super::encoded::EncodedCache;
use super::super::message::{File, FileData};
use super::super::names::wire_tool_name;
use super::super::openai::style_of_openai;
use super::super::output::OutputStyle;
use super::super::request::{CacheRetention, ModelRequest, OutputSchema, Reasoning, ToolChoice};
use super::super::transcript::{Rules, Turn, TurnContent, TurnPart, TurnResult, left_out};
use crate::error::Error;
use crate::json::{Object, RawJson, add_member, filled, listed, quoted};

pub(super) fn body(request: &ModelRequest, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let mut draft = Draft::new(request, Rules::DEFAULT, cache)?;
    draft.check_files(&file_part)?;
    let options = draft.options;
    refuse_cached_content(options)?;
    if !options.stop.is_empty() {
        let told = "the Responses protocol has no stop sequences; leave them out or use the Chat Completions protocol";
        return Err(invalid(told));
    }
    let mut body = RequestBody::default();
    body.set_text("model", draft.id);
    body.set_optional("instructions", draft.instructions().map(quoted));
    body.set_list("input", draft.turns(&encode_turn)?);
    // Without `strict: false` the service makes every member of a schema required.
    let tools = draft.tools(&|members, schema| {
        format!("{{\"type\":\"function\",{members}\"parameters\":{schema},\"strict\":false}}")
    })?;
    if !tools.is_empty() {
        body.set_list("tools", tools.elements());
        body.set_all([
            ("tool_choice", options.tool_choice.as_ref().map(tool_choice)),
            ("parallel_tool_calls", options.parallel_tool_calls.as_ref().map(bool::to_string)),
        ]);
    }
    body.set_all([
        ("max_output_tokens", options.max_tokens.as_ref().map(u64::to_string)),
        ("temperature", options.temperature.map(number)),
        ("top_p", options.top_p.map(number)),
        ("reasoning", options.reasoning.map(reasoning_of)),
        ("text", options.output.as_ref().map(|output| text_format(output))),
        ("safety_identifier", options.user.as_deref().map(quoted)),
    ]);
    if !options.metadata.is_empty() {
        body.set_map("metadata", &options.metadata);
    }
    let retention = (options.cache == Some(CacheRetention::Long)).then(|| quoted("24h"));
    // Where nothing is stored, reasoning comes along in encrypted form and goes back with its calls.
    let include = reasons(draft.id).then(|| r#"["reasoning.encrypted_content"]"#.to_owned());
    body.set_all([
        ("service_tier", options.service_tier.as_deref().map(quoted)),
        ("prompt_cache_key", options.cache_key.as_deref().map(quoted)),
        ("prompt_cache_retention", retention),
        ("store", Some(options.store.unwrap_or(false).to_string())),
        ("include", include),
        ("stream", Some("true".to_owned())),
    ]);
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
}

fn text_format(output: &OutputSchema) -> String {
    format!("{{\"format\":{{\"type\":\"json_schema\",{}}}}}", output.members())
}

/// Models that OpenAI's Chat Completions serves too have the same abilities there.
pub(super) fn output_style(request: &ModelRequest) -> OutputStyle {
    style_of_openai(&request.model.id)
}

/// Models that do not reason refuse to be asked for encrypted reasoning.
fn reasons(model: &str) -> bool {
    // Deployments and gateways put more before the name.
    !["gpt-3", "gpt-4", "chatgpt-"].iter().any(|name| model.contains(name))
}

fn reasoning_of(reasoning: Reasoning) -> String {
    match reasoning {
        Reasoning::Off => r#"{"effort":"none"}"#.to_owned(),
        reasoning => filled(r#"{"effort":$,"summary":"auto"}"#, &[reasoning.word()]),
    }
}

fn tool_choice(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => quoted("auto"),
        ToolChoice::None => quoted("none"),
        ToolChoice::Required => quoted("required"),
        ToolChoice::Tool(name) => filled(r#"{"type":"function","name":$}"#, &[&wire_tool_name(name)]),
    }
}

fn encode_turn(turn: &Turn<'_>) -> String {
    let items = match turn {
        Turn::User(content) => {
            vec![filled(r#"{"type":"message","role":"user","content":@}"#, &[&content_parts(content)])]
        }
        Turn::Assistant { parts, results, .. } => {
            let mut sent: Vec<_> = parts.iter().filter(|part| !is_unanswered(part)).collect();
            while matches!(sent.last(), Some(TurnPart::Reasoning { .. })) {
                sent.pop();
            }
            let mut items: Vec<_> = sent.into_iter().filter_map(output_item).collect();
            items.extend(results.iter().map(result_item));
            items
        }
    };
    items.join(",")
}

/// Calls that the client must answer, but not as a function's: without their output they are refused.
fn is_unanswered(part: &TurnPart<'_>) -> bool {
    let TurnPart::Provider(item) = part else { return false };
    let kind = Object::parse(item.as_str()).ok().and_then(|item| item.string("type"));
    matches!(
        kind.as_deref(),
        Some(
            "computer_call"
                | "local_shell_call"
                | "shell_call"
                | "apply_patch_call"
                | "custom_tool_call"
                | "mcp_approval_request"
        )
    )
}

/// What the model said, without ids: nothing is stored that they could name.
fn output_item(part: &TurnPart<'_>) -> Option<String> {
    match part {
        TurnPart::Text { text, replay } => {
            let mut item = filled(r#"{"type":"message","role":"assistant","content":$}"#, &[text]);
            if let Some(phase) = replay.and_then(|replay| Object::parse(replay.as_str()).ok()?.string("phase")) {
                add_member(&mut item, "phase", &quoted(&phase));
            }
            Some(item)
        }
        TurnPart::Reasoning { replay, .. } => replay.and_then(reasoning_item),
        TurnPart::Call(call) => {
            let shape = r#"{"type":"function_call","call_id":$,"name":$,"arguments":$}"#;
            Some(filled(shape, &[&call.id, &call.name, call.input]))
        }
        TurnPart::Provider(replay) => Some(replay.as_str().to_owned()),
    }
}

/// Reasoning as it is accepted back: with its summary, even an empty one, and only in encrypted form.
fn reasoning_item(replay: &RawJson) -> Option<String> {
    let item = Object::parse(replay.as_str()).ok()?;
    let encrypted = item.get("encrypted_content").filter(|value| value.get() != "null")?;
    let id = item.get("id").map(|id| format!("\"id\":{},", id.get())).unwrap_or_default();
    let summary = item.get("summary").map_or("[]", |summary| summary.get());
    Some(format!("{{\"type\":\"reasoning\",{id}\"summary\":{summary},\"encrypted_content\":{}}}", encrypted.get()))
}

fn result_item(result: &TurnResult<'_>) -> String {
    let output = match result.content.as_slice() {
        [] => quoted(""),
        [TurnContent::Text(text)] => quoted(text),
        content => content_parts(content),
    };
    filled(r#"{"type":"function_call_output","call_id":$,"output":@}"#, &[&result.id, &output])
}

fn content_parts(content: &[TurnContent<'_>]) -> String {
    listed(&content.iter().map(content_part).collect::<Vec<_>>())
}

fn content_part(content: &TurnContent<'_>) -> String {
    match content {
        TurnContent::Text(text) => text_part(text),
        TurnContent::File(file) => file_part(file).unwrap_or_else(|_| text_part(&left_out(file))),
    }
}

fn text_part(text: &str) -> String {
    filled(r#"{"type":"input_text","text":$}"#, &[text])
}

/// # Errors
///
/// `invalid-input` for a file that the protocol has no part for.
fn file_part(file: &File) -> Result<String, Error> {
    let media_type = file.media_type.as_str();
    let is_other = media_type.starts_with("audio/") || media_type.starts_with("video/");
    match (file.part_type(), &file.data) {
        ("image", _) => Ok(filled(r#"{"type":"input_image","image_url":$}"#, &[&file.address()])),
        _ if is_other => Err(invalid(format!("the Responses protocol takes no {media_type}"))),
        (_, FileData::Url(url)) => Ok(filled(r#"{"type":"input_file","file_url":$}"#, &[url])),
        (_, FileData::Base64(_)) => {
            let name = file.name.as_deref().unwrap_or("file");
            Ok(filled(r#"{"type":"input_file","filename":$,"file_data":$}"#, &[name, &file.address()]))
        }
    }
}
