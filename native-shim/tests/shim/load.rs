//! Many clients, many reconnects, slow readers.

use crate::support::{Client, ECHO, Shim, next_frame, script};
use crablet::host::Socket;
use crablet::mcp::transport::shim::{Frame, FrameKind, WINDOW_FRAMES};
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

/// A server that writes on and on is held up by a client that does not read, and what is under way has a bound.
#[tokio::test]
async fn a_server_runs_ahead_of_its_client_no_further_than_the_window() {
    const LINES: u64 = 4000;
    let server = format!(
        r#"
        read -r first
        case "$first" in *server/discover*) exit 1 ;; esac
        filler=$(printf '%01000d' 0)
        i=0
        while [ $i -lt {LINES} ]; do
            i=$((i+1)); case $i in *0) echo $i > "$PROGRESS" ;; esac
            echo "{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[$i,\"$filler\"]}}"
        done
        exec cat
        "#
    );
    let progress = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("progress-{}", std::process::id()));
    let mut server = script(&server);
    server["env"] = json!({ "PROGRESS": progress });
    let shim = Shim::start(json!({ "ahead": server, "echo": script(ECHO) }), &[]).await;
    let mut client = shim.client("ahead").await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "start" })).await;
    client.attached(1).await;
    // The file is empty for a moment when it is written.
    let written = || std::fs::read_to_string(&progress).ok()?.trim().parse::<u64>().ok();
    while written().is_none_or(|written| written < WINDOW_FRAMES as u64) {
        tokio::task::yield_now().await;
    }
    // The server stands, though there is time enough for everything that it has to say.
    let mut other = shim.client("echo").await;
    for id in 1..=1000 {
        other.send(json!({ "jsonrpc": "2.0", "id": id })).await;
        assert_eq!(other.message().await["id"], id);
    }
    for got in 1..=LINES {
        assert_eq!(client.message().await["params"][0], got);
        let written = written().unwrap_or(got);
        assert!(written <= got + AHEAD, "the server wrote {written} messages and the client read {got}");
    }
    std::fs::remove_file(progress).unwrap();
}

/// What may be under way between a server and its client: the window, and what fits into the pipe and its reader, which is
/// 64 KiB each.
const AHEAD: u64 = WINDOW_FRAMES as u64 + 256;

/// A client that does not keep to its window is not buffered for, but ended.
#[tokio::test]
async fn a_client_that_floods_a_server_is_ended() {
    let deaf = r#"read -r first; case "$first" in *server/discover*) exit 1 ;; esac; exec sleep 1000"#;
    let shim = Shim::start(json!({ "deaf": script(deaf) }), &[]).await;
    let mut socket = shim.open_socket("deaf", r#"{"continues":false}"#.to_owned()).await;
    assert_eq!(next_frame(&mut socket).await.kind, FrameKind::Hello);
    let payload = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(1000)).into_bytes();
    for number in 1..=2 * WINDOW_FRAMES as u64 {
        let frame = Frame { kind: FrameKind::Message, number, seen: 0, payload: payload.clone() };
        // The shim may hang up while this is still being sent.
        let _ = socket.send(frame.encode()).await;
    }
    let end = loop {
        let frame = next_frame(&mut socket).await;
        if frame.kind == FrameKind::Gone {
            break frame;
        }
    };
    assert_eq!(end.text(), Ok("the client sends on although the server takes no more"));
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
