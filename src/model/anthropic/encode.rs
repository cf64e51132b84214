//! The request.

use serde_json::{Value, json};

use super::super::body::{self, RequestBody, invalid};
use super::super::claude;
use super::super::draft::{Draft, refuse_cached_content, refuse_heat};
use super::super::encoded::EncodedCache;
use super::super::files::{picture_type, plain_text};
use super::super::message::{File, FileData};
use super::super::names::{IdRule, wire_tool_name};
use super::super::output::OutputStyle;
use super::super::request::{CacheRetention, ModelRequest, RequestOptions, ToolChoice};
use super::super::transcript::{Rules, Turn, TurnContent, TurnPart, TurnResult, left_out};
use crate::error::Error;
use crate::json::schema::Dialect;
use crate::json::{Object, RawJson};

const RULES: Rules = Rules { ids: IdRule::Word, ends_with_user: true, ..Rules::DEFAULT };

pub(super) fn body(request: &ModelRequest, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let mut draft = Draft::new(request, RULES, cache)?;
    draft.check_files(file_block)?;
    let options = draft.options;
    refuse_cached_content(options)?;
    refuse_heat(options)?;
    let (thinking, budget) = claude::thinking(draft.id, options)?;
    let cache_control = options.cache.map(cache_control);
    let mut body = RequestBody::default();
    body.set("model", draft.id)?;
    // The protocol demands a limit.
    body.set("max_tokens", &options.max_tokens.unwrap_or_else(|| claude::limit(draft.id, budget)))?;
    if let Some(instructions) = draft.instructions() {
        let mut block = json!({"type": "text", "text": instructions});
        if let (Some(marker), Some(members)) = (&cache_control, block.as_object_mut()) {
            members.insert("cache_control".to_owned(), marker.clone());
        }
        body.set("system", &[block])?;
    }
    body.set_list("messages", draft.turns(encode_turn)?);
    let tools = draft.tools(|members, schema| format!("{{{members}\"input_schema\":{schema}}}"))?;
    if !tools.is_empty() {
        body.set_list("tools", tools.elements());
        if let Some(choice) = tool_choice(options) {
            body.set("tool_choice", &choice)?;
        }
    }
    body.set_optional("temperature", options.temperature.as_ref())?;
    body.set_optional("top_p", options.top_p.as_ref())?;
    if !options.stop.is_empty() {
        body.set("stop_sequences", &options.stop)?;
    }
    body.set_all(&thinking)?;
    if let Some(schema) = lowered_output(options) {
        let format = format!("{{\"format\":{{\"type\":\"json_schema\",\"schema\":{}}}}}", schema.as_str());
        body.add("output_config", format);
    }
    if let Some(user) = &options.user {
        body.set("metadata", &json!({"user_id": user}))?;
    }
    body.set_optional("service_tier", options.service_tier.as_ref())?;
    // The service puts this one on the last block that can have it, and moves it as the conversation grows.
    body.set_optional("cache_control", cache_control.as_ref())?;
    body.set("stream", &true)?;
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
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

fn cache_control(retention: CacheRetention) -> Value {
    match retention {
        CacheRetention::Short => json!({"type": "ephemeral"}),
        CacheRetention::Long => json!({"type": "ephemeral", "ttl": "1h"}),
    }
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

/// One or two messages: what the model said, and the results of its calls in one message of the user, as the protocol
/// demands.
fn encode_turn(turn: &Turn<'_>) -> Result<String, Error> {
    match turn {
        Turn::User(content) => Ok(message("user", &content.iter().map(content_block).collect::<Result<Vec<_>, _>>()?)),
        Turn::Assistant { parts, results, is_paused } => {
            let mut sent: Vec<_> = parts.iter().filter(|part| *is_paused || !is_unanswered(part, parts)).collect();
            while matches!(sent.last(), Some(TurnPart::Reasoning { .. })) {
                sent.pop();
            }
            let mut blocks = Vec::new();
            for part in sent {
                blocks.extend(part_block(part)?);
            }
            let results = results.iter().map(result_block).collect::<Result<Vec<_>, _>>()?;
            let messages = [("assistant", blocks), ("user", results)];
            let messages = messages.iter().filter(|(_, blocks)| !blocks.is_empty());
            Ok(messages.map(|(role, blocks)| message(role, blocks)).collect::<Vec<_>>().join(","))
        }
    }
}

/// A use of one of the provider's tools whose result is not in the turn is refused, unless the turn goes on.
fn is_unanswered(part: &TurnPart<'_>, parts: &[TurnPart<'_>]) -> bool {
    let TurnPart::Provider(block) = part else { return false };
    let is_use = member("type", Some(block)).is_some_and(|kind| kind.ends_with("_tool_use\""));
    let id = member("id", Some(block));
    let answers = |other: &TurnPart<'_>| match other {
        TurnPart::Provider(other) => member("tool_use_id", Some(other)) == id,
        _ => false,
    };
    is_use && id.is_some() && !parts.iter().any(answers)
}

/// The JSON text of a member of the wire's own data.
fn member(name: &str, replay: Option<&RawJson>) -> Option<String> {
    let object = Object::parse(replay?.as_str()).ok()?;
    object.get(name).map(|value| value.get().to_owned())
}

fn message(role: &str, blocks: &[String]) -> String {
    format!("{{\"role\":\"{role}\",\"content\":[{}]}}", blocks.join(","))
}

fn part_block(part: &TurnPart<'_>) -> Result<Option<String>, Error> {
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
    let blocks = result.content.iter().map(content_block).collect::<Result<Vec<_>, _>>()?;
    let content = if blocks.is_empty() { String::new() } else { format!(",\"content\":[{}]", blocks.join(",")) };
    let error = if result.is_error { ",\"is_error\":true" } else { "" };
    Ok(format!("{{\"type\":\"tool_result\",\"tool_use_id\":{id}{content}{error}}}"))
}

fn content_block(content: &TurnContent<'_>) -> Result<String, Error> {
    let block = match content {
        TurnContent::Text(text) => json!({"type": "text", "text": text}),
        TurnContent::File(file) => file_block(file).unwrap_or_else(|_| json!({"type": "text", "text": left_out(file)})),
    };
    body::json(&block)
}

/// # Errors
///
/// `invalid-input` for a file that the protocol has no block for.
fn file_block(file: &File) -> Result<Value, Error> {
    let refused = || {
        let media_type = &file.media_type;
        invalid(format!(
            "the Anthropic protocol takes JPEG, PNG, GIF and WebP images, PDF and text, but no {media_type} like this one"
        ))
    };
    let (kind, source) = match (file.media_type.as_str(), &file.data) {
        ("application/pdf", FileData::Base64(data)) => {
            ("document", json!({"type": "base64", "media_type": "application/pdf", "data": data.as_ref()}))
        }
        ("application/pdf", FileData::Url(url)) => ("document", json!({"type": "url", "url": url})),
        (media_type, FileData::Base64(data)) if media_type.starts_with("image/") => {
            let media_type = picture_type(media_type).ok_or_else(refused)?;
            ("image", json!({"type": "base64", "media_type": media_type, "data": data.as_ref()}))
        }
        (media_type, FileData::Url(url)) if media_type.starts_with("image/") => {
            ("image", json!({"type": "url", "url": url}))
        }
        _ => {
            let text = plain_text(file).ok_or_else(refused)?;
            ("document", json!({"type": "text", "media_type": "text/plain", "data": text}))
        }
    };
    let mut block = json!({"type": kind, "source": source});
    if let (Some(name), "document", Some(members)) = (&file.name, kind, block.as_object_mut()) {
        members.insert("title".to_owned(), name.as_str().into());
    }
    Ok(block)
}
