use super::*;
use crate::json::RawJson;
use crate::mcp::transport::shim::{MAX_MESSAGE_BYTES, ServerEra, Token, WINDOW_FRAMES, server_proof};
use crate::mcp::transport::{Era, RequestId, Revision};

const START: Millis = Millis(1_700_000_000_000);

fn token() -> Token {
    Token::from_random([1; 9], [2; 32])
}

fn options() -> WebSocketOptions {
    WebSocketOptions {
        url: "ws://127.0.0.1:6735".into(),
        server: "files".into(),
        token: token(),
        origin: "https://app.example".into(),
        resume: None,
    }
}

fn request(id: u64) -> Outbound {
    Outbound::Request {
        id: RequestId::Number(id),
        message: RawJson::parse(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).unwrap(),
        era: Era::Handshake(Revision::V2025_11_25),
        headers: Vec::new(),
        opens_session: false,
    }
}

/// The machine with the shim's side of the frames, a fake network between them and a fake clock.
struct World {
    now: Millis,
    client: WebSocketTransport,
    /// The shim's book of the process; `None` once it is reaped.
    shim: Option<Link>,
    socket: Option<u64>,
    nonce: String,
    timer: Option<Millis>,
    reachable: bool,
    /// What the process got, as texts.
    received: Vec<String>,
    inbound: Vec<Inbound>,
    attached: usize,
}

impl World {
    fn new() -> Self {
        let client = WebSocketTransport::new(options(), [7; 16]).unwrap();
        let mut world = Self {
            now: START,
            client,
            shim: Some(Link::new()),
            socket: None,
            nonce: String::new(),
            timer: None,
            reachable: true,
            received: Vec::new(),
            inbound: Vec::new(),
            attached: 0,
        };
        world.give(Input::Connect);
        world
    }

    fn give(&mut self, input: Input) {
        self.client.handle(self.now, input);
        while let Some(effect) = self.client.poll_effect() {
            match effect {
                Effect::Open { socket, url, subprotocols } => self.open(socket, &url, &subprotocols),
                Effect::Send { socket, bytes } => {
                    if self.socket == Some(socket) {
                        self.shim_takes(Frame::decode(bytes).unwrap());
                    }
                }
                Effect::Close { socket } => {
                    assert_eq!(self.socket.take(), Some(socket));
                }
                Effect::SetTimer(at) => self.timer = Some(at),
                Effect::ClearTimer => self.timer = None,
                Effect::Attached(hello) => {
                    assert_eq!(hello.era, Some(ServerEra::Handshake));
                    self.attached += 1;
                }
                Effect::Deliver(inbound) => self.inbound.push(inbound),
            }
        }
    }

    fn open(&mut self, socket: u64, url: &str, subprotocols: &[String]) {
        assert_eq!(url, "ws://127.0.0.1:6735/servers/files");
        let [chosen, proof] = subprotocols else { panic!("{subprotocols:?}") };
        let proof = ClientProof::parse(proof).unwrap();
        let context = ProofContext { authority: "127.0.0.1:6735", origin: "https://app.example", server: "files" };
        assert!(proof.verify(&token(), context) && proof.is_fresh(self.now));
        assert_ne!(proof.nonce(), self.nonce, "a nonce is used once");
        self.nonce = proof.nonce().to_owned();
        if !self.reachable {
            self.give(Input::Closed { socket, code: None, reason: String::new() });
            return;
        }
        self.socket = Some(socket);
        self.give(Input::Opened { socket, subprotocol: chosen.clone() });
        let payload = server_proof(&token(), &self.nonce).into_bytes();
        self.shim_sends(Frame { kind: FrameKind::Proof, number: 0, seen: 0, payload });
    }

    fn shim_sends(&mut self, frame: Frame) {
        if let Some(socket) = self.socket {
            self.give(Input::Frame { socket, bytes: frame.encode() });
        }
    }

    fn shim_takes(&mut self, frame: Frame) {
        let Some(link) = &mut self.shim else {
            self.shim_sends(Frame { kind: FrameKind::Gone, number: 0, seen: 0, payload: Vec::new() });
            return;
        };
        match frame.kind {
            FrameKind::Attach => {
                let attach = Attach::parse(frame.text().unwrap()).unwrap();
                assert_eq!(attach.resume.is_some(), attach.continues);
                link.peer_has_seen(frame.seen).unwrap();
                let hello = Hello {
                    resume: "r1".into(),
                    id_prefix: "1-".into(),
                    next: link.first_unseen(),
                    grace_ms: 60_000,
                    era: Some(ServerEra::Handshake),
                    initialized: None,
                };
                let mut frames = vec![link.unnumbered(FrameKind::Hello, hello.to_payload())];
                frames.extend(link.unseen());
                frames.into_iter().for_each(|frame| self.shim_sends(frame));
            }
            _ => {
                link.peer_has_seen(frame.seen).unwrap();
                if frame.number > 0 && link.receive(frame.number).unwrap() == Receipt::New {
                    link.took(frame.payload.len());
                    self.received.push(frame.text().unwrap().to_owned());
                }
            }
        }
    }

    fn process_writes(&mut self, text: &str) {
        let frame = self.shim.as_mut().unwrap().send(FrameKind::Message, text.as_bytes().to_vec());
        self.shim_sends(Frame::decode(frame).unwrap());
    }

    fn drop_socket(&mut self) {
        let socket = self.socket.take().unwrap();
        self.give(Input::Closed { socket, code: Some(1006), reason: String::new() });
    }

    /// Lets the clock run to the next timer.
    fn next_timer(&mut self) {
        self.now = self.timer.take().expect("a timer is set").max(self.now);
        self.give(Input::Timer);
    }

    fn closed(&self) -> Option<&Error> {
        self.inbound.iter().find_map(|inbound| match inbound {
            Inbound::Closed { reason, .. } => Some(reason),
            _ => None,
        })
    }

    fn messages(&self) -> Vec<&str> {
        let texts = self.inbound.iter().filter_map(|inbound| match inbound {
            Inbound::Message { message, .. } => Some(message.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

#[test]
fn what_waits_for_the_hello_is_sent_after_it() {
    let mut client = WebSocketTransport::new(options(), [7; 16]).unwrap();
    client.handle(START, Input::Outbound(request(1)));
    assert_eq!(client.poll_effect(), None);
    let mut world = World::new();
    world.give(Input::Outbound(request(1)));
    world.process_writes(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(world.received, [r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#]);
    assert_eq!(world.messages(), [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
    assert_eq!(world.client.resume_id(), Some("r1"));
}

#[test]
fn a_dropped_socket_loses_and_repeats_nothing() {
    let mut world = World::new();
    world.give(Input::Outbound(request(1)));
    world.reachable = false;
    world.drop_socket();
    world.process_writes(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    world.give(Input::Outbound(request(2)));
    world.next_timer();
    assert_eq!(world.messages().len(), 0);
    world.reachable = true;
    world.next_timer();
    assert_eq!(world.attached, 2);
    assert_eq!(world.messages(), [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
    assert_eq!(world.received.len(), 2);
    assert_eq!(world.closed(), None);
}

#[test]
fn pending_calls_fail_when_the_grace_ends() {
    let mut world = World::new();
    world.give(Input::Outbound(request(1)));
    world.reachable = false;
    world.drop_socket();
    while world.closed().is_none() {
        assert!(world.now.since(START) <= 60_000);
        world.next_timer();
    }
    assert_eq!(world.closed().unwrap().kind(), ErrorKind::ConnectionClosed);
    assert_eq!(world.now.since(START), 60_000);
    assert_eq!(world.timer, None);
    world.give(Input::Outbound(request(2)));
    assert!(matches!(world.inbound.last(), Some(Inbound::RequestEnded { id: RequestId::Number(2), reason: Err(_) })));
}

#[test]
fn a_process_that_is_gone_ends_the_connection_at_once() {
    let mut world = World::new();
    world.shim = None;
    world.drop_socket();
    world.next_timer();
    assert_eq!(world.closed().unwrap().kind(), ErrorKind::ConnectionClosed);
}

#[test]
fn an_exit_is_told_with_code_and_error_output() {
    let mut world = World::new();
    world.process_writes(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let exit = Exit { code: Some(3), signal: None, message: "exited with 3".into(), stderr_tail: "boom".into() };
    let frame = world.shim.as_mut().unwrap().send(FrameKind::Exit, exit.to_payload());
    world.shim_sends(Frame::decode(frame).unwrap());
    let [_, Inbound::Closed { reason, exit_code, stderr_tail }] = world.inbound.as_slice() else { panic!() };
    assert_eq!((reason.message(), *exit_code, stderr_tail.as_deref()), ("exited with 3", Some(3), Some("boom")));
    assert_eq!(world.socket, None);
    assert!(world.shim.unwrap().unseen().is_empty(), "the shim knows that the exit was seen");
}

#[test]
fn nothing_is_sent_to_a_program_that_cannot_prove_itself() {
    for frame in [
        Frame { kind: FrameKind::Proof, number: 0, seen: 0, payload: b"bm90IGl0".to_vec() },
        Frame { kind: FrameKind::Hello, number: 0, seen: 0, payload: br#"{"resume":"x","next":1}"#.to_vec() },
        Frame { kind: FrameKind::Message, number: 1, seen: 0, payload: b"{}".to_vec() },
    ] {
        let mut client = WebSocketTransport::new(options(), [7; 16]).unwrap();
        client.handle(START, Input::Connect);
        client.handle(START, Input::Outbound(request(1)));
        client.handle(START, Input::Opened { socket: 1, subprotocol: SUBPROTOCOL.into() });
        client.handle(START, Input::Frame { socket: 1, bytes: frame.encode() });
        let effects: Vec<_> = std::iter::from_fn(|| client.poll_effect()).collect();
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Send { .. })));
        let Some(Effect::Deliver(Inbound::Closed { reason, .. })) = effects.last() else { panic!("{effects:?}") };
        assert_eq!(reason.kind(), ErrorKind::Auth);
    }
}

#[test]
fn a_first_connection_that_fails_says_what_to_do() {
    let mut client = WebSocketTransport::new(options(), [7; 16]).unwrap();
    client.handle(START, Input::Connect);
    client.handle(START, Input::Closed { socket: 1, code: None, reason: String::new() });
    let last = std::iter::from_fn(|| client.poll_effect()).last();
    let Some(Effect::Deliver(Inbound::Closed { reason, .. })) = last else { panic!("{last:?}") };
    assert_eq!(reason.kind(), ErrorKind::Network);
    assert!(reason.message().contains("crablet-shim serve"));
}

#[test]
fn a_refusal_is_final_and_says_why() {
    for (status, kind) in [(401, ErrorKind::Auth), (403, ErrorKind::Auth), (404, ErrorKind::InvalidInput)] {
        let mut client = WebSocketTransport::new(options(), [7; 16]).unwrap();
        client.handle(START, Input::Connect);
        client.handle(START, Input::Refused { socket: 1, status });
        let effects: Vec<_> = std::iter::from_fn(|| client.poll_effect()).collect();
        let [
            Effect::Open { .. },
            Effect::SetTimer(_),
            Effect::ClearTimer,
            Effect::Deliver(Inbound::Closed { reason, .. }),
        ] = effects.as_slice()
        else {
            panic!("{effects:?}")
        };
        assert_eq!((reason.kind(), reason.status()), (kind, Some(status)));
    }
}

#[test]
fn a_silent_socket_counts_as_dead() {
    let mut world = World::new();
    for _ in 0..3 {
        world.now = world.now.after(20_000);
        world.shim_sends(Frame { kind: FrameKind::Ping, number: 0, seen: 0, payload: Vec::new() });
    }
    world.next_timer();
    assert!(world.socket.is_some(), "the timer that was set at first is only early");
    world.next_timer();
    assert_eq!(world.socket, None);
    world.next_timer();
    assert_eq!(world.attached, 2);
}

#[test]
fn a_clock_that_jumps_back_does_not_keep_a_dead_socket() {
    let mut world = World::new();
    world.now = Millis(START.0 - 3_600_000);
    world.timer = None;
    world.give(Input::Timer);
    world.next_timer();
    assert_eq!(world.socket, None);
    assert!(world.now.since(Millis(START.0 - 3_600_000)) <= SILENCE_LIMIT);
}

#[test]
fn the_window_holds_messages_back_and_the_queue_has_an_end() {
    let mut world = World::new();
    // A shim that takes frames and never says what it has seen.
    let socket = world.socket.take().unwrap();
    for id in 0..2 * WINDOW_FRAMES as u64 {
        world.give(Input::Outbound(request(id)));
    }
    assert!(world.inbound.is_empty());
    world.give(Input::Outbound(request(9_999)));
    let Some(Inbound::RequestEnded { reason: Err(error), .. }) = world.inbound.last() else { panic!() };
    assert_eq!(error.kind(), ErrorKind::Limit);
    let seen = Frame { kind: FrameKind::Seen, number: 0, seen: 10, payload: Vec::new() };
    world.give(Input::Frame { socket, bytes: seen.encode() });
    world.inbound.clear();
    for id in 10_000..10_010 {
        world.give(Input::Outbound(request(id)));
    }
    assert!(world.inbound.is_empty());
}

#[test]
fn closing_ends_the_process() {
    let mut world = World::new();
    let socket = world.socket;
    world.client.handle(world.now, Input::Outbound(Outbound::Close));
    let effects: Vec<_> = std::iter::from_fn(|| world.client.poll_effect()).collect();
    let [Effect::Send { bytes, .. }, Effect::Close { socket: closed }, Effect::ClearTimer, Effect::Deliver(_)] =
        effects.as_slice()
    else {
        panic!("{effects:?}")
    };
    assert_eq!(Frame::decode(bytes.clone()).unwrap().kind, FrameKind::End);
    assert_eq!(Some(*closed), socket);
}

#[test]
fn a_request_that_was_cancelled_before_it_was_sent_is_not_sent() {
    let mut world = World::new();
    world.reachable = false;
    world.drop_socket();
    world.give(Input::Outbound(request(1)));
    world.give(Input::Outbound(request(2)));
    world.give(Input::Outbound(Outbound::Cancel { id: RequestId::Number(1) }));
    world.reachable = true;
    world.next_timer();
    assert_eq!(world.received, [r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#]);
}

#[test]
fn a_message_that_is_too_long_fails_alone() {
    let mut world = World::new();
    let Outbound::Request { id, era, headers, opens_session, .. } = request(1) else { panic!() };
    let message = RawJson::from_value(&"x".repeat(MAX_MESSAGE_BYTES)).unwrap();
    world.give(Input::Outbound(Outbound::Request { id, message, era, headers, opens_session }));
    assert!(matches!(world.inbound.as_slice(), [Inbound::RequestEnded { reason: Err(_), .. }]));
    world.give(Input::Outbound(request(2)));
    assert_eq!(world.received.len(), 1);
}

mod random {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_frame_makes_it_panic(frames in prop::collection::vec((0u8..11, 0u64..4, 0u64..4, ".{0,20}"), 0..20)) {
            let mut world = World::new();
            for (kind, number, seen, payload) in frames {
                let mut bytes = vec![kind];
                bytes.extend(number.to_be_bytes());
                bytes.extend(seen.to_be_bytes());
                bytes.extend(payload.as_bytes());
                let socket = world.socket.unwrap_or(1);
                world.client.handle(world.now, Input::Frame { socket, bytes });
                while world.client.poll_effect().is_some() {}
            }
        }
    }
}
