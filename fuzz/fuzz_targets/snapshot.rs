//! Any text as a saved conversation: it is refused, or restored to one that saves itself with all its messages, ends its run when
//! it is aborted, and takes the next prompt.
#![no_main]

use std::sync::Arc;

use crablet::Millis;
use crablet::agent::{Agent, Input, Session, Status, ToolDefinition};
use crablet::json::RawJson;
use crablet::model::{Content, Model};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(mut session) = Session::restore(text, agent(), Millis(1_000)) else { return };
    // A run that is restored begins its open step anew, so that the rest may differ.
    let again = Session::restore(&session.snapshot(), agent(), Millis(1_000)).expect("what was saved is read");
    assert_eq!(again.history(), session.history());
    drain(&mut session);
    session.handle(Millis(2_000), Input::Abort { reason: None }).expect("a run can always be aborted");
    drain(&mut session);
    assert_eq!(session.status(), Status::Idle);
    session.handle(Millis(3_000), Input::Prompt(vec![Content::Text("go on".into())])).expect("an idle session");
    drain(&mut session);
    assert_eq!(session.status(), Status::Running);
});

fn agent() -> Arc<Agent> {
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let tool = |name| ToolDefinition::new(name, "a tool", schema.clone());
    let tools = [tool("plain"), ToolDefinition { needs_approval: true, ..tool("guarded") }];
    Arc::new(Agent { tools: tools.map(Arc::new).to_vec(), ..Agent::new(Model::function("f")) })
}

fn drain(session: &mut Session) {
    while session.poll_effect().is_some() {}
    while session.poll_event().is_some() {}
}
