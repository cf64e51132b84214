//! The tool that must not be used twice: a stdio MCP server that writes down what it does, and what it wrote.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crablet::host::mcp::{McpServer, ServerCall};
use crablet::json::RawJson;
use crablet::mcp::server::ServerTool;
use crablet::native::serve_stdio;
use serde_json::Value;

use crate::record::Performed;

/// What a call reports before it has its result.
pub(crate) const REPORTS: [u64; 3] = [1, 2, 3];

/// The schema of the tool's input.
pub(crate) const SCHEMA: &str =
    r#"{"type":"object","properties":{"key":{"type":"string"},"sum":{"type":"string"}},"required":["key","sum"]}"#;

/// Serves standard input and output until it ends.
pub(crate) async fn serve(folder: PathBuf) -> std::io::Result<()> {
    let tool = ServerTool::new("book", "Books something once", RawJson::parse(SCHEMA).unwrap());
    let server = McpServer::new("ledger", "1").tool(tool, move |input: Value, call: ServerCall| {
        let folder = folder.clone();
        async move { book(&folder, &input, &call).await }
    });
    serve_stdio(&server.unwrap()).await
}

async fn book(folder: &Path, input: &Value, call: &ServerCall) -> String {
    let key = input["key"].as_str().unwrap_or_default();
    let seed = key.split('.').next().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or_default();
    let mut ledger = File::options().create(true).append(true).open(path(folder, seed)).unwrap();
    // One write, so that the lines of two processes do not mix.
    ledger.write_all(format!("{input}\n").as_bytes()).unwrap();
    for report in REPORTS {
        call.progress(report as f64, None, None);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    format!("booked {key}")
}

/// What was done for a script; forgets it.
pub(crate) fn take(folder: &Path, seed: u64) -> Vec<Performed> {
    let text = std::fs::read_to_string(path(folder, seed)).unwrap_or_default();
    let _nothing_was_done = std::fs::remove_file(path(folder, seed));
    text.lines().map(|line| Performed { input: serde_json::from_str(line).unwrap_or_default() }).collect()
}

fn path(folder: &Path, seed: u64) -> PathBuf {
    folder.join(seed.to_string())
}
