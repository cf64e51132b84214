//! The bash tool: what it tells, what it ends, what it asks for.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crablet::agent::Approval;
use crablet::host::tools::BuiltInTool;
use crablet::host::{CancelToken, ToolContext};
use crablet::json::RawJson;
use crablet::model::CallId;
use crablet::native::tools::{BashOptions, CommandPolicy, Decision, bash_tool};
use serde_json::json;

use super::{Folder, call, call_output, text};

fn tool(folder: &Folder, change: impl FnOnce(&mut BashOptions)) -> [BuiltInTool; 1] {
    let mut options = BashOptions::new(&folder.0);
    change(&mut options);
    [bash_tool(options)]
}

/// Waits until a process is gone, by its number in a file.
async fn gone(file: &Path) {
    let id = fs::read_to_string(file).unwrap();
    let process = Path::new("/proc").join(id.trim());
    let is_there = || fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z "));
    tokio::time::timeout(Duration::from_secs(10), async {
        while is_there() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the process ends");
}

#[tokio::test]
async fn output_and_errors_come_back_together_with_the_exit_code() {
    let folder = Folder::new();
    let tool = tool(&folder, |_| {});
    let told = call(&tool, "bash", json!({ "command": "pwd; echo oops >&2; exit 3" })).await.unwrap();
    let place = fs::canonicalize(&folder.0).unwrap();
    assert!(
        told.contains(place.to_str().unwrap()) && told.contains("oops") && told.ends_with("[exit code 3]"),
        "{told}"
    );
    let failed = call_output(&tool, "bash", json!({ "command": "false" })).await.unwrap();
    assert!(failed.is_error && text(&failed) == "[exit code 1]");
    let quiet = call_output(&tool, "bash", json!({ "command": "true" })).await.unwrap();
    assert!(!quiet.is_error && text(&quiet) == "[no output]");
    let ended = call(&tool, "bash", json!({ "command": "kill -9 $$" })).await.unwrap();
    assert_eq!(ended, "[ended by signal 9]");
}

#[tokio::test]
async fn standard_input_is_empty_and_the_environment_holds_no_keys() {
    let folder = Folder::new();
    let tool = tool(&folder, |options| {
        options.environment.insert("GIVEN".into(), "yes".into());
    });
    // Cargo sets this for tests; a shell's keys stand in the environment in the same way.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let command = "cat; echo \"$GIVEN-${CARGO_MANIFEST_DIR-unset}\"";
    assert_eq!(call(&tool, "bash", json!({ "command": command })).await.unwrap(), "yes-unset");
}

#[tokio::test]
async fn of_endless_output_the_beginning_and_the_end_are_told() {
    let folder = Folder::new();
    let tool = tool(&folder, |options| options.max_output = 100);
    let told = call(&tool, "bash", json!({ "command": "seq 1 300000" })).await.unwrap();
    assert!(told.starts_with("1\n2\n3\n") && told.ends_with("\n300000") && told.len() < 200, "{told}");
    assert!(told.contains("bytes left out]"));
}

#[tokio::test]
async fn a_command_that_takes_too_long_ends_with_its_whole_group() {
    let folder = Folder::new();
    let tool = tool(&folder, |options| options.timeout = Duration::from_millis(500));
    let command = "trap '' TERM; sleep 1000 & echo $! > child; echo begun; wait; wait";
    let output = call_output(&tool, "bash", json!({ "command": command })).await.unwrap();
    assert!(output.is_error);
    assert_eq!(text(&output), "begun\n[ended after 0.5 s: run it in smaller steps]");
    gone(&folder.0.join("child")).await;
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    let folder = Folder::new();
    let tool = tool(&folder, |_| {});
    let told = call(&tool, "bash", json!({ "command": "sleep 1000 & echo $! > child; echo done" })).await.unwrap();
    assert_eq!(told, "done");
    gone(&folder.0.join("child")).await;
}

#[tokio::test]
async fn an_abort_ends_the_command() {
    let folder = Folder::new();
    let [(_, tool)] = tool(&folder, |_| {});
    let cancel = CancelToken::new();
    let context = ToolContext::detached(CallId::new("call"), cancel.clone());
    let input =
        RawJson::from_value(&json!({ "command": "echo $$ > shell.new; mv shell.new shell; sleep 1000" })).unwrap();
    let running = tokio::spawn(tool.execute(input, context));
    let file = folder.0.join("shell");
    tokio::time::timeout(Duration::from_secs(10), async {
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    cancel.cancel();
    assert_eq!(running.await.unwrap().unwrap_err(), "the call was cancelled");
    gone(&file).await;
}

#[tokio::test]
async fn the_policy_decides_and_is_looked_at_again_where_the_command_runs() {
    let folder = Folder::new();
    let tool = tool(&folder, |options| options.policy = CommandPolicy::ask().allow("echo").deny("rm"));
    let [(definition, bash)] = &tool;
    assert!(definition.needs_approval && definition.sequential && !definition.repeatable);
    let decide = |command: &str| bash.decide(&RawJson::from_value(&json!({ "command": command })).unwrap());
    assert_eq!(decide("echo hi"), Some(Approval::Allow));
    assert_eq!(decide("touch x"), None);
    let Some(Approval::Deny { reason: Some(reason) }) = decide("echo; rm -r x") else { panic!("it is denied") };
    assert_eq!(call(&tool, "bash", json!({ "command": "echo; rm -r x" })).await.unwrap_err(), reason);
    let own = CommandPolicy::function(|command| match command.len() {
        0..10 => Decision::Allow,
        _ => Decision::Deny("too long".into()),
    });
    assert_eq!(own.decide("0123456789"), Decision::Deny("too long".into()));
}

#[tokio::test]
async fn a_shell_that_is_not_there_is_told() {
    let folder = Folder::new();
    let tool = tool(&folder, |options| options.shell = "/no/such/shell".into());
    let told = call(&tool, "bash", json!({ "command": "true" })).await.unwrap_err();
    assert!(told.starts_with("the shell could not be started"), "{told}");
}
