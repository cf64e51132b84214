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

use crablet::model::{EncodedCache, Model, ModelEvent, ResponseHead};
use crablet::sse::SseParser;
use serde_json::Value;
use wire::files::{json_files, read_json};
use wire::{asked, bytes, compare, drops, replay, scanned};

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
        if WIRES.contains(&wire.as_str()) && requests.exists() {
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

/// What crablet sends for the same intent has the shape that the live service accepted, and never the one that it refused.
fn requests(path: &Path, wire: &str) -> Result<(), Vec<String>> {
    let text = fs::read_to_string(path).map_err(|error| vec![format!("cannot be read: {error}")])?;
    let mut found = Vec::new();
    let mut compared = 0;
    for line in text.lines() {
        let recorded: Value = serde_json::from_str(line).map_err(|error| vec![format!("is not JSON: {error}")])?;
        let of = |name: &str| recorded[name].as_str().unwrap_or_default();
        let is_accepted = recorded["accepted"] == true;
        if !is_accepted && !is_refused_for_its_shape(&recorded) {
            continue;
        }
        let body = &recorded["body"];
        // What crablet has no type for is not asked for in another way either.
        let Ok(request) = asked::request(wire, of("provider"), of("path"), body) else { continue };
        compared += 1;
        let sent = replay::wire(&request.model).encode(&request, &mut EncodedCache::default());
        let sent = sent.map(|http| serde_json::from_slice::<Value>(&http.body).unwrap());
        let wanted = asked::shape(wire, body);
        match (is_accepted, sent) {
            (true, Ok(sent)) if asked::shape(wire, &sent) == wanted => {}
            (true, Ok(sent)) => {
                found.push(format!("{}: sent     {}", of("id"), asked::shape(wire, &sent)));
                found.push(format!("{}: accepted {wanted}", of("id")));
            }
            (true, Err(error)) => found.push(format!("{}: not sent: {error}", of("id"))),
            (false, Ok(sent)) if asked::shape(wire, &sent) == wanted && sent_the_same(body, &sent) => {
                found.push(format!("{}: is sent, and was refused: {}", of("id"), recorded["error"]));
            }
            (false, _) => {}
        }
    }
    println!("{wire}: {compared} of {} requests compared", text.lines().count());
    if compared == 0 && text.lines().next().is_some() {
        found.push("no request could be asked for with crablet's types".to_owned());
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// A bad key, an unknown model, or a conversation that is too long says nothing about the rest of a body.
fn is_refused_for_its_shape(recorded: &Value) -> bool {
    let told = recorded["error"]["message_contains"].as_str().unwrap_or_default().to_lowercase();
    let is_about_the_model = recorded["status"] == 404
        || (told.contains("model") && ["not", "isn", "invalid"].iter().any(|word| told.contains(word)));
    recorded["error"]["kind"] == "bad_request" && !is_about_the_model && !told.contains("previous response")
}

/// Whether the numbers and schemas are the same too: a refusal can be for one of them.
fn sent_the_same(recorded: &Value, sent: &Value) -> bool {
    let schema = |body: &Value| body["tools"][0].get("input_schema").cloned();
    recorded["temperature"] == sent["temperature"] && schema(recorded) == schema(sent)
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
