//! Tool calls: prepared, run, finalized; and what the model reads when they go wrong.

use crablet::agent::{
    Agent, Approval, Effect, EndReason, EventKind, HookReply, Hooks, Input, InputError, Status, Terminate,
    ToolDefinition, ToolOutput,
};
use crablet::model::{CallId, StopReason};

use crate::harness::{Harness, agent, content_in_short, raw, text, tool};

fn with_hooks(before: bool, after: bool, tools: Vec<ToolDefinition>) -> Agent {
    Agent { hooks: Hooks { before_tool_call: before, after_tool_call: after, ..Hooks::default() }, ..agent(tools) }
}

/// The input that a call was handed out with.
fn given(host: &Harness, id: &str) -> String {
    let input = host.effects.iter().rev().find_map(|effect| match effect {
        Effect::CallTool { call_id, input, .. } if call_id.as_str() == id => Some(input.as_str().to_owned()),
        _ => None,
    });
    input.expect("it was handed out")
}

fn result_text(host: &Harness, id: &str) -> String {
    let results = host.results();
    let result = results.iter().find(|result| result.call_id.as_str() == id).expect("it has a result");
    content_in_short(&result.content)
}

#[test]
fn input_is_checked_against_the_schema_and_repaired_where_models_slip() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let counts = ToolDefinition { input_schema: raw(schema), ..tool("counts") };
    let mut host = Harness::prompted(agent(vec![counts]));
    host.answer_calls(&[("1", "counts", r#"{"n":"5"}"#), ("2", "counts", "{}")]);
    assert_eq!(given(&host, "1"), r#"{"n":5}"#);
    assert_eq!(host.handed_out(), ["1"]);
    assert!(result_text(&host, "2").contains('n'), "it says what is missing: {}", result_text(&host, "2"));
    host.tool_ends("1", ToolOutput::text("five"));
    host.answer("done");
    assert_eq!(host.transcript()[2], "tool(1 ok; 2 error)");
}

#[test]
fn the_history_keeps_what_the_model_wrote() {
    let mut host = Harness::prompted(with_hooks(true, false, vec![tool("a")]));
    host.answer_calls(&[("1", "a", r#"{ "n" : 1.0 }"#)]);
    host.reply(Ok(HookReply::ChangeInput(raw(r#"{"n":2}"#))));
    assert_eq!(given(&host, "1"), r#"{"n":2}"#);
    assert!(host.session.snapshot().contains(r#"{ "n" : 1.0 }"#));
}

#[test]
fn an_unknown_tool_is_an_error_that_names_the_known_ones() {
    let mut host = Harness::prompted(agent(vec![tool("search"), tool("fetch")]));
    host.answer_calls(&[("1", "serach", "{}")]);
    assert!(result_text(&host, "1").contains("fetch, search"));
    assert_eq!(host.model_calls(), 2, "the model may try again");
}

#[test]
fn the_whole_batch_is_prepared_in_call_order_before_anything_runs() {
    let mut host = Harness::prompted(with_hooks(true, false, vec![tool("a"), tool("b")]));
    host.answer_calls(&[("1", "a", "{}"), ("2", "b", "{}")]);
    host.reply(Ok(HookReply::Continue));
    assert!(host.handed_out().is_empty());
    host.reply(Ok(HookReply::Continue));
    assert_eq!(host.handed_out(), ["1", "2"]);
}

#[test]
fn a_validator_may_change_or_refuse_the_input() {
    let checked = ToolDefinition { has_validator: true, ..tool("checked") };
    let mut host = Harness::prompted(with_hooks(true, false, vec![checked]));
    host.answer_calls(&[("1", "checked", r#"{"n":1}"#), ("2", "checked", "{}")]);
    let validated = |host: &mut Harness, id: &str, outcome| {
        host.give(Input::InputValidated { call_id: CallId::new(id), outcome });
    };
    validated(&mut host, "1", Ok(Some(raw(r#"{"n":"one"}"#))));
    host.reply(Ok(HookReply::Continue));
    validated(&mut host, "2", Err("n is required".into()));
    assert!(result_text(&host, "2").contains("n is required"));
    assert_eq!(given(&host, "1"), r#"{"n":"one"}"#);
}

#[test]
fn input_that_a_hook_changed_is_validated_again() {
    let checked = ToolDefinition { has_validator: true, ..tool("checked") };
    let mut host = Harness::prompted(with_hooks(true, false, vec![checked]));
    host.answer_calls(&[("1", "checked", "{}")]);
    let validate =
        |host: &mut Harness, outcome| host.give(Input::InputValidated { call_id: CallId::new("1"), outcome });
    validate(&mut host, Ok(None));
    host.reply(Ok(HookReply::ChangeInput(raw(r#"{"bad":1}"#))));
    assert!(host.handed_out().is_empty());
    validate(&mut host, Err("bad is not allowed".into()));
    assert!(host.handed_out().is_empty());
    assert!(result_text(&host, "1").contains("bad is not allowed"));
}

#[test]
fn a_hook_that_denies_fails_or_takes_too_long_lets_nothing_through() {
    let mut agent = with_hooks(true, false, vec![tool("a"), tool("b"), tool("c")]);
    agent.policy.hook_timeout = Some(1_000);
    let mut host = Harness::prompted(agent);
    host.answer_calls(&[("1", "a", "{}"), ("2", "b", "{}"), ("3", "c", "{}")]);
    host.reply(Ok(HookReply::Deny("not on a Sunday".into())));
    host.reply(Err("it threw".into()));
    host.pass(1_000);
    assert!(host.handed_out().is_empty());
    assert!(result_text(&host, "1").contains("not on a Sunday"));
    assert!(result_text(&host, "2").contains("it threw"));
    assert!(result_text(&host, "3").contains("1000 ms"));
    assert_eq!(host.model_calls(), 2);
}

#[test]
fn a_validator_that_takes_too_long_lets_nothing_through() {
    let checked = ToolDefinition { has_validator: true, ..tool("checked") };
    let mut agent = agent(vec![checked]);
    agent.policy.hook_timeout = Some(1_000);
    let mut host = Harness::prompted(agent);
    host.answer_calls(&[("1", "checked", "{}")]);
    host.pass(1_000);
    assert!(host.handed_out().is_empty());
    assert!(result_text(&host, "1").contains("1000 ms"));
}

#[test]
fn a_hook_may_change_a_result_and_its_failure_makes_it_an_error() {
    let mut host = Harness::prompted(with_hooks(false, true, vec![tool("a"), tool("b")]));
    host.answer_calls(&[("1", "a", "{}"), ("2", "b", "{}")]);
    host.tool_ends("1", ToolOutput::text("raw"));
    host.reply(Ok(HookReply::ChangeResult(ToolOutput::text("polished"))));
    host.tool_ends("2", ToolOutput::text("raw"));
    host.reply(Err("it threw".into()));
    assert_eq!(result_text(&host, "1"), "polished");
    assert!(result_text(&host, "2").contains("it threw"));
    assert_eq!(host.transcript()[2], "tool(1 ok; 2 error)");
}

#[test]
fn a_denial_touches_only_its_call_and_the_run_is_suspended_meanwhile() {
    let guarded = ToolDefinition { needs_approval: true, ..tool("guarded") };
    let mut host = Harness::prompted(agent(vec![guarded, tool("plain")]));
    host.answer_calls(&[("1", "guarded", "{}"), ("2", "plain", "{}"), ("3", "guarded", "{}")]);
    assert_eq!(host.handed_out(), ["2"]);
    assert_eq!(host.status(), Status::Running);
    host.tool_ends("2", ToolOutput::text("ran"));
    assert_eq!(host.status(), Status::Suspended);
    assert_eq!(host.names().last(), Some(&"run-suspended"));

    host.decide("1", Approval::Deny { reason: Some("too dangerous".into()) });
    assert!(result_text(&host, "1").contains("too dangerous"));
    assert_eq!(host.status(), Status::Suspended, "the other approval is still open");
    assert_eq!(host.names().last(), Some(&"run-suspended"), "who goes away when the run waits is told again");
    host.decide("3", Approval::Allow);
    assert_eq!(host.status(), Status::Running);
    assert_eq!(
        host.try_give(Input::Approval { call_id: CallId::new("3"), decision: Approval::Allow, input_hash: None }),
        Err(InputError::Unexpected)
    );
    host.tool_ends("3", ToolOutput::text("ran"));
    assert_eq!(host.transcript()[2], "tool(1 error; 2 ok; 3 ok)");
}

#[test]
fn a_hook_may_ask_a_person() {
    let mut host = Harness::prompted(with_hooks(true, false, vec![tool("a")]));
    host.answer_calls(&[("1", "a", r#"{"path":"/"}"#)]);
    host.reply(Ok(HookReply::Ask));
    let asked = host.events.iter().any(
        |event| matches!(&event.kind, EventKind::ApprovalRequest { input, .. } if input.as_str() == r#"{"path":"/"}"#),
    );
    assert!(asked && host.status() == Status::Suspended);
    host.decide("1", Approval::Allow);
    assert_eq!(host.handed_out(), ["1"]);
}

#[test]
fn a_client_side_tool_suspends_the_run_until_its_result_is_given() {
    let client = ToolDefinition { client_side: true, ..tool("client") };
    let mut host = Harness::prompted(agent(vec![client]));
    host.answer_calls(&[("1", "client", "{}")]);
    assert_eq!((host.handed_out(), host.status()), (vec!["1"], Status::Suspended));
    host.tool_ends("1", ToolOutput::text("clicked"));
    host.answer("thanks");
    assert_eq!(host.run_end().text, "thanks");
}

#[test]
fn sequential_tools_run_alone_and_in_call_order() {
    let alone = ToolDefinition { sequential: true, ..tool("alone") };
    let mut host = Harness::prompted(agent(vec![alone, tool("plain")]));
    host.answer_calls(&[("1", "plain", "{}"), ("2", "alone", "{}"), ("3", "alone", "{}"), ("4", "plain", "{}")]);
    for expected in [vec!["1"], vec!["1", "2"], vec!["1", "2", "3"], vec!["1", "2", "3", "4"]] {
        assert_eq!(host.handed_out(), expected);
        let running = *expected.last().unwrap();
        host.tool_ends(running, ToolOutput::text("ok"));
    }
    assert_eq!(host.transcript()[2], "tool(1 ok; 2 ok; 3 ok; 4 ok)");
}

#[test]
fn no_more_tools_are_at_work_than_the_policy_allows() {
    let mut agent = agent(vec![tool("a")]);
    agent.policy.max_concurrent_tools = 2;
    let mut host = Harness::prompted(agent);
    host.answer_calls(&[("1", "a", "{}"), ("2", "a", "{}"), ("3", "a", "{}")]);
    assert_eq!(host.handed_out(), ["1", "2"]);
    host.tool_ends("2", ToolOutput::text("ok"));
    assert_eq!(host.handed_out(), ["1", "2", "3"]);
}

#[test]
fn a_tool_that_takes_too_long_is_stopped_and_its_late_result_ignored() {
    let slow = ToolDefinition { timeout: Some(5_000), ..tool("slow") };
    let mut host = Harness::prompted(agent(vec![slow]));
    host.answer_calls(&[("1", "slow", "{}")]);
    host.pass(5_000);
    assert_eq!(host.cancelled(), ["1"]);
    assert!(result_text(&host, "1").contains("5000 ms"));
    let late = Input::ToolEnded { call_id: CallId::new("1"), output: ToolOutput::text("late") };
    assert_eq!(host.try_give(late), Err(InputError::Unexpected));
    host.answer("moving on");
    assert_eq!(host.transcript()[2], "tool(1 error)");
}

#[test]
fn progress_is_shown_while_the_tool_runs_and_not_after() {
    let mut host = Harness::prompted(agent(vec![tool("a")]));
    host.answer_calls(&[("1", "a", "{}")]);
    let progress = || Input::ToolProgress { call_id: CallId::new("1"), data: raw("0.5") };
    host.give(progress());
    assert_eq!(host.names().last(), Some(&"tool-progress"));
    host.tool_ends("1", ToolOutput::text("ok"));
    assert_eq!(host.try_give(progress()), Err(InputError::Unexpected));
}

#[test]
fn the_run_ends_when_every_tool_of_a_batch_asks_for_it() {
    let end = || ToolOutput { terminate: true, ..ToolOutput::text("that is all") };
    let mut host = Harness::prompted(agent(vec![tool("a")]));
    host.answer_calls(&[("1", "a", "{}"), ("2", "a", "{}")]);
    host.tool_ends("1", end());
    host.tool_ends("2", ToolOutput::text("not me"));
    assert_eq!(host.model_calls(), 2, "one of two is not all");
    host.answer_calls(&[("3", "a", "{}")]);
    host.tool_ends("3", end());
    assert_eq!(host.run_end().reason, EndReason::Terminated);
    assert_eq!(host.model_calls(), 2);
}

#[test]
fn calls_of_a_refused_answer_are_not_run() {
    let mut host = Harness::prompted(agent(vec![tool("a")]));
    let mut events = crate::harness::call_block(0, "1", "a", "{}");
    events.extend(crate::harness::stop(StopReason::Refusal));
    host.stream(events);
    host.end_stream();
    assert!(host.handed_out().is_empty());
    assert_eq!(host.run_end().reason, EndReason::Model(StopReason::Refusal));
    assert_eq!(host.transcript(), ["user(hello)", "assistant(call 1)", "tool(1 error)"]);
}

#[test]
fn new_tools_take_effect_at_the_next_step() {
    let mut host = Harness::prompted(agent(vec![tool("old")]));
    host.give(Input::ToolsChanged(vec![std::sync::Arc::new(tool("new"))]));
    host.answer_calls(&[("1", "old", "{}")]);
    host.tool_ends("1", ToolOutput::text("still there"));
    assert_eq!(host.model_call().1.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["new"]);
    host.answer_calls(&[("2", "old", "{}"), ("3", "new", "{}")]);
    assert_eq!(host.handed_out(), ["1", "3"]);
}

#[test]
fn a_result_that_is_too_long_is_cut_for_the_model_and_kept_for_the_caller() {
    let mut agent = agent(vec![tool("a")]);
    agent.policy.max_result_characters = Some(300);
    let mut host = Harness::prompted(agent);
    host.answer_calls(&[("1", "a", "{}")]);
    host.tool_ends("1", ToolOutput::text("x".repeat(10_000)));
    assert!(result_text(&host, "1").len() < 400);
    assert_eq!(host.results()[0].output.as_ref().unwrap().as_str().len(), 10_002);
}

#[test]
fn an_answer_from_nowhere_is_refused() {
    let mut host = Harness::prompted(agent(vec![tool("a")]));
    let ended = Input::ToolEnded { call_id: CallId::new("1"), output: ToolOutput::text("?") };
    assert_eq!(host.try_give(ended.clone()), Err(InputError::Unexpected));
    host.answer_calls(&[("1", "a", "{}")]);
    assert_eq!(host.try_give(Input::Prompt(text("x"))), Err(InputError::Busy));
    host.give(ended);
}

#[test]
fn one_call_of_a_batch_may_end_the_run_where_the_policy_says_so() {
    for (terminate, calls) in [(Terminate::Any, 1), (Terminate::All, 2)] {
        let mut agent = agent(vec![tool("t")]);
        agent.policy.terminate = terminate;
        let mut host = Harness::prompted(agent);
        host.answer_calls(&[("1", "t", "{}"), ("2", "t", "{}")]);
        host.tool_ends("1", ToolOutput { terminate: true, ..ToolOutput::text("enough") });
        assert_eq!(host.model_calls(), 1, "the rest of the batch is done first");
        host.tool_ends("2", ToolOutput::text("ok"));
        assert_eq!(host.model_calls(), calls);
        assert_eq!(host.run_ends().len(), 2 - calls);
    }
}

#[test]
fn a_tool_has_no_more_calls_at_work_than_it_may_and_others_do_not_wait_for_it() {
    let mut host =
        Harness::prompted(agent(vec![ToolDefinition { max_concurrent: Some(2), ..tool("few") }, tool("many")]));
    host.answer_calls(&[
        ("1", "few", "{}"),
        ("2", "few", "{}"),
        ("3", "few", "{}"),
        ("4", "many", "{}"),
        ("5", "few", "{}"),
    ]);
    assert_eq!(host.handed_out(), ["1", "2", "4"]);
    host.tool_ends("2", ToolOutput::text("ok"));
    assert_eq!(host.handed_out(), ["1", "2", "4", "3"]);
    host.tool_ends("1", ToolOutput::text("ok"));
    assert_eq!(host.handed_out(), ["1", "2", "4", "3", "5"]);
}

#[test]
fn the_model_may_read_what_was_left_out_of_a_result() {
    let mut agent = agent(vec![tool("log")]);
    agent.policy.max_result_characters = Some(300);
    agent.policy.result_reader = true;
    let whole: String = (0..200).map(|number| format!("{number};")).collect();
    let mut host = Harness::prompted(agent.clone());
    assert!(host.model_call().1.tools.iter().any(|tool| tool.name == "readResult"));
    host.answer_calls(&[("1", "log", "{}")]);
    host.tool_ends("1", ToolOutput::text(whole.clone()));
    let told = content_in_short(&host.results()[0].content);
    assert!(told.contains("readResult with callId 1 and offset 200"), "{told}");
    let mut host = host.restored(agent);
    let (mut read, mut offset) = (String::new(), 0);
    for number in 0..9 {
        let input = format!(r#"{{"callId":"1","offset":{offset}}}"#);
        host.answer_calls(&[(&format!("r{number}"), "readResult", &input)]);
        let page = content_in_short(&host.results().last().unwrap().content);
        let Some((text, next)) = page.split_once("\n[more from offset ") else {
            read.push_str(&page);
            break;
        };
        read.push_str(text);
        offset = next.trim_end_matches(']').parse().unwrap();
    }
    assert_eq!(read, whole);
    host.answer_calls(&[
        ("x", "readResult", r#"{"callId":"?"}"#),
        ("y", "readResult", r#"{"callId":"1","offset":9999}"#),
    ]);
    assert!(host.results().iter().rev().take(2).all(|result| result.is_error));
}

/// A schema that cannot be used takes no tool away, and lets nothing through that brings down who reads it.
#[test]
fn an_input_that_is_nested_without_end_never_runs_whatever_the_schema() {
    for schema in [r#"{"type":"object"}"#, r#"{"type":5}"#, "{}"] {
        let deep = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        let mut host = Harness::prompted(agent(vec![ToolDefinition { input_schema: raw(schema), ..tool("search") }]));
        host.answer_calls(&[
            ("c1", "search", &deep(200_000)),
            ("c2", "search", &deep(128)),
            ("c3", "search", &deep(100)),
        ]);
        assert_eq!(host.handed_out(), ["c3"], "{schema}");
        assert!(result_text(&host, "c1").contains("more than 128 levels"), "{}", result_text(&host, "c1"));
        assert!(result_text(&host, "c2").contains("more than 128 levels"), "{schema}");
    }
}

#[test]
fn a_hook_may_change_the_input_and_ask_a_person_about_it() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
    let counts = || ToolDefinition { input_schema: raw(schema), has_validator: true, ..tool("counts") };
    let definition = || with_hooks(true, false, vec![counts()]);
    let validated =
        |host: &mut Harness| host.give(Input::InputValidated { call_id: CallId::new("1"), outcome: Ok(None) });
    let mut host = Harness::prompted(definition());
    host.answer_calls(&[("1", "counts", r#"{"n":1}"#)]);
    validated(&mut host);
    host.reply(Ok(HookReply::ChangeAndAsk(raw(r#"{"n":"5"}"#))));
    // Saved while the new input is checked, it is asked about all the same.
    let mut host = host.restored(definition());
    validated(&mut host);
    assert_eq!(host.status(), Status::Suspended);
    host.decide("1", Approval::Allow);
    assert_eq!(given(&host, "1"), r#"{"n":5}"#);

    let mut host = Harness::prompted(definition());
    host.answer_calls(&[("1", "counts", "{}")]);
    validated(&mut host);
    host.reply(Ok(HookReply::ChangeAndAsk(raw(r#"{"n":"five"}"#))));
    assert!(result_text(&host, "1").contains("/n"), "what does not fit is asked about by nobody");
}
