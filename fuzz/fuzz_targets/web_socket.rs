//! The client's side of the shim's WebSocket before a peer that knows the token and sends anything: no panic, each request ends
//! at most once, and nothing is asked for after the end.
#![no_main]

use std::collections::HashSet;

use crablet::json::RawJson;
use crablet::mcp::transport::shim::{Frame, FrameKind, Token, server_proof};
use crablet::mcp::transport::websocket::{Effect, Input, WebSocketOptions, WebSocketTransport};
use crablet::mcp::transport::{Era, Inbound, Outbound, RequestId};
use crablet::Millis;
use libfuzzer_sys::arbitrary::{self, Arbitrary};

#[derive(Arbitrary, Debug)]
enum Step {
    Opened(bool),
    /// The proof that only the shim can give.
    Proof,
    Hello(Option<String>, u8, u16),
    Frame { kind: u8, number: u8, seen: u8, payload: Payload },
    Bytes(Vec<u8>),
    Closed(Option<u16>, String),
    Refused(u16),
    Timer,
    Wait(u32),
    Request(u8),
    Notify,
    Cancel(u8),
    Close,
}

#[derive(Arbitrary, Debug)]
enum Payload {
    Answer(u8),
    Text(String),
    Bytes(Vec<u8>),
}

libfuzzer_sys::fuzz_target!(|steps: Vec<Step>| {
    let token = Token::from_random([1; 9], [2; 32]);
    let options = WebSocketOptions {
        url: "ws://127.0.0.1:6735".to_owned(),
        server: "files".to_owned(),
        token: token.clone(),
        origin: "https://page.invalid".to_owned(),
        resume: None,
    };
    let mut transport = WebSocketTransport::new(options, [3; 16]).expect("a loopback address");
    let mut world = World { now: 1_000, socket: 0, nonce: String::new(), timer: None, ended: HashSet::new(), is_closed: false };
    transport.handle(Millis(world.now), Input::Connect);
    world.take(&mut transport);
    for step in steps {
        if let Some(input) = world.input(step, &token) {
            transport.handle(Millis(world.now), input);
            world.take(&mut transport);
        }
    }
});

struct World {
    now: u64,
    socket: u64,
    nonce: String,
    timer: Option<Millis>,
    ended: HashSet<RequestId>,
    is_closed: bool,
}

impl World {
    fn input(&mut self, step: Step, token: &Token) -> Option<Input> {
        let socket = self.socket;
        let frame = |kind: FrameKind, number: u64, seen: u64, payload: Vec<u8>| Input::Frame {
            socket,
            bytes: Frame { kind, number, seen, payload }.encode(),
        };
        Some(match step {
            Step::Opened(is_right) => {
                Input::Opened { socket, subprotocol: if is_right { "crablet.v1" } else { "x" }.to_owned() }
            }
            Step::Proof => frame(FrameKind::Proof, 0, 0, server_proof(token, &self.nonce).into_bytes()),
            Step::Hello(resume, next, grace) => {
                let resume = resume.unwrap_or_else(|| "r".to_owned());
                let hello = serde_json::json!({ "resume": resume, "next": next, "graceMs": grace });
                frame(FrameKind::Hello, 0, 0, hello.to_string().into_bytes())
            }
            Step::Frame { kind, number, seen, payload } => {
                let payload = match payload {
                    Payload::Answer(id) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into_bytes(),
                    Payload::Text(text) => text.into_bytes(),
                    Payload::Bytes(bytes) => bytes,
                };
                let mut bytes = Frame { kind: FrameKind::Message, number: number.into(), seen: seen.into(), payload }.encode();
                bytes[0] = kind % 12;
                Input::Frame { socket, bytes }
            }
            Step::Bytes(bytes) => Input::Frame { socket, bytes },
            Step::Closed(code, reason) => Input::Closed { socket, code, reason },
            Step::Refused(status) => Input::Refused { socket, status },
            Step::Timer => {
                self.now = self.now.max(self.timer.take()?.0);
                Input::Timer
            }
            Step::Wait(milliseconds) => {
                self.now += u64::from(milliseconds);
                return None;
            }
            Step::Request(id) => {
                // Ids are the client's own, and it uses none twice.
                if !self.ended.insert(RequestId::Number(id.into())) {
                    return None;
                }
                self.ended.remove(&RequestId::Number(id.into()));
                Input::Outbound(Outbound::Request {
                    id: RequestId::Number(id.into()),
                    message: RawJson::parse(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).unwrap(),
                    era: Era::Stateless,
                    headers: Vec::new(),
                    opens_session: false,
                })
            }
            Step::Notify => Input::Outbound(Outbound::Notify {
                message: RawJson::parse(r#"{"jsonrpc":"2.0","method":"n"}"#).unwrap(),
                era: Era::Stateless,
                headers: Vec::new(),
            }),
            Step::Cancel(id) => Input::Outbound(Outbound::Cancel { id: RequestId::Number(id.into()) }),
            Step::Close => Input::Outbound(Outbound::Close),
        })
    }

    fn take(&mut self, transport: &mut WebSocketTransport) {
        while let Some(effect) = transport.poll_effect() {
            match effect {
                Effect::Open { socket, subprotocols, .. } => {
                    assert!(!self.is_closed, "a socket is opened after the end");
                    self.socket = socket;
                    // crablet.proof.KEY.NONCE…: the nonce is what the shim proves itself over.
                    self.nonce = crablet::mcp::transport::shim::ClientProof::parse(&subprotocols[1])
                        .expect("the machine writes what can be read")
                        .nonce()
                        .to_owned();
                }
                Effect::Send { .. } => assert!(!self.is_closed, "something is sent after the end"),
                Effect::SetTimer(at) => self.timer = Some(at),
                Effect::ClearTimer => self.timer = None,
                Effect::Deliver(Inbound::Closed { .. }) => {
                    assert!(!self.is_closed, "it is closed twice");
                    self.is_closed = true;
                }
                Effect::Deliver(Inbound::RequestEnded { id, .. }) => {
                    self.ended.insert(id);
                }
                _ => {}
            }
        }
    }
}
