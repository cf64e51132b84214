//! The request.

use std::sync::Arc;

use super::super::body::{RequestBody, invalid, number};
use super::super::draft::{Draft, refuse_cached_content};
use super::super::encoded::EncodedCache;
use super::super::files::plain_text;
use super::super::message::{File, FileData};
use super::super::names::wire_tool_name;
use super::super::output::OutputStyle;
use super::super::request::{CacheRetention, ModelRequest, OutputSchema, Reasoning, RequestOptions, ToolChoice};
use super::super::transcript::{HEARD, NO_OUTPUT, Rules, Turn, TurnCall, TurnContent, TurnPart, TurnResult, left_out};
use super::decode::REASONING_MEMBERS;
use super::details;
use super::profile::{Audio, Cache, Documents, ReasoningReplay, ReasoningStyle, Traits};
use crate::error::Error;
use crate::json::{Object, add_member, filled, listed, quoted, quoted_list};

pub(super) fn body(request: &ModelRequest, traits: &Traits, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let rules = Rules {
        ids: traits.ids,
        ends_turn_with_reasoning: true,
        ends_with_user: traits.ends_with_user,
        merges_user: traits.merges_user,
        demands_reasoning: traits.replay == ReasoningReplay::Always
            && request.options.reasoning != Some(Reasoning::Off),
        waits_for_model: traits.waits_for_model(&request.model.id),
        ..Rules::DEFAULT
    };
    let mut draft = Draft::new(request, rules, cache)?;
    // A model that reads only text is told of the file instead.
    if traits.reads_files() {
        draft.check_files(&|file| file_part(file, traits))?;
    }
    let options = draft.options;
    refuse_cached_content(options)?;
    let mut body = RequestBody::default();
    body.set_text("model", draft.id);
    let mut messages: Vec<Arc<str>> = Vec::new();
    if let Some(instructions) = draft.instructions() {
        messages.push(message(traits.system_role, &quoted(instructions)).into());
    }
    let turns = draft.turns(&|turn| encode_turn(turn, traits, rules))?;
    if rules.waits_for_model {
        messages.extend(with_heard_results(&turns));
    } else {
        messages.extend(turns);
    }
    body.set_list("messages", messages);
    let tools = draft.tools(&|members, schema| {
        format!("{{\"type\":\"function\",\"function\":{{{members}\"parameters\":{schema}}}}}")
    })?;
    if !tools.is_empty() {
        body.set_list("tools", tools.elements());
        body.set_all([
            ("tool_choice", options.tool_choice.as_ref().map(|choice| tool_choice(choice, traits))),
            ("parallel_tool_calls", options.parallel_tool_calls.as_ref().map(bool::to_string)),
        ]);
    }
    body.set_all([
        (traits.max_tokens, options.max_tokens.as_ref().map(u64::to_string)),
        ("temperature", options.temperature.map(number)),
        ("top_p", options.top_p.map(number)),
        ("stop", (!options.stop.is_empty()).then(|| quoted_list(&options.stop))),
    ]);
    if let Some(output) = &options.output {
        body.set_optional("response_format", output_format(output, traits.output_style(request)));
    }
    body.set_optional(traits.seed, options.seed.as_ref().map(u64::to_string));
    body.set_optional("reasoning_split", traits.splits_reasoning.then(|| "true".to_owned()));
    if let Some(reasoning) = options.reasoning {
        set_reasoning(&mut body, reasoning, options, traits)?;
    }
    if let Some(member) = traits.user {
        body.set_optional(member, options.user.as_deref().map(quoted));
    }
    set_metadata(&mut body, options, traits)?;
    body.set_optional("service_tier", options.service_tier.as_deref().map(quoted));
    set_cache(&mut body, options, traits.cache);
    body.set_all([
        ("store", traits.has_store.then(|| options.store.unwrap_or(false).to_string())),
        ("stream", Some("true".to_owned())),
        ("stream_options", traits.asks_for_usage.then(|| r#"{"include_usage":true}"#.to_owned())),
    ]);
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
}

/// The messages of these turns, with a word of the model where the user speaks right behind results.
fn with_heard_results(turns: &[Arc<str>]) -> Vec<Arc<str>> {
    let mut messages: Vec<Arc<str>> = Vec::new();
    for turn in turns.iter().filter(|turn| !turn.is_empty()) {
        let ends_with_results = |before: &Arc<str>| {
            // No text holds such a beginning, since its quotes are escaped there.
            before.rfind(MESSAGE).and_then(|last| before.get(last..)).is_some_and(|last| last.starts_with(TOOL_MESSAGE))
        };
        if turn.starts_with(USER_MESSAGE) && messages.last().is_some_and(ends_with_results) {
            messages.push(message("assistant", &quoted(HEARD)).into());
        }
        messages.push(Arc::clone(turn));
    }
    messages
}

/// How messages begin.
const MESSAGE: &str = r#"{"role":"#;
const USER_MESSAGE: &str = r#"{"role":"user","#;
const TOOL_MESSAGE: &str = r#"{"role":"tool","#;

fn set_metadata(body: &mut RequestBody, options: &RequestOptions, traits: &Traits) -> Result<(), Error> {
    if options.metadata.is_empty() || !traits.has_metadata {
        return Ok(());
    }
    if traits.has_store && options.store != Some(true) {
        return Err(invalid(
            "OpenAI takes metadata over Chat Completions only for what it stores; set store, or use the Responses protocol",
        ));
    }
    body.set_map("metadata", &options.metadata);
    Ok(())
}

fn set_cache(body: &mut RequestBody, options: &RequestOptions, cache: Cache) {
    match (cache, options.cache) {
        (Cache::Key, retention) => body.set_all([
            ("prompt_cache_key", options.cache_key.as_deref().map(quoted)),
            ("prompt_cache_retention", (retention == Some(CacheRetention::Long)).then(|| quoted("24h"))),
        ]),
        (Cache::Marker, Some(CacheRetention::Short)) => body.set("cache_control", r#"{"type":"ephemeral"}"#.to_owned()),
        (Cache::Marker, Some(CacheRetention::Long)) => {
            body.set("cache_control", r#"{"type":"ephemeral","ttl":"1h"}"#.to_owned());
        }
        (Cache::Unasked, _) | (Cache::Marker, None) => {}
    }
}

/// The answer tool is in the request already, and so is what is told of the schema.
fn output_format(output: &OutputSchema, style: OutputStyle) -> Option<String> {
    match style {
        OutputStyle::Schema => Some(filled(r#"{"type":"json_schema","json_schema":{@}}"#, &[&output.members()])),
        OutputStyle::Object => Some(r#"{"type":"json_object"}"#.to_owned()),
        OutputStyle::Tool { .. } | OutputStyle::Told => None,
    }
}

fn tool_choice(choice: &ToolChoice, traits: &Traits) -> String {
    match choice {
        ToolChoice::Auto => quoted("auto"),
        ToolChoice::None => quoted("none"),
        ToolChoice::Required => quoted(traits.required),
        ToolChoice::Tool(name) => filled(r#"{"type":"function","function":{"name":$}}"#, &[&wire_tool_name(name)]),
    }
}

fn set_reasoning(
    body: &mut RequestBody,
    reasoning: Reasoning,
    options: &RequestOptions,
    traits: &Traits,
) -> Result<(), Error> {
    let is_on = reasoning != Reasoning::Off;
    let switch = filled(r#"{"type":$}"#, &[if is_on { "enabled" } else { "disabled" }]);
    match traits.reasoning {
        ReasoningStyle::Effort if traits.has_store => body.set_text("reasoning_effort", chat_word(reasoning)),
        ReasoningStyle::Effort => body.set_text("reasoning_effort", reasoning.plain_word()),
        ReasoningStyle::EffortOrNone => body.set_text("reasoning_effort", if is_on { "high" } else { "none" }),
        ReasoningStyle::Object => {
            let object = match reasoning {
                Reasoning::Budget(tokens) => filled(r#"{"max_tokens":@}"#, &[&tokens.to_string()]),
                Reasoning::Off => r#"{"enabled":false}"#.to_owned(),
                Reasoning::Effort(_) => filled(r#"{"effort":$}"#, &[chat_word(reasoning)]),
            };
            body.set("reasoning", object);
        }
        ReasoningStyle::Switch => body.set("thinking", switch),
        ReasoningStyle::SwitchAndEffort => {
            if is_on && matches!(options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_))) {
                return Err(invalid(
                    "this model cannot be made to call a tool while it reasons; leave one of the two out",
                ));
            }
            body.set("thinking", switch);
            if matches!(reasoning, Reasoning::Effort(_)) {
                body.set_text("reasoning_effort", reasoning.word());
            }
        }
        ReasoningStyle::Enable => {
            body.set("enable_thinking", is_on.to_string());
            if let Reasoning::Budget(tokens) = reasoning {
                body.set("thinking_budget", tokens.to_string());
            }
        }
    }
    Ok(())
}

/// The protocol has no word above `xhigh`.
fn chat_word(reasoning: Reasoning) -> &'static str {
    match reasoning.word() {
        "max" => "xhigh",
        word => word,
    }
}

fn encode_turn(turn: &Turn<'_>, traits: &Traits, rules: Rules) -> String {
    match turn {
        Turn::User(content) => user_message(content, traits),
        Turn::Assistant { parts, results, .. } => {
            let mut messages = vec![assistant_message(parts, traits, rules.demands_reasoning)];
            for result in results {
                let shape = r#"{"role":"tool","tool_call_id":$,"content":$}"#;
                // Some servers refuse a message without any.
                let text = Some(result.text()).filter(|text| !text.is_empty());
                messages.push(filled(shape, &[&result.id, text.as_deref().unwrap_or(NO_OUTPUT)]));
            }
            if let Some(files) = files_of_results(results, traits) {
                messages.extend(rules.waits_for_model.then(|| message("assistant", &quoted(HEARD))));
                messages.push(files);
            }
            messages.retain(|message| !message.is_empty());
            messages.join(",")
        }
    }
}

fn message(role: &str, content: &str) -> String {
    filled(r#"{"role":$,"content":@}"#, &[role, content])
}

fn user_message(content: &[TurnContent<'_>], traits: &Traits) -> String {
    if let [TurnContent::Text(text)] = content {
        return message("user", &quoted(text));
    }
    let parts: Vec<_> = content.iter().map(|content| content_part(content, traits)).collect();
    message("user", &listed(&parts))
}

fn assistant_message(parts: &[TurnPart<'_>], traits: &Traits, demands_reasoning: bool) -> String {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut reasoning_member = None;
    let mut reasoning_details = Vec::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            TurnPart::Text { text: more, .. } => text.push_str(more),
            TurnPart::Reasoning { text, replay } => {
                reasoning.push_str(text);
                let kept = replay.and_then(|replay| Object::parse(replay.as_str()).ok()).unwrap_or_default();
                details::merge(&mut reasoning_details, kept.read("reasoning_details").unwrap_or_default());
                let member = kept.string("member").unwrap_or_default();
                reasoning_member = REASONING_MEMBERS.into_iter().find(|known| *known == member).or(reasoning_member);
            }
            TurnPart::Call(call) => calls.push(tool_call(call)),
            // Only other protocols have blocks of their own.
            TurnPart::Provider(_) => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return String::new();
    }
    let mut message = r#"{"role":"assistant"}"#.to_owned();
    if !text.is_empty() || traits.needs_content {
        add_member(&mut message, "content", &quoted(&text));
    }
    match traits.replay {
        ReasoningReplay::AsItCame => {
            // Behind a gateway can be Groq, which writes `reasoning` and refuses it.
            if let Some(member) =
                reasoning_member.filter(|member| traits.merges_user || *member == REASONING_MEMBERS[0])
            {
                add_member(&mut message, member, &quoted(&reasoning));
            }
        }
        ReasoningReplay::Content if !reasoning.is_empty() && !calls.is_empty() => {
            add_member(&mut message, "reasoning_content", &quoted(&reasoning));
        }
        ReasoningReplay::Always if !reasoning.is_empty() => {
            add_member(&mut message, "reasoning_content", &quoted(&reasoning));
        }
        // An empty text counts as none.
        ReasoningReplay::Always if demands_reasoning => add_member(&mut message, "reasoning_content", &quoted(" ")),
        ReasoningReplay::Details if !reasoning_details.is_empty() => {
            add_member(&mut message, "reasoning_details", &details::json(&reasoning_details));
        }
        _ => {}
    }
    if !calls.is_empty() {
        add_member(&mut message, "tool_calls", &listed(&calls));
    }
    message
}

fn tool_call(call: &TurnCall<'_>) -> String {
    let shape = r#"{"id":$,"type":"function","function":{"name":$,"arguments":$}}"#;
    let mut encoded = filled(shape, &[&call.id, &call.name, call.input]);
    // Google's signatures travel here.
    if let Some(replay) = call.replay {
        add_member(&mut encoded, "extra_content", replay.as_str());
    }
    encoded
}

/// Results can hold only text here, so their files follow in a message of the user.
fn files_of_results(results: &[TurnResult<'_>], traits: &Traits) -> Option<String> {
    let mut parts = Vec::new();
    for result in results {
        let mut is_labelled = false;
        for file in result.files() {
            if !std::mem::replace(&mut is_labelled, true) {
                parts.push(text_part(&format!("Files from the result of {}:", result.name)));
            }
            parts.push(content_part(file, traits));
        }
    }
    (!parts.is_empty()).then(|| message("user", &listed(&parts)))
}

fn content_part(content: &TurnContent<'_>, traits: &Traits) -> String {
    match content {
        TurnContent::Text(text) => text_part(text),
        TurnContent::File(file) => file_part(file, traits).unwrap_or_else(|_| text_part(&left_out(file))),
    }
}

fn text_part(text: &str) -> String {
    filled(r#"{"type":"text","text":$}"#, &[text])
}

/// # Errors
///
/// `invalid-input` for a file that the server has no part for.
fn file_part(file: &File, traits: &Traits) -> Result<String, Error> {
    let media_type = file.media_type.as_str();
    let data = match &file.data {
        FileData::Base64(data) => Some(data.as_ref()),
        FileData::Url(_) => None,
    };
    let name = file.name.as_deref().unwrap_or("file");
    if let Some(text) = plain_text(file) {
        return Ok(text_part(&format!("{name}:\n{text}")));
    }
    let address = file.address();
    let part = match (file.part_type(), data) {
        ("image", _) if traits.takes_images => filled(r#"{"type":"image_url","image_url":{"url":$}}"#, &[&address]),
        ("audio", Some(data)) if traits.audio == Audio::Described => {
            let shape = r#"{"type":"input_audio","input_audio":{"data":$,"format":$}}"#;
            filled(shape, &[data, audio_format(media_type)])
        }
        ("audio", Some(data)) if traits.audio == Audio::Bare => {
            filled(r#"{"type":"input_audio","input_audio":$}"#, &[data])
        }
        ("file", _) if media_type.starts_with("video/") && traits.takes_video => {
            filled(r#"{"type":"video_url","video_url":{"url":$}}"#, &[&address])
        }
        ("file", _) if takes_document(traits.documents, media_type, data) => {
            let shape = match traits.documents {
                Documents::DocumentUrl => r#"{"type":"document_url","document_name":$,"document_url":$}"#,
                _ => r#"{"type":"file","file":{"filename":$,"file_data":$}}"#,
            };
            filled(shape, &[name, &address])
        }
        _ => {
            let what = if data.is_some() { "bytes" } else { "address" };
            return Err(invalid(format!("{} takes no {what} of a {media_type} over Chat Completions", traits.name)));
        }
    };
    Ok(part)
}

fn takes_document(documents: Documents, media_type: &str, data: Option<&str>) -> bool {
    match documents {
        _ if media_type.starts_with("video/") => false,
        Documents::File => data.is_some(),
        Documents::FileOrAddress | Documents::DocumentUrl => true,
        Documents::None => false,
    }
}

fn audio_format(media_type: &str) -> &str {
    match media_type {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        other => other.trim_start_matches("audio/"),
    }
}
