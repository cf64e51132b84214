//! Hooks of the host: models that they call, bodies that they change, events that are only looked at.

use std::sync::{Arc, Mutex};

use crablet::agent::{ContextEdit, HookQuestion, HookReply, Hooks};
use crablet::host::HookContext;
use crablet::model::{Body, Content, ModelRequest, Origin, UserMessage};
use crablet::{Error, ErrorKind};
use serde_json::Value;

use super::support::ScriptedHost;
use super::{definition, events, runner, types};

/// Replaces what was said by what the model makes of it.
async fn summarise(question: HookQuestion, context: HookContext) -> Result<HookReply, String> {
    let HookQuestion::PrepareContext { request, .. } = question else { return Ok(HookReply::Continue) };
    let answer = context.call_model(ModelRequest::clone(&request)).await.map_err(|error| error.to_string())?;
    let [crablet::model::Part::Text { text, .. }] = &answer.content[..] else { return Err("no summary".into()) };
    let note = Body::User(UserMessage { content: vec![Content::Text(text.clone())], origin: Origin::Nudge });
    Ok(HookReply::EditContext(vec![ContextEdit::Replace(request.messages[0].id.clone(), note)]))
}

fn preparing() -> Hooks {
    Hooks { prepare_context: true, ..Hooks::default() }
}

#[test]
fn a_hook_may_call_the_model_and_its_tokens_count() {
    let host = ScriptedHost::new();
    let model = host.model().text("in short").text("done");
    let conversation = runner(&host, &model).hooks(preparing(), summarise).conversation().unwrap();
    let events = host.block_on(events(conversation.send("a long story").unwrap()));
    assert_eq!(types(&events).matches("text-start").count(), 1, "what the hook calls for itself is not shown");
    let sent = &model.requests()[1].messages;
    let Body::User(user) = &sent[0].body else { panic!() };
    assert_eq!(user.content, [Content::Text("in short".into())]);
    let usage = &events.last().unwrap()["usage"];
    let of_one = host.block_on(async {
        let conversation = runner(&host, &host.model().text("done")).conversation().unwrap();
        conversation.send("x").unwrap().answer().await.unwrap().usage
    });
    assert_eq!(usage["inputTokens"].as_u64(), of_one.input.map(|tokens| tokens * 2));
}

#[test]
fn a_model_call_of_a_hook_that_fails_is_the_hooks_to_handle() {
    let host = ScriptedHost::new();
    let model = host.model().fails_after("hm", Error::new(ErrorKind::Overloaded, "busy"));
    let conversation = runner(&host, &model).hooks(preparing(), summarise).conversation().unwrap();
    let error = host.block_on(conversation.send("a long story").unwrap().answer()).unwrap_err();
    assert!(error.message().contains("prepareContext") && error.message().contains("busy"), "{error}");
}

#[test]
fn an_abort_stops_the_model_call_of_a_hook() {
    let host = ScriptedHost::new();
    let model = host.model().hangs_after("in sh");
    let conversation = runner(&host, &model).hooks(preparing(), summarise).conversation().unwrap();
    let mut run = conversation.send("a long story").unwrap();
    let control = run.control();
    host.block_on(async {
        run.next().await;
        let mut next = std::pin::pin!(run.next());
        // The hook has begun once the run was polled again.
        std::future::poll_fn(|context| {
            let _ = next.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    });
    assert_eq!(model.requests().len(), 1);
    control.abort(None);
    assert!(host.block_on(events(run)).iter().any(|event| event["type"] == "run-end"));
}

#[test]
fn a_run_may_be_stopped_by_what_its_steps_did() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("1", "a", "{}")]).calls(&[("2", "a", "{}")]);
    let hooks = Hooks { stop_when: true, ..Hooks::default() };
    let runner = runner(&host, &model).tool(definition("a"), async |_: Value, _| "ok").hooks(
        hooks,
        async |question: HookQuestion, _: HookContext| match question {
            HookQuestion::StopWhen { step: 1, .. } => Ok(HookReply::Stop),
            _ => Ok(HookReply::Continue),
        },
    );
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(events(conversation.send("go").unwrap()));
    assert_eq!(events.last().unwrap()["stopReason"], "terminated");
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn an_observer_sees_every_event_and_cannot_break_the_run() {
    let host = ScriptedHost::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let names = seen.clone();
    let runner = runner(&host, &host.model().text("done")).on_event(move |event| {
        names.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(event.kind.name());
        assert!(event.kind.name() != "text-start", "an observer that panics");
    });
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(events(conversation.send("go").unwrap()));
    let shown: Vec<String> = events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(*seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner()), shown);
}

#[test]
fn whether_a_steered_message_was_delivered_can_be_awaited() {
    let host = ScriptedHost::new();
    let model = host.model().text("first").text("second");
    let conversation = runner(&host, &model).conversation().unwrap();
    let mut run = conversation.send("go").unwrap();
    let control = run.control();
    let (delivered, dropped, late) = host.block_on(async {
        run.next().await;
        let delivered = control.steer("wait").unwrap();
        while !run.next().await.unwrap().iter().any(|event| event.kind.name() == "step-end") {}
        let edited = control.steer("no").unwrap();
        conversation.unqueue(edited.id()).unwrap();
        let late = control.steer("too late").unwrap();
        control.abort(None);
        while run.next().await.is_some() {}
        (delivered.await, edited.await, late.await)
    });
    assert_eq!((delivered, dropped, late), (true, false, false));
    assert!(control.steer("after the end").is_err());
}

#[test]
fn runs_can_be_traced_by_the_clock_of_their_host() {
    let host = ScriptedHost::new();
    let spans = Arc::new(Mutex::new(Vec::new()));
    let seen = spans.clone();
    let waiting = host.clone();
    let runner = runner(&host, &host.model().calls(&[("1", "wait", "{}")]).text("done"))
        .tool(definition("wait"), move |_: Value, _| {
            let host = waiting.clone();
            async move {
                host.pause(50).await;
                "ok"
            }
        })
        .trace(crablet::agent::TraceOptions::default(), move |span| seen.lock().unwrap().push(span));
    host.block_on(runner.run("go")).unwrap();
    let spans = spans.lock().unwrap();
    let durations: Vec<(&str, u64)> =
        spans.iter().map(|span| (span.name.as_str(), span.end.0 - span.start.0)).collect();
    assert_eq!(durations, [("execute_tool wait", 50), ("chat script", 0), ("chat script", 0), ("invoke_agent", 50)]);
}
