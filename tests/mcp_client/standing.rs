//! What a server is asked to keep up, and answers that may be used again.

use std::cell::{Cell, RefCell};

use crablet::jsonrpc::Params;
use crablet::mcp::client::{CallOptions, Collection, Event, Reply, Request};
use crablet::mcp::protocol::EraChoice;
use crablet::{ErrorKind, model::HttpRequest};
use serde_json::{Value, json};

use crate::mcp_support::{Answer, Then, World, body_of, method_of};
use crate::server::{call, handshake, notification, options, response, stateless, text};

fn subscribe(uri: &str, wanted: bool) -> Request {
    Request::Subscribe { uri: uri.to_owned(), wanted }
}

#[test]
fn a_stateless_server_hears_of_subscriptions_and_of_the_log_level_with_its_requests() {
    let listened = RefCell::new(Vec::new());
    let levels = RefCell::new(Vec::new());
    let server = stateless(|request| {
        let params = body_of(request)["params"].clone();
        levels.borrow_mut().push(params["_meta"]["io.modelcontextprotocol/logLevel"].clone());
        match method_of(request).as_str() {
            "subscriptions/listen" => {
                listened.borrow_mut().push(params["notifications"].clone());
                let updated = notification("notifications/resources/updated", &json!({ "uri": "f:///b" }));
                Answer::stream().message(updated).then(Then::Hold)
            }
            _ => Answer::json(200, response(request, &text("ok"))),
        }
    });
    let mut world = World::new(options(EraChoice::Auto), server);
    world.connected().unwrap();
    world.perform(Request::SetLogLevel("warning".to_owned())).unwrap();
    for request in [subscribe("f:///a", true), subscribe("f:///b", true), subscribe("f:///a", false)] {
        world.perform(request).unwrap();
    }
    world.perform(call("x")).unwrap();
    let uris = |uris: &[&str]| json!({ "resourceSubscriptions": uris });
    assert_eq!(*listened.borrow(), [uris(&["f:///a"]), uris(&["f:///a", "f:///b"]), uris(&["f:///b"])]);
    assert_eq!(levels.borrow().iter().filter(|level| **level == "warning").count(), 4);
    assert_eq!(world.aborted.len(), 2, "each stream makes way for the next");
    let is_update = |event: &Event| matches!(event, Event::Notification { method, .. } if method.ends_with("updated"));
    assert!(world.events.iter().any(is_update));
}

#[test]
fn a_new_session_is_asked_again_for_what_the_last_one_kept_up() {
    let asked = RefCell::new(Vec::new());
    let calls = Cell::new(0);
    let server = handshake(|request: &HttpRequest| {
        let params = body_of(request)["params"].clone();
        match method_of(request).as_str() {
            method @ ("resources/subscribe" | "resources/unsubscribe" | "logging/setLevel") => {
                asked.borrow_mut().push((method.to_owned(), params["uri"].clone()));
                Answer::json(200, response(request, &json!({})))
            }
            "tools/call" => {
                calls.set(calls.get() + 1);
                if calls.get() == 1 { Answer::new(404) } else { Answer::json(200, response(request, &text("ok"))) }
            }
            "GET" => Answer::new(405),
            _ => Answer::new(202),
        }
    });
    let mut world = World::new(options(EraChoice::Handshake), server);
    for request in [subscribe("f:///a", true), subscribe("f:///b", true), subscribe("f:///a", false)] {
        world.perform(request).unwrap();
    }
    world.perform(Request::SetLogLevel("debug".to_owned())).unwrap();
    assert_eq!(asked.borrow().len(), 4);
    asked.borrow_mut().clear();
    world.perform(call("x")).unwrap();
    world.settle();
    let again = [("logging/setLevel".to_owned(), Value::Null), ("resources/subscribe".to_owned(), json!("f:///b"))];
    assert_eq!(*asked.borrow(), again);
    assert_eq!(world.client.standing().resources, ["f:///b"]);
}

/// A server whose lists are good for a minute.
fn caching(count: &Cell<u64>) -> impl FnMut(&HttpRequest) -> Answer {
    stateless(move |request| {
        count.set(count.get() + 1);
        let result = match method_of(request).as_str() {
            "tools/list" => {
                let tool = json!({ "name": format!("t{}", count.get()), "inputSchema": {} });
                json!({ "tools": [tool], "ttlMs": 60_000, "cacheScope": "private" })
            }
            "resources/read" => json!({ "contents": [], "ttlMs": 60_000 }),
            "tools/call" => {
                let changed = notification("notifications/tools/list_changed", &json!({}));
                return Answer::stream().message(changed).message(response(request, &text("ok")));
            }
            _ => json!({ "resources": [], "ttlMs": -5 }),
        };
        Answer::json(200, response(request, &result))
    })
}

#[test]
fn an_answer_is_used_again_until_its_time_is_over_or_the_server_says_otherwise() {
    let count = Cell::new(0);
    let mut world = World::new(options(EraChoice::Auto), caching(&count));
    let list = |world: &mut World<'_>| {
        let Reply::Tools(tools) = world.perform(Request::ListTools).unwrap() else { panic!("no tools") };
        tools[0].name.clone()
    };
    assert_eq!((list(&mut world), list(&mut world)), ("t1".to_owned(), "t1".to_owned()));
    world.now = world.now.after(60_000);
    assert_eq!(list(&mut world), "t2");
    world.perform(call("x")).unwrap();
    assert_eq!(list(&mut world), "t4", "the list has changed");
    let operation = world.start(Request::ListTools, CallOptions { refresh: true, ..CallOptions::default() });
    world.finish(operation).unwrap();
    assert_eq!(count.get(), 5);

    let read = || Request::Other { method: "resources/read".to_owned(), params: Params::new().with("uri", "f:///a") };
    world.perform(read()).unwrap();
    world.perform(read()).unwrap();
    assert_eq!(count.get(), 6);
}

#[test]
fn what_the_server_does_not_allow_to_be_kept_is_asked_for_each_time() {
    let count = Cell::new(0);
    let server = stateless(|request| {
        count.set(count.get() + 1);
        Answer::json(200, response(request, &json!({ "tools": [], "ttlMs": -5 })))
    });
    let mut world = World::new(options(EraChoice::Auto), server);
    for _ in 0..3 {
        world.perform(Request::List(Collection::Tools)).unwrap();
    }
    assert_eq!(count.get(), 3);
}

#[test]
fn a_value_that_does_not_fit_the_tools_own_schema_is_an_error() {
    for (value, fits) in
        [(json!({ "n": 1 }), true), (json!({ "n": "1" }), false), (json!(7), false), (Value::Null, true)]
    {
        let server = stateless(move |request| {
            let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
            let result = match method_of(request).as_str() {
                "tools/list" => json!({ "tools": [{ "name": "t", "inputSchema": {}, "outputSchema": schema }] }),
                _ => json!({ "content": [], "structuredContent": value }),
            };
            Answer::json(200, response(request, &result))
        });
        let mut world = World::new(options(EraChoice::Auto), server);
        world.perform(Request::ListTools).unwrap();
        match world.perform(call("t")) {
            Ok(_) => assert!(fits),
            Err(error) => assert!(!fits && error.kind() == ErrorKind::Protocol, "{error}"),
        }
    }
}
