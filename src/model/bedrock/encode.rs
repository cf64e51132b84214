//! The request.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::body::{self, RequestBody, tool_list};
use super::super::claude;
use super::super::encoded::EncodedCache;
use super::super::message::{Content, File, FileData};
use super::super::names::{IdRule, wire_tool_name};
use super::super::output::OutputStyle;
use super::super::request::{ModelRequest, Reasoning, RequestOptions, ToolChoice, ToolSpec};
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
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        body.set("system", &[json!({"text": instructions})])?;
    }
    body.set_list("messages", alternating(&cache.turns(&request.messages, &reader, encode_turn)?));
    let config = inference_config(options);
    if !config.is_empty() {
        body.set("inferenceConfig", &config)?;
    }
    if !request.tools.is_empty() {
        let tools = cache.tools(&request.tools, || tools(&request.tools))?;
        let choice = match &options.tool_choice {
            Some(choice) => format!(",\"toolChoice\":{}", tool_choice(choice)?),
            None => String::new(),
        };
        body.set_shared("toolConfig", format!("{{\"tools\":{tools}{choice}}}").into());
    }
    if let Some(output) = &options.output
        && let Some(schema) = Dialect::Anthropic.lower(&output.schema)
    {
        let mut definition = json!({"name": wire_tool_name(&output.name), "schema": schema.as_str()});
        if let (Some(description), Some(members)) = (&output.description, definition.as_object_mut()) {
            members.insert("description".to_owned(), description.as_str().into());
        }
        let format = json!({"type": "json_schema", "structure": {"jsonSchema": definition}});
        body.set("outputConfig", &json!({"textFormat": format}))?;
    }
    if let Some(budget) = thinking(&request.model.id, options.reasoning) {
        body.set("additionalModelRequestFields", &json!({"thinking": {"type": "enabled", "budget_tokens": budget}}))?;
    }
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
}

/// Separates the content of one message from that of the next in an encoded group. JSON text holds no such character.
const SEPARATOR: char = '\u{1e}';

/// The roles must alternate, so neighbours of one role become one message. Each group is a list of role letter and
/// content.
fn alternating(groups: &[Arc<str>]) -> Vec<Arc<str>> {
    let mut messages: Vec<(&str, Vec<&str>)> = Vec::new();
    for piece in groups.iter().flat_map(|group| group.split(SEPARATOR)).filter(|piece| !piece.is_empty()) {
        let (role, content) = if let Some(content) = piece.strip_prefix('a') {
            ("assistant", content)
        } else {
            ("user", piece.strip_prefix('u').unwrap_or(piece))
        };
        match messages.last_mut() {
            Some((last, contents)) if *last == role => contents.push(content),
            _ => messages.push((role, vec![content])),
        }
    }
    let written = messages
        .into_iter()
        .map(|(role, contents)| format!("{{\"role\":\"{role}\",\"content\":[{}]}}", contents.join(",")).into());
    written.collect()
}

fn inference_config(options: &RequestOptions) -> Map<String, Value> {
    let members = [
        ("maxTokens", options.max_tokens.map(Value::from)),
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

/// Only the models of Anthropic have a way to ask for reasoning here.
fn thinking(model: &str, reasoning: Option<Reasoning>) -> Option<u64> {
    reasoning.map(Reasoning::tokens).filter(|tokens| *tokens > 0 && model.contains("anthropic."))
}

fn tool_choice(choice: &ToolChoice) -> Result<Value, Error> {
    Ok(match choice {
        ToolChoice::Auto => json!({"auto": {}}),
        ToolChoice::Required => json!({"any": {}}),
        ToolChoice::Tool(name) => json!({"tool": {"name": wire_tool_name(name)}}),
        ToolChoice::None => {
            let told = "Bedrock cannot be told to call no tool; offer no tools instead";
            return Err(Error::new(ErrorKind::InvalidInput, told));
        }
    })
}

fn tools(tools: &[ToolSpec]) -> Result<String, Error> {
    tool_list(tools, |members, schema| format!("{{\"toolSpec\":{{{members}\"inputSchema\":{{\"json\":{schema}}}}}}}"))
}

fn encode_turn(turn: &Turn<'_>) -> Result<String, Error> {
    let messages = match turn {
        Turn::User(content) => {
            vec![('u', content.iter().map(|content| content_block(content)).collect::<Result<Vec<_>, _>>()?)]
        }
        Turn::Assistant { parts, results } => {
            let mut spoken = Vec::new();
            for part in parts {
                spoken.extend(part_block(part)?);
            }
            vec![('a', spoken), ('u', results.iter().map(result_block).collect::<Result<Vec<_>, _>>()?)]
        }
    };
    let mut encoded = String::new();
    for (role, blocks) in messages.iter().filter(|(_, blocks)| !blocks.is_empty()) {
        if !encoded.is_empty() {
            encoded.push(SEPARATOR);
        }
        encoded.push(*role);
        encoded.push_str(&blocks.iter().map(body::json).collect::<Result<Vec<_>, _>>()?.join(","));
    }
    Ok(encoded)
}

fn part_block(part: &TurnPart<'_>) -> Result<Option<Value>, Error> {
    Ok(match part {
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
    })
}

fn member(replay: Option<&RawJson>, name: &str) -> Option<String> {
    Object::parse(replay?.as_str()).ok()?.string(name)
}

fn result_block(result: &TurnResult<'_>) -> Result<Value, Error> {
    let (content, is_error) = match result.result {
        None => (vec![json!({"text": MISSING_RESULT})], true),
        Some(found) => {
            let is_blank = |content: &&Content| matches!(content, Content::Text(text) if text.trim().is_empty());
            let blocks = found.content.iter().filter(|content| !is_blank(content)).map(content_block);
            (blocks.collect::<Result<Vec<_>, _>>()?, found.is_error)
        }
    };
    // An empty list is refused.
    let content = if content.is_empty() { vec![json!({"text": "(no output)"})] } else { content };
    let status = if is_error { "error" } else { "success" };
    Ok(json!({"toolResult": {"toolUseId": result.id, "content": content, "status": status}}))
}

fn content_block(content: &Content) -> Result<Value, Error> {
    let file = match content {
        Content::Text(text) => return Ok(json!({"text": text})),
        Content::File(file) => file,
    };
    let media_type = file.media_type.as_str();
    let FileData::Base64(data) = &file.data else {
        let told = format!("Bedrock takes no address of a {media_type}; send its bytes instead");
        return Err(Error::new(ErrorKind::InvalidInput, told));
    };
    let source = json!({"bytes": data.as_ref()});
    match media_type.split_once('/') {
        Some(("image", format)) => Ok(json!({"image": {"format": format, "source": source}})),
        _ => Ok(json!({"document": {"format": document_format(file)?, "name": document_name(file), "source": source}})),
    }
}

fn document_format(file: &File) -> Result<&'static str, Error> {
    Ok(match file.media_type.as_str() {
        "application/pdf" => "pdf",
        "text/plain" => "txt",
        "text/markdown" => "md",
        "text/html" => "html",
        "text/csv" => "csv",
        other => {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "Bedrock takes images, PDF, text, Markdown, HTML and CSV, but no {other}; send its text instead"
                ),
            ));
        }
    })
}

/// Letters, digits, spaces, hyphens and brackets are what a document's name may hold.
fn document_name(file: &File) -> String {
    let allowed = |character: char| {
        if character.is_ascii_alphanumeric() || " -()[]".contains(character) { character } else { '-' }
    };
    file.name.as_deref().unwrap_or("document").chars().map(allowed).collect()
}
