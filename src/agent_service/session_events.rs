//! The events of a session as a client hears them.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use futures_util::StreamExt as _;

use super::chain::{Failure, Streams, passing};
use super::event::SessionEvent;
use super::names::Place;
use crate::error::{Error, ErrorKind};
use crate::json::Object;

/// From where on events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventsFrom {
    /// All that are kept.
    Start,
    /// Those from now on.
    New,
    /// Those behind the event of this cursor.
    After(Cursor),
}

/// Where an event stands. Written as text, it is what the npm package takes as `after`, and the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    sequence: u64,
    /// The place in the message; -1 before its first event.
    place: i64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.sequence, self.place)
    }
}

impl FromStr for Cursor {
    type Err = Error;

    /// # Errors
    ///
    /// `invalid-input` when the text is no cursor.
    fn from_str(text: &str) -> Result<Self, Error> {
        let read = || {
            let (sequence, place) = text.split_once('.')?;
            Some(Self { sequence: sequence.parse().ok()?, place: place.parse().ok()? })
        };
        read().ok_or_else(|| Error::new(ErrorKind::InvalidInput, format!("{text:?} is no cursor of an event")))
    }
}

/// An event and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedEvent {
    /// The event.
    pub event: SessionEvent,
    /// For [`EventsFrom::After`]: what comes behind this event.
    pub cursor: Cursor,
}

/// The events of a session in their order, without repetition.
pub struct SessionEvents {
    messages: Ordered,
    order: EventOrder,
    events: VecDeque<PlacedEvent>,
}

impl SessionEvents {
    pub(super) async fn open(streams: &Streams, place: &Place, from: EventsFrom) -> Result<Self, Error> {
        let mut patience = streams.patience("read");
        loop {
            match try_open(streams, place, from).await {
                Ok(events) => return Ok(events),
                Err(failure) => patience.after(failure).await?,
            }
        }
    }

    /// The next event, however long it takes. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// `storage` when no more can be read, since the connection was closed. A connection that breaks is waited for.
    pub async fn next(&mut self) -> Result<PlacedEvent, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let message = match self.messages.next().await {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Err(unreadable(&error.to_string())),
                None => return Err(unreadable("the connection was closed")),
            };
            let sequence = message.info().map_err(|error| unreadable(&error.to_string()))?.stream_sequence;
            self.events = self.order.take(sequence, &String::from_utf8_lossy(&message.payload));
        }
    }
}

impl fmt::Debug for SessionEvents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SessionEvents").field("order", &self.order).finish_non_exhaustive()
    }
}

async fn try_open(streams: &Streams, place: &Place, from: EventsFrom) -> Result<SessionEvents, Failure> {
    let deliver_policy = match from {
        EventsFrom::Start => DeliverPolicy::All,
        EventsFrom::New => DeliverPolicy::New,
        EventsFrom::After(cursor) => DeliverPolicy::ByStartSequence { start_sequence: cursor.sequence.max(1) },
    };
    let name = super::nonce().map_err(passing)?;
    let filter_subject = place.subject.clone();
    let config = OrderedConfig { name: Some(name), filter_subject, deliver_policy, ..OrderedConfig::default() };
    let stream = streams.context.get_stream_no_info(&place.stream).await.map_err(passing)?;
    let consumer = stream.create_consumer(config).await.map_err(passing)?;
    // A consumer that the server lost is made anew, and begins at the first message when nothing had come.
    let order = match from {
        EventsFrom::Start => EventOrder::default(),
        EventsFrom::New => {
            EventOrder { behind: consumer.cached_info().delivered.stream_sequence, ..EventOrder::default() }
        }
        EventsFrom::After(cursor) => EventOrder::after(cursor),
    };
    let messages = consumer.messages().await.map_err(passing)?;
    Ok(SessionEvents { messages, order, events: VecDeque::new() })
}

/// Puts events in their order as messages of them come.
#[derive(Debug, Default)]
struct EventOrder {
    /// Messages up to this one are not asked for.
    behind: u64,
    /// The event up to which all was seen.
    seen: Option<Cursor>,
    /// The last message.
    previous: Option<u64>,
}

impl EventOrder {
    fn after(cursor: Cursor) -> Self {
        Self { behind: cursor.sequence.saturating_sub(1), seen: Some(cursor), previous: Some(cursor.sequence) }
    }

    fn take(&mut self, sequence: u64, text: &str) -> VecDeque<PlacedEvent> {
        let mut events = VecDeque::new();
        let Some(message) = Object::parse(text).ok().filter(|_| sequence > self.behind) else { return events };
        let Some(told) = message.array("events") else { return events };
        if let Some(previous) = self.previous
            && sequence != previous
            && message.integer("previous") != Some(previous)
        {
            events.push_back(PlacedEvent { event: SessionEvent::EventsMissed, cursor: Cursor { sequence, place: -1 } });
        }
        self.behind = self.behind.max(sequence.saturating_sub(1));
        self.previous = Some(sequence);
        for (place, event) in (0..).zip(told) {
            let cursor = Cursor { sequence, place };
            let was_seen = self.seen.is_some_and(|seen| seen.sequence == sequence && place <= seen.place);
            if let Some(event) = SessionEvent::read(event.get())
                && !was_seen
            {
                events.push_back(PlacedEvent { event, cursor });
            }
        }
        events
    }
}

fn unreadable(why: &str) -> Error {
    Error::new(ErrorKind::Storage, format!("the events of a session could not be read: {why}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    fn told(order: &mut EventOrder, sequence: u64, previous: u64) -> Vec<String> {
        let text = format!(
            r#"{{"v":1,"previous":{previous},"events":[{{"type":"run-start","runId":"r","step":0}},{{"type":"step-start","runId":"r","step":0}}]}}"#
        );
        let events = order.take(sequence, &text);
        events.iter().map(|placed| format!("{} {}", placed.cursor, placed.event.name())).collect()
    }

    #[test]
    fn events_come_once_and_what_is_gone_is_told() {
        let mut order = EventOrder::default();
        assert_eq!(told(&mut order, 4, 0), ["4.0 run-start", "4.1 step-start"]);
        assert_eq!(told(&mut order, 6, 4), ["6.0 run-start", "6.1 step-start"]);
        assert_eq!(told(&mut order, 9, 8), ["9.-1 events-missed", "9.0 run-start", "9.1 step-start"]);
    }

    #[test]
    fn who_comes_back_goes_on_in_the_middle_of_a_message() {
        let mut order = EventOrder::after("4.0".parse().unwrap());
        assert_eq!(told(&mut order, 2, 0), [""; 0], "a consumer that was made anew began before it");
        assert_eq!(told(&mut order, 4, 2), ["4.1 step-start"]);
        assert_eq!(told(&mut order, 6, 4), ["6.0 run-start", "6.1 step-start"]);
        let mut order = EventOrder::after("4.1".parse().unwrap());
        assert_eq!(told(&mut order, 7, 6), ["7.-1 events-missed", "7.0 run-start", "7.1 step-start"]);
        for text in ["", "4", "4.", "x.1", "4.1.1"] {
            assert_eq!(text.parse::<Cursor>().unwrap_err().kind(), ErrorKind::InvalidInput, "{text}");
        }
    }
}
