//! The request.

use super::super::body::{RequestBody, invalid, joined, number, object, separated};
use super::super::draft::{Draft, refuse_single_calls};
use super::super::encoded::EncodedCache;
use super::super::message::{File, FileData};
use super::super::names::wire_tool_name;
use super::super::output::OutputStyle;
use super::super::request::{ModelRequest, OutputSchema, Reasoning, RequestOptions, ToolChoice};
use super::super::transcript::{Rules, Turn, TurnCall, TurnContent, TurnPart, TurnResult};
use crate::error::Error;
use crate::json::schema::Dialect;
use crate::json::{Object, RawJson, add_member, filled, listed, quoted, quoted_list};

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
        (None, Some(instructions)) => {
            body.set("systemInstruction", filled(r#"{"parts":[@]}"#, &[&text_part(instructions)]));
        }
        (cached_content, _) => body.set_optional("cachedContent", cached_content.as_deref().map(quoted)),
    }
    let write = |speaker, parts: &str| {
        let role = if speaker == MODEL { "model" } else { "user" };
        filled(r#"{"role":$,"parts":[@]}"#, &[role, parts])
    };
    body.set_list("contents", joined(&draft.turns(&|turn| encode_turn(turn, generation))?, &write));
    if options.cached_content.is_none() {
        // Both kinds of tool at once work only where the calls of the provider's come along with the others.
        let mixes = generation == Generation::Third && platform == Platform::Gemini;
        set_tools(&mut body, &mut draft, mixes)?;
    }
    body.set_optional("generationConfig", generation_config(draft.id, options, generation));
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
        Some(output) if output.lowered(Dialect::Gemini).is_none() => OutputStyle::Object,
        _ => OutputStyle::Schema,
    }
}

/// As text, since the model writes the members in the order of the schema.
fn format_of(output: &OutputSchema) -> String {
    let schema = output.lowered(Dialect::Gemini);
    let mut format = r#"{"responseMimeType":"application/json"}"#.to_owned();
    if let Some(schema) = schema {
        add_member(&mut format, "responseJsonSchema", schema.as_str());
    }
    format
}

/// What only one of the two has.
fn set_platform(body: &mut RequestBody, request: &ModelRequest, platform: Platform) -> Result<(), Error> {
    let options = &request.options;
    if platform == Platform::Gemini {
        // Servers of others that speak the protocol need not know `store`.
        let default = request.model.address().is_none().then_some(false);
        body.set_all([
            ("serviceTier", options.service_tier.as_deref().map(quoted)),
            ("store", options.store.or(default).as_ref().map(bool::to_string)),
        ]);
        return Ok(());
    }
    if options.service_tier.is_some() {
        return Err(invalid("Vertex takes the service tier as the header x-vertex-ai-llm-shared-request-type"));
    }
    if !options.metadata.is_empty() {
        body.set_map("labels", &options.metadata);
    }
    Ok(())
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
    let mut tools = draft.tools(&|members, schema| format!("{{{members}\"parametersJsonSchema\":{schema}}}"))?;
    let mut config = String::from("{}");
    if !tools.functions.is_empty() {
        if let Some(choice) = &draft.options.tool_choice {
            add_member(&mut config, "functionCallingConfig", &tool_choice(choice));
        }
        if !tools.own.is_empty() && mixes {
            add_member(&mut config, "includeServerSideToolInvocations", "true");
        }
        tools.functions = filled(r#"{"functionDeclarations":[@]}"#, &[&tools.functions]).into();
    }
    if !tools.is_empty() {
        body.set_list("tools", tools.elements());
    }
    if config != "{}" {
        body.set("toolConfig", config);
    }
    Ok(())
}

fn generation_config(model: &str, options: &RequestOptions, generation: Generation) -> Option<String> {
    let members = [
        ("maxOutputTokens", options.max_tokens.as_ref().map(u64::to_string)),
        ("temperature", options.temperature.map(number)),
        ("topP", options.top_p.map(number)),
        ("seed", options.seed.as_ref().map(u64::to_string)),
        ("stopSequences", (!options.stop.is_empty()).then(|| quoted_list(&options.stop))),
        ("thinkingConfig", options.reasoning.map(|reasoning| thinking(model, reasoning, generation))),
    ];
    object(members)
}

/// The most tokens that every model of the second generation reasons with.
const MAX_BUDGET: u64 = 24_576;

/// The fewest tokens that those reason with that cannot do without.
const MIN_BUDGET: u64 = 128;

fn thinking(model: &str, reasoning: Reasoning, generation: Generation) -> String {
    let is_on = reasoning != Reasoning::Off;
    if generation == Generation::Third {
        // There is no level for none.
        let level = if is_on { reasoning.plain_word() } else { "minimal" };
        return filled(r#"{"thinkingLevel":$,"includeThoughts":@}"#, &[level, &is_on.to_string()]);
    }
    let budget = match reasoning {
        Reasoning::Off if model.contains("pro") => MIN_BUDGET,
        Reasoning::Effort(_) => reasoning.tokens().min(MAX_BUDGET),
        _ => reasoning.tokens(),
    };
    filled(r#"{"thinkingBudget":@,"includeThoughts":@}"#, &[&budget.to_string(), &is_on.to_string()])
}

fn tool_choice(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => r#"{"mode":"AUTO"}"#.to_owned(),
        ToolChoice::None => r#"{"mode":"NONE"}"#.to_owned(),
        ToolChoice::Required => r#"{"mode":"ANY"}"#.to_owned(),
        ToolChoice::Tool(name) => filled(r#"{"mode":"ANY","allowedFunctionNames":[$]}"#, &[&wire_tool_name(name)]),
    }
}

fn encode_turn(turn: &Turn<'_>, generation: Generation) -> String {
    let is_signed = generation == Generation::Third;
    match turn {
        Turn::User(content) => separated(&[(USER, content.iter().map(content_part).collect())]),
        Turn::Assistant { parts, results, .. } => {
            let mut spoken = Vec::new();
            let mut ids = Vec::new();
            for part in parts {
                match part {
                    TurnPart::Call(call) => {
                        spoken.push(call_part(call, is_signed && ids.is_empty()));
                        ids.push(replayed(call.replay, "id"));
                    }
                    TurnPart::Text { text, replay } => {
                        let signature = signature(*replay);
                        // A blank text is there for its signature.
                        if signature.is_some() || !text.trim().is_empty() {
                            spoken.push(signed(text_part(text), signature.as_deref()));
                        }
                    }
                    TurnPart::Reasoning { text, replay } => {
                        // Thoughts are summaries; only their signature is of use to the model.
                        if let Some(signature) = signature(*replay) {
                            spoken.push(signed(filled(r#"{"text":$,"thought":true}"#, &[text]), Some(&signature)));
                        }
                    }
                    TurnPart::Provider(replay) => spoken.push(replay.as_str().to_owned()),
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

/// The JSON of a member that came with a part and goes back with it.
fn replayed(replay: Option<&RawJson>, member: &str) -> Option<String> {
    Some(Object::parse(replay?.as_str()).ok()?.get(member)?.get().to_owned())
}

fn signature(replay: Option<&RawJson>) -> Option<String> {
    replayed(replay, "thoughtSignature")
}

fn signed(mut part: String, signature: Option<&str>) -> String {
    if let Some(signature) = signature {
        add_member(&mut part, "thoughtSignature", signature);
    }
    part
}

/// Models that sign their calls refuse a history whose first call of a turn has no signature. For calls of other models
/// Google documents this word (ai.google.dev, "Thought signatures", FAQ).
const FOREIGN_SIGNATURE: &str = r#""skip_thought_signature_validator""#;

fn call_part(call: &TurnCall<'_>, must_be_signed: bool) -> String {
    let mut function = filled(r#"{"name":$,"args":@}"#, &[&call.name, call.input]);
    if let Some(id) = replayed(call.replay, "id") {
        add_member(&mut function, "id", &id);
    }
    let own = signature(call.replay);
    let part = filled(r#"{"functionCall":@}"#, &[&function]);
    signed(part, own.as_deref().or(must_be_signed.then_some(FOREIGN_SIGNATURE)))
}

/// A result. Files that it cannot hold are added to those that follow in a message of their own.
fn response_part(
    result: &TurnResult<'_>,
    id: Option<String>,
    generation: Generation,
    files: &mut Vec<String>,
) -> String {
    let (held, others): (Vec<_>, Vec<_>) =
        result.files().partition(|file| generation == Generation::Third && is_held(file));
    if !others.is_empty() {
        files.push(text_part(&format!("Files from the result of {}:", result.name)));
        files.extend(others.into_iter().map(content_part));
    }
    let member = if result.is_error { "error" } else { "output" };
    let mut response = filled(r#"{"name":$,"response":{$:$}}"#, &[&result.name, member, &result.text()]);
    if !held.is_empty() {
        add_member(&mut response, "parts", &listed(&held.into_iter().map(content_part).collect::<Vec<_>>()));
    }
    if let Some(id) = id {
        add_member(&mut response, "id", &id);
    }
    filled(r#"{"functionResponse":@}"#, &[&response])
}

/// Whether a result can hold this file (ai.google.dev, "Function calling", multimodal function responses).
fn is_held(content: &TurnContent<'_>) -> bool {
    const HELD: &[&str] = &["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"];
    match content {
        TurnContent::File(File { media_type, data: FileData::Base64(_), .. }) => HELD.contains(&media_type.as_str()),
        _ => false,
    }
}

fn content_part(content: &TurnContent<'_>) -> String {
    match content {
        TurnContent::Text(text) => text_part(text),
        TurnContent::File(File { media_type, data: FileData::Base64(data), .. }) => {
            filled(r#"{"inlineData":{"mimeType":$,"data":$}}"#, &[media_type, data])
        }
        TurnContent::File(File { media_type, data: FileData::Url(url), .. }) => {
            filled(r#"{"fileData":{"mimeType":$,"fileUri":$}}"#, &[media_type, url])
        }
    }
}

fn text_part(text: &str) -> String {
    filled(r#"{"text":$}"#, &[text])
}
