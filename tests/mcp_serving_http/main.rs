//! An MCP server over HTTP, without sockets: requests go in as their parts, answers come out as theirs.
#![cfg(all(feature = "mcp-server", feature = "native"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod exchanges;
mod life;
mod secrets;

use crablet::host::mcp::{HttpBody, HttpCall, HttpHandler, HttpOptions, HttpResponse, McpServer, ServerCall};
use crablet::json::RawJson;
use crablet::mcp::protocol::CallToolResult;
use crablet::mcp::server::{InputRequest, LogLevel, Outcome, ServerTool};
use crablet::native::NativeHost;
use futures_util::StreamExt;
use serde_json::{Value, json};

/// What a client gets.
#[derive(Debug)]
struct Got {
    status: u16,
    headers: Vec<(&'static str, String)>,
    text: String,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    }

    fn message(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

/// Reads an answer to its end.
async fn read(HttpResponse { status, headers, body }: HttpResponse) -> Got {
    let text = match body {
        HttpBody::Whole(text) => text,
        HttpBody::Events(events) => events.collect::<Vec<_>>().await.concat(),
    };
    Got { status, headers, text }
}

/// The events of a stream: the name and the message of each.
fn events(text: &str) -> Vec<(Option<String>, Value)> {
    let field = |block: &str, name: &str| {
        let start = format!("{name}:");
        block.lines().find_map(|line| line.strip_prefix(&start)).map(|value| value.trim().to_owned())
    };
    let message = |block: &str| field(block, "data").filter(|data| !data.is_empty());
    let blocks = text.split("\n\n").filter(|block| !block.is_empty());
    let read = |block| (field(block, "id"), message(block).map_or(Value::Null, |data| data.parse().unwrap()));
    blocks.map(read).collect()
}

/// A client with the usual headers.
struct Client {
    handler: HttpHandler<NativeHost>,
    caller: Option<String>,
    session: Option<String>,
}

impl Client {
    fn new(server: &McpServer, options: HttpOptions) -> Self {
        let handler = server.http(&NativeHost::new().unwrap(), options);
        Self { handler, caller: None, session: None }
    }

    /// One that has begun a session.
    async fn in_session(server: &McpServer, options: HttpOptions, capabilities: Value) -> Self {
        let mut client = Self::new(server, options);
        let got = read(client.post(&[], &hello(capabilities)).await).await;
        client.session = got.header("mcp-session-id").map(str::to_owned);
        assert!(client.session.is_some(), "{got:?}");
        client
    }

    async fn post(&self, headers: &[(&str, &str)], body: &Value) -> HttpResponse {
        self.send("POST", headers, body.to_string().as_bytes()).await
    }

    /// An empty value takes one of the usual headers away.
    async fn send(&self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpResponse {
        let usual = [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let session = self.session.as_deref().map(|session| ("mcp-session-id", session));
        let is_given = |name: &str| headers.iter().any(|(given, _)| *given == name);
        let all = usual.into_iter().chain(session).filter(|(name, _)| !is_given(name));
        let all = all.chain(headers.iter().copied().filter(|(_, value)| !value.is_empty()));
        let headers = all.map(|(name, value)| (name, value.as_bytes())).collect();
        self.handler.handle(HttpCall { method, headers, body, caller: self.caller.as_deref() }).await
    }
}

fn hello(capabilities: Value) -> Value {
    request(json!(1), "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities }))
}

fn request(id: Value, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn call(id: Value, name: &str) -> Value {
    request(id, "tools/call", json!({ "name": name, "arguments": {} }))
}

/// A request of the stateless era, and its headers.
fn stateless(id: Value, method: &str, mut params: Value) -> (Vec<(&'static str, String)>, Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers = vec![("mcp-protocol-version", "2026-07-28".to_owned()), ("mcp-method", method.to_owned())];
    headers.extend(params["name"].as_str().map(|name| ("mcp-name", name.to_owned())));
    (headers, request(id, method, params))
}

/// The server of the exchanges.
fn fixture() -> McpServer {
    let anything = json!({ "type": "object" });
    let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let region = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "count": { "type": "integer", "x-mcp-header": "Count" }
    } });
    McpServer::new("fixture", "1.0.0")
        .logging()
        .tool(tool("echo", &text), async |input: Value, _| input["text"].as_str().unwrap().to_owned())
        .unwrap()
        .tool(tool("region", &region), async |input: Value, _| input["region"].as_str().unwrap_or("none").to_owned())
        .unwrap()
        .tool(tool("tell", &anything), async |_: Value, call: ServerCall| {
            call.log(LogLevel::Info, None, RawJson::from_value("half").unwrap());
            "done"
        })
        .unwrap()
        .tool(tool("ask", &anything), async |_: Value, call: ServerCall| ask(&call))
        .unwrap()
        .tool(tool("who", &anything), async |_: Value, call: ServerCall| call.caller().unwrap_or("nobody").to_owned())
        .unwrap()
}

fn ask(call: &ServerCall) -> Outcome {
    let Some(answer) = call.input_responses.member("who") else {
        let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let requests = vec![("who".to_owned(), InputRequest::elicit("Who are you?", &raw(&form)))];
        return Outcome::NeedsInput { requests, state: Some("kept".to_owned()) };
    };
    let answer: Value = answer.read().unwrap();
    let name = answer["content"]["name"].as_str().unwrap();
    let text = format!("Hello {name} {}", call.request_state.as_deref().unwrap());
    let content = vec![crablet::mcp::protocol::ContentBlock::Text { text }];
    Outcome::Tool(CallToolResult { content, ..CallToolResult::default() })
}

fn tool(name: &str, schema: &Value) -> ServerTool {
    ServerTool::new(name, "Does something", raw(schema))
}

fn raw(value: &Value) -> RawJson {
    RawJson::from_value(value).unwrap()
}
