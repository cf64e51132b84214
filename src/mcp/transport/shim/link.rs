use std::collections::VecDeque;

use super::frame::{Frame, FrameKind, MAX_MESSAGE_BYTES, encode};
use crate::error::{Error, ErrorKind};
use crate::planted::{self, Defect};

/// How many numbered frames may be under way unseen in one direction.
///
/// Enough for a burst of calls; a peer that does not say what it has seen stops its sender here.
pub const WINDOW_FRAMES: usize = 1024;

/// How many bytes of numbered frames may be under way unseen in one direction: two messages of the largest size, so that
/// one can be on its way while the next is taken up.
pub const WINDOW_BYTES: usize = 2 * MAX_MESSAGE_BYTES;

/// One side's book of a numbered connection: what it sent and the peer has not seen yet, and what it has seen.
///
/// The same book is kept by the shim and by its clients. It outlives sockets: after a reconnect [`Link::unseen`] is sent
/// again, and what comes twice is recognised.
#[derive(Debug)]
pub struct Link {
    next_to_send: u64,
    unseen: VecDeque<(FrameKind, Vec<u8>)>,
    unseen_bytes: usize,
    received: u64,
    seen: u64,
    told_seen: u64,
    untold_bytes: usize,
}

/// What a numbered frame is to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The next one: to be taken.
    New,
    /// Seen before: to be dropped.
    Repeated,
}

impl Link {
    /// A book of a new connection: the first frame in each direction has number 1.
    pub fn new() -> Self {
        Self::starting_at(1, 1)
    }

    /// A book of a client that attached to a running process without remembering its numbers.
    pub fn starting_at(next_to_send: u64, next_to_see: u64) -> Self {
        let seen = next_to_see.saturating_sub(1);
        Self {
            next_to_send,
            unseen: VecDeque::new(),
            unseen_bytes: 0,
            received: seen,
            seen,
            told_seen: seen,
            untold_bytes: 0,
        }
    }

    /// Numbers a frame and keeps it until the peer has seen it. Gives the frame [as it is written](Frame::encode): messages
    /// are long, and this copies them once.
    pub fn send(&mut self, kind: FrameKind, payload: Vec<u8>) -> Vec<u8> {
        let number = self.next_to_send;
        self.next_to_send += 1;
        self.told_seen = self.seen;
        self.untold_bytes = 0;
        let written = encode(kind, number, self.seen, &payload);
        self.unseen_bytes += payload.len();
        self.unseen.push_back((kind, payload));
        written
    }

    /// A frame outside the numbers; it too tells what was seen.
    pub fn unnumbered(&mut self, kind: FrameKind, payload: Vec<u8>) -> Frame {
        self.told_seen = self.seen;
        self.untold_bytes = 0;
        Frame { kind, number: 0, seen: self.seen, payload }
    }

    /// Takes note of a numbered frame that came. The peer is told with [`Link::took`] that it can forget the frame.
    ///
    /// # Errors
    ///
    /// `protocol` when frames before it are missing.
    pub fn receive(&mut self, number: u64) -> Result<Receipt, Error> {
        if number <= self.received {
            return Ok(Receipt::Repeated);
        }
        if number != self.received.saturating_add(1) && !planted::is(Defect::AcceptsLostFrames) {
            let message = format!("frame {number} came after frame {}; those between are missing", self.received);
            return Err(Error::new(ErrorKind::Protocol, message));
        }
        self.received = number;
        Ok(Receipt::New)
    }

    /// The oldest frame received and not yet taken has found its taker, and counts as seen from now on. Keeping this
    /// back is what makes a sender wait for a slow taker.
    pub fn took(&mut self, payload_bytes: usize) {
        self.seen = self.received.min(self.seen.saturating_add(1));
        self.untold_bytes = self.untold_bytes.saturating_add(payload_bytes);
    }

    /// Takes note of what the peer has seen, and forgets it.
    ///
    /// # Errors
    ///
    /// `protocol` when the peer has seen what was never sent.
    pub fn peer_has_seen(&mut self, number: u64) -> Result<(), Error> {
        if number >= self.next_to_send {
            let message = format!("the peer has seen frame {number}, but only {} were sent", self.next_to_send - 1);
            return Err(Error::new(ErrorKind::Protocol, message));
        }
        while self.first_unseen() <= number {
            let Some((_, payload)) = self.unseen.pop_front() else { break };
            self.unseen_bytes -= payload.len();
        }
        Ok(())
    }

    /// The frames that the peer has not seen, to be sent again on a new socket.
    pub fn unseen(&mut self) -> Vec<Frame> {
        self.told_seen = self.seen;
        self.untold_bytes = 0;
        let seen = self.seen;
        (self.first_unseen()..)
            .zip(&self.unseen)
            .map(|(number, (kind, payload))| Frame { kind: *kind, number, seen, payload: payload.clone() })
            .collect()
    }

    /// Whether another frame may be sent now: the window is open, or empty, so that no single message is too large for it.
    pub fn has_room_for(&self, payload_bytes: usize) -> bool {
        self.unseen.is_empty()
            || (self.unseen.len() < WINDOW_FRAMES && self.unseen_bytes.saturating_add(payload_bytes) <= WINDOW_BYTES)
    }

    /// Whether so much came without a frame going back that the peer should be told with a [`FrameKind::Seen`] frame.
    pub fn should_tell_seen(&self) -> bool {
        self.seen - self.told_seen >= UNTOLD_FRAMES || self.untold_bytes >= UNTOLD_BYTES
    }

    /// The number of the oldest frame that the peer has not seen, or of the next one.
    pub fn first_unseen(&self) -> u64 {
        self.next_to_send - self.unseen.len() as u64
    }

    /// Whether the peer has seen everything that was sent.
    pub fn has_nothing_unseen(&self) -> bool {
        self.unseen.is_empty()
    }

    /// The last number received of the peer's frames, taken or not.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The last number of the peer's frames that was taken.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

/// A quarter of the window, so that a sender with a one-way stream never has to wait for the news.
const UNTOLD_FRAMES: u64 = (WINDOW_FRAMES / 4) as u64;
const UNTOLD_BYTES: usize = WINDOW_BYTES / 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    #[test]
    fn frames_are_kept_until_they_are_seen() {
        let mut link = Link::new();
        for text in ["a", "b", "c"] {
            link.send(FrameKind::Message, message(text));
        }
        link.peer_has_seen(2).unwrap();
        let again = link.unseen();
        assert_eq!(again.len(), 1);
        assert_eq!((again[0].number, again[0].payload.as_slice()), (3, b"c".as_slice()));
        link.peer_has_seen(1).unwrap();
        link.peer_has_seen(3).unwrap();
        assert!(link.unseen().is_empty());
        assert_eq!(link.peer_has_seen(4).unwrap_err().kind(), ErrorKind::Protocol);
    }

    #[test]
    fn repeated_frames_are_recognised_and_missing_ones_are_an_error() {
        let mut link = Link::new();
        assert_eq!(link.receive(1), Ok(Receipt::New));
        assert_eq!(link.receive(1), Ok(Receipt::Repeated));
        assert_eq!(link.receive(3).unwrap_err().kind(), ErrorKind::Protocol);
        assert_eq!(link.receive(2), Ok(Receipt::New));
        assert_eq!(link.received(), 2);
    }

    #[test]
    fn what_is_not_taken_is_not_seen() {
        let mut link = Link::new();
        link.receive(1).unwrap();
        link.receive(2).unwrap();
        assert_eq!(link.seen(), 0);
        link.took(0);
        assert_eq!(link.seen(), 1);
        assert_eq!(link.receive(2), Ok(Receipt::Repeated));
        (0..3).for_each(|_| link.took(0));
        assert_eq!(link.seen(), 2);
    }

    #[test]
    fn the_window_closes_by_count_and_by_bytes_but_takes_any_single_message() {
        let mut link = Link::new();
        assert!(link.has_room_for(MAX_MESSAGE_BYTES));
        for _ in 0..WINDOW_FRAMES {
            assert!(link.has_room_for(1));
            link.send(FrameKind::Message, vec![0]);
        }
        assert!(!link.has_room_for(1));
        link.peer_has_seen(1).unwrap();
        assert!(link.has_room_for(1));
        assert!(!link.has_room_for(WINDOW_BYTES));
    }

    #[test]
    fn a_one_way_stream_is_told_now_and_then() {
        let mut link = Link::new();
        for number in 1..UNTOLD_FRAMES {
            link.receive(number).unwrap();
            link.took(0);
            assert!(!link.should_tell_seen());
        }
        link.receive(UNTOLD_FRAMES).unwrap();
        link.took(0);
        assert!(link.should_tell_seen());
        assert_eq!(link.unnumbered(FrameKind::Seen, Vec::new()).seen, UNTOLD_FRAMES);
        assert!(!link.should_tell_seen());
        link.receive(UNTOLD_FRAMES + 1).unwrap();
        link.took(UNTOLD_BYTES);
        assert!(link.should_tell_seen());
    }

    proptest! {
        /// Sockets break at any place and lose what was under way; every message arrives once and in order.
        #[test]
        fn nothing_is_lost_or_repeated(breaks in prop::collection::vec((0usize..6, 0usize..6), 0..40)) {
            let (mut sender, mut receiver) = (Link::new(), Link::new());
            let (mut sent, mut arrived) = (0u64, Vec::new());
            for (new, lost) in breaks {
                let mut wire = sender.unseen();
                for _ in 0..new {
                    sent += 1;
                    let frame = sender.send(FrameKind::Message, sent.to_be_bytes().to_vec());
                    wire.push(Frame::decode(frame).unwrap());
                }
                wire.truncate(wire.len().saturating_sub(lost));
                for frame in wire {
                    if receiver.receive(frame.number).unwrap() == Receipt::New {
                        receiver.took(frame.payload.len());
                        arrived.push(u64::from_be_bytes(frame.payload.try_into().unwrap()));
                    }
                }
                // The news of what was seen is lost together with some frames.
                if lost % 2 == 0 {
                    sender.peer_has_seen(receiver.seen()).unwrap();
                }
            }
            for frame in sender.unseen() {
                if receiver.receive(frame.number).unwrap() == Receipt::New {
                    arrived.push(u64::from_be_bytes(frame.payload.try_into().unwrap()));
                }
            }
            prop_assert_eq!(arrived, (1..=sent).collect::<Vec<_>>());
        }
    }
}
