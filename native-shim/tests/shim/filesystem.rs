//! A real MCP server through the shim, with the native client end.

use crate::support::{Shim, filesystem_server};
use crablet::host::mcp::{ConnectOptions, Connection};
use crablet::json::RawJson;
use crablet::mcp::client::CallOptions;
use crablet::native::NativeHost;
use serde_json::json;

#[tokio::test]
async fn files_are_written_and_read_through_the_shim() {
    let folder =
        std::fs::canonicalize(env!("CARGO_TARGET_TMPDIR")).unwrap().join(format!("files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let server = json!({ "command": "node", "args": [filesystem_server(), folder] });
    let shim = Shim::start(json!({ "files": server }), &[]).await;
    let host = NativeHost::new().unwrap();
    let connection = Connection::shim(&host, "files", shim.options("files").await, ConnectOptions::default()).unwrap();

    let names: Vec<_> = connection.tools().await.unwrap().iter().map(|tool| tool.name.clone()).collect();
    assert!(["write_file", "read_text_file"].iter().all(|name| names.iter().any(|other| other == name)), "{names:?}");
    let call = |name: &'static str, arguments: serde_json::Value| {
        connection.call_tool(name, RawJson::from_value(&arguments).unwrap(), CallOptions::default(), None)
    };
    let path = folder.join("note.txt");
    let content = "Grüße 🦀 ".repeat(40_000);
    let written = call("write_file", json!({ "path": path, "content": content })).await.unwrap();
    assert!(!written.is_error, "{}", written.text());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    let read = call("read_text_file", json!({ "path": path })).await.unwrap();
    assert_eq!(read.text(), content);
    assert!(call("read_text_file", json!({ "path": "/etc/passwd" })).await.unwrap().is_error);

    connection.close().await;
    std::fs::remove_dir_all(&folder).unwrap();
}
