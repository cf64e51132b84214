//! Random runs whose process is killed anywhere. Each restore goes through the saved text into a fresh machine. In the
//! end the transcript is that of the run without a crash, no tool that may run once ran twice, and there is exactly one
//! `run-end`.
//!
//! `CRABLET_CRASH_SCRIPTS` sets how many scripts are run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod counts;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../session/harness.rs"]
mod harness;
#[path = "../session/rebuild.rs"]
mod rebuild;
mod script;
mod world;

use std::collections::BTreeSet;

use crablet::agent::EventKind;

use counts::Counts;
use script::{Script, may_repeat};
use world::{Saving, World};

const DEFAULT_SCRIPTS: u64 = 1_000;

#[test]
fn a_run_that_is_killed_anywhere_ends_as_if_nothing_had_happened() {
    let mut counts = Counts::default();
    let scripts = std::env::var("CRABLET_CRASH_SCRIPTS").ok().and_then(|n| n.parse().ok()).unwrap_or(DEFAULT_SCRIPTS);
    for seed in 0..scripts {
        let script = Script::random(seed);
        let undisturbed = World::new(&script, 0, Saving::BeforeAcknowledging).run();
        let crashed = World::new(&script, 3, Saving::BeforeAcknowledging).run();
        counts.add(&script, &crashed);

        for (call_id, times) in &crashed.performed {
            assert!(*times <= 1 || may_repeat(call_id), "script {seed}: {call_id} was performed {times} times");
        }
        let interrupted = &crashed.interrupted;
        assert_eq!(
            without(&crashed.transcript, interrupted),
            without(&undisturbed.transcript, interrupted),
            "script {seed}"
        );
        assert_eq!(rebuild::transcript(&crashed.events), crashed.transcript, "script {seed}: rebuilt from events");
        assert_eq!(crashed.output(), undisturbed.output(), "script {seed}: the object");
        let ends = crashed.events.iter().filter(|event| matches!(event.kind, EventKind::RunEnd(_))).count();
        assert_eq!(ends, 1, "script {seed}: exactly one run-end");
        assert!(
            matches!(crashed.events.last().unwrap().kind, EventKind::RunEnd(_)),
            "script {seed}: and it is the last"
        );
    }
    println!("{scripts} scripts\n{counts}");
    counts.demand(if scripts >= DEFAULT_SCRIPTS { 100 } else { 0 });
}

/// The promise needs the write-ahead: a host that acknowledges a checkpoint before it is safe runs tools twice.
#[test]
fn without_the_write_ahead_tools_run_twice() {
    let twice = (0..300).filter(|seed| {
        let script = Script::random(*seed);
        let crashed = World::new(&script, 3, Saving::OnlyModelCalls).run();
        crashed.performed.iter().any(|(call_id, times)| *times > 1 && !may_repeat(call_id))
    });
    assert!(twice.count() > 0, "the test above would not notice a missing write-ahead");
}

/// The transcript with the outcome of these calls left open.
fn without(transcript: &[String], call_ids: &BTreeSet<String>) -> Vec<String> {
    let mut transcript = transcript.to_vec();
    for line in &mut transcript {
        for call_id in call_ids {
            for outcome in ["ok", "error"] {
                *line = line.replace(&format!("{call_id} {outcome}"), &format!("{call_id} ?"));
            }
        }
    }
    transcript
}
