//! Whatever comes in whatever order: no panic, exactly one `run-end` a run, one result a call, and a history that every
//! provider takes.

use crablet::agent::{
    Agent, Approval, Effect, EventKind, HookId, HookReply, Hooks, Input, ModelCallId, Session, Status, TimerId,
    ToolDefinition, ToolOutput,
};
use crablet::model::{Body, CallId, ModelEvent, Part, StopReason, Usage};
use crablet::{Error, ErrorKind};
use proptest::prelude::*;

use crate::harness::{Harness, agent, call_block, raw, stop, text, text_block, tool};
use crate::rebuild;

fn every_kind_of_tool() -> Vec<ToolDefinition> {
    vec![
        tool("plain"),
        ToolDefinition { sequential: true, timeout: Some(500), ..tool("alone") },
        ToolDefinition { needs_approval: true, ..tool("guarded") },
        ToolDefinition { has_validator: true, client_side: true, ..tool("client") },
    ]
}

/// The tools, and an agent that has them too.
fn and_a_sub_agent() -> Vec<ToolDefinition> {
    let hooks = Hooks { before_tool_call: true, stop_when: true, ..Hooks::default() };
    let helper = Agent { hooks, ..agent(every_kind_of_tool()) };
    let mut tools = every_kind_of_tool();
    tools.push(ToolDefinition {
        timeout: Some(5_000),
        max_concurrent: Some(2),
        ..ToolDefinition::sub_agent("helper", "Helps.", std::sync::Arc::new(helper))
    });
    tools
}

pub(crate) fn agents() -> impl Strategy<Value = Agent> {
    (any::<bool>(), any::<bool>(), any::<bool>(), 1..4u32).prop_map(|(before, after, has_store, max_steps)| {
        let hooks = Hooks {
            before_tool_call: before,
            after_tool_call: after,
            prepare_step: before && after,
            prepare_context: after && has_store,
            stop_when: before,
            ..Hooks::default()
        };
        let mut agent = Agent { hooks, has_store, ..agent(and_a_sub_agent()) };
        agent.policy.max_steps = max_steps;
        agent.policy.timeout = Some(600_000);
        agent
    })
}

/// Ids are small, so that most inputs meet something that is open and some meet nothing.
pub(crate) fn inputs() -> impl Strategy<Value = Input> {
    let call = || (0..6u32).prop_map(|number| CallId::new(format!("c{number}")));
    let number = || 1..40u64;
    let model_call = move || number().prop_map(ModelCallId);
    prop_oneof![
        2 => Just(Input::Prompt(text("hello"))),
        1 => Just(Input::Steer(text("wait"))),
        1 => Just(Input::FollowUp(text("then"))),
        1 => Just(Input::Abort { reason: None }),
        8 => (model_call(), model_events()).prop_map(|(call, events)| Input::ModelEvents { call, events }),
        4 => model_call().prop_map(|call| Input::ModelEnded { call, outcome: Ok(()) }),
        1 => model_call().prop_map(|call| {
            Input::ModelEnded { call, outcome: Err(Error::new(ErrorKind::Overloaded, "busy")) }
        }),
        4 => call().prop_map(|call_id| Input::ToolEnded { call_id, output: ToolOutput::text("ok") }),
        1 => call().prop_map(|call_id| Input::ToolProgress { call_id, data: raw("1") }),
        2 => call().prop_map(|call_id| Input::InputValidated { call_id, outcome: Ok(Some(raw("{}"))) }),
        1 => call().prop_map(|call_id| Input::InputValidated { call_id, outcome: Err("no".into()) }),
        2 => call().prop_map(|call_id| Input::Approval { call_id, decision: Approval::Allow, input_hash: None }),
        1 => call().prop_map(|call_id| Input::Approval { call_id, decision: Approval::Deny { reason: None }, input_hash: None }),
        4 => (number(), hook_replies()).prop_map(|(hook, reply)| Input::HookReplied { hook: HookId(hook), reply }),
        1 => number().prop_map(|hook| Input::HookSpent { hook: HookId(hook), usage: Usage::default() }),
        2 => number().prop_map(|timer| Input::Timer { timer: TimerId(timer) }),
        4 => (1..9u64).prop_map(|seq| Input::CheckpointSaved { seq }),
        1 => (1..9u64).prop_map(|seq| {
            Input::CheckpointFailed { seq, error: Error::new(ErrorKind::Storage, "full") }
        }),
    ]
}

fn model_events() -> impl Strategy<Value = Vec<ModelEvent>> {
    let calls = prop::collection::vec(
        (0..6u32, prop::sample::select(vec!["plain", "alone", "guarded", "client", "helper", "helper", "none"])),
        0..3,
    );
    let whole = calls.prop_map(|calls| {
        let mut events = text_block(0, "words");
        for ((id, name), block) in calls.into_iter().zip(1..) {
            events.extend(call_block(block, &format!("c{id}"), name, r#"{"prompt":"help"}"#));
        }
        events.extend(stop(StopReason::Stop));
        events
    });
    let partial = Just(vec![
        ModelEvent::TextStart { block: 0 },
        ModelEvent::TextDelta { block: 0, text: "wor".into() },
        ModelEvent::ToolInputStart { block: 1, id: "c0".into(), name: "plain".into() },
    ]);
    let stray = Just(vec![
        ModelEvent::ToolInputDelta { block: 7, json: "}".into() },
        ModelEvent::TextEnd { block: 9, replay: None },
    ]);
    prop_oneof![4 => whole, 1 => partial, 1 => stray]
}

fn hook_replies() -> impl Strategy<Value = Result<HookReply, String>> {
    prop_oneof![
        4 => Just(Ok(HookReply::Continue)),
        1 => Just(Ok(HookReply::ChangeInput(raw("[]")))),
        1 => Just(Ok(HookReply::ChangeResult(ToolOutput::text("changed")))),
        1 => Just(Ok(HookReply::Ask)),
        1 => Just(Ok(HookReply::Stop)),
        1 => Just(Ok(HookReply::EditContext(Vec::new()))),
        1 => Just(Err("it threw".into())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_inputs_ends_in_one_run_end(agent in agents(), inputs in prop::collection::vec((inputs(), 0..2_000u64), 0..120)) {
        let mut host = Harness::new(agent);
        for (input, wait) in inputs {
            host.now = host.now.after(wait);
            let before = host.session.snapshot();
            if host.try_give(input).is_err() {
                prop_assert_eq!(host.session.snapshot(), before, "a refused input changes nothing");
            }
        }
        host.give(Input::Abort { reason: None });
        prop_assert_eq!(host.status(), Status::Idle);
        prop_assert!(host.timers.is_empty(), "no timer outlives its run");
        check_events(&host)?;
        check_history(&host)?;
        prop_assert_eq!(rebuild::transcript(&host.events), host.transcript());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Damage is found or harmless: no snapshot, whatever is in it, makes a session that panics or hangs.
    #[test]
    fn a_damaged_snapshot_is_refused_or_works(
        agent in agents(),
        inputs in prop::collection::vec(inputs(), 0..60),
        damage in prop::collection::vec((any::<prop::sample::Index>(), damaged_bytes()), 1..4),
    ) {
        let mut host = Harness::new(agent.clone());
        for input in inputs {
            let _refused = host.try_give(input);
        }
        let mut bytes = host.session.snapshot().into_bytes();
        for (place, replacement) in damage {
            let at = place.index(bytes.len());
            let end = (at + replacement.len()).min(bytes.len());
            bytes.splice(at..end, replacement.bytes());
        }
        let damaged = String::from_utf8_lossy(&bytes);
        let Ok(session) = Session::restore(&damaged, std::sync::Arc::new(agent), host.now) else { return Ok(()) };
        let mut host = Harness::of(session, host.now);
        host.pass(10_000_000);
        host.give(Input::Abort { reason: None });
        prop_assert_eq!(host.status(), Status::Idle);
        host.give(Input::Prompt(text("and now?")));
        prop_assert_eq!(host.status(), Status::Running);
    }
}

/// What may stand in a snapshot at a place where it should not.
fn damaged_bytes() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "0",
        "9",
        "99999999999",
        "-",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "x",
        "true",
    ])
}

fn check_events(host: &Harness) -> Result<(), TestCaseError> {
    let mut is_running = false;
    for event in &host.events {
        match event.kind {
            EventKind::RunStart => {
                prop_assert!(!is_running);
                is_running = true;
            }
            EventKind::RunEnd(_) => {
                prop_assert!(is_running);
                is_running = false;
            }
            _ => prop_assert!(is_running, "nothing after the end: {:?}", host.names()),
        }
    }
    prop_assert!(!is_running);
    let calls = host.effects.iter().filter(|effect| matches!(effect, Effect::CallModel { .. })).count();
    prop_assert!(calls <= host.names().len());
    Ok(())
}

/// Each answer with calls is followed by one result for each, in order, and no call id comes twice.
pub(crate) fn check_history(host: &Harness) -> Result<(), TestCaseError> {
    let mut seen = std::collections::HashSet::new();
    let mut expected: Option<Vec<CallId>> = None;
    for message in host.session.history() {
        match &message.body {
            Body::Assistant(assistant) => {
                prop_assert_eq!(&expected, &None);
                prop_assert!(!assistant.content.is_empty());
                let calls: Vec<CallId> = assistant
                    .content
                    .iter()
                    .filter_map(|part| match part {
                        Part::ToolCall(call) => Some(call.call_id.clone()),
                        _ => None,
                    })
                    .collect();
                for call in &calls {
                    prop_assert!(seen.insert(call.clone()), "{} comes twice", call);
                }
                expected = Some(calls).filter(|calls| !calls.is_empty());
            }
            Body::Tool(tool) => {
                let results: Vec<CallId> = tool.results.iter().map(|result| result.call_id.clone()).collect();
                prop_assert_eq!(expected.take(), Some(results));
            }
            _ => prop_assert_eq!(&expected, &None),
        }
    }
    prop_assert_eq!(expected, None);
    Ok(())
}
