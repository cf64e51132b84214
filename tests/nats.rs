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
use crablet::jsonrpc::{RpcError, code};
use crablet::mcp::client::{CallOptions, Event, Progress};
use crablet::mcp::protocol::{CallToolResult, ContentBlock, EraChoice};
use crablet::native::NativeHost;
use crablet::native::nats::async_nats::{Client, connect};
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
async fn a_call_whose_shim_is_killed_fails_and_is_not_sent_again() {
    let nats = Nats::start("");
    let shim = Shim::start(&nats, "shim").await;
    let server = NatsServer::new(client(&nats).await, "stateless").silence(Duration::from_secs(3));
    let connection = open(server, ConnectOptions::default());
    let marked = call(&connection, "mark", json!({ "n": 1, "milliseconds": 60_000 }));
    let killing = async {
        until(async || !ledger(&nats).is_empty()).await;
        let other = Shim::start(&nats, "other").await;
        shim.kill().await;
        other
    };
    let (outcome, _other) = tokio::join!(marked, killing);
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionClosed);
    assert!(error.message().contains("not sent again"), "{error}");
    assert_eq!(call(&connection, "mark", json!({ "n": 2 })).await.unwrap(), "marked 2");
    assert_eq!(ledger(&nats), "1\n2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_serves_and_what_is_too_large_says_so() {
    let nats = Nats::start("max_payload: 8192");
    let _shim = Shim::start(&nats, "shim").await;
    let nobody = open(NatsServer::new(client(&nats).await, "none"), ConnectOptions::default());
    let error = nobody.ready().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    assert!(error.message().contains("no responders"), "{error}");
    let connection = open(NatsServer::new(client(&nats).await, "stateless"), ConnectOptions::default());
    let error = call(&connection, "mark", json!({ "text": "x".repeat(9_000) })).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.message().contains("at most 8192"), "{error}");
    let error = call(&connection, "big", json!({ "bytes": 9_000 })).await.unwrap_err();
    assert!(error.message().contains("at most 8192"), "{error}");
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
