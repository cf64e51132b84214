//! The main job, natively: an agent streams from a model over HTTP, calls the tools of a real stdio MCP server through
//! the shim, and answers. The model is the demo's, which is scripted and turns words into real calls.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{Shim, filesystem_server};
use crablet::agent::{Agent, Event, EventKind};
use crablet::host::mcp::{self, ConnectOptions, Connection};
use crablet::host::{Conversation, Runner};
use crablet::model::openai_chat;
use crablet::native::NativeHost;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

/// The demo's model server.
struct ModelServer {
    url: String,
    /// Kept open, since the server logs to it.
    _log: BufReader<ChildStdout>,
    _process: Child,
}

impl ModelServer {
    async fn start() -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../www/demo/model-server.mjs");
        let mut process = Command::new("node")
            .arg(program)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node is needed for the demo's model");
        let mut line = String::new();
        let mut log = BufReader::new(process.stdout.take().unwrap());
        log.read_line(&mut line).await.unwrap();
        let url = line.split_whitespace().last().expect("it says where it listens").to_owned();
        Self { url, _log: log, _process: process }
    }
}

/// Everything at work, over a folder of its own.
struct Stage {
    folder: PathBuf,
    shim: Shim,
    model: ModelServer,
}

impl Stage {
    async fn set(name: &str) -> Self {
        let scratch = std::fs::canonicalize(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let folder = scratch.join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let server = json!({ "command": "node", "args": [filesystem_server(), folder] });
        let shim = Shim::start(json!({ "files": server }), &["--grace", "1"]).await;
        Self { folder, shim, model: ModelServer::start().await }
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.folder.join(name), content).unwrap();
    }

    /// A conversation with the model of this name, which may use the server.
    async fn conversation(&self, model: &str) -> (Conversation<NativeHost>, Connection) {
        let host = NativeHost::new().unwrap();
        let options = self.shim.options("files").await;
        let server = Connection::shim(&host, "files", options, ConnectOptions::default()).unwrap();
        let agent = Agent::new(openai_chat::compatible(&self.model.url, model));
        let runner = Runner::new(host, agent).tools(mcp::tools(&server).await.unwrap());
        (runner.conversation().unwrap(), server)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _already_gone = std::fs::remove_dir_all(&self.folder);
    }
}

async fn ask(conversation: &Conversation<NativeHost>, prompt: &str) -> Vec<Event> {
    let mut run = conversation.send(prompt).unwrap();
    let mut events = Vec::new();
    while let Some(batch) = run.next().await {
        events.extend(batch);
    }
    events
}

fn text(events: &[Event]) -> &str {
    match &events.last().unwrap().kind {
        EventKind::RunEnd(end) => {
            assert_eq!(end.error, None);
            &end.text
        }
        other => panic!("the last event is {other:?}"),
    }
}

/// Whether each result is an error, in the order in which they came.
fn failures(events: &[Event]) -> Vec<bool> {
    let failed = |event: &Event| match &event.kind {
        EventKind::ToolResult(result) => Some(result.is_error),
        _ => None,
    };
    events.iter().filter_map(failed).collect()
}

#[tokio::test]
async fn the_answer_holds_what_the_files_hold() {
    let stage = Stage::set("agent").await;
    stage.write("walrus.txt", "tusks 4711");
    stage.write("otter.txt", "whiskers 1174");
    let (conversation, _server) = stage.conversation("scripted-demo").await;

    let events = ask(&conversation, "read walrus.txt").await;
    assert!(text(&events).contains("tusks 4711"), "{}", text(&events));
    assert!(events.iter().filter(|event| matches!(event.kind, EventKind::TextDelta(..))).count() > 1, "it streams");

    let events = ask(&conversation, "read walrus.txt and read otter.txt").await;
    assert_eq!(failures(&events), [false, false]);
    assert!(text(&events).contains("tusks 4711") && text(&events).contains("whiskers 1174"), "{}", text(&events));
}

#[tokio::test]
async fn with_the_shim_gone_the_model_reads_of_the_failure() {
    let mut stage = Stage::set("agent-alone").await;
    stage.write("walrus.txt", "tusks 4711");
    let (conversation, _server) = stage.conversation("scripted-demo").await;
    ask(&conversation, "read walrus.txt").await;
    stage.shim.end("-KILL").await;

    let events = ask(&conversation, "read walrus.txt").await;
    assert_eq!(failures(&events), [true]);
    assert!(!text(&events).contains("tusks 4711"), "{}", text(&events));
}
