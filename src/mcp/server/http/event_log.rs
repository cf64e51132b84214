//! What a session's streams have carried, so that a client whose connection broke misses nothing (revision 2025-11-25,
//! "Resumability and Redelivery").

use std::collections::VecDeque;
use std::fmt;

use crate::json::RawJson;

/// Names a request of a client, or a stream, from its arrival to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exchange(pub u64);

/// Names an event: its stream and its number there. Written `stream-number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The stream.
    pub stream: Exchange,
    /// Its number there; the first event has 1.
    pub number: u64,
}

impl EventId {
    /// Reads what a client gives back in `Last-Event-ID`.
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        let read = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        Some(Self { stream: Exchange(read(stream)?), number: read(number)? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.stream.0, self.number)
    }
}

/// An event that can be sent again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoggedEvent {
    pub(super) id: EventId,
    pub(super) message: RawJson,
    /// Whether the stream ends with it.
    pub(super) is_last: bool,
}

/// The newest events of all streams of a session, up to [`MAX_EVENTS`] and [`MAX_BYTES`], the newest one in any case.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    events: VecDeque<LoggedEvent>,
    bytes: usize,
    /// The newest event of each stream that is no longer here.
    forgotten: Vec<EventId>,
}

impl EventLog {
    pub(super) fn push(&mut self, event: LoggedEvent) {
        self.bytes += event.message.as_str().len();
        self.events.push_back(event);
        while self.events.len() > 1 && (self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES) {
            let Some(event) = self.events.pop_front() else { return };
            self.bytes -= event.message.as_str().len();
            self.forgotten.retain(|forgotten| forgotten.stream != event.id.stream);
            self.forgotten.push(event.id);
            if self.forgotten.len() > MAX_EVENTS {
                self.forgotten.remove(0);
            }
        }
    }

    /// What followed an event on its stream; `None` when some of it is no longer here.
    pub(super) fn after(&self, last: EventId) -> Option<Vec<LoggedEvent>> {
        let is_missing = |forgotten: &EventId| forgotten.stream == last.stream && forgotten.number > last.number;
        if self.forgotten.iter().any(is_missing) {
            return None;
        }
        let follows = |event: &&LoggedEvent| event.id.stream == last.stream && event.id.number > last.number;
        Some(self.events.iter().filter(follows).cloned().collect())
    }

    /// Whether a stream has ended with one of these events.
    pub(super) fn has_end_of(&self, stream: Exchange) -> bool {
        self.events.iter().any(|event| event.id.stream == stream && event.is_last)
    }
}

/// Some minutes of progress reports.
const MAX_EVENTS: usize = 1_024;

/// The most bytes of events of one session, of which there are at most some hundred.
const MAX_BYTES: usize = 4 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn event(stream: u64, number: u64, bytes: usize) -> LoggedEvent {
        let message = RawJson::parse(format!("\"{}\"", "x".repeat(bytes))).unwrap();
        LoggedEvent { id: EventId { stream: Exchange(stream), number }, message, is_last: number == 9 }
    }

    fn numbers(log: &EventLog, stream: u64, number: u64) -> Option<Vec<u64>> {
        let events = log.after(EventId { stream: Exchange(stream), number })?;
        Some(events.iter().map(|event| event.id.number).collect())
    }

    #[test]
    fn only_the_events_of_the_same_stream_come_again() {
        let mut log = EventLog::default();
        for (stream, number) in [(1, 1), (2, 1), (1, 2), (2, 2), (1, 9)] {
            log.push(event(stream, number, 1));
        }
        assert_eq!(numbers(&log, 1, 0), Some(vec![1, 2, 9]));
        assert_eq!(numbers(&log, 1, 2), Some(vec![9]));
        assert_eq!(numbers(&log, 3, 0), Some(vec![]));
        assert!(log.has_end_of(Exchange(1)) && !log.has_end_of(Exchange(2)));
    }

    #[test]
    fn a_stream_with_a_gap_is_not_taken_up() {
        let mut log = EventLog::default();
        (1..=4).for_each(|number| log.push(event(1, number, MAX_BYTES / 3)));
        assert_eq!(numbers(&log, 1, 1), None);
        assert_eq!(numbers(&log, 1, 2), Some(vec![3, 4]));
        log.push(event(2, 1, 2 * MAX_BYTES));
        assert_eq!(numbers(&log, 2, 0), Some(vec![1]));
        assert_eq!(numbers(&log, 1, 3), None);
        for number in 0..2 * MAX_EVENTS as u64 {
            log.push(event(3, number, 1));
        }
        assert!(log.events.len() <= MAX_EVENTS && log.bytes <= MAX_BYTES);
    }

    #[test]
    fn ids_are_read_as_they_were_written() {
        let id = EventId { stream: Exchange(3), number: 14 };
        assert_eq!(EventId::parse(&id.to_string()), Some(id));
        for text in ["", "-", "1", "1-", "-1", "+1-2", "1-2-3", "1-x", "99999999999999999999-1"] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
    }
}
