use rustix::process::Pid;

use super::*;

fn shell(script: &str) -> ServerCommand {
    let mut command = ServerCommand::new("/bin/sh", ["-c", script]);
    command.patience = Duration::from_millis(200);
    command
}

async fn events(output: &mut ProcessOutput) -> (Vec<String>, ExitReport) {
    let mut messages = Vec::new();
    loop {
        match output.next().await.expect("an exit comes last") {
            ProcessEvent::Message(message) => messages.push(message),
            ProcessEvent::Exited(report) => return (messages, report),
        }
    }
}

#[tokio::test]
async fn a_message_goes_in_as_one_line_and_comes_out() {
    let mut process = ServerProcess::start(shell("exec cat"));
    process.input.send("{\"jsonrpc\":\n\"2.0\"}".into()).await.unwrap();
    assert_eq!(process.output.next().await, Some(ProcessEvent::Message("{\"jsonrpc\": \"2.0\"}".into())));
    drop(process.input);
    let (messages, report) = events(&mut process.output).await;
    assert_eq!((messages.len(), report.code), (0, Some(0)), "cat ends when its input closes");
}

#[tokio::test]
async fn a_crash_is_told_with_code_last_message_and_error_output() {
    let script = r#"echo 'panic: boom' >&2; printf '{"jsonrpc":"2.0","id":1}\n{"jsonrpc":"2.0","id":2}'; exit 3"#;
    let mut process = ServerProcess::start(shell(script));
    let (messages, report) = events(&mut process.output).await;
    assert_eq!(messages, [r#"{"jsonrpc":"2.0","id":1}"#, r#"{"jsonrpc":"2.0","id":2}"#]);
    assert_eq!((report.code, report.signal, report.stderr_tail.as_str()), (Some(3), None, "panic: boom"));
    assert_eq!(report.describe("files"), "the server \"files\" exited with code 3; its last words: panic: boom");
    assert_eq!(process.output.next().await, None);
    assert_eq!(process.log.recv().await.unwrap().text, "panic: boom");
}

#[tokio::test]
async fn what_was_written_before_the_end_waits_for_a_slow_reader() {
    let script = r#"for i in 1 2 3 4 5 6 7 8 9; do echo '{"jsonrpc":"2.0"}'; done; exit 0"#;
    let mut process = ServerProcess::start(shell(script));
    tokio::time::sleep(DRAIN_LIMIT + Duration::from_millis(200)).await;
    let (messages, report) = events(&mut process.output).await;
    assert_eq!((messages.len(), report.code), (9, Some(0)));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let mut process = ServerProcess::start(ServerCommand::new("no-such-program-here", ["x"]));
    let (_, report) = events(&mut process.output).await;
    assert_eq!(report.code, None);
    assert!(report.describe("files").contains("could not be started: `no-such-program-here`"));
}

#[tokio::test]
async fn a_process_that_closes_its_output_and_goes_on_is_ended() {
    let script = r#"echo '{"jsonrpc":"2.0"}'; exec >&-; while :; do sleep 60; done"#;
    let mut process = ServerProcess::start(shell(script));
    let (messages, report) = events(&mut process.output).await;
    assert_eq!((messages.len(), report.signal), (1, Some(15)));
    assert_eq!(report.cause.as_deref(), Some("was ended because it closed its standard output and went on"));
}

#[tokio::test]
async fn a_process_that_closes_its_input_and_goes_on_is_ended() {
    let mut process = ServerProcess::start(shell("exec <&-; echo closed >&2; while :; do sleep 60; done"));
    assert_eq!(process.log.recv().await.unwrap().text, "closed");
    process.input.send("{}".into()).await.unwrap();
    let (_, report) = events(&mut process.output).await;
    assert_eq!(report.cause.as_deref(), Some("was ended because it closed its standard input and went on"));
}

#[tokio::test]
async fn a_process_that_ends_closes_its_output_first() {
    let mut process = ServerProcess::start(shell("exec >&-; read -r line; exit 3"));
    process.input.send("{}".into()).await.unwrap();
    let (_, report) = events(&mut process.output).await;
    assert_eq!((report.code, report.cause), (Some(3), None));
}

#[tokio::test]
async fn what_cannot_be_started_is_told_with_what_to_do() {
    let mut elsewhere = shell("true");
    elsewhere.directory = Some("/no/such/directory".into());
    let not_runnable = ServerCommand::new(file!(), [""; 0]);
    for (command, advice) in [
        (ServerCommand::new("no-such-program-here", [""; 0]), "it is in no directory of PATH"),
        (ServerCommand::new("npx -y no-such-program-here", [""; 0]), "arguments do not belong into the name"),
        (ServerCommand::new("/no/such/program", [""; 0]), "it, or what its first line names, is not there"),
        (elsewhere, "its working directory is not there"),
        (not_runnable, "`chmod +x` allows it"),
    ] {
        let mut process = ServerProcess::start(command);
        let (_, report) = events(&mut process.output).await;
        let cause = report.cause.unwrap();
        assert!(cause.contains(advice), "{cause}");
    }
}

#[tokio::test]
async fn a_stubborn_group_is_killed() {
    // The wrapper and its child both ignore the end of input and SIGTERM.
    let script = r#"trap '' TERM; (trap '' TERM; while :; do sleep 60; done) & echo "{\"jsonrpc\":\"$!\"}"; while :; do sleep 60; done"#;
    let mut process = ServerProcess::start(shell(script));
    let Some(ProcessEvent::Message(message)) = process.output.next().await else { panic!() };
    let child: i32 = message.split('"').nth(3).unwrap().parse().unwrap();
    drop(process.input);
    let (_, report) = events(&mut process.output).await;
    assert_eq!(report.signal, Some(9));
    assert!(is_gone(child).await);
}

#[tokio::test]
async fn dropping_the_output_ends_a_silent_process() {
    let ServerProcess { input, output, mut log } = ServerProcess::start(shell("echo ready >&2; exec cat"));
    assert_eq!(log.recv().await.unwrap().text, "ready");
    drop(output);
    // The log ends with the process.
    assert_eq!(log.recv().await, None);
    drop(input);
}

#[tokio::test]
async fn a_flood_of_error_output_is_bounded_and_blocks_nothing() {
    let script = r#"i=0; while [ $i -lt 20000 ]; do echo "line $i" >&2; i=$((i+1)); done; echo '{"jsonrpc":"2.0"}'"#;
    let mut process = ServerProcess::start(shell(script));
    let (messages, report) = events(&mut process.output).await;
    assert_eq!(messages.len(), 1);
    assert!(report.stderr_tail.ends_with("line 19999") && report.stderr_tail.len() <= 16 * 1024);
}

#[tokio::test]
async fn the_environment_holds_what_was_chosen() {
    let mut command = shell(r#"echo "{\"jsonrpc\":\"$GIVEN-${CARGO_MANIFEST_DIR:-absent}-${PATH:+path}\"}""#);
    command.environment.insert("GIVEN".into(), "given".into());
    let mut process = ServerProcess::start(command);
    let (messages, _) = events(&mut process.output).await;
    assert_eq!(messages, [r#"{"jsonrpc":"given-absent-path"}"#]);
}

/// Whether a process ends: it is killed at once but may take a moment to leave the table.
async fn is_gone(id: i32) -> bool {
    for _ in 0..200 {
        if rustix::process::test_kill_process(Pid::from_raw(id).unwrap()).is_err() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}
