//! What goes wrong between a session and its store, decided in one place for the stores of both builds.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::damage::damage;
use crate::plan::Kind;
use crate::world::{Exchange, Way, World};

/// A fault of a store that was decided on. It counts once it has [`happened`](Self::happened).
#[derive(Debug)]
pub(crate) struct Mishap {
    exchange: Exchange,
    place: String,
    world: Arc<World>,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WriteAct {
    /// It fails, and nothing is written.
    NotWritten,
    /// It is written, and fails all the same.
    Unacknowledged,
    /// It fails, and so many bytes of it are left, as a process leaves them that was killed while it wrote.
    HalfWritten { bytes: usize },
    /// It is written twice, and the first or the second answer counts.
    Twice { is_first: bool },
    /// It is written, and answered with a version that is so many too high.
    AnotherVersion { further: u64 },
    /// It never answers, whether or not it is written.
    Unanswered { is_written: bool },
    /// It is written after so many milliseconds.
    Late { milliseconds: u64 },
}

/// What becomes of a read.
#[derive(Clone, Debug)]
pub(crate) enum ReadAct {
    /// It fails.
    Failed,
    /// It gives this text.
    Damaged { text: String },
    /// It never answers.
    Unanswered,
}

/// What goes wrong with the next write of a script, to the version after the expected one, with so many bytes.
pub(crate) fn write(world: &Arc<World>, seed: u64, expected: u64, length: usize) -> Option<(WriteAct, Mishap)> {
    let exchange = world.exchange(seed, Way::Store);
    let fault = exchange.fault.clone()?;
    let mut dice = fault.dice();
    let act = match fault.kind {
        Kind::Cut => match dice.roll(3) {
            0 => WriteAct::NotWritten,
            1 => WriteAct::Unacknowledged,
            _ => WriteAct::HalfWritten { bytes: dice.roll(length) },
        },
        Kind::Duplicate => WriteAct::Twice { is_first: dice.one_in(2) },
        Kind::Corrupt => WriteAct::AnotherVersion { further: 1 + dice.roll(3) as u64 },
        Kind::Stall => WriteAct::Unanswered { is_written: dice.one_in(2) },
        Kind::Delay => WriteAct::Late { milliseconds: 1 + dice.roll(10) as u64 },
        Kind::Reorder | Kind::Throttle => return None,
    };
    let place = format!("write to version {expected}: {act:?}");
    Some((act, Mishap { exchange, place, world: world.clone() }))
}

/// What goes wrong with the next read of a script, which has this text to give.
pub(crate) fn read(world: &Arc<World>, seed: u64, text: Option<&str>) -> Option<(ReadAct, Mishap)> {
    let exchange = world.exchange(seed, Way::Store);
    let fault = exchange.fault.clone()?;
    let (act, place) = match fault.kind {
        Kind::Cut => (ReadAct::Failed, "failed".to_owned()),
        Kind::Corrupt => {
            let mut bytes = text?.as_bytes().to_vec();
            let how = damage(&mut bytes, &mut fault.dice());
            (ReadAct::Damaged { text: String::from_utf8_lossy(&bytes).into_owned() }, how)
        }
        Kind::Stall => (ReadAct::Unanswered, "no answer".to_owned()),
        Kind::Duplicate | Kind::Reorder | Kind::Delay | Kind::Throttle => return None,
    };
    Some((act, Mishap { exchange, place: format!("read: {place}"), world: world.clone() }))
}

impl Mishap {
    /// Notes it.
    pub(crate) fn happened(&self) {
        self.world.injected(&self.exchange, self.place.clone());
    }
}

impl WriteAct {
    /// As a store in another language is told it.
    pub(crate) fn to_json(self) -> Value {
        match self {
            Self::NotWritten => json!({ "act": "not-written" }),
            Self::Unacknowledged => json!({ "act": "unacknowledged" }),
            Self::HalfWritten { bytes } => json!({ "act": "half-written", "bytes": bytes }),
            Self::Twice { is_first } => json!({ "act": "twice", "isFirst": is_first }),
            Self::AnotherVersion { further } => json!({ "act": "another-version", "further": further }),
            Self::Unanswered { is_written } => json!({ "act": "unanswered", "isWritten": is_written }),
            Self::Late { milliseconds } => json!({ "act": "late", "milliseconds": milliseconds }),
        }
    }
}

impl ReadAct {
    /// As a store in another language is told it.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Failed => json!({ "act": "failed" }),
            Self::Damaged { text } => json!({ "act": "damaged", "text": text }),
            Self::Unanswered => json!({ "act": "unanswered" }),
        }
    }
}
