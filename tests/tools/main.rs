//! The built-in tools, called as an agent calls them, over real folders, servers and processes.
#![cfg(all(feature = "tools", feature = "native", unix))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod bash;
mod fetch;
mod files;
mod openapi;
mod scratchpad;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crablet::agent::ToolOutput;
use crablet::host::tools::BuiltInTool;
use crablet::host::{CancelToken, ToolContext};
use crablet::json::RawJson;
use crablet::model::{CallId, Content};
use serde_json::Value;

/// Calls one of these tools: its output, or what the model is told of the failure.
async fn call_output(tools: &[BuiltInTool], name: &str, input: Value) -> Result<ToolOutput, String> {
    let (_, tool) = tools.iter().find(|(definition, _)| definition.name == name).expect("a tool of this name");
    let context = ToolContext::detached(CallId::new("call"), CancelToken::new());
    tool.execute(RawJson::from_value(&input).unwrap(), context).await
}

/// Calls one of these tools: what the model reads.
async fn call(tools: &[BuiltInTool], name: &str, input: Value) -> Result<String, String> {
    call_output(tools, name, input).await.map(|output| text(&output))
}

fn text(output: &ToolOutput) -> String {
    match output.content.as_slice() {
        [Content::Text(text)] => text.clone(),
        other => panic!("one text was expected: {other:?}"),
    }
}

/// A folder of its own, removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("crablet-tools-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _already_gone = fs::remove_dir_all(&self.0);
    }
}
