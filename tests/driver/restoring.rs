//! Conversations that are saved, and taken up by another runner.

use std::sync::{Arc, Mutex};

use crablet::ErrorKind;
use crablet::agent::{Save, Status};
use crablet::host::{MemoryStore, Store};
use serde_json::Value;

use super::support::ScriptedHost;
use super::{definition, events, runner, types};

#[test]
fn a_conversation_goes_on_in_another_process() {
    let host = ScriptedHost::new();
    let first = runner(&host, &host.model().text("first")).conversation().unwrap();
    host.block_on(first.send("one").unwrap().answer()).unwrap();
    let model = host.model().text("second");
    let second = runner(&host, &model).restore(&first.snapshot()).unwrap();
    assert!(second.resume().is_none(), "nothing was open");
    host.block_on(second.send("two").unwrap().answer()).unwrap();
    assert_eq!(model.requests()[0].messages.len(), 3);
}

#[test]
fn a_run_that_was_cut_off_in_the_middle_of_an_answer_is_taken_up() {
    let host = ScriptedHost::new();
    let conversation = runner(&host, &host.model().hangs_after("Hello wor")).conversation().unwrap();
    let mut run = conversation.send("greet").unwrap();
    host.block_on(async {
        run.next().await.unwrap();
        run.next().await.unwrap();
    });
    let snapshot = conversation.snapshot();

    let restored = runner(&host, &host.model().text("Hello world")).restore(&snapshot).unwrap();
    assert_eq!(restored.status(), Status::Running);
    let events = host.block_on(events(restored.resume().unwrap()));
    assert!(types(&events).starts_with("run-start step-retry"), "{}", types(&events));
    assert_eq!(events.last().unwrap()["text"], "Hello world");
}

#[test]
fn a_tool_that_had_started_is_not_run_again() {
    let host = ScriptedHost::new();
    let saved = Arc::new(Mutex::new(String::new()));
    let ran = Arc::new(Mutex::new(0));
    let saving = saved.clone();
    let pay = |ran: Arc<Mutex<u32>>, hangs: bool| {
        move |_: Value, _| {
            *ran.lock().unwrap() += 1;
            async move { if hangs { std::future::pending().await } else { "paid" } }
        }
    };
    let first = runner(&host, &host.model().calls(&[("c1", "pay", "{}")]))
        .tool(definition("pay"), pay(ran.clone(), true))
        .journal(move |save: Save| {
            match save {
                Save::Append(lines) => saving.lock().unwrap().push_str(&lines),
                Save::Replace(lines) => *saving.lock().unwrap() = lines,
            }
            async { Ok(()) }
        });
    let conversation = first.conversation().unwrap();
    let mut run = conversation.send("pay").unwrap();
    host.block_on(async {
        while *ran.lock().unwrap() == 0 {
            tokio::select! {
                biased;
                batch = run.next() => { batch.unwrap(); }
                () = host.pause(1) => {}
            }
        }
    });
    let snapshot = saved.lock().unwrap().clone();

    let model = host.model().text("It may have been paid.");
    let second =
        runner(&host, &model).tool(definition("pay"), pay(ran.clone(), false)).journal(|_: Save| async { Ok(()) });
    let restored = second.restore(&snapshot).unwrap();
    let events = host.block_on(events(restored.resume().unwrap()));
    let result = events.iter().find(|event| event["type"] == "tool-result").unwrap();
    assert_eq!(result["isError"], true);
    assert_eq!(*ran.lock().unwrap(), 1, "run once in both lives together");
}

#[test]
fn a_run_whose_end_was_saved_is_over_for_whoever_opens_it_again() {
    let host = ScriptedHost::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let first = runner(&host, &host.model().text("Hello."));
    host.block_on(async {
        let conversation = first.open(store.clone(), "monday").await.unwrap();
        conversation.send("greet").unwrap().answer().await.unwrap();
    });

    let model = host.model().text("Again.");
    let second = runner(&host, &model);
    let conversation = host.block_on(second.open(store.clone(), "monday")).unwrap();
    assert_eq!(conversation.status(), Status::Idle);
    assert!(conversation.resume().is_none(), "there is nothing to go on with");
    let events = host.block_on(events(conversation.send("and again").unwrap()));
    let shown = types(&events);
    assert_eq!((shown.matches("run-start").count(), shown.matches("run-end").count()), (1, 1), "{shown}");
    assert_eq!(model.requests()[0].messages.len(), 3);
    let reopened = host.block_on(runner(&host, &host.model()).open(store, "monday")).unwrap();
    assert_eq!((reopened.history().len(), reopened.status()), (4, Status::Idle), "what came after was saved");
}

#[test]
fn a_text_that_is_no_snapshot_is_refused_with_a_reason() {
    let host = ScriptedHost::new();
    let error = runner(&host, &host.model()).restore("{}").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.message().contains("snapshot"), "{error}");
}

#[test]
fn a_fork_shares_the_beginning_and_nothing_more() {
    let host = ScriptedHost::new();
    let model = host.model().text("first").text("second").text("another second");
    let runner = runner(&host, &model);
    let conversation = runner.conversation().unwrap();
    host.block_on(conversation.send("one").unwrap().answer()).unwrap();
    let first_answer = conversation.history()[1].id.clone();
    host.block_on(conversation.send("two").unwrap().answer()).unwrap();

    let fork = runner.fork(&conversation, &first_answer).unwrap();
    assert_eq!(host.block_on(fork.send("two, again").unwrap().answer()).unwrap().text, "another second");
    assert_eq!((fork.history().len(), conversation.history().len()), (4, 4));
    assert_ne!(fork.history()[2], conversation.history()[2]);
    let unknown = runner.fork(&conversation, &crablet::model::MessageId::new("unknown")).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::InvalidInput);
}

#[test]
fn follow_ups_of_an_aborted_run_can_be_read_and_taken_out() {
    let host = ScriptedHost::new();
    let conversation = runner(&host, &host.model().hangs_after("I will")).conversation().unwrap();
    let mut run = conversation.send("go").unwrap();
    host.block_on(run.next()).unwrap();
    run.control().follow_up("and then").unwrap();
    run.control().abort(None);
    let waiting = conversation.follow_ups();
    assert_eq!(waiting[0].content, [crablet::model::Content::Text("and then".into())]);
    conversation.edit_queued(&waiting[0].id, "and after that").unwrap();
    assert_eq!(conversation.follow_ups()[0].content, [crablet::model::Content::Text("and after that".into())]);
    conversation.unqueue(&waiting[0].id).unwrap();
    assert!(conversation.follow_ups().is_empty());
}
