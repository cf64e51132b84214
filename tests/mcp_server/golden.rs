//! The words on the wire and the names in the catalogue, pinned: a change here is a change for every client.

use crablet::mcp::protocol::Revision;
use crablet::mcp::server::Outcome;
use serde_json::{Value, json};

use super::{catalog, complete, handshake, pending, reply, request, said, server, stateless};

fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "prompts": { "listChanged": true },
        "completions": {},
        "logging": {},
    })
}

#[test]
fn initialize() {
    let mut server = server();
    let hello = reply(server.handle_line(&request(1, "initialize", json!({ "protocolVersion": "2025-11-25" }))));
    assert_eq!(
        hello,
        json!({
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities(),
                "serverInfo": { "name": "test", "title": "Test", "version": "1.2.3" },
                "instructions": "Be kind.",
            }
        })
    );
}

#[test]
fn discover() {
    let found = reply(server().handle_line(&stateless(1, "server/discover", json!({}))));
    assert_eq!(
        found["result"],
        json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities(),
            "instructions": "Be kind.",
            "_meta": {
                "io.modelcontextprotocol/serverInfo": { "name": "test", "title": "Test", "version": "1.2.3" }
            },
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        })
    );
}

fn tools() -> Value {
    json!([
        {
            "name": "add_one",
            "title": "Add one",
            "description": "Adds one",
            "inputSchema": { "type": "object", "properties": { "a": { "type": "number" } }, "required": ["a"] },
            "outputSchema": { "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
        { "name": "plain.tool", "description": "Does something", "inputSchema": { "type": "object" } },
    ])
}

#[test]
fn lists_of_both_eras() {
    let mut server = handshake(Revision::V2025_11_25);
    assert_eq!(reply(server.handle_line(&request(1, "tools/list", json!({}))))["result"], json!({ "tools": tools() }));
    let modern = reply(server.handle_line(&stateless(2, "tools/list", json!({}))));
    assert_eq!(
        modern["result"],
        json!({ "tools": tools(), "resultType": "complete", "ttlMs": 0, "cacheScope": "private" })
    );
    let mut resource = json!({
        "uri": "test://notes", "name": "notes", "title": "Notes", "mimeType": "text/plain", "size": 3,
    });
    let resources = reply(server.handle_line(&request(3, "resources/list", json!({}))));
    assert_eq!(resources["result"], json!({ "resources": [resource] }));
    let template = resource.as_object_mut().unwrap();
    template.remove("uri");
    template.insert("uriTemplate".into(), json!("test://notes/{id}"));
    let templates = reply(server.handle_line(&request(4, "resources/templates/list", json!({}))));
    assert_eq!(templates["result"], json!({ "resourceTemplates": [resource] }));
    let prompts = reply(server.handle_line(&request(5, "prompts/list", json!({}))));
    let argument = json!({ "name": "city", "description": "Where", "required": true });
    let prompt = json!({ "name": "weather", "description": "Weather", "arguments": [argument] });
    assert_eq!(prompts["result"], json!({ "prompts": [prompt] }));
}

#[test]
fn an_old_client_gets_the_words_it_knows() {
    let mut server = handshake(Revision::V2024_11_05);
    let listed = reply(server.handle_line(&request(1, "tools/list", json!({}))));
    let names: Vec<_> = listed["result"]["tools"][0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["description", "inputSchema", "name"]);
    let mut newer = handshake(Revision::V2025_03_26);
    let listed = reply(newer.handle_line(&request(1, "tools/list", json!({}))));
    let names: Vec<_> = listed["result"]["tools"][0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["annotations", "description", "inputSchema", "name"]);
}

#[test]
fn a_result_of_both_eras() {
    let mut server = handshake(Revision::V2025_11_25);
    let call = pending(server.handle_line(&request(1, "tools/call", json!({ "name": "plain.tool" }))));
    let result = complete(&mut server, call, Outcome::Tool(said("hi")));
    let content = json!([{ "type": "text", "text": "hi" }]);
    assert_eq!(result, json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": content, "isError": false } }));
    let call = pending(server.handle_line(&stateless(2, "tools/call", json!({ "name": "plain.tool" }))));
    let result = complete(&mut server, call, Outcome::Tool(said("hi")));
    assert_eq!(result["result"], json!({ "content": content, "isError": false, "resultType": "complete" }));
}

#[test]
fn the_names_of_the_catalogue() {
    assert_eq!(catalog().tool_names().collect::<Vec<_>>(), ["add_one", "plain.tool"]);
}
