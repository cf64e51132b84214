//! Decodes recorded traffic of real providers, whole and at random cuttings, and compares with the right answers.
//!
//! The files belong to other projects and are not part of this one: they are read in `../shared/recorded`, or where
//! `CRABLET_RECORDED` says. Files without an expectation must only not panic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets the unexpected stops"
)]

mod wire;

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crablet::model::{Model, ModelEvent, Part, ResponseHead, StopReason};
use crablet::sse::SseParser;
use serde_json::Value;
use wire::files::json_files;
use wire::{bytes, compare, intent, replay, scanned};

const WIRES: &[&str] = &["anthropic", "openai-chat", "openai-responses", "gemini", "bedrock"];

fn main() -> ExitCode {
    let named = std::env::var_os("CRABLET_RECORDED").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| PathBuf::from("../shared/recorded"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    if !folder.is_dir() {
        println!("recorded traffic is absent ({} is no folder), so nothing was decoded", folder.display());
        println!("0 passed, 0 failed");
        // Absent by default is normal; absent where somebody said it is, is not.
        return if std::env::var_os("CRABLET_RECORDED").is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let (mut passed, mut failed) = (0, 0);
    for wire in WIRES {
        let mut outcomes = Vec::new();
        // The others have no messages of this shape; their golden bodies stand in `wire_requests`.
        if matches!(*wire, "anthropic" | "openai-chat") {
            outcomes.push(("requests".to_owned(), requests(&folder.join(wire).join("requests.jsonl"), wire)));
        }
        for path in json_files(&folder.join(wire)) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let outcome = catch_unwind(|| run_file(&path, wire)).unwrap_or_else(|_| Err(vec!["panicked".to_owned()]));
            outcomes.push((name, outcome));
        }
        for (name, outcome) in outcomes {
            let Err(differences) = outcome else {
                passed += 1;
                continue;
            };
            failed += 1;
            println!("FAILED {wire}/{name}");
            for difference in differences {
                println!("    {difference}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_file(path: &Path, wire: &str) -> Result<(), Vec<String>> {
    let text = fs::read_to_string(path).map_err(|error| vec![format!("cannot be read: {error}")])?;
    let file: Value = serde_json::from_str(&text).map_err(|error| vec![format!("is not JSON: {error}")])?;
    let model = replay::model(wire, file["provider"].as_str().unwrap_or_default()).ok_or_else(Vec::new)?;
    let response = &file["response"];
    let whole = match (response["body"].as_str(), response["body_b64"].as_str()) {
        (Some(body), _) => body.as_bytes().to_vec(),
        (None, Some(body)) => bytes::from_base64(body).ok_or_else(|| vec!["the body is not base64".to_owned()])?,
        (None, None) => return Err(vec!["has no body".to_owned()]),
    };
    let head = head(response);
    let expected = &file["expected"];
    let first = replay::joined(replay::events(&model, &head, [whole.as_slice()]));
    for seed in 0..20 {
        let cut = replay::joined(replay::events(&model, &head, bytes::random(&whole, seed)));
        if cut != first {
            return Err(vec![format!("other events when cut with seed {seed}")]);
        }
    }
    if !replay::ends_once(&first) {
        return Err(vec!["the events do not end exactly once".to_owned()]);
    }
    let mut found = truncations(&model, &head, &whole);
    if matches!(wire, "anthropic" | "openai-chat") {
        let [scanned, walked] =
            scanned_and_walked(&whole).map(|stream| replay::events(&model, &head, [stream.as_bytes()]));
        if !scanned::is_same(&scanned, &walked) {
            found.push("other events when every payload is walked".to_owned());
        }
    }
    if !expected.is_null() {
        found.extend(compare::differences(expected, &replay::observed(&replay::assemble(&first))));
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// The stream of its payloads, and the same in a form that no scanner takes.
fn scanned_and_walked(whole: &[u8]) -> [String; 2] {
    let mut parser = SseParser::new();
    parser.push(whole);
    let mut payloads = Vec::new();
    while let Ok(Some(event)) = parser.next_event() {
        payloads.push(event.data.to_owned());
    }
    scanned::streams(payloads.iter().map(String::as_str))
}

/// Cut after any event, a stream that is not over gives no success and no call that could run, unless it was complete.
fn truncations(model: &Model, head: &ResponseHead, whole: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(whole);
    if text.trim_start().starts_with('{') {
        return Vec::new();
    }
    let full = replay::assemble(&replay::events(model, head, [whole]));
    let mut found = Vec::new();
    let ends = ["\n\n", "\r\n\r\n"].into_iter().flat_map(|end| text.match_indices(end).map(|(at, end)| at + end.len()));
    for end in ends {
        let events = replay::events(model, head, [text[..end].as_bytes()]);
        let answer = replay::assemble(&events);
        let is_success = matches!(events.last(), Some(ModelEvent::Stop { .. }));
        if is_success && answer.stop_reason != full.stop_reason {
            found.push(format!("cut at {end}: stop reason {}", answer.stop_reason.as_str()));
        }
        let calls =
            |answer: &crablet::model::Answer| replay::observed(answer)["toolCalls"].as_array().cloned().unwrap();
        let known = calls(&full);
        if let Some(call) = calls(&answer).iter().find(|call| call.get("invalid").is_none() && !known.contains(call)) {
            found.push(format!("cut at {end}: the call {call} could run"));
        }
        if answer.stop_reason == StopReason::Aborted {
            found.push(format!("cut at {end}: no last event"));
        }
    }
    found
}

/// What crablet sends for a conversation has the shapes that the live services accepted: the members of each message, of
/// each part of its content and of each tool.
fn requests(path: &Path, wire: &str) -> Result<(), Vec<String>> {
    let text = fs::read_to_string(path).map_err(|error| vec![format!("cannot be read: {error}")])?;
    let mut accepted = BTreeSet::new();
    for line in text.lines() {
        let request: Value = serde_json::from_str(line).map_err(|error| vec![format!("is not JSON: {error}")])?;
        if request["accepted"] == true {
            accepted.extend(shapes(&request["body"]));
        }
    }
    let mut found = Vec::new();
    let (providers, reasoning): (&[&str], _) = match wire {
        "anthropic" => (&["anthropic"], r#"{"signature":"s"}"#),
        _ => (
            &["openai", "mistral", "deepseek", "llamacpp", "groq", "openrouter", "custom"],
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"Hm."}]}"#,
        ),
    };
    for provider in providers {
        let model = replay::model(wire, provider).ok_or_else(Vec::new)?;
        let mut request = intent::conversation(&model, reasoning);
        // No recorded conversation has a picture for Anthropic, a failed result, or text for DeepSeek beside a picture.
        request.messages[0] = intent::user("1", vec![intent::text("What is this?")]);
        let result = |id| intent::result(id, "find", vec![intent::text("A.")], false);
        request.messages[2] = intent::results("3", vec![result("call_1"), result("call_2")]);
        if wire == "openai-chat" {
            let spoken = Part::Reasoning { text: "Hm.".into(), replay: Some(intent::raw(reasoning)) };
            request.messages[1] = intent::assistant(
                "2",
                &model,
                vec![spoken, intent::call("call_1", "find", "{}"), intent::call("call_2", "find", "{}")],
            );
        }
        let unknown = shapes(&replay::body(&request)).into_iter().filter(|shape| !accepted.contains(shape));
        found.extend(unknown.map(|shape| format!("{provider}: nobody accepted {shape}")));
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn shapes(body: &Value) -> BTreeSet<String> {
    let members = |value: &Value| {
        let names = value.as_object().map(|object| object.keys().cloned().collect::<BTreeSet<_>>()).unwrap_or_default();
        names.into_iter().collect::<Vec<_>>().join("+")
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut shapes = BTreeSet::new();
    for message in list(&body["messages"]) {
        // Both names of the role that gives instructions are documented; the recordings have the older one.
        let role = message["role"].as_str().unwrap_or_default().replace("developer", "system");
        let mut content = if message["content"].is_array() { "list" } else { "text" }.to_owned();
        if message.get("content").is_none_or(Value::is_null) {
            content = "none".to_owned();
        }
        if role != "system" {
            shapes.insert(format!("{role} message with {content}: {}", members(&message)));
        }
        for part in list(&message["content"]) {
            shapes.insert(format!("{role} part {}: {}", part["type"], members(&part)));
        }
        for call in list(&message["tool_calls"]) {
            shapes.insert(format!("call: {} with {}", members(&call), members(&call["function"])));
        }
    }
    for tool in list(&body["tools"]) {
        if tool.get("strict").is_none() && tool.get("cache_control").is_none() {
            shapes.insert(format!("tool: {} with {}", members(&tool), members(&tool["function"])));
        }
    }
    shapes
}

fn head(response: &Value) -> ResponseHead {
    let headers = response["headers"].as_object().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    ResponseHead {
        status: response["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200),
        headers: headers.iter().map(|(name, value)| (name.to_lowercase(), text(value))).collect(),
    }
}
