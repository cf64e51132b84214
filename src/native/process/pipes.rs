//! The three pipes of a process, each read or written by a task.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use memchr::memchr2;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::framer::{Line, LineFramer};
use super::queue::{QueueReceiver, QueueSender};
use super::server::{LogLine, LogSource, ProcessEvent};
use super::stderr::{ErrorLines, Tail};
use crate::redaction::redacted;

/// Where lines for people go, without these secrets.
#[derive(Clone)]
pub(super) struct Log {
    pub(super) lines: mpsc::Sender<LogLine>,
    pub(super) secrets: Arc<[String]>,
}

impl Log {
    /// Passes a line on, unless nobody takes them in time, and gives it as it is shown.
    fn tell(&self, source: LogSource, text: String) -> String {
        let text = redacted(&text, &self.secrets).unwrap_or(text);
        drop(self.lines.try_send(LogLine { source, text: text.clone() }));
        text
    }
}

/// Passes on messages until the pipe ends.
pub(super) async fn read_messages(
    mut stdout: impl AsyncRead + Unpin,
    events: QueueSender<ProcessEvent>,
    log: Log,
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
            _ => lines.extend(std::iter::from_fn(|| framer.finish())),
        }
        for line in lines.drain(..) {
            match line {
                // When nobody takes messages any more the process is being ended, and may write on until it does.
                Line::Message(message) => drop(events.send(ProcessEvent::Message(message)).await),
                Line::Noise(text) => drop(log.tell(LogSource::StandardOutput, text)),
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

/// Keeps the end of the error output, which is given when the pipe ends.
pub(super) async fn read_errors(mut stderr: impl AsyncRead + Unpin, log: Log) -> Tail {
    let (mut cutter, mut lines, mut buffer) = (ErrorLines::default(), Vec::new(), vec![0; READ_BYTES]);
    let mut tail = Tail::default();
    loop {
        let count = stderr.read(&mut buffer).await.unwrap_or(0);
        match buffer.get(..count) {
            Some(bytes) if count > 0 => cutter.push(bytes, &mut lines),
            _ => lines.extend(cutter.finish()),
        }
        for text in lines.drain(..) {
            tail.push(&log.tell(LogSource::StandardError, text));
        }
        if count == 0 {
            return tail;
        }
    }
}

/// Ends, and closes the input, when the queue is dropped or the process takes no more. Gives whether it would still have taken some.
pub(super) async fn write_messages(mut stdin: impl AsyncWrite + Unpin, mut messages: QueueReceiver<String>) -> bool {
    while let Some(message) = messages.recv().await {
        let mut lines = to_line(message);
        // What waits behind it goes with it: a write, and waking the process, costs more than copying a short message.
        while lines.len() < JOINED_BYTES
            && let Some(message) = messages.try_recv()
        {
            lines.push_str(&to_line(message));
        }
        if stdin.write_all(lines.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return false;
        }
    }
    true
}

fn to_line(message: String) -> String {
    let is_one_line = memchr2(b'\n', b'\r', message.as_bytes()).is_none();
    let mut line = if is_one_line { message } else { message.replace(['\n', '\r'], " ") };
    line.push('\n');
    line
}

/// How much is put together for one write; a message that is longer is written by itself. What a pipe holds.
const JOINED_BYTES: usize = 64 * 1024;

const READ_BYTES: usize = 64 * 1024;

/// How long the pipes of an ended process are read on.
pub(super) const DRAIN_LIMIT: Duration = Duration::from_secs(2);
