use std::cell::Cell;

use crablet::ErrorKind;
use crablet::mcp::client::{CallOptions, Event};
use crablet::mcp::protocol::EraChoice;
use serde_json::{Value, json};

use crate::mcp_support::{Answer, Cut, Then, World, body_of, method_of};
use crate::server::{call, error, handshake, notification, options, response, stateless, text, tool_result};

#[test]
fn a_broken_stream_is_resumed_after_exactly_the_servers_delay() {
    let answer = std::cell::RefCell::new(Value::Null);
    let server = handshake(|request| match (method_of(request).as_str(), request.header("last-event-id")) {
        ("tools/call", _) => {
            *answer.borrow_mut() = response(request, &text("late"));
            Answer::stream().chunk("id: 1\nretry: 500\ndata:\n\n").then(Then::Break)
        }
        ("GET", Some("1")) => Answer::stream().message(answer.borrow()),
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    world.connected().unwrap();
    let before = world.now;
    world.perform(call("x")).unwrap();
    assert_eq!(world.now.since(before), 500);
}

#[test]
fn resuming_without_news_is_given_up() {
    let opened = Cell::new(0);
    let server = handshake(|request| match (method_of(request).as_str(), request.header("last-event-id")) {
        ("tools/call", _) => Answer::stream().chunk("id: 1\nretry: 10\ndata:\n\n"),
        ("GET", Some("1")) => {
            opened.set(opened.get() + 1);
            Answer::stream()
        }
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    assert_eq!(world.perform(call("x")).unwrap_err().kind(), ErrorKind::ConnectionClosed);
    assert_eq!(opened.get(), 5);
}

#[test]
fn a_stateless_stream_that_breaks_is_not_resumed() {
    let server = stateless(|_| Answer::stream().chunk("id: 1\ndata:\n\n").then(Then::Break));
    let mut world = World::new(options(EraChoice::Auto), server);
    assert_eq!(world.perform(call("x")).unwrap_err().kind(), ErrorKind::ConnectionClosed);
    assert!(world.requests.iter().all(|request| request.method == "POST"));
}

#[test]
fn the_listening_stream_tells_of_changes_and_is_opened_again() {
    let opened = Cell::new(0);
    let changed = notification("notifications/tools/list_changed", &json!({}));
    let server = handshake(|request| match method_of(request).as_str() {
        "GET" if opened.get() < 2 => {
            opened.set(opened.get() + 1);
            Answer::stream().message(&changed)
        }
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    world.settle();
    let changes = world.events.iter().filter(|event| **event == Event::ToolsChanged).count();
    assert_eq!((opened.get(), changes), (2, 2));
    assert!(world.warnings().is_empty());
}

#[test]
fn an_answer_may_come_on_the_listening_stream() {
    let result = std::cell::RefCell::new(Value::Null);
    let listening = Cell::new(false);
    let server = handshake(|request| match method_of(request).as_str() {
        "tools/call" => {
            *result.borrow_mut() = response(request, &text("ok"));
            Answer::new(202)
        }
        // The second time it is opened, the answer is there.
        "GET" if listening.replace(true) => Answer::stream().message(result.borrow()).then(Then::Hold),
        _ => Answer::stream().chunk("retry: 2000\n\n").chunk("").pausing(1_000),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    world.connected().unwrap();
    world.perform(call("x")).unwrap();
}

#[test]
fn an_answer_that_is_not_coming_is_an_error_at_once() {
    for (answer, kind) in [
        (Answer::new(202), ErrorKind::Protocol),
        (Answer::new(200), ErrorKind::Protocol),
        (Answer::json(200, "<html>"), ErrorKind::Protocol),
        (Answer::json(200, "{}"), ErrorKind::Protocol),
        (Answer::json(200, r#"{"jsonrpc":"2.0","id":"other","result":{}}"#), ErrorKind::ConnectionClosed),
        (Answer::new(404), ErrorKind::BadRequest),
        (Answer::new(429).header("retry-after", "3"), ErrorKind::RateLimit),
        (Answer::json(200, r#"{"jsonrpc":"#).then(Then::Break), ErrorKind::ConnectionClosed),
    ] {
        let server = stateless(|_| answer.clone());
        let mut world = World::new(options(EraChoice::Auto), server);
        world.connected().unwrap();
        let before = world.now;
        let error = world.perform(call("x")).unwrap_err();
        assert_eq!(error.kind(), kind, "{answer:?}: {error}");
        assert_eq!(world.now, before, "{answer:?}");
    }
}

#[test]
fn a_stream_that_stays_open_is_aborted_soon_after_the_answer() {
    let server = stateless(|request| Answer::stream().message(response(request, &text("ok"))).then(Then::Hold));
    let mut world = World::new(options(EraChoice::Auto), server);
    world.connected().unwrap();
    let before = world.now;
    world.perform(call("x")).unwrap();
    assert_eq!(world.now, before);
    assert_eq!(world.open_exchanges(), 1);
    world.settle();
    assert_eq!(world.open_exchanges(), 0);
    assert!(world.now.since(before) <= 1_000);
}

#[test]
fn an_answer_without_end_is_cut_off_with_a_clear_error() {
    let piece = "x".repeat(1 << 20);
    let server = stateless(move |_| {
        (0..40).fold(Answer::new(200).header("content-type", "application/json"), |answer, _| answer.chunk(&piece))
    });
    let mut world = World::new(options(EraChoice::Auto), server);
    let error = world.perform(call("x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(world.open_exchanges(), 0);
}

#[test]
fn comments_keep_a_call_alive_and_silence_ends_it() {
    let limits = CallOptions { idle_timeout: 1_000, ..CallOptions::default() };
    let server = handshake(|request| match method_of(request).as_str() {
        "tools/call" => (0..5)
            .fold(Answer::stream().pausing(900), |answer, _| answer.chunk(": at work\n\n"))
            .message(response(request, &text("ok"))),
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    let operation = world.start(call("x"), limits.clone());
    world.finish(operation).unwrap();

    let server = handshake(|request| match method_of(request).as_str() {
        "tools/call" => Answer::stream().chunk(": at work\n\n").then(Then::Hold),
        "notifications/cancelled" => Answer::new(202),
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    let operation = world.start(call("x"), limits);
    assert_eq!(world.finish(operation).unwrap_err().kind(), ErrorKind::Timeout);
    world.settle();
    assert_eq!(world.methods().last().map(String::as_str), Some("notifications/cancelled"));
    assert_eq!(world.open_exchanges(), 0);
}

#[test]
fn changes_of_a_stateless_server_are_listened_to_and_refusals_respected() {
    let discovered =
        json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": { "listChanged": true } } });
    let run = |answers: Vec<Answer>| {
        let mut answers = answers.into_iter();
        let mut world = World::new(options(EraChoice::Auto), |request| match method_of(request).as_str() {
            "server/discover" => Answer::json(200, response(request, &discovered)),
            _ => answers.next().unwrap_or_else(|| Answer::json(404, error(request, -32601, &Value::Null))),
        });
        world.settle();
        let changes = world.events.iter().filter(|event| **event == Event::ToolsChanged).count();
        (world.methods().len() - 1, changes, world.now)
    };
    let changed = notification("notifications/tools/list_changed", &json!({}));
    let (asked, changes, _) = run(vec![]);
    assert_eq!((asked, changes), (1, 0), "a server that refuses is not asked again");
    let (asked, changes, _) = run(vec![Answer::stream().message(&changed), Answer::stream().message(&changed)]);
    assert_eq!((asked, changes), (3, 2));
    let (asked, ..) = run((0..20).map(|_| Answer::stream()).collect());
    assert_eq!(asked, 9, "a stream that brings nothing is given up");
    let acknowledged = notification("notifications/subscriptions/acknowledged", &json!({}));
    let (asked, ..) = run((0..20).map(|_| Answer::stream().message(&acknowledged)).collect());
    assert_eq!(asked, 9, "so is one that ends each time as soon as it began");
    let idle = Answer::stream().pausing(60_000).chunk("").message(&changed);
    let (asked, changes, _) = run((0..20).map(|_| idle.clone()).collect());
    assert_eq!((asked, changes), (21, 20), "one that a proxy ends every other minute is not");
}

#[test]
fn a_listening_stream_that_a_proxy_ends_is_opened_again_without_end() {
    let changed = notification("notifications/tools/list_changed", &json!({}));
    let opened = Cell::new(0);
    let server = handshake(|request| match method_of(request).as_str() {
        "GET" if opened.get() < 20 => {
            opened.set(opened.get() + 1);
            Answer::stream().pausing(30_000).chunk("").message(&changed)
        }
        _ => Answer::new(405),
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    world.settle();
    let changes = world.events.iter().filter(|event| **event == Event::ToolsChanged).count();
    assert_eq!((opened.get(), changes), (20, 20));
}

#[test]
fn a_listening_stream_survives_an_outage() {
    for answer in [
        Answer::default().then(Then::Unreachable),
        Answer::default().then(Then::Opaque),
        Answer::new(409),
        Answer::new(503),
        Answer::stream(),
    ] {
        let opened = Cell::new(0);
        let is_out = Cell::new(false);
        let server = handshake(|request| match method_of(request).as_str() {
            "GET" if is_out.get() => answer.clone(),
            "GET" => {
                opened.set(opened.get() + 1);
                is_out.set(opened.get() == 1);
                if opened.get() == 1 { Answer::stream() } else { Answer::stream().then(Then::Hold) }
            }
            _ => Answer::json(200, response(request, &text("ok"))),
        });
        let mut world = World::new(options(EraChoice::Handshake), server);
        world.settle();
        let asked = world.requests.iter().filter(|request| request.method == "GET").count();
        assert_eq!((opened.get(), asked), (1, 6), "{answer:?}");
        // It is opened again as soon as the server answers something.
        is_out.set(false);
        world.perform(call("x")).unwrap();
        assert_eq!(opened.get(), 2, "{answer:?}");
        world.perform(call("x")).unwrap();
        assert_eq!(opened.get(), 2, "{answer:?}");
    }
}

#[test]
fn an_answer_is_known_by_its_first_bytes_where_its_media_type_is_wrong() {
    for (media_type, is_stream) in [("application/json", true), ("text/plain", true), ("text/event-stream", false)] {
        let mut server = stateless(|request| {
            let message = response(request, &text("ok"));
            let answer = Answer::new(200).header("content-type", media_type);
            match is_stream {
                true => answer.chunk(format!("event: message\ndata: {message}\n\n")),
                false => answer.chunk(message),
            }
        });
        for cut in [Cut::AsWritten, Cut::Bytes].into_iter().chain((2..12).map(Cut::At)) {
            let mut world = World::new(options(EraChoice::Auto), &mut server).cut(cut);
            let result = tool_result(world.perform(call("x")).unwrap());
            assert_eq!(result.text(), "ok", "{media_type} {cut:?}");
        }
    }
}

#[test]
fn what_keeps_a_stream_open_is_no_answer_and_an_answer_without_a_result_is_none() {
    for (event, is_answer) in [
        ("{}", false),
        ("null", false),
        ("[]", false),
        ("7", false),
        (r#"{"type":"ping"}"#, false),
        (r#"{"jsonrpc":"2.0","id":"other"}"#, false),
        (r#"{"jsonrpc":"2.0","id":ID}"#, true),
    ] {
        let server = stateless(|request| {
            let event = event.replace("ID", &body_of(request)["id"].to_string());
            Answer::stream().message(event).chunk("").message(response(request, &text("ok"))).then(Then::Hold)
        });
        let mut world = World::new(options(EraChoice::Auto), server);
        let outcome = world.perform(call("x"));
        assert_eq!(outcome.map_err(|error| error.kind()).err(), is_answer.then_some(ErrorKind::Protocol), "{event}");
        world.settle();
        assert_eq!(world.open_exchanges(), 0, "{event}");
    }
}

#[test]
fn a_redirect_that_is_not_followed_names_its_address_without_secrets() {
    let answer = Answer::new(307).header("location", "http://mcp.example/mcp/?key=secret");
    let mut world = World::new(options(EraChoice::Handshake), |_| answer.clone());
    let error = world.connected().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    assert!(error.message().contains("\"http://mcp.example/mcp/\"") && !error.message().contains("secret"), "{error}");
}
