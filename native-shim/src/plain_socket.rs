//! A client that speaks plain `mcp`: one JSON-RPC message a text frame, no numbers, and no way back to its process once the
//! socket has ended. To the rest of the shim it is a client like the others.

use std::pin::pin;

use crablet::mcp::transport::shim::{Attach, Exit, Frame, FrameKind, Link, MAX_MESSAGE_BYTES, Receipt};
use futures_util::{Sink, SinkExt, Stream, StreamExt, sink, stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::config::Server;
use crate::sessions::Sessions;
use crate::socket::{Client, Purpose, serve_frames};

/// The subprotocol of such a client.
pub(crate) const PLAIN_SUBPROTOCOL: &str = "mcp";

/// What stands before the token among the subprotocols that it offers.
pub(crate) const TOKEN_PREFIX: &str = "mcp.auth.";

/// Serves a socket until it ends.
pub(crate) async fn serve_plain_socket<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    client: Client,
    server: &Server,
    sessions: &Sessions,
) {
    let (to_client, from_shim) = mpsc::channel(QUEUE);
    let (to_shim, mut from_client) = mpsc::channel(QUEUE);
    let (mut out, messages) = socket.split();
    // Each of both ends when the other has: it owns one end of either channel.
    let serve = async move {
        let frames = stream::poll_fn(|context| from_client.poll_recv(context));
        let out = sink::unfold(to_client, async |to_client: mpsc::Sender<Vec<u8>>, frame: Vec<u8>| {
            to_client.send(frame).await.map(|()| to_client)
        });
        serve_frames(pin!(out), frames, client, Purpose::Use(server), sessions).await;
    };
    let translate = async move {
        let mut client = Translator { link: Link::new(), to_shim, from_shim };
        let close = client.run(&mut out, pin!(messages)).await;
        // The process has no other client that could come back to it.
        client.tell(FrameKind::End).await;
        drop(client);
        // A client that is gone already is not told.
        drop(out.send(Message::Close(close)).await);
        drop(out.close().await);
    };
    tokio::join!(serve, translate);
}

/// The client's side of the numbered frames.
struct Translator {
    link: Link,
    to_shim: mpsc::Sender<Frame>,
    from_shim: mpsc::Receiver<Vec<u8>>,
}

impl Translator {
    /// Translates until one side ends, and gives what the client is told then.
    async fn run(
        &mut self,
        out: &mut (impl Sink<Message> + Unpin),
        mut messages: impl Stream<Item = tungstenite::Result<Message>> + Unpin,
    ) -> Option<CloseFrame> {
        let payload = Attach::default().to_payload();
        self.to_shim.send(Frame { kind: FrameKind::Attach, number: 0, seen: 0, payload }).await.ok()?;
        let mut is_attached = false;
        let mut waiting: Option<String> = None;
        loop {
            if is_attached && let Some(text) = waiting.take_if(|text| self.link.has_room_for(text.len())) {
                let frame = self.link.send(FrameKind::Message, text.into_bytes());
                self.to_shim.send(Frame::decode(frame).ok()?).await.ok()?;
                continue;
            }
            tokio::select! {
                frame = self.from_shim.recv() => {
                    let frame = Frame::decode(frame?).ok()?;
                    is_attached |= frame.kind == FrameKind::Hello;
                    match self.take(frame)? {
                        Taken::Nothing => {}
                        Taken::Message(message) => out.feed(message).await.ok()?,
                        Taken::End(close) => return Some(close),
                    }
                    // What waits goes out in the same write.
                    if self.from_shim.is_empty() {
                        out.flush().await.ok()?;
                    }
                    if self.link.should_tell_seen() {
                        self.tell(FrameKind::Seen).await;
                    }
                }
                message = messages.next(), if waiting.is_none() => match message?.ok()? {
                    Message::Text(text) if text.len() > MAX_MESSAGE_BYTES => {
                        return Some(closing(CloseCode::Size, "a message is longer than 16 MiB"));
                    }
                    Message::Text(text) => waiting = Some(text.to_string()),
                    Message::Binary(_) => {
                        return Some(closing(CloseCode::Unsupported, "one JSON-RPC message a text frame is expected"));
                    }
                    Message::Close(_) => return None,
                    _ => {}
                },
            }
        }
    }

    /// What a frame of the shim is to the client; `None` when the numbers are wrong.
    fn take(&mut self, Frame { kind, number, seen, payload }: Frame) -> Option<Taken> {
        self.link.peer_has_seen(seen).ok()?;
        if number > 0 && self.link.receive(number).ok()? == Receipt::New {
            self.link.took(payload.len());
        }
        let text = String::from_utf8(payload).ok()?;
        Some(match kind {
            FrameKind::Message => Taken::Message(Message::text(text)),
            FrameKind::Exit => {
                let exit = Exit::parse(&text).ok()?;
                Taken::End(closing(CloseCode::Library(EXITED), &exit.message))
            }
            FrameKind::Gone => Taken::End(closing(CloseCode::Library(GONE), &text)),
            FrameKind::Ping => {
                // The answer to a frame goes with the next one; a client that is gone fails this one.
                drop(self.to_shim.try_send(self.link.unnumbered(FrameKind::Seen, Vec::new())));
                Taken::Message(Message::Ping(Vec::new().into()))
            }
            _ => Taken::Nothing,
        })
    }

    async fn tell(&mut self, kind: FrameKind) {
        // A shim that takes nothing more is about to say why.
        let frame = self.link.unnumbered(kind, Vec::new());
        drop(self.to_shim.send(frame).await);
    }
}

enum Taken {
    Nothing,
    Message(Message),
    End(CloseFrame),
}

/// A close of the socket, with as much of the sentence as fits.
fn closing(code: CloseCode, sentence: &str) -> CloseFrame {
    let mut end = sentence.len().min(MAX_REASON_BYTES);
    while !sentence.is_char_boundary(end) {
        end -= 1;
    }
    CloseFrame { code, reason: sentence.get(..end).unwrap_or_default().into() }
}

/// The close code that says that the process of the server has ended.
const EXITED: u16 = 4000;

/// The close code that says that the shim has no process for this client, or not any more.
const GONE: u16 = 4001;

/// What RFC 6455, section 5.5, leaves for a reason.
const MAX_REASON_BYTES: usize = 123;

/// Frames between the socket and the session; one can have 16 MiB, so that there are few.
const QUEUE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = closing(CloseCode::Normal, &"é".repeat(100)).reason;
        assert_eq!(reason.as_str(), "é".repeat(61));
    }
}
