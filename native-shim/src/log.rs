//! The shim's own log: lines on standard error. No message, no token and no proof is ever written to it.

use std::time::{Duration, Instant};

use crablet::native::process::{LogLine, LogSource};

/// Writes a line.
pub(crate) fn note(text: impl AsRef<str>) {
    eprintln!("crablet-shim: {}", text.as_ref());
}

/// Shows what a server prints for people.
pub(crate) fn show_server_line(server: &str, line: &LogLine, flood: &mut Flood) {
    let printable: String =
        line.text.chars().map(|c| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }).collect();
    match line.source {
        LogSource::StandardError => flood.note(&format!("[{server}] {printable}")),
        LogSource::StandardOutput => flood.note(&format!("[{server}, not a message] {printable}")),
    }
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

/// What a person can follow; a server in debug mode prints thousands.
const FLOOD_LINES: u32 = 200;
const FLOOD_SPAN: Duration = Duration::from_secs(10);
