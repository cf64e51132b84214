//! Frames of the shim's WebSocket: any bytes are read or refused and read frames written again are the same bytes; and two
//! books that exchange numbered frames over sockets that break lose and repeat nothing.
#![no_main]

use std::collections::VecDeque;

use crablet::mcp::transport::shim::{Attach, Exit, Frame, FrameKind, Hello, Link, Receipt};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

#[derive(Arbitrary, Debug)]
enum Step {
    /// One side sends a message of so many bytes.
    Send(bool, u8),
    /// What is first on the way to this side arrives.
    Arrive(bool),
    /// This side tells what it has seen.
    Tell(bool),
    /// The socket breaks: what is on the way is lost, and both sides send again what was not seen.
    Break,
    /// A side is told a number by somebody who counts wrongly.
    Wrong(bool, u64, bool),
}

libfuzzer_sys::fuzz_target!(|input: (Vec<u8>, Vec<Step>)| {
    let (bytes, steps) = input;
    if let Ok(frame) = Frame::decode(bytes.clone()) {
        assert_eq!(frame.encode(), bytes);
        if let Ok(text) = frame.text() {
            let _ = (Attach::parse(text), Hello::parse(text), Exit::parse(text));
        }
    }
    exchange(steps);
});

#[derive(Default)]
struct Side {
    link: Link,
    arriving: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    taken: Vec<Vec<u8>>,
}

fn exchange(steps: Vec<Step>) {
    let mut sides = [Side::default(), Side::default()];
    for step in steps {
        match step {
            Step::Send(who, length) => {
                let side = &mut sides[usize::from(who)];
                if side.link.has_room_for(usize::from(length)) {
                    let payload = vec![side.sent.len() as u8; usize::from(length)];
                    side.sent.push(payload.clone());
                    let bytes = side.link.send(FrameKind::Message, payload);
                    sides[usize::from(!who)].arriving.push_back(bytes);
                }
            }
            Step::Arrive(who) => {
                let side = &mut sides[usize::from(who)];
                if let Some(bytes) = side.arriving.pop_front() {
                    take(side, bytes);
                }
            }
            Step::Tell(who) => {
                let bytes = sides[usize::from(who)].link.unnumbered(FrameKind::Seen, Vec::new()).encode();
                sides[usize::from(!who)].arriving.push_back(bytes);
            }
            Step::Break => {
                let seen = sides.each_ref().map(|side| side.link.seen());
                for (who, seen_by_other) in [(0, seen[1]), (1, seen[0])] {
                    sides[who].link.peer_has_seen(seen_by_other).expect("the other side has counted right");
                    let again = sides[who].link.unseen();
                    sides[1 - who].arriving = again.iter().map(Frame::encode).collect();
                }
            }
            Step::Wrong(who, number, is_seen) => {
                // What nobody can have sent or seen is refused. Of a right number the steps above tell.
                let side = &mut sides[usize::from(who)];
                if is_seen && number > side.sent.len() as u64 {
                    assert!(side.link.peer_has_seen(number).is_err());
                } else if !is_seen && number > side.link.received() + 1 {
                    assert!(side.link.receive(number).is_err());
                }
            }
        }
    }
    for (who, other) in [(0, 1), (1, 0)] {
        assert!(sides[other].sent.starts_with(&sides[who].taken), "nothing is lost, repeated or out of order");
    }
}

fn take(side: &mut Side, bytes: Vec<u8>) {
    let frame = Frame::decode(bytes).expect("the other side writes what can be read");
    side.link.peer_has_seen(frame.seen).expect("the other side has counted right");
    if frame.number > 0 && side.link.receive(frame.number).expect("frames come in order") == Receipt::New {
        side.link.took(frame.payload.len());
        side.taken.push(frame.payload);
    }
}
