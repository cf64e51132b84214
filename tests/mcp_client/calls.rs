use std::cell::RefCell;

use crablet::ErrorKind;
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::client::{CallOptions, Collection, Input, OperationId, Reply, Request};
use crablet::mcp::protocol::EraChoice;
use serde_json::{Value, json};

use crate::mcp_support::{Answer, Then, World, body_of, method_of};
use crate::server::{call, error, handshake, options, response, stateless, text, tool_result};

#[test]
fn a_cancelled_call_is_told_to_the_server_in_its_eras_way() {
    let hold = |request: &crablet::model::HttpRequest| match method_of(request).as_str() {
        "tools/call" => Answer::stream().chunk(": at work\n\n").then(Then::Hold),
        "GET" => Answer::new(405),
        _ => Answer::new(202),
    };
    let cancel = |world: &mut World<'_>| {
        world.connected().unwrap();
        let operation = world.start(call("x"), CallOptions::default());
        let is_sent = |method: &String| method == "tools/call";
        // The call leaves when the initialization was acknowledged.
        while !world.methods().iter().any(is_sent) {
            world.run_until(|_| Some(()));
            world.advance();
        }
        world.input(Input::Cancel { operation, reason: "enough".to_owned() });
        assert_eq!(world.finish(operation).unwrap_err().kind(), ErrorKind::Aborted);
        world.settle();
        assert_eq!(world.open_exchanges(), 0);
    };

    let mut world = World::new(options(EraChoice::Handshake), handshake(hold));
    cancel(&mut world);
    let sent = world.requests.iter().find(|request| method_of(request) == "tools/call").unwrap();
    let told = world.requests.iter().find(|request| method_of(request) == "notifications/cancelled").unwrap();
    assert_eq!(body_of(told)["params"], json!({ "requestId": body_of(sent)["id"], "reason": "enough" }));

    let mut world = World::new(options(EraChoice::Auto), stateless(hold));
    cancel(&mut world);
    assert_eq!(world.methods(), ["server/discover", "tools/call"]);
    assert_eq!(world.aborted.len(), 1);
}

#[test]
fn an_error_of_the_server_keeps_its_number() {
    let server = handshake(|request| match method_of(request).as_str() {
        "tools/call" => Answer::json(200, error(request, -32602, &Value::Null)),
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    let error = world.perform(call("x")).unwrap_err();
    assert_eq!((error.kind(), error.code(), error.message()), (ErrorKind::Rpc, Some("-32602"), "no"));
}

#[test]
fn pings_are_answered_and_other_requests_declined() {
    let posted = RefCell::new(Vec::new());
    let server = handshake(|request| match method_of(request).as_str() {
        "tools/call" => Answer::stream()
            .message(json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }))
            .message(json!({ "jsonrpc": "2.0", "id": 7, "method": "roots/list" }))
            .message(response(request, &text("ok"))),
        "(response)" => {
            posted.borrow_mut().push(body_of(request));
            Answer::new(202)
        }
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    world.perform(call("x")).unwrap();
    world.settle();
    let posted = posted.borrow();
    assert_eq!(posted[0], json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    assert_eq!((&posted[1]["id"], &posted[1]["error"]["code"]), (&json!(7), &json!(-32601)));
}

#[test]
fn what_no_server_can_take_is_refused_before_it_is_sent() {
    let mut world = World::new(options(EraChoice::Handshake), handshake(|_| Answer::stream().then(Then::Hold)));
    world.connected().unwrap();
    let start = |operation, request| Input::Start { operation, request, options: CallOptions::default() };
    let array = Request::CallTool { name: "x".to_owned(), arguments: RawJson::parse("[]").unwrap() };
    let refused = world.client.handle(world.now, start(OperationId(9), array)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);

    world.input(start(OperationId(9), call("x")));
    let twice = world.client.handle(world.now, start(OperationId(9), call("x"))).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::InvalidInput);

    let too_many =
        (10..5_000).find_map(|number| world.client.handle(world.now, start(OperationId(number), call("x"))).err());
    assert_eq!(too_many.unwrap().kind(), ErrorKind::Limit);
}

#[test]
fn every_kind_of_list_is_read_page_by_page_and_only_if_it_is_offered() {
    let server = |request: &crablet::model::HttpRequest| match method_of(request).as_str() {
        "server/discover" => {
            let result = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "resources": {} } });
            Answer::json(200, response(request, &result))
        }
        _ if body_of(request)["params"]["cursor"] == "2" => {
            Answer::json(200, response(request, &json!({ "resources": [{ "uri": "f:///a" }, { "uri": "f:///b" }] })))
        }
        _ => {
            let page = json!({ "resources": [{ "uri": "f:///a" }, { "name": "no address" }], "nextCursor": "2" });
            Answer::json(200, response(request, &page))
        }
    };
    let mut world = World::new(options(EraChoice::Auto), server);
    let Reply::Entries(entries) = world.perform(Request::List(Collection::Resources)).unwrap() else {
        panic!("no entries")
    };
    let texts: Vec<_> = entries.iter().map(RawJson::as_str).collect();
    assert_eq!(texts, [r#"{"uri":"f:///a"}"#, r#"{"uri":"f:///b"}"#]);
    for collection in [Collection::Tools, Collection::Prompts] {
        assert_eq!(world.perform(Request::List(collection)).unwrap(), Reply::Entries(Vec::new()));
    }
    assert_eq!(world.methods(), ["server/discover", "resources/list", "resources/list"]);
}

#[test]
fn any_other_request_gives_its_result_as_it_came() {
    let server = handshake(|request| match method_of(request).as_str() {
        "prompts/get" => Answer::json(200, response(request, &json!({ "messages": [1.5] }))),
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    let request = Request::Other { method: "prompts/get".to_owned(), params: Params::new().with("name", "p") };
    let Reply::Value(value) = world.perform(request).unwrap() else { panic!("not a value") };
    assert_eq!(value.as_str(), r#"{"messages":[1.5]}"#);
}

#[test]
fn sixty_four_calls_are_under_way_at_once_and_each_gets_its_own_answer() {
    let server = stateless(|request| {
        let name = body_of(request)["params"]["name"].as_str().unwrap().to_owned();
        let delay = 64 - name.parse::<u64>().unwrap();
        Answer::json(200, response(request, &text(&name))).delayed(delay)
    });
    let mut world = World::new(options(EraChoice::Auto), server);
    world.connected().unwrap();
    let started = world.now;
    let calls: Vec<_> = (0..64).map(|number| world.start(call(&number.to_string()), CallOptions::default())).collect();
    for (number, operation) in calls.into_iter().enumerate() {
        let result = tool_result(world.finish(operation).unwrap());
        assert_eq!(result.text(), number.to_string());
    }
    assert_eq!(world.now.since(started), 64, "they ran beside one another");
}

#[test]
fn a_call_whose_answer_is_lost_is_sent_again_once_if_its_tool_says_that_this_does_no_harm() {
    let tool = |name: &str, annotations: Value| json!({ "name": name, "inputSchema": {}, "annotations": annotations });
    let tools = json!({ "tools": [
        tool("reads", json!({ "readOnlyHint": true })),
        tool("sets", json!({ "readOnlyHint": false, "idempotentHint": true })),
        tool("adds", json!({ "readOnlyHint": false, "idempotentHint": false })),
        tool("says nothing", json!({})),
    ] });
    for (name, sent, is_lost_twice) in
        [("reads", 2, false), ("sets", 2, false), ("reads", 2, true), ("adds", 1, false), ("says nothing", 1, false)]
    {
        let calls = RefCell::new(0);
        let server = stateless(|request| match method_of(request).as_str() {
            "tools/list" => Answer::json(200, response(request, &tools)),
            "tools/call" => {
                *calls.borrow_mut() += 1;
                match *calls.borrow() == 1 || is_lost_twice {
                    true => Answer::new(200).then(Then::Unreachable),
                    false => Answer::json(200, response(request, &text("ok"))),
                }
            }
            _ => Answer::new(405),
        });
        let mut world = World::new(options(EraChoice::Auto), server);
        world.perform(Request::ListTools).unwrap();
        let outcome = world.perform(call(name));
        assert_eq!(*calls.borrow(), sent, "{name}");
        let is_right = sent == 2 && !is_lost_twice;
        assert_eq!(
            outcome.as_ref().err().map(crablet::Error::kind),
            (!is_right).then_some(ErrorKind::Network),
            "{name}"
        );
        assert_eq!(world.warnings().iter().any(|warning| warning.contains("called again")), sent == 2, "{name}");
    }
}

#[test]
fn a_tool_that_was_not_listed_says_nothing_of_a_second_call() {
    let server = stateless(|request| match method_of(request).as_str() {
        "tools/call" => Answer::new(200).then(Then::Unreachable),
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Auto), server);
    assert_eq!(world.perform(call("reads")).unwrap_err().kind(), ErrorKind::Network);
    assert_eq!(world.methods().iter().filter(|method| *method == "tools/call").count(), 1);
}

#[test]
fn a_tool_that_cannot_be_called_is_left_out_with_a_warning_and_the_others_stay() {
    let tools = json!([
        null, 7, { "name": "a" }, { "name": "b", "inputSchema": null }, { "name": "c", "inputSchema": [] },
        { "name": "", "inputSchema": {} }, { "name": "d", "inputSchema": { "$schema": "x" } }
    ]);
    let server = stateless(|request| Answer::json(200, response(request, &json!({ "tools": tools }))));
    let mut world = World::new(options(EraChoice::Auto), server);
    let Reply::Tools(listed) = world.perform(Request::ListTools).unwrap() else { panic!("no tools") };
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b", "d"]);
    let warnings = world.warnings();
    assert!(warnings.len() == 2 && warnings[0].contains(r#""name":"c""#), "{warnings:?}");
}

#[test]
fn a_refusal_is_of_its_request_whatever_id_it_has() {
    for id in [json!("server-error"), json!(0), json!(null), json!(987_654)] {
        let body = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": "Not Acceptable" } });
        let server = stateless(|_| Answer::json(406, &body));
        let mut world = World::new(options(EraChoice::Auto), server);
        let error = world.perform(call("x")).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Rpc, Some("-32600")), "{id}");
        assert!(error.message().contains("Not Acceptable"), "{error}");
    }
}
