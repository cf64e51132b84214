//! A tool call outlives its client: the process that made it is gone, and the next one claims the result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crablet::agent::{Agent, EventKind};
use crablet::host::mcp::{self, ConnectOptions, Connection};
use crablet::host::{Conversation, Runner};
use crablet::json::RawJson;
use crablet::mcp::client::CallOptions;
use crablet::mcp::transport::websocket::WebSocketOptions;
use crablet::model::{Model, ModelEvent, ModelRequest, StopReason, ToolResult};
use crablet::native::{FileStore, NativeHost};
use serde_json::json;

use crate::support::Shim;

/// Pays at once, a line in the ledger, and answers when it is released: by another tool, or by a file.
const SERVER: &str = r#"
const fs = require("node:fs");
const ledger = process.argv[1];
const say = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
let release;
const released = new Promise((resolve) => { release = resolve; });
const watch = setInterval(() => fs.existsSync(`${ledger}.release`) && release(), 10);
require("node:readline").createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params } = JSON.parse(line);
  const text = (text) => say({ id, result: { content: [{ type: "text", text }] } });
  if (method === "initialize") {
    say({ id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "bank", version: "1" } } });
  } else if (method === "tools/list") {
    say({ id, result: { tools: ["pay", "release"].map((name) => ({ name, inputSchema: { type: "object" } })) } });
  } else if (method === "tools/call" && params.name === "release") {
    release();
    text("released");
  } else if (method === "tools/call") {
    fs.appendFileSync(ledger, "paid\n");
    say({ method: "notifications/progress", params: { progressToken: params._meta.progressToken, progress: 1 } });
    await released;
    text("receipt 4711");
    fs.appendFileSync(ledger, "answered\n");
  } else if (id !== undefined) {
    say({ id, error: { code: -32601, message: "unknown" } });
  }
}).on("close", () => clearInterval(watch));
"#;

/// A shim whose server pays, and what outlives its clients.
struct Bank {
    shim: Shim,
    folder: PathBuf,
    options: WebSocketOptions,
}

impl Bank {
    async fn open(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let server = json!({ "command": "node", "args": ["-e", SERVER, folder.join("ledger")] });
        let shim = Shim::start(json!({ "bank": server }), &[]).await;
        let options = shim.options("bank").await;
        Self { shim, folder, options }
    }

    /// Prompts the agent in a process that dies while the tool runs; gives the id to attach again with.
    async fn die_while_paying(&self) -> String {
        let (folder, options) = (self.folder.clone(), self.options.clone());
        let life = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let (conversation, run, connection) = runtime.block_on(async {
                let (conversation, connection) = conversation(&folder, options).await;
                let mut run = conversation.send("pay").unwrap();
                let is_paying = |kind: &EventKind| matches!(kind, EventKind::ToolProgress { .. });
                while !run.next().await.unwrap().iter().any(|event| is_paying(&event.kind)) {}
                (conversation, run, connection)
            });
            let resume_id = connection.resume_id().unwrap();
            // A process that is killed drops nothing: neither is the run aborted, nor does the client say goodbye.
            std::mem::forget((run, conversation, connection));
            drop(runtime);
            resume_id
        };
        tokio::task::spawn_blocking(life).await.unwrap()
    }

    fn ledger(&self) -> String {
        std::fs::read_to_string(self.folder.join("ledger")).unwrap()
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        let _already_gone = std::fs::remove_dir_all(&self.folder);
    }
}

async fn conversation(folder: &Path, options: WebSocketOptions) -> (Conversation<NativeHost>, Connection) {
    let host = NativeHost::new().unwrap();
    let connection = Connection::shim(&host, "bank", options, ConnectOptions::default()).unwrap();
    let runner = Runner::new(host, Agent::new(Model::function("payer")))
        .function_model("payer", |request: Arc<ModelRequest>, _| {
            let events = match request.messages.len() {
                1 => vec![
                    ModelEvent::ToolInputStart { block: 0, id: "c1".to_owned(), name: "bank__pay".to_owned() },
                    ModelEvent::ToolInputDelta { block: 0, json: "{}".to_owned() },
                    ModelEvent::ToolInputEnd { block: 0, replay: None },
                    ModelEvent::Stop { reason: StopReason::ToolUse, raw: None },
                ],
                _ => vec![ModelEvent::Stop { reason: StopReason::Stop, raw: None }],
            };
            futures_util::stream::iter(events.into_iter().map(Ok))
        })
        .tools(mcp::tools(&connection).await.unwrap());
    let store = Arc::new(FileStore::new(folder.join("store")));
    (runner.open(store, "payment").await.unwrap(), connection)
}

/// Goes on with the conversation, and gives the result of its one call.
async fn result(conversation: &Conversation<NativeHost>) -> Arc<ToolResult> {
    let Some(mut run) = conversation.resume() else { panic!("{}", conversation.snapshot()) };
    let mut results = Vec::new();
    while let Some(batch) = run.next().await {
        results.extend(batch.into_iter().filter_map(|event| match event.kind {
            EventKind::ToolResult(result) => Some(result),
            _ => None,
        }));
    }
    assert_eq!(results.len(), 1);
    results.remove(0)
}

fn said(result: &ToolResult) -> String {
    format!("{:?}", result.content)
}

#[tokio::test]
async fn a_call_that_still_runs_is_claimed() {
    let bank = Bank::open("claim-running").await;
    let resume = Some(bank.die_while_paying().await);
    let (conversation, connection) =
        self::conversation(&bank.folder, WebSocketOptions { resume, ..bank.options.clone() }).await;
    let release = connection.call_tool("release", RawJson::parse("{}").unwrap(), CallOptions::default(), None);
    let (result, released) = tokio::join!(result(&conversation), release);
    assert!(released.is_ok());
    assert!(!result.is_error && said(&result).contains("receipt 4711"), "{result:?}");
    assert_eq!(bank.ledger().matches("paid").count(), 1);
}

#[tokio::test]
async fn a_result_that_came_while_nobody_was_there_is_claimed() {
    let bank = Bank::open("claim-done").await;
    let resume = Some(bank.die_while_paying().await);
    std::fs::write(bank.folder.join("ledger.release"), "").unwrap();
    while !bank.ledger().contains("answered") {
        tokio::task::yield_now().await;
    }
    let (conversation, _connection) =
        self::conversation(&bank.folder, WebSocketOptions { resume, ..bank.options.clone() }).await;
    let result = result(&conversation).await;
    assert!(!result.is_error && said(&result).contains("receipt 4711"), "{result:?}");
    assert_eq!(bank.ledger(), "paid\nanswered\n");
}

#[tokio::test]
async fn without_the_process_the_call_was_interrupted() {
    let mut bank = Bank::open("claim-lost").await;
    let lost = bank.die_while_paying().await;
    // A shim that was started again knows nothing of it, and starts a new process.
    let server = json!({ "command": "node", "args": ["-e", SERVER, bank.folder.join("ledger")] });
    bank.shim = Shim::start(json!({ "bank": server }), &[]).await;
    for resume in [Some(lost), None] {
        let folder = bank.folder.join(if resume.is_some() { "with" } else { "without" });
        copy_store(&bank.folder.join("store"), &folder.join("store"));
        let options = WebSocketOptions { resume, ..bank.shim.options("bank").await };
        let (conversation, _connection) = conversation(&folder, options).await;
        let result = result(&conversation).await;
        assert!(result.is_error && said(&result).contains("was interrupted"), "{result:?}");
    }
    assert_eq!(bank.ledger(), "paid\n");
}

fn copy_store(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy_store(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}
