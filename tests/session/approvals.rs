//! Approvals as data: bound to what was asked about, limited in time, the same after a restore.

use crablet::agent::{
    Agent, Approval, Effect, EventKind, HookReply, Hooks, Input, InputError, InputHash, Status, ToolDefinition,
    ToolOutput,
};
use crablet::model::CallId;

use crate::harness::{Harness, agent, content_in_short, raw, tool};

fn guarded() -> Agent {
    agent(vec![ToolDefinition { needs_approval: true, ..tool("remove") }, tool("plain")])
}

fn asked(host: &Harness) -> Vec<(String, InputHash)> {
    let asked = host.events.iter().filter_map(|event| match &event.kind {
        EventKind::ApprovalRequest { call_id, input_hash, .. } => Some((call_id.to_string(), *input_hash)),
        _ => None,
    });
    asked.collect()
}

fn decide(host: &mut Harness, decision: Approval, input_hash: InputHash) -> Result<(), InputError> {
    host.try_give(Input::Approval { call_id: CallId::new("1"), decision, input_hash: Some(input_hash) })
}

fn told(host: &Harness) -> String {
    content_in_short(&host.results()[0].content)
}

#[test]
fn a_decision_made_elsewhere_holds_for_the_input_it_was_made_about() {
    let mut host = Harness::prompted(guarded());
    host.answer_calls(&[("1", "remove", r#"{"path":"/tmp"}"#)]);
    let (_, hash) = asked(&host)[0].clone();
    assert_eq!(hash, InputHash::of(&raw(r#"{"path":"/tmp"}"#)));
    let mut restored = host.restored(guarded());
    assert_eq!(asked(&restored), asked(&host), "asked again about the same");
    let other = InputHash::of(&raw(r#"{"path":"/"}"#));
    assert_eq!(decide(&mut restored, Approval::Allow, other), Err(InputError::OtherInput));
    assert!(restored.handed_out().is_empty());
    decide(&mut restored, Approval::Allow, hash).unwrap();
    assert_eq!(restored.handed_out(), ["1"]);
}

#[test]
fn a_decision_about_what_a_hook_has_changed_since_is_refused() {
    let hooked = || Agent { hooks: Hooks { before_tool_call: true, ..Hooks::default() }, ..guarded() };
    let mut host = Harness::prompted(hooked());
    host.answer_calls(&[("1", "remove", r#"{"path":"/tmp"}"#)]);
    let mut before = host.restored(hooked());
    host.reply(Ok(HookReply::Continue));
    let (_, decided_about) = asked(&host)[0].clone();
    before.reply(Ok(HookReply::ChangeInput(raw(r#"{"path":"/home"}"#))));
    assert_eq!(decide(&mut before, Approval::Allow, decided_about), Err(InputError::OtherInput));
    let (_, current) = asked(&before)[0].clone();
    decide(&mut before, Approval::Allow, current).unwrap();
    let ran = before.effects.iter().find_map(|effect| match effect {
        Effect::CallTool { input, .. } => Some(input.as_str().to_owned()),
        _ => None,
    });
    assert_eq!(ran.as_deref(), Some(r#"{"path":"/home"}"#));
}

#[test]
fn a_denial_is_a_result_that_the_model_sees_and_touches_only_its_call() {
    let mut host = Harness::prompted(guarded());
    host.answer_calls(&[("1", "remove", "{}"), ("2", "plain", "{}")]);
    let mut restored = host.restored(guarded());
    assert_eq!(restored.status(), Status::Suspended, "the interrupted call has its result");
    restored.decide("1", Approval::Deny { reason: Some("not today".into()) });
    let texts: Vec<String> = restored.results().iter().map(|result| content_in_short(&result.content)).collect();
    assert!(texts.iter().any(|text| text.contains("not allow") && text.contains("not today")), "{texts:?}");
    assert_eq!(restored.model_calls(), 1, "the model goes on with it");
}

#[test]
fn an_approval_that_nobody_gives_expires_also_after_a_restore() {
    let limited = || {
        let mut agent = guarded();
        agent.policy.approval_timeout = Some(60_000);
        agent
    };
    let mut host = Harness::prompted(limited());
    host.answer_calls(&[("1", "remove", "{}")]);
    host.pass(50_000);
    assert_eq!(host.status(), Status::Suspended);
    let mut restored = host.restored(limited());
    assert_eq!(restored.timers, host.timers, "the same deadline");
    restored.pass(9_999);
    assert!(restored.results().is_empty());
    restored.pass(1);
    assert!(told(&restored).contains("Nobody decided within 60000 ms"), "{}", told(&restored));
    assert!(matches!(
        restored.events.iter().rev().find_map(|event| match event.kind {
            EventKind::ApprovalResponse { allowed, .. } => Some(allowed),
            _ => None,
        }),
        Some(false)
    ));
    assert_eq!(restored.model_calls(), 1);
    let late = Input::Approval { call_id: CallId::new("1"), decision: Approval::Allow, input_hash: None };
    assert_eq!(restored.try_give(late), Err(InputError::Unexpected));
    restored.answer("then not");
    assert!(restored.timers.is_empty());
}

#[test]
fn a_decision_ends_the_waiting() {
    let mut agent = guarded();
    agent.policy.approval_timeout = Some(60_000);
    let mut host = Harness::prompted(agent);
    host.answer_calls(&[("1", "remove", "{}")]);
    host.decide("1", Approval::Allow);
    assert!(host.timers.is_empty());
    host.pass(100_000);
    host.tool_ends("1", ToolOutput::text("removed"));
    assert!(!host.results()[0].is_error);
}
