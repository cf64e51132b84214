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

use crablet::model::{Model, ModelEvent, Part, ResponseHead};
use crablet::sse::SseParser;
use serde_json::Value;
use wire::files::{json_files, read_json};
use wire::{bytes, compare, drops, intent, replay, scanned};

/// The wires that are spoken.
const WIRES: &[&str] = &["anthropic", "openai-chat", "openai-responses", "gemini", "bedrock"];

/// The random cuttings of each answer, beside the whole and single bytes.
const CUTTINGS: u64 = 20;

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
    for wire in folders(&folder) {
        let mut outcomes = Vec::new();
        let requests = folder.join(&wire).join("requests.jsonl");
        // The others have no messages of this shape; their golden bodies stand in `wire_requests`.
        if matches!(wire.as_str(), "anthropic" | "openai-chat") && requests.exists() {
            outcomes.push(("requests".to_owned(), self::requests(&requests, &wire)));
        }
        for path in json_files(&folder.join(&wire)) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let outcome = catch_unwind(|| run_file(&path, &wire)).unwrap_or_else(|_| Err(vec!["panicked".to_owned()]));
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
    if passed + failed == 0 {
        println!("FAILED {}: there is no recording in it", folder.display());
        failed += 1;
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_file(path: &Path, folder: &str) -> Result<(), Vec<String>> {
    let file = read_json(path).map_err(|error| vec![error])?;
    let response = &file["response"];
    let whole = match (response["body"].as_str(), response["body_b64"].as_str()) {
        (Some(body), _) => body.as_bytes().to_vec(),
        (None, Some(body)) => bytes::from_base64(body).ok_or_else(|| vec!["the body is not base64".to_owned()])?,
        (None, None) => return Err(vec!["has no body".to_owned()]),
    };
    let head = head(response)?;
    let expected = file.get("expected").ok_or_else(|| vec!["has no `expected`, not even null".to_owned()])?;
    let wire = file["wire"].as_str().unwrap_or(folder);
    let provider = file["provider"].as_str().unwrap_or_default();
    let Some(model) = replay::model(wire, provider) else {
        if !expected.is_null() {
            return Err(vec![format!("its wire \"{wire}\" is not spoken")]);
        }
        // Of a wire that nobody here speaks: whatever it is taken for must not take it badly.
        return WIRES
            .iter()
            .filter_map(|wire| replay::model(wire, provider))
            .try_for_each(|model| sound(&model, &head, &whole).map(|_| ()));
    };
    let events = sound(&model, &head, &whole)?;
    let mut found = drops::unsound(&model, &head, &whole);
    if matches!(wire, "anthropic" | "openai-chat") {
        let [scanned, walked] =
            scanned_and_walked(&whole).map(|stream| replay::events(&model, &head, [stream.as_bytes()]));
        if !scanned::is_same(&scanned, &walked) {
            found.push("other events when every payload is walked".to_owned());
        }
    }
    if !expected.is_null() {
        found.extend(compare::differences(expected, &replay::observed(&replay::assemble(&events))));
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// The events of an answer, which are the same however it is cut, and end once.
fn sound(model: &Model, head: &ResponseHead, whole: &[u8]) -> Result<Vec<ModelEvent>, Vec<String>> {
    let events = replay::joined(replay::events(model, head, [whole]));
    for seed in 0..CUTTINGS {
        if replay::joined(replay::events(model, head, bytes::random(whole, seed))) != events {
            return Err(vec![format!("other events when cut with seed {seed}")]);
        }
    }
    if replay::joined(replay::events(model, head, whole.chunks(1))) != events {
        return Err(vec!["other events a byte at a time".to_owned()]);
    }
    if replay::ends_once(&events) { Ok(events) } else { Err(vec!["the events do not end exactly once".to_owned()]) }
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

fn head(response: &Value) -> Result<ResponseHead, Vec<String>> {
    let headers = response["headers"].as_object().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let status = response["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    Ok(ResponseHead {
        status: status.ok_or_else(|| vec!["has no status".to_owned()])?,
        headers: headers.iter().map(|(name, value)| (name.to_lowercase(), text(value))).collect(),
    })
}

/// The folders of a folder, one a wire, in the order of their names.
fn folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let folders = entries.into_iter().filter(|entry| entry.path().is_dir());
    let names: BTreeSet<_> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.into_iter().collect()
}
