//! Stopping a run: at once, completely, and leaving the conversation ready for the next prompt.

use std::sync::{Arc, Mutex};

use crablet::ErrorKind;
use crablet::agent::Status;
use crablet::host::{CancelToken, ToolContext};
use serde_json::Value;

use super::support::ScriptedHost;
use super::{definition, events, runner, types};

#[test]
fn an_abort_in_the_middle_of_a_stream_stops_the_model_before_it_returns() {
    let host = ScriptedHost::new();
    let model = host.model().hangs_after("I will").text("Here I am.");
    let conversation = runner(&host, &model).conversation().unwrap();
    let mut run = conversation.send("go").unwrap();
    let control = run.control();
    host.block_on(async {
        run.next().await.unwrap();
        run.next().await.unwrap();
    });
    assert!(!model.is_cancelled(0));
    control.abort(Some("the user left"));
    assert!(model.is_cancelled(0), "nobody has read the run since");
    assert_eq!(conversation.status(), Status::Idle);
    let rest = host.block_on(events(run));
    assert_eq!(types(&rest), "text-end run-end");
    assert_eq!(rest.last().unwrap()["error"]["kind"], "aborted");
    assert!(rest.last().unwrap()["error"]["message"].as_str().unwrap().contains("the user left"));
    control.abort(None);
    assert_eq!(host.block_on(conversation.send("still there?").unwrap().answer()).unwrap().text, "Here I am.");
}

#[test]
fn an_abort_fires_the_tokens_of_running_tools_and_each_call_has_one_result() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "quick", "{}"), ("c2", "hangs", "{}")]).text("Fine.");
    let token = Arc::new(Mutex::new(None::<CancelToken>));
    let keep = token.clone();
    let runner = runner(&host, &model).tool(definition("quick"), async |_: Value, _| "ok").tool(
        definition("hangs"),
        move |_: Value, context: ToolContext| {
            *keep.lock().unwrap() = Some(context.cancel);
            std::future::pending::<Result<String, String>>()
        },
    );
    let conversation = runner.conversation().unwrap();
    let mut run = conversation.send("go").unwrap();
    host.block_on(async {
        while !run.next().await.unwrap().iter().any(|event| super::json(event)["type"] == "tool-result") {}
    });
    run.control().abort(None);
    assert!(token.lock().unwrap().as_ref().unwrap().is_cancelled());
    let rest = host.block_on(events(run));
    assert_eq!(types(&rest), "tool-result run-end");
    assert_eq!(rest[0]["callId"], "c2");
    assert_eq!(rest[0]["isError"], true);
    assert_eq!(conversation.history().len(), 3, "user, assistant, results");
    host.block_on(conversation.send("go on").unwrap().answer()).unwrap();
}

#[test]
fn a_tool_may_abort_its_own_run() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "quit", "{}")]);
    let control = Arc::new(Mutex::new(None::<crablet::host::RunControl>));
    let quitting = control.clone();
    let runner = runner(&host, &model).tool(definition("quit"), move |_: Value, _| {
        quitting.lock().unwrap().as_ref().unwrap().abort(None);
        std::future::pending::<Result<String, String>>()
    });
    let conversation = runner.conversation().unwrap();
    let run = conversation.send("go").unwrap();
    *control.lock().unwrap() = Some(run.control());
    let events = host.block_on(events(run));
    assert!(types(&events).ends_with("tool-start tool-result run-end"), "{}", types(&events));
}

#[test]
fn a_dropped_run_is_aborted_and_what_it_started_is_dropped() {
    struct OnDrop(Arc<Mutex<bool>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "hangs", "{}")]).text("Again.");
    let dropped = Arc::new(Mutex::new(false));
    let (started, noticed) = (Arc::new(Mutex::new(false)), dropped.clone());
    let starting = started.clone();
    let runner = runner(&host, &model).tool(definition("hangs"), move |_: Value, _| {
        *starting.lock().unwrap() = true;
        let guard = OnDrop(noticed.clone());
        async move {
            let _guard = guard;
            std::future::pending::<Result<String, String>>().await
        }
    });
    let conversation = runner.conversation().unwrap();
    let mut run = conversation.send("go").unwrap();
    host.block_on(async {
        while !*started.lock().unwrap() {
            tokio::select! {
                biased;
                batch = run.next() => { batch.unwrap(); }
                () = host.pause(1) => {}
            }
        }
    });
    drop(run);
    assert!(*dropped.lock().unwrap());
    assert_eq!(conversation.status(), Status::Idle);
    assert_eq!(host.sleepers(), 0);
    assert_eq!(host.block_on(conversation.send("again").unwrap().answer()).unwrap().text, "Again.");
}

#[test]
fn a_run_that_was_put_aside_and_aborted_still_shows_its_end_or_is_forgotten() {
    let host = ScriptedHost::new();
    let model = host.model().hangs_after("I will").hangs_after("I will").text("Here.");
    let conversation = runner(&host, &model).conversation().unwrap();
    for is_taken_up in [true, false] {
        let mut run = conversation.send("go").unwrap();
        let control = run.control();
        host.block_on(async {
            run.next().await.unwrap();
            run.next().await.unwrap();
        });
        run.detach();
        control.abort(None);
        if is_taken_up {
            assert_eq!(types(&host.block_on(events(conversation.resume().unwrap()))), "text-end run-end");
        }
    }
    let next = host.block_on(events(conversation.send("again").unwrap()));
    assert_eq!(next[0]["type"], "run-start");
    assert!(conversation.resume().is_none());
}

#[test]
fn the_controls_of_an_old_run_reach_no_other() {
    let host = ScriptedHost::new();
    let model = host.model().text("one").text("two");
    let conversation = runner(&host, &model).conversation().unwrap();
    let first = conversation.send("1").unwrap();
    let old = first.control();
    host.block_on(first.answer()).unwrap();
    let second = conversation.send("2").unwrap();
    old.abort(None);
    assert_eq!(old.steer("psst").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(host.block_on(second.answer()).unwrap().text, "two");
}
