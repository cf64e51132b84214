//! Cases without a scripted server.

use std::collections::BTreeSet;

use crablet::json::RawJson;
use crablet::mcp::client::{CallOptions, ClientOptions, Event, Reply, Request, TransportKind};
use crablet::mcp::protocol::{CallToolResult, EraChoice};
use crablet::mcp::tools::{agent_name, output};
use crablet::model::Content;
use serde_json::{Value, json};

use super::mcp_support::{Answer, World, body_of, method_of};

/// Runs a case by its shape, or by the function that stands for its words.
pub(super) fn run(name: &str, case: &Value) -> Option<Result<usize, String>> {
    let input = &case["input"];
    if input["variants"][0]["respond"].is_object() && case["expected"]["then"].is_array() {
        return Some(era_detection(input, &case["expected"]["then"]));
    }
    if input["servers"][0]["tools"].is_array() {
        return Some(tool_names(&input["servers"]));
    }
    if input["results"].is_array() {
        return Some(tool_results(&input["results"]));
    }
    match name {
        "137-progress" => Some(progress()),
        "142-concurrent-calls" => Some(concurrent_calls()),
        _ => None,
    }
}

/// Each variant is the answer to a probe; `then` says in words which era it means.
fn era_detection(input: &Value, then: &Value) -> Result<usize, String> {
    let variants = input["variants"].as_array().ok_or("no variants")?;
    for (index, variant) in variants.iter().enumerate() {
        let respond = &variant["respond"];
        let words = then[index].as_str().ok_or("no word about the variant")?;
        let mut probes = 0;
        let mut world =
            World::new(ClientOptions::new(TransportKind::Http), |request| match method_of(request).as_str() {
                "server/discover" if probes == 0 => {
                    probes += 1;
                    let status = respond["status"].as_u64().unwrap().try_into().unwrap();
                    match respond.get("json") {
                        Some(body) => Answer::json(status, body),
                        None => Answer::new(status),
                    }
                }
                "server/discover" => {
                    let result = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
                    Answer::json(200, json!({ "jsonrpc": "2.0", "id": body_of(request)["id"], "result": result }))
                }
                "initialize" => initialized(&body_of(request)["id"]),
                "GET" => Answer::new(405),
                _ => Answer::new(202),
            });
        world.connected().map_err(|error| format!("variant {index}: {error}"))?;
        let sent_initialize = world.methods().iter().any(|method| method == "initialize");
        if sent_initialize != words.starts_with("legacy") {
            return Err(format!("variant {index} is {words:?}, and initialize was sent: {sent_initialize}"));
        }
    }
    Ok(variants.len())
}

/// Names are accepted by every provider, distinct, and the same each time.
fn tool_names(servers: &Value) -> Result<usize, String> {
    let mut names = BTreeSet::new();
    let mut count = 0;
    for server in servers.as_array().into_iter().flatten() {
        let server_name = server["name"].as_str().ok_or("a server has no name")?;
        for tool in server["tools"].as_array().into_iter().flatten() {
            let tool = tool.as_str().ok_or("a tool has no name")?;
            let name = agent_name(server_name, tool);
            let is_accepted = name.len() <= 64
                && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character));
            if !is_accepted || name != agent_name(server_name, tool) {
                return Err(format!("{tool} became {name}"));
            }
            count += 1;
            names.insert(name);
        }
    }
    if names.len() == count { Ok(count) } else { Err(format!("{count} tools have {} names", names.len())) }
}

/// Every result gives the model something to read, and says whether the tool failed.
fn tool_results(results: &Value) -> Result<usize, String> {
    let results = results.as_array().ok_or("no results")?;
    for result in results {
        let read =
            CallToolResult::read(&RawJson::parse(result.to_string()).unwrap()).map_err(|error| error.to_string())?;
        let output = output(read);
        let is_empty = |content: &Content| matches!(content, Content::Text(text) if text.is_empty());
        if output.content.is_empty() || output.content.iter().any(is_empty) {
            return Err(format!("{result} gives the model nothing"));
        }
        if output.is_error != (result["isError"] == true) {
            return Err(format!("{result} is taken for a failure: {}", output.is_error));
        }
        let shown = format!("{:?}", output.content);
        for block in result["content"].as_array().into_iter().flatten() {
            let uri = block["uri"].as_str().or(block["resource"]["uri"].as_str());
            let texts = [block["text"].as_str(), block["mimeType"].as_str(), block["resource"]["text"].as_str(), uri];
            if let Some(lost) = texts.into_iter().flatten().find(|text| !shown.contains(text)) {
                return Err(format!("{lost} of {block} is not shown to the model"));
            }
        }
        if result["structuredContent"].is_object() && result["content"] == json!([]) && !shown.contains("\\\"n\\\":1") {
            return Err(format!("the value of {result} is not shown to the model"));
        }
    }
    Ok(results.len())
}

fn progress() -> Result<usize, String> {
    let limits = CallOptions { idle_timeout: 200, maximum: Some(700), ..CallOptions::default() };
    let notification = |token: &Value, progress: u64| {
        let params = json!({ "progressToken": token, "progress": progress });
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
    };
    let run = |pieces: Vec<(&str, u64)>, pause: u64| {
        let options = ClientOptions { era: EraChoice::Handshake, ..ClientOptions::new(TransportKind::Http) };
        let mut world = World::new(options, move |request| {
            let body = body_of(request);
            match method_of(request).as_str() {
                "initialize" => initialized(&body["id"]),
                "tools/call" => {
                    let token = &body["params"]["_meta"]["progressToken"];
                    let answer =
                        pieces.iter().fold(Answer::stream().pausing(pause), |answer, (what, value)| match *what {
                            "progress" => answer.message(notification(token, *value)),
                            "unknown" => answer.message(notification(&json!("nobody's"), *value)),
                            _ => answer.message(result(&body["id"], "done")),
                        });
                    answer.then(super::mcp_support::Then::Hold)
                }
                "GET" => Answer::new(405),
                _ => Answer::new(202),
            }
        });
        world.connected().unwrap();
        let started = world.now;
        let operation = world.start(call("x"), limits.clone());
        let outcome = world.finish(operation);
        let took = world.now.since(started);
        world.settle();
        let reported = world.events.iter().filter(|event| matches!(event, Event::Progress { .. })).count();
        let closed = world.events.iter().any(|event| matches!(event, Event::Closed { .. }));
        (outcome, took, reported, closed)
    };

    let (outcome, _, reported, _) = run(vec![("progress", 1), ("progress", 2), ("progress", 3), ("result", 0)], 150);
    outcome.map_err(|error| format!("a call with progress was cut: {error}"))?;
    if reported != 3 {
        return Err(format!("{reported} of 3 reports came through"));
    }
    let (outcome, took, ..) = run((0..20).map(|value| ("progress", value)).collect(), 150);
    if outcome.is_ok() || took != 700 {
        return Err(format!("a call without end ended after {took} ms"));
    }
    let (outcome, _, reported, closed) = run(vec![("unknown", 1), ("result", 0), ("progress", 9)], 10);
    if outcome.is_err() || reported != 0 || closed {
        return Err("late or foreign progress did harm".to_owned());
    }
    Ok(3)
}

fn concurrent_calls() -> Result<usize, String> {
    let options = ClientOptions { era: EraChoice::Handshake, ..ClientOptions::new(TransportKind::Http) };
    let mut world = World::new(options, |request| {
        let body = body_of(request);
        match method_of(request).as_str() {
            "initialize" => initialized(&body["id"]),
            "tools/call" if body["params"]["name"] == "a" => {
                let of_b = body["id"].as_u64().unwrap() + 1;
                Answer::stream().pausing(100).message(result(&json!(of_b), "b")).message(result(&body["id"], "a"))
            }
            "tools/call" => Answer::stream().pausing(10).message(result(&body["id"], "b")),
            "GET" => Answer::new(405),
            _ => Answer::new(202),
        }
    });
    world.connected().map_err(|error| error.to_string())?;
    let a = world.start(call("a"), CallOptions::default());
    let b = world.start(call("b"), CallOptions::default());
    for (operation, expected) in [(b, "b"), (a, "a")] {
        match world.finish(operation) {
            Ok(Reply::ToolResult(result)) if CallToolResult::read(&result).unwrap().text() == expected => {}
            other => return Err(format!("{expected} ended with {other:?}")),
        }
    }
    if world.warnings().is_empty() { Err("the answer to nothing was not told".to_owned()) } else { Ok(1) }
}

fn call(name: &str) -> Request {
    Request::CallTool { name: name.to_owned(), arguments: RawJson::parse("{}").unwrap() }
}

fn initialized(id: &Value) -> Answer {
    let info = json!({ "name": "t", "version": "1" });
    let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": info });
    Answer::json(200, json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn result(id: &Value, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": text }] } })
}
