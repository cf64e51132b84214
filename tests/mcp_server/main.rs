//! The MCP server as a machine: what each line leads to, in both eras.
#![cfg(feature = "mcp-server")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod any_line;
mod calls;
mod exchanges;
mod faults;
mod golden;
mod input;
mod lists;
mod notices;

use crablet::json::RawJson;
use crablet::mcp::protocol::{
    CallToolResult, ContentBlock, Implementation, PromptArgument, Resource, Revision, ToolAnnotations,
};
use crablet::mcp::server::{Catalog, Outcome, Outgoing, PendingCall, Server, ServerOptions, ServerPrompt, ServerTool};
use serde_json::{Value, json};

fn raw(value: &Value) -> RawJson {
    RawJson::from_value(value).unwrap()
}

fn info() -> Implementation {
    Implementation { name: "test".into(), title: Some("Test".into()), version: "1.2.3".into() }
}

/// Two tools, a resource, a family of resources, a prompt, completions and logging.
fn catalog() -> Catalog {
    // Schemas may be written over several lines; what is sent is one.
    let schema =
        RawJson::parse("{\n\"type\":\"object\",\n\"properties\":{\"a\":{\"type\":\"number\"}},\"required\":[\"a\"]}");
    let mut add = ServerTool::new("add_one", "Adds one", schema.unwrap());
    add.title = Some("Add one".into());
    add.output_schema = Some(raw(&json!({
        "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"]
    })));
    add.annotations = ToolAnnotations { read_only: Some(true), open_world: Some(false), ..ToolAnnotations::default() };
    let plain = ServerTool::new("plain.tool", "Does something", raw(&json!({ "type": "object" })));
    let resource = |uri: &str| Resource {
        uri: uri.into(),
        name: "notes".into(),
        title: Some("Notes".into()),
        description: None,
        mime_type: Some("text/plain".into()),
        size: Some(3),
    };
    let arguments = vec![PromptArgument { name: "city".into(), description: Some("Where".into()), required: true }];
    let prompt = ServerPrompt { name: "weather".into(), title: None, description: Some("Weather".into()), arguments };
    Catalog::new()
        .tool(add)
        .and_then(|catalog| catalog.tool(plain))
        .and_then(|catalog| catalog.resource(resource("test://notes")))
        .and_then(|catalog| catalog.resource_template(resource("test://notes/{id}")))
        .and_then(|catalog| catalog.prompt(prompt))
        .unwrap()
        .completions()
        .logging()
}

fn server() -> Server {
    Server::with_options(
        catalog(),
        info(),
        ServerOptions { instructions: Some("Be kind.".into()), ..Default::default() },
    )
}

/// A server that a client of this revision said `initialize` to.
fn handshake(revision: Revision) -> Server {
    handshake_with(revision, json!({}))
}

fn handshake_with(revision: Revision, capabilities: Value) -> Server {
    let mut server = server();
    let params = json!({ "protocolVersion": revision.as_str(), "capabilities": capabilities, "clientInfo": {} });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    reply(server.handle_line(&hello.to_string()));
    assert_eq!(server.handle_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), Outgoing::None);
    server
}

fn request(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A request of the stateless era.
fn stateless(id: u64, method: &str, params: Value) -> String {
    stateless_with(id, method, params, json!({}))
}

fn stateless_with(id: u64, method: &str, mut params: Value, capabilities: Value) -> String {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    request(id, method, params)
}

#[track_caller]
fn reply(outgoing: Outgoing) -> Value {
    match outgoing {
        Outgoing::Reply(line) => message(&line),
        other => panic!("a reply was expected: {other:?}"),
    }
}

#[track_caller]
fn pending(outgoing: Outgoing) -> PendingCall {
    match outgoing {
        Outgoing::Call(call) => call,
        other => panic!("a call was expected: {other:?}"),
    }
}

/// A line as the message that it is.
#[track_caller]
fn message(line: &str) -> Value {
    assert!(!line.contains(['\n', '\r']), "a message is one line: {line}");
    let message: Value = serde_json::from_str(line).unwrap();
    assert_eq!(message["jsonrpc"], "2.0");
    message
}

/// The one line that ends a call.
#[track_caller]
fn complete(server: &mut Server, call: PendingCall, outcome: Outcome) -> Value {
    let lines = server.complete(call, outcome);
    assert_eq!(lines.len(), 1, "{lines:?}");
    message(&lines[0])
}

fn said(text: &str) -> CallToolResult {
    CallToolResult { content: vec![ContentBlock::Text { text: text.into() }], ..CallToolResult::default() }
}
