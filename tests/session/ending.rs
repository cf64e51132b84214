//! Abort, limits, steering and follow-ups: how runs end and go on.

use crablet::ErrorKind;
use crablet::agent::{EndReason, Input, InputError, Status, ToolDefinition, ToolOutput};
use crablet::model::{CallId, ModelEvent, StopReason};

use crate::harness::{Harness, agent, call_block, content_in_short, text, text_block, tool};

fn abort() -> Input {
    Input::Abort { reason: Some("the user pressed stop".into()) }
}

/// Case 159.
#[test]
fn case_159_abort_during_tools() {
    let mut policy_of_one = agent(vec![tool("t")]);
    policy_of_one.policy.max_concurrent_tools = 2;
    let mut host = Harness::prompted(policy_of_one);
    host.answer_calls(&[("t1", "t", "{}"), ("t2", "t", "{}"), ("t3", "t", "{}")]);
    host.give(Input::ToolEnded { call_id: CallId::new("t1"), output: ToolOutput::text("done") });
    // t3 took the place of t1; t2 and t3 are at work.
    host.forget();
    host.give(abort());
    assert_eq!(host.cancelled(), ["t2", "t3"]);
    assert_eq!(host.names(), ["tool-result", "tool-result", "run-end"]);
    let end = host.run_end();
    assert_eq!(end.reason, EndReason::Model(StopReason::Aborted));
    assert_eq!(
        end.error.as_ref().map(|error| (error.kind(), error.message())),
        Some((ErrorKind::Aborted, "the user pressed stop"))
    );
    assert_eq!(host.status(), Status::Idle);

    host.forget();
    host.give(Input::Prompt(text("go on")));
    assert_eq!(
        host.transcript(),
        ["user(hello)", "assistant(call t1; call t2; call t3)", "tool(t1 ok; t2 error; t3 error)", "user(go on)"]
    );
}

/// Case 160.
#[test]
fn case_160_abort_mid_stream_partial_call() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    host.stream(text_block(0, "I will"));
    host.stream(vec![
        ModelEvent::ToolInputStart { block: 1, id: "t1".into(), name: "t".into() },
        ModelEvent::ToolInputDelta { block: 1, json: "{\"pa".into() },
    ]);
    host.forget();
    host.give(abort());
    assert_eq!(host.names(), ["tool-input-end", "run-end"]);
    assert_eq!(host.transcript(), ["user(hello)", "assistant(I will)"]);
    assert!(host.results().is_empty());
}

#[test]
fn an_answer_of_which_nothing_came_is_not_kept() {
    let mut host = Harness::prompted(agent(vec![]));
    host.stream(vec![ModelEvent::TextStart { block: 0 }]);
    host.forget();
    host.give(abort());
    assert_eq!(host.names(), ["text-end", "run-end"]);
    assert_eq!(host.transcript(), ["user(hello)"]);
}

#[test]
fn a_call_that_was_complete_when_the_run_was_aborted_gets_its_error() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    host.stream(call_block(0, "t1", "t", "{}"));
    host.forget();
    host.give(abort());
    assert_eq!(host.names(), ["tool-result", "run-end"]);
    assert_eq!(host.transcript(), ["user(hello)", "assistant(call t1)", "tool(t1 error)"]);
}

/// Case 174.
#[test]
fn case_174_tool_settles_after_abort() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    host.answer_calls(&[("t1", "t", "{}")]);
    host.give(abort());
    host.forget();
    let late = [
        Input::ToolProgress { call_id: CallId::new("t1"), data: crate::harness::raw("1") },
        Input::ToolEnded { call_id: CallId::new("t1"), output: ToolOutput::text("late") },
    ];
    for input in late {
        assert_eq!(host.try_give(input), Err(InputError::Unexpected));
    }
    host.pass(1_000_000);
    assert!(host.effects.is_empty() && host.events.is_empty());
    assert_eq!(host.transcript()[2], "tool(t1 error)");
}

#[test]
fn abort_between_attempts_and_without_a_run() {
    let mut host = Harness::prompted(agent(vec![]));
    host.fail_stream(crablet::Error::new(ErrorKind::Overloaded, "busy"));
    host.give(abort());
    assert!(host.timers.is_empty());
    host.run_end();
    host.forget();
    host.give(abort());
    assert!(host.effects.is_empty() && host.events.is_empty());
}

#[test]
fn the_limit_of_steps_ends_the_run() {
    let mut agent = agent(vec![tool("t")]);
    agent.policy.max_steps = 2;
    let mut host = Harness::prompted(agent);
    for id in ["1", "2"] {
        host.answer_calls(&[(id, "t", "{}")]);
        host.tool_ends(id, ToolOutput::text("ok"));
    }
    assert_eq!(host.model_calls(), 2);
    assert_eq!(host.names()[host.names().len() - 2..], ["limit-reached", "run-end"]);
    assert_eq!(host.run_end().reason, EndReason::Limit);
}

#[test]
fn the_limit_of_tokens_forbids_the_next_step() {
    let mut agent = agent(vec![tool("t")]);
    agent.policy.max_tokens = Some(30);
    let mut host = Harness::prompted(agent);
    for id in ["1", "2"] {
        host.answer_calls(&[(id, "t", "{}")]);
        host.tool_ends(id, ToolOutput::text(id));
    }
    assert_eq!(host.model_calls(), 2, "15 tokens a step");
    assert_eq!(host.run_end().reason, EndReason::Limit);
}

#[test]
fn a_model_that_goes_round_in_a_circle_is_told_and_then_stopped() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    for id in ["1", "2", "3", "4"] {
        host.answer_calls(&[(id, "t", "{}")]);
        host.tool_ends(id, ToolOutput::text("nothing new"));
    }
    assert_eq!(host.run_end().reason, EndReason::Limit);
    assert!(host.names().contains(&"limit-reached"));
    let told: Vec<String> = host.transcript().into_iter().filter(|line| line.contains("same tool calls")).collect();
    assert_eq!(told.len(), 1);
    assert!(host.transcript()[6].starts_with("tool(3 ok)") && host.transcript()[7].contains("3 times"));
}

#[test]
fn asking_until_something_changes_is_no_circle() {
    let mut host = Harness::prompted(agent(vec![tool("status")]));
    for id in ["1", "2", "3", "4", "5", "6"] {
        host.answer_calls(&[(id, "status", "{}")]);
        host.tool_ends(id, ToolOutput::text(format!("{id} of 6 done")));
    }
    host.answer("all done");
    assert_eq!(host.run_end().text, "all done");
}

#[test]
fn the_limit_of_time_stops_what_is_at_work() {
    let mut agent = agent(vec![tool("t")]);
    agent.policy.timeout = Some(60_000);
    let mut host = Harness::prompted(agent);
    host.answer_calls(&[("1", "t", "{}")]);
    host.pass(60_000);
    assert_eq!(host.cancelled(), ["1"]);
    let end = host.run_end();
    assert_eq!((end.reason, end.error.as_ref().unwrap().kind()), (EndReason::Limit, ErrorKind::Timeout));
    assert_eq!(host.transcript()[2], "tool(1 error)");
}

#[test]
fn the_limit_of_time_holds_when_timers_come_late() {
    let mut agent = agent(vec![]);
    agent.policy.timeout = Some(60_000);
    let mut host = Harness::prompted(agent);
    host.now = host.now.after(60_000);
    host.stream(text_block(0, "still talking"));
    assert_eq!(host.run_end().reason, EndReason::Limit);
}

#[test]
fn a_steered_message_is_delivered_before_the_next_step() {
    let mut host = Harness::prompted(agent(vec![tool("t")]));
    host.answer_calls(&[("1", "t", "{}")]);
    host.give(Input::Steer(text("in English please")));
    assert_eq!(host.session.steers().count(), 1);
    host.tool_ends("1", ToolOutput::text("ok"));
    host.answer("sure");
    assert_eq!(
        host.transcript(),
        ["user(hello)", "assistant(call 1)", "tool(1 ok)", "user(in English please)", "assistant(sure)"]
    );
    let names = host.names();
    let delivered = names.iter().position(|name| *name == "steer-delivered").unwrap();
    assert_eq!(names[delivered..delivered + 3], ["steer-delivered", "message-added", "step-start"]);
}

#[test]
fn a_message_steered_during_the_last_answer_is_answered_too() {
    let mut host = Harness::prompted(agent(vec![]));
    host.give(Input::Steer(text("wait")));
    host.answer("first");
    host.answer("second");
    assert_eq!(host.transcript(), ["user(hello)", "assistant(first)", "user(wait)", "assistant(second)"]);
    host.run_end();
}

#[test]
fn sequential_calls_that_have_not_begun_give_way_to_a_steered_message() {
    let mut host = Harness::prompted(agent(vec![ToolDefinition { sequential: true, ..tool("t") }]));
    host.answer_calls(&[("1", "t", "{}"), ("2", "t", "{}"), ("3", "t", "{}")]);
    host.give(Input::Steer(text("stop that")));
    host.tool_ends("1", ToolOutput::text("ok"));
    assert_eq!(host.handed_out(), ["1"]);
    assert!(content_in_short(&host.results()[1].content).contains("new message"));
    assert_eq!(host.transcript()[2..], ["tool(1 ok; 2 error; 3 error)", "user(stop that)"]);
}

#[test]
fn a_steered_message_that_cannot_be_delivered_is_said_to_be_dropped() {
    let mut host = Harness::prompted(agent(vec![]));
    host.give(Input::Steer(text("wait")));
    host.forget();
    host.give(abort());
    assert_eq!(host.names(), ["steer-dropped", "run-end"]);
    assert_eq!(host.session.steers().count(), 0);
}

#[test]
fn follow_ups_are_worked_on_one_by_one_when_the_run_would_end() {
    let mut host = Harness::prompted(agent(vec![]));
    host.give(Input::FollowUp(text("then this")));
    host.give(Input::FollowUp(text("then that")));
    host.answer("one");
    host.answer("two");
    host.answer("three");
    assert_eq!(
        host.transcript(),
        ["user(hello)", "assistant(one)", "user(then this)", "assistant(two)", "user(then that)", "assistant(three)"]
    );
    host.run_end();
}

#[test]
fn queues_are_bounded_and_their_messages_can_be_taken_back() {
    let mut host = Harness::prompted(agent(vec![]));
    for number in 0..64 {
        host.give(Input::FollowUp(text(&number.to_string())));
    }
    assert_eq!(host.try_give(Input::FollowUp(text("one too many"))), Err(InputError::QueueFull));
    let queued: Vec<_> = host.session.follow_ups().map(|message| message.id.clone()).collect();
    assert_eq!(queued.len(), 64);
    for id in queued {
        host.give(Input::Unqueue { id });
    }
    host.give(Input::FollowUp(text("instead")));
    host.answer("one");
    assert_eq!(host.transcript().last().unwrap(), "user(instead)");
}

#[test]
fn messages_that_wait_can_be_edited_and_keep_their_id() {
    let mut host = Harness::prompted(agent(vec![]));
    host.give(Input::Steer(text("wait")));
    host.give(Input::Steer(text("no")));
    host.give(Input::FollowUp(text("later")));
    let steers: Vec<_> = host.session.steers().map(|message| message.id.clone()).collect();
    let follow_up = host.session.follow_ups().next().unwrap().id.clone();
    host.give(Input::EditQueued { id: steers[0].clone(), content: text("wait a little") });
    host.give(Input::EditQueued { id: follow_up.clone(), content: text("much later") });
    assert_eq!(
        host.try_give(Input::EditQueued { id: follow_up.clone(), content: text("") }),
        Err(InputError::EmptyPrompt)
    );
    host.give(Input::Unqueue { id: steers[1].clone() });
    assert_eq!(host.names().last(), Some(&"steer-dropped"));
    let mut host = host.restored(agent(vec![]));
    host.answer("one");
    host.answer("two");
    host.answer("three");
    let history = host.session.history();
    assert_eq!((&history[2].id, &history[4].id), (&steers[0], &follow_up));
    assert_eq!(host.transcript()[2], "user(wait a little)");
    assert_eq!(host.transcript()[4], "user(much later)");
    let unknown = Input::Unqueue { id: follow_up };
    assert_eq!(host.try_give(unknown), Err(InputError::Unexpected), "it was delivered");
}

#[test]
fn a_follow_up_waits_through_an_abort() {
    let mut host = Harness::prompted(agent(vec![]));
    host.give(Input::FollowUp(text("later")));
    host.give(abort());
    assert_eq!(host.session.follow_ups().count(), 1);
}

#[test]
fn nothing_can_be_steered_or_queued_without_a_run() {
    let mut host = Harness::new(agent(vec![]));
    assert_eq!(host.try_give(Input::Steer(text("x"))), Err(InputError::Idle));
    assert_eq!(host.try_give(Input::FollowUp(text("x"))), Err(InputError::Idle));
}
