//! Calls that servers turn into tasks, in both eras.

use std::cell::RefCell;

use crablet::ErrorKind;
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::client::{CallOptions, ClientOptions, Event, Input};
use crablet::mcp::protocol::EraChoice;
use serde_json::{Value, json};

use crate::mcp_support::{Answer, World, body_of, method_of};
use crate::server::{call, error, options, response, stateless, text, tool_result};

/// A handshake server with tasks, whose tool must be called as one.
fn with_tasks(status: &'static str, rounds: usize) -> impl FnMut(&crablet::model::HttpRequest) -> Answer {
    let mut asked = 0;
    move |request| {
        let params = body_of(request)["params"].clone();
        let result = match method_of(request).as_str() {
            "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "tasks": {} } }),
            "tools/list" => {
                let tool = json!({ "name": "t", "inputSchema": {}, "execution": { "taskSupport": "required" } });
                json!({ "tools": [tool] })
            }
            "tools/call" if params["task"].is_object() => {
                json!({ "task": { "taskId": "1", "status": "working", "pollInterval": 500 } })
            }
            "tools/call" => return Answer::json(200, error(request, -32601, &Value::Null)),
            "tasks/get" => {
                asked += 1;
                let status = if asked < rounds { "working" } else { status };
                json!({ "taskId": params["taskId"], "status": status, "pollInterval": 500 })
            }
            "tasks/result" => text("done"),
            "tasks/cancel" => json!({}),
            "GET" => return Answer::new(405),
            _ => return Answer::new(202),
        };
        Answer::json(200, response(request, &result))
    }
}

#[test]
fn a_handshake_task_is_asked_for_and_its_result_is_fetched() {
    for status in ["completed", "input_required", "failed"] {
        let mut world = World::new(options(EraChoice::Handshake), with_tasks(status, 3));
        world.connected().unwrap();
        let before = world.now;
        // The tool was not listed before: the refusal makes it known that it wants to be a task.
        assert_eq!(tool_result(world.perform(call("t")).unwrap()).text(), "done");
        assert_eq!(world.now.since(before), 1_500);
        let methods = world.methods();
        assert_eq!(methods.iter().filter(|method| *method == "tasks/get").count(), 3, "{methods:?}");
        assert_eq!(methods.last().unwrap(), "tasks/result");
    }
}

#[test]
fn a_task_that_nobody_waits_for_is_cancelled() {
    let mut world = World::new(options(EraChoice::Handshake), with_tasks("completed", usize::MAX));
    world.connected().unwrap();
    let limits = CallOptions { maximum: Some(2_000), ..CallOptions::default() };
    let operation = world.start(call("t"), limits);
    assert_eq!(world.finish(operation).unwrap_err().kind(), ErrorKind::Timeout);
    world.settle();
    assert!(world.methods().contains(&"tasks/cancel".to_owned()));
}

#[test]
fn a_stateless_task_brings_its_result_its_error_or_its_questions() {
    let answers = RefCell::new(Vec::new());
    let run = |states: Vec<Value>| {
        let mut states = states.into_iter();
        let server = stateless(|request| {
            let body = body_of(request);
            let result = match method_of(request).as_str() {
                "tools/call" => {
                    let offered = &body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
                    assert!(offered["io.modelcontextprotocol/tasks"].is_object());
                    json!({ "resultType": "task", "taskId": "ä", "status": "working", "pollIntervalMs": 200 })
                }
                "tasks/get" => {
                    assert_eq!(request.header("mcp-name"), Some("=?base64?w6Q=?="));
                    states.next().unwrap()
                }
                "tasks/update" => {
                    answers.borrow_mut().push(body["params"]["inputResponses"].clone());
                    json!({ "resultType": "complete" })
                }
                other => panic!("{other}"),
            };
            Answer::json(200, response(request, &result))
        });
        let capabilities = Params::new().with("elicitation", &Params::new());
        let mut world = World::new(ClientOptions { capabilities, ..options(EraChoice::Auto) }, server);
        let operation = world.start(call("t"), CallOptions::default());
        loop {
            if let Some((question, ..)) = world.asked.pop() {
                let answer = RawJson::parse(r#"{"action":"accept","content":{}}"#).unwrap();
                world.input(Input::Answer { question, outcome: Ok(answer) });
            }
            let done = |event: &Event| match event {
                Event::Done { operation: done, outcome } if *done == operation => Some(outcome.clone()),
                _ => None,
            };
            world.run_until(|_| Some(()));
            if let Some(outcome) = world.events.iter().find_map(done) {
                return outcome;
            }
            if world.asked.is_empty() {
                world.advance();
            }
        }
    };
    let working = json!({ "taskId": "ä", "status": "working" });
    let asking = json!({
        "status": "input_required",
        "inputRequests": { "who": { "method": "elicitation/create", "params": { "message": "?" } } }
    });
    let completed = json!({ "status": "completed", "result": text("done") });
    let reply = run(vec![working.clone(), asking, working, completed]).unwrap();
    assert_eq!(tool_result(reply).text(), "done");
    assert_eq!(*answers.borrow(), [json!({ "who": { "action": "accept", "content": {} } })]);

    let failed = run(vec![json!({ "status": "failed", "error": { "code": 1, "message": "no disk" } })]).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Rpc);
    assert!(failed.message().contains("no disk"), "{failed}");
    assert_eq!(run(vec![json!({ "status": "cancelled" })]).unwrap_err().kind(), ErrorKind::Rpc);
    assert_eq!(run(vec![json!({ "status": "odd" })]).unwrap_err().kind(), ErrorKind::Protocol);
}

#[test]
fn a_task_without_a_name_is_a_fault() {
    let server = stateless(|request| Answer::json(200, response(request, &json!({ "resultType": "task" }))));
    let mut world = World::new(options(EraChoice::Auto), server);
    assert_eq!(world.perform(call("t")).unwrap_err().kind(), ErrorKind::Protocol);
}
