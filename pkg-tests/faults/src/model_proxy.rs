//! The way to the model: what it answers goes over a real socket, and something may happen to it there.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::damage::damage;
use crate::dice::Dice;
use crate::http::{Connection, Head, until_closed, write_answer, write_chunk};
use crate::model::{self, Event};
use crate::plan::Kind;
use crate::script::Wire;
use crate::world::{Exchange, Way, World};

/// Whether the connection may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Again,
    Closed,
}

/// Answers one request of a script's agent.
pub(crate) async fn answer(world: &World, seed: u64, head: &Head, connection: &mut Connection) -> io::Result<Next> {
    let body = head.body_of_request(connection).await?;
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        write_answer(connection, "400 Bad Request", "text/plain", b"the request is no JSON").await?;
        return Ok(Next::Again);
    };
    let exchange = world.exchange(seed, Way::Model);
    let script = world.with(seed, |course| course.script.clone());
    let answers = model::answers_in(script.wire, &request);
    let events = model::events(script.wire, &script.answer(answers, exchange.number));
    Streaming { world, exchange, wire: script.wire, connection }.play(events).await
}

struct Streaming<'a> {
    world: &'a World,
    exchange: Exchange,
    wire: Wire,
    connection: &'a mut Connection,
}

impl Streaming<'_> {
    async fn play(mut self, mut events: Vec<Event>) -> io::Result<Next> {
        let Some(fault) = self.exchange.fault.clone() else {
            self.send_head().await?;
            return self.stream(&events).await;
        };
        let mut dice = fault.dice();
        let at = dice.roll(events.len());
        match fault.kind {
            Kind::Cut => return self.cut(&events, at, &mut dice).await,
            Kind::Stall => return self.stall(&events, at, &mut dice).await,
            Kind::Duplicate => {
                self.note(format!("event {at} twice"));
                events.insert(at, events[at].clone());
            }
            Kind::Corrupt => {
                let how = damage(&mut events[at].bytes, &mut dice);
                self.note(format!("event {at}: {how}"));
            }
            Kind::Reorder => {
                let independent =
                    |pair: &[Event]| matches!((pair[0].part, pair[1].part), (Some(one), Some(other)) if one != other);
                let places: Vec<usize> = (1..events.len()).filter(|at| independent(&events[at - 1..=*at])).collect();
                if !places.is_empty() {
                    let at = places[dice.roll(places.len())];
                    events.swap(at - 1, at);
                    self.note(format!("events {} and {at}", at - 1));
                }
            }
            Kind::Delay => {
                self.note(format!("before event {at}"));
                self.send_head().await?;
                self.chunks(&events[..at]).await?;
                tokio::time::sleep(Duration::from_millis(1 + dice.roll(20) as u64)).await;
                return self.stream(&events[at..]).await;
            }
            Kind::Throttle => {
                // At most a few hundred drops, which on a busy machine are seconds.
                let all: usize = events.iter().map(|event| event.bytes.len()).sum();
                let step = 1 + all / 200 + dice.roll(16);
                self.note(format!("{step} bytes at a time"));
                self.send_head().await?;
                for event in &events {
                    self.completes(event);
                    for piece in event.bytes.chunks(step) {
                        write_chunk(self.connection, piece).await?;
                        tokio::task::yield_now().await;
                    }
                }
                return self.end().await;
            }
        }
        self.send_head().await?;
        self.stream(&events).await
    }

    /// The connection breaks: before the head, in an event, or after it; by a reset, an end, or an end that looks orderly.
    async fn cut(mut self, events: &[Event], at: usize, dice: &mut Dice) -> io::Result<Next> {
        let how = dice.roll(4);
        if how == 0 {
            self.note("before the head");
            return Ok(Next::Closed);
        }
        self.send_head().await?;
        self.chunks(&events[..at]).await?;
        let event = &events[at];
        let part = dice.roll(event.bytes.len());
        self.note(format!("event {at}, byte {part}, way {how}"));
        if part + model::idle_bytes(self.wire) >= event.bytes.len() {
            self.completes(event);
        }
        if part > 0 {
            write_chunk(self.connection, &event.bytes[..part]).await?;
        }
        match how {
            1 => write_chunk(self.connection, b"").await?,
            2 => self.connection.get_ref().set_zero_linger()?,
            _ => {}
        }
        Ok(Next::Closed)
    }

    /// Nothing more comes until the agent gives up.
    async fn stall(mut self, events: &[Event], at: usize, dice: &mut Dice) -> io::Result<Next> {
        if dice.one_in(4) {
            self.note("before the head");
        } else {
            self.send_head().await?;
            self.chunks(&events[..at]).await?;
            self.note(format!("before event {at}"));
        }
        until_closed(self.connection).await;
        Ok(Next::Closed)
    }

    async fn stream(&mut self, events: &[Event]) -> io::Result<Next> {
        self.chunks(events).await?;
        self.end().await
    }

    async fn chunks(&mut self, events: &[Event]) -> io::Result<()> {
        for event in events {
            self.completes(event);
            write_chunk(self.connection, &event.bytes).await?;
        }
        Ok(())
    }

    async fn end(&mut self) -> io::Result<Next> {
        write_chunk(self.connection, b"").await?;
        Ok(Next::Again)
    }

    async fn send_head(&mut self) -> io::Result<()> {
        let media_type = model::media_type(self.wire);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n");
        self.connection.write_all(head.as_bytes()).await?;
        self.connection.flush().await
    }

    /// Notes that from this event on the answer is whole.
    fn completes(&self, event: &Event) {
        if event.completes {
            self.world.with(self.exchange.seed, |course| course.whole_answers.insert(self.exchange.number));
        }
    }

    fn note(&self, place: impl Into<String>) {
        self.world.injected(&self.exchange, place);
    }
}
