//! A process on Unix: the first of a process group, started with or without a guardian.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::timeout;

use super::child::{Ending, Started, Stop};
use super::command::ServerCommand;
use super::control::{KILL, Report, TERMINATE, send_descriptor};
use super::group::signal_group;

pub(super) async fn start(command: &ServerCommand) -> io::Result<Started> {
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
    Ok(Started { child, stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) })
}

async fn start_guarded(mut process: Command) -> io::Result<Started> {
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
        Some(Report::Failed { number, sentence }) => {
            return Err(number.map_or_else(|| io::Error::other(sentence), io::Error::from_raw_os_error));
        }
        _ => return Err(io::Error::other("its guardian ended before it started")),
    };
    let stdin = tokio::net::unix::pipe::Sender::from_owned_fd(input.into())?;
    let child = Child::Guarded { guardian, control, report: Vec::new(), group };
    Ok(Started { child, stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) })
}

fn no_pipes() -> io::Error {
    io::Error::other("the process has no pipes")
}

pub(super) enum Child {
    /// A child of this program.
    Own { child: tokio::process::Child, group: Pid, ended: bool },
    /// A child of a guardian.
    Guarded { guardian: tokio::process::Child, control: BufReader<UnixStream>, report: Vec<u8>, group: Pid },
}

impl Child {
    /// Waits until the process has ended. May be dropped and called again until it gives an ending.
    pub(super) async fn ended(&mut self) -> Ending {
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
    pub(super) async fn bury(&mut self) {
        if let Self::Guarded { guardian, .. } = self {
            drop(timeout(GUARDIAN_LIMIT, guardian.wait()).await);
        }
    }

    /// Tells the whole group to end.
    pub(super) async fn stop(&mut self, stop: Stop) {
        let (signal, order) = match stop {
            Stop::Terminate => (Signal::TERM, TERMINATE),
            Stop::Kill => (Signal::KILL, KILL),
        };
        match self {
            Self::Own { group, .. } => signal_group(*group, signal),
            Self::Guarded { control, .. } => {
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

/// The next report of a guardian, or `None` at the end of its socket. What was read of a report is kept in `line` when
/// the future is dropped.
async fn next_report(control: &mut BufReader<UnixStream>, line: &mut Vec<u8>) -> Option<Report> {
    let count = control.read_until(b'\n', line).await.unwrap_or(0);
    let report = Report::parse(&String::from_utf8_lossy(line));
    line.clear();
    report.filter(|_| count > 0)
}

/// How long a guardian may take to look after what its server left.
const GUARDIAN_LIMIT: Duration = Duration::from_secs(2);
