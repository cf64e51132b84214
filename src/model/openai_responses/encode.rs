//! The request.

use serde_json::{Value, json};

use super::super::body::{self, RequestBody, invalid};
use super::super::draft::{Draft, refuse_cached_content};
use super::super::encoded::EncodedCache;
use super::super::message::{File, FileData};
use super::super::names::wire_tool_name;
use super::super::openai::style_of_openai;
use super::super::output::OutputStyle;
use super::super::request::{CacheRetention, ModelRequest, Reasoning, ToolChoice};
use super::super::transcript::{Rules, Turn, TurnContent, TurnPart, TurnResult, left_out};
use crate::error::Error;
use crate::json::{Object, RawJson};

pub(super) fn body(request: &ModelRequest, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let mut draft = Draft::new(request, Rules::DEFAULT, cache)?;
    draft.check_files(file_part)?;
    let options = draft.options;
    refuse_cached_content(options)?;
    if !options.stop.is_empty() {
        let told = "the Responses protocol has no stop sequences; leave them out or use the Chat Completions protocol";
        return Err(invalid(told));
    }
    let mut body = RequestBody::default();
    body.set("model", draft.id)?;
    if let Some(instructions) = draft.instructions() {
        body.set("instructions", instructions)?;
    }
    body.set_list("input", draft.turns(encode_turn)?);
    // Without `strict: false` the service makes every member of a schema required.
    let tools = draft.tools(|members, schema| {
        format!("{{\"type\":\"function\",{members}\"parameters\":{schema},\"strict\":false}}")
    })?;
    if !tools.is_empty() {
        body.set_list("tools", tools.elements());
        if let Some(choice) = &options.tool_choice {
            body.set("tool_choice", &tool_choice(choice))?;
        }
        body.set_optional("parallel_tool_calls", options.parallel_tool_calls.as_ref())?;
    }
    body.set_optional("max_output_tokens", options.max_tokens.as_ref())?;
    body.set_optional("temperature", options.temperature.as_ref())?;
    body.set_optional("top_p", options.top_p.as_ref())?;
    if let Some(reasoning) = options.reasoning {
        body.set("reasoning", &reasoning_of(reasoning))?;
    }
    if let Some(output) = &options.output {
        body.set_shared("text", format!("{{\"format\":{{\"type\":\"json_schema\",{}}}}}", output.members()?).into());
    }
    body.set_optional("safety_identifier", options.user.as_ref())?;
    if !options.metadata.is_empty() {
        body.set_map("metadata", &options.metadata)?;
    }
    body.set_optional("service_tier", options.service_tier.as_ref())?;
    body.set_optional("prompt_cache_key", options.cache_key.as_ref())?;
    if options.cache == Some(CacheRetention::Long) {
        body.set("prompt_cache_retention", "24h")?;
    }
    body.set("store", &options.store.unwrap_or(false))?;
    if reasons(draft.id) {
        // Where nothing is stored, reasoning comes along in encrypted form and goes back with its calls.
        body.set("include", &["reasoning.encrypted_content"])?;
    }
    body.set("stream", &true)?;
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
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

fn reasoning_of(reasoning: Reasoning) -> Value {
    match reasoning {
        Reasoning::Off => json!({"effort": "none"}),
        reasoning => json!({"effort": reasoning.word(), "summary": "auto"}),
    }
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "name": wire_tool_name(name)}),
    }
}

fn encode_turn(turn: &Turn<'_>) -> Result<String, Error> {
    let items = match turn {
        Turn::User(content) => {
            let parts: Vec<_> = content.iter().map(content_part).collect();
            vec![body::json(&json!({"type": "message", "role": "user", "content": parts}))?]
        }
        Turn::Assistant { parts, results, .. } => {
            let mut sent: Vec<_> = parts.iter().filter(|part| !is_unanswered(part)).collect();
            while matches!(sent.last(), Some(TurnPart::Reasoning { .. })) {
                sent.pop();
            }
            let mut items = Vec::new();
            for part in sent {
                items.extend(output_item(part)?);
            }
            for result in results {
                items.push(result_item(result)?);
            }
            items
        }
    };
    Ok(items.join(","))
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
fn output_item(part: &TurnPart<'_>) -> Result<Option<String>, Error> {
    Ok(match part {
        TurnPart::Text { text, .. } => {
            Some(body::json(&json!({"type": "message", "role": "assistant", "content": text}))?)
        }
        TurnPart::Reasoning { replay, .. } => replay.and_then(reasoning_item),
        TurnPart::Call(call) => Some(body::json(&json!({
            "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.input,
        }))?),
        TurnPart::Provider(replay) => Some(replay.as_str().to_owned()),
    })
}

/// Reasoning as it is accepted back: with its summary, even an empty one, and only in encrypted form.
fn reasoning_item(replay: &RawJson) -> Option<String> {
    let item = Object::parse(replay.as_str()).ok()?;
    let encrypted = item.get("encrypted_content").filter(|value| value.get() != "null")?;
    let id = item.get("id").map(|id| format!("\"id\":{},", id.get())).unwrap_or_default();
    let summary = item.get("summary").map_or("[]", |summary| summary.get());
    Some(format!("{{\"type\":\"reasoning\",{id}\"summary\":{summary},\"encrypted_content\":{}}}", encrypted.get()))
}

fn result_item(result: &TurnResult<'_>) -> Result<String, Error> {
    let output = match result.content.as_slice() {
        [] => json!(""),
        [TurnContent::Text(text)] => json!(text),
        content => Value::Array(content.iter().map(content_part).collect()),
    };
    body::json(&json!({"type": "function_call_output", "call_id": result.id, "output": output}))
}

fn content_part(content: &TurnContent<'_>) -> Value {
    let text = |text: &str| json!({"type": "input_text", "text": text});
    match content {
        TurnContent::Text(words) => text(words),
        TurnContent::File(file) => file_part(file).unwrap_or_else(|_| text(&left_out(file))),
    }
}

/// # Errors
///
/// `invalid-input` for a file that the protocol has no part for.
fn file_part(file: &File) -> Result<Value, Error> {
    let media_type = file.media_type.as_str();
    let address = match &file.data {
        FileData::Base64(data) => format!("data:{media_type};base64,{data}"),
        FileData::Url(url) => url.clone(),
    };
    match (file.part_type(), &file.data) {
        ("image", _) => Ok(json!({"type": "input_image", "image_url": address})),
        _ if media_type.starts_with("audio/") || media_type.starts_with("video/") => {
            Err(invalid(format!("the Responses protocol takes no {media_type}")))
        }
        (_, FileData::Url(url)) => Ok(json!({"type": "input_file", "file_url": url})),
        (_, FileData::Base64(_)) => {
            let name = file.name.as_deref().unwrap_or("file");
            Ok(json!({"type": "input_file", "filename": name, "file_data": address}))
        }
    }
}
