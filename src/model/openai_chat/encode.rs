//! The request.

use serde_json::{Value, json};

use super::super::body::{self, RequestBody, tool_list};
use super::super::encoded::EncodedCache;
use super::super::message::{Content, File, FileData};
use super::super::names::wire_tool_name;
use super::super::output::OutputStyle;
use super::super::request::{ModelRequest, OutputSchema, Reasoning, ToolChoice, ToolSpec};
use super::super::transcript::{MISSING_RESULT, Reader, Turn, TurnCall, TurnPart, TurnResult};
use super::details;
use super::profile::{ReasoningReplay, ReasoningStyle, Traits};
use crate::error::{Error, ErrorKind};
use crate::json::Object;

pub(super) fn body(request: &ModelRequest, traits: &Traits, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let model = request.model.reference();
    let reader = Reader { model: &model, ids: traits.ids };
    let mut cache = cache.open(&model);
    let options = &request.options;
    let mut body = RequestBody::default();
    body.set("model", request.model.id.as_ref())?;
    let mut messages = Vec::new();
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        messages.push(message(traits.system_role, &body::json(instructions)?).into());
    }
    messages.extend(cache.turns(&request.messages, &reader, |turn| encode_turn(turn, traits))?);
    body.set_list("messages", messages);
    if !request.tools.is_empty() {
        body.set_shared("tools", cache.tools(&request.tools, || tools(&request.tools))?);
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
        set_reasoning(&mut body, reasoning, traits)?;
    }
    if traits.has_store {
        body.set("store", &false)?;
    }
    body.set("stream", &true)?;
    if traits.asks_for_usage {
        body.set("stream_options", &json!({"include_usage": true}))?;
    }
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
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

fn set_reasoning(body: &mut RequestBody, reasoning: Reasoning, traits: &Traits) -> Result<(), Error> {
    let is_on = reasoning != Reasoning::Off;
    match (traits.reasoning, reasoning) {
        (ReasoningStyle::Effort, _) => body.set("reasoning_effort", reasoning.word()),
        (ReasoningStyle::Object, Reasoning::Budget(tokens)) => body.set("reasoning", &json!({"max_tokens": tokens})),
        (ReasoningStyle::Object, Reasoning::Off) => body.set("reasoning", &json!({"enabled": false})),
        (ReasoningStyle::Object, _) => body.set("reasoning", &json!({"effort": reasoning.word()})),
        (ReasoningStyle::Switch, _) => {
            body.set("thinking", &json!({"type": if is_on { "enabled" } else { "disabled" }}))
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

fn tools(tools: &[ToolSpec]) -> Result<String, Error> {
    tool_list(tools, |members, schema| {
        format!("{{\"type\":\"function\",\"function\":{{{members}\"parameters\":{schema}}}}}")
    })
}

fn encode_turn(turn: &Turn<'_>, traits: &Traits) -> Result<String, Error> {
    match turn {
        Turn::User(content) => user_message(content, traits),
        Turn::Assistant { parts, results } => {
            let mut messages = vec![assistant_message(parts, traits)?];
            for result in results {
                messages.push(tool_message(result)?);
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

fn user_message(content: &[&Content], traits: &Traits) -> Result<String, Error> {
    if let [Content::Text(text)] = content {
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

fn tool_message(result: &TurnResult<'_>) -> Result<String, Error> {
    let texts = result.result.map_or(vec![MISSING_RESULT], |result| {
        let texts = result.content.iter().map(|content| match content {
            Content::Text(text) => text.as_str(),
            Content::File(_) => "[a file, attached below]",
        });
        texts.collect()
    });
    body::json(&json!({"role": "tool", "tool_call_id": result.id, "content": texts.join("\n")}))
}

/// Results can hold only text here, so their files follow in a message of the user.
fn files_of_results(results: &[TurnResult<'_>], traits: &Traits) -> Result<Option<String>, Error> {
    let mut parts = Vec::new();
    for result in results.iter().filter_map(|result| result.result) {
        let files: Vec<_> = result.content.iter().filter(|content| matches!(content, Content::File(_))).collect();
        if !files.is_empty() {
            let label = Content::Text(format!("Files from the result of {}:", result.tool_name));
            for content in std::iter::once(&label).chain(files) {
                parts.push(content_part(content, traits)?);
            }
        }
    }
    Ok((!parts.is_empty()).then(|| message("user", &format!("[{}]", parts.join(",")))))
}

fn content_part(content: &Content, traits: &Traits) -> Result<String, Error> {
    let part = match content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::File(file) if !traits.takes_files => {
            json!({"type": "text", "text": format!("[{} left out: this model reads only text]", file.media_type)})
        }
        Content::File(file) => file_part(file)?,
    };
    body::json(&part)
}

fn file_part(file: &File) -> Result<Value, Error> {
    let media_type = file.media_type.as_str();
    let data_url = |data: &str| format!("data:{media_type};base64,{data}");
    Ok(match (media_type.split('/').next(), &file.data) {
        (Some("image"), FileData::Base64(data)) => json!({"type": "image_url", "image_url": {"url": data_url(data)}}),
        (Some("image"), FileData::Url(url)) => json!({"type": "image_url", "image_url": {"url": url}}),
        (Some("audio"), FileData::Base64(data)) => {
            let format = match media_type {
                "audio/mpeg" | "audio/mp3" => "mp3",
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                other => other.trim_start_matches("audio/"),
            };
            json!({"type": "input_audio", "input_audio": {"data": data.as_ref(), "format": format}})
        }
        (_, FileData::Base64(data)) => {
            let name = file.name.as_deref().unwrap_or("file");
            json!({"type": "file", "file": {"filename": name, "file_data": data_url(data)}})
        }
        (_, FileData::Url(_)) => {
            let told =
                format!("the Chat Completions protocol takes no address of a {media_type}; send its bytes instead");
            return Err(Error::new(ErrorKind::InvalidInput, told));
        }
    })
}
