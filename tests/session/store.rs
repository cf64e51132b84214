//! With a store: nothing goes on before what it rests on is safe.

use crablet::agent::{Agent, EndReason, Input, InputError, Status, ToolDefinition, ToolOutput};
use crablet::model::StopReason;
use crablet::{Error, ErrorKind, Millis};

use crate::harness::{Harness, agent, text, tool};

fn stored(tools: Vec<ToolDefinition>) -> Agent {
    Agent { has_store: true, ..agent(tools) }
}

fn fail(host: &mut Harness, kind: ErrorKind) {
    let seq = host.checkpoint();
    host.give(Input::CheckpointFailed { seq, error: Error::new(kind, "the disk is full") });
}

#[test]
fn the_prompt_is_saved_before_the_model_reads_it() {
    let mut host = Harness::prompted(stored(vec![]));
    assert_eq!(host.model_calls(), 0);
    host.save();
    assert_eq!(host.model_calls(), 1);
    host.answer("hi");
    assert!(host.run_ends().is_empty(), "the answer is saved before the run is said to be over");
    host.save();
    host.run_end();
    assert_eq!(host.status(), Status::Idle);
}

#[test]
fn nothing_can_be_added_to_a_run_whose_end_is_being_saved() {
    let mut host = Harness::prompted(stored(vec![]));
    host.save();
    host.answer("hi");
    assert_eq!(host.try_give(Input::Steer(text("wait"))), Err(InputError::Idle));
    assert_eq!(host.try_give(Input::FollowUp(text("then"))), Err(InputError::Idle));
    assert_eq!(host.try_give(Input::Prompt(text("next"))), Err(InputError::Busy));
    host.save();
    host.give(Input::Prompt(text("next")));
}

#[test]
fn a_tool_is_handed_out_once_its_start_is_saved() {
    let mut host = Harness::prompted(stored(vec![tool("once"), ToolDefinition { repeatable: true, ..tool("often") }]));
    host.save();
    host.answer_calls(&[("1", "once", "{}"), ("2", "often", "{}")]);
    assert_eq!(host.handed_out(), ["2"], "one that may run twice need not wait");
    assert!(host.session.snapshot().contains("started"));
    host.save();
    assert_eq!(host.handed_out(), ["2", "1"]);
    host.tool_ends("1", ToolOutput::text("ok"));
    host.tool_ends("2", ToolOutput::text("ok"));
    assert_eq!(host.model_calls(), 1, "results are saved before the model reads them");
    host.save();
    assert_eq!(host.model_calls(), 2);
}

#[test]
fn the_deadline_of_a_retry_is_saved_without_being_waited_for() {
    let mut host = Harness::prompted(stored(vec![]));
    host.save();
    let before = host.checkpoint();
    host.fail_stream(Error::new(ErrorKind::Overloaded, "busy").with_retry_after(5_000));
    assert_eq!(host.checkpoint(), before + 1);
    let (timer, due) = host.timers[0];
    assert!(due >= Millis(1_005_000));
    host.now = due;
    host.give(Input::Timer { timer });
    assert_eq!(host.model_calls(), 2, "the model is asked again although nothing was saved yet");
}

#[test]
fn tools_that_start_together_share_a_checkpoint() {
    let mut host = Harness::prompted(stored(vec![tool("a")]));
    host.save();
    let before = host.checkpoint();
    host.answer_calls(&[("1", "a", "{}"), ("2", "a", "{}"), ("3", "a", "{}")]);
    assert_eq!(host.checkpoint(), before + 1);
    host.save();
    assert_eq!(host.handed_out(), ["1", "2", "3"]);
}

#[test]
fn a_suspension_is_announced_once_it_is_saved() {
    let mut host = Harness::prompted(stored(vec![ToolDefinition { needs_approval: true, ..tool("guarded") }]));
    host.save();
    host.answer_calls(&[("1", "guarded", "{}")]);
    assert_ne!(host.names().last(), Some(&"run-suspended"));
    host.save();
    assert_eq!(host.names().last(), Some(&"run-suspended"));
    assert_eq!(host.status(), Status::Suspended);
}

#[test]
fn a_failed_save_ends_the_run_and_nothing_goes_on_unsaved() {
    let mut host = Harness::prompted(stored(vec![tool("a")]));
    host.save();
    host.answer_calls(&[("1", "a", "{}")]);
    fail(&mut host, ErrorKind::Network);
    assert!(host.handed_out().is_empty());
    let end = host.run_end();
    assert_eq!(
        (end.reason, end.error.as_ref().unwrap().kind()),
        (EndReason::Model(StopReason::Error), ErrorKind::Storage)
    );
    assert!(end.error.as_ref().unwrap().message().contains("the disk is full"));
    assert_eq!(host.transcript()[2], "tool(1 error)");
}

#[test]
fn a_second_writer_is_a_conflict() {
    let mut host = Harness::prompted(stored(vec![]));
    fail(&mut host, ErrorKind::Conflict);
    assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::Conflict);
}

#[test]
fn an_abort_is_saved_and_not_waited_for() {
    let mut host = Harness::prompted(stored(vec![]));
    host.save();
    host.forget();
    host.give(Input::Abort { reason: None });
    host.run_end();
    host.checkpoint();
    let events = host.events.len();
    host.save();
    assert_eq!(host.events.len(), events, "nothing is shown after the end");
    let restored = host.restored(stored(vec![]));
    assert_eq!(restored.status(), Status::Idle);
}

#[test]
fn a_later_checkpoint_answers_for_the_earlier_ones() {
    let mut host = Harness::prompted(stored(vec![tool("a"), ToolDefinition { needs_approval: true, ..tool("b") }]));
    host.save();
    host.answer_calls(&[("1", "a", "{}"), ("2", "b", "{}")]);
    let first = host.checkpoint();
    host.decide("2", crablet::agent::Approval::Allow);
    host.save();
    assert_eq!(host.handed_out(), ["1", "2"]);
    host.give(Input::CheckpointSaved { seq: first });
}

#[test]
fn without_a_store_nothing_is_asked_of_the_host() {
    let mut host = Harness::prompted(agent(vec![tool("a")]));
    host.answer_calls(&[("1", "a", "{}")]);
    host.tool_ends("1", ToolOutput::text("ok"));
    host.answer("done");
    assert!(!host.effects.iter().any(|effect| matches!(effect, crablet::agent::Effect::Checkpoint { .. })));
    host.give(Input::Prompt(text("again")));
}
