use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::command::ServerCommand;
use super::control::{KILL, Report, TERMINATE, send_descriptor};
use super::framer::{Line, LineFramer};
use super::group::signal_group;
use super::stderr::{ErrorLines, Tail};
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
pub struct ProcessInput(mpsc::Sender<String>);

/// A place for one message on the way into a process.
#[derive(Debug)]
pub struct ReadyInput<'a>(mpsc::Permit<'a, String>);

/// The way out of a process.
#[derive(Debug)]
pub struct ProcessOutput(mpsc::Receiver<ProcessEvent>);

/// What comes out of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// A JSON-RPC message, or a batch, as it was written.
    Message(String),
    /// The process has ended; nothing follows.
    Exited(ExitReport),
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
        let (input, messages) = mpsc::channel(QUEUE);
        let (events, output) = mpsc::channel(QUEUE);
        let (lines, log) = mpsc::channel(LOG_QUEUE);
        tokio::spawn(run(command, messages, events, lines));
        Self { input: ProcessInput(input), output: ProcessOutput(output), log }
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
        let closed = |_| Error::new(ErrorKind::ConnectionClosed, "the server's process takes no more messages");
        self.0.reserve().await.map(ReadyInput).map_err(closed)
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
    messages: mpsc::Receiver<String>,
    events: mpsc::Sender<ProcessEvent>,
    log: mpsc::Sender<LogLine>,
) {
    let patience = command.patience;
    let Pipes { mut child, stdin, stdout, stderr } = match start(&command).await {
        Ok(pipes) => pipes,
        Err(error) => {
            let cause = Some(format!("could not be started: `{}`: {error}", command.program));
            drop(events.send(ProcessEvent::Exited(ExitReport { cause, ..ExitReport::default() })).await);
            return;
        }
    };
    let (line_too_long, too_long) = oneshot::channel();
    let (process_ended, ended) = oneshot::channel();
    let reader = tokio::spawn(read_messages(stdout, events.clone(), log.clone(), line_too_long, ended));
    let mut errors = tokio::spawn(read_errors(stderr, log));
    let writer = tokio::spawn(write_messages(stdin, messages));

    let (ending, cause) = watch(&mut child, writer, &events, too_long, patience).await;
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
    drop(events.send(ProcessEvent::Exited(report)).await);
}

/// Waits for the end, and brings it about when the process is no longer wanted.
async fn watch(
    child: &mut Child,
    mut writer: JoinHandle<()>,
    events: &mpsc::Sender<ProcessEvent>,
    too_long: oneshot::Receiver<()>,
    patience: Duration,
) -> (Ending, Option<String>) {
    let mut cause = None;
    tokio::select! {
        ending = child.ended() => {
            writer.abort();
            return (ending, None);
        }
        // The queue of messages was dropped, or the process closed its input.
        _ = &mut writer => {}
        () = events.closed() => {}
        Ok(()) = too_long => cause = Some("was ended because it wrote a message longer than 16 MiB".to_owned()),
    }
    // Closes the input.
    writer.abort();
    for signal in [Some(Signal::TERM), Some(Signal::KILL), None] {
        if let Ok(ending) = timeout(patience, child.ended()).await {
            return (ending, cause);
        }
        if let Some(signal) = signal {
            child.signal(signal).await;
        }
    }
    (Ending::Unknown("did not end when it was killed".to_owned()), cause)
}

struct Pipes {
    child: Child,
    stdin: Box<dyn AsyncWrite + Send + Unpin>,
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    stderr: Box<dyn AsyncRead + Send + Unpin>,
}

async fn start(command: &ServerCommand) -> io::Result<Pipes> {
    let mut process = Command::from(command.to_command());
    // A group of its own: what a terminal sends to the foreground, such as Ctrl-C, is for this program to act on.
    process.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    if command.guardian.is_some() {
        return start_guarded(process).await;
    }
    let mut child = process.stdin(Stdio::piped()).spawn()?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let group = group.ok_or_else(|| io::Error::other("the process has no id"))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else { return Err(no_pipes()) };
    let child = Child::Own { child, group, ended: false };
    Ok(Pipes { child, stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) })
}

async fn start_guarded(mut process: Command) -> io::Result<Pipes> {
    let (own_end, guardian_end) = std::os::unix::net::UnixStream::pair()?;
    let (server_input, input) = io::pipe()?;
    let mut guardian = process.stdin(Stdio::from(std::os::fd::OwnedFd::from(guardian_end))).spawn()?;
    // The command holds the guardian's end until it is dropped; with it open here the socket would never end.
    drop(process);
    send_descriptor(&own_end, std::os::fd::AsFd::as_fd(&server_input))?;
    drop(server_input);
    let (Some(stdout), Some(stderr)) = (guardian.stdout.take(), guardian.stderr.take()) else { return Err(no_pipes()) };
    own_end.set_nonblocking(true)?;
    let mut control = BufReader::new(UnixStream::from_std(own_end)?);
    let group = match next_report(&mut control, &mut Vec::new()).await {
        Some(Report::Started(id)) => Pid::from_raw(id).ok_or_else(|| io::Error::other("the process has no id"))?,
        Some(Report::Failed(why)) => return Err(io::Error::other(why)),
        _ => return Err(io::Error::other("its guardian ended before it started")),
    };
    let stdin = tokio::net::unix::pipe::Sender::from_owned_fd(input.into())?;
    let child = Child::Guarded { guardian, control, report: Vec::new(), group };
    Ok(Pipes { child, stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) })
}

fn no_pipes() -> io::Error {
    io::Error::other("the process has no pipes")
}

enum Child {
    /// A child of this program.
    Own { child: tokio::process::Child, group: Pid, ended: bool },
    /// A child of a guardian.
    Guarded { guardian: tokio::process::Child, control: BufReader<UnixStream>, report: Vec<u8>, group: Pid },
}

enum Ending {
    Exited(i32),
    Signalled(i32),
    Unknown(String),
}

impl Child {
    /// Waits until the process has ended. May be dropped and called again until it gives an ending.
    async fn ended(&mut self) -> Ending {
        match self {
            Self::Own { child, group, ended } => {
                let status = child.wait().await;
                *ended = true;
                // Whatever it left in its group has no purpose any more and may hold its pipes open.
                signal_group(*group, Signal::KILL);
                status.map_or_else(|error| Ending::Unknown(error.to_string()), Ending::from)
            }
            Self::Guarded { control, report, group, .. } => loop {
                match next_report(control, report).await {
                    Some(Report::Exited(code)) => return Ending::Exited(code),
                    Some(Report::Signalled(signal)) => return Ending::Signalled(signal),
                    Some(_) => {}
                    None => {
                        // Somebody killed the guardian; its work falls to this program.
                        signal_group(*group, Signal::KILL);
                        return Ending::Unknown("lost the process that guards it, and was ended".to_owned());
                    }
                }
            },
        }
    }

    /// Waits until the guardian has looked after what the process left, and is gone itself.
    async fn bury(&mut self) {
        if let Self::Guarded { guardian, .. } = self {
            drop(timeout(DRAIN_LIMIT, guardian.wait()).await);
        }
    }

    async fn signal(&mut self, signal: Signal) {
        match self {
            Self::Own { group, .. } => signal_group(*group, signal),
            Self::Guarded { control, .. } => {
                let order = if signal == Signal::KILL { KILL } else { TERMINATE };
                // A guardian that is gone is noticed by `ended`.
                drop(control.write_all(order).await);
            }
        }
    }
}

/// A runtime that is shut down drops the future that watches the process. A guardian notices by itself.
impl Drop for Child {
    fn drop(&mut self) {
        if let Self::Own { group, ended: false, .. } = self {
            signal_group(*group, Signal::KILL);
        }
    }
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        match (status.code(), signal) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Signalled(signal.unwrap_or_default()),
        }
    }
}

/// The next report of a guardian, or `None` at the end of its socket. What was read of a report is kept in `line` when
/// the future is dropped.
async fn next_report(control: &mut BufReader<UnixStream>, line: &mut Vec<u8>) -> Option<Report> {
    let count = control.read_until(b'\n', line).await.unwrap_or(0);
    let report = Report::parse(&String::from_utf8_lossy(line));
    line.clear();
    report.filter(|_| count > 0)
}

async fn read_messages(
    mut stdout: impl AsyncRead + Unpin,
    events: mpsc::Sender<ProcessEvent>,
    log: mpsc::Sender<LogLine>,
    line_too_long: oneshot::Sender<()>,
    process_ended: oneshot::Receiver<()>,
) {
    let (mut framer, mut lines, mut buffer) = (LineFramer::new(), Vec::new(), vec![0; READ_BYTES]);
    // The pipe ends with the process's group. One that a descendant holds open where it cannot be found is left alone.
    let mut abandoned = pin!(async {
        drop(process_ended.await);
        sleep(DRAIN_LIMIT).await;
    });
    loop {
        let count = tokio::select! {
            biased;
            count = stdout.read(&mut buffer) => count.unwrap_or(0),
            () = &mut abandoned => 0,
        };
        match buffer.get(..count) {
            Some(bytes) if count > 0 => framer.push(bytes, &mut lines),
            _ => lines.extend(framer.finish()),
        }
        for line in lines.drain(..) {
            match line {
                // When nobody takes messages any more the process is being ended, and may write on until it does.
                Line::Message(message) => drop(events.send(ProcessEvent::Message(message)).await),
                Line::Noise(text) => drop(log.try_send(LogLine { source: LogSource::StandardOutput, text })),
                Line::TooLong => {
                    let _ = line_too_long.send(());
                    drop(tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await);
                    return;
                }
            }
        }
        if count == 0 {
            return;
        }
    }
}

async fn read_errors(mut stderr: impl AsyncRead + Unpin, log: mpsc::Sender<LogLine>) -> Tail {
    let (mut cutter, mut lines, mut buffer) = (ErrorLines::default(), Vec::new(), vec![0; READ_BYTES]);
    let mut tail = Tail::default();
    loop {
        let count = stderr.read(&mut buffer).await.unwrap_or(0);
        match buffer.get(..count) {
            Some(bytes) if count > 0 => cutter.push(bytes, &mut lines),
            _ => lines.extend(cutter.finish()),
        }
        for text in lines.drain(..) {
            tail.push(&text);
            drop(log.try_send(LogLine { source: LogSource::StandardError, text }));
        }
        if count == 0 {
            return tail;
        }
    }
}

/// Ends, and closes the input, when the queue is dropped or the process takes no more.
async fn write_messages(mut stdin: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<String>) {
    while let Some(message) = messages.recv().await {
        let mut line = if message.contains(['\n', '\r']) { message.replace(['\n', '\r'], " ") } else { message };
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Messages between the pipes and their user, each way; a message can have 16 MiB, so that there are few.
const QUEUE: usize = 4;

/// Log lines between a process and whoever shows them; a flood beyond is dropped.
const LOG_QUEUE: usize = 256;

const READ_BYTES: usize = 64 * 1024;

/// How long the pipes of an ended process are read on.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
