//! Lists in pages.

use crablet::mcp::server::{Catalog, Server, ServerOptions, ServerTool};
use serde_json::{Value, json};

use super::{info, raw, reply, stateless};

#[test]
fn a_long_list_comes_in_pages_and_ends() {
    let mut catalog = Catalog::new();
    for number in 0..25 {
        catalog =
            catalog.tool(ServerTool::new(format!("tool-{number}"), "d", raw(&json!({ "type": "object" })))).unwrap();
    }
    let options = ServerOptions { page_size: 10, ..ServerOptions::default() };
    let mut server = Server::with_options(catalog, info(), options);
    let (mut names, mut params) = (Vec::new(), json!({}));
    let mut pages = 0;
    loop {
        let page = reply(server.handle_line(&stateless(1, "tools/list", params)))["result"].clone();
        pages += 1;
        names.extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match &page["nextCursor"] {
            Value::Null => break,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    assert_eq!((pages, names.len()), (3, 25));
    assert_eq!(names.last().map(String::as_str), Some("tool-24"));
    for cursor in [json!("x"), json!(""), json!("26"), json!("-1"), json!(7), json!({})] {
        let answer = reply(server.handle_line(&stateless(1, "tools/list", json!({ "cursor": cursor }))));
        assert_eq!(answer["error"]["code"], -32602, "{cursor}");
    }
}

#[test]
fn a_server_of_nothing_has_empty_lists_and_no_capabilities() {
    let mut server = Server::new(Catalog::new(), info());
    let found = reply(server.handle_line(&stateless(1, "server/discover", json!({}))));
    assert_eq!(found["result"]["capabilities"], json!({}));
    let listed = reply(server.handle_line(&stateless(1, "resources/list", json!({}))));
    assert_eq!(listed["result"]["resources"], json!([]));
    for method in ["resources/read", "prompts/get", "completion/complete"] {
        assert_eq!(reply(server.handle_line(&stateless(1, method, json!({}))))["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn a_server_that_awaits_tools_says_so_before_it_has_one() {
    let mut server = Server::new(Catalog::new().awaits_tools(), info());
    let found = reply(server.handle_line(&stateless(1, "server/discover", json!({}))));
    assert_eq!(found["result"]["capabilities"], json!({ "tools": { "listChanged": true } }));
}
