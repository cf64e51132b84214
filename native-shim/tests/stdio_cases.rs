//! Runs the cases of area `mcp-stdio`: a line for each, and `N passed, N failed` at the end.
//!
//! What a case gives as output of a server is written by a real process, whole and cut at every byte, and has to arrive
//! at a client of the shim. Cases told in words are tests of their own, named below; a case that is neither fails. With
//! `CRABLET_CASES=<folder>` the cases of that folder are run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets the unexpected stops"
)]

#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "shim/support.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crablet::json::Object;
use crablet::mcp::transport::Inbound;
use crablet::native::process::{Line, LineFramer};
use serde_json::{Value, json};
use support::{Client, Shim, script};

/// Cases told in words, and the tests that are them.
const IN_WORDS: &[(&str, &str)] = &[
    ("150-crash-mid-call", "processes::a_crash_is_told_at_once_with_code_and_error_output"),
    ("152-slow-start", "slow_start::a_server_that_is_downloaded_first_is_waited_for"),
    ("154-shutdown-process-tree", "processes::a_client_that_closes_takes_its_process_along and those beside it"),
    ("155-websocket-drop", "reconnect::nothing_is_lost_or_repeated"),
    ("157-websocket-origin-token", "gate::case_157_websocket_origin_token; handshake::hostile_attempts_…"),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases");
    let folder = std::env::var_os("CRABLET_CASES").map_or(own, PathBuf::from);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut passed, mut failed) = (0, 0);
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
        let text = std::fs::read_to_string(file).unwrap();
        // Cases of other areas may hold what only their own readers take, such as lone surrogates.
        if Object::parse(&text).unwrap().string("area").as_deref() != Some("mcp-stdio") {
            continue;
        }
        let case: Value = serde_json::from_str(&text).unwrap();
        let id = case["id"].as_str().unwrap_or("without an id");
        match run(id, &case).await {
            Ok(how) => {
                passed += 1;
                println!("ok {id}{how}");
            }
            Err(why) => {
                failed += 1;
                println!("FAILED {id}: {why}");
            }
        }
    }
    if passed + failed == 0 {
        println!("FAILED: no case of area mcp-stdio in {}", folder.display());
        failed += 1;
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(id: &str, case: &Value) -> Result<String, String> {
    let input = &case["input"];
    if let Some(chunks) = input["stdout_chunks"].as_array() {
        let output: Vec<u8> = chunks.iter().flat_map(chunk).collect();
        let expected = case["expected"]["messages"].as_array().ok_or("it expects no messages")?;
        cut_at_every_byte(&output, expected)?;
        through_the_shim(&output, expected, input["then"].as_str()).await?;
        return Ok(String::new());
    }
    if let Some(recipes) = input["stdout_gen"].as_array() {
        let lines: Vec<_> = recipes.iter().filter_map(|recipe| recipe["line_bytes"].as_u64()).map(line).collect();
        if lines.len() != recipes.len() {
            return Err("it has a recipe that is not known".into());
        }
        let expected: Vec<_> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        through_the_shim(lines.concat().as_bytes(), &expected, None).await?;
        return Ok(String::new());
    }
    let test = IN_WORDS.iter().find(|(known, _)| *known == id);
    test.map(|(_, test)| format!(" (told in words; {test})")).ok_or_else(|| "nobody knows how to run it".into())
}

fn chunk(chunk: &Value) -> Vec<u8> {
    match (chunk.as_str(), chunk["b64"].as_str()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(text)) => base64(text),
        _ => panic!("a chunk is neither text nor base64: {chunk}"),
    }
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values: Vec<_> = text.chars().filter_map(|character| ALPHABET.find(character)).collect();
    let bits = values.iter().flat_map(|value| (0..6).rev().map(move |bit| value >> bit & 1));
    let bits: Vec<_> = bits.collect();
    bits.chunks_exact(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | *bit as u8)).collect()
}

/// A result line of this length, newline included.
fn line(bytes: u64) -> String {
    let (before, after) = (r#"{"jsonrpc":"2.0","id":1,"result":""#, "\"}\n");
    let filler = "x".repeat(usize::try_from(bytes).unwrap() - before.len() - after.len());
    format!("{before}{filler}{after}")
}

fn cut_at_every_byte(output: &[u8], expected: &[Value]) -> Result<(), String> {
    for cut in 0..=output.len() {
        let (mut framer, mut lines) = (LineFramer::new(), Vec::new());
        framer.push(&output[..cut], &mut lines);
        framer.push(&output[cut..], &mut lines);
        lines.extend(framer.finish());
        let messages = lines.iter().filter_map(|line| match line {
            Line::Message(text) => Some(serde_json::from_str::<Value>(text).unwrap()),
            _ => None,
        });
        if !messages.clone().eq(expected.iter().cloned()) {
            return Err(format!("cut at byte {cut}: {:?}", messages.collect::<Vec<_>>()));
        }
    }
    Ok(())
}

/// A process writes the output; then it ends, or answers a last request so that the end of the output is known.
async fn through_the_shim(output: &[u8], expected: &[Value], then: Option<&str>) -> Result<(), String> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("output-{}", std::process::id()));
    std::fs::write(&file, output).unwrap();
    let last = match then {
        Some(then) if then.starts_with("exit ") => then,
        _ => "exec cat",
    };
    let server = format!(
        r#"read -r first; case "$first" in *server/discover*) exit 1 ;; esac; cat '{}'; {last}"#,
        file.display()
    );
    let shim = Shim::start(json!({ "case": script(&server) }), &[]).await;
    let mut client = shim.client("case").await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "start" })).await;
    client.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "last" })).await;
    let got = messages(&mut client, then.is_none()).await?;
    std::fs::remove_file(&file).unwrap();
    if got == expected { Ok(()) } else { Err(format!("{} messages arrived: {:.300?}", got.len(), got)) }
}

async fn messages(client: &mut Client, until_last: bool) -> Result<Vec<Value>, String> {
    let mut messages = Vec::new();
    loop {
        match client.next().await {
            Inbound::Message { message, .. } => {
                let message: Value = message.read().map_err(|error| error.to_string())?;
                if message["method"] == "last" {
                    return Ok(messages);
                }
                messages.push(message);
            }
            Inbound::Closed { exit_code: Some(_), .. } if !until_last => return Ok(messages),
            other => return Err(format!("{other:?}")),
        }
    }
}
