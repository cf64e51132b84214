//! A prompt, the model's answer, and the end of the run.

use crablet::agent::{EndReason, Input, InputError, Status, ToolOutput, TreeError};
use crablet::model::{MessageId, StopReason};

use crate::harness::{Harness, agent, text, tool};

#[test]
fn a_prompt_is_answered_with_text() {
    let mut host = Harness::prompted(agent(vec![]));
    assert_eq!(host.names(), ["run-start", "message-added", "step-start"]);
    assert_eq!(host.status(), Status::Running);
    let (_, request) = host.model_call();
    assert_eq!(request.messages.len(), 1);

    host.answer("hi there");
    assert_eq!(host.names()[3..], ["text-start", "text-delta", "text-end", "step-end", "run-end"]);
    assert_eq!(host.transcript(), ["user(hello)", "assistant(hi there)"]);
    let end = host.run_end();
    assert_eq!((end.reason, end.text.as_str()), (EndReason::Model(StopReason::Stop), "hi there"));
    assert_eq!(end.usage.output, Some(5));
    assert_eq!(host.status(), Status::Idle);
    assert!(host.timers.is_empty(), "no timer outlives its run");
}

#[test]
fn the_next_prompt_goes_on_from_the_history() {
    let mut host = Harness::prompted(agent(vec![]));
    host.answer("one");
    host.give(Input::Prompt(text("again")));
    assert_eq!(host.model_call().1.messages.len(), 3);
    host.answer("two");
    assert_eq!(host.transcript(), ["user(hello)", "assistant(one)", "user(again)", "assistant(two)"]);
    assert_ne!(host.events.first().unwrap().run_id, host.events.last().unwrap().run_id);
}

#[test]
fn a_long_history_is_shared_and_not_copied() {
    let mut host = Harness::new(agent(vec![]));
    for _ in 0..1_000 {
        host.give(Input::Prompt(text("again")));
        host.answer("yes");
        host.forget();
    }
    host.give(Input::Prompt(text("and now?")));
    let (_, request) = host.model_call();
    assert_eq!(request.messages.len(), 2_001);
    let shared =
        request.messages.iter().zip(host.session.history()).all(|(sent, kept)| std::sync::Arc::ptr_eq(sent, kept));
    assert!(shared);
}

#[test]
fn tools_run_side_by_side_and_their_results_are_kept_in_call_order() {
    let mut host = Harness::prompted(agent(vec![tool("a"), tool("b")]));
    host.answer_calls(&[("1", "a", "{}"), ("2", "b", "{}")]);
    assert_eq!(host.handed_out(), ["1", "2"]);
    host.tool_ends("2", ToolOutput::text("second"));
    assert_eq!(host.model_calls(), 1, "the model waits for both");
    host.tool_ends("1", ToolOutput::text("first"));
    assert_eq!(host.model_calls(), 2);
    host.answer("done");
    assert_eq!(host.transcript(), ["user(hello)", "assistant(call 1; call 2)", "tool(1 ok; 2 ok)", "assistant(done)"]);
}

#[test]
fn a_fork_goes_its_own_way() {
    let mut host = Harness::prompted(agent(vec![tool("a")]));
    host.answer_calls(&[("1", "a", "{}")]);
    host.tool_ends("1", ToolOutput::text("ok"));
    host.answer("one");
    let ids: Vec<_> = host.session.history().iter().map(|message| message.id.clone()).collect();
    let refused = |id: &MessageId| host.session.fork(id, 7).unwrap_err();
    assert_eq!(refused(&ids[1]), TreeError::Open(ids[1].clone()), "a call is not separated from its result");
    assert_eq!(refused(&MessageId::new("?")), TreeError::Unknown(MessageId::new("?")));

    let mut fork = Harness::of(host.session.fork(&ids[2], 7).unwrap(), host.now);
    fork.give(Input::Prompt(text("another way")));
    fork.answer_calls(&[("1", "a", "{}")]);
    assert_ne!(fork.handed_out(), ["1"], "the ids of the shared calls are taken");
    assert_eq!(fork.transcript()[..4], ["user(hello)", "assistant(call 1)", "tool(1 ok)", "user(another way)"]);
    assert_eq!(host.transcript().len(), 4, "the first conversation is as it was");
}

#[test]
fn a_prompt_during_a_run_is_refused_and_changes_nothing() {
    let mut host = Harness::prompted(agent(vec![]));
    host.forget();
    assert_eq!(host.try_give(Input::Prompt(text("me too"))), Err(InputError::Busy));
    assert!(host.effects.is_empty() && host.events.is_empty());
    assert_eq!(host.transcript(), ["user(hello)"]);
}

#[test]
fn an_empty_prompt_is_refused() {
    let mut host = Harness::new(agent(vec![]));
    assert_eq!(host.try_give(Input::Prompt(vec![])), Err(InputError::EmptyPrompt));
    assert_eq!(host.try_give(Input::Prompt(text(""))), Err(InputError::EmptyPrompt));
    assert_eq!(host.status(), Status::Idle);
}
