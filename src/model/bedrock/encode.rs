//! The request.

use std::sync::Arc;

use super::super::body::{Members, RequestBody, described, invalid, joined, number, object, separated};
use super::super::claude;
use super::super::draft::{Draft, Tools, refuse_cached_content, refuse_heat, refuse_single_calls};
use super::super::encoded::EncodedCache;
use super::super::files::picture_type;
use super::super::message::{File, FileData};
use super::super::names::{IdRule, fingerprint, wire_tool_name};
use super::super::output::OutputStyle;
use super::super::request::{CacheRetention, ModelRequest, OutputSchema, Reasoning, RequestOptions, ToolChoice};
use super::super::transcript::{FAILED, NO_OUTPUT, Rules, Turn, TurnContent, TurnPart, TurnResult, left_out};
use crate::error::Error;
use crate::json::schema::Dialect;
use crate::json::{Object, RawJson, add_member, filled, listed, quoted, quoted_list};

const RULES: Rules = Rules { ids: IdRule::Word, begins_with_user: true, ends_with_user: true, ..Rules::DEFAULT };

/// Those who speak.
const MODEL: char = 'm';
const USER: char = 'u';

pub(super) fn body(request: &ModelRequest, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let mut draft = Draft::new(request, RULES, cache)?;
    draft.check_files(&file_block)?;
    let options = draft.options;
    refuse_cached_content(options)?;
    refuse_heat(options)?;
    refuse_single_calls(options)?;
    let marker = options.cache.map(|retention| cache_point(draft.id, retention));
    let mut body = RequestBody::default();
    if let Some(instructions) = draft.instructions() {
        let mut system = vec![text_block(instructions)];
        system.extend(marker.map(str::to_owned));
        body.set("system", listed(&system));
    }
    let mut turns = draft.turns(&encode_turn)?;
    if let Some(marker) = marker {
        turns.push(separated(&[(USER, vec![marker.to_owned()])]).into());
    }
    let write = |speaker, content: &str| {
        let role = if speaker == MODEL { "assistant" } else { "user" };
        filled(r#"{"role":$,"content":[@]}"#, &[role, content])
    };
    body.set_list("messages", joined(&turns, &write));
    let (fields, budget) = additional_fields(draft.id, options)?;
    body.set_optional("inferenceConfig", inference_config(draft.id, options, budget));
    set_tools(&mut body, &mut draft, marker)?;
    let output = options.output.as_ref().and_then(|output| output_config(output));
    body.set_all([
        ("additionalModelRequestFields", object(fields.into_iter().map(|(name, json)| (name, Some(json))))),
        ("outputConfig", output),
    ]);
    if !options.metadata.is_empty() {
        body.set_map("requestMetadata", &options.metadata);
    }
    body.set_optional("serviceTier", options.service_tier.as_ref().map(|tier| filled(r#"{"type":$}"#, &[tier])));
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
}

/// Only Claude has another time than the usual one.
fn cache_point(model: &str, retention: CacheRetention) -> &'static str {
    match retention {
        CacheRetention::Long if is_claude(model) => r#"{"cachePoint":{"type":"default","ttl":"1h"}}"#,
        CacheRetention::Short | CacheRetention::Long => r#"{"cachePoint":{"type":"default"}}"#,
    }
}

fn is_claude(model: &str) -> bool {
    model.contains("anthropic.")
}

/// The tools, with the marker of the cache behind them where no system prompt follows that has it. A history with calls is
/// refused without any tool, so those that it calls are named.
fn set_tools(body: &mut RequestBody, draft: &mut Draft<'_>, marker: Option<&str>) -> Result<(), Error> {
    let is_claude = is_claude(draft.id);
    let mut tools = draft.tools(&|members, schema| {
        if is_claude { tool(members, &claude::with_plain_names(schema)) } else { tool(members, schema) }
    })?;
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
    if let Some(marker) = marker.filter(|_| draft.instructions().is_none() && is_claude) {
        tools.own.push(marker.into());
    }
    let elements: Vec<Arc<str>> = tools.elements();
    let elements: Vec<_> = elements.iter().filter(|element| !element.is_empty()).map(AsRef::as_ref).collect();
    let mut config = filled(r#"{"tools":[@]}"#, &[&elements.join(",")]);
    if let Some(choice) = &draft.options.tool_choice {
        add_member(&mut config, "toolChoice", &tool_choice(choice)?);
    }
    body.set("toolConfig", config);
    Ok(())
}

fn tool(members: &str, schema: &str) -> String {
    format!("{{\"toolSpec\":{{{members}\"inputSchema\":{{\"json\":{schema}}}}}}}")
}

fn inference_config(model: &str, options: &RequestOptions, budget: u64) -> Option<String> {
    // The service's own limit is smaller than most budgets.
    let default_limit = (budget > 0).then(|| claude::limit(model, budget));
    let members = [
        ("maxTokens", options.max_tokens.or(default_limit).as_ref().map(u64::to_string)),
        ("temperature", options.temperature.map(number)),
        ("topP", options.top_p.map(number)),
        ("stopSequences", (!options.stop.is_empty()).then(|| quoted_list(&options.stop))),
    ];
    object(members)
}

fn output_config(output: &OutputSchema) -> Option<String> {
    let schema = output.lowered(Dialect::Anthropic)?;
    let shape = r#"{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{@"schema":$}}}}"#;
    Some(filled(shape, &[&described(&output.name, output.description.as_deref()), schema.as_str()]))
}

/// Models that cannot be held to a schema get a tool for the answer; some of them cannot be made to call it (API reference,
/// `ToolChoice`).
pub(super) fn output_style(request: &ModelRequest) -> OutputStyle {
    let model = &*request.model.id;
    let lowered = request.options.output.as_ref().and_then(|output| output.lowered(Dialect::Anthropic));
    if lowered.is_some() && claude::is_held_to_schemas(model) {
        return OutputStyle::Schema;
    }
    OutputStyle::Tool {
        is_demanded: ["anthropic.", "amazon.nova", "mistral."].iter().any(|maker| model.contains(maker)),
    }
}

/// What asks for reasoning, in each vendor's own words, and how many tokens are set aside for it.
fn additional_fields(model: &str, options: &RequestOptions) -> Result<(Members, u64), Error> {
    let Some(reasoning) = options.reasoning else { return Ok((Vec::new(), 0)) };
    if is_claude(model) {
        return claude::thinking(model, options);
    }
    let is_off = reasoning == Reasoning::Off;
    let field = match reasoning.plain_word() {
        _ if model.contains("amazon.nova-2") && is_off => ("reasoningConfig", r#"{"type":"disabled"}"#.to_owned()),
        word if model.contains("amazon.nova-2") => {
            let effort = if word == "minimal" { "low" } else { word };
            ("reasoningConfig", filled(r#"{"type":"enabled","maxReasoningEffort":$}"#, &[effort]))
        }
        word if model.contains("openai.gpt-oss") => {
            let effort = if matches!(word, "none" | "minimal") { "low" } else { word };
            ("reasoning_effort", quoted(effort))
        }
        _ if is_off => return Ok((Vec::new(), 0)),
        _ => {
            let told = "Bedrock has no common way to ask for reasoning, and this model's is not known; leave it out, or \
                        write additionalModelRequestFields into the extra body";
            return Err(invalid(told));
        }
    };
    Ok((vec![field], 0))
}

fn tool_choice(choice: &ToolChoice) -> Result<String, Error> {
    Ok(match choice {
        ToolChoice::Auto => r#"{"auto":{}}"#.to_owned(),
        ToolChoice::Required => r#"{"any":{}}"#.to_owned(),
        ToolChoice::Tool(name) => filled(r#"{"tool":{"name":$}}"#, &[&wire_tool_name(name)]),
        ToolChoice::None => {
            return Err(invalid("Bedrock cannot be told to call no tool; offer no tools instead"));
        }
    })
}

fn encode_turn(turn: &Turn<'_>) -> String {
    match turn {
        Turn::User(content) => {
            let mut blocks: Vec<_> = content.iter().map(content_block).collect();
            // A document is refused without a text beside it.
            if !blocks.iter().any(|block| block.starts_with("{\"text\"")) {
                blocks.push(text_block("See above."));
            }
            separated(&[(USER, blocks)])
        }
        Turn::Assistant { parts, results, .. } => {
            let spoken = parts.iter().filter_map(part_block).collect();
            separated(&[(MODEL, spoken), (USER, results.iter().map(result_block).collect())])
        }
    }
}

fn part_block(part: &TurnPart<'_>) -> Option<String> {
    match part {
        TurnPart::Text { text, .. } => Some(text_block(text)),
        TurnPart::Reasoning { text, replay } => match (member(*replay, "signature"), member(*replay, "redacted")) {
            (Some(signature), _) => {
                let shape = r#"{"reasoningContent":{"reasoningText":{"text":$,"signature":$}}}"#;
                Some(filled(shape, &[text, &signature]))
            }
            (None, Some(data)) => Some(filled(r#"{"reasoningContent":{"redactedContent":$}}"#, &[&data])),
            // Reasoning without its signature is refused.
            (None, None) => None,
        },
        TurnPart::Call(call) => {
            Some(filled(r#"{"toolUse":{"toolUseId":$,"name":$,"input":@}}"#, &[&call.id, &call.name, call.input]))
        }
        TurnPart::Provider(replay) => Some(replay.as_str().to_owned()),
    }
}

fn member(replay: Option<&RawJson>, name: &str) -> Option<String> {
    Object::parse(replay?.as_str()).ok()?.string(name)
}

fn result_block(result: &TurnResult<'_>) -> String {
    let mut content: Vec<_> = result.content.iter().map(content_block).collect();
    if content.is_empty() {
        // An empty list is refused.
        content.push(text_block(NO_OUTPUT));
    }
    let fails_in_words = result.fails_in_words();
    if fails_in_words {
        content.insert(0, text_block(FAILED));
    }
    let status = if result.is_error && !fails_in_words { "error" } else { "success" };
    let shape = r#"{"toolResult":{"toolUseId":$,"content":@,"status":$}}"#;
    filled(shape, &[&result.id, &listed(&content), status])
}

fn content_block(content: &TurnContent<'_>) -> String {
    match content {
        TurnContent::Text(text) => text_block(text),
        TurnContent::File(file) => file_block(file).unwrap_or_else(|_| text_block(&left_out(file))),
    }
}

fn text_block(text: &str) -> String {
    filled(r#"{"text":$}"#, &[text])
}

/// # Errors
///
/// `invalid-input` for a file that the service has no block for.
fn file_block(file: &File) -> Result<String, Error> {
    let media_type = file.media_type.as_str();
    let source = match &file.data {
        FileData::Base64(data) => filled(r#"{"bytes":$}"#, &[data]),
        FileData::Url(url) if url.starts_with("s3://") => filled(r#"{"s3Location":{"uri":$}}"#, &[url]),
        FileData::Url(_) => {
            let told = format!("Bedrock takes no address of a {media_type} but one in S3; send its bytes instead");
            return Err(invalid(told));
        }
    };
    if let Some(format) = picture_type(media_type).and_then(|known| known.strip_prefix("image/")) {
        return Ok(filled(r#"{"image":{"format":$,"source":@}}"#, &[format, &source]));
    }
    if let Some(format @ ("mp4" | "webm" | "mov" | "mkv" | "mpeg")) = media_type.strip_prefix("video/") {
        return Ok(filled(r#"{"video":{"format":$,"source":@}}"#, &[format, &source]));
    }
    let format = document_format(media_type).ok_or_else(|| {
        invalid(format!(
            "Bedrock takes images, video, PDF, Word, Excel, text, Markdown, HTML and CSV, but no {media_type}; send its \
             text instead"
        ))
    })?;
    Ok(filled(r#"{"document":{"format":$,"name":$,"source":@}}"#, &[format, &document_name(file), &source]))
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
