//! Attempts of a model call: retries, timeouts, and answers that fail.

use crablet::agent::{Effect, EndReason, EventKind, Input, InputError, Status};
use crablet::model::{ModelEvent, StopReason, Usage};
use crablet::{Error, ErrorKind};

use crate::harness::{Harness, agent, stop, text, text_block};

fn overloaded() -> Error {
    Error::new(ErrorKind::Overloaded, "busy")
}

fn half_an_answer() -> Vec<ModelEvent> {
    vec![ModelEvent::TextStart { block: 0 }, ModelEvent::TextDelta { block: 0, text: "Hello wor".into() }]
}

#[test]
fn an_attempt_that_may_succeed_later_is_made_again() {
    let mut host = Harness::prompted(agent(vec![]));
    host.fail_stream(overloaded());
    let EventKind::StepRetry { attempt: 2, delay, error, model: None } = &host.events.last().unwrap().kind else {
        panic!()
    };
    assert!((500..=1_000).contains(delay));
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    let delay = *delay;
    host.pass(delay - 1);
    assert_eq!(host.model_calls(), 1);
    host.pass(1);
    assert_eq!(host.model_calls(), 2);
    host.answer("here");
    assert_eq!(host.run_end().text, "here");
}

#[test]
fn the_last_failure_ends_the_run_and_the_next_prompt_is_valid() {
    let mut host = Harness::prompted(agent(vec![]));
    for _ in 0..3 {
        host.fail_stream(overloaded());
        host.pass(60_000);
    }
    host.fail_stream(overloaded());
    assert_eq!(host.model_calls(), 4);
    assert_eq!(host.run_end().reason, EndReason::Model(StopReason::Error));
    assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::Overloaded);
    host.forget();
    host.give(Input::Prompt(text("once more")));
    host.answer("fine");
    assert_eq!(host.transcript(), ["user(hello)", "user(once more)", "assistant(fine)"]);
}

#[test]
fn an_error_that_stays_is_not_repeated() {
    let mut host = Harness::prompted(agent(vec![]));
    host.stream(vec![ModelEvent::Failed(Error::new(ErrorKind::Auth, "wrong key"))]);
    host.end_stream();
    assert_eq!(host.run_end().error.as_ref().unwrap().kind(), ErrorKind::Auth);
    assert_eq!(host.model_calls(), 1);
}

#[test]
fn a_provider_that_asks_for_too_long_a_wait_ends_the_run() {
    let mut host = Harness::prompted(agent(vec![]));
    host.fail_stream(overloaded().with_retry_after(61_000));
    host.run_end();
}

#[test]
fn an_answer_without_its_end_is_an_error_and_not_an_answer() {
    let mut agent = agent(vec![]);
    agent.policy.max_attempts = 1;
    let mut host = Harness::prompted(agent);
    host.stream(half_an_answer());
    host.end_stream();
    let end = host.run_end();
    assert_eq!(end.reason, EndReason::Model(StopReason::Error));
    assert_eq!(end.error.as_ref().unwrap().kind(), ErrorKind::StreamTruncated);
    assert_eq!(host.transcript(), ["user(hello)", "assistant(Hello wor)"], "what was shown is kept");
    assert_eq!(host.names()[3..], ["text-start", "text-delta", "text-end", "run-end"]);
}

#[test]
fn silence_before_the_first_byte_and_between_chunks_is_a_timeout() {
    let mut agent = agent(vec![]);
    (agent.policy.first_byte_timeout, agent.policy.idle_timeout) = (30_000, 10_000);
    let mut host = Harness::prompted(agent);
    host.pass(29_999);
    assert_eq!(host.names().last(), Some(&"step-start"));
    host.pass(1);
    let cancelled = host.effects.iter().filter(|effect| matches!(effect, Effect::CancelModel { .. })).count();
    assert_eq!((cancelled, host.names().last()), (1, Some(&"step-retry")));

    host.pass(1_000);
    host.stream(half_an_answer());
    host.pass(9_999);
    assert_eq!(host.names().last(), Some(&"text-delta"));
    host.pass(1);
    let EventKind::StepRetry { attempt: 3, error, .. } = &host.events.last().unwrap().kind else { panic!() };
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("10000 ms"));
}

#[test]
fn a_slow_but_steady_answer_is_never_cut() {
    let mut host = Harness::prompted(agent(vec![]));
    host.stream(vec![ModelEvent::TextStart { block: 0 }]);
    for _ in 0..50 {
        host.pass(119_999);
        host.stream(vec![ModelEvent::TextDelta { block: 0, text: ".".into() }]);
    }
    host.stream([vec![ModelEvent::TextEnd { block: 0, replay: None }], stop(StopReason::Stop)].concat());
    host.end_stream();
    assert_eq!(host.run_end().text.len(), 50);
    let timers = host.effects.iter().filter(|effect| matches!(effect, Effect::SetTimer { .. })).count();
    assert!(timers <= 52, "no timer for each chunk: {timers}");
}

/// Case 187: timers of a hidden page come late, data does not.
#[test]
fn case_187_background_timers() {
    let mut host = Harness::prompted(agent(vec![]));
    host.stream(half_an_answer());
    host.now = host.now.after(600_000);
    host.stream(vec![ModelEvent::TextDelta { block: 0, text: "ld".into() }]);
    let (timer, _) = host.timers.remove(0);
    host.give(Input::Timer { timer });
    assert_eq!(host.status(), Status::Running);
    assert_eq!(host.model_calls(), 1);
    host.stream([vec![ModelEvent::TextEnd { block: 0, replay: None }], stop(StopReason::Stop)].concat());
    host.end_stream();
    assert_eq!(host.run_end().text, "Hello world");
}

#[test]
fn a_clock_that_jumps_back_neither_rearms_nor_loses_the_silence_timer() {
    let mut host = Harness::prompted(agent(vec![]));
    host.stream(half_an_answer());
    host.stream(half_an_answer());
    host.now = crablet::Millis(0);
    let (timer, _) = host.timers.remove(0);
    host.give(Input::Timer { timer });
    let (timer, at) = host.timers[0];
    assert_eq!(at, crablet::Millis(120_000), "set anew once, since data had come, and by the clock as it is now");
    host.timers.clear();
    host.give(Input::Timer { timer });
    assert_eq!(host.names().last(), Some(&"step-retry"), "nothing came since: it is a timeout whatever the clock says");
}

#[test]
fn events_of_an_attempt_that_was_given_up_are_ignored() {
    let mut host = Harness::prompted(agent(vec![]));
    let (stale, _) = host.model_call();
    host.pass(120_000);
    host.pass(60_000);
    assert_eq!(host.model_calls(), 2);
    let late = Input::ModelEvents { call: stale, events: text_block(0, "too late") };
    assert_eq!(host.try_give(late), Err(InputError::Unexpected));
    host.answer("in time");
    assert_eq!(host.transcript(), ["user(hello)", "assistant(in time)"]);
}

#[test]
fn an_empty_answer_is_shown_and_not_kept() {
    let mut host = Harness::prompted(agent(vec![]));
    host.stream(stop(StopReason::Stop));
    host.end_stream();
    assert_eq!(host.names()[3..], ["step-end", "run-end"]);
    assert_eq!(host.transcript(), ["user(hello)"]);
}

#[test]
fn a_provider_that_pauses_in_its_own_tools_is_asked_to_go_on() {
    let mut host = Harness::prompted(agent(vec![]));
    let search = ModelEvent::Provider {
        block: 0,
        kind: "server_tool_use".into(),
        replay: crate::harness::raw(r#"{"type":"server_tool_use"}"#),
    };
    host.stream([vec![search], stop(StopReason::ToolUse)].concat());
    host.end_stream();
    assert_eq!((host.model_calls(), host.model_call().1.messages.len()), (2, 2), "the answer is sent back as it is");
    host.answer("found it");
    assert_eq!(host.run_end().text, "found it");
}

/// Case 165.
#[test]
fn case_165_retry_after_partial_output() {
    let mut host = Harness::prompted(agent(vec![crate::harness::tool("t")]));
    host.stream(half_an_answer());
    host.stream(vec![
        ModelEvent::ToolInputStart { block: 1, id: "t1".into(), name: "t".into() },
        ModelEvent::ToolInputDelta { block: 1, json: "{\"pa".into() },
        ModelEvent::Usage(Usage { input: Some(100), output: Some(7), ..Usage::default() }),
        ModelEvent::Failed(overloaded()),
    ]);
    host.end_stream();
    assert_eq!(host.names().last(), Some(&"step-retry"));
    host.pass(60_000);
    host.answer("Hello world");
    assert_eq!(host.transcript(), ["user(hello)", "assistant(Hello world)"]);
    assert!(host.handed_out().is_empty() && host.results().is_empty());
    let usage = host.run_end().usage;
    assert_eq!((usage.input, usage.output), (Some(110), Some(12)), "both attempts count");
}
