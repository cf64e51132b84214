//! The server that the official MCP conformance suite looks at: the tools, resources and prompts that its scenarios name.
//!
//! `conformance_server [handshake|stateless]` is on standard input and output, and speaks that era only: the suite reaches it
//! through `crablet-shim serve`. `conformance_server http` is on HTTP, speaks both, and prints its address.

#[path = "support/http.rs"]
mod http;

use std::error::Error;
use std::future::ready;
use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crablet::host::mcp::{HttpOptions, McpServer, ServerCall, ServerControl};
use crablet::json::RawJson;
use crablet::mcp::protocol::{
    CallToolResult, ContentBlock, EraChoice, PromptArgument, PromptMessage, Resource, ResourceBody, ResourceContents,
};
use crablet::mcp::server::{InputRequest, LogLevel, Outcome, Request, ServerOptions, ServerPrompt, ServerTool};
use crablet::native::{NativeHost, serve_stdio_with};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Silence.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

type Built<T> = Result<T, Box<dyn Error>>;

/// What the tools share.
struct World {
    /// Changes what is served, once it is.
    replace: OnceLock<Box<dyn Fn(McpServer) + Send + Sync>>,
    /// A state that nobody else can make.
    state: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Built<()> {
    let state = format!("confirming.{:016x}", RandomState::new().hash_one("confirming"));
    let world = Arc::new(World { replace: OnceLock::new(), state });
    let server = server(&world)?;
    // It is set once.
    if std::env::args().nth(1).as_deref() == Some("http") {
        let handler = server.http(&NativeHost::new()?, HttpOptions::default());
        let replacing = handler.clone();
        let _ = world.replace.set(Box::new(move |server| replacing.replace(server)));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/mcp", listener.local_addr()?);
        http::serve(listener, handler).await?;
    } else {
        let set = |control: ServerControl| {
            let _ = world.replace.set(Box::new(move |server| control.replace(server)));
        };
        serve_stdio_with(&server, set).await?;
    }
    Ok(())
}

fn server(world: &Arc<World>) -> Built<McpServer> {
    let eras = match std::env::args().nth(1).as_deref() {
        Some("handshake") => EraChoice::Handshake,
        Some("stateless") => EraChoice::Stateless,
        _ => EraChoice::Auto,
    };
    let options = ServerOptions { eras, ..ServerOptions::default() };
    let server = McpServer::new("conformance", env!("CARGO_PKG_VERSION")).options(options).logging();
    let server = changing_tools(asking_tools(plain_tools(server)?, world)?, world)?;
    prompts(resources(server)?)
}

fn plain_tools(server: McpServer) -> Built<McpServer> {
    let mixed = "Multiple content types test:";
    Ok(server
        .tool(plain("test_simple_text")?, async |_: Value, _| "This is a simple text response for testing.")?
        .tool(plain("test_image_content")?, async |_: Value, _| blocks(vec![image()]))?
        .tool(plain("test_audio_content")?, async |_: Value, _| {
            blocks(vec![ContentBlock::Audio { data: WAV.to_owned(), mime_type: "audio/wav".to_owned() }])
        })?
        .tool(plain("test_embedded_resource")?, async |_: Value, _| {
            let text = "This is an embedded resource content.";
            blocks(vec![embedded("test://embedded-resource", "text/plain", text)])
        })?
        .tool(plain("test_multiple_content_types")?, async move |_: Value, _| {
            let json = embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
            blocks(vec![text(mixed), image(), json])
        })?
        .tool(plain("test_error_handling")?, async |_: Value, _| {
            Outcome::Failed("This tool intentionally returns an error for testing".to_owned())
        })?
        .tool(plain("test_tool_with_logging")?, async |_: Value, call| logging(&call).await)?
        .tool(plain("test_logging_tool")?, async |_: Value, call| logging(&call).await)?
        .tool(plain("test_tool_with_progress")?, async |_: Value, call: ServerCall| {
            for progress in [0.0, 50.0, 100.0] {
                call.progress(progress, Some(100.0), None);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            "Progress was reported."
        })?
        .tool(repeated()?, async |_: Value, _| "The header and the argument say the same.")?
        .tool(schema_2020_12()?, async |arguments: Value, _| arguments.to_string())?)
}

fn asking_tools(server: McpServer, world: &Arc<World>) -> Built<McpServer> {
    let world = world.clone();
    Ok(server
        .tool(taking("test_sampling", "prompt")?, async |input: Value, call| {
            let prompt = input.get("prompt").and_then(Value::as_str).unwrap_or_default();
            ask(&call, "answer", sample(prompt, 100)?, |answer| format!("LLM response: {}", said(answer)))
        })?
        .tool(taking("test_elicitation", "message")?, async |input: Value, call| {
            let message = input.get("message").and_then(Value::as_str).unwrap_or_default();
            let form = form(json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" }
            }))?;
            ask(&call, "answer", InputRequest::elicit(message, &form), |answer| format!("User response: {answer}"))
        })?
        .tool(plain("test_elicitation_sep1034_defaults")?, async |_: Value, call| ask_form(&call, defaults()))?
        .tool(plain("test_elicitation_sep1330_enums")?, async |_: Value, call| ask_form(&call, enumerations()))?
        .tool(plain("test_streaming_elicitation")?, async |_: Value, call| ask_form(&call, name_field()))?
        .tool(plain("test_missing_capability")?, async |_: Value, call| {
            ask(&call, "answer", sample("Anything", 10)?, said)
        })?
        .tool(plain("test_input_required_result_elicitation")?, async |_: Value, call| {
            let request = InputRequest::elicit("What is your name?", &form(name_field())?);
            ask(&call, "user_name", request, |answer| format!("Hello, {}!", field(answer, "name")))
        })?
        .tool(plain("test_input_required_result_sampling")?, async |_: Value, call| {
            ask(&call, "capital_question", sample("What is the capital of France?", 100)?, said)
        })?
        .tool(plain("test_input_required_result_list_roots")?, async |_: Value, call| {
            ask(&call, "client_roots", InputRequest::roots(), Value::to_string)
        })?
        .tool(plain("test_input_required_result_capabilities")?, async |_: Value, call: ServerCall| {
            let name = InputRequest::elicit("What is your name?", &form(name_field())?);
            let requests = [("user_name", name), ("greeting", greeting()?)];
            let possible: Vec<_> = requests.into_iter().filter(|(_, request)| call.can_ask(request)).collect();
            ask_all(&call, possible, None, |_| "All questions were answered.".to_owned())
        })?
        .tool(plain("test_input_required_result_multiple_inputs")?, async |_: Value, call| {
            let name = InputRequest::elicit("What is your name?", &form(name_field())?);
            let requests =
                vec![("user_name", name), ("greeting", greeting()?), ("client_roots", InputRequest::roots())];
            ask_all(&call, requests, Some("asked"), |_| "All questions were answered.".to_owned())
        })?
        .tool(plain("test_input_required_result_request_state")?, async |_: Value, call: ServerCall| {
            let request = InputRequest::elicit("Please confirm", &confirmation()?);
            match call.request_state.as_deref() {
                None | Some("confirming") => {
                    ask_all(&call, vec![("confirm", request)], Some("confirming"), |_| "state-ok".to_owned())
                }
                Some(_) => Ok(Outcome::Refused("the requestState is not of this tool".to_owned())),
            }
        })?
        .tool(plain("test_input_required_result_tampered_state")?, move |_: Value, call: ServerCall| {
            ready(confirm(&call, &world.state))
        })?
        .tool(plain("test_input_required_result_multi_round")?, async |_: Value, call: ServerCall| {
            let color = form(json!({ "color": { "type": "string" } }))?;
            match call.request_state.as_deref() {
                Some("round-2") => {
                    let request = InputRequest::elicit("Step 2: What is your favorite color?", &color);
                    ask_all(&call, vec![("step2", request)], Some("round-2"), |_| "Both steps are done.".to_owned())
                }
                Some("round-1") if call.input_responses.member("step1").is_some() => {
                    let request = InputRequest::elicit("Step 2: What is your favorite color?", &color);
                    Ok(needs(vec![("step2", request)], Some("round-2")))
                }
                _ => {
                    let request = InputRequest::elicit("Step 1: What is your name?", &form(name_field())?);
                    Ok(needs(vec![("step1", request)], Some("round-1")))
                }
            }
        })?)
}

fn greeting() -> Result<InputRequest, serde_json::Error> {
    sample("Generate a greeting", 50)
}

fn confirm(call: &ServerCall, state: &str) -> Result<Outcome, serde_json::Error> {
    if call.request_state.as_ref().is_some_and(|given| given != state) {
        return Ok(Outcome::Refused("the requestState was changed on its way".to_owned()));
    }
    let request = InputRequest::elicit("Please confirm", &confirmation()?);
    ask_all(call, vec![("confirm", request)], Some(state), |_| "The state is whole.".to_owned())
}

/// Tools that change what is served.
fn changing_tools(server: McpServer, world: &Arc<World>) -> Built<McpServer> {
    let (tools, prompts) = (world.clone(), world.clone());
    Ok(server
        .tool(plain("test_trigger_tool_change")?, move |_: Value, _| {
            ready(toggle(&tools, |server| Ok(server.tool(plain("test_extra")?, async |_: Value, _| "Here I am.")?)))
        })?
        .tool(plain("test_trigger_prompt_change")?, move |_: Value, _| {
            ready(toggle(&prompts, |server| Ok(server.prompt(prompt("test_extra", &[]), async |_| "Here I am.")?)))
        })?)
}

/// Serves something more for a moment.
fn toggle(world: &Arc<World>, extra: impl FnOnce(McpServer) -> Built<McpServer>) -> Result<String, String> {
    let build = || {
        let changed = extra(server(world)?)?;
        Ok::<_, Box<dyn Error>>((changed, server(world)?))
    };
    let (changed, plain) = build().map_err(|error| error.to_string())?;
    let replace = world.replace.get().ok_or("nothing is served yet")?;
    replace(changed);
    replace(plain);
    Ok("Changed, and changed back.".to_owned())
}

fn resources(server: McpServer) -> Built<McpServer> {
    Ok(server
        .resource(resource("test://static-text", "text/plain"), async |call: ServerCall| {
            let text = "This is the content of the static text resource.";
            contents(&call, "text/plain", ResourceBody::Text(text.to_owned()))
        })?
        .resource(resource("test://static-binary", "image/png"), async |call: ServerCall| {
            contents(&call, "image/png", ResourceBody::Blob(PNG.to_owned()))
        })?
        .resource(resource("test://watched-resource", "text/plain"), async |call: ServerCall| {
            contents(&call, "text/plain", ResourceBody::Text("It never changes.".to_owned()))
        })?
        .resource_template(resource("test://template/{id}/data", "application/json"), async |call: ServerCall| {
            let id = match &call.request {
                Request::Resource { variables, .. } => variables.iter().map(|(_, value)| value.as_str()).collect(),
                _ => String::new(),
            };
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            contents(&call, "application/json", ResourceBody::Text(data.to_string()))
        })?)
}

fn prompts(server: McpServer) -> Built<McpServer> {
    Ok(server
        .prompt(prompt("test_simple_prompt", &[]), async |_| "This is a simple prompt for testing.")?
        .prompt(prompt("test_prompt_with_arguments", &["arg1", "arg2"]), async |call: ServerCall| {
            let (first, second) = (argument(&call, "arg1"), argument(&call, "arg2"));
            format!("Prompt with arguments: arg1='{first}', arg2='{second}'")
        })?
        .prompt(prompt("test_prompt_with_embedded_resource", &["resourceUri"]), async |call: ServerCall| {
            let uri = argument(&call, "resourceUri");
            let resource = embedded(&uri, "text/plain", "Embedded resource content for testing.");
            messages(vec![resource, text("Please process the embedded resource above.")])
        })?
        .prompt(prompt("test_prompt_with_image", &[]), async |_| {
            messages(vec![image(), text("Please analyze the image above.")])
        })?
        .prompt(prompt("test_input_required_result_prompt", &[]), async |call: ServerCall| {
            let form = form(json!({ "context": { "type": "string" } }))?;
            let request = InputRequest::elicit("What context should the prompt use?", &form);
            ask(&call, "user_context", request, |answer| format!("The context is {}.", field(answer, "context")))
        })?
        .completions(async |call: ServerCall| {
            let Request::Completion { value, .. } = &call.request else { return Outcome::NotFound };
            let known = ["paris", "park", "party"].into_iter().filter(|known| known.starts_with(value.as_str()));
            Outcome::Completion { values: known.map(str::to_owned).collect(), total: None }
        }))
}

async fn logging(call: &ServerCall) -> &'static str {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if let Ok(data) = RawJson::from_value(message) {
            call.log(LogLevel::Info, None, data);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    "Three messages were logged."
}

/// Asks once, and ends with what was answered.
fn ask(
    call: &ServerCall,
    key: &'static str,
    request: InputRequest,
    end: impl FnOnce(&Value) -> String,
) -> Result<Outcome, serde_json::Error> {
    ask_all(call, vec![(key, request)], None, |answers| answers.first().map(end).unwrap_or_default())
}

fn ask_form(call: &ServerCall, properties: Value) -> Result<Outcome, serde_json::Error> {
    let request = InputRequest::elicit("Please fill in the form", &form(properties)?);
    ask(call, "form", request, |answer| {
        let part = |name: &str| answer.get(name).cloned().unwrap_or_default();
        let action = part("action");
        format!("Elicitation completed: action={}, content={}", action.as_str().unwrap_or_default(), part("content"))
    })
}

/// Asks until everything is answered with an object.
fn ask_all(
    call: &ServerCall,
    requests: Vec<(&'static str, InputRequest)>,
    state: Option<&str>,
    end: impl FnOnce(&[Value]) -> String,
) -> Result<Outcome, serde_json::Error> {
    let answer = |key: &str| call.input_responses.member(key)?.read::<Value>().ok().filter(Value::is_object);
    let answers: Vec<Value> = requests.iter().filter_map(|(key, _)| answer(key)).collect();
    if answers.len() < requests.len() {
        return Ok(needs(requests, state));
    }
    Ok(Outcome::Tool(CallToolResult { content: vec![text(&end(&answers))], ..CallToolResult::default() }))
}

fn needs(requests: Vec<(&'static str, InputRequest)>, state: Option<&str>) -> Outcome {
    let requests = requests.into_iter().map(|(key, request)| (key.to_owned(), request)).collect();
    Outcome::NeedsInput { requests, state: state.map(str::to_owned) }
}

fn sample(prompt: &str, max_tokens: u32) -> Result<InputRequest, serde_json::Error> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    Ok(InputRequest::sample(RawJson::from_value(&json!({ "messages": [message], "maxTokens": max_tokens }))?))
}

/// The text of a sampled message.
fn said(answer: &Value) -> String {
    let text = answer.get("content").and_then(|content| content.get("text")).and_then(Value::as_str);
    text.unwrap_or("nothing").to_owned()
}

/// A field of a form.
fn field(answer: &Value, name: &str) -> String {
    let value = answer.get("content").and_then(|content| content.get(name)).and_then(Value::as_str);
    value.unwrap_or("whoever you are").to_owned()
}

fn form(properties: Value) -> Result<RawJson, serde_json::Error> {
    let required: Vec<String> = properties.as_object().into_iter().flat_map(|names| names.keys().cloned()).collect();
    RawJson::from_value(&json!({ "type": "object", "properties": properties, "required": required }))
}

fn name_field() -> Value {
    json!({ "name": { "type": "string" } })
}

fn confirmation() -> Result<RawJson, serde_json::Error> {
    form(json!({ "ok": { "type": "boolean" } }))
}

fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true }
    })
}

fn enumerations() -> Value {
    let titled = |first: &str, second: &str, third: &str| {
        json!([
            { "const": "value1", "title": first },
            { "const": "value2", "title": second },
            { "const": "value3", "title": third }
        ])
    };
    json!({
        "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
        "titledSingle": { "type": "string", "oneOf": titled("First Option", "Second Option", "Third Option") },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"]
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
        "titledMulti": {
            "type": "array",
            "items": { "anyOf": titled("First Choice", "Second Choice", "Third Choice") }
        }
    })
}

fn plain(name: &str) -> Result<ServerTool, serde_json::Error> {
    tool(name, &json!({ "type": "object" }))
}

fn taking(name: &str, argument: &str) -> Result<ServerTool, serde_json::Error> {
    tool(name, &json!({ "type": "object", "properties": { argument: { "type": "string" } }, "required": [argument] }))
}

/// A tool of which an argument is repeated in a header.
fn repeated() -> Result<ServerTool, serde_json::Error> {
    let region = json!({ "type": "string", "x-mcp-header": "Region" });
    tool("test_custom_header", &json!({ "type": "object", "properties": { "region": region } }))
}

/// A tool whose schema has the words that came with revision 2020-12 of JSON Schema.
fn schema_2020_12() -> Result<ServerTool, serde_json::Error> {
    let address = json!({
        "$anchor": "addressDef",
        "type": "object",
        "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": address },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    });
    tool("json_schema_2020_12_tool", &schema)
}

fn tool(name: &str, schema: &Value) -> Result<ServerTool, serde_json::Error> {
    let description = format!("For the scenarios of the conformance suite that name {name}");
    Ok(ServerTool::new(name, &description, RawJson::from_value(schema)?))
}

fn blocks(content: Vec<ContentBlock>) -> CallToolResult {
    CallToolResult { content, ..CallToolResult::default() }
}

fn messages(content: Vec<ContentBlock>) -> Outcome {
    let messages = content.into_iter().map(|content| PromptMessage { role: "user".to_owned(), content }).collect();
    Outcome::Prompt { description: None, messages }
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text { text: text.to_owned() }
}

fn image() -> ContentBlock {
    ContentBlock::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned() }
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    let body = ResourceBody::Text(text.to_owned());
    ContentBlock::Resource(ResourceContents { uri: uri.to_owned(), mime_type: Some(mime_type.to_owned()), body })
}

fn resource(uri: &str, mime_type: &str) -> Resource {
    let description = Some("For the scenarios of the conformance suite".to_owned());
    Resource {
        uri: uri.to_owned(),
        name: uri.to_owned(),
        title: None,
        description,
        mime_type: Some(mime_type.to_owned()),
        size: None,
    }
}

fn contents(call: &ServerCall, mime_type: &str, body: ResourceBody) -> Outcome {
    let Request::Resource { uri, .. } = &call.request else { return Outcome::NotFound };
    Outcome::Contents(vec![ResourceContents { uri: uri.clone(), mime_type: Some(mime_type.to_owned()), body }])
}

fn prompt(name: &str, arguments: &[&str]) -> ServerPrompt {
    let argument = |name: &&str| PromptArgument { name: (*name).to_owned(), description: None, required: true };
    let description = Some("For the scenarios of the conformance suite".to_owned());
    let arguments = arguments.iter().map(argument).collect();
    ServerPrompt { name: name.to_owned(), description, arguments, ..ServerPrompt::default() }
}

fn argument(call: &ServerCall, name: &str) -> String {
    let Request::Prompt { arguments, .. } = &call.request else { return String::new() };
    arguments.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone()).unwrap_or_default()
}
