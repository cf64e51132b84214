//! The way to crablet-shim's WebSocket: frames of both directions, and whatever happens to them.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use crablet::mcp::transport::shim::{ClientProof, Frame, FrameKind, ProofContext};
use crablet::native::now;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::damage::damage;
use crate::dice::Dice;
use crate::http::{Connection, Head};
use crate::plan::Kind;
use crate::shim::SERVER;
use crate::world::{Exchange, Way, World};

/// How long a frame waits for the next one, which is to overtake it.
const OVERTAKING: Duration = Duration::from_millis(100);

/// Lets a client through to the shim, and its frames and those of the shim with it.
pub(crate) async fn relay(world: &World, seed: u64, mut head: Head, mut client: Connection) -> io::Result<()> {
    let authority = format!("127.0.0.1:{}", world.shim_port);
    head.first = format!("GET /servers/{SERVER} HTTP/1.1");
    head.set("host", &authority);
    head.remove("sec-websocket-extensions");
    if let Some(offered) = head.header("sec-websocket-protocol").map(str::to_owned) {
        let renewed: Vec<_> = offered.split(',').map(|one| renewed(world, one.trim(), &authority)).collect();
        head.set("sec-websocket-protocol", &renewed.join(", "));
    }
    let mut shim = BufReader::new(TcpStream::connect(&authority).await?);
    shim.write_all(&head.to_bytes()).await?;
    shim.flush().await?;
    let answer = Head::read(&mut shim).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    client.write_all(&answer.to_bytes()).await?;
    client.flush().await?;
    if answer.status() != 101 {
        return Ok(());
    }
    let client = WebSocketStream::from_raw_socket(client, Role::Server, None).await;
    let shim = WebSocketStream::from_raw_socket(shim, Role::Client, None).await;
    Relaying { world, seed, directions: [Direction::default(), Direction::default()] }.run(client, shim).await;
    Ok(())
}

/// The same proof, made now: the clock of a script's client is ahead once a stall has made it jump (see `clock`), and the
/// shim's is not.
fn renewed(world: &World, subprotocol: &str, authority: &str) -> String {
    let context = ProofContext { authority, origin: "", server: SERVER };
    match (ClientProof::parse(subprotocol), &world.shim_token) {
        (Some(proof), Some(token)) => match nonce(proof.nonce()) {
            Some(nonce) => ClientProof::new(token, nonce, now(), context).to_subprotocol(),
            None => subprotocol.to_owned(),
        },
        _ => subprotocol.to_owned(),
    }
}

/// Sixteen bytes from their base64url.
fn nonce(text: &str) -> Option<[u8; 16]> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = text.bytes().try_fold(0_u128, |bits, letter| {
        let value = ALPHABET.iter().position(|own| *own == letter)? as u128;
        Some((bits << 6) | value)
    });
    // Twenty-two letters hold 132 bits: the first four are shifted out above, and are taken from the first letter here.
    let first = ALPHABET.iter().position(|own| Some(*own) == text.bytes().next())? as u128;
    let whole = (bits? >> 4) | ((first >> 2) << 124);
    Some(whole.to_be_bytes())
}

type Socket = WebSocketStream<Connection>;

/// What happens next to the sockets.
#[derive(PartialEq, Eq)]
enum Fate {
    GoOn,
    Break,
    Stall,
}

/// One direction of frames.
#[derive(Default)]
struct Direction {
    /// A frame that waits to be overtaken, and whether only the contents change places.
    held: Option<(Vec<u8>, Exchange)>,
    /// How many of the next frames come slowly.
    slow: u32,
}

struct Relaying<'a> {
    world: &'a World,
    seed: u64,
    directions: [Direction; 2],
}

impl Relaying<'_> {
    async fn run(mut self, mut client: Socket, mut shim: Socket) {
        loop {
            let is_holding = self.directions.iter().any(|direction| direction.held.is_some());
            let (way, message) = tokio::select! {
                message = client.next() => (Way::ToShim, message),
                message = shim.next() => (Way::FromShim, message),
                () = tokio::time::sleep(OVERTAKING), if is_holding => {
                    // Nothing came that could overtake: what was held goes on, and nothing has happened.
                    for (way, socket) in [(Way::ToShim, &mut shim), (Way::FromShim, &mut client)] {
                        if let Some((bytes, _)) = self.direction(way).held.take()
                            && socket.send(Message::binary(bytes)).await.is_err()
                        {
                            return;
                        }
                    }
                    continue;
                }
            };
            let to = if matches!(way, Way::ToShim) { &mut shim } else { &mut client };
            let bytes = match message {
                Some(Ok(Message::Binary(bytes))) => bytes.to_vec(),
                Some(Ok(Message::Close(close))) => {
                    // The receiver is told why; then both are over.
                    let _gone = to.send(Message::Close(close)).await;
                    return;
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return,
            };
            let mut out = VecDeque::new();
            let fate = self.pass(way, bytes, &mut out).await;
            for frame in out {
                if to.send(Message::binary(frame)).await.is_err() {
                    return;
                }
            }
            match fate {
                Fate::GoOn => {}
                Fate::Break => return,
                Fate::Stall => {
                    // Nothing is passed on any more; the client gives up at last.
                    while client.next().await.is_some_and(|message| message.is_ok()) {}
                    return;
                }
            }
        }
    }

    fn direction(&mut self, way: Way) -> &mut Direction {
        &mut self.directions[usize::from(matches!(way, Way::FromShim))]
    }

    /// One frame, and what goes on in its place.
    async fn pass(&mut self, way: Way, mut bytes: Vec<u8>, out: &mut VecDeque<Vec<u8>>) -> Fate {
        let exchange = self.world.exchange(self.seed, way);
        if self.direction(way).slow > 0 {
            self.direction(way).slow -= 1;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if let Some((first, held)) = self.direction(way).held.take() {
            self.overtake(first, &held, bytes, out);
            return Fate::GoOn;
        }
        let Some(fault) = exchange.fault.clone() else {
            out.push_back(bytes);
            return Fate::GoOn;
        };
        let mut dice = fault.dice();
        let kind = Frame::decode(bytes.clone()).map_or(FrameKind::Unknown(0), |frame| frame.kind);
        let is_numbered = matches!(kind, FrameKind::Message | FrameKind::Exit);
        match fault.kind {
            Kind::Cut => match dice.roll(3) {
                0 if is_numbered => self.note(&exchange, format!("{kind:?} lost")),
                1 => {
                    self.note(&exchange, format!("socket broken behind {kind:?}"));
                    out.push_back(bytes);
                    return Fate::Break;
                }
                _ => {
                    self.note(&exchange, format!("socket broken before {kind:?}"));
                    return Fate::Break;
                }
            },
            Kind::Duplicate => {
                self.note(&exchange, format!("{kind:?} twice"));
                out.push_back(bytes.clone());
                out.push_back(bytes);
            }
            Kind::Reorder if is_numbered => self.direction(way).held = Some((bytes, exchange)),
            Kind::Reorder => out.push_back(bytes),
            Kind::Corrupt => {
                let how = corrupt(&mut bytes, &mut dice);
                self.note(&exchange, format!("{kind:?}: {how}"));
                out.push_back(bytes);
            }
            Kind::Stall => {
                self.note(&exchange, format!("before {kind:?}"));
                return Fate::Stall;
            }
            Kind::Delay => {
                self.note(&exchange, format!("before {kind:?}"));
                tokio::time::sleep(Duration::from_millis(1 + dice.roll(20) as u64)).await;
                out.push_back(bytes);
            }
            Kind::Throttle => {
                self.note(&exchange, "the next frames come slowly");
                self.direction(way).slow = 10;
                out.push_back(bytes);
            }
        }
        Fate::GoOn
    }

    /// Two frames change places: with their numbers, which the receiver must notice, or, where they are about different
    /// calls, without, which is nobody's fault.
    fn overtake(&self, first: Vec<u8>, held: &Exchange, second: Vec<u8>, out: &mut VecDeque<Vec<u8>>) {
        let (Ok(mut one), Ok(mut other)) = (Frame::decode(first.clone()), Frame::decode(second.clone())) else {
            out.extend([first, second]);
            return;
        };
        let are_independent = matches!((call_of(&one), call_of(&other)), (Some(one), Some(other)) if one != other);
        let is_fair = are_independent && held.fault.as_ref().is_some_and(|fault| fault.dice().one_in(2));
        if is_fair {
            std::mem::swap(&mut one.payload, &mut other.payload);
            self.note(held, format!("the messages {} and {}", one.number, other.number));
            out.extend([one.encode(), other.encode()]);
        } else {
            self.note(held, format!("the frames {} and {}", one.number, other.number));
            out.extend([second, first]);
        }
    }

    fn note(&self, exchange: &Exchange, place: impl Into<String>) {
        self.world.injected(exchange, place);
    }
}

/// The id of the call that a message asks for or answers.
fn call_of(frame: &Frame) -> Option<Value> {
    let message: Value = serde_json::from_slice(&frame.payload).ok()?;
    message.get("id").filter(|id| !id.is_null()).cloned()
}

/// Another number, another number seen, another kind, or damaged contents. Says which.
fn corrupt(bytes: &mut Vec<u8>, dice: &mut Dice) -> String {
    const HEADER: usize = 16;
    match dice.roll(5) {
        0 => {
            let at = 1 + dice.roll(7);
            bytes[at] ^= 1 + dice.roll(255) as u8;
            format!("byte {at} of its number")
        }
        1 => {
            let at = 8 + dice.roll(8);
            bytes[at] ^= 1 + dice.roll(255) as u8;
            format!("byte {at} of the number seen")
        }
        2 => {
            bytes[0] = dice.roll(256) as u8;
            format!("of kind {}", bytes[0])
        }
        _ if bytes.len() > HEADER => {
            let mut payload = bytes.split_off(HEADER);
            let how = damage(&mut payload, dice);
            bytes.extend(payload);
            how
        }
        _ => {
            bytes.pop();
            "short of a byte".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use crablet::mcp::transport::shim::Token;

    use super::*;

    #[test]
    fn a_nonce_is_read_as_it_was_written() {
        let context = ProofContext { authority: "127.0.0.1:1", origin: "", server: "ledger" };
        for bytes in [[0xff; 16], [0; 16], std::array::from_fn(|at| at as u8 * 15 + 3)] {
            let proof = ClientProof::new(&Token::from_random([1; 9], [2; 32]), bytes, now(), context);
            assert_eq!(nonce(proof.nonce()), Some(bytes));
        }
    }
}
