//! MCP servers over a real nats-server: behind real shims, and a service that speaks in its own way. The shim's program, built with
//! its feature `nats`, is named by the variable `CRABLET_SHIM_NATS` (`scripts/scale.sh`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets the unexpected stops"
)]

#[path = "support/nats_server.rs"]
mod nats_server;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crablet::host::mcp::{ConnectOptions, Connection};
use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{Params, RpcError, code};
use crablet::mcp::client::{CallOptions, Event, Progress};
use crablet::mcp::protocol::{CallToolResult, ContentBlock, EraChoice};
use crablet::native::NativeHost;
use crablet::native::nats::async_nats::{Client, ConnectOptions as ConnectionOptions, HeaderMap, connect};
use crablet::native::nats::{NatsBody, NatsEnvelope, NatsServer};
use crablet::{Error, ErrorKind};
use futures_util::StreamExt;
use nats_server::NatsServer as Nats;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A shim that serves the servers `stateless` and `handshake`. Dropping it kills it.
struct Shim(Child);

impl Shim {
    async fn start(nats: &Nats, name: &str) -> Self {
        let program =
            std::env::var("CRABLET_SHIM_NATS").expect("CRABLET_SHIM_NATS names a shim built with the feature nats");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("pkg-tests/nats/stdio-server.mjs");
        let server = |era: &str| json!({ "command": "node", "args": [script, era, ledger_file(nats)] });
        let config = nats.folder().join(format!("{name}.json"));
        let servers = json!({ "stateless": server("stateless"), "handshake": server("handshake") });
        std::fs::write(&config, json!({ "mcpServers": servers }).to_string()).unwrap();
        let mut process = Command::new(program)
            .args(["serve", "--port", "0", "--config"])
            .arg(&config)
            .args(["--nats", &nats.url, "--nats-server", "stateless", "--nats-server", "handshake"])
            .env("CRABLET_STATE_DIR", nats.folder().join(name))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
        assert!(line.contains("listens on"), "{line}");
        Self(process)
    }

    async fn kill(mut self) {
        self.0.kill().await.unwrap();
    }
}

fn ledger_file(nats: &Nats) -> PathBuf {
    nats.folder().join("ledger")
}

fn ledger(nats: &Nats) -> String {
    std::fs::read_to_string(ledger_file(nats)).unwrap_or_default()
}

async fn client(nats: &Nats) -> Client {
    connect(&nats.url).await.unwrap()
}

fn open(server: NatsServer, options: ConnectOptions) -> Connection {
    Connection::nats(&NativeHost::new().unwrap(), "server", server, options)
}

fn sessions() -> ConnectOptions {
    ConnectOptions { era: EraChoice::Handshake, ..ConnectOptions::default() }
}

async fn call(connection: &Connection, tool: &str, input: Value) -> Result<String, Error> {
    let input = RawJson::from_value(&input).unwrap();
    let result = connection.call_tool(tool, input, CallOptions::default(), None).await?;
    Ok(text_of(&result))
}

fn text_of(result: &CallToolResult) -> String {
    match result.content.as_slice() {
        [ContentBlock::Text { text }] => text.clone(),
        content => panic!("the tool said {content:?}"),
    }
}

/// Waits for what has to come, however busy the machine is.
async fn until(is_there: impl AsyncFn() -> bool) {
    while !is_there().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_both_eras_are_called_with_progress_while_it_happens() {
    let nats = Nats::start("");
    let _shim = Shim::start(&nats, "shim").await;
    for (name, options) in
        [("stateless", ConnectOptions::default()), ("handshake", ConnectOptions::default()), ("handshake", sessions())]
    {
        let connection = open(NatsServer::new(client(&nats).await, name), options);
        assert!(connection.tools().await.unwrap().iter().any(|tool| tool.name == "mark"));
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let report = move |progress: Progress| {
            let _ = sender.send(progress.progress);
        };
        let input = RawJson::parse("{}").unwrap();
        let running = connection.call_tool("progress", input, CallOptions::default(), Some(Box::new(report)));
        // The call ends because of what it told before.
        let letting = async {
            assert_eq!((receiver.recv().await, receiver.recv().await), (Some(1.0), Some(2.0)));
            call(&connection, "go", json!({})).await.unwrap()
        };
        let (result, _) = tokio::join!(running, letting);
        assert_eq!(text_of(&result.unwrap()), "done");
        connection.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let nats = Nats::start("");
    let _shim = Shim::start(&nats, "shim").await;
    for (name, options) in [("stateless", ConnectOptions::default()), ("handshake", sessions())] {
        let connection = open(NatsServer::new(client(&nats).await, name), options);
        let hanging = call(&connection, "hang", json!({}));
        tokio::select! {
            _ = hanging => panic!("it never ends"),
            pid = call(&connection, "pid", json!({})) => drop(pid.unwrap()),
        }
        until(async || call(&connection, "cancelled", json!({})).await.unwrap() == "1").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_keeps_to_its_process_and_is_replaced_when_its_shim_is_gone() {
    let nats = Nats::start("");
    let shim = Shim::start(&nats, "shim").await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let observer = move |event: &Event| heard.lock().unwrap().push(event.clone());
    let options = ConnectOptions { observer: Some(Arc::new(observer)), ..sessions() };
    let connection = open(NatsServer::new(client(&nats).await, "handshake"), options);
    for count in 1..=3 {
        assert_eq!(call(&connection, "count", json!({})).await.unwrap(), count.to_string());
    }
    call(&connection, "change", json!({})).await.unwrap();
    let has = |wanted: fn(&Event) -> bool| told.lock().unwrap().iter().any(wanted);
    until(async || has(|event| *event == Event::ToolsChanged)).await;

    let _other = Shim::start(&nats, "other").await;
    shim.kill().await;
    assert_eq!(call(&connection, "count", json!({})).await.unwrap(), "1");
    assert!(has(|event| matches!(event, Event::Warning(text) if text.contains("forgot the session"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_shim_is_killed_is_sent_again_only_if_its_tool_says_that_this_does_no_harm() {
    for (name, options) in [("stateless", ConnectOptions::default()), ("handshake", sessions())] {
        let nats = Nats::start("");
        let shim = Shim::start(&nats, "shim").await;
        let server = NatsServer::new(client(&nats).await, name).silence(Duration::from_secs(3));
        let connection = open(server, options);
        connection.tools().await.unwrap();
        let at_work = |tool, n| call(&connection, tool, json!({ "n": n, "milliseconds": 60_000 }));
        let calls = [at_work("mark", 1), at_work("add", 2), at_work("read", 3), at_work("set", 4)];
        let killing = async {
            until(async || ledger(&nats).lines().count() == 4).await;
            let other = Shim::start(&nats, "other").await;
            shim.kill().await;
            other
        };
        let (outcomes, _other) = tokio::join!(futures_util::future::join_all(calls), killing);
        for outcome in &outcomes[..2] {
            let error = outcome.as_ref().unwrap_err();
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::ConnectionClosed, false));
            assert!(error.message().contains("no sign of life"), "{error}");
        }
        assert_eq!(outcomes[2..], [Ok("marked 3".to_owned()), Ok("marked 4".to_owned())]);
        assert_eq!(call(&connection, "mark", json!({ "n": 5 })).await.unwrap(), "marked 5");
        let mut done: Vec<_> = ledger(&nats).lines().map(str::to_owned).collect();
        done.sort();
        assert_eq!(done, ["1", "2", "3", "3", "4", "4", "5"], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_serves_and_what_is_too_large_says_so() {
    let nats = Nats::start("max_payload: 8192");
    let _shim = Shim::start(&nats, "shim").await;
    let nobody = open(NatsServer::new(client(&nats).await, "none"), ConnectOptions::default());
    let error = nobody.ready().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    assert!(error.message().contains("no responders"), "{error}");
    for (name, mut options) in [("stateless", ConnectOptions::default()), ("handshake", sessions())] {
        options.capabilities = Params::new().with("elicitation", &Params::new());
        options.answerer = Some(Arc::new(|_: &str, _: RawJson| async {
            let answer = json!({ "action": "accept", "content": { "name": "x".repeat(9_000) } });
            Ok(RawJson::from_value(&answer).unwrap())
        }));
        let connection = open(NatsServer::new(client(&nats).await, name), options);
        for (tool, input, what) in [
            ("mark", json!({ "text": "x".repeat(9_000) }), "the request has"),
            ("big", json!({ "bytes": 9_000 }), "the answer has"),
        ] {
            let error = call(&connection, tool, input).await.unwrap_err();
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Limit, false));
            assert!(error.message().contains(what) && error.message().contains("at most 8192"), "{error}");
        }
        if name == "handshake" {
            // The server is told, in place of the answer that it waits for.
            assert_eq!(call(&connection, "ask", json!({})).await.unwrap(), "hello undefined");
        }
        assert_eq!(call(&connection, "big", json!({ "bytes": 4_096 })).await.unwrap().len(), 4_096);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_service_that_is_silent_or_refuses_fails_with_its_kind() {
    let nats = Nats::start("");
    let service = client(&nats).await;
    let mut requests = service.subscribe("plain.*").await.unwrap();
    service.flush().await.unwrap();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let reply = request.reply.unwrap();
            match request.subject.as_str() {
                "plain.nonsense" => service.publish(reply, "no JSON".into()).await.unwrap(),
                "plain.refuses" => {
                    let mut headers = HeaderMap::new();
                    headers.insert("Nats-Service-Error", "not today");
                    headers.insert("Nats-Service-Error-Code", "409");
                    service.publish_with_headers(reply, headers, "".into()).await.unwrap();
                }
                _ => {}
            }
        }
    });
    for (name, kind, code) in [
        ("plain.silent", ErrorKind::Timeout, None),
        ("plain.refuses", ErrorKind::Server, Some("409")),
        ("plain.nonsense", ErrorKind::Protocol, None),
    ] {
        let server = NatsServer::at(client(&nats).await, name).plain().silence(Duration::from_secs(1));
        let error = open(server, sessions()).ready().await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (kind, code), "{name}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_credential_of_the_connection_shows_in_what_can_be_seen() {
    const PASSWORD: &str = "planted-password-value";
    let nats = Nats::start(&format!("max_payload: 8192\nauthorization {{ user: some, password: {PASSWORD} }}"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = |text: String| seen.lock().unwrap().push(text);
    let options = ConnectionOptions::with_user_and_password("some".into(), PASSWORD.into());
    let client = options.connect(&nats.url).await.unwrap();
    // A service that never answers.
    let _requests = client.subscribe("mcp.silent").await.unwrap();
    for server in [NatsServer::new(client.clone(), "none"), NatsServer::new(client.clone(), "silent").plain()] {
        let server = server.silence(Duration::from_secs(1));
        see(format!("{server:?}"));
        let events = Arc::clone(&seen);
        let observer = move |event: &Event| events.lock().unwrap().push(format!("{event:?}"));
        let connection = open(server, ConnectOptions { observer: Some(Arc::new(observer)), ..sessions() });
        see(format!("{connection:?}"));
        let error = connection.ready().await.unwrap_err();
        see(format!("{error:?} {error}"));
    }
    client.drain().await.unwrap();
    let error = open(NatsServer::new(client, "none"), sessions()).ready().await.unwrap_err();
    see(format!("{error:?} {error}"));
    let seen = seen.lock().unwrap();
    assert!(seen.len() >= 7);
    assert!(seen.iter().all(|text| !text.contains("planted")), "{seen:#?}");
}

/// A callable of a method, a tool's name and its arguments.
struct Callable;

impl NatsEnvelope for Callable {
    fn encode(&self, message: &RawJson) -> Result<NatsBody, Error> {
        let message: Value = serde_json::from_str(message.as_str()).unwrap();
        let params = &message["params"];
        Ok(match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let info = json!({ "name": "lab", "version": "1" });
                let result =
                    json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": info });
                NatsBody::Answer(Ok(RawJson::from_value(&result).unwrap()))
            }
            "tools/list" => NatsBody::Publish(br#"{"method":"tools/list"}"#.to_vec()),
            "tools/call" => {
                let body = json!({ "method": "tools/call", "name": params["name"], "args": params["arguments"] });
                NatsBody::Publish(body.to_string().into_bytes())
            }
            method if method.starts_with("notifications/") => NatsBody::Drop,
            method => NatsBody::Answer(Err(RpcError::new(code::METHOD_NOT_FOUND, format!("{method} is not there")))),
        })
    }

    fn decode(&self, body: &[u8], _message: &RawJson) -> Result<RawJson, Error> {
        let text = String::from_utf8_lossy(body).into_owned();
        RawJson::parse(text).map_err(|error| Error::new(ErrorKind::Protocol, error.to_string()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_speaks_in_its_own_way_is_reached_through_an_envelope() {
    let nats = Nats::start("");
    let service = client(&nats).await;
    let mut requests = service.subscribe("lab.tools").await.unwrap();
    service.flush().await.unwrap();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let text = String::from_utf8(request.payload.to_vec()).unwrap();
            let asked = Object::parse(&text).unwrap();
            let answer = match (asked.string("method").as_deref(), asked.string("name").as_deref()) {
                (Some("tools/list"), _) => {
                    json!({ "id": 1, "result": { "tools": [{ "name": "weigh", "inputSchema": { "type": "object" } }] } })
                }
                (_, Some("weigh")) => {
                    let grams = asked.object("args").unwrap().integer("grams").unwrap();
                    json!({ "id": 2, "result": { "content": [{ "type": "text", "text": format!("{grams} g") }] } })
                }
                _ => json!({ "id": 2, "error": { "code": -32602, "message": "no such tool" } }),
            };
            service.publish(request.reply.unwrap(), answer.to_string().into()).await.unwrap();
        }
    });
    let server = NatsServer::at(client(&nats).await, "lab.tools").envelope(Callable);
    let connection = open(server, sessions());
    assert_eq!(connection.tools().await.unwrap().len(), 1);
    let calls = [1, 2].map(|grams| call(&connection, "weigh", json!({ "grams": grams })));
    let results = futures_util::future::try_join_all(calls).await.unwrap();
    assert_eq!(results, ["1 g", "2 g"]);
    assert_eq!(call(&connection, "mix", json!({})).await.unwrap_err().kind(), ErrorKind::Rpc);
}
