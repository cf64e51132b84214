//! Other models that answer when one fails.

use crablet::agent::{Agent, EventKind, HookReply, Hooks, Policy, StepChange, ToolOutput};
use crablet::model::{Body, Model, ModelEvent};
use crablet::{Error, ErrorKind};

use crate::harness::{Harness, agent, text_block, tool};

fn other(id: &str) -> Model {
    Model { id: id.into(), ..agent(vec![]).model }
}

fn with_fallbacks() -> Agent {
    let policy = Policy { max_attempts: 2, ..Policy::default() };
    Agent { fallbacks: vec![other("second"), other("third")], policy, ..agent(vec![tool("t")]) }
}

fn asked(host: &Harness) -> String {
    host.model_call().1.model.id.to_string()
}

fn fails(host: &mut Harness, kind: ErrorKind) {
    host.fail_stream(Error::new(kind, "it failed"));
}

fn who_answered(host: &Harness) -> Vec<String> {
    let model = |message: &std::sync::Arc<crablet::model::Message>| match &message.body {
        Body::Assistant(answer) => Some(answer.model.id.to_string()),
        _ => None,
    };
    host.session.history().iter().filter_map(model).collect()
}

#[test]
fn the_next_model_answers_once_the_attempts_of_one_are_used_up() {
    let mut host = Harness::prompted(with_fallbacks());
    host.stream([text_block(0, "half an ans")].concat());
    fails(&mut host, ErrorKind::Overloaded);
    assert_eq!(asked(&host), "scripted");
    host.pass(60_000);
    fails(&mut host, ErrorKind::Overloaded);
    assert_eq!(asked(&host), "second", "at once");
    let EventKind::StepRetry { attempt: 3, delay: 0, error, model: Some(model) } = &host.events.last().unwrap().kind
    else {
        panic!("{:?}", host.events.last());
    };
    assert_eq!((error.kind(), &*model.id), (ErrorKind::Overloaded, "second"));
    fails(&mut host, ErrorKind::RateLimit);
    assert_eq!(host.model_calls(), 3, "each model has attempts of its own, with waits");
    host.pass(60_000);
    assert_eq!((host.model_calls(), asked(&host)), (4, "second".to_owned()));
    fails(&mut host, ErrorKind::Server);
    assert_eq!(asked(&host), "third");
    host.answer_calls(&[("1", "t", "{}")]);
    host.tool_ends("1", ToolOutput::text("ok"));
    assert_eq!(asked(&host), "third", "the run stays with the model that answers");
    host.answer("done");
    assert_eq!(who_answered(&host), ["third", "third"]);
    assert_eq!(host.transcript().len(), 4, "nothing is left of what was shown before");
    host.give(crablet::agent::Input::Prompt(crate::harness::text("more")));
    assert_eq!(asked(&host), "scripted", "the next run begins with the first one");
}

#[test]
fn the_last_models_failure_ends_the_run() {
    let mut host = Harness::prompted(with_fallbacks());
    for _ in 0..3 {
        fails(&mut host, ErrorKind::Quota);
    }
    assert_eq!((host.model_calls(), host.run_end().error.as_ref().unwrap().kind()), (3, ErrorKind::Quota));
}

#[test]
fn what_a_person_must_see_is_not_hidden_by_another_model() {
    for kind in [ErrorKind::Auth, ErrorKind::BadRequest, ErrorKind::ContentFilter, ErrorKind::InvalidInput] {
        let mut host = Harness::prompted(with_fallbacks());
        fails(&mut host, kind);
        assert_eq!((host.model_calls(), host.run_end().error.as_ref().unwrap().kind()), (1, kind));
    }
}

#[test]
fn a_wait_that_is_too_long_and_silence_are_left_to_the_next_model() {
    let mut host = Harness::prompted(with_fallbacks());
    host.fail_stream(Error::new(ErrorKind::RateLimit, "busy").with_retry_after(3_600_000));
    assert_eq!(asked(&host), "second");
    host.pass(120_000);
    host.pass(60_000);
    host.pass(120_000);
    assert_eq!(asked(&host), "third", "two attempts without a first byte");
}

#[test]
fn a_restored_run_stays_with_its_model_and_its_attempts() {
    let mut host = Harness::prompted(with_fallbacks());
    fails(&mut host, ErrorKind::Quota);
    let mut host = host.restored(with_fallbacks());
    assert_eq!(asked(&host), "second");
    fails(&mut host, ErrorKind::Server);
    assert_eq!(asked(&host), "third", "the attempt that the crash cut short was its first");
    let host = host.restored(agent(vec![tool("t")]));
    assert_eq!(asked(&host), "scripted", "an agent without others has its first one");
}

#[test]
fn a_model_that_was_chosen_for_a_step_is_asked_first() {
    let mut hooked = with_fallbacks();
    hooked.hooks = Hooks { prepare_step: true, ..Hooks::default() };
    let mut host = Harness::prompted(hooked);
    host.reply(Ok(HookReply::Continue));
    fails(&mut host, ErrorKind::Quota);
    host.answer_calls(&[("1", "t", "{}")]);
    host.tool_ends("1", ToolOutput::text("ok"));
    host.reply(Ok(HookReply::ChangeStep(StepChange { model: Some(other("chosen")), ..StepChange::default() })));
    assert_eq!(asked(&host), "chosen");
    fails(&mut host, ErrorKind::Quota);
    assert_eq!(asked(&host), "second");
    host.stream(vec![ModelEvent::TextStart { block: 0 }]);
    host.answer("done");
    assert_eq!(who_answered(&host), ["second", "second"]);
}
