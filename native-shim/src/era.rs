//! Finding out what a configured server speaks, with a process that is thrown away afterwards: some servers exit when the
//! first thing they get is a request they do not know.

use std::time::Duration;

use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{Message, RequestId, RpcError};
use crablet::mcp::transport::shim::ServerEra;
use crablet::native::process::{ExitReport, LogLine, ProcessEvent, ProcessOutput, ServerCommand, ServerProcess};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::log::{Flood, show_server_line};

/// The process ended without an answer: it may be one that does not know the question, or one that could not start this
/// time. The next connection asks again; until then this is the best guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsure(pub(crate) Option<ServerEra>);

/// The era of the server of this name, or `None` when it answered nothing: the client finds out by itself then, and the process is gone.
pub(crate) async fn find_era(name: &str, command: ServerCommand) -> Result<Option<ServerEra>, Unsure> {
    // A server that ended takes nothing more, and says so below.
    let ServerProcess { input, mut output, log } = ServerProcess::start(command);
    tokio::spawn(show_log(name.to_owned(), log));
    let _ = input.send(DISCOVER.to_owned()).await;
    let answer = match timeout(PATIENCE, next_answer(&mut output)).await {
        Ok(answer) => answer,
        // A server that skips what it does not know answers nothing. One that is only slow answers the older first
        // message as well, or instead.
        Err(_) => {
            let _ = input.send(INITIALIZE.to_owned()).await;
            match timeout(START_LIMIT, next_answer(&mut output)).await {
                Ok(answer) => answer,
                Err(_) => {
                    drop(input);
                    while output.next().await.is_some() {}
                    return Ok(None);
                }
            }
        }
    };
    match answer {
        Answer::Response { id, outcome } => Ok(Some(era_of(id.as_ref(), &outcome))),
        Answer::Exited(_) => Err(Unsure(Some(ServerEra::Handshake))),
    }
}

/// Shows what the process prints for people: a download takes its time here.
async fn show_log(name: String, mut log: mpsc::Receiver<LogLine>) {
    let mut flood = Flood::new();
    while let Some(line) = log.recv().await {
        show_server_line(&name, &line, &mut flood);
    }
}

/// The first answer of a server to `initialize`, or `None` when it gave none in time.
pub(crate) async fn greet(command: ServerCommand) -> Option<Answer> {
    let ServerProcess { input, mut output, log: _ } = ServerProcess::start(command);
    let _ = input.send(INITIALIZE.to_owned()).await;
    timeout(START_LIMIT, next_answer(&mut output)).await.ok()
}

/// The first thing that a server does about a request.
#[derive(Debug)]
pub(crate) enum Answer {
    Response { id: Option<RequestId>, outcome: Result<RawJson, RpcError> },
    Exited(ExitReport),
}

/// The first answer decides.
async fn next_answer(output: &mut ProcessOutput) -> Answer {
    loop {
        match output.next().await {
            Some(ProcessEvent::Message(text)) => {
                let mut messages = Message::parse(&text).unwrap_or_default().into_iter();
                let response = messages.find_map(|message| match message {
                    Message::Response { id, outcome } => Some(Answer::Response { id, outcome }),
                    _ => None,
                });
                if let Some(response) = response {
                    return response;
                }
            }
            Some(ProcessEvent::Exited(report)) => return Answer::Exited(report),
            None => return Answer::Exited(ExitReport::default()),
        }
    }
}

fn era_of(id: Option<&RequestId>, outcome: &Result<RawJson, RpcError>) -> ServerEra {
    let is_discovery = match id {
        Some(RequestId::Text(id)) => id == "discover",
        // An error without an id answers what came first.
        _ => true,
    };
    match outcome {
        Ok(result) if is_discovery && lists_versions(result) => ServerEra::Stateless,
        // "Unsupported protocol version" names what is supported, which only a stateless server does.
        Err(error) if is_discovery && error.code == UNSUPPORTED_VERSION => ServerEra::Stateless,
        _ => ServerEra::Handshake,
    }
}

fn lists_versions(result: &RawJson) -> bool {
    Object::parse(result.as_str()).is_ok_and(|result| result.array("supportedVersions").is_some())
}

const DISCOVER: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"discover","method":"server/discover","params":{"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"crablet-shim","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}}"#
);

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"initialize","method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"crablet-shim","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}"#
);

/// How long a server may take over the discovery before the older first message is sent too.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a server may take to start: its package may have to be downloaded.
const START_LIMIT: Duration = Duration::from_secs(57);

/// The error code of the stateless revision for a version that a server does not speak.
const UNSUPPORTED_VERSION: i64 = -32_022;

#[cfg(test)]
mod tests {
    use super::*;

    async fn era(script: &str) -> Result<Option<ServerEra>, Unsure> {
        find_era("x", ServerCommand::new("/bin/sh", ["-c", script])).await
    }

    #[tokio::test]
    async fn the_first_answer_decides() {
        let stateless =
            r#"read x; echo '{"jsonrpc":"2.0","id":"discover","result":{"supportedVersions":["2026-07-28"]}}'; cat"#;
        assert_eq!(era(stateless).await, Ok(Some(ServerEra::Stateless)));
        let newer = r#"read x; echo '{"jsonrpc":"2.0","id":"discover","error":{"code":-32022,"message":"m"}}'; cat"#;
        assert_eq!(era(newer).await, Ok(Some(ServerEra::Stateless)));
        let older = r#"read x; echo '{"jsonrpc":"2.0","id":"discover","error":{"code":-32601,"message":"m"}}'; cat"#;
        assert_eq!(era(older).await, Ok(Some(ServerEra::Handshake)));
        assert_eq!(era("read x; exit 1").await, Err(Unsure(Some(ServerEra::Handshake))));
    }

    #[test]
    fn what_is_sent_is_json() {
        for text in [DISCOVER, INITIALIZE] {
            assert_eq!(Message::parse(text).unwrap().len(), 1);
        }
    }
}
