//! Checkpoints: saved before anything that a restore must know of, one at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use crablet::agent::{Save, Status, ToolDefinition};
use crablet::{Error, ErrorKind};
use serde_json::Value;

use super::support::ScriptedHost;
use super::{definition, events, runner};

#[test]
fn a_tool_starts_only_after_its_checkpoint_is_saved() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "pay", "{}")]).text("Paid.");
    let log = Arc::new(Mutex::new(Vec::new()));
    let (saves, runs, saving) = (log.clone(), log.clone(), host.clone());
    let runner = runner(&host, &model)
        .tool(definition("pay"), move |_: Value, _| {
            runs.lock().unwrap().push("run");
            async { "done" }
        })
        .journal(move |_: Save| {
            let (saves, host) = (saves.clone(), saving.clone());
            async move {
                saves.lock().unwrap().push("save begins");
                host.pause(5).await;
                saves.lock().unwrap().push("saved");
                Ok(())
            }
        });
    let conversation = runner.conversation().unwrap();
    host.block_on(conversation.send("pay").unwrap().answer()).unwrap();
    let log = log.lock().unwrap();
    assert_eq!(log.last(), Some(&"saved"), "the end is saved before it is shown: {log:?}");
    let run = log.iter().position(|entry| *entry == "run").unwrap();
    assert_eq!(log[run - 1], "saved", "{log:?}");
    let saves: Vec<_> = log.iter().filter(|entry| **entry != "run").collect();
    assert!(saves.chunks(2).all(|pair| pair == [&"save begins", &"saved"]), "saves do not overlap: {log:?}");
}

#[test]
fn a_failed_save_ends_the_run_and_the_next_prompt_works() {
    let host = ScriptedHost::new();
    let model = host.model().text("unheard").text("heard");
    let failing = Arc::new(Mutex::new(true));
    let fails = failing.clone();
    let runner = runner(&host, &model).journal(move |_: Save| {
        let fails = *fails.lock().unwrap();
        async move { if fails { Err(Error::new(ErrorKind::Internal, "the disk is full")) } else { Ok(()) } }
    });
    let conversation = runner.conversation().unwrap();
    let error = host.block_on(conversation.send("one").unwrap().answer()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(error.message().contains("the disk is full"), "{error}");
    assert!(model.requests().is_empty(), "the model was not called unsaved");
    *failing.lock().unwrap() = false;
    host.block_on(conversation.send("two").unwrap().answer()).unwrap();
}

#[test]
fn an_abort_does_not_wait_for_a_store_that_hangs() {
    let host = ScriptedHost::new();
    let model = host.model();
    let runner = runner(&host, &model).journal(|_: Save| std::future::pending());
    let conversation = runner.conversation().unwrap();
    let mut run = conversation.send("one").unwrap();
    let control = run.control();
    host.block_on(run.next()).unwrap();
    control.abort(None);
    let rest = host.block_on(events(run));
    assert_eq!(rest.last().unwrap()["type"], "run-end");
}

#[test]
fn nothing_is_added_behind_a_save_that_was_dropped() {
    let host = ScriptedHost::new();
    let model = host.model().text("heard");
    let saved = Arc::new(Mutex::new(Vec::new()));
    let saves = saved.clone();
    let runner = runner(&host, &model).journal(move |save: Save| {
        let saves = saves.clone();
        async move {
            let is_first = saves.lock().unwrap().is_empty();
            saves.lock().unwrap().push(save);
            if is_first { std::future::pending().await } else { Ok(()) }
        }
    });
    let conversation = runner.conversation().unwrap();
    let mut run = conversation.send("one").unwrap();
    host.block_on(run.next()).unwrap();
    // The save begins and hangs, and its runtime ends.
    host.block_on(host.pause(1));
    assert_eq!(saved.lock().unwrap().len(), 1);
    host.drop_spawned();
    run.control().abort(None);
    host.block_on(events(run));
    let error = host.block_on(conversation.send("two").unwrap().answer()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    host.block_on(conversation.send("three").unwrap().answer()).unwrap();
    let saved = saved.lock().unwrap();
    assert!(matches!(saved[1], Save::Replace(_)), "{saved:?}");
}

/// Knows whether it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_is_queued_while_a_run_waits_for_a_person_is_saved() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("c1", "pay", "{}")]).text("Paid.");
    let saved = Arc::new(Mutex::new(String::new()));
    let saves = saved.clone();
    let runner = runner(&host, &model)
        .tool(ToolDefinition { needs_approval: true, ..definition("pay") }, |_: Value, _| async { "done" })
        .journal(move |save: Save| {
            *saves.lock().unwrap() += save.text();
            async { Ok(()) }
        });
    let conversation = runner.conversation().unwrap();
    let mut run = conversation.send("pay").unwrap();
    while conversation.status() != Status::Suspended {
        host.block_on(run.next()).unwrap();
    }
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    while run.poll_events(&mut Context::from_waker(&waker)).is_ready() {}
    run.control().follow_up("and the tip").unwrap();
    assert!(woken.0.load(Ordering::Relaxed), "who reads the run hears of it");
    host.block_on(run.next()).unwrap();
    assert!(saved.lock().unwrap().contains("and the tip"));
}
