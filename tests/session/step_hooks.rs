//! The hooks before a model call.

use std::sync::Arc;

use crablet::agent::{Agent, ContextEdit, Effect, EndReason, HookQuestion, HookReply, Hooks, StepChange, ToolOutput};
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
    host.reply(Ok(HookReply::EditContext(vec![
        ContextEdit::Keep(vec![last.clone()]),
        ContextEdit::Insert(Some(last), note("summary")),
    ])));
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
            host.reply(Ok(HookReply::EditContext(vec![ContextEdit::Drop(crablet::model::MessageId::new("?"))])));
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

#[test]
fn messages_may_be_dropped_replaced_and_inserted_one_after_the_other() {
    let mut host = Harness::prompted(hooked(false, true));
    host.reply(Ok(HookReply::Continue));
    host.answer("first");
    host.give(crablet::agent::Input::Prompt(crate::harness::text("second prompt")));
    let id = |index: usize| host.session.history()[index].id.clone();
    let edits = vec![
        ContextEdit::Drop(id(0)),
        ContextEdit::Replace(id(1), note("in short")),
        ContextEdit::Insert(Some(id(2)), note("before")),
        ContextEdit::Insert(None, note("last")),
    ];
    host.reply(Ok(HookReply::EditContext(edits)));
    let sent: Vec<String> = host.model_call().1.messages.iter().map(|message| in_short(message)).collect();
    assert_eq!(sent, ["user(in short)", "user(before)", "user(second prompt)", "user(last)"]);
    let ids: std::collections::HashSet<_> =
        host.model_call().1.messages.iter().map(|message| message.id.clone()).collect();
    assert_eq!(ids.len(), 4);
}

#[test]
fn what_a_hook_spends_on_a_model_counts() {
    let mut agent = hooked(false, true);
    agent.policy.max_tokens = Some(100);
    let mut host = Harness::prompted(agent);
    let usage = crablet::model::Usage { input: Some(90), output: Some(9), ..Default::default() };
    let hook = host.hook();
    host.give(crablet::agent::Input::HookSpent { hook, usage });
    host.reply(Ok(HookReply::Continue));
    let late = crablet::agent::Input::HookSpent { hook, usage };
    assert_eq!(host.try_give(late), Err(crablet::agent::InputError::Unexpected), "the question is answered");
    host.answer_calls(&[("1", "a", "{}")]);
    host.tool_ends("1", ToolOutput::text("ok"));
    assert_eq!(host.run_end().reason, EndReason::Limit);
    assert_eq!(host.run_end().usage.total(), 99 + 15);
}

fn stoppable() -> Agent {
    Agent { hooks: Hooks { stop_when: true, ..Hooks::default() }, ..agent(vec![tool("a")]) }
}

#[test]
fn a_run_may_be_stopped_after_a_batch_of_calls() {
    let mut host = Harness::prompted(stoppable());
    for number in ["1", "2"] {
        assert_eq!(host.model_calls(), number.parse::<usize>().unwrap(), "the next step waits for the answer");
        host.answer_calls(&[(number, "a", "{}")]);
        host.tool_ends(number, ToolOutput::text(number));
        let asked = host.effects.iter().rev().find_map(|effect| match effect {
            Effect::AskHook { question: HookQuestion::StopWhen { step, messages }, .. } => {
                Some((*step, messages.iter().map(|message| in_short(message)).collect::<Vec<_>>()))
            }
            _ => None,
        });
        let (step, messages) = asked.unwrap();
        assert_eq!((step + 1).to_string(), number);
        assert_eq!((messages[0].as_str(), messages.len()), ("user(hello)", 1 + 2 * number.parse::<usize>().unwrap()));
        host.reply(Ok(if number == "1" { HookReply::Continue } else { HookReply::Stop }));
    }
    assert_eq!(host.run_end().reason, EndReason::Terminated);
    assert_eq!(host.model_calls(), 2);
    host.give(crablet::agent::Input::Prompt(crate::harness::text("again")));
    host.answer("an answer without calls is not asked about");
    assert_eq!(host.run_ends().len(), 2);
}

#[test]
fn a_stop_gives_way_to_what_the_user_wants_next() {
    let mut host = Harness::prompted(stoppable());
    host.answer_calls(&[("1", "a", "{}")]);
    host.tool_ends("1", ToolOutput::text("ok"));
    host.give(crablet::agent::Input::FollowUp(crate::harness::text("and then")));
    host.reply(Ok(HookReply::Stop));
    assert_eq!(host.transcript().last().unwrap(), "user(and then)");
    host.answer("done");
    assert_eq!(host.run_end().reason, EndReason::Model(StopReason::Stop));
}

#[test]
fn whether_to_stop_is_asked_again_after_a_restore_and_its_failure_ends_the_run() {
    let mut host = Harness::prompted(stoppable());
    host.answer_calls(&[("1", "a", "{}")]);
    host.tool_ends("1", ToolOutput::text("ok"));
    let mut restored = host.restored(stoppable());
    assert_eq!(restored.hook(), host.hook());
    restored.reply(Err("it threw".into()));
    assert!(restored.run_end().error.as_ref().unwrap().message().contains("stopWhen"));
    let mut without = host.restored(agent(vec![tool("a")]));
    without.answer("nobody is asked any more");
    without.run_end();
}
