//! A socket that breaks costs nothing: not a message, not a process.

use crate::support::{Client, ECHO, Shim, script};
use crablet::ErrorKind;
use crablet::mcp::transport::Inbound;
use crablet::mcp::transport::shim::ServerEra;
use serde_json::{Value, json};

fn ping(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

/// Case 155-websocket-drop, many times over.
#[tokio::test]
async fn nothing_is_lost_or_repeated() {
    let shim = Shim::start(json!({ "echo": script(ECHO) }), &[]).await;
    let mut client = shim.client("echo").await;
    client.attached(1).await;
    let (mut sent, mut got) = (0, 0);
    for round in 1..=30 {
        for _ in 0..round % 7 {
            sent += 1;
            client.send(ping(sent)).await;
        }
        if round % 3 == 0 && got < sent {
            got += 1;
            assert_eq!(client.message().await, ping(got));
        }
        client.drop_socket().await;
        sent += 1;
        client.send(ping(sent)).await;
        client.attached_or_message(round + 1, &mut got).await;
    }
    while got < sent {
        got += 1;
        assert_eq!(client.message().await, ping(got));
    }
    assert_eq!(client.attached, 31);
}

#[tokio::test]
async fn a_client_that_lost_its_memory_gets_what_it_missed_and_the_handshake() {
    let server = r#"
        read -r first
        case "$first" in
        *server/discover*) echo '{"jsonrpc":"2.0","id":"discover","error":{"code":-32601,"message":"unknown"}}'; exit 0 ;;
        esac
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"x"}}}'
        exec cat
    "#;
    let shim = Shim::start(json!({ "server": script(server) }), &[]).await;
    let options = shim.options("server").await;
    let mut first = Client::connect(options.clone()).await;
    first.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" })).await;
    assert_eq!(first.message().await["result"]["protocolVersion"], "2025-11-25");
    first.send(ping(2)).await;
    first.message().await;
    let hello = first.hello.clone().unwrap();
    assert_eq!((hello.era, hello.initialized), (Some(ServerEra::Handshake), None));
    drop(first);

    let resume = crablet::mcp::transport::websocket::WebSocketOptions { resume: Some(hello.resume.clone()), ..options };
    let mut second = Client::connect(resume).await;
    second.attached(1).await;
    let again = second.hello.clone().unwrap();
    assert_eq!(again.resume, hello.resume);
    assert_ne!(again.id_prefix, hello.id_prefix);
    assert_eq!(again.initialized.unwrap().read::<Value>().unwrap()["serverInfo"]["name"], "x");
    // What the first one did not confirm may come again; what is new comes once.
    second.send(ping(3)).await;
    while second.message().await != ping(3) {}
    second.send(ping(4)).await;
    assert_eq!(second.message().await, ping(4));
}

#[tokio::test]
async fn only_the_same_token_finds_a_process() {
    let shim = Shim::start(json!({ "echo": script(ECHO) }), &[]).await;
    let mut client = shim.client("echo").await;
    client.attached(1).await;
    let resume = client.hello.clone().unwrap().resume;
    let options = shim.options("echo").await;
    let thief = crablet::mcp::transport::websocket::WebSocketOptions { resume: Some(resume), ..options };
    let Inbound::Closed { reason, .. } = Client::connect(thief).await.next().await else { panic!() };
    assert_eq!(reason.kind(), ErrorKind::ConnectionClosed);
    client.send(ping(1)).await;
    assert_eq!(client.message().await, ping(1));
}

#[tokio::test]
async fn after_the_grace_the_calls_fail() {
    let shim = Shim::start(json!({ "echo": script(ECHO) }), &["--grace", "1"]).await;
    let mut client = shim.client("echo").await;
    client.attached(1).await;
    let mut shim = shim;
    shim.end("-KILL").await;
    let Inbound::Closed { reason, .. } = client.next().await else { panic!() };
    assert_eq!(reason.kind(), ErrorKind::ConnectionClosed);
}

#[tokio::test]
async fn an_exit_while_nobody_listens_is_told_to_who_comes_back() {
    let brief = r#"read -r first; case "$first" in *server/discover*) exit 1 ;; esac; read -r second; exit 4"#;
    let shim = Shim::start(json!({ "brief": script(brief) }), &[]).await;
    let mut client = shim.client("brief").await;
    client.attached(1).await;
    client.send(ping(1)).await;
    client.send(ping(2)).await;
    client.drop_socket().await;
    let Inbound::Closed { exit_code, .. } = client.next().await else { panic!() };
    assert_eq!(exit_code, Some(4));
}
