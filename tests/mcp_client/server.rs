//! Answers that the scripted servers of several tests give.

use crablet::json::RawJson;
use crablet::mcp::client::{ClientOptions, Reply, Request, TransportKind};
use crablet::mcp::protocol::{CallToolResult, EraChoice};
use crablet::model::HttpRequest;
use serde_json::{Value, json};

use crate::mcp_support::{Answer, body_of, method_of};

pub(crate) fn options(era: EraChoice) -> ClientOptions {
    ClientOptions { era, ..ClientOptions::new(TransportKind::Http) }
}

pub(crate) fn call(name: &str) -> Request {
    Request::CallTool { name: name.to_owned(), arguments: RawJson::parse("{}").unwrap() }
}

pub(crate) fn tool_result(reply: Reply) -> CallToolResult {
    let Reply::ToolResult(result) = reply else { panic!("no tool result: {reply:?}") };
    CallToolResult::read(&result).unwrap()
}

pub(crate) fn response(request: &HttpRequest, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": body_of(request)["id"], "result": result })
}

pub(crate) fn error(request: &HttpRequest, code: i64, data: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": body_of(request)["id"], "error": { "code": code, "message": "no", "data": data } })
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// A handshake server with one session; what it is called with, the test answers.
pub(crate) fn handshake(mut rest: impl FnMut(&HttpRequest) -> Answer) -> impl FnMut(&HttpRequest) -> Answer {
    move |request| match method_of(request).as_str() {
        "server/discover" => Answer::json(400, error(request, -32000, &Value::Null)),
        "initialize" => {
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } });
            Answer::json(200, response(request, &result)).header("mcp-session-id", "s-1")
        }
        "notifications/initialized" => Answer::new(202),
        _ => rest(request),
    }
}

/// A stateless server.
pub(crate) fn stateless(mut rest: impl FnMut(&HttpRequest) -> Answer) -> impl FnMut(&HttpRequest) -> Answer {
    move |request| match method_of(request).as_str() {
        "server/discover" => {
            let result = json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } }
            });
            Answer::json(200, response(request, &result))
        }
        _ => rest(request),
    }
}
