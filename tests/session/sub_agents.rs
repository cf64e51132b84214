//! Tools that are agents: sessions nested inside the calls of another one.

use std::collections::HashSet;
use std::sync::Arc;

use crablet::agent::{
    Agent, Approval, Effect, EndReason, Event, EventKind, HookReply, Hooks, Input, Status, ToolDefinition, ToolOutput,
};
use crablet::model::{CallId, ModelEvent, StopReason, Usage};

use crate::harness::{Harness, agent, content_in_short, raw, stop, text_block, tool};

/// An agent whose tool `helper` is another agent, which has these tools.
fn helped(tools: Vec<ToolDefinition>) -> Agent {
    helped_by(agent(tools))
}

fn helped_by(helper: Agent) -> Agent {
    agent(vec![ToolDefinition::sub_agent("helper", "Helps.", Arc::new(helper)), tool("own")])
}

/// A session whose model has just given the helper a task.
fn delegating(agent: Agent) -> Harness {
    let mut host = Harness::prompted(agent);
    host.answer_calls(&[("h", "helper", r#"{"prompt":"look it up"}"#)]);
    host
}

/// The events of sub-agents at any depth, without those around them.
fn nested(host: &Harness) -> Vec<&Event> {
    fn innermost<'events>(event: &'events Event, into: &mut Vec<&'events Event>) {
        if let EventKind::SubAgentEvent { event, .. } = &event.kind {
            into.push(event);
            innermost(event, into);
        }
    }
    let mut found = Vec::new();
    for event in &host.events {
        innermost(event, &mut found);
    }
    found
}

fn nested_names(host: &Harness) -> Vec<&'static str> {
    nested(host).iter().map(|event| event.kind.name()).collect()
}

/// The call of the sub-agent's model, whose id the session made.
fn nested_call(host: &Harness) -> CallId {
    let call = nested(host).iter().rev().find_map(|event| match &event.kind {
        EventKind::ToolCall { call_id, .. } => Some(call_id.clone()),
        _ => None,
    });
    call.expect("the sub-agent made a call")
}

#[test]
fn the_answer_of_a_sub_agent_is_the_result_of_its_call() {
    let mut host = delegating(helped(vec![tool("search")]));
    let (_, request) = host.model_call();
    assert_eq!(request.messages.len(), 1, "it knows nothing but its prompt");
    assert_eq!(request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["search"]);
    host.answer_calls(&[("s", "search", "{}")]);
    let call_id = nested_call(&host);
    host.give(Input::ToolProgress { call_id: call_id.clone(), data: raw("1") });
    host.tool_ends(call_id.as_str(), ToolOutput::text("found"));
    host.answer("it is 42");
    assert_eq!(content_in_short(&host.results()[0].content), "it is 42");
    let details: serde_json::Value = host.results()[0].details.as_ref().unwrap().read().unwrap();
    assert_eq!(details["stopReason"], "stop");
    assert_eq!(details["usage"]["inputTokens"], 20);
    host.answer("done");
    assert_eq!(
        host.transcript(),
        ["user(hello)", "assistant(call h)", "tool(h ok)", "assistant(done)"],
        "the history has the result, the events have the rest"
    );
    let names = nested_names(&host);
    assert_eq!((names[0], *names.last().unwrap()), ("run-start", "run-end"));
    assert!(names.contains(&"tool-progress") && names.contains(&"text-delta"));
}

#[test]
fn the_tokens_of_a_sub_agent_count_in_the_step_and_the_run() {
    let mut host = delegating(helped(vec![]));
    host.answer("found");
    host.answer("done");
    assert_eq!(host.run_end().usage, Usage { input: Some(30), output: Some(15), ..Usage::default() });
    let steps: Vec<Option<u64>> = host
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::StepEnd { usage, .. } => Some(usage.input),
            _ => None,
        })
        .collect();
    assert_eq!(steps, [Some(20), Some(10)]);
}

#[test]
fn the_token_budget_of_the_run_stops_its_sub_agents() {
    let mut agent = helped(vec![tool("search")]);
    agent.policy.max_tokens = Some(45);
    let mut host = Harness::prompted(agent);
    let task = r#"{"prompt":"look it up"}"#;
    host.answer_calls(&[("1", "helper", task), ("2", "helper", task)]);
    let calls = host.model_calls();
    for effect in host.effects.clone() {
        if let Effect::CallModel { call, .. } = effect
            && host.try_give(Input::ModelEvents { call, events: text_block(0, "half") }).is_ok()
        {
            let events = [crate::harness::call_block(1, "s", "search", "{}"), stop(StopReason::ToolUse)].concat();
            host.give(Input::ModelEvents { call, events });
            host.give(Input::ModelEnded { call, outcome: Ok(()) });
        }
    }
    let searches: Vec<String> = host.handed_out().iter().map(|id| id.to_string()).collect();
    assert_eq!(searches.len(), 2);
    for call_id in searches {
        host.tool_ends(&call_id, ToolOutput::text("found"));
    }
    assert_eq!(host.model_calls(), calls, "45 tokens are spent by then: neither sub-agent goes on, nor does the run");
    assert_eq!(host.run_end().reason, EndReason::Limit);
    assert!(
        host.results().iter().filter(|result| content_in_short(&result.content).contains("reached a limit")).count()
            == 2
    );
}

#[test]
fn an_approval_within_suspends_the_run_and_survives_the_process() {
    let guarded = ToolDefinition { needs_approval: true, ..tool("delete") };
    let definition = || Agent { has_store: true, ..helped(vec![guarded.clone()]) };
    let mut host = Harness::prompted(definition());
    host.save();
    host.answer_calls(&[("h", "helper", r#"{"prompt":"clean up"}"#)]);
    host.save();
    host.answer_calls(&[("d", "delete", "{}")]);
    assert_eq!(host.status(), Status::Running, "it is saved before anybody is told to wait");
    host.save();
    host.save();
    assert_eq!(host.status(), Status::Suspended);
    assert!(nested_names(&host).ends_with(&["run-suspended"]));
    assert_eq!(host.names().last(), Some(&"run-suspended"));

    let mut host = host.restored(definition());
    assert_eq!(nested_names(&host)[..2], ["run-start", "approval-request"]);
    assert_eq!(host.effects.iter().filter(|effect| matches!(effect, Effect::AskApproval { .. })).count(), 1);
    let asked = nested(&host).iter().find_map(|event| match &event.kind {
        EventKind::ApprovalRequest { call_id, .. } => Some(call_id.clone()),
        _ => None,
    });
    let asked = asked.unwrap();
    host.decide(asked.as_str(), Approval::Allow);
    assert_eq!(host.status(), Status::Running);
    assert!(host.handed_out().is_empty(), "its start is saved first");
    host.save();
    assert_eq!(host.handed_out(), [asked.as_str()]);
    host.tool_ends(asked.as_str(), ToolOutput::text("deleted"));
    host.save();
    host.answer("all is clean");
    host.save();
    host.save();
    host.answer("done");
    host.save();
    assert_eq!(host.run_end().text, "done");
}

#[test]
fn a_denial_within_is_for_the_sub_agent_to_read() {
    let mut host = delegating(helped(vec![ToolDefinition { needs_approval: true, ..tool("delete") }]));
    host.answer_calls(&[("d", "delete", "{}")]);
    assert_eq!(host.status(), Status::Suspended);
    let call_id = nested_call(&host);
    host.decide(call_id.as_str(), Approval::Deny { reason: None });
    assert_eq!(host.status(), Status::Running);
    host.answer("I may not");
    host.answer("it may not");
    assert_eq!(host.run_end().reason, EndReason::Model(StopReason::Stop));
}

#[test]
fn a_tool_within_that_had_started_is_not_run_again() {
    let definition = || Agent { has_store: true, ..helped(vec![tool("pay")]) };
    let mut host = Harness::prompted(definition());
    host.save();
    host.answer_calls(&[("h", "helper", r#"{"prompt":"pay"}"#)]);
    host.save();
    host.answer_calls(&[("p", "pay", "{}")]);
    assert!(host.handed_out().is_empty());
    host.save();
    assert_eq!(host.handed_out().len(), 1);
    let restored = host.restored(definition());
    assert!(restored.handed_out().is_empty());
    let results: Vec<bool> = nested(&restored)
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolResult(result) => {
                Some(result.is_error && content_in_short(&result.content).contains("interrupted"))
            }
            _ => None,
        })
        .collect();
    assert_eq!(results, [true]);
}

#[test]
fn a_call_of_its_model_is_made_again_after_a_restore() {
    let mut host = delegating(helped(vec![]));
    host.stream(text_block(0, "half an an"));
    let mut host = host.restored(helped(vec![]));
    assert_eq!(nested_names(&host), ["run-start", "step-retry"]);
    assert_eq!(host.names()[0], "run-start");
    host.answer("an answer");
    host.answer("done");
    assert_eq!(host.transcript().last().unwrap(), "assistant(done)");
}

#[test]
fn an_abort_closes_everything_within_first() {
    let mut host = delegating(helped(vec![]));
    host.stream(vec![ModelEvent::TextStart { block: 0 }, ModelEvent::TextDelta { block: 0, text: "half".into() }]);
    host.forget();
    host.give(Input::Abort { reason: None });
    assert_eq!(host.names(), ["sub-agent-event", "sub-agent-event", "tool-result", "run-end"]);
    assert_eq!(nested_names(&host), ["text-end", "run-end"]);
    assert!(host.effects.iter().any(|effect| matches!(effect, Effect::CancelModel { .. })));
    assert_eq!(host.transcript(), ["user(hello)", "assistant(call h)", "tool(h error)"]);
    assert!(host.timers.is_empty(), "{:?}", host.timers);
    host.give(Input::Prompt(crate::harness::text("again")));
}

#[test]
fn a_time_limit_of_the_tool_aborts_its_agent() {
    let mut helper = ToolDefinition::sub_agent("helper", "Helps.", Arc::new(agent(vec![tool("slow")])));
    helper.timeout = Some(500);
    let mut host = Harness::prompted(agent(vec![helper]));
    host.answer_calls(&[("h", "helper", r#"{"prompt":"look"}"#)]);
    host.answer_calls(&[("s", "slow", "{}")]);
    let call_id = nested_call(&host).to_string();
    host.pass(500);
    assert_eq!(host.cancelled(), [call_id.as_str()]);
    assert!(content_in_short(&host.results()[0].content).contains("500 ms"));
    host.answer("it took too long");
    assert_eq!(host.run_end().usage.input, Some(30), "what it took counts");
}

#[test]
fn sub_agents_at_work_at_once_have_ids_of_their_own() {
    let mut host = Harness::prompted(helped(vec![tool("search")]));
    let task = r#"{"prompt":"look it up"}"#;
    host.answer_calls(&[("1", "helper", task), ("2", "helper", task)]);
    let calls: Vec<_> = host
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::CallModel { call, .. } => Some(*call),
            _ => None,
        })
        .collect();
    assert_eq!(calls.iter().collect::<HashSet<_>>().len(), 3);
    for call in &calls[1..] {
        let events = [crate::harness::call_block(0, "same", "search", "{}"), stop(StopReason::ToolUse)].concat();
        host.give(Input::ModelEvents { call: *call, events });
        host.give(Input::ModelEnded { call: *call, outcome: Ok(()) });
    }
    let ids: HashSet<String> = host.handed_out().iter().map(|id| id.to_string()).collect();
    assert_eq!(ids.len(), 2, "though both models gave the same id");
    let timers: HashSet<_> = host.timers.iter().map(|(id, _)| id).collect();
    assert_eq!(timers.len(), host.timers.len());
}

#[test]
fn a_sub_agent_may_have_sub_agents() {
    let innermost = Agent { hooks: Hooks { before_tool_call: true, ..Hooks::default() }, ..agent(vec![tool("leaf")]) };
    let middle = agent(vec![ToolDefinition::sub_agent("inner", "Helps the helper.", Arc::new(innermost))]);
    let mut host = delegating(helped_by(middle));
    host.answer_calls(&[("i", "inner", r#"{"prompt":"deeper"}"#)]);
    host.answer_calls(&[("l", "leaf", "{}")]);
    host.reply(Ok(HookReply::Continue));
    let mut host = host.restored(Agent::clone(host.session.agent()));
    assert!(host.handed_out().is_empty(), "a tool at work is not run again, at any depth");
    host.answer("innermost");
    host.answer("middle");
    host.answer("outer");
    assert_eq!(host.run_end().text, "outer");
    let deepest = nested(&host).iter().filter(|event| event.kind.name() == "run-end").count();
    assert_eq!(deepest, 2);
}

#[test]
fn an_effect_is_wrapped_once_for_each_level() {
    let middle = agent(vec![ToolDefinition::sub_agent("inner", "Helps the helper.", Arc::new(agent(vec![])))]);
    let agent = Arc::new(helped_by(middle));
    let mut session = crablet::agent::Session::new(agent, 1);
    let now = crablet::Millis(0);
    session.handle(now, Input::Prompt(crate::harness::text("go"))).unwrap();
    let mut path = Vec::new();
    for name in ["helper", "inner"] {
        let mut call = None;
        while let Some(effect) = session.poll_effect() {
            if let Effect::CallModel { call: id, .. } = effect.innermost() {
                call = Some(*id);
            }
        }
        let events =
            [crate::harness::call_block(0, "x", name, r#"{"prompt":"go on"}"#), stop(StopReason::ToolUse)].concat();
        session.handle(now, Input::ModelEvents { call: call.unwrap(), events }).unwrap();
        session.handle(now, Input::ModelEnded { call: call.unwrap(), outcome: Ok(()) }).unwrap();
    }
    while let Some(effect) = session.poll_effect() {
        let mut effect = &effect;
        while let Effect::OfSubAgent { tool, effect: inner } = effect {
            path.push(tool.name.clone());
            effect = inner;
        }
    }
    assert_eq!(path, ["helper", "inner"]);
}

#[test]
fn what_goes_wrong_within_is_an_error_for_the_model() {
    let mut helper = agent(vec![]);
    helper.policy.max_attempts = 1;
    let mut host = delegating(helped_by(helper));
    host.fail_stream(crablet::Error::new(crablet::ErrorKind::Overloaded, "busy"));
    assert!(host.results()[0].is_error);
    assert_eq!(content_in_short(&host.results()[0].content), "helper failed: busy");
    host.answer("no luck");
    assert_eq!(host.run_end().error, None);

    let mut host = delegating(helped(vec![]));
    let mut restored = host.restored(agent(vec![tool("helper")]));
    assert!(restored.results()[0].is_error, "the tool is no agent any more");
    restored.answer("what was lost is lost");
    host.answer_calls(&[("x", "nothing", "{}")]);
    host.answer("there is no such tool");
    host.answer("done");
    assert_eq!(host.transcript().last().unwrap(), "assistant(done)");
}

#[test]
fn results_of_sub_agents_go_through_the_hooks_of_the_call() {
    let mut definition = helped(vec![]);
    definition.hooks.after_tool_call = true;
    let mut host = delegating(definition);
    host.answer("raw");
    host.reply(Ok(HookReply::ChangeResult(ToolOutput::text("polished"))));
    assert_eq!(content_in_short(&host.results()[0].content), "polished");
}

#[test]
fn an_answer_that_nothing_within_waits_for_changes_nothing() {
    let mut host = Harness::prompted(helped(vec![tool("search")]));
    let task = r#"{"prompt":"look it up"}"#;
    host.answer_calls(&[("1", "helper", task), ("2", "helper", task)]);
    host.answer_calls(&[("s", "search", "{}")]);
    let call_id = nested_call(&host);
    let before = host.session.snapshot();
    assert!(host.try_give(Input::Approval { call_id, decision: Approval::Allow, input_hash: None }).is_err());
    assert_eq!(host.session.snapshot(), before);
}
