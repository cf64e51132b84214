//! The request.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::body::{self, RequestBody, invalid};
use super::super::draft::{Draft, refuse_cached_content};
use super::super::encoded::EncodedCache;
use super::super::files::plain_text;
use super::super::message::{File, FileData};
use super::super::names::wire_tool_name;
use super::super::output::OutputStyle;
use super::super::request::{CacheRetention, ModelRequest, OutputSchema, Reasoning, RequestOptions, ToolChoice};
use super::super::transcript::{Rules, Turn, TurnCall, TurnContent, TurnPart, TurnResult, left_out};
use super::details;
use super::profile::{Audio, Cache, Documents, ReasoningReplay, ReasoningStyle, Traits};
use crate::error::Error;
use crate::json::Object;

pub(super) fn body(request: &ModelRequest, traits: &Traits, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let rules = Rules {
        ids: traits.ids,
        ends_turn_with_reasoning: true,
        ends_with_user: traits.ends_with_user,
        merges_user: traits.merges_user,
        ..Rules::DEFAULT
    };
    let mut draft = Draft::new(request, rules, cache)?;
    // A model that reads only text is told of the file instead.
    if traits.reads_files() {
        draft.check_files(|file| file_part(file, traits))?;
    }
    let options = draft.options;
    refuse_cached_content(options)?;
    let mut body = RequestBody::default();
    body.set("model", draft.id)?;
    let mut messages: Vec<Arc<str>> = Vec::new();
    if let Some(instructions) = draft.instructions() {
        messages.push(message(traits.system_role, &body::json(instructions)?).into());
    }
    messages.extend(draft.turns(|turn| encode_turn(turn, traits))?);
    body.set_list("messages", messages);
    let tools = draft.tools(|members, schema| {
        format!("{{\"type\":\"function\",\"function\":{{{members}\"parameters\":{schema}}}}}")
    })?;
    if !tools.is_empty() {
        body.set_list("tools", tools.elements());
        if let Some(choice) = &options.tool_choice {
            body.set("tool_choice", &tool_choice(choice, traits))?;
        }
        body.set_optional("parallel_tool_calls", options.parallel_tool_calls.as_ref())?;
    }
    body.set_optional(traits.max_tokens, options.max_tokens.as_ref())?;
    body.set_optional("temperature", options.temperature.as_ref())?;
    body.set_optional("top_p", options.top_p.as_ref())?;
    if !options.stop.is_empty() {
        body.set("stop", &options.stop)?;
    }
    if let Some(output) = &options.output {
        set_output(&mut body, output, traits.output_style(request))?;
    }
    body.set_optional(traits.seed, options.seed.as_ref())?;
    if let Some(reasoning) = options.reasoning {
        set_reasoning(&mut body, reasoning, options, traits)?;
    }
    if let Some(member) = traits.user {
        body.set_optional(member, options.user.as_ref())?;
    }
    set_metadata(&mut body, options, traits)?;
    body.set_optional("service_tier", options.service_tier.as_ref())?;
    set_cache(&mut body, options, traits.cache)?;
    if traits.has_store {
        body.set("store", &options.store.unwrap_or(false))?;
    }
    body.set("stream", &true)?;
    if traits.asks_for_usage {
        body.set("stream_options", &json!({"include_usage": true}))?;
    }
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
}

fn set_metadata(body: &mut RequestBody, options: &RequestOptions, traits: &Traits) -> Result<(), Error> {
    if options.metadata.is_empty() || !traits.has_metadata {
        return Ok(());
    }
    if traits.has_store && options.store != Some(true) {
        return Err(invalid(
            "OpenAI takes metadata over Chat Completions only for what it stores; set store, or use the Responses protocol",
        ));
    }
    body.set_map("metadata", &options.metadata)
}

fn set_cache(body: &mut RequestBody, options: &RequestOptions, cache: Cache) -> Result<(), Error> {
    match (cache, options.cache) {
        (Cache::Key, retention) => {
            body.set_optional("prompt_cache_key", options.cache_key.as_ref())?;
            body.set_optional("prompt_cache_retention", (retention == Some(CacheRetention::Long)).then_some(&"24h"))
        }
        (Cache::Marker, Some(CacheRetention::Short)) => body.set("cache_control", &json!({"type": "ephemeral"})),
        (Cache::Marker, Some(CacheRetention::Long)) => {
            body.set("cache_control", &json!({"type": "ephemeral", "ttl": "1h"}))
        }
        (Cache::Unasked, _) | (Cache::Marker, None) => Ok(()),
    }
}

/// The answer tool is in the request already, and so is what is told of the schema.
fn set_output(body: &mut RequestBody, output: &OutputSchema, style: OutputStyle) -> Result<(), Error> {
    match style {
        OutputStyle::Schema => {
            let members = output.members()?;
            let format = format!("{{\"type\":\"json_schema\",\"json_schema\":{{{members}}}}}");
            body.set_shared("response_format", format.into());
            Ok(())
        }
        OutputStyle::Object => body.set("response_format", &json!({"type": "json_object"})),
        OutputStyle::Tool { .. } | OutputStyle::Told => Ok(()),
    }
}

fn tool_choice(choice: &ToolChoice, traits: &Traits) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!(traits.required),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": wire_tool_name(name)}}),
    }
}

fn set_reasoning(
    body: &mut RequestBody,
    reasoning: Reasoning,
    options: &RequestOptions,
    traits: &Traits,
) -> Result<(), Error> {
    let is_on = reasoning != Reasoning::Off;
    let switch = json!({"type": if is_on { "enabled" } else { "disabled" }});
    match (traits.reasoning, reasoning) {
        (ReasoningStyle::Effort, _) if traits.has_store => body.set("reasoning_effort", chat_word(reasoning)),
        (ReasoningStyle::Effort, _) => body.set("reasoning_effort", reasoning.plain_word()),
        (ReasoningStyle::EffortOrNone, _) => body.set("reasoning_effort", if is_on { "high" } else { "none" }),
        (ReasoningStyle::Object, Reasoning::Budget(tokens)) => body.set("reasoning", &json!({"max_tokens": tokens})),
        (ReasoningStyle::Object, Reasoning::Off) => body.set("reasoning", &json!({"enabled": false})),
        (ReasoningStyle::Object, _) => body.set("reasoning", &json!({"effort": chat_word(reasoning)})),
        (ReasoningStyle::Switch, _) => body.set("thinking", &switch),
        (ReasoningStyle::SwitchAndEffort, _) => {
            if is_on && matches!(options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_))) {
                return Err(invalid(
                    "this model cannot be made to call a tool while it reasons; leave one of the two out",
                ));
            }
            body.set("thinking", &switch)?;
            match reasoning {
                Reasoning::Effort(_) => body.set("reasoning_effort", reasoning.word()),
                Reasoning::Off | Reasoning::Budget(_) => Ok(()),
            }
        }
        (ReasoningStyle::Enable, _) => {
            body.set("enable_thinking", &is_on)?;
            match reasoning {
                Reasoning::Budget(tokens) => body.set("thinking_budget", &tokens),
                Reasoning::Off | Reasoning::Effort(_) => Ok(()),
            }
        }
    }
}

/// The protocol has no word above `xhigh`.
fn chat_word(reasoning: Reasoning) -> &'static str {
    match reasoning.word() {
        "max" => "xhigh",
        word => word,
    }
}

fn encode_turn(turn: &Turn<'_>, traits: &Traits) -> Result<String, Error> {
    match turn {
        Turn::User(content) => user_message(content, traits),
        Turn::Assistant { parts, results, .. } => {
            let mut messages = vec![assistant_message(parts, traits)?];
            for result in results {
                let text = result.text();
                messages.push(body::json(&json!({"role": "tool", "tool_call_id": result.id, "content": text}))?);
            }
            messages.extend(files_of_results(results, traits)?);
            messages.retain(|message| !message.is_empty());
            Ok(messages.join(","))
        }
    }
}

fn message(role: &str, content: &str) -> String {
    format!("{{\"role\":\"{role}\",\"content\":{content}}}")
}

fn user_message(content: &[TurnContent<'_>], traits: &Traits) -> Result<String, Error> {
    if let [TurnContent::Text(text)] = content {
        return Ok(message("user", &body::json(text)?));
    }
    let parts = content.iter().map(|content| content_part(content, traits)).collect::<Result<Vec<_>, _>>()?;
    Ok(message("user", &format!("[{}]", parts.join(","))))
}

fn assistant_message(parts: &[TurnPart<'_>], traits: &Traits) -> Result<String, Error> {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut reasoning_details = Vec::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            TurnPart::Text { text: more, .. } => text.push_str(more),
            TurnPart::Reasoning { text, replay } => {
                reasoning.push_str(text);
                let kept = replay.and_then(|replay| Object::parse(replay.as_str()).ok()?.read("reasoning_details"));
                details::merge(&mut reasoning_details, kept.unwrap_or_default());
            }
            TurnPart::Call(call) => calls.push(tool_call(call)?),
            // Only other protocols have blocks of their own.
            TurnPart::Provider(_) => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return Ok(String::new());
    }
    let mut members = vec!["\"role\":\"assistant\"".to_owned()];
    if !text.is_empty() || traits.needs_content {
        members.push(format!("\"content\":{}", body::json(&text)?));
    }
    match traits.replay {
        ReasoningReplay::Content if !reasoning.is_empty() && !calls.is_empty() => {
            members.push(format!("\"reasoning_content\":{}", body::json(&reasoning)?));
        }
        ReasoningReplay::Details if !reasoning_details.is_empty() => {
            members.push(format!("\"reasoning_details\":{}", body::json(&reasoning_details)?));
        }
        _ => {}
    }
    if !calls.is_empty() {
        members.push(format!("\"tool_calls\":[{}]", calls.join(",")));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn tool_call(call: &TurnCall<'_>) -> Result<String, Error> {
    let function = json!({"name": call.name, "arguments": call.input});
    let mut encoded = json!({"id": call.id, "type": "function", "function": function});
    // Google's signatures travel here.
    if let (Some(replay), Some(members)) = (call.replay, encoded.as_object_mut()) {
        members.insert("extra_content".to_owned(), replay.read().unwrap_or_default());
    }
    body::json(&encoded)
}

/// Results can hold only text here, so their files follow in a message of the user.
fn files_of_results(results: &[TurnResult<'_>], traits: &Traits) -> Result<Option<String>, Error> {
    let mut parts = Vec::new();
    for result in results {
        let mut is_labelled = false;
        for file in result.files() {
            if !std::mem::replace(&mut is_labelled, true) {
                parts.push(text_part(&format!("Files from the result of {}:", result.name))?);
            }
            parts.push(content_part(file, traits)?);
        }
    }
    Ok((!parts.is_empty()).then(|| message("user", &format!("[{}]", parts.join(",")))))
}

fn content_part(content: &TurnContent<'_>, traits: &Traits) -> Result<String, Error> {
    match content {
        TurnContent::Text(text) => text_part(text),
        TurnContent::File(file) => {
            file_part(file, traits).map_or_else(|_| text_part(&left_out(file)), |part| body::json(&part))
        }
    }
}

fn text_part(text: &str) -> Result<String, Error> {
    body::json(&json!({"type": "text", "text": text}))
}

/// # Errors
///
/// `invalid-input` for a file that the server has no part for.
fn file_part(file: &File, traits: &Traits) -> Result<Value, Error> {
    let media_type = file.media_type.as_str();
    let (data, address) = match &file.data {
        FileData::Base64(data) => (Some(data.as_ref()), format!("data:{media_type};base64,{data}")),
        FileData::Url(url) => (None, url.clone()),
    };
    let name = file.name.as_deref().unwrap_or("file");
    if let Some(text) = plain_text(file) {
        return Ok(json!({"type": "text", "text": format!("{name}:\n{text}")}));
    }
    let part = match (file.part_type(), data) {
        ("image", _) if traits.takes_images => Some(json!({"type": "image_url", "image_url": {"url": address}})),
        ("audio", Some(data)) => match traits.audio {
            Audio::Described => {
                let input = json!({"data": data, "format": audio_format(media_type)});
                Some(json!({"type": "input_audio", "input_audio": input}))
            }
            Audio::Bare => Some(json!({"type": "input_audio", "input_audio": data})),
            Audio::None => None,
        },
        _ if media_type.starts_with("video/") => {
            traits.takes_video.then(|| json!({"type": "video_url", "video_url": {"url": address}}))
        }
        ("file", _) => match (traits.documents, data) {
            (Documents::File, Some(_)) | (Documents::FileOrAddress, _) => {
                Some(json!({"type": "file", "file": {"filename": name, "file_data": address}}))
            }
            (Documents::DocumentUrl, _) => {
                Some(json!({"type": "document_url", "document_url": address, "document_name": name}))
            }
            (Documents::File, None) | (Documents::None, _) => None,
        },
        _ => None,
    };
    part.ok_or_else(|| {
        let what = if data.is_some() { "bytes" } else { "address" };
        invalid(format!("{} takes no {what} of a {media_type} over Chat Completions", traits.name))
    })
}

fn audio_format(media_type: &str) -> &str {
    match media_type {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        other => other.trim_start_matches("audio/"),
    }
}
