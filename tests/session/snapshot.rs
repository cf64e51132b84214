//! What is saved, and what a restored session does with what was open.

use std::sync::Arc;

use crablet::agent::{
    Agent, Approval, Effect, EventKind, HookReply, Hooks, Input, Policy, RestoreError, Session, Status, ToolDefinition,
    ToolOutput,
};
use crablet::json::RawJson;
use crablet::model::{ModelEvent, StopReason};
use crablet::{Error, ErrorKind, Millis};

use crate::harness::{Harness, agent, content_in_short, stop, text, text_block, tool};

fn repeatable(name: &str) -> ToolDefinition {
    ToolDefinition { repeatable: true, ..tool(name) }
}

#[test]
fn an_idle_conversation_goes_on_after_a_restore() {
    let mut host = Harness::prompted(agent(vec![]));
    host.answer("one");
    let mut restored = host.restored(agent(vec![]));
    assert_eq!(restored.transcript(), host.transcript());
    assert!(restored.effects.is_empty() && restored.events.is_empty());
    restored.give(Input::Prompt(text("again")));
    restored.answer("two");
    assert_eq!(restored.transcript(), ["user(hello)", "assistant(one)", "user(again)", "assistant(two)"]);
}

#[test]
fn writing_and_reading_are_inverse() {
    let mut host = Harness::prompted(agent(vec![tool("a"), repeatable("b")]));
    host.give(Input::FollowUp(text("and then")));
    host.answer_calls(&[("1", "a", r#"{"b":1.0,"a":2}"#), ("2", "b", "{}")]);
    host.tool_ends("1", ToolOutput::text("done"));
    let text = host.session.snapshot();
    let restored = Session::restore(&text, host.session.agent().clone(), host.now).unwrap();
    assert_eq!(restored.snapshot(), text);
}

#[test]
fn a_model_call_in_flight_is_made_again_as_the_next_attempt() {
    let mut host = Harness::prompted(agent(vec![]));
    host.stream(vec![
        ModelEvent::TextStart { block: 0 },
        ModelEvent::TextDelta { block: 0, text: "half an ans".into() },
        stop(StopReason::Stop)[0].clone(),
    ]);
    let mut restored = host.restored(agent(vec![]));
    assert_eq!(restored.names(), ["run-start", "step-retry"]);
    assert!(matches!(restored.events[1].kind, EventKind::StepRetry { attempt: 2, delay: 0, .. }));
    assert_eq!(restored.model_call().1.messages, host.model_call().1.messages);
    restored.answer("whole");
    assert_eq!(restored.transcript(), ["user(hello)", "assistant(whole)"]);
    assert_eq!(restored.run_end().usage.output, Some(10), "the tokens of the lost attempt were spent");
}

#[test]
fn a_started_tool_runs_again_only_if_it_is_repeatable() {
    let tools = || agent(vec![tool("once"), repeatable("often")]);
    let mut host = Harness::prompted(tools());
    host.answer_calls(&[("1", "once", "{}"), ("2", "often", "{}")]);
    let mut restored = host.restored(tools());
    assert_eq!(restored.handed_out(), ["2"]);
    restored.tool_ends("2", ToolOutput::text("fine"));
    restored.answer("done");
    assert_eq!(restored.transcript()[2], "tool(1 error; 2 ok)");
    assert!(crate::harness::content_in_short(&restored.results()[0].content).contains("interrupted"));
}

#[test]
fn a_stored_result_is_not_asked_for_again() {
    let tools = || agent(vec![tool("a"), repeatable("b")]);
    let mut host = Harness::prompted(tools());
    host.answer_calls(&[("1", "a", "{}"), ("2", "b", "{}")]);
    host.tool_ends("1", ToolOutput::text("kept"));
    let mut restored = host.restored(tools());
    assert_eq!(restored.handed_out(), ["2"]);
    restored.tool_ends("2", ToolOutput::text("fine"));
    assert_eq!(restored.transcript()[2], "tool(1 ok; 2 ok)");
}

#[test]
fn approvals_client_side_tools_and_hooks_are_asked_again_under_the_same_id() {
    let tools = || Agent {
        hooks: Hooks { after_tool_call: true, ..Hooks::default() },
        ..agent(vec![
            ToolDefinition { needs_approval: true, ..tool("guarded") },
            ToolDefinition { client_side: true, ..tool("client") },
            tool("plain"),
        ])
    };
    let mut host = Harness::prompted(tools());
    host.answer_calls(&[("1", "guarded", "{}"), ("2", "client", "{}"), ("3", "plain", "{}")]);
    host.tool_ends("3", ToolOutput::text("raw"));
    let hook = host.hook();

    let mut restored = host.restored(tools());
    assert_eq!(restored.hook(), hook);
    restored.reply(Ok(HookReply::ChangeResult(ToolOutput::text("polished"))));
    assert_eq!(restored.status(), Status::Suspended);

    let mut restored = restored.restored(tools());
    assert_eq!(restored.status(), Status::Suspended);
    assert_eq!(restored.names(), ["run-start", "approval-request", "tool-start", "run-suspended"]);
    assert!(restored.effects.iter().any(|effect| matches!(effect, Effect::AskApproval { .. })));
    restored.decide("1", Approval::Allow);
    restored.tool_ends("1", ToolOutput::text("allowed"));
    restored.reply(Ok(HookReply::Continue));
    restored.tool_ends("2", ToolOutput::text("by the client"));
    restored.reply(Ok(HookReply::Continue));
    restored.answer("done");
    assert_eq!(restored.transcript()[2], "tool(1 ok; 2 ok; 3 ok)");
    restored.run_end();
}

#[test]
fn timers_keep_their_deadlines() {
    let slow = || agent(vec![ToolDefinition { timeout: Some(5_000), repeatable: true, ..tool("slow") }]);
    let mut host = Harness::prompted(slow());
    host.answer_calls(&[("1", "slow", "{}")]);
    host.pass(3_000);
    let mut restored = host.restored(slow());
    assert_eq!(restored.timers, host.timers);
    restored.pass(1_999);
    assert!(restored.results().is_empty());
    restored.pass(1);
    assert_eq!(restored.cancelled(), ["1"]);
    assert!(restored.results()[0].is_error);
}

/// What a process makes of the session that begins an hour after the one before has ended.
fn an_hour_later(host: &Harness, agent: Agent) -> Harness {
    let now = host.now.after(3_600_000);
    let mut later = Harness::of(Session::restore(&host.session.snapshot(), Arc::new(agent), now).unwrap(), now);
    later.pass(0);
    later
}

#[test]
fn what_is_done_anew_has_its_time_anew_when_that_has_passed_meanwhile() {
    let limited = |hooks| Agent {
        hooks,
        policy: Policy { hook_timeout: Some(1_000), ..Policy::default() },
        ..agent(vec![
            ToolDefinition { timeout: Some(1_000), ..repeatable("again") },
            ToolDefinition { timeout: Some(1_000), claimable: true, ..tool("claimed") },
        ])
    };
    for (hooks, tool) in [
        (Hooks { before_tool_call: true, ..Hooks::default() }, "again"),
        (Hooks { prepare_step: true, ..Hooks::default() }, ""),
        (Hooks::default(), "again"),
        (Hooks::default(), "claimed"),
    ] {
        let mut host = Harness::prompted(limited(hooks));
        if !tool.is_empty() {
            host.answer_calls(&[("1", tool, "{}")]);
        }
        let mut later = an_hour_later(&host, limited(hooks));
        assert!(later.results().is_empty() && later.run_ends().is_empty(), "{hooks:?} {tool}");
        later.pass(999);
        assert!(later.results().is_empty() && later.run_ends().is_empty(), "{hooks:?} {tool}");
        later.pass(1);
        assert!(
            later.results().len() == 1 || later.run_ends().len() == 1,
            "it has an end all the same: {hooks:?} {tool}"
        );
    }
}

#[test]
fn the_time_of_somebody_outside_passes_also_while_no_process_is_there() {
    let elsewhere = || agent(vec![ToolDefinition { timeout: Some(1_000), client_side: true, ..tool("elsewhere") }]);
    let mut host = Harness::prompted(elsewhere());
    host.answer_calls(&[("1", "elsewhere", "{}")]);
    assert!(an_hour_later(&host, elsewhere()).results()[0].is_error);
}

#[test]
fn a_retry_is_waited_for_until_the_same_moment() {
    let mut host = Harness::prompted(agent(vec![]));
    host.fail_stream(Error::new(ErrorKind::Overloaded, "busy"));
    let deadline = host.timers[0].1;
    host.pass(100);
    let mut restored = host.restored(agent(vec![]));
    assert_eq!(restored.timers[0].1, deadline);
    assert_eq!(restored.model_calls(), 0);
    restored.pass(60_000);
    assert_eq!(restored.model_calls(), 1);
    restored.answer("there");
    assert_eq!(restored.run_end().text, "there");
}

#[test]
fn a_call_that_the_tool_does_not_take_any_more_is_not_run() {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
    let before = |tool| Agent { hooks: Hooks { before_tool_call: true, ..Hooks::default() }, ..agent(vec![tool]) };
    let guarded = || ToolDefinition { needs_approval: true, ..tool("a") };
    for (first, tool) in [
        (agent(vec![guarded()]), guarded()),
        (before(tool("a")), tool("a")),
        (agent(vec![repeatable("a")]), repeatable("a")),
    ] {
        let mut host = Harness::prompted(first);
        host.answer_calls(&[("1", "a", r#"{"file":"x"}"#)]);
        let changed = ToolDefinition { input_schema: RawJson::parse(schema).unwrap(), ..tool };
        let restored = host.restored(agent(vec![changed]));
        assert!(restored.handed_out().is_empty() && restored.results()[0].is_error);
        assert!(content_in_short(&restored.results()[0].content).contains("path"));
        assert_eq!(restored.model_calls(), 1, "the model may call it again");
    }
}

#[test]
fn a_call_whose_tool_is_gone_gets_an_error() {
    let mut host = Harness::prompted(agent(vec![repeatable("a"), repeatable("b")]));
    host.answer_calls(&[("1", "a", "{}"), ("2", "b", "{}")]);
    let mut restored = host.restored(agent(vec![repeatable("b")]));
    assert_eq!(restored.handed_out(), ["2"]);
    restored.tool_ends("2", ToolOutput::text("fine"));
    assert_eq!(restored.transcript()[2], "tool(1 error; 2 ok)");
}

/// The key of each claim.
fn claimed(host: &Harness) -> Vec<(&str, &str)> {
    let claims = host.effects.iter().filter_map(|effect| match effect {
        Effect::ClaimTool { call_id, claim_key, .. } => Some((call_id.as_str(), &**claim_key)),
        _ => None,
    });
    claims.collect()
}

#[test]
fn the_result_of_a_started_tool_is_claimed_where_it_can_be() {
    let claimable = |tool| ToolDefinition { claimable: true, timeout: Some(1_000), ..tool };
    let tools = || agent(vec![claimable(tool("once")), claimable(repeatable("often"))]);
    let mut host = Harness::prompted(tools());
    host.answer_calls(&[("1", "once", "{}"), ("2", "often", "{}"), ("3", "once", "{}")]);
    let offered = host.effects.iter().filter_map(|effect| match effect {
        Effect::CallTool { claim_key, .. } => claim_key.as_deref(),
        _ => None,
    });
    let offered: Vec<_> = offered.collect();
    assert!(claimed(&host).is_empty(), "nothing is claimed without a restore");

    // Each restore asks again, for the same.
    let mut restored = host.restored(tools()).restored(tools());
    let claims = claimed(&restored);
    assert_eq!(claims.iter().map(|(call, _)| *call).collect::<Vec<_>>(), ["1", "2", "3"]);
    assert_eq!(claims.iter().map(|(_, key)| *key).collect::<Vec<_>>(), offered);
    assert!(restored.handed_out().is_empty());

    let not_claimed = |call_id: &str| Input::ToolNotClaimed { call_id: crablet::model::CallId::new(call_id) };
    restored.tool_ends("1", ToolOutput::text("claimed"));
    restored.give(not_claimed("2"));
    assert_eq!(restored.handed_out(), ["2"], "it is repeatable");
    assert!(restored.try_give(not_claimed("2")).is_err(), "now it runs");
    restored.tool_ends("2", ToolOutput::text("again"));
    restored.give(not_claimed("3"));
    assert_eq!(restored.transcript()[2], "tool(1 ok; 2 ok; 3 error)");

    // The limit of the tool's time goes on.
    let mut late = host.restored(tools());
    late.pass(1_000);
    assert_eq!(late.cancelled(), ["1", "2", "3"]);
    assert_eq!(late.transcript()[2], "tool(1 error; 2 error; 3 error)");
}

#[test]
fn what_the_validator_made_is_not_saved_and_is_asked_for_again() {
    let checked = || agent(vec![ToolDefinition { has_validator: true, repeatable: true, ..tool("a") }]);
    let mut host = Harness::prompted(checked());
    host.answer_calls(&[("1", "a", r#"{"n":1}"#)]);
    let validated = |host: &mut Harness, outcome| {
        host.give(Input::InputValidated { call_id: crablet::model::CallId::new("1"), outcome: Ok(outcome) });
    };
    validated(&mut host, Some(crate::harness::raw(r#"{"secret":2}"#)));
    assert_eq!(host.handed_out(), ["1"]);
    assert!(!host.session.snapshot().contains("secret"));

    let mut restored = host.restored(checked());
    assert!(restored.handed_out().is_empty(), "first the validator");
    validated(&mut restored, Some(crate::harness::raw(r#"{"secret":2}"#)));
    let given = restored.effects.iter().find_map(|effect| match effect {
        Effect::CallTool { input, .. } => Some(input.as_str().to_owned()),
        _ => None,
    });
    assert_eq!(given.as_deref(), Some(r#"{"secret":2}"#));
}

#[test]
fn text_that_is_no_snapshot_is_refused_with_the_reason() {
    let agent = std::sync::Arc::new(agent(vec![]));
    let restore = |text: &str| Session::restore(text, agent.clone(), Millis(0)).unwrap_err();
    assert!(matches!(restore(""), RestoreError::Malformed(_)));
    assert!(matches!(restore("{}"), RestoreError::Malformed(_)));
    assert!(matches!(restore(r#"{"format":"crablet-session","version":9,"seed":"0"}"#), RestoreError::TooNew(9)));
    let whole = Harness::prompted((*agent).clone()).session.snapshot();
    for end in 0..whole.len() - 1 {
        assert!(matches!(restore(&whole[..end]), RestoreError::Malformed(_)), "cut at {end}");
    }
    let other = restore(&whole.replace("\"calling\"", "\"dancing\""));
    assert!(other.to_string().contains("dancing"), "{other}");
}

/// A conversation at work, as each version of the format has it in a golden file.
fn golden_session() -> Harness {
    let mut host = Harness::new(agent(vec![tool("a"), ToolDefinition { needs_approval: true, ..tool("b") }]));
    host.give(Input::Prompt(text("hello")));
    host.stream(text_block(0, "let me see"));
    host.stream(
        [crate::harness::call_block(1, "1", "a", "{}"), crate::harness::call_block(2, "2", "b", "{}")].concat(),
    );
    host.stream(stop(StopReason::ToolUse));
    host.end_stream();
    host.tool_ends("1", ToolOutput::text("one"));
    host.give(Input::FollowUp(text("more")));
    host
}

#[test]
fn the_format_is_version_2() {
    assert_eq!(golden_session().session.snapshot(), include_str!("golden/snapshot-v2.jsonl"));
}

#[test]
fn every_version_that_was_released_restores_for_ever() {
    let goldens = [
        // Of the first builds, whose queued messages had no id.
        include_str!("golden/snapshot-v1-unnamed-queue.json"),
        include_str!("golden/snapshot-v1.json"),
        include_str!("golden/snapshot-v2.jsonl"),
    ];
    for golden in goldens {
        let host = golden_session();
        let session = Session::restore(golden, host.session.agent().clone(), host.now).unwrap();
        let mut restored = Harness::of(session, host.now);
        assert_eq!(restored.transcript(), host.transcript());
        assert_eq!(restored.status(), Status::Suspended);
        assert_eq!(restored.session.follow_ups().next().unwrap().content, text("more"));
        restored.decide("2", Approval::Allow);
        assert_eq!(restored.handed_out(), ["2"], "the one with a result is not run again");
    }
}
