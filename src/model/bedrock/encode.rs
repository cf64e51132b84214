//! The request.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::body::{RequestBody, invalid, joined, separated};
use super::super::claude;
use super::super::draft::{Draft, Tools, refuse_cached_content, refuse_heat, refuse_single_calls};
use super::super::encoded::EncodedCache;
use super::super::files::picture_type;
use super::super::message::{File, FileData};
use super::super::names::{IdRule, fingerprint, wire_tool_name};
use super::super::output::OutputStyle;
use super::super::request::{CacheRetention, ModelRequest, Reasoning, RequestOptions, ToolChoice};
use super::super::transcript::{Rules, Turn, TurnContent, TurnPart, TurnResult, left_out};
use crate::error::Error;
use crate::json::schema::Dialect;
use crate::json::{Object, RawJson};

const RULES: Rules = Rules { ids: IdRule::Word, begins_with_user: true, ends_with_user: true, ..Rules::DEFAULT };

/// Those who speak.
const MODEL: char = 'm';
const USER: char = 'u';

pub(super) fn body(request: &ModelRequest, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let mut draft = Draft::new(request, RULES, cache)?;
    draft.check_files(file_block)?;
    let options = draft.options;
    refuse_cached_content(options)?;
    refuse_heat(options)?;
    refuse_single_calls(options)?;
    let marker = options.cache.map(|retention| cache_point(draft.id, retention));
    let mut body = RequestBody::default();
    if let Some(instructions) = draft.instructions() {
        let text = json!({"text": instructions});
        body.set("system", &std::iter::once(&text).chain(&marker).collect::<Vec<_>>())?;
    }
    let mut turns = draft.turns(encode_turn)?;
    if let Some(marker) = &marker {
        turns.push(separated(&[(USER, vec![marker.clone()])])?.into());
    }
    let write = |speaker, content: &str| {
        let role = if speaker == MODEL { "assistant" } else { "user" };
        format!("{{\"role\":\"{role}\",\"content\":[{content}]}}")
    };
    body.set_list("messages", joined(&turns, write));
    let (fields, budget) = additional_fields(draft.id, options)?;
    let config = inference_config(draft.id, options, budget);
    if !config.is_empty() {
        body.set("inferenceConfig", &config)?;
    }
    set_tools(&mut body, &mut draft, marker.as_ref())?;
    if !fields.is_empty() {
        body.set("additionalModelRequestFields", &fields)?;
    }
    set_output(&mut body, options)?;
    if !options.metadata.is_empty() {
        body.set_map("requestMetadata", &options.metadata)?;
    }
    if let Some(tier) = &options.service_tier {
        body.set("serviceTier", &json!({"type": tier}))?;
    }
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
}

/// Only Claude has another time than the usual one.
fn cache_point(model: &str, retention: CacheRetention) -> Value {
    match retention {
        CacheRetention::Long if is_claude(model) => json!({"cachePoint": {"type": "default", "ttl": "1h"}}),
        CacheRetention::Short | CacheRetention::Long => json!({"cachePoint": {"type": "default"}}),
    }
}

fn is_claude(model: &str) -> bool {
    model.contains("anthropic.")
}

/// The tools, with the marker of the cache behind them where no system prompt follows that has it. A history with calls is
/// refused without any tool, so those that it calls are named.
fn set_tools(body: &mut RequestBody, draft: &mut Draft<'_>, marker: Option<&Value>) -> Result<(), Error> {
    let mut tools = draft.tools(tool)?;
    if tools.is_empty() {
        let called = draft.called_tools();
        let schema = r#"{"type":"object","properties":{}}"#;
        let list = called
            .iter()
            .map(|name| tool(&format!("\"name\":\"{name}\",\"description\":\"No longer there.\","), schema));
        tools = Tools { functions: list.collect::<Vec<_>>().join(",").into(), own: Vec::new() };
    }
    if tools.is_empty() {
        return Ok(());
    }
    if let Some(marker) = marker.filter(|_| draft.instructions().is_none() && is_claude(draft.id)) {
        tools.own.push(marker.to_string().into());
    }
    let choice = match &draft.options.tool_choice {
        Some(choice) => format!(",\"toolChoice\":{}", tool_choice(choice)?),
        None => String::new(),
    };
    let elements: Vec<Arc<str>> = tools.elements();
    let elements: Vec<_> = elements.iter().filter(|element| !element.is_empty()).map(AsRef::as_ref).collect();
    body.set_shared("toolConfig", format!("{{\"tools\":[{}]{choice}}}", elements.join(",")).into());
    Ok(())
}

fn tool(members: &str, schema: &str) -> String {
    format!("{{\"toolSpec\":{{{members}\"inputSchema\":{{\"json\":{schema}}}}}}}")
}

fn inference_config(model: &str, options: &RequestOptions, budget: u64) -> Map<String, Value> {
    // The service's own limit is smaller than most budgets.
    let default_limit = (budget > 0).then(|| claude::limit(model, budget));
    let members = [
        ("maxTokens", options.max_tokens.or(default_limit).map(Value::from)),
        ("temperature", options.temperature.map(Value::from)),
        ("topP", options.top_p.map(Value::from)),
        ("stopSequences", (!options.stop.is_empty()).then(|| json!(options.stop))),
    ];
    let mut config = Map::new();
    for (name, value) in members {
        if let Some(value) = value {
            config.insert(name.to_owned(), value);
        }
    }
    config
}

fn set_output(body: &mut RequestBody, options: &RequestOptions) -> Result<(), Error> {
    let Some(output) = &options.output else { return Ok(()) };
    let Some(schema) = Dialect::Anthropic.lower(&output.schema) else { return Ok(()) };
    let mut definition = json!({"name": wire_tool_name(&output.name), "schema": schema.as_str()});
    if let (Some(description), Some(members)) = (&output.description, definition.as_object_mut()) {
        members.insert("description".to_owned(), description.as_str().into());
    }
    let format = json!({"type": "json_schema", "structure": {"jsonSchema": definition}});
    body.set("outputConfig", &json!({"textFormat": format}))
}

/// Models that cannot be held to a schema get a tool for the answer; some of them cannot be made to call it (API reference,
/// `ToolChoice`).
pub(super) fn output_style(request: &ModelRequest) -> OutputStyle {
    let model = &*request.model.id;
    let lowered = request.options.output.as_ref().and_then(|output| Dialect::Anthropic.lower(&output.schema));
    if lowered.is_some() && claude::is_held_to_schemas(model) {
        return OutputStyle::Schema;
    }
    OutputStyle::Tool {
        is_demanded: ["anthropic.", "amazon.nova", "mistral."].iter().any(|maker| model.contains(maker)),
    }
}

/// What asks for reasoning, in each vendor's own words, and how many tokens are set aside for it.
fn additional_fields(model: &str, options: &RequestOptions) -> Result<(Map<String, Value>, u64), Error> {
    let Some(reasoning) = options.reasoning else { return Ok((Map::new(), 0)) };
    if is_claude(model) {
        return claude::thinking(model, options);
    }
    let is_off = reasoning == Reasoning::Off;
    let (name, value) = match reasoning.plain_word() {
        _ if model.contains("amazon.nova-2") && is_off => ("reasoningConfig", json!({"type": "disabled"})),
        word if model.contains("amazon.nova-2") => {
            let effort = if word == "minimal" { "low" } else { word };
            ("reasoningConfig", json!({"type": "enabled", "maxReasoningEffort": effort}))
        }
        word if model.contains("openai.gpt-oss") => {
            let effort = if matches!(word, "none" | "minimal") { "low" } else { word };
            ("reasoning_effort", json!(effort))
        }
        _ if is_off => return Ok((Map::new(), 0)),
        _ => {
            let told = "Bedrock has no common way to ask for reasoning, and this model's is not known; leave it out, or \
                        write additionalModelRequestFields into the extra body";
            return Err(invalid(told));
        }
    };
    Ok((Map::from_iter([(name.to_owned(), value)]), 0))
}

fn tool_choice(choice: &ToolChoice) -> Result<Value, Error> {
    Ok(match choice {
        ToolChoice::Auto => json!({"auto": {}}),
        ToolChoice::Required => json!({"any": {}}),
        ToolChoice::Tool(name) => json!({"tool": {"name": wire_tool_name(name)}}),
        ToolChoice::None => {
            return Err(invalid("Bedrock cannot be told to call no tool; offer no tools instead"));
        }
    })
}

fn encode_turn(turn: &Turn<'_>) -> Result<String, Error> {
    match turn {
        Turn::User(content) => {
            let mut blocks: Vec<_> = content.iter().map(content_block).collect();
            // A document is refused without a text beside it.
            if blocks.iter().all(|block| block.get("text").is_none()) {
                blocks.push(json!({"text": "See above."}));
            }
            separated(&[(USER, blocks)])
        }
        Turn::Assistant { parts, results, .. } => {
            let spoken = parts.iter().filter_map(part_block).collect();
            separated(&[(MODEL, spoken), (USER, results.iter().map(result_block).collect())])
        }
    }
}

fn part_block(part: &TurnPart<'_>) -> Option<Value> {
    match part {
        TurnPart::Text { text, .. } => Some(json!({"text": text})),
        TurnPart::Reasoning { text, replay } => match (member(*replay, "signature"), member(*replay, "redacted")) {
            (Some(signature), _) => {
                Some(json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}))
            }
            (None, Some(data)) => Some(json!({"reasoningContent": {"redactedContent": data}})),
            // Reasoning without its signature is refused.
            (None, None) => None,
        },
        TurnPart::Call(call) => {
            let input: Value = serde_json::from_str(call.input).unwrap_or_default();
            Some(json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": input}}))
        }
        TurnPart::Provider(replay) => replay.read().ok(),
    }
}

fn member(replay: Option<&RawJson>, name: &str) -> Option<String> {
    Object::parse(replay?.as_str()).ok()?.string(name)
}

fn result_block(result: &TurnResult<'_>) -> Value {
    let mut content: Vec<_> = result.content.iter().map(content_block).collect();
    if content.is_empty() {
        // An empty list is refused.
        content.push(json!({"text": "(no output)"}));
    }
    let status = if result.is_error { "error" } else { "success" };
    json!({"toolResult": {"toolUseId": result.id, "content": content, "status": status}})
}

fn content_block(content: &TurnContent<'_>) -> Value {
    match content {
        TurnContent::Text(text) => json!({"text": text}),
        TurnContent::File(file) => file_block(file).unwrap_or_else(|_| json!({"text": left_out(file)})),
    }
}

/// # Errors
///
/// `invalid-input` for a file that the service has no block for.
fn file_block(file: &File) -> Result<Value, Error> {
    let media_type = file.media_type.as_str();
    let source = match &file.data {
        FileData::Base64(data) => json!({"bytes": data.as_ref()}),
        FileData::Url(url) if url.starts_with("s3://") => json!({"s3Location": {"uri": url}}),
        FileData::Url(_) => {
            let told = format!("Bedrock takes no address of a {media_type} but one in S3; send its bytes instead");
            return Err(invalid(told));
        }
    };
    let subtype = |name: &str| media_type.strip_prefix(name);
    if let Some(format) = picture_type(media_type).and_then(|known| known.strip_prefix("image/")) {
        return Ok(json!({"image": {"format": format, "source": source}}));
    }
    if let Some(format @ ("mp4" | "webm" | "mov" | "mkv" | "mpeg")) = subtype("video/") {
        return Ok(json!({"video": {"format": format, "source": source}}));
    }
    let format = document_format(media_type).ok_or_else(|| {
        invalid(format!(
            "Bedrock takes images, video, PDF, Word, Excel, text, Markdown, HTML and CSV, but no {media_type}; send its \
             text instead"
        ))
    })?;
    Ok(json!({"document": {"format": format, "name": document_name(file), "source": source}}))
}

fn document_format(media_type: &str) -> Option<&'static str> {
    Some(match media_type {
        "application/pdf" => "pdf",
        "text/plain" => "txt",
        "text/markdown" => "md",
        "text/html" => "html",
        "text/csv" => "csv",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        _ => return None,
    })
}

/// Letters, digits, hyphens, brackets and single spaces are what a document's name may hold, and no two may be the same.
fn document_name(file: &File) -> String {
    const KEPT: usize = 100;
    let allowed = |character: char| {
        if character.is_ascii_alphanumeric() || "()[]".contains(character) { character } else { '-' }
    };
    let name: String = file.name.as_deref().unwrap_or("document").chars().take(KEPT).map(allowed).collect();
    let data = match &file.data {
        FileData::Base64(data) => data.as_ref(),
        FileData::Url(url) => url,
    };
    format!("{name}-{}", fingerprint(data))
}
