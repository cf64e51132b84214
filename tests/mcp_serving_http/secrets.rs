//! What callers are let in with, and what tools say when they fail: none of it is in an answer to somebody else, in what a tool is
//! told, or in debug output. The same for the server in TypeScript: `pkg-tests/facade/secrets-server.test.mjs`.

use std::sync::{Arc, Mutex};

use crablet::host::mcp::{HttpBody, HttpCall, HttpHandler, HttpOptions, HttpResponse, McpServer, ServerCall};
use crablet::json::RawJson;
use crablet::mcp::server::LogLevel;
use crablet::mcp::server::http::{Gate, Hosts};
use crablet::native::NativeHost;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{Client, Got, call, fixture, hello, read, request, stateless, tool};

/// What a caller sends to be let in.
const CREDENTIALS: [(&str, &str); 5] = [
    ("authorization", "Bearer planted-bearer-value"),
    ("proxy-authorization", "Basic planted-proxy-value"),
    ("cookie", "session=planted-cookie-value"),
    ("x-api-key", "planted-header-value"),
    ("referer", "http://localhost/mcp?token=planted-query-value"),
];

/// What a tool knows and should not have said.
const TOLD: &str = "planted-database-password";

/// In plain text, as a list of bytes, in Base64 and in hexadecimal digits.
fn shows_nothing(place: &str, text: &str) {
    let bytes = format!("{:?}", b"planted-");
    for mark in ["planted-", bytes.trim_matches(['[', ']']), "cGxhbnRlZC", "706c616e746564"] {
        assert!(!text.contains(mark), "{place} shows a secret: {text}");
    }
}

/// The server of the exchanges with tools that tell what they are told, and that fail with what they know.
fn server(told: &Arc<Mutex<Vec<String>>>) -> McpServer {
    let anything = json!({ "type": "object" });
    let seen = told.clone();
    fixture()
        .tool(tool("look", &anything), move |input: Value, call: ServerCall| {
            seen.lock().unwrap().push(format!("{input} {call:?} {call:#?}"));
            async { "fine" }
        })
        .unwrap()
        .tool(tool("fails", &anything), async |_: Value, call: ServerCall| {
            call.log(LogLevel::Error, None, RawJson::from_value(TOLD).unwrap());
            call.progress(0.5, None, Some(TOLD));
            Err::<String, _>(format!("the database refused {TOLD}"))
        })
        .unwrap()
        .tool(tool("panics", &anything), async |_: Value, _| -> String { panic!("no rows for {TOLD}") })
        .unwrap()
}

/// A request, by what is wrong with it.
struct Asked {
    what: &'static str,
    method: &'static str,
    headers: Vec<(&'static str, String)>,
    body: String,
}

fn asked(what: &'static str, method: &'static str, headers: &[(&'static str, &str)], body: impl ToString) -> Asked {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Asked { what, method, headers, body: body.to_string() }
}

/// Good ones, and such as are refused at each place where one can be.
fn requests() -> Vec<Asked> {
    let once = |what, name: &str, arguments: Value| {
        let (headers, body) = stateless(json!(7), "tools/call", json!({ "name": name, "arguments": arguments }));
        Asked { what, method: "POST", headers, body: body.to_string() }
    };
    let good = hello(json!({}));
    let unknown = "planted-session-that-is-not-there";
    vec![
        once("a good call", "look", json!({})),
        once("a call with wrong arguments", "echo", json!({ "text": 7 })),
        once("a call of no tool", "none", json!({})),
        once("a call whose headers say something else", "region", json!({ "region": "here" })),
        asked("a handshake", "POST", &[], &good),
        asked("no session", "POST", &[], call(json!(1), "look")),
        asked("a session that is not there", "POST", &[("mcp-session-id", unknown)], call(json!(1), "look")),
        asked("a stream of a session that is not there", "GET", &[("mcp-session-id", unknown)], ""),
        asked("an event that is not there", "GET", &[("mcp-session-id", unknown), ("last-event-id", unknown)], ""),
        asked("an end of no session", "DELETE", &[("mcp-session-id", unknown)], ""),
        asked("no JSON", "POST", &[], "{"),
        asked("a batch", "POST", &[], json!([good])),
        asked("a member that is there twice", "POST", &[], r#"{"jsonrpc":"2.0","jsonrpc":"2.0"}"#),
        asked("another type", "POST", &[("content-type", "text/plain")], &good),
        asked("nothing accepted", "POST", &[("accept", "image/png")], &good),
        asked("a method that is none", "PUT", &[], &good),
        asked("a host that is none of the server's", "POST", &[("host", "stranger.example")], &good),
        asked("a page of elsewhere", "POST", &[("origin", "https://stranger.example")], &good),
        asked("a page without an origin", "POST", &[("origin", "null")], &good),
        asked(
            "a browser's question",
            "OPTIONS",
            &[
                ("origin", "http://localhost"),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "authorization, x-planted-name"),
            ],
            "",
        ),
    ]
}

/// What can be seen of an answer: of a stream that stays open, what has come.
async fn seen(response: HttpResponse) -> Got {
    let HttpResponse { status, headers, body } = response;
    let is_open = matches!(body, HttpBody::Events(_)) && headers.iter().any(|(name, _)| *name == "mcp-session-id");
    let body = match body {
        HttpBody::Events(mut events) if is_open => HttpBody::Whole(events.next().await.unwrap_or_default()),
        body => body,
    };
    read(HttpResponse { status, headers, body }).await
}

fn ways() -> Vec<HttpOptions> {
    let any = Gate { hosts: Hosts::Any, ..Gate::default() };
    vec![
        HttpOptions::default(),
        HttpOptions { sessions: false, ..HttpOptions::default() },
        HttpOptions { gate: any, ..HttpOptions::default() },
        HttpOptions { max_body_bytes: 16, ..HttpOptions::default() },
        HttpOptions { max_sessions: 0, max_requests: 0, ..HttpOptions::default() },
    ]
}

#[tokio::test]
async fn nothing_that_callers_are_let_in_with_shows() {
    let told = Arc::new(Mutex::new(Vec::new()));
    for options in ways() {
        let mut client = Client::new(&server(&told), options);
        for caller in [None, Some("somebody".to_owned())] {
            client.caller = caller;
            for Asked { what, method, headers, body } in requests() {
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let headers: Vec<_> = headers.into_iter().chain(CREDENTIALS).collect();
                let got = seen(client.send(method, &headers, body.as_bytes()).await).await;
                shows_nothing(what, &format!("{got:?}"));
            }
        }
        shows_nothing("a handler's debug output", &format!("{:?} {:#?}", client.handler, client.handler));
    }
    let told = told.lock().unwrap();
    assert!(!told.is_empty(), "a tool was called");
    shows_nothing("what a tool is told", &told.join("\n"));
}

#[test]
fn a_call_that_is_printed_shows_nothing_of_its_headers_and_its_body() {
    let headers = CREDENTIALS.iter().map(|(name, value)| (*name, value.as_bytes()));
    let body = format!(r#"{{"note":"{TOLD}"}}"#);
    let call = HttpCall { method: "POST", headers: headers.collect(), body: body.as_bytes(), caller: Some("ada") };
    for printed in [format!("{call:?}"), format!("{call:#?}"), format!("{:?}", call.headers)] {
        shows_nothing("a call", &printed);
        assert!(printed.contains("authorization"), "the names tell what came: {printed}");
    }
}

/// A client of its own at the same handler.
fn another(handler: &HttpHandler<NativeHost>, caller: &str) -> Client {
    Client { handler: handler.clone(), caller: Some(caller.to_owned()), session: None }
}

#[tokio::test]
async fn what_a_tool_says_when_it_fails_is_for_its_caller_only() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let handler = server(&told).http(&NativeHost::new().unwrap(), HttpOptions::default());
    let (mut ada, mut bob) = (another(&handler, "ada"), another(&handler, "bob"));
    for client in [&mut ada, &mut bob] {
        let got = read(client.post(&[], &hello(json!({}))).await).await;
        client.session = got.header("mcp-session-id").map(str::to_owned);
        // Bob asks to be told everything that is told.
        let level = request(json!("level"), "logging/setLevel", json!({ "level": "debug" }));
        read(client.post(&[], &level).await).await;
    }
    let HttpBody::Events(mut own_stream) = bob.send("GET", &[], b"").await.body else { panic!("a stream") };
    let wanted = json!({ "notifications": { "toolsListChanged": true, "resourcesListChanged": true } });
    let (headers, subscribe) = stateless(json!("s"), "subscriptions/listen", wanted);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let stranger = another(&handler, "bob");
    let HttpBody::Events(mut subscription) = stranger.post(&headers, &subscribe).await.body else { panic!("a stream") };

    let mut bobs = String::new();
    for name in ["fails", "panics"] {
        let params = json!({ "name": name, "arguments": {}, "_meta": { "progressToken": 1 } });
        let hers = ada.post(&[], &request(json!(9), "tools/call", params.clone())).await;
        // With the same id at the same time.
        let his = bob.post(&[], &call(json!(9), "look")).await;
        let (headers, alone) = stateless(json!(9), "tools/call", json!({ "name": name, "arguments": {} }));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let hers_alone = another(&handler, "ada").post(&headers, &alone).await;
        let (headers, alone) = stateless(json!(9), "tools/call", json!({ "name": "look", "arguments": {} }));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let his_alone = another(&handler, "bob").post(&headers, &alone).await;
        let (hers, hers_alone) = (read(hers).await.text, read(hers_alone).await.text);
        bobs.push_str(&read(his).await.text);
        bobs.push_str(&read(his_alone).await.text);
        if name == "fails" {
            assert!(hers.contains(TOLD) && hers_alone.contains(TOLD), "she is told: {hers} {hers_alone}");
        } else {
            // What a panic says is for whoever runs the server.
            shows_nothing("a call that panics", &format!("{hers} {hers_alone}"));
        }
    }
    // A session of somebody else is none.
    let mut thief = another(&handler, "bob");
    thief.session = ada.session.clone();
    for (method, body) in
        [("GET", String::new()), ("POST", call(json!(9), "look").to_string()), ("DELETE", String::new())]
    {
        bobs.push_str(&format!("{:?}", read(thief.send(method, &[], body.as_bytes()).await).await));
    }
    handler
        .replace(server(&told).tool(tool("more", &json!({ "type": "object" })), async |_: Value, _| "more").unwrap());
    for stream in [&mut own_stream, &mut subscription] {
        let mut heard = String::new();
        while !heard.contains("list_changed") {
            heard.push_str(&stream.next().await.unwrap());
        }
        bobs.push_str(&heard);
    }
    assert!(bobs.contains("fine"), "he was told his own: {bobs}");
    shows_nothing("what another caller is told", &bobs);
    shows_nothing("what another caller's tool is told", &told.lock().unwrap().join("\n"));
    shows_nothing("the handler's debug output", &format!("{handler:?} {handler:#?}"));
}
