//! The request.

use serde_json::{Value, json};

use super::super::body::{self, RequestBody, tool_list};
use super::super::encoded::EncodedCache;
use super::super::message::{Content, File, FileData};
use super::super::names::{IdRule, wire_tool_name};
use super::super::openai::style_of_openai;
use super::super::output::OutputStyle;
use super::super::request::{ModelRequest, Reasoning, ToolChoice, ToolSpec};
use super::super::transcript::{MISSING_RESULT, Reader, Turn, TurnPart, TurnResult};
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};

pub(super) fn body(request: &ModelRequest, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let model = request.model.reference();
    let reader = Reader { model: &model, ids: IdRule::Short };
    let mut cache = cache.open(&model);
    let options = &request.options;
    if !options.stop.is_empty() {
        let told = "the Responses protocol has no stop sequences; leave them out or use the Chat Completions protocol";
        return Err(Error::new(ErrorKind::InvalidInput, told));
    }
    let mut body = RequestBody::default();
    body.set("model", request.model.id.as_ref())?;
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        body.set("instructions", instructions)?;
    }
    body.set_list("input", cache.turns(&request.messages, &reader, encode_turn)?);
    if !request.tools.is_empty() {
        body.set_shared("tools", cache.tools(&request.tools, || tools(&request.tools))?);
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
    body.set("store", &false)?;
    if reasons(&request.model.id) {
        // Nothing is stored there, so reasoning comes along in encrypted form and goes back with its calls.
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
    !["gpt-3", "gpt-4", "chatgpt-"].iter().any(|prefix| model.starts_with(prefix))
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

/// Without `strict: false` the service makes every member of a schema required.
fn tools(tools: &[ToolSpec]) -> Result<String, Error> {
    tool_list(tools, |members, schema| {
        format!("{{\"type\":\"function\",{members}\"parameters\":{schema},\"strict\":false}}")
    })
}

fn encode_turn(turn: &Turn<'_>) -> Result<String, Error> {
    let items = match turn {
        Turn::User(content) => {
            let parts = content.iter().map(|content| content_part(content)).collect::<Result<Vec<_>, _>>()?;
            vec![body::json(&json!({"type": "message", "role": "user", "content": parts}))?]
        }
        Turn::Assistant { parts, results } => {
            let mut items = Vec::new();
            for part in parts {
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
    let output = match result.result.map(|result| result.content.as_slice()) {
        None => json!(MISSING_RESULT),
        Some([]) => json!(""),
        Some([Content::Text(text)]) => json!(text),
        Some(content) => Value::Array(content.iter().map(content_part).collect::<Result<_, _>>()?),
    };
    body::json(&json!({"type": "function_call_output", "call_id": result.id, "output": output}))
}

fn content_part(content: &Content) -> Result<Value, Error> {
    match content {
        Content::Text(text) => Ok(json!({"type": "input_text", "text": text})),
        Content::File(file) => file_part(file),
    }
}

fn file_part(file: &File) -> Result<Value, Error> {
    let media_type = file.media_type.as_str();
    let address = match &file.data {
        FileData::Base64(data) => format!("data:{media_type};base64,{data}"),
        FileData::Url(url) => url.clone(),
    };
    match (media_type.split('/').next(), &file.data) {
        (Some("image"), _) => Ok(json!({"type": "input_image", "image_url": address})),
        (Some("audio"), _) => Err(Error::new(
            ErrorKind::InvalidInput,
            format!("the Responses protocol takes no {media_type}; use the Chat Completions protocol"),
        )),
        (_, FileData::Url(url)) => Ok(json!({"type": "input_file", "file_url": url})),
        (_, FileData::Base64(_)) => {
            let name = file.name.as_deref().unwrap_or("file");
            Ok(json!({"type": "input_file", "filename": name, "file_data": address}))
        }
    }
}
