//! Running a program to its end.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

use super::child::{Child, Ending, Started, Stop, start};
use super::command::ServerCommand;
use super::pipes::DRAIN_LIMIT;

/// How much of a program is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// How long it may take.
    pub time: Duration,
    /// The most bytes of its output that are kept: of longer output half of it from the beginning and half from the end.
    pub bytes: usize,
}

/// How a program ended, and what it printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// Its exit code; `None` when it was ended by a signal.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was ended because its time was up.
    pub timed_out: bool,
    /// What it printed on standard output and standard error, in the order it came, with a note where the middle is missing.
    pub text: String,
}

/// Runs a program to its end, with an empty standard input, and ends it with its whole process group when its time is up,
/// when it has ended and left others behind, or when the future is dropped.
///
/// # Errors
///
/// When it cannot be started.
pub async fn run_to_end(command: &ServerCommand, limits: OutputLimits) -> io::Result<CommandOutput> {
    let Started { mut child, stdin, mut stdout, mut stderr } = start(command).await?;
    drop(stdin);
    let mut kept = Kept::new(limits.bytes);
    let (mut one, mut other) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
    let (mut one_open, mut other_open) = (true, true);
    let mut ended = None;
    let mut timed_out = false;
    {
        let mut ending = pin!(end(&mut child, limits.time, command.patience, &mut timed_out));
        let mut abandoned = pin!(sleep(Duration::MAX));
        while one_open || other_open || ended.is_none() {
            tokio::select! {
                ending = &mut ending, if ended.is_none() => {
                    ended = Some(ending);
                    // What left the process group may hold the pipes open for ever.
                    abandoned.set(sleep(DRAIN_LIMIT));
                }
                count = stdout.read(&mut one), if one_open => one_open = kept.push_read(&one, count),
                count = stderr.read(&mut other), if other_open => other_open = kept.push_read(&other, count),
                () = &mut abandoned, if ended.is_some() => break,
            }
        }
    }
    child.bury().await;
    let text = kept.into_text();
    Ok(match ended {
        Some(Ending::Exited(code)) => CommandOutput { code: Some(code), timed_out, text, ..CommandOutput::default() },
        Some(Ending::Signalled(signal)) => {
            CommandOutput { signal: Some(signal), timed_out, text, ..CommandOutput::default() }
        }
        Some(Ending::Unknown(_)) | None => CommandOutput { timed_out, text, ..CommandOutput::default() },
    })
}

/// Waits for the end, and brings it about when the time is up.
async fn end(child: &mut Child, time: Duration, patience: Duration, timed_out: &mut bool) -> Ending {
    if let Ok(ending) = timeout(time, child.ended()).await {
        return ending;
    }
    *timed_out = true;
    for stop in [Stop::Terminate, Stop::Kill] {
        child.stop(stop).await;
        if let Ok(ending) = timeout(patience, child.ended()).await {
            return ending;
        }
    }
    Ending::Unknown("did not end when it was killed".to_owned())
}

/// The beginning and the end of what came.
struct Kept {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
}

impl Kept {
    fn new(limit: usize) -> Self {
        Self { limit, head: Vec::new(), tail: VecDeque::new(), left_out: 0 }
    }

    /// Keeps what was read into a buffer; `false` at the end of the pipe.
    fn push_read(&mut self, buffer: &[u8], count: io::Result<usize>) -> bool {
        let read = buffer.get(..count.unwrap_or(0)).unwrap_or_default();
        self.push(read);
        !read.is_empty()
    }

    fn push(&mut self, bytes: &[u8]) {
        let half = self.limit / 2;
        let (head, rest) = bytes.split_at(bytes.len().min(half.saturating_sub(self.head.len())));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.limit - half);
        self.tail.drain(..excess);
        self.left_out += excess;
    }

    fn into_text(self) -> String {
        let tail = Vec::from(self.tail);
        if self.left_out == 0 {
            let whole = [self.head, tail].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        format!("{head}\n[{} bytes left out]\n{tail}", self.left_out)
    }
}

const READ_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_output_the_beginning_and_the_end_are_kept() {
        let mut kept = Kept::new(10);
        for piece in ["01", "23456", "789", "abc"] {
            kept.push(piece.as_bytes());
        }
        assert_eq!(kept.into_text(), "01234\n[3 bytes left out]\n89abc");
        let mut kept = Kept::new(10);
        kept.push("aé".as_bytes());
        kept.push("x".as_bytes());
        assert_eq!(kept.into_text(), "aéx");
    }
}
