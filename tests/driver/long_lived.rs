//! The long-lived form, skills, and other things that a runner adds around conversations.

use std::sync::Arc;

use crablet::agent::Skill;
use crablet::host::AgentLoop;
use crablet::{Error, ErrorKind};
use serde_json::Value;

use super::support::{ScriptedHost, ScriptedModel};
use super::{definition, runner};

fn loop_of(host: &ScriptedHost, model: &ScriptedModel) -> AgentLoop<ScriptedHost> {
    AgentLoop::new(host, runner(host, model).conversation().unwrap())
}

#[test]
fn messages_are_answered_in_order_and_a_failure_is_one_answer_of_many() {
    let host = ScriptedHost::new();
    let model = host.model().text("one").fails_after("hm", Error::new(ErrorKind::BadRequest, "no")).text("three");
    let mut chat = loop_of(&host, &model);
    for prompt in ["first", "second", "third"] {
        chat.send(prompt).unwrap();
    }
    host.block_on(async {
        assert_eq!(chat.next().await.unwrap().unwrap().text, "one");
        assert_eq!(chat.next().await.unwrap().unwrap_err().kind(), ErrorKind::BadRequest);
        assert_eq!(chat.next().await.unwrap().unwrap().text, "three");
        assert!(chat.stop().await.is_empty());
    });
}

#[test]
fn a_stop_finishes_what_is_worked_on_and_drops_what_waits() {
    let host = ScriptedHost::new();
    let model = host.model().words("one two three", 10).text("never");
    let mut chat = loop_of(&host, &model);
    chat.send("first").unwrap();
    chat.send("second").unwrap();
    host.block_on(async {
        host.pause(5).await;
        let rest = chat.stop().await;
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].as_ref().unwrap().text, "one two three");
    });
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn a_follow_up_is_answered_in_the_run_that_is_at_work() {
    let host = ScriptedHost::new();
    let model = host.model().words("one two", 10).text("and more").text("another");
    let mut chat = loop_of(&host, &model);
    chat.send("first").unwrap();
    host.block_on(async {
        host.pause(5).await;
        chat.follow_up("more").unwrap();
        assert_eq!(chat.next().await.unwrap().unwrap().text, "and more");
        chat.follow_up("without a run it is a message").unwrap();
        assert_eq!(chat.next().await.unwrap().unwrap().text, "another");
    });
    assert_eq!(chat.conversation().history().len(), 6);
}

#[test]
fn dropping_it_aborts_what_is_worked_on() {
    let host = ScriptedHost::new();
    let model = host.model().hangs_after("hm");
    let mut chat = loop_of(&host, &model);
    chat.send("first").unwrap();
    host.block_on(async {
        host.pause(5).await;
        drop(chat);
        host.pause(5).await;
    });
    assert!(model.is_cancelled(0));
}

#[test]
fn skills_are_told_in_the_instructions_and_read_with_a_tool() {
    let host = ScriptedHost::new();
    let model = host.model().calls(&[("1", "readSkill", r#"{"name":"review"}"#)]).text("done");
    let skill = Skill::parse("---\nname: review\ndescription: How code is reviewed\n---\nTwice.").unwrap();
    let runner = runner(&host, &model)
        .instructions("Be brief.")
        .tool(definition("other"), async |_: Value, _| "ok")
        .skills([skill]);
    host.block_on(runner.run("go")).unwrap();
    let requests = model.requests();
    let told: &Arc<str> = requests[0].instructions.as_ref().unwrap();
    assert!(told.starts_with("Be brief.\n\n") && told.ends_with("\n- review: How code is reviewed"), "{told}");
    let crablet::model::Body::Tool(results) = &requests[1].messages[2].body else { panic!() };
    assert_eq!(results.results[0].content, [crablet::model::Content::Text("Twice.".into())]);
}
