//! The events of one session on their way into messages.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::value::RawValue;

use super::event::SessionEvent;
use super::phase::{At, Phase};
use super::saved::SavedEnd;
use crate::agent::EventKind;
use crate::json::Object;

/// The end of a session's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The sequence of the last message, 0 for none.
    pub(super) sequence: u64,
    pub(super) phase: Phase,
}

impl Tail {
    /// What the last message says.
    pub(super) fn read(sequence: u64, text: &str) -> Self {
        let message = Object::parse(text).ok().filter(|message| message.array("events").is_some()).unwrap_or_default();
        let at = message.string("phase").map(|name| At::from_name(&name)).unwrap_or_default();
        Self { sequence, phase: Phase { at, run_id: message.string("runId") } }
    }
}

/// An event as it is published.
#[derive(Clone, Debug)]
pub(super) struct Said {
    json: String,
    name: String,
    call_id: Option<String>,
    after: Phase,
}

impl Said {
    /// An event that comes after this phase.
    pub(super) fn new(event: &SessionEvent, before: &Phase) -> Self {
        Self {
            json: serde_json::to_string(event).unwrap_or_default(),
            name: event.name().to_owned(),
            call_id: call_of(event).map(str::to_owned),
            after: before.after(event),
        }
    }

    /// The end of a run that was saved.
    pub(super) fn end(end: &SavedEnd<'_>, run_id: Option<String>) -> Self {
        let json = serde_json::to_string(end).unwrap_or_default();
        Self { json, name: "run-end".to_owned(), call_id: None, after: Phase { at: At::Ended, run_id } }
    }

    #[cfg(test)]
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Events that wait to be published. Those that come while a message is on its way go together in the next.
#[derive(Debug)]
pub(super) struct EventQueue {
    worker: String,
    tail: Tail,
    waiting: VecDeque<Said>,
    bytes: usize,
    in_flight: Option<Phase>,
}

impl EventQueue {
    pub(super) const fn new(worker: String, tail: Tail) -> Self {
        Self { worker, tail, waiting: VecDeque::new(), bytes: 0, in_flight: None }
    }

    /// Adds an event; one that no message of so many bytes holds is told of by its name.
    pub(super) fn push(&mut self, event: &SessionEvent, max_bytes: usize) {
        self.push_said(Said::new(event, &self.phase()), max_bytes);
    }

    /// As [`push`](Self::push).
    pub(super) fn push_said(&mut self, mut said: Said, max_bytes: usize) {
        let bytes = said.json.len();
        if bytes > room(max_bytes) {
            let short = TooLong { r#type: "event-too-long", of: &said.name, bytes, call_id: said.call_id.as_deref() };
            said.json = serde_json::to_string(&short).unwrap_or_default();
        }
        self.bytes += said.json.len();
        self.waiting.push_back(said);
    }

    /// The next message: as many events as it holds. `None` when none waits, or while one is on its way.
    pub(super) fn next_message(&mut self, id: &str, max_bytes: usize) -> Option<String> {
        if self.in_flight.is_some() {
            return None;
        }
        let mut events = String::new();
        let mut phase = None;
        while let Some(said) = self.waiting.front() {
            if phase.is_some() && events.len() + 1 + said.json.len() > room(max_bytes) {
                break;
            }
            if phase.is_some() {
                events.push(',');
            }
            events.push_str(&said.json);
            self.bytes = self.bytes.saturating_sub(said.json.len());
            phase = self.waiting.pop_front().map(|said| said.after);
        }
        let phase = phase?;
        let head = Head {
            v: 1,
            id,
            worker: &self.worker,
            previous: self.tail.sequence,
            phase: phase.at.name(),
            run_id: phase.run_id.as_deref(),
            events: &RawValue::from_string(format!("[{events}]")).ok()?,
        };
        let message = serde_json::to_string(&head).ok();
        self.in_flight = Some(phase);
        message
    }

    /// The message that was on its way is stored.
    pub(super) fn published(&mut self, sequence: u64) {
        if let Some(phase) = self.in_flight.take() {
            self.tail = Tail { sequence, phase };
        }
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }

    /// The sequence that the next message builds on.
    pub(super) const fn previous(&self) -> u64 {
        self.tail.sequence
    }

    /// Where a run is as of the last event.
    pub(super) fn phase(&self) -> Phase {
        let waiting = self.waiting.back().map(|said| &said.after);
        waiting.or(self.in_flight.as_ref()).unwrap_or(&self.tail.phase).clone()
    }

    /// Whether all is published.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_none()
    }

    /// Whether more may come; else the run pauses.
    pub(super) const fn has_room(&self) -> bool {
        self.bytes <= MAX_WAITING
    }
}

/// A message of the stream of events.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'head> {
    v: u32,
    id: &'head str,
    worker: &'head str,
    previous: u64,
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'head str>,
    events: &'head RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TooLong<'event> {
    r#type: &'static str,
    of: &'event str,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<&'event str>,
}

fn call_of(event: &SessionEvent) -> Option<&str> {
    match event.kind()? {
        EventKind::ToolInputStart { call_id, .. }
        | EventKind::ToolCall { call_id, .. }
        | EventKind::ApprovalRequest { call_id, .. }
        | EventKind::ApprovalResponse { call_id, .. }
        | EventKind::ToolStart { call_id, .. }
        | EventKind::ToolProgress { call_id, .. }
        | EventKind::SubAgentEvent { call_id, .. } => Some(call_id.as_str()),
        EventKind::ToolResult(result) => Some(result.call_id.as_str()),
        _ => None,
    }
}

const fn room(max_bytes: usize) -> usize {
    max_bytes.saturating_sub(HEAD_BYTES)
}

/// The most bytes of events that wait to be published; then the run pauses.
const MAX_WAITING: usize = 1_000_000;
/// What a message of events says beside its events.
const HEAD_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    fn event(text: &str) -> SessionEvent {
        SessionEvent::read(text).unwrap()
    }

    #[test]
    fn events_that_come_while_a_message_is_on_its_way_go_together_in_the_next() {
        let mut queue = EventQueue::new("w".to_owned(), Tail { sequence: 3, phase: Phase::default() });
        queue.push(&event(r#"{"type":"run-start","runId":"r","step":0}"#), 10_000);
        assert_eq!(
            queue.next_message("a", 10_000).unwrap(),
            r#"{"v":1,"id":"a","worker":"w","previous":3,"phase":"running","runId":"r","events":[{"type":"run-start","runId":"r","step":0}]}"#
        );
        queue.push(&event(r#"{"type":"step-start","runId":"r","step":0}"#), 10_000);
        queue.push(&event(r#"{"type":"run-suspended","runId":"r","step":0}"#), 10_000);
        assert_eq!(queue.next_message("b", 10_000), None, "one message at a time");
        queue.published(9);
        let message = queue.next_message("b", 10_000).unwrap();
        assert!(message.starts_with(r#"{"v":1,"id":"b","worker":"w","previous":9,"phase":"suspended","runId":"r","#));
        assert_eq!(Tail::read(12, &message), Tail { sequence: 12, phase: queue.phase() });
        queue.published(12);
        assert!(queue.is_empty() && queue.previous() == 12);
    }

    #[test]
    fn a_message_holds_what_the_server_takes_and_an_event_that_is_longer_is_told_of() {
        let mut queue = EventQueue::new("w".to_owned(), Tail::default());
        let long = |bytes: usize| {
            let data = "x".repeat(bytes);
            event(&format!(r#"{{"type":"tool-progress","runId":"r","step":0,"callId":"c","data":"{data}"}}"#))
        };
        queue.push(&long(1_500), 3_000);
        queue.push(&long(1_500), 3_000);
        queue.push(&long(4_000), 3_000);
        assert!(queue.next_message("a", 3_000).unwrap().len() < 3_000);
        queue.published(1);
        let message = queue.next_message("b", 3_000).unwrap();
        assert!(message.contains(r#"{"type":"event-too-long","of":"tool-progress","bytes":"#), "{message}");
        assert!(message.contains(r#""callId":"c""#) && message.len() < 3_000);
        queue.published(2);
        assert!(queue.is_empty());
    }
}
