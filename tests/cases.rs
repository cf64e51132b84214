//! Runs the cases: real-world failures of other clients, with the right answer.
//!
//! A line per case and at the end `N passed, N failed`. With `CRABLET_CASES=<folder>` the cases of that folder are run
//! instead. Each case is also run with its bytes cut in other places. Cases that are described in words and not in data,
//! and cases of areas that have other tests, are listed and counted apart.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets the unexpected stops"
)]

mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use crablet::model::{
    AssistantMessage, Body, EncodedCache, Message, MessageId, Model, ModelRequest, Part, ResponseHead, StopReason,
    ToolCall, Usage,
};
use crablet::sse::SseParser;
use serde_json::{Value, json};
use wire::files::{json_files, read_json};
use wire::{bytes, compare, intent, replay};

fn main() -> ExitCode {
    let folder = std::env::var_os("CRABLET_CASES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"),
        |folder| absolute(Path::new(&folder)),
    );
    let mut tally = Tally::default();
    for path in json_files(&folder) {
        run_file(&path, &mut tally);
    }
    if tally.passed + tally.failed == 0 {
        println!("no case was run in {}", folder.display());
        tally.failed += 1;
    }
    for (area, count) in &tally.other_areas {
        println!("of an area with other tests: {area} ({count})");
    }
    if tally.in_words > 0 {
        println!("not data-driven: {}", tally.in_words);
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[derive(Default)]
struct Tally {
    passed: u32,
    failed: u32,
    in_words: u32,
    other_areas: BTreeMap<String, u32>,
}

/// A case that this runner runs, ones that it only lists, and what is wrong otherwise.
enum Verdict {
    Passed,
    InWords,
    OtherArea(String),
}

fn run_file(path: &Path, tally: &mut Tally) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match run_case(path) {
        Ok(Verdict::Passed) => {
            println!("ok {name}");
            tally.passed += 1;
        }
        Ok(Verdict::InWords) => {
            println!("not data-driven {name}");
            tally.in_words += 1;
        }
        Ok(Verdict::OtherArea(area)) => *tally.other_areas.entry(area).or_default() += 1,
        Err(differences) => {
            println!("FAILED {name}");
            for difference in differences {
                println!("    {difference}");
            }
            tally.failed += 1;
        }
    }
}

fn run_case(path: &Path) -> Result<Verdict, Vec<String>> {
    let case = read_json(path).map_err(|error| vec![error])?;
    let area = case["area"].as_str().ok_or_else(|| vec!["has no area".to_owned()])?;
    if area != "sse" && replay::model(area, "custom").is_none() {
        return Ok(Verdict::OtherArea(area.to_owned()));
    }
    let input = &case["input"];
    if !is_comparable(&case["expected"]) {
        return Ok(Verdict::InWords);
    }
    if let Some(steps) = input["exchange"].as_array() {
        let model = replay::model(area, "custom").ok_or_else(|| vec!["an exchange needs a wire".to_owned()])?;
        for recut in 0..=RECUTTINGS {
            run_exchange(&model, steps, &case["expected"], recut)
                .map_err(|found| found.into_iter().chain([format!("cutting {recut}")]).collect::<Vec<_>>())?;
        }
        return Ok(Verdict::Passed);
    }
    let variants = match input["variants"].as_array() {
        Some(variants) => variants.clone(),
        None if input.get("chunks").or_else(|| input.get("chunks_gen")).is_some() => vec![input.clone()],
        None => return Ok(Verdict::InWords),
    };
    for (number, variant) in variants.iter().enumerate() {
        let chunks = bytes::chunks(variant).map_err(|error| vec![error])?;
        let head = head(variant, input);
        let whole = chunks.concat();
        let mut cuttings = vec![chunks.iter().map(Vec::as_slice).collect::<Vec<_>>()];
        cuttings.extend(bytes::cuttings(&whole));
        for cutting in cuttings {
            let found = match area {
                "sse" => sse_differences(&case["expected"], &cutting),
                _ => {
                    let model = replay::model(area, "custom").ok_or_else(Vec::new)?;
                    let events = replay::events(&model, &head, cutting.iter().copied());
                    let mut found =
                        compare::differences(&case["expected"], &replay::observed(&replay::assemble(&events)));
                    if !replay::ends_once(&events) {
                        found.push("the events do not end exactly once".to_owned());
                    }
                    found
                }
            };
            if !found.is_empty() {
                let lengths: Vec<_> = cutting.iter().map(|piece| piece.len()).take(8).collect();
                let place = format!("variant {number}, cut into pieces of {lengths:?}…");
                return Err(found.into_iter().chain([place]).collect());
            }
        }
    }
    Ok(Verdict::Passed)
}

/// Whether what is expected can be compared. Facts are for people.
fn is_comparable(expected: &Value) -> bool {
    let members =
        ["text", "thinking", "toolCalls", "stopReason", "usage", "error", "events", "lastEventId", "retryValues"];
    members.iter().any(|member| expected.get(member).is_some()) || expected["facts"].is_null()
}

/// The cuttings of the answers of an exchange, beside the one that it has.
const RECUTTINGS: u64 = 200;

fn head(variant: &Value, input: &Value) -> ResponseHead {
    let member = |name: &str| variant.get(name).or_else(|| input.get(name)).cloned().unwrap_or_default();
    let headers = member("headers").as_object().cloned().unwrap_or_default();
    ResponseHead {
        status: member("status").as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200),
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.to_lowercase(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
            .collect(),
    }
}

fn sse_differences(expected: &Value, chunks: &[&[u8]]) -> Vec<String> {
    let mut parser = SseParser::new();
    let mut events = Vec::new();
    let mut ids_at_event = Vec::new();
    let mut retries: Vec<u64> = Vec::new();
    for chunk in chunks {
        parser.push(chunk);
        loop {
            match parser.next_event() {
                Ok(Some(event)) => {
                    events.push(json!({"event": event.name, "data": event.data, "id": event.id}));
                    ids_at_event.push(parser.last_event_id().to_owned());
                }
                Ok(None) => break,
                Err(error) => return vec![error.to_string()],
            }
        }
        retries.extend(parser.retry().filter(|retry| retries.last() != Some(retry)));
    }
    let mut found = Vec::new();
    let mut compare = |name: &str, observed: Value| {
        if let Some(wanted) = expected.get(name).filter(|wanted| **wanted != observed) {
            found.push(format!("{name}: expected {wanted}, got {observed}"));
        }
    };
    compare("events", events.into());
    compare("lastEventId", parser.last_event_id().into());
    compare("lastEventIdAtEvent", ids_at_event.into());
    // Between two retries in one chunk only the last one is seen, so they are compared where the cuts are fine enough.
    if chunks.iter().all(|chunk| chunk.len() <= 1) {
        compare("retryValues", retries.into());
    }
    found
}

/// Several requests that make one answer: what was said is sent back each time. The answers are cut as they are written, then
/// into single bytes, then at random.
fn run_exchange(model: &Model, steps: &[Value], expected: &Value, recut: u64) -> Result<(), Vec<String>> {
    let mut request = ModelRequest::new(model.clone());
    request.messages.push(intent::user("user", vec![intent::text("q")]));
    let mut cache = EncodedCache::default();
    let mut usage = Usage::default();
    let mut last = Value::Null;
    for (number, step) in steps.iter().enumerate() {
        let http = replay::wire(model).encode(&request, &mut cache).map_err(|error| vec![error.to_string()])?;
        let body: Value = serde_json::from_slice(&http.body).map_err(|error| vec![error.to_string()])?;
        if let Some(wanted) = step["expect_request"].as_object() {
            let found: Vec<_> = wanted.iter().filter_map(|(name, wanted)| unmet(name, wanted, &body)).collect();
            if !found.is_empty() {
                return Err(found.into_iter().map(|found| format!("request {}: {found}", number + 1)).collect());
            }
        }
        if step.get("respond").is_none() {
            break;
        }
        let chunks = bytes::chunks(&step["respond"]).map_err(|error| vec![error])?;
        let whole = chunks.concat();
        let cutting = match recut {
            0 => chunks.iter().map(Vec::as_slice).collect(),
            1 => whole.chunks(1).collect(),
            seed => bytes::random(&whole, seed),
        };
        let events = replay::events(model, &head(&step["respond"], step), cutting);
        let answer = replay::assemble(&events);
        let calls: Vec<_> = answer.content.iter().filter_map(call_of).cloned().collect();
        let goes_on = answer.stop_reason == StopReason::ToolUse;
        if goes_on != (number + 1 < steps.len()) {
            return Err(vec![format!("answer {}: whether another request follows", number + 1)]);
        }
        usage = usage.plus(answer.usage);
        last = replay::observed(&answer);
        let body = Body::Assistant(AssistantMessage {
            content: answer.content,
            model: model.reference(),
            stop_reason: answer.stop_reason,
            usage: answer.usage,
        });
        request.messages.push(Arc::new(Message { id: MessageId::new(format!("answer-{number}")), body }));
        if !calls.is_empty() {
            let results = calls
                .iter()
                .map(|call| intent::result(call.call_id.as_str(), &call.tool_name, vec![intent::text("ok")], false));
            request.messages.push(intent::results(&format!("results-{number}"), results.collect()));
        }
    }
    let found = compare::differences(expected, &last);
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn call_of(part: &Part) -> Option<&ToolCall> {
    match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    }
}

/// What a request lacks of what is expected of it; `None` when it has it. `facts` are for people.
fn unmet(name: &str, wanted: &Value, body: &Value) -> Option<String> {
    let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
    let is_met = match name {
        "facts" => true,
        "messages_last" => list("messages").last() == Some(wanted),
        _ => match (name.strip_suffix("_contains_in_order"), name.strip_suffix("_contains")) {
            (Some(member), _) => {
                let members = list(member);
                let mut rest = members.iter();
                wanted
                    .as_array()
                    .is_some_and(|wanted| wanted.iter().all(|wanted| rest.any(|given| is_within(wanted, given))))
            }
            (None, Some(member)) => list(member).contains(wanted),
            (None, None) => body[name] == *wanted,
        },
    };
    (!is_met).then(|| format!("expected {name}: {wanted}, sent {body}"))
}

/// Whether every member of the one is in the other.
fn is_within(wanted: &Value, given: &Value) -> bool {
    match wanted {
        Value::Object(wanted) => wanted.iter().all(|(name, wanted)| given.get(name) == Some(wanted)),
        wanted => wanted == given,
    }
}

/// Cargo runs tests in the package's folder, which is also what a relative name is meant against.
fn absolute(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(env!("CARGO_MANIFEST_DIR")).join(path) }
}
