//! The shim's own log: lines on standard error. No message, no token and no proof is ever written to it.
//!
//! Whoever started the shim may never read its standard error, and a full pipe takes nothing more. Lines therefore go to a
//! thread of their own, and what it cannot write in time is counted and left out: no client waits for a log.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crablet::native::process::{LogLine, LogSource};

use crate::expose::is_hidden;

/// Writes a line. Never blocks.
pub(crate) fn note(text: impl AsRef<str>) {
    LOG.line(&format!("crablet-shim: {}", text.as_ref()));
}

/// Writes why a command failed. Never blocks.
pub(crate) fn note_failure(error: &impl std::fmt::Display) {
    LOG.line(&error.to_string());
}

/// Waits until everything is written, though not long for a reader that takes nothing. The last thing before the end.
pub(crate) fn flush() {
    LOG.flush(FLUSH_LIMIT);
}

/// Shows what a server prints for people.
pub(crate) fn show_server_line(server: &str, line: &LogLine, flood: &mut Flood) {
    let printable = printable(&line.text);
    match line.source {
        LogSource::StandardError => flood.note(&format!("[{server}] {printable}")),
        LogSource::StandardOutput => flood.note(&format!("[{server}, not a message] {printable}")),
    }
}

/// The text on one line of a terminal, where nothing in it changes what stands there already or the direction of writing.
pub(crate) fn printable(text: &str) -> String {
    let shown =
        |character| if is_hidden(character) || character == '\n' { char::REPLACEMENT_CHARACTER } else { character };
    text.chars().map(shown).collect()
}

/// Holds back what strangers and servers could fill a log with.
#[derive(Debug)]
pub(crate) struct Flood {
    since: Instant,
    shown: u32,
    held_back: u32,
}

impl Flood {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), shown: 0, held_back: 0 }
    }

    /// Writes a line, unless too many were written just before.
    pub(crate) fn note(&mut self, text: &str) {
        if self.since.elapsed() > FLOOD_SPAN {
            if self.held_back > 0 {
                note(format!("{} further lines of this kind were not shown", self.held_back));
            }
            *self = Self::new();
        }
        if self.shown >= FLOOD_LINES {
            self.held_back += 1;
            return;
        }
        self.shown += 1;
        note(text);
    }
}

static LOG: LazyLock<Log> = LazyLock::new(|| Log::start(io::stderr()));

/// The way to the thread that writes.
#[derive(Debug)]
struct Log(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    backlog: Mutex<Backlog>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Backlog {
    /// Whole lines that wait to be written.
    text: String,
    /// How many lines found no room after that text.
    lost: u64,
    is_writing: bool,
}

impl Log {
    fn start(output: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        // Without a thread only the log is lost.
        drop(std::thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_all_to(output)));
        Self(shared)
    }

    fn line(&self, text: &str) {
        self.0.backlog().add(text);
        self.0.changed.notify_all();
    }

    fn flush(&self, limit: Duration) {
        let waits = |backlog: &mut Backlog| backlog.is_writing || !backlog.is_empty();
        drop(self.0.changed.wait_timeout_while(self.0.backlog(), limit, waits));
    }
}

impl Shared {
    /// Writes for ever.
    fn write_all_to(&self, mut output: impl Write) {
        let mut backlog = self.backlog();
        loop {
            backlog.is_writing = false;
            self.changed.notify_all();
            backlog =
                self.changed.wait_while(backlog, |backlog| backlog.is_empty()).unwrap_or_else(PoisonError::into_inner);
            let text = backlog.take();
            backlog.is_writing = true;
            drop(backlog);
            // A log that nobody can read any more is no reason to end.
            drop(output.write_all(text.as_bytes()).and_then(|()| output.flush()));
            backlog = self.backlog();
        }
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backlog {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.lost == 0
    }

    fn add(&mut self, line: &str) {
        if self.text.len() + line.len() > BACKLOG_BYTES {
            self.lost += 1;
            return;
        }
        self.tell_lost();
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn take(&mut self) -> String {
        self.tell_lost();
        std::mem::take(&mut self.text)
    }

    /// Says where lines are missing.
    fn tell_lost(&mut self) {
        match std::mem::take(&mut self.lost) {
            0 => {}
            lost => self.text.push_str(&format!("crablet-shim: {lost} lines were lost: nobody read the log in time\n")),
        }
    }
}

/// The most text that waits for a reader of the log: several minutes of a busy shim.
const BACKLOG_BYTES: usize = 256 * 1024;

/// How long the end of the shim waits for a reader of the log.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// What a person can follow; a server in debug mode prints thousands.
const FLOOD_LINES: u32 = 200;
const FLOOD_SPAN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn what_a_server_prints_changes_nothing_that_stands_in_the_log_and_hides_nothing() {
        for (printed, shown) in [
            ("Grüße, 世界 🦀\tand more", "Grüße, 世界 🦀\tand more"),
            ("\u{1b}[2Jgone \u{1b}]0;title\u{7}", "�[2Jgone �]0;title�"),
            ("over\rwritten\ncrablet-shim: forged", "over�written�crablet-shim: forged"),
            ("a \u{202e}turned\u{2069} \u{9b}2J", "a �turned� �2J"),
            ("two\u{2028}lines, zero\u{200b}width, \u{feff}mark", "two�lines, zero�width, �mark"),
        ] {
            assert_eq!(printable(printed), shown);
        }
    }

    #[test]
    fn a_log_that_nobody_reads_holds_up_nothing_and_says_what_is_missing() {
        let (reader, writer) = io::pipe().unwrap();
        let log = Log::start(writer);
        let line = "x".repeat(1023);
        // Twice what fits into the backlog, the text that is being written and the pipe.
        let count = 2 * (2 * BACKLOG_BYTES + 64 * 1024) / 1024;
        (0..count).for_each(|_| log.line(&line));
        log.flush(Duration::ZERO);
        // It is told in parts when the writer begins late.
        let (mut written, mut lost) = (0, 0);
        for read in BufReader::new(reader).lines() {
            let read = read.unwrap();
            match read.strip_prefix("crablet-shim: ") {
                Some(rest) => lost += rest.split(' ').next().unwrap().parse::<usize>().unwrap(),
                None => {
                    assert_eq!(read, line);
                    written += 1;
                }
            }
            if written + lost == count {
                assert!(lost >= count / 2, "{lost}");
                return;
            }
        }
        panic!("what was lost is not told");
    }

    #[test]
    fn a_log_whose_reader_is_gone_is_no_trouble() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let log = Log::start(writer);
        for _ in 0..3 {
            log.line("nobody reads this");
            // Nothing is left waiting.
            log.flush(Duration::MAX);
        }
    }
}
