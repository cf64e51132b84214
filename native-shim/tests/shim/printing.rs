//! What commands print, and to whom: a pipe that was closed, and an environment without a home.

use std::process::{Command, ExitStatus, Stdio};

use crate::support::{Shim, in_time, scratch_directory, script, write_config};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

/// How a command ends whose standard output nobody reads any more, and what it says of that.
async fn printed_to_nobody(shim: &Shim, arguments: &[&str]) -> (ExitStatus, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let process = shim.command(arguments).stdout(Stdio::from(writer)).stderr(Stdio::piped()).spawn().unwrap();
    let output = process.wait_with_output().await.unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn who_reads_no_further_is_no_trouble() {
    let greeting = r#"read -r initialize; echo '{"jsonrpc":"2.0","id":"initialize","result":{}}'; exec cat"#;
    let shim = Shim::start(json!({ "files": script(greeting) }), &[]).await;
    shim.grant("", &["files"]).await;
    let config = shim.config();
    for arguments in [&["tokens"][..], &["doctor", "--config", &config], &["completions", "bash"], &["man"]] {
        let (status, told) = printed_to_nobody(&shim, arguments).await;
        assert_eq!((status.code(), told.as_str()), (Some(0), ""), "{arguments:?}");
    }
    // A token that nobody has seen is no success.
    let (status, told) = printed_to_nobody(&shim, &["grant", "--native", "--server", "files"]).await;
    assert_eq!(status.code(), Some(1));
    assert!(told.ends_with("crablet-shim: Broken pipe (os error 32)\n"), "{told}");
}

#[test]
fn manual_and_completions_need_no_home() {
    for arguments in [&["man"][..], &["completions", "zsh"]] {
        let command = &mut Command::new(env!("CARGO_BIN_EXE_crablet-shim"));
        let output = command.env_clear().args(arguments).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_shim_whose_state_can_hold_no_socket_serves_all_the_same() {
    let directory = scratch_directory();
    write_config(&directory, &json!({ "mcpServers": { "files": script("exec cat") } }).to_string());
    // Longer than the address of a socket may be.
    let state = directory.join("x".repeat(120));
    let mut process = tokio::process::Command::new(env!("CARGO_BIN_EXE_crablet-shim"))
        .args(["serve", "--port", "0", "--config"])
        .arg(directory.join("servers.json"))
        .env("CRABLET_STATE_DIR", &state)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(process.stdout.take().unwrap()).lines();
    let line = in_time("it listens", printed.next_line()).await.unwrap().unwrap();
    assert!(line.contains("listens on ws://127.0.0.1:"), "{line}");
    let mut log = BufReader::new(process.stderr.take().unwrap()).lines();
    while let Some(line) = in_time("it says why", log.next_line()).await.unwrap() {
        if line.contains("no socket for agents can be made in ") {
            return;
        }
    }
    panic!("nothing was said of the socket");
}
