//! An MCP server with functions, called by a client in the same program, in both eras.
#![cfg(all(feature = "mcp-server", feature = "native"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crablet::agent::{Approval, ToolDefinition, ToolOutput};
use crablet::host::mcp::{ConnectOptions, Connection, McpServer, ServerCall, ServerControl, pipe};
use crablet::host::{BoxFuture, CancelToken, FunctionTool, Tool, ToolContext};
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::client::{CallOptions, Event, Progress};
use crablet::mcp::protocol::{CallToolResult, ContentBlock, Era, EraChoice, Resource, ResourceBody, Revision};
use crablet::mcp::server::{Availability, InputRequest, LogLevel, Outcome, Request, ServerPrompt, ServerTool};
use crablet::native::NativeHost;
use crablet::native::process::ServerCommand;
use serde_json::{Value, json};
use tokio::sync::Notify;

const ERAS: [EraChoice; 2] = [EraChoice::Stateless, EraChoice::Handshake];

fn raw(value: &Value) -> RawJson {
    RawJson::from_value(value).unwrap()
}

fn tool(name: &str) -> ServerTool {
    ServerTool::new(name, "does something", raw(&json!({ "type": "object" })))
}

/// A client of a server that works in the background, and what it heard.
struct Peers {
    client: Connection,
    control: ServerControl,
    events: Arc<Mutex<Vec<Event>>>,
    heard: Arc<Notify>,
}

impl Peers {
    fn connect(server: &McpServer, era: EraChoice) -> Self {
        let (client_end, server_end) = pipe();
        let (serving, control) = server.serve_pipe(server_end);
        tokio::spawn(serving);
        let (events, heard) = (Arc::<Mutex<Vec<Event>>>::default(), Arc::<Notify>::default());
        let (seen, notify) = (events.clone(), heard.clone());
        let options = ConnectOptions {
            era,
            capabilities: Params::new().with("elicitation", &Params::new()),
            answerer: Some(Arc::new(|_method: &str, _params: RawJson| {
                std::future::ready(Ok(raw(&json!({ "action": "accept", "content": { "name": "Ada" } }))))
            })),
            observer: Some(Arc::new(move |event: &Event| {
                seen.lock().unwrap().push(event.clone());
                notify.notify_one();
            })),
            ..ConnectOptions::default()
        };
        let client = Connection::pipe(&NativeHost::new().unwrap(), "server", client_end, options);
        Self { client, control, events, heard }
    }

    async fn call(&self, name: &str, arguments: Value) -> CallToolResult {
        self.client.call_tool(name, raw(&arguments), CallOptions::default(), None).await.unwrap()
    }

    /// Waits until the client has heard of something.
    async fn hears(&self, wanted: impl Fn(&Event) -> bool) {
        tokio::time::timeout(Duration::from_secs(10), async {
            while !self.events.lock().unwrap().iter().any(&wanted) {
                self.heard.notified().await;
            }
        })
        .await
        .expect("the client hears of it");
    }
}

#[derive(serde::Deserialize)]
struct Name {
    name: String,
}

#[tokio::test]
async fn a_tool_is_listed_and_called_in_both_eras() {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let greet = ServerTool::new("greet", "greets", raw(&schema));
    let server = McpServer::new("test", "1")
        .tool(greet, async |input: Name, _: ServerCall| format!("Hello {}", input.name))
        .unwrap();
    for era in ERAS {
        let peers = Peers::connect(&server, era);
        assert_eq!(peers.client.tools().await.unwrap()[0].name, "greet");
        assert_eq!(peers.call("greet", json!({ "name": "Ada" })).await.text(), "Hello Ada");
        let invalid = peers.call("greet", json!({})).await;
        assert!(invalid.is_error && invalid.text().contains("not valid"), "{}", invalid.text());
        let record = peers.events.lock().unwrap().iter().find_map(|event| match event {
            Event::Connected { record, .. } => Some(record.era),
            _ => None,
        });
        let expected = if era == EraChoice::Stateless { Era::Stateless } else { Era::Handshake(Revision::V2025_11_25) };
        assert_eq!(record, Some(expected));
    }
}

#[tokio::test]
async fn a_call_that_asks_first_is_written_once_for_both_eras() {
    let server = McpServer::new("test", "1")
        .tool(tool("greet"), async |_: Value, call: ServerCall| {
            let Some(answer) = call.input_responses.member("who") else {
                let form = raw(&json!({ "type": "object", "properties": { "name": { "type": "string" } } }));
                let requests = vec![("who".to_owned(), InputRequest::elicit("Who?", &form))];
                return Outcome::NeedsInput { requests, state: Some("kept".into()) };
            };
            assert_eq!(call.request_state.as_deref(), Some("kept"));
            let answer: Value = answer.read().unwrap();
            let text = format!("Hello {}", answer["content"]["name"].as_str().unwrap());
            let content = vec![ContentBlock::Text { text }];
            Outcome::Tool(CallToolResult { content, ..CallToolResult::default() })
        })
        .unwrap();
    for era in ERAS {
        let peers = Peers::connect(&server, era);
        assert_eq!(peers.call("greet", json!({})).await.text(), "Hello Ada", "{era:?}");
    }
}

#[tokio::test]
async fn progress_and_logs_come_before_the_answer() {
    let server = McpServer::new("test", "1")
        .tool(tool("work"), async |_: Value, call: ServerCall| {
            for step in 1..=3 {
                call.progress(f64::from(step), Some(3.0), Some("working"));
            }
            call.log(LogLevel::Warning, Some("work"), raw(&json!("nearly done")));
            raw(&json!({ "done": true }))
        })
        .unwrap()
        .logging();
    for era in ERAS {
        let peers = Peers::connect(&server, era);
        let seen = Arc::<Mutex<Vec<f64>>>::default();
        let reported = seen.clone();
        let on_progress = move |progress: Progress| reported.lock().unwrap().push(progress.progress);
        let call = peers.client.call_tool("work", raw(&json!({})), CallOptions::default(), Some(Box::new(on_progress)));
        let result = call.await.unwrap();
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"done":true}"#);
        assert_eq!(*seen.lock().unwrap(), [1.0, 2.0, 3.0], "{era:?}");
        if era == EraChoice::Handshake {
            peers
                .hears(|event| matches!(event, Event::Notification { method, .. } if method == "notifications/message"))
                .await;
        }
    }
}

#[tokio::test]
async fn calls_run_beside_one_another_and_a_cancelled_one_is_told() {
    let (started, cancelled) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let (start, cancel) = (started.clone(), cancelled.clone());
    let server = McpServer::new("test", "1")
        .tool(tool("stuck"), move |_: Value, call: ServerCall| {
            let (start, cancel) = (start.clone(), cancel.clone());
            async move {
                let guard = call.cancel.on_cancel(move || cancel.notify_one());
                start.notify_one();
                std::future::pending::<()>().await;
                drop(guard);
                "never"
            }
        })
        .and_then(|server| server.tool(tool("quick"), async |_: Value, _: ServerCall| "quick"))
        .unwrap();
    for era in ERAS {
        let peers = Peers::connect(&server, era);
        let client = peers.client.clone();
        let stuck =
            tokio::spawn(async move { client.call_tool("stuck", raw(&json!({})), CallOptions::default(), None).await });
        started.notified().await;
        assert_eq!(peers.call("quick", json!({})).await.text(), "quick");
        stuck.abort();
        tokio::time::timeout(Duration::from_secs(10), cancelled.notified()).await.expect("the function is told");
    }
}

#[tokio::test]
async fn a_panic_and_an_error_are_failed_results() {
    let server = McpServer::new("test", "1")
        .tool(tool("panics"), async |_: Value, _: ServerCall| -> &str { panic!("no disk") })
        .and_then(|server| server.tool(tool("fails"), async |_: Value, _: ServerCall| Err::<&str, _>("no network")))
        .unwrap();
    let peers = Peers::connect(&server, EraChoice::Stateless);
    for (name, words) in [("panics", "the server failed inside"), ("fails", "no network")] {
        let result = peers.call(name, json!({})).await;
        assert!(result.is_error && result.text().contains(words), "{}", result.text());
        assert!(!result.text().contains("no disk"), "what a panic says is for whoever runs the server");
    }
}

#[tokio::test]
async fn resources_and_prompts() {
    let resource = |uri: &str| Resource {
        uri: uri.to_owned(),
        name: "n".to_owned(),
        title: None,
        description: None,
        mime_type: None,
        size: None,
    };
    let server = McpServer::new("test", "1")
        .resource(resource("test://one"), async |_: ServerCall| "the one")
        .and_then(|server| {
            server.resource_template(resource("test://many/{id}"), async |call: ServerCall| match &call.request {
                Request::Resource { variables, .. } if variables[0].1 != "0" => {
                    format!("number {}", variables[0].1).into_outcome_of_text()
                }
                _ => Outcome::NotFound,
            })
        })
        .and_then(|server| {
            let prompt = ServerPrompt { name: "hello".into(), ..ServerPrompt::default() };
            server.prompt(prompt, async |_: ServerCall| "Say hello")
        })
        .unwrap();
    for era in ERAS {
        let peers = Peers::connect(&server, era);
        let read = async |uri: &str| peers.client.read_resource(uri).await.map(|contents| contents[0].body.clone());
        assert_eq!(read("test://one").await.unwrap(), ResourceBody::Text("the one".into()));
        assert_eq!(read("test://many/7").await.unwrap(), ResourceBody::Text("number 7".into()));
        assert!(read("test://many/0").await.is_err());
        let said = peers.client.prompt("hello", &BTreeMap::new()).await.unwrap();
        assert_eq!(
            (said[0].role.as_str(), &said[0].content),
            ("user", &ContentBlock::Text { text: "Say hello".into() })
        );
    }
}

trait TextOutcome {
    fn into_outcome_of_text(self) -> Outcome;
}

impl TextOutcome for String {
    fn into_outcome_of_text(self) -> Outcome {
        let content = vec![ContentBlock::Text { text: self }];
        Outcome::Tool(CallToolResult { content, ..CallToolResult::default() })
    }
}

#[tokio::test]
async fn another_catalogue_is_told_and_served() {
    let with = |name: &str| McpServer::new("test", "1").tool(tool(name), async |_: Value, _: ServerCall| "ok").unwrap();
    for era in ERAS {
        let peers = Peers::connect(&with("before"), era);
        assert_eq!(peers.client.tools().await.unwrap()[0].name, "before");
        // In the stateless era the client asks to hear of changes after it has listed: until then nobody is told.
        let heard = || peers.events.lock().unwrap().iter().any(|event| matches!(event, Event::ToolsChanged));
        while !heard() {
            peers.control.replace(with("before"));
            peers.control.replace(with("after"));
            tokio::task::yield_now().await;
        }
        assert_eq!(peers.client.tools().await.unwrap()[0].name, "after");
        assert_eq!(peers.call("after", json!({})).await.text(), "ok");
    }
}

#[tokio::test]
async fn a_tool_that_is_not_available_is_a_failed_result() {
    let is_open = Arc::new(AtomicBool::new(false));
    let asked = is_open.clone();
    let server = McpServer::new("test", "1")
        .tool(tool("page"), async |_: Value, _: ServerCall| "ok")
        .unwrap()
        .availability(move || Availability {
            closed: (!asked.load(Ordering::Relaxed)).then(|| "the page is closed: open it again".to_owned()),
            blocked: Vec::new(),
        });
    let peers = Peers::connect(&server, EraChoice::Handshake);
    let closed = peers.call("page", json!({})).await;
    assert!(closed.is_error);
    assert_eq!(closed.text(), "the page is closed: open it again");
    is_open.store(true, Ordering::Relaxed);
    assert_eq!(peers.call("page", json!({})).await.text(), "ok");
}

/// A tool that allows one input by itself.
struct Careful;

impl Tool for Careful {
    fn execute(&self, input: RawJson, _: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>> {
        Box::pin(std::future::ready(Ok(ToolOutput::text(input.as_str()))))
    }

    fn decide(&self, input: &RawJson) -> Option<Approval> {
        (input.as_str() == r#"{"n":1}"#).then_some(Approval::Allow)
    }
}

#[tokio::test]
async fn tools_of_an_agent_are_served_and_none_skips_its_approval() {
    let schema = || raw(&json!({ "type": "object" }));
    let plain = ToolDefinition::new("plain", "plain", schema());
    let mut careful = ToolDefinition::new("careful", "careful", schema());
    careful.needs_approval = true;
    let function = FunctionTool::new(async |input: Value, _: ToolContext| format!("took {input}"));
    let tools: Vec<(ToolDefinition, Arc<dyn Tool>)> = vec![(plain, Arc::new(function)), (careful, Arc::new(Careful))];
    let server = McpServer::new("test", "1").expose(tools).unwrap();
    let peers = Peers::connect(&server, EraChoice::Stateless);
    assert_eq!(peers.call("plain", json!({ "a": 1 })).await.text(), "took {\"a\":1}");
    assert_eq!(peers.call("careful", json!({ "n": 1 })).await.text(), r#"{"n":1}"#);
    let refused = peers.call("careful", json!({ "n": 2 })).await;
    assert!(refused.is_error && refused.text().contains("approval of a person"), "{}", refused.text());
}

#[tokio::test]
async fn the_end_of_a_connection_ends_its_calls() {
    let ended = CancelToken::new();
    let started = Arc::<Notify>::default();
    let (fire, start) = (ended.clone(), started.clone());
    let server = McpServer::new("test", "1")
        .tool(tool("stuck"), move |_: Value, call: ServerCall| {
            let (fire, start) = (fire.clone(), start.clone());
            async move {
                let _guard = call.cancel.on_cancel(move || fire.cancel());
                start.notify_one();
                std::future::pending::<&str>().await
            }
        })
        .unwrap();
    let (mut client, server_end) = pipe();
    let (serving, _control) = server.serve_pipe(server_end);
    let serving = tokio::spawn(serving);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "stuck", "_meta": meta });
    client.send(raw(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))).await;
    started.notified().await;
    serving.abort();
    tokio::time::timeout(Duration::from_secs(10), ended.cancelled()).await.expect("the function is told");
}

/// Whether this program is the server that `a_tool_that_prints_holds_up_nothing` starts: itself once more.
const SERVES: &str = "CRABLET_TEST_SERVES";

#[tokio::test]
async fn a_tool_that_prints_holds_up_nothing() {
    if std::env::var_os(SERVES).is_some() {
        // Behind what the harness prints.
        println!();
        let server = McpServer::new("prints", "1").tool(tool("print"), async |_: Value, _: ServerCall| {
            println!("a line that belongs elsewhere");
            "printed"
        });
        crablet::native::serve_stdio(&server.unwrap()).await.unwrap();
        std::process::exit(0);
    }
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let mut command = ServerCommand::new(program, ["--exact", "a_tool_that_prints_holds_up_nothing", "--nocapture"]);
    command.environment.insert(SERVES.to_owned(), "yes".to_owned());
    let client = Connection::stdio(&NativeHost::new().unwrap(), "prints", command, ConnectOptions::default());
    for _ in 0..2 {
        let call = client.call_tool("print", raw(&json!({})), CallOptions::default(), None);
        let result = tokio::time::timeout(Duration::from_secs(60), call).await.expect("the call is answered").unwrap();
        assert_eq!(result.text(), "printed");
    }
}
