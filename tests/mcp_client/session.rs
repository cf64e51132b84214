use std::cell::Cell;

use crablet::ErrorKind;
use crablet::mcp::client::{CallOptions, Event, Input};
use crablet::mcp::protocol::EraChoice;
use serde_json::json;

use crate::mcp_support::{Answer, Then, World, body_of, method_of};
use crate::server::{call, handshake, options, response, text};

#[test]
fn a_forgotten_session_is_replaced_once_for_all_calls_under_way() {
    let sessions = Cell::new(0);
    let server = |request: &crablet::model::HttpRequest| match method_of(request).as_str() {
        "initialize" => {
            sessions.set(sessions.get() + 1);
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
            Answer::json(200, response(request, &result)).header("mcp-session-id", &format!("s-{}", sessions.get()))
        }
        "tools/call" if request.header("mcp-session-id") == Some("s-2") => {
            Answer::json(200, response(request, &text("ok")))
        }
        "tools/call" => {
            let slow = body_of(request)["params"]["name"] == "slow";
            Answer::json(404, "").delayed(if slow { 5_000 } else { 10 })
        }
        "GET" => Answer::new(405),
        _ => Answer::new(202),
    };
    let mut world = World::new(options(EraChoice::Handshake), server);
    let calls = ["a", "b", "slow"].map(|name| world.start(call(name), CallOptions::default()));
    for operation in calls {
        world.finish(operation).unwrap();
    }
    assert_eq!(sessions.get(), 2);
}

#[test]
fn a_session_that_is_forgotten_again_is_an_error() {
    let server = handshake(|request| match method_of(request).as_str() {
        "tools/call" => Answer::json(400, r#"{"error":{"code":-32000,"message":"No valid session ID provided"}}"#),
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    assert_eq!(world.perform(call("x")).unwrap_err().kind(), ErrorKind::SessionExpired);
    assert_eq!(world.methods().iter().filter(|method| *method == "initialize").count(), 2);
}

#[test]
fn a_session_id_is_not_printed() {
    let server = handshake(|_| Answer::stream().then(Then::Hold));
    let mut world = World::new(options(EraChoice::Handshake), server);
    world.connected().unwrap();
    world.start(call("x"), CallOptions::default());
    world.advance();
    assert!(world.requests.iter().any(|request| request.header("mcp-session-id") == Some("s-1")));
    let printed = format!("{:?} {:?} {:?}", world.http, world.client, world.requests);
    assert!(!printed.contains("s-1"), "{printed}");
}

#[test]
fn a_session_id_that_the_page_cannot_read_is_named_in_any_words() {
    let server = handshake(|request| match method_of(request).as_str() {
        "tools/call" => Answer::new(400).chunk("Missing session ID"),
        _ => Answer::new(405),
    });
    let mut server = server;
    let mut world = World::new(options(EraChoice::Handshake), move |request| {
        let mut answer = server(request);
        answer.headers.retain(|(name, _)| name != "mcp-session-id");
        answer
    });
    let error = world.perform(call("x")).unwrap_err();
    assert!(error.message().contains("Access-Control-Expose-Headers"), "{error}");
    assert!(error.message().contains("Missing session ID"), "{error}");
}

#[test]
fn a_session_id_that_the_page_cannot_read_is_named() {
    let server = |request: &crablet::model::HttpRequest| match method_of(request).as_str() {
        "initialize" => {
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
            Answer::json(200, response(request, &result))
        }
        "tools/call" => Answer::json(400, r#"{"error":{"code":-32000,"message":"Mcp-Session-Id is required"}}"#),
        _ => Answer::new(202),
    };
    let mut world = World::new(options(EraChoice::Handshake), server);
    let error = world.perform(call("x")).unwrap_err();
    assert!(error.message().contains("Access-Control-Expose-Headers"), "{error}");
}

#[test]
fn requests_wait_until_the_server_has_heard_of_the_initialization() {
    let mut world = World::new(options(EraChoice::Handshake), |request| match method_of(request).as_str() {
        "initialize" => {
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
            Answer::json(200, response(request, &result))
        }
        "notifications/initialized" => Answer::new(202).delayed(400),
        "tools/call" => Answer::json(200, response(request, &text("ok"))),
        _ => Answer::new(405),
    });
    world.connected().unwrap();
    let before = world.now;
    world.perform(call("x")).unwrap();
    assert_eq!(world.now.since(before), 400);
}

#[test]
fn an_initialization_that_is_never_acknowledged_holds_nothing_up_for_long() {
    let mut world = World::new(options(EraChoice::Handshake), |request| match method_of(request).as_str() {
        "initialize" => {
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
            Answer::json(200, response(request, &result))
        }
        "notifications/initialized" => Answer::new(202).delayed(10_000_000),
        "tools/call" => Answer::json(200, response(request, &text("ok"))),
        _ => Answer::new(405),
    });
    world.connected().unwrap();
    let before = world.now;
    world.perform(call("x")).unwrap();
    assert!(world.now.since(before) <= 5_000);
    world.settle();
    assert_eq!(world.open_exchanges(), 0, "the notification is given up in the end");
}

#[test]
fn a_version_header_that_cors_forbids_is_left_out_and_told_of() {
    let server = |request: &crablet::model::HttpRequest| match method_of(request).as_str() {
        _ if request.header("mcp-protocol-version").is_some() => Answer::default().then(Then::Opaque),
        "initialize" => {
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
            Answer::json(200, response(request, &result))
        }
        "tools/call" => Answer::json(200, response(request, &text("ok"))),
        _ => Answer::new(202),
    };
    let mut world = World::new(options(EraChoice::Auto), server);
    world.perform(call("x")).unwrap();
    world.perform(call("x")).unwrap();
    let told = world.warnings().iter().filter(|warning| warning.contains("MCP-Protocol-Version")).count();
    assert_eq!(told, 1);
    // The probe, and the first request after `initialize`: what is known is not tried again.
    let with_header = world.requests.iter().filter(|request| request.header("mcp-protocol-version").is_some()).count();
    assert_eq!(with_header, 2);
}

#[test]
fn closing_ends_what_is_open_and_deletes_the_session() {
    for refusal in [
        Answer::new(405),
        Answer::new(200),
        Answer::default().then(Then::Unreachable),
        Answer::new(200).delayed(60_000),
    ] {
        let server = handshake(move |request| match method_of(request).as_str() {
            "tools/call" => Answer::stream().then(Then::Hold),
            "DELETE" => refusal.clone(),
            _ => Answer::stream().then(Then::Hold),
        });
        let mut world = World::new(options(EraChoice::Handshake), server);
        world.connected().unwrap();
        let open = world.start(call("x"), CallOptions::default());
        // Lets the call leave before the connection is closed.
        world.input(Input::Timer(crablet::mcp::client::TimerId::Probe));
        world.input(Input::Close);
        assert_eq!(world.finish(open).unwrap_err().kind(), ErrorKind::ConnectionClosed);
        world.run_until(|event| matches!(event, Event::Closed { .. }).then_some(())).unwrap();
        let last = world.requests.last().unwrap();
        assert_eq!((last.method, last.header("mcp-session-id")), ("DELETE", Some("s-1")));
        world.settle();
        assert_eq!(world.open_exchanges(), 0);
        let refused = Input::Start {
            operation: crablet::mcp::client::OperationId(99),
            request: call("x"),
            options: CallOptions::default(),
        };
        assert_eq!(world.client.handle(world.now, refused).unwrap_err().kind(), ErrorKind::ConnectionClosed);
    }
}

#[test]
fn a_session_may_be_forgotten_in_words_that_are_no_json_rpc() {
    for body in ["Invalid or missing session ID", r#"{"error":"Session expired"}"#] {
        let is_known = Cell::new(false);
        let server = handshake(|request| match method_of(request).as_str() {
            "tools/call" if is_known.replace(true) => Answer::json(200, response(request, &text("ok"))),
            "tools/call" => Answer::new(400).chunk(body),
            _ => Answer::new(405),
        });
        let mut world = World::new(options(EraChoice::Handshake), server);
        world.perform(call("x")).unwrap();
        assert_eq!(world.methods().iter().filter(|method| *method == "initialize").count(), 2);
    }
}
