//! Clients that speak plain `mcp` with a token that allows it, and those that try without.

use crablet::mcp::transport::shim::{ClientProof, ProofContext, Token};
use crablet::native::now;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::{ECHO, Shim, assert_gone, script};

const ORIGIN: &str = "https://app.example";

/// Opens a socket, or gives the status of the refusal.
async fn open(shim: &Shim, path: &str, origin: &str, protocols: &str) -> Result<WebSocketStream<TcpStream>, u16> {
    let mut request = format!("ws://127.0.0.1:{}{path}", shim.port).into_client_request().unwrap();
    request.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_str(protocols).unwrap());
    if !origin.is_empty() {
        request.headers_mut().insert("Origin", HeaderValue::from_str(origin).unwrap());
    }
    let stream = TcpStream::connect(("127.0.0.1", shim.port)).await.unwrap();
    match client_async(request, stream).await {
        Ok((socket, response)) => {
            assert_eq!(response.headers()["Sec-WebSocket-Protocol"], "mcp");
            Ok(socket)
        }
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

async fn open_server(shim: &Shim, server: &str) -> WebSocketStream<TcpStream> {
    let token = shim.grant_with("", &["--server", server, "--plain"]).await;
    open(shim, &format!("/servers/{server}"), "", &format!("mcp, mcp.auth.{}", token.reveal())).await.unwrap()
}

/// The next message that is more than a question whether this side is there.
async fn next(socket: &mut WebSocketStream<TcpStream>) -> Message {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Ping(_) => {}
            message => return message,
        }
    }
}

async fn told(socket: &mut WebSocketStream<TcpStream>) -> Value {
    serde_json::from_str(next(socket).await.to_text().unwrap()).unwrap()
}

#[tokio::test]
async fn messages_go_as_text_and_the_process_ends_with_the_socket() {
    let server = script(&format!("echo '{{\"jsonrpc\":\"2.0\",\"params\":'$$'}}'\n{ECHO}"));
    // The grace is a minute.
    let shim = Shim::start(json!({ "echo": server }), &[]).await;
    let mut socket = open_server(&shim, "echo").await;
    let process = told(&mut socket).await["params"].as_u64().unwrap();
    let long = json!({ "jsonrpc": "2.0", "id": 1, "params": "\u{20ac}".repeat(1_000_000) });
    for message in [json!({ "jsonrpc": "2.0", "id": 0 }), long] {
        socket.send(Message::text(message.to_string())).await.unwrap();
        assert!(told(&mut socket).await == message);
    }
    // More than fits the window between the shim and a client.
    for id in 0..3000 {
        socket.send(Message::text(json!({ "jsonrpc": "2.0", "id": id }).to_string())).await.unwrap();
        assert_eq!(told(&mut socket).await["id"], id);
    }
    drop(socket);
    assert_gone(process).await;
}

#[tokio::test]
async fn every_end_is_told_by_a_close() {
    let crash = r#"read -r first; case "$first" in *server/discover*) exit 1 ;; esac; echo 'boom' >&2; exit 3"#;
    let shim = Shim::start(json!({ "crash": script(crash), "echo": script(ECHO) }), &[]).await;
    let mut socket = open_server(&shim, "crash").await;
    socket.send(Message::text("{\"jsonrpc\":\"2.0\",\"id\":1}")).await.unwrap();
    let Message::Close(Some(close)) = next(&mut socket).await else { panic!() };
    assert_eq!(u16::from(close.code), 4000);
    assert!(close.reason.contains("exited with code 3") && close.reason.contains("boom"), "{close}");

    let mut socket = open_server(&shim, "echo").await;
    socket.send(Message::binary(vec![1, 2])).await.unwrap();
    let Message::Close(Some(close)) = next(&mut socket).await else { panic!() };
    assert_eq!(u16::from(close.code), 1003);
}

#[tokio::test]
async fn without_such_a_token_nobody_comes_in() {
    let mut shim = Shim::start(json!({ "files": script(ECHO), "other": script(ECHO) }), &[]).await;
    let strict = shim.grant(ORIGIN, &["files"]).await;
    let plain = shim.grant_with(ORIGIN, &["--server", "files", "--plain"]).await;
    let forged = Token::parse(&format!("{}.{}", plain.key_id(), "A".repeat(43))).unwrap();
    let auth = |token: &Token| format!("mcp.auth.{}", token.reveal());
    let context = ProofContext { authority: &format!("127.0.0.1:{}", shim.port), origin: ORIGIN, server: "files" };
    let proof = ClientProof::new(&plain, [3; 16], now(), context).to_subprotocol();
    for (path, origin, protocols, status) in [
        ("/servers/files", ORIGIN, format!("mcp, {}", auth(&strict)), 401),
        ("/servers/files", ORIGIN, format!("mcp, {}", auth(&forged)), 401),
        ("/servers/files", ORIGIN, auth(&plain), 401),
        ("/servers/files", ORIGIN, format!("mcp, {}, {}", auth(&plain), auth(&plain)), 401),
        ("/servers/files", ORIGIN, format!("mcp, crablet.v1, {proof}, {}", auth(&plain)), 401),
        ("/servers/files", ORIGIN, "mcp, mcp.auth.".to_owned(), 401),
        ("/servers/files", ORIGIN, "mcp, mcp.auth.secret".to_owned(), 401),
        ("/servers/other", ORIGIN, format!("mcp, {}", auth(&plain)), 403),
        ("/servers/files", "https://other.example", format!("mcp, {}", auth(&plain)), 403),
        ("/servers/files", "null", format!("mcp, {}", auth(&plain)), 403),
        ("/servers/files", "", format!("mcp, {}", auth(&plain)), 403),
        ("/servers/none", ORIGIN, format!("mcp, {}", auth(&plain)), 404),
    ] {
        let refused = open(&shim, path, origin, &protocols).await.map(|_| ());
        assert_eq!(refused, Err(status), "{path} {origin} {protocols}");
    }
    // Who goes on guessing is locked out.
    let guess = format!("mcp, {}", auth(&forged));
    let mut last = 0;
    for _ in 0..10 {
        last = open(&shim, "/servers/files", ORIGIN, &guess).await.map(|_| ()).unwrap_err();
    }
    assert_eq!(last, 429);
    let log = shim.end("-TERM").await;
    for secret in [&strict, &plain, &forged].map(Token::reveal) {
        let (_, secret) = secret.split_once('.').unwrap();
        assert!(!log.contains(secret), "{log}");
    }
}
