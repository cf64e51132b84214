//! The request.

use serde_json::{Value, json};

use super::super::body::{self, RequestBody, tool_list};
use super::super::claude;
use super::super::encoded::EncodedCache;
use super::super::message::{Content, File, FileData};
use super::super::names::{IdRule, wire_tool_name};
use super::super::output::OutputStyle;
use super::super::request::{Effort, ModelRequest, Reasoning, RequestOptions, ToolChoice, ToolSpec};
use super::super::transcript::{MISSING_RESULT, Reader, Turn, TurnPart, TurnResult};
use crate::error::{Error, ErrorKind};
use crate::json::schema::Dialect;
use crate::json::{Object, RawJson};

pub(super) fn body(request: &ModelRequest, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let model = request.model.reference();
    let reader = Reader { model: &model, ids: IdRule::Word };
    let mut cache = cache.open(&model);
    let options = &request.options;
    let mut body = RequestBody::default();
    body.set("model", request.model.id.as_ref())?;
    body.set("max_tokens", &max_tokens(&request.model.id, options))?;
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        body.set("system", &[json!({"type": "text", "text": instructions})])?;
    }
    body.set_list("messages", cache.turns(&request.messages, &reader, encode_turn)?);
    if !request.tools.is_empty() {
        body.set_shared("tools", cache.tools(&request.tools, || tools(&request.tools))?);
        if let Some(choice) = tool_choice(options) {
            body.set("tool_choice", &choice)?;
        }
    }
    body.set_optional("temperature", options.temperature.as_ref())?;
    body.set_optional("top_p", options.top_p.as_ref())?;
    if !options.stop.is_empty() {
        body.set("stop_sequences", &options.stop)?;
    }
    let effort = set_reasoning(&mut body, &request.model.id, options.reasoning)?;
    set_output_config(&mut body, effort, options)?;
    body.set("stream", &true)?;
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
}

/// The protocol demands a limit. Without the caller's, it is the largest that every model of the generation takes.
fn max_tokens(model: &str, options: &RequestOptions) -> u64 {
    let budget = match options.reasoning {
        Some(reasoning) if !is_adaptive(model) => reasoning.tokens(),
        _ => 0,
    };
    options.max_tokens.unwrap_or_else(|| {
        let text = match model {
            model if model.starts_with("claude-3-5") => 8192,
            model if model.starts_with("claude-3-7") => 32_000,
            model if model.starts_with("claude-3") => 4096,
            model if model.starts_with("claude") => 32_000,
            _ => 8192,
        };
        text.max(budget.saturating_mul(2))
    })
}

/// Models from 4.6 on choose themselves how much to reason and take an effort; older ones take a number of tokens.
fn is_adaptive(model: &str) -> bool {
    claude::version(model).is_some_and(|version| version >= (4, 6))
}

/// Models that cannot be held to a schema get a tool for the answer, and so do schemas that the service has no words for.
pub(super) fn output_style(request: &ModelRequest) -> OutputStyle {
    let is_held = claude::is_held_to_schemas(&request.model.id);
    if is_held && lowered_output(&request.options).is_some() {
        OutputStyle::Schema
    } else {
        OutputStyle::Tool { is_demanded: true }
    }
}

fn lowered_output(options: &RequestOptions) -> Option<RawJson> {
    Dialect::Anthropic.lower(&options.output.as_ref()?.schema)
}

fn set_output_config(body: &mut RequestBody, effort: Option<&str>, options: &RequestOptions) -> Result<(), Error> {
    let mut config = Vec::new();
    if let Some(effort) = effort {
        config.push(format!("\"effort\":\"{effort}\""));
    }
    if let Some(schema) = lowered_output(options) {
        config.push(format!("\"format\":{{\"type\":\"json_schema\",\"schema\":{}}}", schema.as_str()));
    }
    if !config.is_empty() {
        body.set_shared("output_config", format!("{{{}}}", config.join(",")).into());
    }
    Ok(())
}

/// Asks for reasoning; the effort, where it is asked for by a word.
fn set_reasoning(
    body: &mut RequestBody,
    model: &str,
    reasoning: Option<Reasoning>,
) -> Result<Option<&'static str>, Error> {
    match reasoning {
        None => {}
        Some(Reasoning::Off) => body.set("thinking", &json!({"type": "disabled"}))?,
        Some(Reasoning::Effort(effort)) if is_adaptive(model) => {
            let word = match effort {
                Effort::Minimal | Effort::Low => "low",
                Effort::Medium => "medium",
                Effort::High => "high",
            };
            body.set("thinking", &json!({"type": "adaptive"}))?;
            return Ok(Some(word));
        }
        Some(reasoning) => body.set("thinking", &json!({"type": "enabled", "budget_tokens": reasoning.tokens()}))?,
    }
    Ok(None)
}

fn tool_choice(options: &RequestOptions) -> Option<Value> {
    let mut choice = match &options.tool_choice {
        Some(ToolChoice::Auto) => json!({"type": "auto"}),
        Some(ToolChoice::None) => return Some(json!({"type": "none"})),
        Some(ToolChoice::Required) => json!({"type": "any"}),
        Some(ToolChoice::Tool(name)) => json!({"type": "tool", "name": wire_tool_name(name)}),
        None if options.parallel_tool_calls == Some(false) => json!({"type": "auto"}),
        None => return None,
    };
    if let (Some(false), Some(members)) = (options.parallel_tool_calls, choice.as_object_mut()) {
        members.insert("disable_parallel_tool_use".to_owned(), true.into());
    }
    Some(choice)
}

fn tools(tools: &[ToolSpec]) -> Result<String, Error> {
    tool_list(tools, |members, schema| format!("{{{members}\"input_schema\":{schema}}}"))
}

/// One or two messages: what the model said, and the results of its calls in one message of the user, as the protocol
/// demands.
fn encode_turn(turn: &Turn<'_>) -> Result<String, Error> {
    match turn {
        Turn::User(content) => {
            let blocks = content.iter().map(|content| content_block(content));
            Ok(message("user", &blocks.collect::<Result<Vec<_>, _>>()?))
        }
        Turn::Assistant { parts, results } => {
            let mut blocks = Vec::new();
            for part in parts {
                blocks.extend(part_block(part)?);
            }
            let results = results.iter().map(result_block).collect::<Result<Vec<_>, _>>()?;
            let messages = [("assistant", blocks), ("user", results)];
            let messages = messages.iter().filter(|(_, blocks)| !blocks.is_empty());
            Ok(messages.map(|(role, blocks)| message(role, blocks)).collect::<Vec<_>>().join(","))
        }
    }
}

fn message(role: &str, blocks: &[String]) -> String {
    format!("{{\"role\":\"{role}\",\"content\":[{}]}}", blocks.join(","))
}

fn part_block(part: &TurnPart<'_>) -> Result<Option<String>, Error> {
    let member = |name: &str, replay: Option<&crate::json::RawJson>| {
        let object = Object::parse(replay?.as_str()).ok()?;
        object.get(name).map(|value| value.get().to_owned())
    };
    Ok(match part {
        TurnPart::Text { text, replay } => {
            let citations = member("citations", *replay).map(|json| format!(",\"citations\":{json}"));
            let text = body::json(text)?;
            Some(format!("{{\"type\":\"text\",\"text\":{text}{}}}", citations.unwrap_or_default()))
        }
        TurnPart::Reasoning { text, replay } => match (member("signature", *replay), member("redacted", *replay)) {
            (Some(signature), _) => {
                let text = body::json(text)?;
                Some(format!("{{\"type\":\"thinking\",\"thinking\":{text},\"signature\":{signature}}}"))
            }
            (None, Some(data)) => Some(format!("{{\"type\":\"redacted_thinking\",\"data\":{data}}}")),
            // Thinking without its signature is refused.
            (None, None) => None,
        },
        TurnPart::Call(call) => {
            let caller = member("caller", call.replay).map(|json| format!(",\"caller\":{json}"));
            Some(format!(
                "{{\"type\":\"tool_use\",\"id\":{},\"name\":{},\"input\":{}{}}}",
                body::json(&call.id)?,
                body::json(call.name.as_ref())?,
                call.input,
                caller.unwrap_or_default()
            ))
        }
        TurnPart::Provider(replay) => Some(replay.as_str().to_owned()),
    })
}

fn result_block(result: &TurnResult<'_>) -> Result<String, Error> {
    let id = body::json(&result.id)?;
    let Some(found) = result.result else {
        let text = body::json(MISSING_RESULT)?;
        return Ok(format!("{{\"type\":\"tool_result\",\"tool_use_id\":{id},\"content\":{text},\"is_error\":true}}"));
    };
    let is_blank = |content: &&Content| matches!(content, Content::Text(text) if text.trim().is_empty());
    let blocks = found.content.iter().filter(|content| !is_blank(content)).map(content_block);
    let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
    let content = if blocks.is_empty() { String::new() } else { format!(",\"content\":[{}]", blocks.join(",")) };
    let error = if found.is_error { ",\"is_error\":true" } else { "" };
    Ok(format!("{{\"type\":\"tool_result\",\"tool_use_id\":{id}{content}{error}}}"))
}

fn content_block(content: &Content) -> Result<String, Error> {
    match content {
        Content::Text(text) => body::json(&json!({"type": "text", "text": text})),
        Content::File(file) => file_block(file),
    }
}

fn file_block(file: &File) -> Result<String, Error> {
    let media_type = file.media_type.as_str();
    let kind = match media_type {
        "application/pdf" => "document",
        image if image.starts_with("image/") => "image",
        _ => {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the Anthropic protocol takes images and PDF documents, but no {media_type}; send its text instead"
                ),
            ));
        }
    };
    let source = match &file.data {
        FileData::Base64(data) => json!({"type": "base64", "media_type": media_type, "data": data.as_ref()}),
        FileData::Url(url) => json!({"type": "url", "url": url}),
    };
    let mut block = json!({"type": kind, "source": source});
    if let (Some(name), "document", Some(members)) = (&file.name, kind, block.as_object_mut()) {
        members.insert("title".to_owned(), name.as_str().into());
    }
    body::json(&block)
}
