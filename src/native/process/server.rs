use std::io;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::child::{Child, Ending, Started, Stop, start};
use super::command::ServerCommand;
use super::pipes::{DRAIN_LIMIT, Log, read_errors, read_messages, write_messages};
use super::queue::{Place, QueueReceiver, QueueSender, Weighed, queue};
use crate::error::{Error, ErrorKind};

/// A running server: what goes in, what comes out, and what it prints beside its messages.
#[derive(Debug)]
pub struct ServerProcess {
    /// Takes messages. When it and its clones are dropped the process is ended.
    pub input: ProcessInput,
    /// Gives messages, and the end of the process as the last event. When it is dropped the process is ended.
    pub output: ProcessOutput,
    /// Gives what the process prints for people. Lines that nobody takes in time are dropped.
    pub log: mpsc::Receiver<LogLine>,
}

/// The way into a process.
#[derive(Clone, Debug)]
pub struct ProcessInput(QueueSender<String>);

/// A place for one message on the way into a process.
#[derive(Debug)]
pub struct ReadyInput<'a>(Place<'a, String>);

/// The way out of a process.
#[derive(Debug)]
pub struct ProcessOutput(QueueReceiver<ProcessEvent>);

/// What comes out of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// A JSON-RPC message, or a batch, as it was written.
    Message(String),
    /// The process has ended; nothing follows.
    Exited(ExitReport),
}

impl Weighed for String {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Weighed for ProcessEvent {
    fn bytes(&self) -> usize {
        match self {
            Self::Message(message) => message.len(),
            Self::Exited(_) => 0,
        }
    }
}

/// How a process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitReport {
    /// Its exit code; `None` when a signal ended it or it never started.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it was ended, or did not start, where that is more than its own decision.
    pub cause: Option<String>,
    /// The last lines of its error output: at most 40 lines and 16 KiB.
    pub stderr_tail: String,
}

/// A line that a process printed for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Where.
    pub source: LogSource,
    /// The line, cut to a length for people.
    pub text: String,
}

/// Where a line for people was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSource {
    /// On standard error, where it belongs.
    StandardError,
    /// Between the messages on standard output.
    StandardOutput,
}

impl ServerProcess {
    /// Starts a server; must be called on a tokio runtime. A server that cannot be started gives a
    /// [`ProcessEvent::Exited`] with the cause as its first event.
    pub fn start(command: ServerCommand) -> Self {
        let (input, messages) = queue();
        let (events, output) = queue();
        let (lines, log) = mpsc::channel(LOG_QUEUE);
        tokio::spawn(run(command, messages, events, lines));
        Self { input: ProcessInput(input), output: ProcessOutput(output), log }
    }

    /// What looks like a server's process and is a part of this program: the messages that go in come out of the receiver,
    /// what is sent comes out as its events. It is over when its receiver gives `None`; drop the sender then.
    pub fn within() -> (Self, QueueReceiver<String>, QueueSender<ProcessEvent>) {
        let (input, messages) = queue();
        let (events, output) = queue();
        let (_, log) = mpsc::channel(1);
        (Self { input: ProcessInput(input), output: ProcessOutput(output), log }, messages, events)
    }
}

impl ProcessInput {
    /// Sends a message, waiting while the process does not read, as [`ReadyInput::send`] does.
    ///
    /// # Errors
    ///
    /// `connection-closed` when the process has ended or closed its input.
    pub async fn send(&self, message: String) -> Result<(), Error> {
        self.ready().await?.send(message);
        Ok(())
    }

    /// Waits until the process can take a message. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    ///
    /// `connection-closed` when the process has ended or closed its input.
    pub async fn ready(&self) -> Result<ReadyInput<'_>, Error> {
        let closed = || Error::new(ErrorKind::ConnectionClosed, "the server's process takes no more messages");
        self.0.place().await.map(ReadyInput).ok_or_else(closed)
    }

    /// The place that [`ProcessInput::ready`] would give, if it need not wait for one.
    pub fn try_ready(&self) -> Option<ReadyInput<'_>> {
        self.0.try_place().map(ReadyInput)
    }
}

impl ReadyInput<'_> {
    /// Sends a message. Line breaks in it, which can only be white space of JSON, become blanks.
    pub fn send(self, message: String) {
        self.0.send(message);
    }
}

impl ProcessOutput {
    /// The next event; `None` after [`ProcessEvent::Exited`].
    pub async fn next(&mut self) -> Option<ProcessEvent> {
        self.0.recv().await
    }

    /// The next event, if it is there already.
    pub fn try_next(&mut self) -> Option<ProcessEvent> {
        self.0.try_recv()
    }
}

impl ExitReport {
    /// What happened, as a sentence for the reader.
    pub fn describe(&self, server: &str) -> String {
        let ending = match (&self.cause, self.code, self.signal) {
            (Some(cause), ..) => cause.clone(),
            (None, Some(code), _) => format!("exited with code {code}"),
            (None, None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None, None) => "ended".to_owned(),
        };
        match self.stderr_tail.lines().last() {
            Some(last) => format!("the server \"{server}\" {ending}; its last words: {last}"),
            None => format!("the server \"{server}\" {ending}"),
        }
    }
}

/// The whole life of a process.
async fn run(
    command: ServerCommand,
    messages: QueueReceiver<String>,
    events: QueueSender<ProcessEvent>,
    log: mpsc::Sender<LogLine>,
) {
    let patience = command.patience;
    let log = Log { lines: log, secrets: command.secrets().into() };
    let Started { mut child, stdin, stdout, stderr } = match start(&command).await {
        Ok(pipes) => pipes,
        Err(error) => {
            let cause =
                Some(format!("could not be started: `{}`: {error}{}", command.program, advice(&command, &error)));
            events.send(ProcessEvent::Exited(ExitReport { cause, ..ExitReport::default() })).await;
            return;
        }
    };
    let (line_too_long, too_long) = oneshot::channel();
    let (process_ended, ended) = oneshot::channel();
    let (output_is_open, output_ended) = oneshot::channel::<()>();
    let reading = read_messages(stdout, events.clone(), log.clone(), line_too_long, ended);
    let reader = tokio::spawn(async move {
        reading.await;
        drop(output_is_open);
    });
    let mut errors = tokio::spawn(read_errors(stderr, log));
    let writer = tokio::spawn(write_messages(stdin, messages));

    let (ending, cause) = watch(&mut child, writer, &events, too_long, output_ended, patience).await;
    // What the process wrote before its end is still in the pipes, and its reader may still wait for its user.
    drop(process_ended);
    drop(reader.await);
    child.bury().await;
    let stderr_tail = match timeout(DRAIN_LIMIT, &mut errors).await {
        Ok(Ok(tail)) => tail.into_text(),
        _ => String::new(),
    };
    errors.abort();
    let report = match ending {
        Ending::Exited(code) => ExitReport { code: Some(code), signal: None, cause, stderr_tail },
        Ending::Signalled(signal) => ExitReport { code: None, signal: Some(signal), cause, stderr_tail },
        Ending::Unknown(why) => ExitReport { code: None, signal: None, cause: cause.or(Some(why)), stderr_tail },
    };
    events.send(ProcessEvent::Exited(report)).await;
}

/// Waits for the end, and brings it about when the process is no longer wanted.
async fn watch(
    child: &mut Child,
    mut writer: JoinHandle<bool>,
    events: &QueueSender<ProcessEvent>,
    too_long: oneshot::Receiver<()>,
    output_ended: oneshot::Receiver<()>,
    patience: Duration,
) -> (Ending, Option<String>) {
    let mut cause = None;
    // A process that ends closes its pipes first. One that closes them and goes on answers nobody any more.
    let mut closed = None;
    tokio::select! {
        ending = child.ended() => {
            writer.abort();
            return (ending, None);
        }
        // The queue of messages was dropped, or the process closed its input.
        would_take_more = &mut writer => closed = (!would_take_more.unwrap_or(true)).then_some("input"),
        () = events.closed() => {}
        Ok(()) = too_long => cause = Some("was ended because it wrote a message longer than 16 MiB".to_owned()),
        _ = output_ended => closed = Some("output"),
    }
    if let Some(pipe) = closed {
        if let Ok(ending) = timeout(patience, child.ended()).await {
            writer.abort();
            return (ending, None);
        }
        cause = Some(format!("was ended because it closed its standard {pipe} and went on"));
    }
    // Closes the input.
    writer.abort();
    for stop in [Some(Stop::Terminate), Some(Stop::Kill), None] {
        if let Ok(ending) = timeout(patience, child.ended()).await {
            return (ending, cause);
        }
        if let Some(stop) = stop {
            child.stop(stop).await;
        }
    }
    (Ending::Unknown("did not end when it was killed".to_owned()), cause)
}

/// What to do about a program that cannot be started, where that is known.
fn advice(command: &ServerCommand, error: &io::Error) -> &'static str {
    let program = &command.program;
    match error.kind() {
        io::ErrorKind::NotFound if command.directory.as_deref().is_some_and(|directory| !directory.is_dir()) => {
            "; its working directory is not there"
        }
        io::ErrorKind::NotFound if program.contains(' ') => "; arguments do not belong into the name of the program",
        io::ErrorKind::NotFound if !program.contains(['/', '\\']) => {
            "; it is in no directory of PATH: install it, or name it by its whole path"
        }
        io::ErrorKind::NotFound => "; it, or what its first line names, is not there",
        io::ErrorKind::PermissionDenied => "; it may not be run: `chmod +x` allows it",
        _ => "",
    }
}

/// Log lines between a process and whoever shows them; a flood beyond is dropped.
const LOG_QUEUE: usize = 256;

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
