//! The way of messages from a child's task to the HTTP response that carries them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crablet::json::RawJson;
use tokio::sync::mpsc;

use super::event_log::EventId;

/// A message on its way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    /// The event's name, where the stream can be resumed.
    pub(crate) id: Option<EventId>,
    pub(crate) message: RawJson,
    /// Whether the stream ends with it.
    pub(crate) is_last: bool,
}

/// The end that gives.
#[derive(Clone, Debug)]
pub(crate) struct LaneSender {
    pieces: mpsc::Sender<Piece>,
    state: Arc<LaneState>,
}

/// The end that takes.
#[derive(Debug)]
pub(crate) struct LaneReceiver {
    pub(crate) pieces: mpsc::Receiver<Piece>,
    state: Arc<LaneState>,
}

#[derive(Debug, Default)]
struct LaneState {
    /// Bytes that nobody has taken yet.
    waiting: AtomicUsize,
    /// Whether the response is an event stream by now.
    is_stream: AtomicBool,
}

pub(crate) fn lane() -> (LaneSender, LaneReceiver) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_PIECES);
    let state = Arc::<LaneState>::default();
    (LaneSender { pieces: sender, state: Arc::clone(&state) }, LaneReceiver { pieces: receiver, state })
}

impl LaneSender {
    /// Gives a message; `false` when nobody takes it, or what was given before is not taken fast enough.
    pub(crate) fn give(&self, piece: Piece) -> bool {
        let bytes = piece.message.as_str().len();
        let waiting = self.state.waiting.load(Ordering::Relaxed);
        // One message always goes, however large.
        if waiting > 0 && waiting.saturating_add(bytes) > MAX_WAITING_BYTES {
            return false;
        }
        self.state.waiting.fetch_add(bytes, Ordering::Relaxed);
        self.pieces.try_send(piece).is_ok()
    }

    /// Whether nobody takes any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.pieces.is_closed()
    }

    /// Whether the client has seen the start of an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.state.is_stream.load(Ordering::Relaxed)
    }
}

impl LaneReceiver {
    /// A message was taken.
    pub(crate) fn took(&self, piece: &Piece) {
        self.state.waiting.fetch_sub(piece.message.as_str().len(), Ordering::Relaxed);
    }

    /// The response is an event stream from now on.
    pub(crate) fn becomes_stream(&self) {
        self.state.is_stream.store(true, Ordering::Relaxed);
    }
}

/// The most messages that a reader may be behind; one that is slower is cut off.
const MAX_WAITING_PIECES: usize = 1_024;

/// The most bytes that a reader may be behind: two of the largest messages.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: usize) -> Piece {
        let message = RawJson::parse(format!("\"{}\"", "x".repeat(bytes))).unwrap();
        Piece { id: None, message, is_last: false }
    }

    #[test]
    fn a_reader_that_is_too_slow_is_told_from_one_that_is_not() {
        let (sender, mut receiver) = lane();
        assert!(sender.give(piece(MAX_WAITING_BYTES + 1)));
        assert!(!sender.give(piece(1)));
        let taken = receiver.pieces.try_recv().unwrap();
        receiver.took(&taken);
        assert!((0..MAX_WAITING_PIECES).all(|_| sender.give(piece(1))));
        assert!(!sender.give(piece(1)));
        drop(receiver);
        assert!(!sender.give(piece(1)));
    }
}
