//! The request.

use serde_json::{Map, Value, json};

use super::super::body::{RequestBody, invalid, joined, separated};
use super::super::draft::{Draft, refuse_single_calls};
use super::super::encoded::EncodedCache;
use super::super::message::{File, FileData};
use super::super::names::wire_tool_name;
use super::super::output::OutputStyle;
use super::super::request::{ModelRequest, OutputSchema, Reasoning, RequestOptions, ToolChoice};
use super::super::transcript::{Rules, Turn, TurnCall, TurnContent, TurnPart, TurnResult};
use crate::error::{Error, ErrorKind};
use crate::json::schema::Dialect;
use crate::json::{Object, RawJson};

/// Who serves the model. The two take the same conversation and differ in what surrounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Platform {
    Gemini,
    #[cfg(feature = "vertex")]
    Vertex,
}

const RULES: Rules = Rules { keeps_blank_text: true, begins_with_user: true, ends_with_user: true, ..Rules::DEFAULT };

/// Those who speak: the model, the user, and the results of calls, which the user says in a message of their own, since it
/// must hold exactly as many as there were calls.
const MODEL: char = 'm';
const USER: char = 'u';
const RESULTS: char = 'r';

pub(in super::super) fn body(
    request: &ModelRequest,
    platform: Platform,
    cache: &mut EncodedCache,
) -> Result<RequestBody, Error> {
    let mut draft = Draft::new(request, RULES, cache)?;
    let options = draft.options;
    refuse_single_calls(options)?;
    let generation = Generation::of(draft.id);
    let mut body = RequestBody::default();
    match (&options.cached_content, draft.instructions()) {
        (None, Some(instructions)) => body.set("systemInstruction", &json!({"parts": [{"text": instructions}]}))?,
        (cached_content, _) => body.set_optional("cachedContent", cached_content.as_ref())?,
    }
    let write = |speaker, parts: &str| {
        let role = if speaker == MODEL { "model" } else { "user" };
        format!("{{\"role\":\"{role}\",\"parts\":[{parts}]}}")
    };
    body.set_list("contents", joined(&draft.turns(|turn| encode_turn(turn, generation))?, write));
    if options.cached_content.is_none() {
        // Both kinds of tool at once work only where the calls of the provider's come along with the others.
        let mixes = generation == Generation::Third && platform == Platform::Gemini;
        set_tools(&mut body, &mut draft, mixes)?;
    }
    let config = generation_config(draft.id, options, generation);
    if !config.is_empty() {
        body.set("generationConfig", &config)?;
    }
    if let Some(output) = &options.output {
        body.add("generationConfig", format_of(output));
    }
    set_platform(&mut body, request, platform)?;
    body.merge(options.extra_body.as_ref())?;
    Ok(body)
}

/// Older models take no tools beside a demand for JSON, so there the answer is a tool's input. What was cached beforehand
/// has no such tool.
pub(in super::super) fn output_style(request: &ModelRequest) -> OutputStyle {
    let has_tools = !request.tools.is_empty() && request.options.cached_content.is_none();
    if has_tools && Generation::of(&request.model.id) == Generation::Second {
        return OutputStyle::Tool { is_demanded: true };
    }
    match &request.options.output {
        Some(output) if Dialect::Gemini.lower(&output.schema).is_none() => OutputStyle::Object,
        _ => OutputStyle::Schema,
    }
}

/// As text, since the model writes the members in the order of the schema.
fn format_of(output: &OutputSchema) -> String {
    let schema = Dialect::Gemini.lower(&output.schema);
    let schema = schema.map(|schema| format!(",\"responseJsonSchema\":{}", schema.as_str()));
    format!("{{\"responseMimeType\":\"application/json\"{}}}", schema.unwrap_or_default())
}

/// What only one of the two has.
fn set_platform(body: &mut RequestBody, request: &ModelRequest, platform: Platform) -> Result<(), Error> {
    let options = &request.options;
    if platform == Platform::Gemini {
        body.set_optional("serviceTier", options.service_tier.as_ref())?;
        // Servers of others that speak the protocol need not know the member.
        let default = request.model.address().is_none().then_some(false);
        return body.set_optional("store", options.store.or(default).as_ref());
    }
    if options.service_tier.is_some() {
        return Err(invalid("Vertex takes the service tier as the header x-vertex-ai-llm-shared-request-type"));
    }
    if options.metadata.is_empty() { Ok(()) } else { body.set_map("labels", &options.metadata) }
}

/// What a model is like, by the first number in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generation {
    /// Takes a number of tokens to reason with, and only texts as results.
    Second,
    /// Takes a level, signs its calls, and reads files in results.
    Third,
}

impl Generation {
    fn of(model: &str) -> Self {
        if model.contains("gemini-2") || model.contains("gemini-1") { Self::Second } else { Self::Third }
    }
}

/// `parametersJsonSchema` takes JSON Schema as it is; `parameters` refuses the whole request at the first keyword it does
/// not know.
fn set_tools(body: &mut RequestBody, draft: &mut Draft<'_>, mixes: bool) -> Result<(), Error> {
    let mut tools = draft.tools(|members, schema| format!("{{{members}\"parametersJsonSchema\":{schema}}}"))?;
    let mut config = Map::new();
    if !tools.functions.is_empty() {
        if let Some(choice) = &draft.options.tool_choice {
            config.insert("functionCallingConfig".to_owned(), tool_choice(choice));
        }
        if !tools.own.is_empty() && mixes {
            config.insert("includeServerSideToolInvocations".to_owned(), true.into());
        }
        tools.functions = format!("{{\"functionDeclarations\":[{}]}}", tools.functions).into();
    }
    if !tools.is_empty() {
        body.set_list("tools", tools.elements());
    }
    if config.is_empty() { Ok(()) } else { body.set("toolConfig", &config) }
}

fn generation_config(model: &str, options: &RequestOptions, generation: Generation) -> Map<String, Value> {
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
    set("thinkingConfig", options.reasoning.map(|reasoning| thinking(model, reasoning, generation)));
    config
}

/// The most tokens that every model of the second generation reasons with.
const MAX_BUDGET: u64 = 24_576;

/// The fewest tokens that those reason with that cannot do without.
const MIN_BUDGET: u64 = 128;

fn thinking(model: &str, reasoning: Reasoning, generation: Generation) -> Value {
    let includes_thoughts = reasoning != Reasoning::Off;
    if generation == Generation::Third {
        // There is no level for none.
        let level = if includes_thoughts { reasoning.plain_word() } else { "minimal" };
        return json!({"thinkingLevel": level, "includeThoughts": includes_thoughts});
    }
    let budget = match reasoning {
        Reasoning::Off if model.contains("pro") => MIN_BUDGET,
        Reasoning::Effort(_) => reasoning.tokens().min(MAX_BUDGET),
        _ => reasoning.tokens(),
    };
    json!({"thinkingBudget": budget, "includeThoughts": includes_thoughts})
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [wire_tool_name(name)]}),
    }
}

fn encode_turn(turn: &Turn<'_>, generation: Generation) -> Result<String, Error> {
    let is_signed = generation == Generation::Third;
    match turn {
        Turn::User(content) => separated(&[(USER, content.iter().map(content_part).collect())]),
        Turn::Assistant { parts, results, .. } => {
            let mut spoken = Vec::new();
            let mut ids = Vec::new();
            for part in parts {
                match part {
                    TurnPart::Call(call) => {
                        spoken.push(call_part(call, is_signed && ids.is_empty())?);
                        ids.push(replayed(call.replay, "id"));
                    }
                    TurnPart::Text { text, replay } => {
                        // A blank text is there for its signature.
                        let part = signed(json!({"text": text}), *replay);
                        spoken.extend(part.filter(|part| !text.trim().is_empty() || has_signature(part)));
                    }
                    TurnPart::Reasoning { text, replay } => {
                        // Thoughts are summaries; only their signature is of use to the model.
                        let part = signed(json!({"text": text, "thought": true}), *replay);
                        spoken.extend(part.filter(has_signature));
                    }
                    TurnPart::Provider(replay) => spoken.extend(replay.read::<Value>().ok()),
                }
            }
            let mut files = Vec::new();
            let responses =
                results.iter().zip(ids).map(|(result, id)| response_part(result, id, generation, &mut files));
            let responses = responses.collect();
            separated(&[(MODEL, spoken), (RESULTS, responses), (USER, files)])
        }
    }
}

fn replayed(replay: Option<&RawJson>, member: &str) -> Option<Value> {
    Object::parse(replay?.as_str()).ok()?.read(member)
}

fn has_signature(part: &Value) -> bool {
    part.get("thoughtSignature").is_some()
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

/// A result. Files that it cannot hold are added to those that follow in a message of their own.
fn response_part(result: &TurnResult<'_>, id: Option<Value>, generation: Generation, files: &mut Vec<Value>) -> Value {
    let (held, others): (Vec<_>, Vec<_>) =
        result.files().partition(|file| generation == Generation::Third && is_held(file));
    if !others.is_empty() {
        files.push(json!({"text": format!("Files from the result of {}:", result.name)}));
        files.extend(others.into_iter().map(content_part));
    }
    let member = if result.is_error { "error" } else { "output" };
    let mut response = json!({"name": result.name, "response": {member: result.text()}});
    if let Some(members) = response.as_object_mut() {
        if !held.is_empty() {
            members.insert("parts".to_owned(), held.into_iter().map(content_part).collect());
        }
        if let Some(id) = id {
            members.insert("id".to_owned(), id);
        }
    }
    json!({"functionResponse": response})
}

/// Whether a result can hold this file (ai.google.dev, "Function calling", multimodal function responses).
fn is_held(content: &TurnContent<'_>) -> bool {
    const HELD: &[&str] = &["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"];
    match content {
        TurnContent::File(File { media_type, data: FileData::Base64(_), .. }) => HELD.contains(&media_type.as_str()),
        _ => false,
    }
}

fn content_part(content: &TurnContent<'_>) -> Value {
    match content {
        TurnContent::Text(text) => json!({"text": text}),
        TurnContent::File(File { media_type, data: FileData::Base64(data), .. }) => {
            json!({"inlineData": {"mimeType": media_type, "data": data.as_ref()}})
        }
        TurnContent::File(File { media_type, data: FileData::Url(url), .. }) => {
            json!({"fileData": {"mimeType": media_type, "fileUri": url}})
        }
    }
}
