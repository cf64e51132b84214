//! The connection drops in the middle of an answer, at the boundary of any event and at any byte, with every provider: no call
//! runs that was not complete, and nothing is taken for a success before the provider said why it ended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod wire;

use crablet::ErrorKind;
use crablet::model::{ModelEvent, ResponseHead, StopReason};
use serde_json::json;
use wire::documented::{self, Documented};
use wire::{drops, replay};

fn head() -> ResponseHead {
    ResponseHead { status: 200, headers: Vec::new() }
}

#[test]
fn a_drop_at_the_boundary_of_an_event_is_no_success_and_runs_no_cut_call() {
    for Documented { name, model, bytes } in documented::all() {
        assert_eq!(drops::unsound(&model, &head(), &bytes), [""; 0], "{name}");
        let ends = drops::boundaries(&bytes);
        assert_eq!(ends.last(), Some(&bytes.len()), "{name}");
        let failed = ends.iter().filter(|end| {
            let events = replay::events(&model, &head(), [&bytes[..**end]]);
            matches!(events.last(), Some(ModelEvent::Failed(error)) if error.kind() == ErrorKind::StreamTruncated)
        });
        // Up to two boundaries lie between the provider's word for the end and the end itself.
        assert!(failed.count() + 3 >= ends.len(), "{name}");
    }
}

#[test]
fn a_drop_within_an_event_is_no_success_and_runs_no_cut_call() {
    for Documented { name, model, bytes } in documented::all() {
        for end in 1..bytes.len() {
            let answer = replay::assemble(&replay::events(&model, &head(), [&bytes[..end]]));
            let observed = replay::observed(&answer);
            let calls = observed["toolCalls"].as_array().unwrap();
            let is_whole = calls.len() == 2 && answer.stop_reason == StopReason::ToolUse;
            assert!(is_whole || answer.stop_reason == StopReason::Error, "{name} cut at {end}: {answer:?}");
            for call in calls {
                let known = [json!({"location": "San Francisco"}), json!({})];
                assert!(known.contains(&call["arguments"]), "{name} cut at {end}: {call}");
            }
        }
    }
}

#[test]
fn documented_answers_are_decoded() {
    for Documented { name, model, bytes } in documented::all() {
        let observed = replay::observed(&replay::assemble(&replay::events(&model, &head(), [bytes.as_slice()])));
        assert_eq!(observed["text"], "Let me check.", "{name}");
        assert_eq!(observed["stopReason"], "tool_use", "{name}");
        let calls = observed["toolCalls"].as_array().unwrap();
        let read: Vec<_> =
            calls.iter().map(|call| (call["name"].as_str().unwrap(), call["arguments"].clone())).collect();
        assert_eq!(read, [("get_weather", json!({"location": "San Francisco"})), ("get_time", json!({}))], "{name}");
    }
}
