//! The way of messages from a server's task to the HTTP response that carries them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_channel::mpsc;
use futures_util::stream::StreamExt;

use crate::mcp::server::http::{Exchange, Lane, Piece};

/// The end that gives.
#[derive(Clone, Debug)]
pub struct LaneSender {
    pieces: mpsc::UnboundedSender<Piece>,
    state: Arc<LaneState>,
}

/// The end that takes.
#[derive(Debug)]
struct LaneReceiver {
    pieces: mpsc::UnboundedReceiver<Piece>,
    state: Arc<LaneState>,
}

#[derive(Debug, Default)]
struct LaneState {
    /// What nobody has taken yet.
    pieces: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether the response is an event stream by now.
    is_stream: AtomicBool,
}

/// A request or a stream of a client, from its arrival to the end of its response. Dropping it says that the client is gone.
#[derive(Debug)]
pub struct OpenExchange {
    /// Its name.
    pub exchange: Exchange,
    lane: LaneReceiver,
    left: mpsc::UnboundedSender<Exchange>,
}

impl OpenExchange {
    /// An exchange, and the way to it. Its name is sent when it is dropped.
    pub fn new(exchange: Exchange, left: mpsc::UnboundedSender<Exchange>) -> (LaneSender, Self) {
        let (sender, pieces) = mpsc::unbounded();
        let state = Arc::<LaneState>::default();
        let lane = LaneReceiver { pieces, state: Arc::clone(&state) };
        (LaneSender { pieces: sender, state }, Self { exchange, lane, left })
    }

    /// The next message; `None` when nothing follows any more.
    pub async fn next(&mut self) -> Option<Piece> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        let piece = self.lane.pieces.poll_next_unpin(context);
        if let Poll::Ready(Some(piece)) = &piece {
            self.lane.state.pieces.fetch_sub(1, Ordering::Relaxed);
            self.lane.state.bytes.fetch_sub(piece.message.as_str().len(), Ordering::Relaxed);
        }
        piece
    }

    /// The response is an event stream from now on.
    pub fn becomes_stream(&self) {
        self.lane.state.is_stream.store(true, Ordering::Relaxed);
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        // Seen as closed before it is told.
        self.lane.pieces.close();
        // A task that has ended need not know.
        let _is_over = self.left.unbounded_send(self.exchange);
    }
}

impl Lane for LaneSender {
    fn give(&self, piece: Piece) -> bool {
        let bytes = piece.message.as_str().len();
        let waiting = self.state.bytes.load(Ordering::Relaxed);
        // One message always goes, however large.
        let is_full = waiting > 0 && waiting.saturating_add(bytes) > MAX_WAITING_BYTES;
        if is_full || self.state.pieces.load(Ordering::Relaxed) >= MAX_WAITING_PIECES {
            return false;
        }
        self.state.pieces.fetch_add(1, Ordering::Relaxed);
        self.state.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.pieces.unbounded_send(piece).is_ok()
    }

    fn is_closed(&self) -> bool {
        self.pieces.is_closed()
    }

    fn is_stream(&self) -> bool {
        self.state.is_stream.load(Ordering::Relaxed)
    }
}

/// The most messages that a reader may be behind; one that is slower is cut off.
const MAX_WAITING_PIECES: usize = 1_024;

/// The most bytes that a reader may be behind: two of the largest messages.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::json::RawJson;

    fn piece(bytes: usize) -> Piece {
        let message = RawJson::parse(format!("\"{}\"", "x".repeat(bytes))).unwrap();
        Piece { id: None, message, is_last: false }
    }

    #[test]
    fn a_reader_that_is_too_slow_is_told_from_one_that_is_not() {
        let (left, mut gone) = mpsc::unbounded();
        let (sender, mut open) = OpenExchange::new(Exchange(7), left);
        assert!(sender.give(piece(MAX_WAITING_BYTES + 1)));
        assert!(!sender.give(piece(1)));
        assert!(open.next().now_or_never().flatten().is_some());
        assert!((0..MAX_WAITING_PIECES).all(|_| sender.give(piece(1))));
        assert!(!sender.give(piece(1)));
        drop(open);
        assert!(sender.is_closed() && !sender.give(piece(1)));
        assert_eq!(gone.try_recv().ok(), Some(Exchange(7)));
    }
}
