//! What servers really send beside what the protocols say, each with the place where it was told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

#[path = "../wire/mod.rs"]
mod wire;

mod anthropic;
mod bedrock;
mod errors;
mod gemini;
mod openai_chat;
mod openai_responses;
mod usage;

use crablet::model::{Model, ModelEvent, ResponseHead, Source};
use serde_json::Value;
use wire::{bytes, compare, replay};

fn head(status: u16, headers: &[(&str, &str)]) -> ResponseHead {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ResponseHead { status, headers }
}

/// The stream of these payloads.
fn stream(payloads: &[&str]) -> String {
    payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect()
}

/// Compares what comes of a body, however it is cut, with what is expected, in the vocabulary of the cases.
#[track_caller]
fn check(model: &Model, head: &ResponseHead, body: &[u8], expected: Value) {
    for cutting in bytes::cuttings(body).into_iter().take(60) {
        let events = replay::events(model, head, cutting);
        assert!(replay::ends_once(&events), "{events:?}");
        let found = compare::differences(&expected, &replay::observed(&replay::assemble(&events)));
        assert_eq!(found, [""; 0], "{}", String::from_utf8_lossy(body));
    }
}

fn sources(model: &Model, body: &[u8]) -> Vec<Source> {
    let events = replay::events(model, &head(200, &[]), [body]);
    let source = |event| match event {
        ModelEvent::Source(source) => Some(source),
        _ => None,
    };
    events.into_iter().filter_map(source).collect()
}
