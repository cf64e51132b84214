//! The request.

use serde_json::{Map, Value, json};

use super::super::body::{self, RequestBody, tool_list};
use super::super::encoded::EncodedCache;
use super::super::message::{Content, File, FileData};
use super::super::names::{IdRule, wire_tool_name};
use super::super::output::OutputStyle;
use super::super::request::{ModelRequest, OutputSchema, Reasoning, RequestOptions, ToolChoice, ToolSpec};
use super::super::transcript::{MISSING_RESULT, Reader, Turn, TurnCall, TurnPart, TurnResult};
use crate::error::{Error, ErrorKind};
use crate::json::schema::Dialect;
use crate::json::{Object, RawJson};

pub(in super::super) fn body(request: &ModelRequest, cache: &mut EncodedCache) -> Result<RequestBody, Error> {
    let model = request.model.reference();
    let reader = Reader { model: &model, ids: IdRule::Short };
    let mut cache = cache.open(&model);
    let options = &request.options;
    let wants_signatures = !takes_budget(&request.model.id);
    let mut body = RequestBody::default();
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        body.set("systemInstruction", &json!({"parts": [{"text": instructions}]}))?;
    }
    body.set_list("contents", cache.turns(&request.messages, &reader, |turn| encode_turn(turn, wants_signatures))?);
    if !request.tools.is_empty() {
        body.set_shared("tools", cache.tools(&request.tools, || tools(&request.tools))?);
        if let Some(choice) = &options.tool_choice {
            body.set("toolConfig", &json!({"functionCallingConfig": tool_choice(choice)}))?;
        }
    }
    let config = generation_config(&request.model.id, options);
    let output = options.output.as_deref().map(output_members);
    let config = json_members(&config)?.into_iter().chain(output).collect::<Vec<_>>().join(",");
    if !config.is_empty() {
        body.set_shared("generationConfig", format!("{{{config}}}").into());
    }
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
}

/// Models of generation 2 take a number of tokens to reason with, later ones a level.
fn takes_budget(model: &str) -> bool {
    model.contains("gemini-2") || model.contains("gemini-1")
}

/// Older models take no tools beside a demand for JSON, so there the answer is a tool's input.
pub(in super::super) fn output_style(request: &ModelRequest) -> OutputStyle {
    if !request.tools.is_empty() && takes_budget(&request.model.id) {
        return OutputStyle::Tool { is_demanded: true };
    }
    match &request.options.output {
        Some(output) if Dialect::Gemini.lower(&output.schema).is_none() => OutputStyle::Object,
        _ => OutputStyle::Schema,
    }
}

/// As text, since the model writes the members in the order of the schema.
fn output_members(output: &OutputSchema) -> String {
    let schema = Dialect::Gemini.lower(&output.schema);
    let schema = schema.map(|schema| format!(",\"responseJsonSchema\":{}", schema.as_str()));
    format!("\"responseMimeType\":\"application/json\"{}", schema.unwrap_or_default())
}

/// The members of an object without its braces, or nothing for an empty one.
fn json_members(config: &Map<String, Value>) -> Result<Option<String>, Error> {
    let text = body::json(config)?;
    let members = text.trim_start_matches('{').strip_suffix('}').unwrap_or_default();
    Ok((!members.is_empty()).then(|| members.to_owned()))
}

fn generation_config(model: &str, options: &RequestOptions) -> Map<String, Value> {
    let mut config = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            config.insert(name.to_owned(), value);
        }
    };
    set("maxOutputTokens", options.max_tokens.map(Value::from));
    set("temperature", options.temperature.map(Value::from));
    set("topP", options.top_p.map(Value::from));
    set("seed", options.seed.map(Value::from));
    set("stopSequences", (!options.stop.is_empty()).then(|| json!(options.stop)));
    set("thinkingConfig", options.reasoning.map(|reasoning| thinking(reasoning, takes_budget(model))));
    config
}

fn thinking(reasoning: Reasoning, takes_budget: bool) -> Value {
    let includes_thoughts = reasoning != Reasoning::Off;
    if takes_budget {
        return json!({"thinkingBudget": reasoning.tokens(), "includeThoughts": includes_thoughts});
    }
    // There is no level for none.
    let level = if includes_thoughts { reasoning.word() } else { "minimal" };
    json!({"thinkingLevel": level, "includeThoughts": includes_thoughts})
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [wire_tool_name(name)]}),
    }
}

/// `parametersJsonSchema` takes JSON Schema as it is; `parameters` refuses the whole request at the first keyword it does
/// not know.
fn tools(tools: &[ToolSpec]) -> Result<String, Error> {
    let declarations = tool_list(tools, |members, schema| format!("{{{members}\"parametersJsonSchema\":{schema}}}"))?;
    Ok(format!("[{{\"functionDeclarations\":{declarations}}}]"))
}

fn encode_turn(turn: &Turn<'_>, wants_signatures: bool) -> Result<String, Error> {
    match turn {
        Turn::User(content) => {
            let parts = content.iter().map(|content| content_part(content));
            content_of("user", &parts.collect::<Result<Vec<_>, _>>()?)
        }
        Turn::Assistant { parts, results } => {
            let mut spoken = Vec::new();
            let mut ids = Vec::new();
            for part in parts {
                match part {
                    TurnPart::Call(call) => {
                        spoken.push(call_part(call, wants_signatures && ids.is_empty())?);
                        ids.push(replayed(call.replay, "id"));
                    }
                    TurnPart::Text { text, replay } => spoken.extend(signed(json!({"text": text}), *replay)),
                    TurnPart::Reasoning { text, replay } => {
                        // Thoughts are summaries; only their signature is of use to the model.
                        let is_signed = replayed(*replay, "thoughtSignature").is_some();
                        spoken.extend(signed(json!({"text": text, "thought": true}), *replay).filter(|_| is_signed));
                    }
                    TurnPart::Provider(replay) => spoken.extend(replay.read::<Value>().ok()),
                }
            }
            let responses = results.iter().zip(ids).map(|(result, id)| response_part(result, id));
            let responses: Vec<_> = responses.collect::<Result<_, _>>()?;
            let files = files_of_results(results)?;
            let messages = [("model", spoken), ("user", responses), ("user", files)];
            let messages = messages.iter().filter(|(_, parts)| !parts.is_empty());
            Ok(messages.map(|(role, parts)| content_of(role, parts)).collect::<Result<Vec<_>, _>>()?.join(","))
        }
    }
}

fn content_of(role: &str, parts: &[Value]) -> Result<String, Error> {
    body::json(&json!({"role": role, "parts": parts}))
}

fn replayed(replay: Option<&RawJson>, member: &str) -> Option<Value> {
    Object::parse(replay?.as_str()).ok()?.read(member)
}

/// A part with the signature that came with it.
fn signed(mut part: Value, replay: Option<&RawJson>) -> Option<Value> {
    if let Some(signature) = replayed(replay, "thoughtSignature") {
        part.as_object_mut()?.insert("thoughtSignature".to_owned(), signature);
    }
    Some(part)
}

/// Models that sign their calls refuse a history whose first call of a turn has no signature. For calls of other models
/// Google documents this word (ai.google.dev, "Thought signatures", FAQ).
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

fn call_part(call: &TurnCall<'_>, must_be_signed: bool) -> Result<Value, Error> {
    let arguments: Value = serde_json::from_str(call.input)
        .map_err(|error| Error::new(ErrorKind::Internal, format!("the input of a call is not JSON: {error}")))?;
    let mut function = json!({"name": call.name, "args": arguments});
    if let (Some(id), Some(members)) = (replayed(call.replay, "id"), function.as_object_mut()) {
        members.insert("id".to_owned(), id);
    }
    let mut part = json!({"functionCall": function});
    let own = replayed(call.replay, "thoughtSignature");
    let signature = own.or_else(|| must_be_signed.then(|| FOREIGN_SIGNATURE.into()));
    if let (Some(signature), Some(members)) = (signature, part.as_object_mut()) {
        members.insert("thoughtSignature".to_owned(), signature);
    }
    Ok(part)
}

fn response_part(result: &TurnResult<'_>, id: Option<Value>) -> Result<Value, Error> {
    let (text, is_error) = match result.result {
        None => (MISSING_RESULT.to_owned(), true),
        Some(found) => {
            let texts = found.content.iter().map(|content| match content {
                Content::Text(text) => text.as_str(),
                Content::File(_) => "[a file, attached below]",
            });
            (texts.collect::<Vec<_>>().join("\n"), found.is_error)
        }
    };
    let member = if is_error { "error" } else { "output" };
    let mut response = json!({"name": result.name, "response": {member: text}});
    if let (Some(id), Some(members)) = (id, response.as_object_mut()) {
        members.insert("id".to_owned(), id);
    }
    Ok(json!({"functionResponse": response}))
}

/// A turn of responses must hold exactly as many as there were calls, so their files follow in a turn of their own.
fn files_of_results(results: &[TurnResult<'_>]) -> Result<Vec<Value>, Error> {
    let mut parts = Vec::new();
    for result in results.iter().filter_map(|result| result.result) {
        let files: Vec<_> = result.content.iter().filter(|content| matches!(content, Content::File(_))).collect();
        if !files.is_empty() {
            parts.push(json!({"text": format!("Files from the result of {}:", result.tool_name)}));
            for file in files {
                parts.push(content_part(file)?);
            }
        }
    }
    Ok(parts)
}

fn content_part(content: &Content) -> Result<Value, Error> {
    Ok(match content {
        Content::Text(text) => json!({"text": text}),
        Content::File(File { media_type, data: FileData::Base64(data), .. }) => {
            json!({"inlineData": {"mimeType": media_type, "data": data.as_ref()}})
        }
        Content::File(File { media_type, data: FileData::Url(url), .. }) => {
            json!({"fileData": {"mimeType": media_type, "fileUri": url}})
        }
    })
}
