//! Agents as tools of other agents: each with its own model, tools and approver.

use crablet::agent::{Approval, ToolDefinition};
use crablet::host::ApprovalRequest;
use crablet::json::RawJson;
use serde_json::Value;

use super::support::ScriptedHost;
use super::{definition, events, runner, types};

#[test]
fn a_sub_agent_has_its_own_model_and_a_tool_of_the_same_name() {
    let host = ScriptedHost::new();
    let (outer, inner) = (
        host.model()
            .calls(&[("h", "helper", r#"{"prompt":"look it up"}"#)])
            .calls(&[("s", "search", "{}")])
            .text("done"),
        host.model().calls(&[("s", "search", "{}")]).text("it is 42"),
    );
    let helper = runner(&host, &inner).tool(definition("search"), async |_: Value, _| "from within");
    let runner = runner(&host, &outer).tool(definition("search"), async |_: Value, _| "from outside").sub_agent(
        "helper",
        "Looks things up.",
        helper,
    );
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(events(conversation.send("go").unwrap()));
    let outputs = |events: &[Value]| -> Vec<String> {
        let results = events.iter().filter(|event| event["type"] == "tool-result");
        results.map(|event| event["output"].as_str().unwrap().to_owned()).collect()
    };
    let within: Vec<Value> =
        events.iter().filter(|event| event["callId"] == "h").map(|event| event["event"].clone()).collect();
    assert_eq!(outputs(&within), ["from within"]);
    assert_eq!(outputs(&events), ["it is 42", "from outside"]);
    assert_eq!(inner.requests().len(), 2);
    assert_eq!(outer.requests().len(), 3);
}

#[test]
fn an_approval_within_is_asked_of_the_nearest_approver() {
    for own in [true, false] {
        let host = ScriptedHost::new();
        let outer = host.model().calls(&[("h", "helper", r#"{"prompt":"clean up"}"#)]).text("done");
        let inner = host.model().calls(&[("d", "delete", "{}")]).text("clean");
        let guarded = ToolDefinition { needs_approval: true, ..definition("delete") };
        let mut helper = runner(&host, &inner).tool(guarded, async |_: Value, _| "deleted");
        if own {
            helper = helper.approver(async |_: ApprovalRequest, _| Approval::Allow);
        }
        let outside = runner(&host, &outer)
            .approver(async |_: ApprovalRequest, _| Approval::Deny { reason: None })
            .sub_agent("helper", "Cleans up.", helper);
        let conversation = outside.conversation().unwrap();
        let events = host.block_on(events(conversation.send("go").unwrap()));
        let response = events.iter().find(|event| event["event"]["type"] == "approval-response").unwrap();
        assert_eq!(response["event"]["allowed"], own);
    }
}

#[test]
fn a_run_that_waits_for_an_approval_within_goes_on_in_another_process() {
    let host = ScriptedHost::new();
    let outer = host.model().calls(&[("h", "helper", r#"{"prompt":"clean up"}"#)]).text("done");
    let inner = host.model().calls(&[("d", "delete", "{}")]).text("clean");
    let guarded = ToolDefinition { needs_approval: true, ..definition("delete") };
    let helper = runner(&host, &inner).tool(guarded, async |_: Value, _| RawJson::parse("true").unwrap());
    let runner = runner(&host, &outer).sub_agent("helper", "Cleans up.", helper);
    let conversation = runner.conversation().unwrap();
    let mut run = conversation.send("go").unwrap();
    let call_id = host.block_on(async {
        let mut asked = None;
        loop {
            for event in run.next().await.unwrap() {
                let event = super::json(&event);
                if event["event"]["type"] == "approval-request" {
                    asked = Some(event["event"]["callId"].as_str().unwrap().to_owned());
                }
                if event["type"] == "run-suspended" {
                    return asked.unwrap();
                }
            }
        }
    });
    let saved = conversation.snapshot();
    run.detach();
    drop(conversation);
    let restored = runner.restore(&saved).unwrap();
    let run = restored.resume().unwrap();
    run.control().approve(crablet::model::CallId::new(&*call_id), Approval::Allow).unwrap();
    let events = host.block_on(events(run));
    assert!(types(&events).ends_with("step-end run-end"), "{}", types(&events));
    assert_eq!(events.last().unwrap()["text"], "done");
}

#[test]
fn a_dropped_run_cancels_what_its_sub_agents_are_at() {
    let host = ScriptedHost::new();
    let outer = host.model().calls(&[("h", "helper", r#"{"prompt":"think"}"#)]);
    let inner = host.model().hangs_after("hm");
    let runner = runner(&host, &outer).sub_agent("helper", "Thinks.", runner(&host, &inner));
    let conversation = runner.conversation().unwrap();
    let mut run = conversation.send("go").unwrap();
    host.block_on(async {
        while let Some(events) = run.next().await {
            if events.iter().any(|event| super::json(event)["event"]["type"] == "text-delta") {
                break;
            }
        }
    });
    drop(run);
    assert!(inner.is_cancelled(0), "its model call was told to stop");
    assert_eq!(conversation.history().len(), 3);
}
