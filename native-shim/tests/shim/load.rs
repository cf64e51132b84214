//! Many clients, many reconnects, slow readers.

use crate::support::{Client, ECHO, Shim, script};
use serde_json::json;

/// Answers its first message with five thousand before it reads another.
const CHATTY: &str = r#"
read -r first
case "$first" in *server/discover*) exit 1 ;; esac
i=0
while [ $i -lt 5000 ]; do i=$((i+1)); echo "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":$i}"; done
exec cat
"#;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_clients_at_once() {
    let shim = Shim::start(json!({ "echo": script(ECHO) }), &[]).await;
    let options = shim.options("echo").await;
    let clients = (0..200u64).map(|number| {
        let options = options.clone();
        tokio::spawn(async move {
            let mut client = Client::connect(options).await;
            client.send(json!({ "jsonrpc": "2.0", "id": number, "method": "ping" })).await;
            assert_eq!(client.message().await["id"], number);
            client
        })
    });
    let clients: Vec<_> = clients.collect();
    for client in clients {
        client.await.unwrap();
    }
}

/// The server writes far more than a window and the client reads it late: nothing is lost, and meanwhile the server waits.
#[tokio::test]
async fn a_slow_reader_slows_its_server_and_misses_nothing() {
    let shim = Shim::start(json!({ "chatty": script(CHATTY) }), &[]).await;
    let mut client = shim.client("chatty").await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "start" })).await;
    for round in 0..5000 {
        if round % 1000 == 500 {
            client.drop_socket().await;
        }
        assert_eq!(client.message().await["params"], round + 1);
    }
}

/// A server that neither reads nor stops writing does not block what it writes.
#[tokio::test]
async fn a_server_that_does_not_read_still_gets_its_answers_out() {
    let shim = Shim::start(json!({ "chatty": script(CHATTY) }), &[]).await;
    let mut client = shim.client("chatty").await;
    let filler = "x".repeat(100_000);
    for id in 1..=20 {
        client.send(json!({ "jsonrpc": "2.0", "id": id, "filler": filler })).await;
    }
    for number in 1..=5000 {
        assert_eq!(client.message().await["params"], number);
    }
    for id in 2..=20 {
        assert_eq!(client.message().await["id"], id);
    }
}

#[tokio::test]
async fn a_thousand_reconnects_lose_and_repeat_nothing() {
    let shim = Shim::start(json!({ "echo": script(ECHO) }), &[]).await;
    let mut client = shim.client("echo").await;
    client.attached(1).await;
    for round in 1..=1000u64 {
        client.send(json!({ "jsonrpc": "2.0", "id": round, "method": "ping" })).await;
        client.drop_socket().await;
        client.reconnect_now().await;
        assert_eq!(client.message().await["id"], round);
    }
    assert_eq!(client.attached, 1001);
}
