//! The hooks before a model call.

use std::sync::Arc;

use crablet::agent::{Agent, ContextItem, Effect, EndReason, HookQuestion, HookReply, Hooks, StepChange, ToolOutput};
use crablet::model::{Body, Content, Model, Origin, StopReason, ToolChoice, UserMessage};
use crablet::{Error, ErrorKind};

use crate::harness::{Harness, agent, in_short, tool};

fn hooked(step: bool, context: bool) -> Agent {
    let hooks = Hooks { prepare_step: step, prepare_context: context, ..Hooks::default() };
    Agent { hooks, ..agent(vec![tool("a"), tool("b")]) }
}

fn note(words: &str) -> Body {
    Body::User(UserMessage { content: vec![Content::Text(words.into())], origin: Origin::Nudge })
}

#[test]
fn a_step_may_have_another_model_and_fewer_tools() {
    let mut host = Harness::prompted(hooked(true, false));
    assert_eq!(host.model_calls(), 0);
    let model = Model { id: "other".into(), ..host.session.agent().model.clone() };
    host.reply(Ok(HookReply::ChangeStep(StepChange {
        model: Some(model),
        active_tools: Some(vec!["b".into()]),
        tool_choice: Some(ToolChoice::Required),
        ..StepChange::default()
    })));
    let (_, request) = host.model_call();
    assert_eq!(&*request.model.id, "other");
    assert_eq!(request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(request.options.tool_choice, Some(ToolChoice::Required));

    host.answer_calls(&[("1", "a", "{}"), ("2", "b", "{}")]);
    assert_eq!(host.handed_out(), ["2"], "a tool that is not active in the step does not run");
    let Body::Assistant(answer) = &host.session.history()[1].body else { panic!() };
    assert_eq!(&*answer.model.id, "other", "the history says who answered");

    host.tool_ends("2", ToolOutput::text("ok"));
    host.reply(Ok(HookReply::Continue));
    let (_, request) = host.model_call();
    assert_eq!((&*request.model.id, request.tools.len()), ("scripted", 2), "the change was for one step");
}

#[test]
fn the_messages_of_a_call_may_be_other_than_the_history() {
    let mut host = Harness::prompted(hooked(false, true));
    host.reply(Ok(HookReply::Continue));
    host.answer("first");
    host.give(crablet::agent::Input::Prompt(crate::harness::text("second prompt")));
    let last = host.session.history().last().unwrap().id.clone();
    host.reply(Ok(HookReply::ChangeContext(vec![ContextItem::Insert(note("summary")), ContextItem::Keep(last)])));
    let sent: Vec<String> = host.model_call().1.messages.iter().map(|message| in_short(message)).collect();
    assert_eq!(sent, ["user(summary)", "user(second prompt)"]);
    let (_, request) = host.model_call();
    assert!(Arc::ptr_eq(&request.messages[1], host.session.history().last().unwrap()), "kept, not copied");
    host.answer("second");
    assert_eq!(host.transcript().len(), 4, "the history stays as it is");
}

#[test]
fn the_context_is_asked_about_with_what_the_step_says() {
    let mut host = Harness::prompted(hooked(true, true));
    let change = StepChange { instructions: Some("be brief".into()), ..StepChange::default() };
    host.reply(Ok(HookReply::ChangeStep(change)));
    let asked = host.effects.iter().any(|effect| {
        matches!(effect, Effect::AskHook { question: HookQuestion::PrepareContext { request, step: 0 }, .. }
            if request.instructions.as_deref() == Some("be brief"))
    });
    assert!(asked && host.model_calls() == 0);
    host.reply(Ok(HookReply::Continue));
    assert_eq!(host.model_calls(), 1);
}

#[test]
fn further_attempts_of_a_step_do_not_ask_again() {
    let mut host = Harness::prompted(hooked(true, true));
    host.reply(Ok(HookReply::Continue));
    host.reply(Ok(HookReply::Continue));
    host.fail_stream(Error::new(ErrorKind::Overloaded, "busy"));
    host.pass(60_000);
    assert_eq!(host.model_calls(), 2);
}

#[test]
fn a_step_that_cannot_be_prepared_ends_the_run() {
    let mut agent = hooked(true, true);
    agent.policy.hook_timeout = Some(1_000);
    let failing: [fn(&mut Harness); 4] = [
        |host| host.reply(Err("it threw".into())),
        |host| host.reply(Ok(HookReply::Deny("no".into()))),
        |host| host.pass(1_000),
        |host| {
            host.reply(Ok(HookReply::Continue));
            host.reply(Ok(HookReply::ChangeContext(vec![ContextItem::Keep(crablet::model::MessageId::new("?"))])));
        },
    ];
    for fail in failing {
        let mut host = Harness::prompted(agent.clone());
        fail(&mut host);
        let end = host.run_end();
        assert_eq!(end.reason, EndReason::Model(StopReason::Error));
        let error = end.error.as_ref().unwrap();
        assert!(error.kind() == ErrorKind::InvalidInput && error.message().contains("hook prepare"), "{error}");
        assert_eq!(host.model_calls(), 0);
        assert!(host.timers.is_empty());
    }
}

#[test]
fn a_restored_session_asks_the_hooks_again() {
    let mut host = Harness::prompted(hooked(true, true));
    let asked = host.hook();
    let restored = host.restored(hooked(true, true));
    assert_eq!(restored.hook(), asked);

    host.reply(Ok(HookReply::Continue));
    host.reply(Ok(HookReply::Continue));
    let mut restored = host.restored(hooked(true, true));
    assert_eq!(restored.names(), ["run-start", "step-retry"]);
    restored.reply(Ok(HookReply::Continue));
    restored.reply(Ok(HookReply::Continue));
    assert_eq!(restored.model_calls(), 1);
}
