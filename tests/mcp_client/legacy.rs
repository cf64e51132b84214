//! HTTP+SSE, the transport of revision 2024-11-05.

use crablet::ErrorKind;
use crablet::mcp::client::{CallOptions, Event};
use crablet::mcp::protocol::{Era, EraChoice, Revision};
use crablet::model::HttpRequest;
use serde_json::{Value, json};

use crate::mcp_support::{Answer, Then, World};
use crate::server::{call, options, text, tool_result};

const ENDPOINT: &str = "event: endpoint\ndata: /message?sessionId=1\n\n";

fn answer(id: u64, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn initialized() -> Value {
    json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} } })
}

/// A server that takes posts only at the address that its stream names, and answers on the stream.
fn old_server(stream: Answer) -> impl FnMut(&HttpRequest) -> Answer {
    move |request| match (request.method, request.url.as_str()) {
        ("GET", "https://mcp.example/mcp") => stream.clone(),
        ("POST", "https://mcp.example/message?sessionId=1") => Answer::new(202).chunk("Accepted"),
        _ => Answer::new(404).chunk("Cannot POST /mcp"),
    }
}

#[test]
fn a_server_of_the_first_transport_is_found_and_used() {
    let stream = Answer::stream()
        .chunk(ENDPOINT)
        .message(answer(2, initialized()))
        .message(answer(3, text("ok")))
        .pausing(100)
        .then(Then::Hold);
    let mut world = World::new(options(EraChoice::Auto), old_server(stream));
    world.connected().unwrap();
    let result = tool_result(world.perform(call("x")).unwrap());
    assert_eq!(result.text(), "ok");
    assert_eq!(
        world.methods(),
        ["server/discover", "initialize", "GET", "initialize", "notifications/initialized", "tools/call"]
    );
    let record = world.events.iter().find_map(|event| match event {
        Event::Connected { record, .. } => Some(record.era),
        _ => None,
    });
    assert_eq!(record, Some(Era::Handshake(Revision::V2024_11_05)));
    assert!(world.warnings().is_empty(), "{:?}", world.warnings());
}

#[test]
fn the_end_of_the_stream_ends_the_connection_and_its_calls() {
    let stream = Answer::stream().chunk(ENDPOINT).message(answer(2, initialized())).pausing(100);
    let mut world = World::new(options(EraChoice::Auto), old_server(stream));
    let operation = world.start(call("x"), CallOptions::default());
    assert_eq!(world.finish(operation).unwrap_err().kind(), ErrorKind::ConnectionClosed);
    assert!(world.events.iter().any(|event| matches!(event, Event::Closed { .. })));
    assert_eq!(world.open_exchanges(), 0);
}

#[test]
fn a_stream_without_an_address_of_its_own_origin_is_not_followed() {
    let evil = Answer::stream().chunk("event: endpoint\ndata: https://evil.example/m\n\n").then(Then::Hold);
    let silent = Answer::stream().then(Then::Hold);
    let none = Answer::json(404, "");
    for (stream, kind) in [(evil, ErrorKind::Protocol), (silent, ErrorKind::BadRequest), (none, ErrorKind::BadRequest)]
    {
        let mut world = World::new(options(EraChoice::Auto), old_server(stream));
        assert_eq!(world.connected().unwrap_err().kind(), kind);
        assert!(world.requests.iter().all(|request| request.url.starts_with("https://mcp.example/")));
        assert_eq!(world.open_exchanges(), 0);
    }
}

#[test]
fn an_error_that_is_no_json_rpc_does_not_hide_the_first_transport() {
    for body in [r#"{"error":{"code":404,"message":"Not Found"}}"#, r#"{"error":"Not Found","status":404}"#, ""] {
        let stream = Answer::stream().chunk(ENDPOINT).message(answer(2, initialized())).pausing(100).then(Then::Hold);
        let mut server = old_server(stream);
        let mut world = World::new(options(EraChoice::Auto), move |request| match server(request) {
            refusal if refusal.status == 404 => Answer::json(404, body),
            other => other,
        });
        world.connected().unwrap();
    }
    let refusal = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": "no" } });
    let mut world = World::new(options(EraChoice::Auto), |_| Answer::json(400, &refusal));
    assert_eq!(world.connected().unwrap_err().kind(), ErrorKind::Rpc);
    assert!(!world.methods().contains(&"GET".to_owned()));
}
