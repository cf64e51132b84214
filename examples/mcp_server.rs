//! An MCP server with the notes of a folder: `mcp_server FOLDER` on standard input and output, `mcp_server FOLDER PORT` over
//! HTTP for this machine.
//!
//! For a local agent, such as Claude Code: `claude mcp add notes -- path/to/mcp_server path/to/notes`, or
//! `claude mcp add --transport http notes http://127.0.0.1:PORT/mcp`.

#[path = "support/http.rs"]
mod http;

use std::process::ExitCode;
use std::sync::Arc;

use crablet::host::mcp::{HttpOptions, McpServer, ServerCall};
use crablet::host::tools::{FileOptions, reading_tools};
use crablet::json::RawJson;
use crablet::mcp::protocol::{CallToolResult, ContentBlock, PromptArgument, Resource};
use crablet::mcp::server::{InputRequest, LogLevel, Outcome, Request, ServerPrompt, ServerTool};
use crablet::native::tools::FolderFiles;
use crablet::native::{NativeHost, serve_stdio};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let port = std::env::args().nth(2);
    match serve(&folder, port).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(folder: &str, port: Option<String>) -> Result<(), Box<dyn std::error::Error>> {
    let files = Arc::new(FolderFiles::open(folder)?);
    let server = McpServer::new("notes", env!("CARGO_PKG_VERSION"))
        .expose(reading_tools(files, FileOptions::default()))?
        .tool(count_tool()?, count)?
        .tool(greet_tool()?, greet)?
        .resource(about(), async |_call: ServerCall| "The notes of a folder, for an agent to read.")?
        .resource_template(echo_family(), echo)?
        .prompt(summary_prompt(), summary)?
        .completions(complete)
        .logging();
    match port {
        None => serve_stdio(&server).await?,
        Some(port) => {
            let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
            println!("http://{}/mcp", listener.local_addr()?);
            http::serve(listener, server.http(&NativeHost::new()?, HttpOptions::default())).await?;
        }
    }
    Ok(())
}

#[derive(serde::Deserialize)]
struct Count {
    to: u32,
}

fn count_tool() -> Result<ServerTool, serde_json::Error> {
    let input =
        r#"{"type":"object","properties":{"to":{"type":"integer","minimum":0,"maximum":1000}},"required":["to"]}"#;
    let output = r#"{"type":"object","properties":{"counted":{"type":"integer"}},"required":["counted"]}"#;
    let mut tool = ServerTool::new("count", "Counts, slowly, and says how far it is", RawJson::parse(input)?);
    tool.output_schema = Some(RawJson::parse(output)?);
    tool.annotations.read_only = Some(true);
    Ok(tool)
}

async fn count(input: Count, call: ServerCall) -> Result<RawJson, serde_json::Error> {
    call.log(LogLevel::Info, Some("count"), RawJson::from_value("begun")?);
    for number in 1..=input.to {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        call.progress(f64::from(number), Some(f64::from(input.to)), Some("counting"));
    }
    RawJson::from_value(&serde_json::json!({ "counted": input.to }))
}

#[derive(serde::Deserialize)]
struct Nothing {}

fn greet_tool() -> Result<ServerTool, serde_json::Error> {
    Ok(ServerTool::new("greet", "Asks the user for a name and greets", RawJson::parse(r#"{"type":"object"}"#)?))
}

/// Written once for both eras: the first time it asks, and with the answer it is called again.
async fn greet(_: Nothing, call: ServerCall) -> Result<Outcome, serde_json::Error> {
    let Some(answer) = call.input_responses.member("name") else {
        let form = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
        let request = InputRequest::elicit("What is your name?", &RawJson::parse(form)?);
        return Ok(Outcome::NeedsInput { requests: vec![("name".to_owned(), request)], state: None });
    };
    let answer: serde_json::Value = answer.read()?;
    let text = match answer.get("content").and_then(|content| content.get("name")).and_then(|name| name.as_str()) {
        Some(name) => format!("Hello {name}!"),
        None => "Hello whoever you are!".to_owned(),
    };
    Ok(Outcome::Tool(CallToolResult { content: vec![ContentBlock::Text { text }], ..CallToolResult::default() }))
}

fn about() -> Resource {
    resource("notes://about", "about")
}

fn echo_family() -> Resource {
    resource("notes://echo/{word}", "echo")
}

fn resource(uri: &str, name: &str) -> Resource {
    let mime_type = Some("text/plain".to_owned());
    Resource { uri: uri.to_owned(), name: name.to_owned(), title: None, description: None, mime_type, size: None }
}

async fn echo(call: ServerCall) -> String {
    match &call.request {
        Request::Resource { variables, .. } => variables.iter().map(|(_, value)| value.as_str()).collect(),
        _ => String::new(),
    }
}

fn summary_prompt() -> ServerPrompt {
    let topic = PromptArgument { name: "topic".to_owned(), description: Some("What of".to_owned()), required: true };
    ServerPrompt { name: "summary".to_owned(), arguments: vec![topic], ..ServerPrompt::default() }
}

async fn summary(call: ServerCall) -> String {
    let topic = match &call.request {
        Request::Prompt { arguments, .. } => arguments.iter().find(|(name, _)| name == "topic"),
        _ => None,
    };
    format!("Summarise my notes about {}.", topic.map_or("everything", |(_, topic)| topic))
}

async fn complete(call: ServerCall) -> Outcome {
    let Request::Completion { value, .. } = &call.request else { return Outcome::NotFound };
    let topics = ["gardening", "geology", "music"].map(str::to_owned);
    let values = topics.into_iter().filter(|topic| topic.starts_with(value.as_str())).collect();
    Outcome::Completion { values, total: None }
}
