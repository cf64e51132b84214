//! No process outlives what it was started for, and every end is told.

use crate::support::{Client, ECHO, Shim, assert_gone, script};
use crablet::ErrorKind;
use crablet::mcp::transport::Inbound;
use serde_json::{Value, json};

/// A server as bad as they come: a wrapper that ignores the end of its input and SIGTERM, with a child that does the
/// same, and another that left the process group and has a child there. They tell their process ids.
const STUBBORN: &str = r#"
trap '' TERM
(trap '' TERM; while :; do sleep 100; done) & child=$!
setsid sh -c '
    trap "" TERM
    (while :; do sleep 100; done) &
    echo "{\"jsonrpc\":\"2.0\",\"method\":\"left\",\"params\":[$$,$!]}"
    wait
' &
echo "{\"jsonrpc\":\"2.0\",\"method\":\"stayed\",\"params\":[$$,$child]}"
read -r first
echo '{"jsonrpc":"2.0","id":"discover","error":{"code":-32601,"message":"unknown"}}'
while :; do sleep 100; done
"#;

async fn stubborn_ids(client: &mut Client) -> Vec<u64> {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let message = client.message().await;
        ids.extend(message["params"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()));
    }
    assert_eq!(ids.len(), 4);
    ids
}

async fn assert_all_gone(ids: Vec<u64>) {
    for id in ids {
        assert_gone(id).await;
    }
}

#[tokio::test]
async fn a_shim_that_is_killed_leaves_no_process() {
    let mut shim = Shim::start(json!({ "stubborn": script(STUBBORN) }), &[]).await;
    let mut client = shim.client("stubborn").await;
    let ids = stubborn_ids(&mut client).await;
    shim.end("-KILL").await;
    assert_all_gone(ids).await;
}

#[tokio::test]
async fn a_shim_that_is_interrupted_leaves_no_process() {
    let mut shim = Shim::start(json!({ "stubborn": script(STUBBORN) }), &[]).await;
    let mut client = shim.client("stubborn").await;
    let ids = stubborn_ids(&mut client).await;
    shim.end("-INT").await;
    assert_all_gone(ids).await;
    let Inbound::Closed { reason, .. } = client.next().await else { panic!() };
    assert_eq!(reason.message(), "crablet-shim was stopped");
}

#[tokio::test]
async fn a_client_that_closes_takes_its_process_along() {
    let shim = Shim::start(json!({ "stubborn": script(STUBBORN) }), &[]).await;
    let mut client = shim.client("stubborn").await;
    let ids = stubborn_ids(&mut client).await;
    client.close().await;
    assert_all_gone(ids).await;
}

#[tokio::test]
async fn a_client_that_vanishes_takes_its_process_along_after_the_grace() {
    let shim = Shim::start(json!({ "stubborn": script(STUBBORN) }), &["--grace", "0"]).await;
    let mut client = shim.client("stubborn").await;
    let ids = stubborn_ids(&mut client).await;
    drop(client);
    assert_all_gone(ids).await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_over() {
    let server = r#"
        read -r first
        case "$first" in *server/discover*) exit 1 ;; esac
        exec >&-
        while read -r line; do :; done
        while :; do sleep 100; done"#;
    let shim = Shim::start(json!({ "mute": script(server) }), &[]).await;
    let mut client = shim.client("mute").await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" })).await;
    let Inbound::Closed { reason, .. } = client.next().await else { panic!() };
    assert!(reason.message().contains("was ended because it closed its standard output and went on"), "{reason}");
}

#[tokio::test]
async fn a_guardian_that_is_killed_is_noticed() {
    let shim =
        Shim::start(json!({ "echo": script(&format!("echo '{{\"jsonrpc\":\"2.0\",\"params\":'$$'}}'\n{ECHO}")) }), &[])
            .await;
    let mut client = shim.client("echo").await;
    let server = client.message().await["params"].as_u64().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{server}/status")).unwrap();
    let guardian = status.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap();
    let killed = std::process::Command::new("kill").args(["-KILL", guardian]).status().unwrap();
    assert!(killed.success());
    let Inbound::Closed { reason, .. } = client.next().await else { panic!() };
    assert!(reason.message().contains("lost the process that guards it"), "{}", reason.message());
    assert_gone(server).await;
}

/// A process whose parent ended goes to the guardian, which buries it and goes on.
#[tokio::test]
async fn descendants_that_end_early_disturb_nothing() {
    let orphan = r#"(sh -c 'echo "{\"jsonrpc\":\"2.0\",\"params\":$$}"' &)"#;
    let shim = Shim::start(json!({ "echo": script(&format!("{orphan}\n{ECHO}")) }), &[]).await;
    let mut client = shim.client("echo").await;
    assert_gone(client.message().await["params"].as_u64().unwrap()).await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1 })).await;
    assert_eq!(client.message().await["id"], 1);
}

/// Case 150-crash-mid-call.
#[tokio::test]
async fn a_crash_is_told_at_once_with_code_and_error_output() {
    let crash = r#"
        read -r first
        case "$first" in *server/discover*) exit 1 ;; esac
        read -r second
        echo 'panic: boom' >&2
        exit 3
    "#;
    let mut shim = Shim::start(json!({ "crash": script(crash) }), &[]).await;
    let mut client = shim.client("crash").await;
    for id in [1, 2] {
        client.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call" })).await;
    }
    let Inbound::Closed { reason, exit_code, stderr_tail } = client.next().await else { panic!() };
    assert_eq!(reason.kind(), ErrorKind::ConnectionClosed);
    assert_eq!((exit_code, stderr_tail.as_deref()), (Some(3), Some("panic: boom")));
    assert!(reason.message().contains("\"crash\" exited with code 3"), "{}", reason.message());
    // A later call fails at once, and the next connection gets a process of its own.
    client.send(json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call" })).await;
    assert!(matches!(client.next().await, Inbound::RequestEnded { reason: Err(_), .. }));
    let mut next = shim.client("crash").await;
    next.attached(1).await;
    assert!(shim.log_line("panic: boom").await.contains("[crash]"));
}

/// The log shows the start of a flood and counts the rest; the client gets the end of it, cut to a length.
#[tokio::test]
async fn a_flood_of_error_output_is_bounded() {
    let flood = r#"
        read -r first
        case "$first" in *server/discover*) exit 1 ;; esac
        read -r second
        i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "line $i of a flood" >&2; done
        exit 3
    "#;
    let mut shim = Shim::start(json!({ "flood": script(flood) }), &[]).await;
    let mut client = shim.client("flood").await;
    for id in [1, 2] {
        client.send(json!({ "jsonrpc": "2.0", "id": id })).await;
    }
    let Inbound::Closed { exit_code, stderr_tail, .. } = client.next().await else { panic!() };
    let tail = stderr_tail.unwrap();
    assert_eq!(exit_code, Some(3));
    assert!(tail.ends_with("line 20000 of a flood") && tail.len() <= 16 * 1024, "{} bytes", tail.len());
    let log = shim.end("-TERM").await;
    let shown = log.lines().filter(|line| line.contains("of a flood")).count();
    assert!((1..=2000).contains(&shown), "{shown} lines of 20000");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_told_at_once() {
    let shim = Shim::start(json!({ "missing": { "command": "no-such-program-here" } }), &[]).await;
    let Inbound::Closed { reason, .. } = shim.client("missing").await.next().await else { panic!() };
    assert!(reason.message().contains("could not be started: `no-such-program-here`"), "{}", reason.message());
    assert!(reason.message().contains("it is in no directory of PATH"), "{}", reason.message());
}

#[tokio::test]
async fn each_connection_has_a_process_of_its_own() {
    let shim =
        Shim::start(json!({ "echo": script(&format!("echo '{{\"jsonrpc\":\"2.0\",\"params\":'$$'}}'\n{ECHO}")) }), &[])
            .await;
    let (mut one, mut two) = (shim.client("echo").await, shim.client("echo").await);
    assert_ne!(one.message().await, two.message().await);
    for (client, name) in [(&mut one, "one"), (&mut two, "two")] {
        client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": name })).await;
    }
    assert_eq!(two.message().await["method"], "two");
    assert_eq!(one.message().await["method"], "one");
}

/// The environment, the directory and the command line come from the file; a client has no words for them.
#[tokio::test]
async fn a_server_gets_what_the_file_says() {
    let tell =
        format!(r#"echo "{{\"jsonrpc\":\"2.0\",\"params\":[\"$GIVEN\",\"$PWD\",\"$CRABLET_STATE_DIR\"]}}"{ECHO}"#);
    let mut server = script(&tell);
    server["env"] = json!({ "GIVEN": "a; b $(c)" });
    server["cwd"] = json!("/");
    let shim = Shim::start(json!({ "tell": server }), &[]).await;
    let message: Value = shim.client("tell").await.message().await;
    assert_eq!(message["params"], json!(["a; b $(c)", "/", ""]));
}

#[tokio::test]
async fn a_server_that_crashes_as_it_starts_is_left_alone_for_a_while() {
    let shim = Shim::start(json!({ "broken": script("echo no licence >&2; exit 3") }), &[]).await;
    for _ in 0..3 {
        let mut client = shim.client("broken").await;
        let Inbound::Closed { exit_code, .. } = client.next().await else { panic!() };
        assert_eq!(exit_code, Some(3));
        client.close().await;
    }
    // The end of the third process is noted right after it was told.
    let reason = loop {
        let Inbound::Closed { reason, .. } = shim.client("broken").await.next().await else { panic!() };
        if reason.message().contains("is tried again in") {
            break reason;
        }
    };
    assert!(reason.message().contains("no licence"), "{reason}");
}

#[tokio::test]
async fn a_server_has_no_more_processes_than_its_limit() {
    let mut server = script(ECHO);
    server["limits"] = json!({ "processes": 1 });
    let shim = Shim::start(json!({ "one": server }), &[]).await;
    let mut first = shim.client("one").await;
    first.attached(1).await;
    let Inbound::Closed { reason, .. } = shim.client("one").await.next().await else { panic!() };
    assert!(reason.message().contains("as many processes as its limits allow (1)"), "{reason}");
}
