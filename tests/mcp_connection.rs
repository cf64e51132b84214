//! Connections: many calls at once, cancellation, the end, and a server's tools in an agent; in virtual time.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

#[path = "support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crablet::agent::Agent;
use crablet::host::mcp::{ConnectOptions, Connection, HttpServer, PipeEnd, live_tools, pipe, tools};
use crablet::host::{Host, Runner};
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::client::{CallOptions, Event, Progress};
use crablet::mcp::protocol::CallToolResult;
use crablet::model::{Body, Content};
use crablet::{Error, ErrorKind};
use futures_util::future::{Either, join, select};
use serde_json::{Value, json};
use support::{Exchange, ScriptedHost, ScriptedModel};

/// A stateless server in the same program. Its tools: `echo` answers at once, `slow` after ten seconds with progress,
/// `ask` wants a name first, and `broken` fails.
#[derive(Clone)]
struct Server {
    host: ScriptedHost,
    received: Arc<Mutex<Vec<String>>>,
    running: Arc<AtomicUsize>,
}

/// Counts calls that are running, also when they are dropped.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    fn new(host: &ScriptedHost) -> Self {
        Self { host: host.clone(), received: Arc::default(), running: Arc::default() }
    }

    fn connect(&self, options: ConnectOptions) -> Connection {
        let server = self.clone();
        Connection::function(&self.host, "my files", move |message| server.clone().answer(message), options)
    }

    async fn answer(self, message: RawJson) -> Result<Option<RawJson>, Error> {
        let message: Value = message.read().unwrap();
        let method = message["method"].as_str().unwrap().to_owned();
        self.received.lock().unwrap().push(method.clone());
        self.running.fetch_add(1, Ordering::Relaxed);
        let _running = Running(self.running.clone());
        let params = &message["params"];
        let result = match (method.as_str(), params["name"].as_str()) {
            ("server/discover", _) => {
                json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
            }
            ("tools/list", _) => {
                let tool =
                    |name: &str| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } });
                json!({ "tools": (["echo", "slow", "ask", "broken"].map(tool)) })
            }
            ("tools/call", Some("slow")) => {
                self.host.pause(10_000).await;
                text("slow")
            }
            ("tools/call", Some("ask")) => match params["inputResponses"]["name"]["content"]["name"].as_str() {
                Some(name) => text(&format!("hello {name}")),
                None => json!({
                    "resultType": "input_required",
                    "inputRequests": { "name": { "method": "elicitation/create", "params": { "message": "name?" } } }
                }),
            },
            ("tools/call", Some("broken")) => {
                json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true })
            }
            ("tools/call", _) => text(params["arguments"]["say"].as_str().unwrap_or("nothing")),
            _ => return Ok(None),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        let progress = json!({
            "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": params["_meta"]["progressToken"], "progress": 1, "total": 2 }
        });
        Ok(Some(raw(&json!([progress, answer]))))
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn raw(value: &Value) -> RawJson {
    RawJson::parse(value.to_string()).unwrap()
}

async fn call(connection: &Connection, name: &str, arguments: Value) -> Result<CallToolResult, Error> {
    connection.call_tool(name, raw(&arguments), CallOptions::default(), None).await
}

#[test]
fn a_slow_call_blocks_no_other_and_reports_progress() {
    let host = ScriptedHost::new();
    let connection = Server::new(&host).connect(ConnectOptions::default());
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    host.block_on(async {
        let slow = connection.call_tool(
            "slow",
            raw(&json!({})),
            CallOptions::default(),
            Some(Box::new(move |progress: Progress| seen.lock().unwrap().push((progress.progress, progress.total)))),
        );
        let quick = async {
            for number in 0..64 {
                let said = call(&connection, "echo", json!({ "say": number.to_string() })).await.unwrap();
                assert_eq!(said.text(), number.to_string());
            }
            host.elapsed()
        };
        let (slow, elapsed) = join(slow, quick).await;
        assert_eq!(slow.unwrap().text(), "slow");
        assert_eq!(elapsed, 0, "the quick calls waited for the slow one");
    });
    assert_eq!(*reports.lock().unwrap(), [(1.0, Some(2.0))]);
}

#[test]
fn a_dropped_call_stops_at_the_server_and_the_next_one_works() {
    let host = ScriptedHost::new();
    let server = Server::new(&host);
    let connection = server.connect(ConnectOptions::default());
    host.block_on(async {
        let slow = Box::pin(call(&connection, "slow", json!({})));
        let Either::Right(_) = select(slow, Box::pin(host.pause(100))).await else { panic!("the slow call was quick") };
        host.pause(1).await;
        assert_eq!(server.running.load(Ordering::Relaxed), 0);
        assert_eq!(call(&connection, "echo", json!({ "say": "on" })).await.unwrap().text(), "on");
    });
    assert!(server.received.lock().unwrap().iter().any(|method| method == "notifications/cancelled"));
    assert_eq!(host.elapsed(), 101);
}

#[test]
fn a_closed_connection_stays_closed_and_a_dropped_one_ends() {
    let host = ScriptedHost::new();
    let closed = Arc::new(AtomicUsize::new(0));
    let options = || {
        let closed = closed.clone();
        let observer = move |event: &Event| {
            if matches!(event, Event::Closed { .. }) {
                closed.fetch_add(1, Ordering::Relaxed);
            }
        };
        ConnectOptions { observer: Some(Arc::new(observer)), ..ConnectOptions::default() }
    };
    let connection = Server::new(&host).connect(options());
    host.block_on(async {
        let slow = Box::pin(call(&connection, "slow", json!({})));
        let (slow, ()) = join(slow, async {
            host.pause(5).await;
            connection.close().await;
        })
        .await;
        assert_eq!(slow.unwrap_err().kind(), ErrorKind::ConnectionClosed);
        assert_eq!(connection.tools().await.unwrap_err().kind(), ErrorKind::ConnectionClosed);
        connection.close().await;
    });
    assert_eq!(closed.load(Ordering::Relaxed), 1);

    let dropped = Server::new(&host).connect(options());
    host.block_on(async {
        dropped.ready().await.unwrap();
        drop(dropped);
        host.pause(1).await;
    });
    assert_eq!(closed.load(Ordering::Relaxed), 2);
}

#[test]
fn questions_reach_the_answerer() {
    let host = ScriptedHost::new();
    let answerer = |method: &str, params: RawJson| {
        let is_expected = method == "elicitation/create" && params.as_str().contains("name?");
        let name = if is_expected { "Ada" } else { "nobody" };
        std::future::ready(Ok(raw(&json!({ "action": "accept", "content": { "name": name } }))))
    };
    let options = ConnectOptions {
        capabilities: Params::new().with("elicitation", &Params::new()),
        answerer: Some(Arc::new(answerer)),
        ..ConnectOptions::default()
    };
    let connection = Server::new(&host).connect(options);
    assert_eq!(host.block_on(call(&connection, "ask", json!({}))).unwrap().text(), "hello Ada");
    let without = Server::new(&host).connect(ConnectOptions::default());
    let refused = host.block_on(call(&without, "ask", json!({}))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Protocol);
}

#[test]
fn a_connection_that_failed_is_made_anew_by_the_next_call() {
    let discovered = r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#;
    let host = ScriptedHost::new()
        .then(Exchange::unreachable())
        .then(Exchange::new(200, "application/json").chunk(discovered));
    let server = HttpServer::new("https://mcp.example/mcp")
        .headers(vec![("authorization".to_owned(), "Bearer secret".to_owned())]);
    assert!(!format!("{server:?}").contains("secret"));
    let connection = Connection::http(&host, "remote", server, ConnectOptions::default());
    host.block_on(async {
        assert_eq!(connection.ready().await.unwrap_err().kind(), ErrorKind::Network);
        assert_eq!(connection.tools().await.unwrap(), []);
    });
    assert!(host.requests().iter().all(|request| request.header("authorization") == Some("Bearer secret")));
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn a_servers_tools_are_the_agents_under_names_of_their_own() {
    let host = ScriptedHost::new();
    let connection = Server::new(&host).connect(ConnectOptions::default());
    let tools = host.block_on(tools(&connection)).unwrap();
    let names: Vec<_> = tools.iter().map(|(definition, _)| definition.name.clone()).collect();
    assert!(names.iter().all(|name| name.starts_with("my_files__")), "{names:?}");
    assert!(tools.iter().all(|(definition, _)| definition.server.as_deref() == Some("my files")));
    let calls = [("1", names[0].as_str(), r#"{"say":"hi"}"#), ("2", names[3].as_str(), "{}")];
    let model = host.model().calls(&calls).text("done");
    let runner =
        Runner::new(host.clone(), Agent::new(ScriptedModel::model())).function_model("script", model).tools(tools);
    let conversation = runner.conversation().unwrap();
    host.block_on(conversation.send("go").unwrap().answer()).unwrap();
    let Body::Tool(results) = &conversation.history()[2].body else { panic!("no results") };
    let seen: Vec<_> = results.results.iter().map(|result| (&result.content[0], result.is_error)).collect();
    let (hi, failed) = (Content::Text("hi".to_owned()), Content::Text("no such file".to_owned()));
    assert_eq!(seen, [(&hi, false), (&failed, true)]);
}

/// Serves at one end of a pipe: `grow` adds a tool and says so before it answers, `late` is that tool.
async fn growing_server(mut end: PipeEnd) {
    let mut has_late = false;
    while let Some(message) = end.next().await {
        let message: Value = message.read().unwrap();
        let mut answers = Vec::new();
        let result = match (message["method"].as_str().unwrap(), message["params"]["name"].as_str()) {
            ("server/discover", _) => json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } }),
            ("tools/list", _) => {
                let names: &[&str] = if has_late { &["grow", "late"] } else { &["grow"] };
                let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
                json!({ "tools": names.iter().map(tool).collect::<Vec<_>>() })
            }
            ("tools/call", Some("grow")) => {
                has_late = true;
                let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                answers.extend([changed.clone(), changed]);
                text("grown")
            }
            ("tools/call", Some("late")) => text("never too late"),
            _ => continue,
        };
        answers.push(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        for answer in answers {
            assert!(end.send(raw(&answer)).await);
        }
    }
}

#[test]
fn tools_that_a_call_adds_are_there_at_the_next_step() {
    let host = ScriptedHost::new();
    let (ours, theirs) = pipe();
    host.spawn(growing_server(theirs));
    let connection = Connection::pipe(&host, "s", ours, ConnectOptions::default());
    let tools = host.block_on(live_tools(&host, &connection)).unwrap();
    let model = host.model().calls(&[("1", "s__grow", "{}")]).calls(&[("2", "s__late", "{}")]).text("done");
    let agent = Agent::new(ScriptedModel::model());
    let runner = Runner::new(host.clone(), agent).function_model("script", model).live_tools(tools);
    let conversation = runner.conversation().unwrap();
    host.block_on(conversation.send("go").unwrap().answer()).unwrap();
    let Body::Tool(results) = &conversation.history()[4].body else { panic!("no results") };
    assert_eq!(results.results[0].content, [Content::Text("never too late".to_owned())]);

    // A conversation that begins later has the tools of now.
    let model = host.model().calls(&[("1", "s__late", "{}")]).text("done");
    let conversation = runner.function_model("script", model).conversation().unwrap();
    host.block_on(conversation.send("go").unwrap().answer()).unwrap();
    let Body::Tool(results) = &conversation.history()[2].body else { panic!("no results") };
    assert!(!results.results[0].is_error);
}

#[test]
fn a_pipe_that_ended_cannot_be_opened_again() {
    let host = ScriptedHost::new();
    let (ours, theirs) = pipe();
    let connection = Connection::pipe(&host, "s", ours, ConnectOptions::default());
    drop(theirs);
    for _ in 0..2 {
        assert_eq!(host.block_on(connection.tools()).unwrap_err().kind(), ErrorKind::ConnectionClosed);
    }
}
