use crablet::mcp::client::{ClientOptions, Event, Reply, Request};
use crablet::mcp::protocol::{Era, EraChoice, EraRecord, Revision};
use crablet::{ErrorKind, Millis};
use serde_json::{Value, json};

use crate::mcp_support::{Answer, Then, World, body_of, method_of};
use crate::server::{call, error, handshake, options, response, stateless, text, tool_result};

fn record(world: &World<'_>) -> EraRecord {
    let found = world.events.iter().rev().find_map(|event| match event {
        Event::Connected { record, .. } => Some(*record),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_stateless_server_is_spoken_to_without_session_or_handshake() {
    let server = stateless(|request| Answer::json(200, response(request, &text("ok"))));
    let mut world = World::new(options(EraChoice::Auto), server);
    world.connected().unwrap();
    assert_eq!(record(&world).era, Era::Stateless);
    world.perform(call("größe")).unwrap();
    world.settle();
    assert_eq!(world.methods(), ["server/discover", "tools/call"]);
    for request in &world.requests {
        let meta = &body_of(request)["params"]["_meta"];
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        let is_call = method_of(request) == "tools/call";
        let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let offered = if is_call { tasks } else { json!({}) };
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], offered);
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "crablet");
        assert_eq!(request.header("mcp-method"), Some(method_of(request).as_str()));
        assert_eq!(request.header("mcp-session-id"), None);
    }
    assert_eq!(world.requests[1].header("mcp-name"), Some("=?base64?Z3LDtsOfZQ==?="));
}

#[test]
fn a_handshake_server_is_found_out_by_its_refusal() {
    let mut world = World::new(options(EraChoice::Auto), handshake(|_| Answer::new(405)));
    world.connected().unwrap();
    assert_eq!(record(&world).era, Era::Handshake(Revision::V2025_11_25));
    assert_eq!(world.methods()[..2], ["server/discover", "initialize"]);
    assert_eq!(world.requests[1].header("mcp-method"), None);
}

#[test]
fn refused_and_failing_probes_are_errors_and_no_sign_of_an_era() {
    for (answer, kind) in [
        (Answer::json(401, r#"{"id":1,"error":{"code":-32601,"message":"no"}}"#), ErrorKind::Auth),
        (Answer::new(403), ErrorKind::Auth),
        (Answer::new(500), ErrorKind::Server),
        (Answer::new(503), ErrorKind::Overloaded),
        (Answer::default().then(Then::Unreachable), ErrorKind::Network),
    ] {
        let mut world = World::new(options(EraChoice::Auto), |_| answer.clone());
        assert_eq!(world.connected().unwrap_err().kind(), kind, "{answer:?}");
        world.settle();
        assert_eq!(world.methods(), ["server/discover"], "{answer:?}");
    }
}

#[test]
fn a_probe_that_fails_without_a_reason_leads_to_one_initialize() {
    let mut inner = handshake(|_| Answer::new(405));
    let mut world = World::new(options(EraChoice::Auto), move |request| match method_of(request).as_str() {
        "server/discover" => Answer::default().then(Then::Opaque),
        _ => inner(request),
    });
    world.connected().unwrap();

    let mut world = World::new(options(EraChoice::Auto), |_| Answer::default().then(Then::Opaque));
    let error = world.connected().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    for header in ["mcp-protocol-version", "mcp-method", "mcp-session-id", "Access-Control-Expose-Headers"] {
        assert!(error.message().contains(header), "{error}");
    }
    world.settle();
    assert_eq!(world.methods(), ["server/discover", "initialize"]);
}

#[test]
fn a_server_that_shares_no_revision_is_told_apart() {
    let server = |request: &crablet::model::HttpRequest| {
        Answer::json(400, error(request, -32022, &json!({ "supported": ["2031-01-01"] })))
    };
    let mut world = World::new(options(EraChoice::Auto), server);
    let error = world.connected().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    assert!(error.message().contains("2031-01-01"));

    let mut world = World::new(options(EraChoice::Stateless), handshake(|_| Answer::new(405)));
    assert_eq!(world.connected().unwrap_err().kind(), ErrorKind::UnsupportedVersion);

    let mut world = World::new(options(EraChoice::Handshake), |request: &crablet::model::HttpRequest| {
        Answer::json(200, response(request, &json!({ "protocolVersion": "1999-01-01", "capabilities": {} })))
    });
    assert_eq!(world.connected().unwrap_err().kind(), ErrorKind::UnsupportedVersion);
}

#[test]
fn a_version_that_was_refused_in_error_is_asked_for_once_more() {
    let mut refusals = 0;
    let mut inner = stateless(|_| Answer::new(500));
    let mut world = World::new(options(EraChoice::Auto), move |request| {
        refusals += 1;
        let data = json!({ "supported": ["2026-07-28"] });
        if refusals == 1 { Answer::json(400, error(request, -32022, &data)) } else { inner(request) }
    });
    world.connected().unwrap();
    assert_eq!(world.methods(), ["server/discover", "server/discover"]);

    let always = |request: &crablet::model::HttpRequest| {
        Answer::json(400, error(request, -32022, &json!({ "supported": ["2026-07-28"] })))
    };
    let mut world = World::new(options(EraChoice::Auto), always);
    assert_eq!(world.connected().unwrap_err().kind(), ErrorKind::Rpc);
}

fn known(era: Era) -> ClientOptions {
    ClientOptions { known_era: Some(EraRecord { era, at: Millis(0) }), ..options(EraChoice::Auto) }
}

#[test]
fn a_record_saves_the_probe() {
    let server = stateless(|request| Answer::json(200, response(request, &text("ok"))));
    let mut world = World::new(known(Era::Stateless), server);
    world.perform(call("x")).unwrap();
    assert_eq!(world.methods(), ["tools/call"]);

    let mut world = World::new(known(Era::Handshake(Revision::V2025_06_18)), handshake(|_| Answer::new(405)));
    world.connected().unwrap();
    assert_eq!(body_of(&world.requests[0])["params"]["protocolVersion"], "2025-06-18");
}

#[test]
fn a_wrong_record_is_found_out_and_the_call_still_made() {
    for refusal in [
        Answer::new(400),
        Answer::json(400, r#"{"id":null,"error":{"code":-32000,"message":"no"}}"#),
        Answer::json(
            400,
            r#"{"id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}"#,
        ),
        Answer::json(404, r#"{"id":null,"error":{"code":-32001,"message":"Session not found"}}"#),
        Answer::new(404).chunk("Invalid session ID"),
    ] {
        let server = handshake(move |request| match request.header("mcp-session-id") {
            Some(_) if method_of(request) == "tools/call" => Answer::json(200, response(request, &text("ok"))),
            Some(_) => Answer::new(405),
            None => refusal.clone(),
        });
        let mut world = World::new(known(Era::Stateless), server);
        let result = tool_result(world.perform(call("x")).unwrap());
        assert_eq!(result.text(), "ok");
        assert_eq!(record(&world).era, Era::Handshake(Revision::V2025_11_25));
    }

    let mut inner = stateless(|_| Answer::new(500));
    let server = move |request: &crablet::model::HttpRequest| match method_of(request).as_str() {
        "initialize" => Answer::json(404, error(request, -32601, &Value::Null)),
        _ => inner(request),
    };
    let mut world = World::new(known(Era::Handshake(Revision::V2025_11_25)), server);
    world.connected().unwrap();
    assert_eq!(record(&world).era, Era::Stateless);
}

#[test]
fn tools_that_need_headers_get_them_after_one_more_list() {
    let schema =
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let tools = json!({ "resultType": "complete", "tools": [
        { "name": "good", "inputSchema": schema },
        { "name": "bad", "inputSchema": { "properties": { "a": { "type": "string", "x-mcp-header": "" } } } },
    ]});
    let server = stateless(move |request| match (method_of(request).as_str(), request.header("mcp-param-region")) {
        ("tools/list", _) => Answer::json(200, response(request, &tools)),
        (_, Some("eu")) => Answer::json(200, response(request, &text("ok"))),
        _ => Answer::json(400, error(request, -32020, &Value::Null)),
    });
    let mut world = World::new(options(EraChoice::Auto), server);
    let arguments = crablet::json::RawJson::parse(r#"{"region":"eu"}"#).unwrap();
    world.perform(Request::CallTool { name: "good".to_owned(), arguments }).unwrap();
    assert_eq!(world.methods(), ["server/discover", "tools/call", "tools/list", "tools/call"]);

    let Reply::Tools(tools) = world.perform(Request::ListTools).unwrap() else { panic!("no tools") };
    assert_eq!(tools.len(), 1, "a tool whose annotation cannot be obeyed is left out");
    assert!(world.warnings().iter().any(|warning| warning.contains("bad")));
    let refused = world.perform(call("good")).unwrap_err();
    assert_eq!(refused.code(), Some("-32020"), "the list is asked for once per call");
}

#[test]
fn results_of_a_kind_that_is_not_known_are_errors() {
    for kind in ["input_required", "hologram"] {
        let result = json!({ "resultType": kind, "content": [] });
        let server = stateless(move |request| Answer::json(200, response(request, &result)));
        let mut world = World::new(options(EraChoice::Auto), server);
        assert_eq!(world.perform(call("x")).unwrap_err().kind(), ErrorKind::Protocol, "{kind}");
    }
}
