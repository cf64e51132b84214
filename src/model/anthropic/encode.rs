//! The request.

use super::super::body::{RequestBody, invalid, number};
use super::super::claude;
use super::super::draft::{Draft, refuse_cached_content, refuse_heat};
use super::super::encoded::EncodedCache;
use super::super::files::{picture_type, plain_text};
use super::super::message::{File, FileData};
use super::super::names::{IdRule, wire_tool_name};
use super::super::output::OutputStyle;
use super::super::request::{CacheRetention, ModelRequest, RequestOptions, ToolChoice};
use super::super::transcript::{FAILED, NO_OUTPUT, Rules, Turn, TurnContent, TurnPart, TurnResult, left_out};
use crate::error::Error;
use crate::json::schema::Dialect;
use crate::json::{FromJson, Object, RawJson, add_member, filled, listed, quoted, quoted_list};

const RULES: Rules = Rules { ids: IdRule::Word, ends_with_user: true, ..Rules::DEFAULT };

pub(super) fn body(request: &ModelRequest, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let mut draft = Draft::new(request, RULES, cache)?;
    draft.check_files(&file_block)?;
    let options = draft.options;
    refuse_cached_content(options)?;
    refuse_heat(options)?;
    let (thinking, budget) = claude::thinking(draft.id, options)?;
    let cache_control = options.cache.map(cache_control);
    let mut body = RequestBody::default();
    body.set_text("model", draft.id);
    // The protocol demands a limit.
    body.set("max_tokens", options.max_tokens.unwrap_or_else(|| claude::limit(draft.id, budget)).to_string());
    if let Some(instructions) = draft.instructions() {
        let mut block = text_block(instructions);
        if let Some(marker) = cache_control {
            add_member(&mut block, "cache_control", marker);
        }
        body.set("system", listed(&[block]));
    }
    let takes_unsigned = takes_unsigned(request);
    body.set_list("messages", draft.turns(&|turn| encode_turn(turn, takes_unsigned))?);
    let tools = draft
        .tools(&|members, schema| format!("{{{members}\"input_schema\":{}}}", claude::with_plain_names(schema)))?;
    if !tools.is_empty() {
        body.set_list("tools", tools.elements());
        body.set_optional("tool_choice", tool_choice(options));
    }
    body.set_all([
        ("temperature", options.temperature.map(number)),
        ("top_p", options.top_p.map(number)),
        ("stop_sequences", (!options.stop.is_empty()).then(|| quoted_list(&options.stop))),
    ]);
    for (name, json) in thinking {
        body.set(name, json);
    }
    if let Some(schema) = lowered_output(options) {
        let format = filled(r#"{"format":{"type":"json_schema","schema":@}}"#, &[schema.as_str()]);
        body.add("output_config", format);
    }
    body.set_all([
        ("metadata", options.user.as_ref().map(|user| filled(r#"{"user_id":$}"#, &[user]))),
        ("service_tier", options.service_tier.as_deref().map(quoted)),
        // The service puts this one on the last block that can have it, and moves it as the conversation grows.
        ("cache_control", cache_control.map(str::to_owned)),
        ("stream", Some("true".to_owned())),
    ]);
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
    options.output.as_ref()?.lowered(Dialect::Anthropic)
}

fn cache_control(retention: CacheRetention) -> &'static str {
    match retention {
        CacheRetention::Short => r#"{"type":"ephemeral"}"#,
        CacheRetention::Long => r#"{"type":"ephemeral","ttl":"1h"}"#,
    }
}

fn tool_choice(options: &RequestOptions) -> Option<String> {
    let mut choice = match &options.tool_choice {
        Some(ToolChoice::None) => return Some(r#"{"type":"none"}"#.to_owned()),
        Some(ToolChoice::Required) => r#"{"type":"any"}"#.to_owned(),
        Some(ToolChoice::Tool(name)) => filled(r#"{"type":"tool","name":$}"#, &[&wire_tool_name(name)]),
        None if options.parallel_tool_calls != Some(false) => return None,
        Some(ToolChoice::Auto) | None => r#"{"type":"auto"}"#.to_owned(),
    };
    if options.parallel_tool_calls == Some(false) {
        add_member(&mut choice, "disable_parallel_tool_use", "true");
    }
    Some(choice)
}

/// One or two messages: what the model said, and the results of its calls in one message of the user, as the protocol
/// demands.
fn encode_turn(turn: &Turn<'_>, takes_unsigned: bool) -> String {
    match turn {
        Turn::User(content) => message("user", &content_blocks(content)),
        Turn::Assistant { parts, results, is_paused } => {
            let mut sent: Vec<_> = parts.iter().filter(|part| *is_paused || !is_unanswered(part, parts)).collect();
            while matches!(sent.last(), Some(TurnPart::Reasoning { .. })) {
                sent.pop();
            }
            let blocks: Vec<_> = sent.into_iter().filter_map(|part| part_block(part, takes_unsigned)).collect();
            let results: Vec<_> = results.iter().map(result_block).collect();
            let mut messages = Vec::new();
            if !blocks.is_empty() {
                messages.push(message("assistant", &blocks));
            }
            if !results.is_empty() {
                messages.push(message("user", &results));
            }
            messages.join(",")
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
    filled(r#"{"role":$,"content":@}"#, &[role, &listed(blocks)])
}

/// Whether thinking goes back without a signature. The service itself signs all, and refuses what is not. Servers of other models
/// that speak its protocol sign none, and refuse a turn whose thinking is missing (api-docs.deepseek.com, "Thinking Mode").
fn takes_unsigned(request: &ModelRequest) -> bool {
    request.model.address().is_some_and(|address| !address.contains(".anthropic.com"))
}

fn part_block(part: &TurnPart<'_>, takes_unsigned: bool) -> Option<String> {
    Some(match part {
        TurnPart::Text { text, replay } => {
            let mut block = text_block(text);
            if let Some(citations) = member("citations", *replay) {
                add_member(&mut block, "citations", &taken_citations(&citations));
            }
            block
        }
        TurnPart::Reasoning { text, replay } => match (member("signature", *replay), member("redacted", *replay)) {
            (Some(signature), _) => filled(r#"{"type":"thinking","thinking":$,"signature":@}"#, &[text, &signature]),
            (None, Some(data)) => filled(r#"{"type":"redacted_thinking","data":@}"#, &[&data]),
            (None, None) if takes_unsigned => filled(r#"{"type":"thinking","thinking":$,"signature":""}"#, &[text]),
            (None, None) => return None,
        },
        TurnPart::Call(call) => {
            let shape = r#"{"type":"tool_use","id":$,"name":$,"input":@}"#;
            let mut block = filled(shape, &[&call.id, &call.name, call.input]);
            add_replayed(&mut block, "caller", call.replay);
            block
        }
        // What stands in answers only has no value there.
        TurnPart::Provider(replay) => without(replay.as_str(), &|_, value| value == "null"),
    })
}

/// Citations as they are taken back: where a file has an id, answers tell it, and no request may.
fn taken_citations(citations: &str) -> String {
    let elements = Vec::<RawJson>::from_json(citations).unwrap_or_default();
    let taken = elements.iter().map(|citation| without(citation.as_str(), &|name, _| name == "file_id"));
    listed(&taken.collect::<Vec<_>>())
}

/// An object without the members that are left out, or what is no object as it is.
fn without(json: &str, is_left_out: &dyn Fn(&str, &str) -> bool) -> String {
    let Ok(object) = Object::parse(json) else { return json.to_owned() };
    if !object.iter().any(|(name, value)| is_left_out(name, value.get())) {
        return json.to_owned();
    }
    let mut kept = "{}".to_owned();
    for (name, value) in object.iter().filter(|(name, value)| !is_left_out(name, value.get())) {
        add_member(&mut kept, name, value.get());
    }
    kept
}

fn add_replayed(block: &mut String, name: &str, replay: Option<&RawJson>) {
    if let Some(json) = member(name, replay) {
        add_member(block, name, &json);
    }
}

fn result_block(result: &TurnResult<'_>) -> String {
    let mut block = filled(r#"{"type":"tool_result","tool_use_id":$}"#, &[&result.id]);
    let fails_in_words = result.fails_in_words();
    let mut content = content_blocks(&result.content);
    if fails_in_words {
        content.insert(0, text_block(FAILED));
    } else if result.is_error && content.is_empty() {
        content.push(text_block(NO_OUTPUT));
    }
    if !content.is_empty() {
        add_member(&mut block, "content", &listed(&content));
    }
    if result.is_error && !fails_in_words {
        add_member(&mut block, "is_error", "true");
    }
    block
}

fn content_blocks(content: &[TurnContent<'_>]) -> Vec<String> {
    content.iter().map(content_block).collect()
}

fn content_block(content: &TurnContent<'_>) -> String {
    match content {
        TurnContent::Text(text) => text_block(text),
        TurnContent::File(file) => file_block(file).unwrap_or_else(|_| text_block(&left_out(file))),
    }
}

fn text_block(text: &str) -> String {
    filled(r#"{"type":"text","text":$}"#, &[text])
}

/// # Errors
///
/// `invalid-input` for a file that the protocol has no block for.
fn file_block(file: &File) -> Result<String, Error> {
    const PDF: &str = "application/pdf";
    let refused = || {
        let media_type = &file.media_type;
        invalid(format!(
            "the Anthropic protocol takes JPEG, PNG, GIF and WebP images, PDF and text, but no {media_type} like this one"
        ))
    };
    let media_type = file.media_type.as_str();
    let is_picture = media_type.starts_with("image/");
    let kind = if is_picture { "image" } else { "document" };
    let source = match &file.data {
        FileData::Url(url) if is_picture || media_type == PDF => filled(r#"{"type":"url","url":$}"#, &[url]),
        FileData::Base64(data) if is_picture || media_type == PDF => {
            let media_type = if is_picture { picture_type(media_type).ok_or_else(refused)? } else { PDF };
            filled(r#"{"type":"base64","media_type":$,"data":$}"#, &[media_type, data])
        }
        _ => {
            let text = plain_text(file).ok_or_else(refused)?;
            filled(r#"{"type":"text","media_type":"text/plain","data":$}"#, &[&text])
        }
    };
    let mut block = filled(r#"{"type":$,"source":@}"#, &[kind, &source]);
    if let Some(name) = file.name.as_ref().filter(|_| !is_picture) {
        add_member(&mut block, "title", &quoted(name));
    }
    Ok(block)
}
