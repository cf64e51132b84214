//! The MCP client against real servers, natively. Run by `cargo test --test mcp_live -- --ignored`, once
//! `scripts/setup.sh npm:pkg-tests/servers python-servers` has installed the servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]
#![cfg(feature = "native")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crablet::host::mcp::{ConnectOptions, Connection, HttpServer};
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
#[cfg(unix)]
use crablet::mcp::client::Request;
use crablet::mcp::client::{CallOptions, Event, Progress};
use crablet::mcp::protocol::{Era, Revision};
use crablet::native::NativeHost;
#[cfg(unix)]
use crablet::native::process::ServerCommand;
use crablet::{Error, ErrorKind};
use tokio::sync::Notify;

/// A server process that is stopped when the test ends.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    /// The reference server, of the handshake era.
    fn everything() -> Self {
        Self::everything_over("streamableHttp")
    }

    /// The same over another transport.
    fn everything_over(transport: &str) -> Self {
        Self::start(|port| {
            let mut command = Command::new("node");
            command.arg(npm_server("everything")).arg(transport).env("PORT", port);
            command
        })
    }

    /// A server of FastMCP, of both eras.
    fn fastmcp() -> Self {
        Self::start(|port| {
            let mut command = Command::new(python("python"));
            command.arg(npm_servers().join("fastmcp_server.py")).arg(port);
            command
        })
    }

    /// A server of the official SDK, of the stateless era.
    fn stateless() -> Self {
        Self::start(|port| {
            let mut command = Command::new("node");
            command.arg(npm_servers().join("sdk-server.mjs")).arg(port);
            command
        })
    }

    /// Starts a server on a free port and waits until it listens.
    fn start(command: impl FnOnce(&str) -> Command) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = command(&port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node is needed to run the server");
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(30), "the server did not listen within 30 s");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { process, url: format!("http://127.0.0.1:{port}/mcp") }
    }

    fn connect(&self, events: &Arc<Mutex<Vec<Event>>>) -> Connection {
        let events = events.clone();
        let options = ConnectOptions {
            observer: Some(Arc::new(move |event: &Event| events.lock().unwrap().push(event.clone()))),
            ..ConnectOptions::default()
        };
        Connection::http(&NativeHost::new().unwrap(), "everything", HttpServer::new(&self.url), options)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The folder of the servers that are npm packages, which `scripts/setup.sh npm:pkg-tests/servers` installs.
fn npm_servers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pkg-tests/servers")
}

/// The entry of one of them.
fn npm_server(name: &str) -> PathBuf {
    npm_servers().join(format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js"))
}

/// A program of the servers that are Python packages, which `scripts/setup.sh python-servers` installs.
fn python(program: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache/python-servers/bin").join(program)
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

#[tokio::test]
#[ignore = "needs servers that scripts/setup.sh installs"]
async fn tools_are_listed_and_called_over_streamable_http() -> Result<(), Error> {
    let server = Server::everything();
    let events = Arc::default();
    let connection = server.connect(&events);

    let info = connection.ready().await?;
    assert!(info.instructions.is_some_and(|text| !text.is_empty()));
    let is_handshake = |event: &Event| matches!(event, Event::Connected { record, .. } if record.era == Era::Handshake(Revision::V2025_11_25));
    assert!(events.lock().unwrap().iter().any(is_handshake));

    let names: Vec<_> = connection.tools().await?.iter().map(|tool| tool.name.clone()).collect();
    assert!(["echo", "get-sum", "get-structured-content"].iter().all(|name| names.iter().any(|other| other == name)));

    let call = |name: &'static str, arguments: &'static str| {
        connection.call_tool(name, json(arguments), CallOptions::default(), None)
    };
    assert_eq!(call("echo", r#"{"message":"grüß"}"#).await?.text(), "Echo: grüß");
    assert!(call("get-sum", r#"{"a":2,"b":40}"#).await?.text().contains("42"));
    let structured = call("get-structured-content", r#"{"location":"New York"}"#).await?;
    assert!(structured.structured_content.is_some());
    assert!(call("get-sum", r#"{"a":"two"}"#).await.is_ok_and(|result| result.is_error));

    let resources = connection.resources().await?;
    let contents = connection.read_resource(&resources[0].uri).await?;
    assert_eq!(contents[0].uri, resources[0].uri);
    assert!(!connection.resource_templates().await?.is_empty());
    let prompts = connection.prompts().await?;
    let plain = prompts.iter().find(|prompt| prompt.arguments.is_empty()).expect("a prompt without arguments");
    assert!(!connection.prompt(&plain.name, &Default::default()).await?.is_empty());

    connection.close().await;
    assert_eq!(connection.tools().await.unwrap_err().kind(), ErrorKind::ConnectionClosed);
    Ok(())
}

#[tokio::test]
#[ignore = "needs servers that scripts/setup.sh installs"]
async fn a_call_that_reports_progress_is_not_cut_while_others_are_made() -> Result<(), Error> {
    let server = Server::everything();
    let connection = server.connect(&Arc::default());
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    let slow = connection.call_tool(
        "trigger-long-running-operation",
        json(r#"{"duration":2,"steps":4}"#),
        CallOptions { idle_timeout: 1_900, ..CallOptions::default() },
        Some(Box::new(move |progress: Progress| seen.lock().unwrap().push(progress.progress))),
    );
    let quick = async {
        for number in 0..64 {
            let arguments = json(&format!(r#"{{"message":"{number}"}}"#));
            let result = connection.call_tool("echo", arguments, CallOptions::default(), None).await?;
            assert_eq!(result.text(), format!("Echo: {number}"));
        }
        Ok::<_, Error>(())
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert!(slow?.text().contains("completed"));
    quick?;
    assert_eq!(*reports.lock().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    Ok(())
}

#[tokio::test]
#[ignore = "needs servers that scripts/setup.sh installs"]
async fn a_dropped_call_is_cancelled_and_the_next_one_works() -> Result<(), Error> {
    let server = Server::everything();
    let connection = server.connect(&Arc::default());
    connection.ready().await?;
    let arguments = json(r#"{"duration":60,"steps":60}"#);
    let slow = connection.call_tool("trigger-long-running-operation", arguments, CallOptions::default(), None);
    assert!(tokio::time::timeout(Duration::from_millis(300), slow).await.is_err());
    let echoed = connection.call_tool("echo", json(r#"{"message":"on"}"#), CallOptions::default(), None).await?;
    assert_eq!(echoed.text(), "Echo: on");
    Ok(())
}

#[tokio::test]
#[ignore = "needs servers that scripts/setup.sh installs"]
async fn a_stateless_server_is_called_asked_back_and_listened_to() -> Result<(), Error> {
    let server = Server::stateless();
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let seen = events.clone();
    let changed = Arc::new(Notify::new());
    let heard = changed.clone();
    let observer = move |event: &Event| {
        if *event == Event::ToolsChanged {
            heard.notify_one();
        }
        seen.lock().unwrap().push(event.clone());
    };
    let answerer = |_: &str, params: RawJson| {
        assert!(params.as_str().contains("Who are you?"));
        std::future::ready(Ok(json(r#"{"action":"accept","content":{"name":"Ada"}}"#)))
    };
    let options = ConnectOptions {
        observer: Some(Arc::new(observer)),
        capabilities: Params::new().with("elicitation", &Params::new()),
        answerer: Some(Arc::new(answerer)),
        ..ConnectOptions::default()
    };
    let connection = Connection::http(&NativeHost::new()?, "stateless", HttpServer::new(&server.url), options);
    connection.ready().await?;
    let is_stateless = |event: &Event| matches!(event, Event::Connected { record, .. } if record.era == Era::Stateless);
    assert!(events.lock().unwrap().iter().any(is_stateless));

    let names: Vec<_> = connection.tools().await?.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["sum", "greet", "produce", "hold", "release", "change"]);
    let sum = connection.call_tool("sum", json(r#"{"a":2,"b":40}"#), CallOptions::default(), None).await?;
    assert_eq!(sum.structured_content.unwrap().as_str(), r#"{"sum":42}"#);
    let greeting = connection.call_tool("greet", json("{}"), CallOptions::default(), None).await?;
    assert_eq!(greeting.text(), "hello Ada");

    connection.call_tool("change", json("{}"), CallOptions::default(), None).await?;
    tokio::time::timeout(Duration::from_secs(10), changed.notified()).await.expect("the change was not heard of");
    connection.close().await;
    Ok(())
}

#[tokio::test]
#[ignore = "needs servers that scripts/setup.sh installs"]
async fn many_calls_run_at_once_with_a_slow_and_a_large_one_among_them() -> Result<(), Error> {
    const LARGE: usize = 8 << 20;
    let server = Server::stateless();
    let connection = server.connect(&Arc::default());
    let calls = (0..63_usize).map(|number| {
        let bytes = if number == 1 { LARGE } else { number + 1 };
        let arguments = json(&format!(r#"{{"bytes":{bytes}}}"#));
        let connection = &connection;
        async move {
            let result = connection.call_tool("produce", arguments, CallOptions::default(), None).await?;
            assert_eq!(result.text().len(), bytes);
            Ok::<_, Error>(())
        }
    });
    // The slow one answers only when all others have.
    let slow = connection.call_tool("hold", json("{}"), CallOptions::default(), None);
    let others = async {
        for outcome in futures_util::future::join_all(calls).await {
            outcome?;
        }
        connection.call_tool("release", json("{}"), CallOptions::default(), None).await
    };
    let (slow, others) = tokio::join!(slow, others);
    others?;
    assert_eq!(slow?.text(), "released");
    Ok(())
}

/// Lists the tools and calls one.
async fn list_and_call(connection: &Connection, tool: &str, arguments: &str) -> Result<String, Error> {
    let tools = connection.tools().await?;
    assert!(tools.iter().any(|offered| offered.name == tool), "{} has no {tool}", connection.name());
    let result = connection.call_tool(tool, json(arguments), CallOptions::default(), None).await?;
    assert!(!result.is_error, "{}", result.text());
    Ok(result.text())
}

#[tokio::test]
#[ignore = "needs servers that scripts/setup.sh installs"]
async fn every_server_over_http_lists_and_answers() -> Result<(), Error> {
    let (sse, fastmcp) = (Server::everything_over("sse"), Server::fastmcp());
    let host = NativeHost::new()?;
    let old = HttpServer::new(sse.url.replace("/mcp", "/sse"));
    let connection = Connection::http(&host, "sse", old, ConnectOptions::default());
    assert_eq!(list_and_call(&connection, "echo", r#"{"message":"old"}"#).await?, "Echo: old");
    connection.close().await;
    let connection = fastmcp.connect(&Arc::default());
    assert_eq!(list_and_call(&connection, "add", r#"{"a":2,"b":40}"#).await?, "42");
    connection.close().await;
    Ok(())
}

#[tokio::test]
#[ignore = "needs servers that scripts/setup.sh installs"]
async fn a_call_that_becomes_a_task_is_waited_for() -> Result<(), Error> {
    let server = Server::everything();
    let connection = server.connect(&Arc::default());
    let report = list_and_call(&connection, "simulate-research-query", r#"{"topic":"crabs"}"#).await?;
    assert!(report.contains("crabs"), "{report}");
    connection.close().await;
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "needs servers that scripts/setup.sh installs"]
async fn every_server_that_is_a_process_lists_and_answers() -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("crablet-live-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("note.txt"), "the word is crab").unwrap();
    assert!(Command::new("git").args(["init", "--quiet"]).arg(&folder).status().unwrap().success());
    let node = |server: &str, arguments: Vec<String>| {
        let script = npm_server(server).to_string_lossy().into_owned();
        ServerCommand::new("node", std::iter::once(script).chain(arguments))
    };
    let path = folder.to_string_lossy().into_owned();
    let none = Vec::<String>::new;
    let memory = ServerCommand { directory: Some(folder.clone()), ..node("memory", none()) };
    let read = format!(r#"{{"path":"{path}/note.txt"}}"#);
    let status = format!(r#"{{"repo_path":"{path}"}}"#);
    for (name, command, tool, arguments, expected) in [
        ("everything", node("everything", vec!["stdio".to_owned()]), "echo", r#"{"message":"hi"}"#, "Echo: hi"),
        ("filesystem", node("filesystem", vec![path.clone()]), "read_text_file", read.as_str(), "the word is crab"),
        ("memory", memory, "read_graph", "{}", "entities"),
        (
            "time",
            ServerCommand::new(python("mcp-server-time").to_string_lossy(), none()),
            "get_current_time",
            r#"{"timezone":"UTC"}"#,
            "UTC",
        ),
        (
            "git",
            ServerCommand::new(python("mcp-server-git").to_string_lossy(), none()),
            "git_status",
            &status,
            "note.txt",
        ),
    ] {
        let connection = Connection::stdio(&NativeHost::new()?, name, command, ConnectOptions::default());
        let text = list_and_call(&connection, tool, arguments).await?;
        assert!(text.contains(expected), "{name}: {text}");
        connection.close().await;
    }
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "needs servers that scripts/setup.sh installs"]
async fn a_server_is_started_as_a_process_and_ends_with_its_connection() -> Result<(), Error> {
    let script = npm_server("everything");
    let arguments = [script.to_string_lossy().into_owned(), "stdio".to_owned()];
    let command = ServerCommand::new("node", arguments);
    let connection = Connection::stdio(&NativeHost::new()?, "everything", command, ConnectOptions::default());
    assert!(connection.tools().await?.len() > 10);
    let echoed = connection.call_tool("echo", json(r#"{"message":"hi"}"#), CallOptions::default(), None).await?;
    assert_eq!(echoed.text(), "Echo: hi");
    connection.close().await;
    assert_eq!(connection.ready().await.unwrap_err().kind(), ErrorKind::ConnectionClosed);
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_that_ends_tells_why_and_is_started_again_by_the_next_call() {
    let folder = std::env::temp_dir().join(format!("crablet-stdio-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Fails the first time; the second time it answers the probe and a list.
    let script = r#"
        if [ ! -e started ]; then touch started; echo "no such folder" >&2; exit 3; fi
        read line; echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}'
        read line; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}'
        read line
    "#;
    let command = ServerCommand { directory: Some(folder.clone()), ..ServerCommand::new("sh", ["-c", script]) };
    let host = NativeHost::new().unwrap();
    let connection = Connection::stdio(&host, "files", command, ConnectOptions::default());
    let error = connection.ready().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionClosed);
    assert!(error.message().contains("code 3") && error.message().contains("no such folder"), "{error}");
    assert_eq!(connection.tools().await.unwrap(), []);
    connection.close().await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_connection_that_is_made_anew_knows_the_era_and_asks_for_what_was_asked_for() {
    let folder = std::env::temp_dir().join(format!("crablet-anew-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Ends after the subscription; the second time it writes down what it hears.
    let script = r#"
        answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
        initialized='{"protocolVersion":"2025-06-18","capabilities":{"resources":{}}}'
        if [ ! -e started ]; then
            touch started
            read line; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
            read line; answer 2 "$initialized"
            read line; read line; answer 3 '{}'
            exit 0
        fi
        read line; echo "$line" >>heard; answer 1 "$initialized"
        read line; read line; echo "$line" >>heard; answer 2 '{}'
        read line; answer 3 '{}'
        read line
    "#;
    let command = ServerCommand { directory: Some(folder.clone()), ..ServerCommand::new("sh", ["-c", script]) };
    let ended = Arc::new(Notify::new());
    let tell = ended.clone();
    let observer = move |event: &Event| {
        if matches!(event, Event::Closed { .. }) {
            tell.notify_one();
        }
    };
    let options = ConnectOptions { observer: Some(Arc::new(observer)), ..ConnectOptions::default() };
    let connection = Connection::stdio(&NativeHost::new().unwrap(), "s", command, options);
    let subscribe = Request::Subscribe { uri: "f:///a".to_owned(), wanted: true };
    connection.ask(subscribe, CallOptions::default(), None).await.unwrap();
    ended.notified().await;
    connection.request("ping", Params::new()).await.unwrap();
    let heard = std::fs::read_to_string(folder.join("heard")).unwrap();
    let lines: Vec<_> = heard.lines().collect();
    assert!(lines[0].contains("initialize") && lines[1].contains("resources/subscribe"), "{heard}");
    connection.close().await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_network_error() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = HttpServer::new(format!("http://127.0.0.1:{port}/mcp"));
    let connection = Connection::http(&NativeHost::new().unwrap(), "nobody", server, ConnectOptions::default());
    assert_eq!(connection.ready().await.unwrap_err().kind(), ErrorKind::Network);
    assert_eq!(connection.tools().await.unwrap_err().kind(), ErrorKind::Network);
}
