//! What is wrong with a line is a JSON-RPC error, and what wants no answer gets none.

use crablet::mcp::protocol::{EraChoice, Revision};
use crablet::mcp::server::{Catalog, Outgoing, Server, ServerOptions};
use serde_json::{Value, json};

use super::{catalog, handshake, info, reply, request, server, stateless};

fn error(outgoing: Outgoing) -> (i64, Value) {
    let reply = reply(outgoing);
    (reply["error"]["code"].as_i64().expect("an error"), reply["id"].clone())
}

#[test]
fn lines_that_are_no_messages() {
    let mut server = server();
    for (line, code, id) in [
        ("", -32700, Value::Null),
        ("{", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        ("7", -32600, Value::Null),
        ("\"text\"", -32600, Value::Null),
        (r#"{"id":7}"#, -32600, json!(7)),
        (r#"{"id":"a","method":7}"#, -32600, json!("a")),
        (r#"{"id":null,"method":"ping"}"#, -32600, Value::Null),
        (r#"{"id":[1],"method":"ping"}"#, -32600, Value::Null),
        (r#"{"id":1,"method":"tools/list","params":[1]}"#, -32602, json!(1)),
    ] {
        assert_eq!(error(server.handle_line(line)), (code, id), "{line}");
    }
}

#[test]
fn notifications_and_messages_without_a_method_are_never_answered() {
    let mut server = server();
    for line in [
        "{}",
        r#"{"method":7}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"nothing"}}"#,
        r#"{"jsonrpc":"2.0","method":"unknown"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"server-0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
    ] {
        assert_eq!(server.handle_line(line), Outgoing::None, "{line}");
    }
}

#[test]
fn initialize_always_succeeds() {
    let mut server = server();
    for (version, agreed) in [
        (json!("2025-11-25"), "2025-11-25"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2024-11-05"), "2024-11-05"),
        (json!("2026-07-28"), "2025-11-25"),
        (json!("1.0"), "2025-11-25"),
        (json!(7), "2025-11-25"),
    ] {
        let hello = reply(server.handle_line(&request(1, "initialize", json!({ "protocolVersion": version }))));
        assert_eq!(hello["result"]["protocolVersion"], agreed, "{version}");
    }
    assert_eq!(reply(server.handle_line(r#"{"id":1,"method":"initialize"}"#))["result"]["serverInfo"]["name"], "test");
}

#[test]
fn before_initialize_only_a_ping_is_answered() {
    let mut server = server();
    assert_eq!(reply(server.handle_line(r#"{"id":1,"method":"ping"}"#))["result"], json!({}));
    assert_eq!(error(server.handle_line(&request(2, "tools/list", json!({})))).0, -32000);
    assert_eq!(error(server.handle_line(&request(3, "nothing/there", json!({})))).0, -32601);
}

#[test]
fn a_method_that_is_not_served_is_unknown() {
    let mut server = handshake(Revision::V2025_11_25);
    for method in ["nothing", "server/discover", "subscriptions/listen", "tasks/get", "roots/list"] {
        assert_eq!(error(server.handle_line(&request(1, method, json!({})))), (-32601, json!(1)), "{method}");
    }
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/get"] {
        assert_eq!(error(server.handle_line(&stateless(1, method, json!({})))).0, -32601, "{method}");
    }
}

#[test]
fn a_stateless_request_says_version_and_capabilities() {
    let mut server = server();
    assert_eq!(error(server.handle_line(&request(1, "server/discover", json!({})))).0, -32602);
    let mut params = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(error(server.handle_line(&request(1, "tools/list", params.clone()))).0, -32602);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    assert!(reply(server.handle_line(&request(1, "tools/list", params.clone())))["result"].is_object());
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let refused = reply(server.handle_line(&request(1, "tools/list", params.clone())));
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"], json!({ "supported": ["2026-07-28"], "requested": "2030-01-01" }));
}

#[test]
fn a_server_may_speak_one_era_only() {
    let with = |eras| Server::with_options(catalog(), info(), ServerOptions { eras, ..ServerOptions::default() });
    let mut modern = with(EraChoice::Stateless);
    let hello = request(1, "initialize", json!({ "protocolVersion": "2025-11-25" }));
    let refused = reply(modern.handle_line(&hello));
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
    assert_eq!(error(modern.handle_line(&request(1, "tools/list", json!({})))).0, -32602);
    let mut old = with(EraChoice::Handshake);
    assert_eq!(error(old.handle_line(&stateless(1, "server/discover", json!({})))).0, -32601);
    assert!(reply(old.handle_line(&hello))["result"].is_object());
}

#[test]
fn a_catalogue_takes_only_what_can_be_served() {
    use crablet::mcp::server::{Catalog, CatalogError, ServerTool};
    let tool = |name: &str, schema: Value| Catalog::new().tool(ServerTool::new(name, "d", super::raw(&schema)));
    for name in ["", "a b", "ü", &"x".repeat(129)] {
        assert!(matches!(tool(name, json!({ "type": "object" })), Err(CatalogError::ToolName(_))), "{name}");
    }
    assert!(matches!(tool("a", json!({ "type": "string" })), Err(CatalogError::NoObject(_))));
    assert!(matches!(tool("a", json!(7)), Err(CatalogError::Schema { .. })));
    let twice = tool("a", json!({ "type": "object" }))
        .and_then(|catalog| catalog.tool(ServerTool::new("a", "d", super::raw(&json!({ "type": "object" })))));
    assert!(matches!(twice, Err(CatalogError::Duplicate(_))));
}

#[test]
fn a_tool_that_is_gone_is_a_failed_result_and_not_listed() {
    let catalog = Catalog::new().former_tool("search", "its page was closed");
    let mut server = Server::new(catalog, info());
    let listed = reply(server.handle_line(&stateless(1, "tools/list", json!({}))));
    assert_eq!(listed["result"]["tools"], json!([]));
    let answer = reply(server.handle_line(&stateless(2, "tools/call", json!({ "name": "search", "arguments": {} }))));
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["content"][0]["text"], "its page was closed");
    let answer = reply(server.handle_line(&stateless(3, "tools/call", json!({ "name": "other", "arguments": {} }))));
    assert_eq!(answer["error"]["code"], -32602);
}
