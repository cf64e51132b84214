//! The way to the MCP server over Streamable HTTP: crablet-shim's HTTP front, and whatever happens to requests and answers
//! before they arrive.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::damage::damage;
use crate::dice::Dice;
use crate::http::{Connection, Head, until_closed, write_answer, write_chunk};
use crate::model_proxy::Next;
use crate::plan::Kind;
use crate::shim::SERVER;
use crate::world::{Exchange, Way, World};

/// How long an answer waits for another one to overtake it.
const OVERTAKING: Duration = Duration::from_millis(150);

/// Longer than the server takes for anything.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Passes one request on, and its answer back.
pub(crate) async fn relay(world: &World, seed: u64, mut head: Head, connection: &mut Connection) -> io::Result<Next> {
    let body = head.body_of_request(connection).await?;
    let message = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    head.first = format!("{} /mcp/{SERVER} HTTP/1.1", head.method());
    head.set("host", &format!("127.0.0.1:{}", world.shim_port));
    head.set("connection", "close");
    head.remove("transfer-encoding");
    head.set("content-length", &body.len().to_string());
    let is_exchange = !message["id"].is_null() && message["method"].is_string();
    if head.method() == "GET" || message["method"] == "subscriptions/listen" {
        return stream(world, &head, &body, connection).await;
    }
    if !is_exchange {
        let mut answer = Answer::fetch(world, &head, &body).await?;
        return answer.send(connection).await;
    }
    let exchange = world.exchange(seed, Way::McpHttp);
    let next = Relaying { world, exchange, connection }.run(&head, &body).await;
    world.with(seed, |course| course.passed.clone()).notify_waiters();
    next
}

/// An answer that goes on until somebody ends it.
async fn stream(world: &World, head: &Head, body: &[u8], connection: &mut Connection) -> io::Result<Next> {
    let mut upstream = open(world, head, body).await?;
    let (mut from_client, mut to_client) = tokio::io::split(connection);
    let mut waste = tokio::io::sink();
    tokio::select! {
        copied = tokio::io::copy_buf(&mut upstream, &mut to_client) => { copied?; to_client.flush().await?; }
        gone = tokio::io::copy(&mut from_client, &mut waste) => { gone?; }
    }
    Ok(Next::Closed)
}

async fn open(world: &World, head: &Head, body: &[u8]) -> io::Result<Connection> {
    let mut upstream = BufReader::new(TcpStream::connect(("127.0.0.1", world.shim_port)).await?);
    upstream.write_all(&[&head.to_bytes(), body].concat()).await?;
    upstream.flush().await?;
    Ok(upstream)
}

/// A whole answer of the server.
struct Answer {
    head: Head,
    /// The body: the events of a stream, or all in one.
    pieces: Vec<Vec<u8>>,
}

impl Answer {
    async fn fetch(world: &World, head: &Head, body: &[u8]) -> io::Result<Self> {
        let fetching = async {
            let mut upstream = open(world, head, body).await?;
            let head = Head::read(&mut upstream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let body = head.body_of_answer(&mut upstream).await?;
            Ok::<_, io::Error>((head, body))
        };
        let (mut head, body) =
            tokio::time::timeout(ANSWER_LIMIT, fetching).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let is_stream = head.header("content-type").is_some_and(|media| media.starts_with("text/event-stream"));
        for name in ["content-length", "transfer-encoding", "connection"] {
            head.remove(name);
        }
        Ok(Self { head, pieces: if is_stream { events(&body) } else { vec![body] } })
    }

    async fn send(&mut self, connection: &mut Connection) -> io::Result<Next> {
        self.send_head(connection).await?;
        self.send_pieces(connection, 0..self.pieces.len()).await?;
        self.end(connection).await
    }

    async fn send_head(&mut self, connection: &mut Connection) -> io::Result<()> {
        if self.is_empty() {
            self.head.set("content-length", "0");
        } else {
            self.head.set("transfer-encoding", "chunked");
        }
        connection.write_all(&self.head.to_bytes()).await?;
        connection.flush().await
    }

    async fn send_pieces(&self, connection: &mut Connection, range: std::ops::Range<usize>) -> io::Result<()> {
        for piece in self.pieces[range].iter().filter(|piece| !piece.is_empty()) {
            write_chunk(connection, piece).await?;
        }
        Ok(())
    }

    async fn end(&self, connection: &mut Connection) -> io::Result<Next> {
        if !self.is_empty() {
            write_chunk(connection, b"").await?;
        }
        Ok(Next::Again)
    }

    fn is_empty(&self) -> bool {
        self.pieces.iter().all(Vec::is_empty)
    }

    /// The same answer as a stream of events, which every client must take too.
    fn into_stream(mut self) -> Self {
        if let [whole] = self.pieces.as_slice()
            && serde_json::from_slice::<Value>(whole).is_ok()
        {
            self.pieces = vec![[b"event: message\ndata: ", whole.as_slice(), b"\n\n"].concat()];
            self.head.set("content-type", "text/event-stream");
        }
        self
    }

    /// Puts another id into the first message.
    fn misaddress(&mut self) -> Option<()> {
        let piece = self.pieces.iter_mut().find(|piece| !piece.is_empty())?;
        let text = String::from_utf8(piece.clone()).ok()?;
        let (before, data) = text.split_at(text.find('{')?);
        let mut message = serde_json::from_str::<Value>(data.trim_end()).ok()?;
        message["id"] = json!("nobody's");
        *piece = format!("{before}{message}\n\n").into_bytes();
        Some(())
    }
}

/// Splits a stream behind each event.
fn events(body: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(body);
    text.split_inclusive("\n\n").map(|event| event.as_bytes().to_vec()).collect()
}

struct Relaying<'a> {
    world: &'a World,
    exchange: Exchange,
    connection: &'a mut Connection,
}

impl Relaying<'_> {
    async fn run(self, head: &Head, body: &[u8]) -> io::Result<Next> {
        let Some(fault) = self.exchange.fault.clone() else {
            return Answer::fetch(self.world, head, body).await?.send(self.connection).await;
        };
        let mut dice = fault.dice();
        if fault.kind == Kind::Cut && dice.one_in(4) {
            self.note("before the request arrived");
            return Ok(Next::Closed);
        }
        if fault.kind == Kind::Corrupt && dice.one_in(6) {
            // Says that the session is not known: who says so has not taken the request, so it may be sent again.
            self.note("404 before the request arrived");
            write_answer(self.connection, "404 Not Found", "text/html", b"<p>Nothing is here</p>").await?;
            return Ok(Next::Again);
        }
        let mut answer = Answer::fetch(self.world, head, body).await?;
        let at = dice.roll(answer.pieces.len());
        match fault.kind {
            Kind::Cut => self.cut(answer, at, &mut dice).await,
            Kind::Stall => {
                if dice.one_in(2) {
                    self.note("before the head");
                } else {
                    answer.send_head(self.connection).await?;
                    answer.send_pieces(self.connection, 0..at).await?;
                    self.note(format!("before piece {at}"));
                }
                until_closed(self.connection).await;
                Ok(Next::Closed)
            }
            Kind::Duplicate => {
                let mut answer = answer.into_stream();
                if !answer.is_empty() {
                    let at = at.min(answer.pieces.len() - 1);
                    answer.pieces.insert(at, answer.pieces[at].clone());
                    self.note(format!("piece {at} twice"));
                }
                answer.send(self.connection).await
            }
            Kind::Reorder => {
                let passed = self.world.with(self.exchange.seed, |course| course.passed.clone());
                if tokio::time::timeout(OVERTAKING, passed.notified()).await.is_ok() {
                    self.note("overtaken by another answer");
                }
                answer.send(self.connection).await
            }
            Kind::Corrupt => self.corrupt(answer, at, &mut dice).await,
            Kind::Delay => {
                self.note("before the head");
                tokio::time::sleep(Duration::from_millis(1 + dice.roll(20) as u64)).await;
                answer.send(self.connection).await
            }
            Kind::Throttle => {
                let step = 1 + dice.roll(64);
                self.note(format!("{step} bytes at a time"));
                answer.pieces = answer.pieces.iter().flat_map(|piece| piece.chunks(step)).map(<[u8]>::to_vec).collect();
                answer.send(self.connection).await
            }
        }
    }

    async fn cut(self, mut answer: Answer, at: usize, dice: &mut Dice) -> io::Result<Next> {
        let how = dice.roll(3);
        if how == 0 {
            self.note("before the head");
            return Ok(Next::Closed);
        }
        answer.send_head(self.connection).await?;
        answer.send_pieces(self.connection, 0..at).await?;
        let piece = &answer.pieces[at];
        let part = dice.roll(piece.len());
        if part > 0 {
            write_chunk(self.connection, &piece[..part]).await?;
        }
        self.note(format!("piece {at}, byte {part}, way {how}"));
        if how == 2 && !answer.is_empty() {
            // An end that looks orderly.
            write_chunk(self.connection, b"").await?;
        }
        Ok(Next::Closed)
    }

    async fn corrupt(self, mut answer: Answer, at: usize, dice: &mut Dice) -> io::Result<Next> {
        match dice.roll(6) {
            0 if answer.misaddress().is_some() => self.note("another id"),
            1 => {
                let status = ["500 Oops", "502 Bad Gateway"][dice.roll(2)];
                self.note(format!("status {status}"));
                write_answer(self.connection, status, "text/html", b"<p>Something is wrong</p>").await?;
                return Ok(Next::Again);
            }
            2 => {
                self.note("HTML in its place");
                write_answer(self.connection, "200 OK", "text/html", b"<p>Please log in</p>").await?;
                return Ok(Next::Again);
            }
            _ => {
                let how = damage(&mut answer.pieces[at], dice);
                self.note(format!("piece {at}: {how}"));
            }
        }
        answer.send(self.connection).await
    }

    fn note(&self, place: impl Into<String>) {
        self.world.injected(&self.exchange, place);
    }
}
