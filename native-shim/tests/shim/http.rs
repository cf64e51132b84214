//! The HTTP front: callers of both eras in front of servers of both eras, and what strangers try.

use std::path::Path;

use crablet::host::mcp::{ConnectOptions, Connection, HttpServer};
use crablet::json::RawJson;
use crablet::mcp::client::CallOptions;
use crablet::mcp::protocol::EraChoice;
use crablet::mcp::transport::shim::MAX_MESSAGE_BYTES;
use crablet::native::NativeHost;
use serde_json::{Value, json};

use crate::http_client::{Request, Response};
use crate::support::{Shim, in_time, script};

const ERAS: [&str; 2] = ["stateless", "handshake"];
const PAGE: &str = "http://localhost:5173";

/// A shim with a server of each era, and a token of a program for both.
async fn shim() -> (Shim, String) {
    let child = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shim/http_child.mjs");
    let server = |era: &str| json!({ "command": "node", "args": [child, era] });
    let servers = json!({ "stateless": server("stateless"), "handshake": server("handshake") });
    let shim = Shim::start(servers, &[]).await;
    let token = shim.grant_http("", &ERAS).await;
    (shim, token)
}

/// A caller of the handshake era with its session.
struct Session<'a> {
    shim: &'a Shim,
    server: &'a str,
    token: &'a str,
    id: String,
}

impl<'a> Session<'a> {
    async fn open(shim: &'a Shim, server: &'a str, token: &'a str) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "c", "version": "1" }
        });
        let message = json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params });
        let response = Request::new(shim, "POST", server, token).body(message).send(shim).await;
        assert_eq!(response.status, 200, "{}{}", response.head, response.text());
        let id = response.header("mcp-session-id").unwrap().to_owned();
        let (_, answer) = response.messages().pop().unwrap();
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(answer["result"]["serverInfo"]["name"], "child");
        let session = Self { shim, server, token, id };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.post(initialized).await.status, 202);
        session
    }

    fn request(&self, method: &'static str) -> Request {
        Request::new(self.shim, method, self.server, self.token)
            .with("mcp-session-id", &self.id)
            .with("mcp-protocol-version", "2025-11-25")
    }

    async fn post(&self, message: Value) -> Response {
        self.request("POST").body(message).send(self.shim).await
    }

    async fn call(&self, id: u64, params: Value) -> Response {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        self.request("POST").body(message).open(self.shim).await
    }

    async fn listen(&self, last: Option<&str>) -> Response {
        let request = self.request("GET");
        let request = last.map(|last| request.clone().with("last-event-id", last)).unwrap_or(request);
        request.open(self.shim).await
    }
}

async fn stateless(shim: &Shim, server: &str, token: &str, method: &str, params: Value) -> Response {
    Request::stateless(shim, server, token, json!("1"), method, params).open(shim).await
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn a_stateless_caller_finds_a_stateless_server_whatever_it_speaks() {
    let (shim, token) = shim().await;
    for server in ERAS {
        let call = |method: &'static str, params: Value| stateless(&shim, server, &token, method, params);
        let discovered = call("server/discover", json!({})).await.last().await;
        assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]), "{server}");
        assert_eq!(discovered["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "child");
        let listed = call("tools/list", json!({})).await.last().await;
        assert_eq!((&listed["id"], &listed["result"]["cacheScope"]), (&json!("1"), &json!("private")));
        let echoed = call("tools/call", json!({ "name": "echo", "arguments": { "a": [1.0] } })).await;
        assert_eq!((echoed.status, echoed.header("mcp-session-id")), (200, None));
        assert_eq!(text(&echoed.last().await), r#"{"a":[1.0]}"#.replace("1.0", "1"));

        // A question comes as the result, and its answer with the next request.
        let asked = call("tools/call", json!({ "name": "ask" })).await.last().await["result"].clone();
        assert_eq!(asked["resultType"], "input_required");
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let answers = json!({ key: { "action": "accept", "content": { "name": "Ada" } } });
        let again = json!({ "name": "ask", "inputResponses": answers, "requestState": asked["requestState"] });
        assert_eq!(text(&call("tools/call", again).await.last().await), "Ada");

        let params = json!({ "name": "progress", "_meta": { "progressToken": "mine" } });
        let messages = call("tools/call", params).await.until(3).await;
        let tokens: Vec<&Value> =
            messages.iter().take(2).map(|(_, message)| &message["params"]["progressToken"]).collect();
        assert_eq!(tokens, ["mine", "mine"]);
        assert!(messages.iter().all(|(id, _)| id.is_empty()), "nothing can be resumed in this era");

        let wanted = json!({ "notifications": { "toolsListChanged": true } });
        let mut listening = call("subscriptions/listen", wanted).await;
        listening.until(1).await;
        call("tools/call", json!({ "name": "change" })).await.last().await;
        let (_, changed) = listening.until(2).await.pop().unwrap();
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "1");

        // Whoever closes the stream of a request ends it.
        let params = json!({ "name": "hang", "_meta": { "progressToken": 1 } });
        let mut hanging = call("tools/call", params).await;
        hanging.until(1).await;
        drop(hanging);
        let cancelled = async || call("tools/call", json!({ "name": "cancelled" })).await.last().await;
        while text(&cancelled().await) != "1" {}

        let unknown = call("no/method", json!({})).await;
        assert_eq!(unknown.status, 404);
        assert_eq!(unknown.last().await["error"]["code"], -32601);
    }
}

#[tokio::test]
async fn a_handshake_caller_finds_a_handshake_server_whatever_it_speaks() {
    let (shim, token) = shim().await;
    for server in ERAS {
        let session = Session::open(&shim, server, &token).await;
        let listed = session.post(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await.json();
        assert!(listed["result"]["tools"].is_array() && listed["result"].get("resultType").is_none(), "{listed}");
        let pong = session.post(json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
        assert_eq!(pong.json()["result"], json!({}));
        assert_eq!(text(&session.call(3, json!({ "name": "echo", "arguments": {} })).await.last().await), "{}");

        // A question comes on the stream of the call, and is answered by a request of its own.
        let mut asking = session.call(4, json!({ "name": "ask" })).await;
        let (_, question) = asking.until(1).await.pop().unwrap();
        assert_eq!(question["method"], "elicitation/create");
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
        assert_eq!(session.post(answer).await.status, 202);
        assert_eq!(text(&asking.last().await), "Ada");

        let params = json!({ "name": "progress", "_meta": { "progressToken": "mine" } });
        let messages = session.call(5, params).await.until(3).await;
        assert_eq!(messages[0].1["params"]["progressToken"], "mine");

        let mut own = session.listen(None).await;
        assert_eq!((own.status, own.header("content-type")), (200, Some("text/event-stream")));
        session.call(6, json!({ "name": "change" })).await.last().await;
        assert_eq!(own.until(1).await[0].1["method"], "notifications/tools/list_changed");

        // A stream that breaks ends nothing; a notification does.
        let params = json!({ "name": "hang", "_meta": { "progressToken": 1 } });
        let mut hanging = session.call(7, params).await;
        hanging.until(1).await;
        drop(hanging);
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
        let cancelled = async || session.call(8, json!({ "name": "cancelled" })).await.last().await;
        assert_eq!(text(&cancelled().await), "0");
        assert_eq!(session.post(cancel).await.status, 202);
        assert_eq!(text(&cancelled().await), "1");

        assert_eq!(session.request("DELETE").send(&shim).await.status, 204);
        let late = session.post(json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" })).await;
        assert_eq!((late.status, &late.json()["error"]["code"]), (404, &json!(-32001)));
    }
}

#[tokio::test]
async fn a_stream_that_broke_is_taken_up_where_it_was() {
    let (shim, token) = shim().await;
    for server in ERAS {
        let session = Session::open(&shim, server, &token).await;
        let mut asking = session.call(1, json!({ "name": "ask" })).await;
        let (event, question) = asking.until(1).await.pop().unwrap();
        drop(asking);
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
        session.post(answer).await;
        assert_eq!(text(&session.listen(Some(&event)).await.last().await), "nobody");
        // And once more, from the beginning, since that answer may have been lost too.
        let start = event.replace("-1", "-0");
        let again = session.listen(Some(&start)).await.until(2).await;
        assert_eq!((&again[0].1, text(&again[1].1)), (&question, "nobody"));
        for unknown in ["999-1", "x", "", "1-1-1"] {
            assert_eq!(session.listen(Some(unknown)).await.status, 400, "{unknown:?}");
        }

        let mut own = session.listen(None).await;
        session.call(2, json!({ "name": "change" })).await.last().await;
        let (event, _) = own.until(1).await.pop().unwrap();
        drop(own);
        session.call(3, json!({ "name": "change" })).await.last().await;
        let mut own = session.listen(Some(&event)).await;
        assert_eq!(own.until(1).await[0].1["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test]
async fn strangers_get_a_status_and_nothing_else() {
    let (mut shim, token) = shim().await;
    let page = shim.grant_http(PAGE, &["handshake"]).await;
    let websocket = shim.grant("", &ERAS).await.reveal();
    let good = |token: &str| Request::stateless(&shim, "handshake", token, json!(1), "tools/list", json!({}));
    let at = |path: &str| Request { path: path.to_owned(), ..good(&token) };
    let cases = [
        (404, at("/mcp/none")),
        (404, at("/mcp/handshake/")),
        (404, at("/mcp/handshake?token=x")),
        (404, at("/mcp/../mcp/handshake")),
        (403, at(&format!("http://127.0.0.1:{}/mcp/handshake", shim.port))),
        (403, good(&token).with("host", "evil.example")),
        (403, good(&token).with("host", "127.0.0.1.evil.example")),
        (403, good(&token).with("origin", "null")),
        (403, good(&page).with("origin", "https://evil.example")),
        (403, good(&page)),
        (403, good(&token).with("origin", PAGE)),
        (401, good(&token).without("authorization")),
        (401, good("AQEBAQEBAQEB.AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI")),
        (401, good(&websocket)),
        (405, Request { method: "PUT", ..good(&token) }),
        (405, Request { method: "GET", ..good(&token) }),
        (405, Request { method: "DELETE", ..good(&token) }),
        (406, good(&token).without("accept")),
        (406, good(&token).with("accept", "application/json")),
        (415, good(&token).with("content-type", "text/plain")),
        (415, good(&token).with("content-encoding", "gzip")),
        (413, good(&token).with("content-length", "16777217")),
    ];
    for (status, request) in cases {
        let what = format!("{} {} {:?}", request.method, request.path, request.headers);
        // The page of an allowed origin may read its status, and nobody else's.
        let readable_for =
            request.headers.iter().any(|(name, value)| name == "origin" && value == PAGE).then_some(PAGE);
        let response = request.send(&shim).await;
        assert_eq!((response.status, response.text().as_str()), (status, ""), "{what}");
        assert_eq!(response.header("access-control-allow-origin"), readable_for, "{what}");
    }
    let sent = good(&page).with("origin", PAGE).send(&shim).await;
    assert_eq!((sent.status, sent.header("access-control-allow-origin")), (200, Some(PAGE)));
    // Ten wrong ones are too many, and a right one comes too late.
    for _ in 0..10 {
        good("wrong").send(&shim).await;
    }
    assert_eq!(good(&token).send(&shim).await.status, 429);
    let log = shim.end("-TERM").await;
    assert!(log.contains("refused"), "{log}");
    assert!(![&token, &page, &websocket].iter().any(|token| log.contains(token.as_str())), "{log}");
}

#[tokio::test]
async fn a_browser_may_ask_for_a_page_that_was_let_in() {
    let (shim, _) = shim().await;
    shim.grant_http(PAGE, &["handshake"]).await;
    let preflight = |origin: &str| {
        Request { method: "OPTIONS", ..Request::new(&shim, "POST", "handshake", "") }
            .without("authorization")
            .with("origin", origin)
            .with("access-control-request-method", "POST")
            .with("access-control-request-headers", "authorization,mcp-param-region,x-evil")
            .with("access-control-request-private-network", "true")
    };
    let allowed = preflight(PAGE).send(&shim).await;
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(PAGE));
    assert_eq!(allowed.header("access-control-allow-headers"), Some("authorization, mcp-param-region"));
    assert_eq!(allowed.header("access-control-allow-private-network"), Some("true"));
    assert_eq!(allowed.header("access-control-allow-credentials"), None);
    let refused = preflight("https://evil.example").send(&shim).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
}

#[tokio::test]
async fn headers_and_body_have_to_say_the_same() {
    let (shim, token) = shim().await;
    let call = || {
        let params = json!({ "name": "echo", "arguments": {} });
        Request::stateless(&shim, "stateless", &token, json!(1), "tools/call", params)
    };
    let meta = |meta: Value| {
        let params = json!({ "name": "echo", "_meta": meta });
        call().body(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
    };
    let twice = |mut request: Request, name: &str, value: &str| {
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let cases = [
        (-32020, call().with("mcp-method", "tools/list")),
        (-32020, call().with("mcp-method", "Tools/Call")),
        (-32020, call().without("mcp-method")),
        (-32020, call().with("mcp-name", "pid")),
        (-32020, call().without("mcp-name")),
        (-32020, call().with("mcp-name", "=?base64?ZWNobw?=")),
        (-32020, call().without("mcp-protocol-version")),
        (-32020, call().with("mcp-protocol-version", "2025-11-25")),
        (-32020, twice(call(), "mcp-name", "echo")),
        (-32020, twice(call().with("mcp-param-a", "1"), "mcp-param-a", "1")),
        (-32602, meta(json!({}))),
        (-32602, meta(json!({ version: "2026-07-28" }))),
        (-32602, meta(json!({ version: "2026-07-28", capabilities: [] }))),
        (-32022, meta(json!({ version: "2099-01-01", capabilities: {} })).with("mcp-protocol-version", "2099-01-01")),
        (-32700, Request { body: "{".to_owned(), ..call() }),
        (-32600, Request { body: "[]".to_owned(), ..call() }),
        (-32600, Request { body: "[".repeat(100_000), ..call() }),
        (
            -32600,
            call().without("mcp-protocol-version").body(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
        ),
        (-32600, call().body(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }))),
    ];
    for (code, request) in cases {
        let what = format!("{:?} {:.200}", request.headers, request.body);
        let response = request.send(&shim).await;
        assert_eq!((response.status, response.json()["error"]["code"].as_i64()), (400, Some(code)), "{what}");
    }
    assert_eq!(call().with("mcp-name", "=?base64?ZWNobw==?=").send(&shim).await.status, 200);
    assert_eq!(call().with("mcp-session-id", "ignored").send(&shim).await.status, 200);
    let endless = Request { body: "1000001\r\n".to_owned() + &"x".repeat(0x100_0001), ..call() };
    assert_eq!(endless.with("transfer-encoding", "chunked").open(&shim).await.status, 413);
}

#[tokio::test]
async fn a_session_is_its_tokens_and_its_servers() {
    let (shim, token) = shim().await;
    let other = shim.grant_http("", &ERAS).await;
    let session = Session::open(&shim, "handshake", &token).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let send = async |request: Request| request.body(ping.clone()).send(&shim).await.status;
    assert_eq!(send(session.request("POST")).await, 200);
    assert_eq!(send(session.request("POST").with("authorization", &format!("Bearer {other}"))).await, 404);
    assert_eq!(send(Request { path: "/mcp/stateless".to_owned(), ..session.request("POST") }).await, 404);
    assert_eq!(send(session.request("POST").with("mcp-session-id", "0")).await, 404);
    assert_eq!(send(session.request("POST").without("mcp-session-id")).await, 400);
    assert_eq!(send(session.request("POST").with("mcp-protocol-version", "1999-01-01")).await, 400);
    assert_eq!(send(session.request("POST").without("mcp-protocol-version")).await, 200);
    let stranger = session.request("DELETE").with("authorization", &format!("Bearer {other}"));
    assert_eq!(stranger.send(&shim).await.status, 404);
    let twice = json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {} });
    assert_eq!(session.post(twice).await.status, 400);

    // Stateless callers of one token share a process, and with nobody else.
    let pid = async |token: &str| {
        let answer = stateless(&shim, "stateless", token, "tools/call", json!({ "name": "pid" })).await.last().await;
        text(&answer).to_owned()
    };
    assert_eq!(pid(&token).await, pid(&token).await);
    assert_ne!(pid(&token).await, pid(&other).await);
    shim.revoke(&other).await;
    let refused = stateless(&shim, "stateless", &other, "tools/list", json!({})).await;
    assert_eq!(refused.status, 401);
}

#[tokio::test]
async fn a_server_that_crashes_is_told_to_everyone_who_waits() {
    let (shim, token) = shim().await;
    for server in ERAS {
        let told = |answer: &Value| {
            let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
            assert!(message.contains("code 3") && message.contains("it was the server"), "{message}");
        };
        let hang = json!({ "name": "hang", "_meta": { "progressToken": 1 } });
        let mut hanging = stateless(&shim, server, &token, "tools/call", hang.clone()).await;
        hanging.until(1).await;
        told(&stateless(&shim, server, &token, "tools/call", json!({ "name": "crash" })).await.last().await);
        told(&hanging.last().await);
        // The next request finds a server again.
        assert_eq!(stateless(&shim, server, &token, "tools/list", json!({})).await.status, 200);

        let session = Session::open(&shim, server, &token).await;
        let mut hanging = session.call(1, hang).await;
        hanging.until(1).await;
        told(&session.call(2, json!({ "name": "crash" })).await.last().await);
        told(&hanging.last().await);
        assert_eq!(session.post(json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })).await.status, 404);
    }
}

#[tokio::test]
async fn whoever_reads_too_slowly_holds_up_nobody() {
    let (shim, token) = shim().await;
    for server in ERAS {
        let flood = json!({ "name": "flood", "_meta": { "progressToken": 1 } });
        let mut slow = stateless(&shim, server, &token, "tools/call", flood).await;
        let quick = stateless(&shim, server, &token, "tools/call", json!({ "name": "echo", "arguments": {} })).await;
        assert_eq!(text(&quick.last().await), "{}");
        // What was too much is not kept, and the request is over with its stream.
        while slow.read_more().await {}
        let received = slow.text().len();
        assert!(received < 60 * 1024 * 1024, "{received} bytes were kept");
        let cancelled =
            async || stateless(&shim, server, &token, "tools/call", json!({ "name": "cancelled" })).await.last().await;
        while text(&cancelled().await) != "1" {}
    }
}

#[tokio::test]
async fn the_limits_of_the_configuration_end_a_process_and_its_calls_with_a_reason() {
    let child = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shim/http_child.mjs");
    let server = |limit: &str| json!({ "command": "node", "args": [child, "stateless"], "limits": { limit: 1 } });
    let shim = Shim::start(json!({ "idle": server("idleSeconds"), "old": server("lifetimeSeconds") }), &[]).await;
    let token = shim.grant_http("", &["idle", "old"]).await;
    for (server, reason) in [("idle", "was idle for too long"), ("old", "has reached its greatest age")] {
        let hanging = stateless(&shim, server, &token, "tools/call", json!({ "name": "hang" })).await;
        let answer = in_time("the end of the process", hanging.last()).await;
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(message.contains(reason), "{message}");
    }
}

/// Many clients end no session that they open.
#[tokio::test]
async fn one_session_too_many_ends_the_one_that_was_not_used_for_the_longest_time() {
    // Far lighter than node, and there are many.
    let child = r#"
        while read -r line; do
            case $line in
            *server/discover*) echo '{"jsonrpc":"2.0","id":"discover","error":{"code":-32601,"message":"unknown"}}' ;;
            *'"id":'*)
                id=${line#*'"id":'}
                echo '{"jsonrpc":"2.0","id":'${id%%[,\}]*}',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"child","version":"1"}}}'
                ;;
            esac
        done
    "#;
    let shim = Shim::start(json!({ "light": script(child) }), &[]).await;
    let token = shim.grant_http("", &["light"]).await;
    let mut sessions = Vec::new();
    for _ in 0..32 {
        sessions.push(Session::open(&shim, "light", &token).await);
    }
    let ping =
        async |session: &Session<'_>| session.post(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await.status;
    assert_eq!(ping(&sessions[0]).await, 200);
    sessions.push(Session::open(&shim, "light", &token).await);
    let over = async { while ping(&sessions[1]).await != 404 {} };
    in_time("the end of the oldest session", over).await;
    for (place, session) in sessions.iter().enumerate().filter(|(place, _)| *place != 1) {
        assert_eq!(ping(session).await, 200, "{place}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_is_told_with_its_reason() {
    let servers = json!({ "none": { "command": "/no/such/program" } });
    let shim = Shim::start(servers, &[]).await;
    let token = shim.grant_http("", &["none"]).await;
    let answer = stateless(&shim, "none", &token, "tools/list", json!({})).await.last().await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("could not be started"), "{message}");
}

#[tokio::test]
async fn the_rust_client_speaks_either_era_over_http() {
    let (shim, token) = shim().await;
    for server in ERAS {
        for era in [EraChoice::Stateless, EraChoice::Handshake, EraChoice::Auto] {
            let url = format!("http://127.0.0.1:{}/mcp/{server}", shim.port);
            let headers = vec![("authorization".to_owned(), format!("Bearer {token}"))];
            let target = HttpServer::new(url).headers(headers);
            let host = NativeHost::new().unwrap();
            let options = ConnectOptions { era, ..ConnectOptions::default() };
            let connection = Connection::http(&host, server, target, options);
            let arguments = RawJson::parse(r#"{"a":1}"#).unwrap();
            let result = connection.call_tool("echo", arguments, CallOptions::default(), None).await.unwrap();
            assert_eq!(result.text(), r#"{"a":1}"#, "{server} {era:?}");
            connection.close().await;
        }
    }
}

#[tokio::test]
async fn a_head_that_never_ends_is_not_waited_for() {
    let (shim, token) = shim().await;
    let request = Request::stateless(&shim, "stateless", &token, json!(1), "tools/list", json!({}));
    let long = request.with("x-long", &"x".repeat(20_000)).open(&shim).await;
    assert_eq!(long.status, 431);
    in_time("an answer", stateless(&shim, "stateless", &token, "tools/list", json!({}))).await;
}

#[tokio::test]
async fn a_body_is_as_long_as_a_message_may_be_and_no_longer() {
    let (shim, token) = shim().await;
    let good = Request::stateless(&shim, "stateless", &token, json!(1), "tools/list", json!({}));
    let padded = |bytes: usize| good.body.clone() + &" ".repeat(bytes - good.body.len());
    let longest = Request { body: padded(MAX_MESSAGE_BYTES), ..good.clone() };
    assert_eq!(longest.send(&shim).await.status, 200);
    // Its head does not tell its length. It stops where it is too long, since what a server leaves unread may cost its answer.
    let chunk = format!("{:x}\r\n{}", MAX_MESSAGE_BYTES + 1, padded(MAX_MESSAGE_BYTES + 1));
    let longer = Request { body: chunk, ..good.clone() }.with("transfer-encoding", "chunked");
    let response = in_time("a refusal", longer.send(&shim)).await;
    assert_eq!((response.status, response.text().as_str()), (413, ""));
    assert_eq!(good.send(&shim).await.status, 200);
}
