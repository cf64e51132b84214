//! Model calls: streaming, failing, retrying, and what the caller is told.

use crablet::agent::{Agent, EndReason};
use crablet::host::Runner;
use crablet::model::StopReason;
use crablet::{Error, ErrorKind};

use super::support::{ScriptedHost, ScriptedModel};
use super::{events, runner, types};

#[test]
fn an_answer_is_the_text_and_how_it_ended() {
    let host = ScriptedHost::new();
    let model = host.model().text("Yes, take one.");
    let answer = host.block_on(runner(&host, &model).run("Umbrella in Oslo?")).unwrap();
    assert_eq!(answer.text, "Yes, take one.");
    assert_eq!(answer.reason, EndReason::Model(StopReason::Stop));
    assert_eq!(model.requests()[0].messages.len(), 1);
}

#[test]
fn events_come_in_batches_as_the_model_speaks() {
    let host = ScriptedHost::new();
    let model = host.model().words("one two three", 10);
    let conversation = runner(&host, &model).conversation().unwrap();
    let mut run = conversation.send("count").unwrap();
    let batches = host.block_on(async {
        let mut batches = Vec::new();
        while let Some(batch) = run.next().await {
            let types: Vec<_> =
                batch.iter().map(|event| super::json(event)["type"].as_str().unwrap().to_owned()).collect();
            batches.push(types.join(" "));
        }
        batches
    });
    assert_eq!(
        batches,
        [
            "run-start message-added step-start",
            "text-start",
            "text-delta",
            "text-delta",
            "text-delta text-end step-end run-end",
        ]
    );
}

#[test]
fn a_second_prompt_goes_on_with_the_conversation() {
    let host = ScriptedHost::new();
    let model = host.model().text("first").text("second");
    let conversation = runner(&host, &model).conversation().unwrap();
    host.block_on(async {
        assert_eq!(conversation.send("one").unwrap().answer().await.unwrap().text, "first");
        assert_eq!(conversation.send("two").unwrap().answer().await.unwrap().text, "second");
    });
    assert_eq!(model.requests()[1].messages.len(), 3);
    assert_eq!(conversation.history().len(), 4);
}

#[test]
fn a_second_run_is_refused_while_one_is_read() {
    let host = ScriptedHost::new();
    let model = host.model().text("first");
    let conversation = runner(&host, &model).conversation().unwrap();
    let run = conversation.send("one").unwrap();
    assert_eq!(conversation.send("two").unwrap_err().kind(), ErrorKind::Busy);
    host.block_on(run.answer()).unwrap();
}

#[test]
fn an_empty_prompt_is_refused_and_the_conversation_stays_usable() {
    let host = ScriptedHost::new();
    let model = host.model().text("yes");
    let conversation = runner(&host, &model).conversation().unwrap();
    assert_eq!(conversation.send("").unwrap_err().kind(), ErrorKind::InvalidInput);
    host.block_on(conversation.send("now").unwrap().answer()).unwrap();
}

#[test]
fn a_failed_attempt_is_made_again_after_a_wait() {
    let host = ScriptedHost::new();
    let overloaded = Error::new(ErrorKind::Overloaded, "no capacity");
    let model = host.model().fails_after("Hello wor", overloaded).text("Hello world");
    let conversation = runner(&host, &model).conversation().unwrap();
    let events = host.block_on(events(conversation.send("greet").unwrap()));
    let retry = events.iter().find(|event| event["type"] == "step-retry").unwrap();
    assert_eq!(retry["error"]["kind"], "overloaded");
    assert_eq!(events.last().unwrap()["text"], "Hello world");
    assert_eq!(host.sleepers(), 0, "no timer is left");
}

#[test]
fn a_model_function_that_ends_without_a_stop_is_truncated() {
    let host = ScriptedHost::new();
    let model = host.model().breaks_off_after("Hel").text("unused");
    let mut runner = runner(&host, &model);
    runner.agent_mut().policy.max_attempts = 1;
    let error = host.block_on(runner.run("greet")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StreamTruncated);
}

#[test]
fn a_model_function_that_is_missing_is_named() {
    let host = ScriptedHost::new();
    let runner = Runner::new(host.clone(), Agent::new(ScriptedModel::model()));
    let error = host.block_on(runner.run("greet")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.message().contains("\"script\""), "{error}");
}

#[test]
fn a_silent_model_times_out_and_the_next_prompt_works() {
    let host = ScriptedHost::new();
    let model = host.model().hangs_after("Hel").text("here again");
    let mut runner = runner(&host, &model);
    runner.agent_mut().policy.max_attempts = 1;
    let conversation = runner.conversation().unwrap();
    let error = host.block_on(conversation.send("greet").unwrap().answer()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(model.is_cancelled(0));
    let answer = host.block_on(conversation.send("and now?").unwrap().answer()).unwrap();
    assert_eq!(answer.text, "here again");
}

#[test]
fn a_run_that_takes_too_long_ends_even_while_data_flows() {
    let host = ScriptedHost::new();
    let model = host.model().words(&"word ".repeat(1_000), 10);
    let mut runner = runner(&host, &model);
    runner.agent_mut().policy.timeout = Some(1_000);
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(events(conversation.send("talk").unwrap()));
    assert!(types(&events).ends_with("text-delta text-end limit-reached run-end"), "{}", types(&events));
    assert!(events.len() < 120, "{}", events.len());
}

#[test]
fn data_that_waited_while_the_machine_slept_is_read_before_the_timeout_is_looked_at() {
    let host = ScriptedHost::new();
    let model = host.model().sleeps_in("Good morning", 600_000);
    let mut runner = runner(&host, &model);
    runner.agent_mut().policy.idle_timeout = 30_000;
    runner.agent_mut().policy.max_attempts = 1;
    assert_eq!(host.block_on(runner.run("greet")).unwrap().text, "Good morning");
}

#[test]
fn a_model_function_that_panics_fails_the_run_and_nothing_else() {
    let host = ScriptedHost::new();
    let runner = runner(&host, &host.model());
    let conversation = runner.conversation().unwrap();
    let error = host.block_on(conversation.send("go").unwrap().answer()).unwrap_err();
    assert_eq!(error.kind(), crablet::ErrorKind::Internal);
    assert!(error.message().contains("does not have"), "{error}");
    assert_eq!(conversation.history().len(), 1);
}
