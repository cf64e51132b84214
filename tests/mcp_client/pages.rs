//! Pages that a user must visit before a server answers a call.

use std::cell::Cell;

use crablet::ErrorKind;
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::client::{CallOptions, ClientOptions, Input};
use crablet::mcp::protocol::EraChoice;
use crablet::model::HttpRequest;
use serde_json::json;

use crate::mcp_support::{Answer, World, method_of};
use crate::server::{call, error, handshake, notification, options, response, text, tool_result};

fn with_pages() -> ClientOptions {
    let elicitation = Params::new().with("url", &Params::new());
    ClientOptions { capabilities: Params::new().with("elicitation", &elicitation), ..options(EraChoice::Handshake) }
}

/// A server whose first call wants a page visited, and which says after ten minutes that the user was there.
fn server(calls: &Cell<u32>) -> impl FnMut(&HttpRequest) -> Answer {
    let page = json!({ "mode": "url", "elicitationId": "e", "url": "https://a.example/", "message": "Connect" });
    handshake(move |request| match method_of(request).as_str() {
        "tools/call" => {
            calls.set(calls.get() + 1);
            match calls.get() {
                1 => Answer::json(200, error(request, -32042, &json!({ "elicitations": [page] }))),
                _ => Answer::json(200, response(request, &text("connected"))),
            }
        }
        "GET" => {
            let complete = notification("notifications/elicitation/complete", &json!({ "elicitationId": "e" }));
            Answer::stream().chunk(": open\n\n").message(complete).pausing(600_000)
        }
        _ => Answer::new(202),
    })
}

fn decided(action: &str) -> (Result<crablet::mcp::client::Reply, crablet::Error>, u32) {
    let calls = Cell::new(0);
    let mut world = World::new(with_pages(), server(&calls));
    world.connected().unwrap();
    let operation = world.start(call("x"), CallOptions::default());
    world.until_asked();
    let (question, method, params) = world.asked.remove(0);
    assert_eq!(method, "elicitation/create");
    assert!(params.as_str().contains("https://a.example/"));
    let answer = RawJson::parse(json!({ "action": action }).to_string()).unwrap();
    world.input(Input::Answer { question, outcome: Ok(answer) });
    let outcome = world.finish(operation);
    (outcome, calls.get())
}

#[test]
fn a_call_is_made_again_once_the_user_is_done_with_the_page() {
    let (outcome, calls) = decided("accept");
    assert_eq!(tool_result(outcome.unwrap()).text(), "connected");
    assert_eq!(calls, 2);
}

#[test]
fn a_user_who_does_not_want_to_ends_the_call() {
    let (outcome, calls) = decided("decline");
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.code(), calls), (ErrorKind::Rpc, Some("-32042"), 1));
}

#[test]
fn a_client_that_shows_no_pages_gets_the_error() {
    let calls = Cell::new(0);
    let mut world = World::new(options(EraChoice::Handshake), server(&calls));
    assert_eq!(world.perform(call("x")).unwrap_err().code(), Some("-32042"));
}
