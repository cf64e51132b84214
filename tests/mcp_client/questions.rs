use std::cell::RefCell;

use crablet::ErrorKind;
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::client::{CallOptions, ClientOptions, Input};
use crablet::mcp::protocol::EraChoice;
use crablet::model::HttpRequest;
use serde_json::{Value, json};

use crate::mcp_support::{Answer, Then, World, body_of, method_of};
use crate::server::{call, handshake, notification, options, response, stateless, text, tool_result};

fn with_elicitation(era: EraChoice) -> ClientOptions {
    ClientOptions { capabilities: Params::new().with("elicitation", &Params::new()), ..options(era) }
}

fn raw(value: &Value) -> RawJson {
    RawJson::parse(value.to_string()).unwrap()
}

fn form() -> Value {
    let name = json!({ "type": "string", "default": "Ada" });
    json!({ "method": "elicitation/create", "params": { "requestedSchema": { "properties": { "name": name } } } })
}

#[test]
fn a_stateless_server_gets_the_answers_and_its_state_with_the_next_try() {
    let tries = RefCell::new(Vec::new());
    let server = stateless(|request: &HttpRequest| {
        let params = body_of(request)["params"].clone();
        tries.borrow_mut().push((body_of(request)["id"].clone(), params.clone()));
        let answered = &params["inputResponses"]["who"]["content"]["name"];
        let result = match answered.as_str() {
            Some(name) => text(&format!("hello {name}")),
            None => {
                json!({ "resultType": "input_required", "inputRequests": { "who": form() }, "requestState": "o\u{e9}" })
            }
        };
        Answer::json(200, response(request, &result))
    });
    let mut world = World::new(with_elicitation(EraChoice::Auto), server);
    let operation = world.start(call("ask"), CallOptions::default());
    world.until_asked();
    let (question, method, _) = world.asked.remove(0);
    assert_eq!(method, "elicitation/create");
    world.input(Input::Answer { question, outcome: Ok(raw(&json!({ "action": "accept" }))) });
    let result = tool_result(world.finish(operation).unwrap());
    assert_eq!(result.text(), "hello Ada");

    let tries = tries.borrow();
    assert_ne!(tries[0].0, tries[1].0, "each try has its own id");
    assert_eq!(tries[1].1["requestState"], "o\u{e9}");
    assert_eq!(tries[1].1["arguments"], tries[0].1["arguments"]);
    assert_eq!(tries[0].1.get("requestState"), None);
}

#[test]
fn asking_for_ever_or_for_what_was_not_offered_is_an_error() {
    for (offered, requests) in [
        (with_elicitation(EraChoice::Auto), json!({})),
        (with_elicitation(EraChoice::Auto), json!({ "m": { "method": "sampling/createMessage" } })),
        (options(EraChoice::Auto), json!({ "who": form() })),
    ] {
        let result = json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "s" });
        let mut world = World::new(offered, stateless(move |request| Answer::json(200, response(request, &result))));
        assert_eq!(world.perform(call("ask")).unwrap_err().kind(), ErrorKind::Protocol);
        assert!(world.requests.len() <= 13, "the rounds are bounded");
    }
}

fn asking(id: u64) -> Value {
    let mut request = form();
    request["jsonrpc"] = json!("2.0");
    request["id"] = json!(id);
    request
}

#[test]
fn a_handshake_server_is_answered_while_its_call_waits_without_a_time_limit() {
    let answers = RefCell::new(Vec::new());
    let server = handshake(|request| match method_of(request).as_str() {
        "tools/call" => Answer::stream().message(asking(5)).message(response(request, &text("ok"))).pausing(500_000),
        "(response)" => {
            answers.borrow_mut().push(body_of(request));
            Answer::new(202)
        }
        _ => Answer::new(405),
    });
    let mut world = World::new(with_elicitation(EraChoice::Handshake), server);
    let limits = CallOptions { idle_timeout: 600_000, ..CallOptions::default() };
    let operation = world.start(call("ask"), limits);
    world.until_asked();
    let (question, ..) = world.asked[0].clone();
    world.input(Input::Answer { question, outcome: Ok(raw(&json!({ "action": "decline" }))) });
    world.finish(operation).unwrap();
    assert_eq!(answers.borrow()[0], json!({ "jsonrpc": "2.0", "id": 5, "result": { "action": "decline" } }));
}

#[test]
fn a_question_whose_answer_nobody_wants_is_withdrawn() {
    let cancelled = notification("notifications/cancelled", &json!({ "requestId": 5 }));
    let server = handshake(|request| match method_of(request).as_str() {
        "tools/call" => Answer::stream().message(asking(5)).message(&cancelled).pausing(10).then(Then::Hold),
        "GET" => Answer::new(405),
        _ => Answer::new(202),
    });
    let mut world = World::new(with_elicitation(EraChoice::Handshake), server);
    let operation = world.start(call("ask"), CallOptions { idle_timeout: 1_000, ..CallOptions::default() });
    world.until_asked();
    let (question, ..) = world.asked[0].clone();
    assert_eq!(world.finish(operation).unwrap_err().kind(), ErrorKind::Timeout);
    assert!(world.asked.is_empty());
    // Too late, and no harm.
    world.input(Input::Answer { question, outcome: Ok(raw(&json!({}))) });
    world.settle();
    assert!(!world.methods().iter().any(|method| method == "(response)"));
}

#[test]
fn only_the_modes_that_a_client_offers_are_asked_for() {
    for (declared, mode, is_asked) in [
        (json!({}), json!(null), true),
        (json!({}), json!("form"), true),
        (json!({}), json!("url"), false),
        (json!({ "form": {} }), json!("url"), false),
        (json!({ "url": {} }), json!("url"), true),
        (json!({ "url": {} }), json!(null), false),
        (json!({ "form": {}, "url": {} }), json!("form"), true),
    ] {
        let question = json!({
            "jsonrpc": "2.0", "id": 7, "method": "elicitation/create",
            "params": { "mode": mode, "message": "?", "url": "https://a.example", "requestedSchema": {} }
        });
        let server = handshake(|request| match method_of(request).as_str() {
            "tools/call" => Answer::stream().message(&question).message(response(request, &text("ok"))),
            "(response)" => Answer::new(202),
            _ => Answer::new(405),
        });
        let mut options = with_elicitation(EraChoice::Handshake);
        options.capabilities.set("elicitation", &raw(&declared));
        let mut world = World::new(options, server);
        world.perform(call("x")).unwrap();
        world.settle();
        let refusal = world.requests.iter().find(|request| method_of(request) == "(response)").map(body_of);
        assert_eq!(world.asked.len(), usize::from(is_asked), "{declared} {mode}");
        let code = refusal.map(|refusal| refusal["error"]["code"].clone());
        assert_eq!(code, (!is_asked).then(|| json!(-32602)), "{declared} {mode}");
    }
}

#[test]
fn models_are_given_tools_only_where_the_client_declares_it() {
    for (declared, is_asked) in [(json!({}), false), (json!({ "tools": {} }), true)] {
        let question = json!({
            "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1, "tools": [{ "name": "t" }] }
        });
        let server = stateless(|request| {
            let requests = json!({ "k": question });
            Answer::json(200, response(request, &json!({ "resultType": "input_required", "inputRequests": requests })))
        });
        let capabilities = Params::new().with("sampling", &raw(&declared));
        let mut world = World::new(ClientOptions { capabilities, ..options(EraChoice::Auto) }, server);
        world.start(call("x"), CallOptions::default());
        if is_asked {
            world.until_asked()
        } else {
            world.settle()
        }
        assert_eq!(world.asked.len(), usize::from(is_asked), "{declared}");
    }
}
