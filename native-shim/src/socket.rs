//! One client that was let in: the shim's proof, the client's wish, and then frames in both directions.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crablet::mcp::transport::shim::{Attach, Frame, FrameKind, server_proof};
use futures_util::{Sink, SinkExt, Stream, StreamExt, stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::config::Server;
use crate::expose::{PageOwner, Pages};
use crate::gate::Admission;
use crate::session::{Attachment, OUTGOING_QUEUE};
use crate::sessions::Sessions;

/// A client that was let in.
#[derive(Debug)]
pub(crate) struct Client {
    /// The name of the server that it wants.
    pub(crate) server: String,
    /// The grant that lets it in.
    pub(crate) key_id: String,
    /// The shim's answer to the client's nonce.
    pub(crate) proof: String,
}

impl Client {
    /// The client of a handshake.
    pub(crate) fn of(admission: &Admission) -> Self {
        let Admission { server, token, nonce, .. } = admission;
        Self { server: server.clone(), key_id: token.key_id().to_owned(), proof: server_proof(token, nonce) }
    }
}

/// What a client is there for.
#[derive(Clone, Debug)]
pub(crate) enum Purpose<'a> {
    /// To use a server, by a process of its own.
    Use(&'a Server),
    /// To offer tools of its own.
    Offer { pages: &'a Arc<Pages>, owner: PageOwner },
}

/// Serves a socket until it ends.
pub(crate) async fn serve_socket<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    client: Client,
    purpose: Purpose<'_>,
    sessions: &Sessions,
) {
    let takes_its_tools = matches!(purpose, Purpose::Offer { .. });
    let (sink, stream) = socket.split();
    let sink = sink.with(|frame: Vec<u8>| ready(Ok::<_, tungstenite::Error>(Message::Binary(frame.into()))));
    serve_frames(pin!(sink), pin!(frames_of(stream, takes_its_tools)), client, purpose, sessions).await;
}

/// Serves encoded frames that come and go somewhere, until one of both ends.
pub(crate) async fn serve_frames(
    mut sink: impl Sink<Vec<u8>> + Unpin,
    mut stream: impl Stream<Item = Frame> + Unpin,
    client: Client,
    purpose: Purpose<'_>,
    sessions: &Sessions,
) {
    let Client { server: name, key_id, proof } = client;
    if sink.send(unnumbered(FrameKind::Proof, proof.into_bytes())).await.is_err() {
        return;
    }
    let Ok(Some(first)) = timeout(ATTACH_LIMIT, stream.next()).await else { return };
    let attach = match first.text().and_then(Attach::parse) {
        Ok(attach) if first.kind == FrameKind::Attach => attach,
        _ => return,
    };
    let found = match &purpose {
        Purpose::Use(server) => sessions.find(&name, server, &key_id, &attach).await,
        Purpose::Offer { pages, owner } => {
            let session = sessions.find_page(&key_id, &attach, || pages.open(owner.clone()));
            session.map(|session| (session, None))
        }
    };
    let (session, era) = match found {
        Ok(found) => found,
        Err(sentence) => return end(&mut sink, sentence).await,
    };
    let (outgoing, frames) = mpsc::channel(OUTGOING_QUEUE);
    let (received, incoming) = mpsc::channel(INCOMING_QUEUE);
    let attachment = Attachment { continues: attach.continues, seen: first.seen, era, outgoing, incoming };
    if session.send(attachment).await.is_err() {
        return end(&mut sink, format!("the process of the server {name:?} has ended")).await;
    }
    relay(sink, stream, frames, received).await;
}

/// Carries frames both ways until one end is over. Each direction goes on while the other waits: what a client has seen is told
/// even when it reads slowly.
async fn relay(
    mut sink: impl Sink<Vec<u8>> + Unpin,
    mut stream: impl Stream<Item = Frame> + Unpin,
    mut frames: mpsc::Receiver<Vec<u8>>,
    received: mpsc::Sender<Frame>,
) {
    let write = async {
        while let Some(frame) = frames.recv().await {
            match timeout(SILENCE_LIMIT, send_gathered(&mut sink, frame, &mut frames)).await {
                Ok(Ok(())) => {}
                // A client that says goodbye and is gone does not read what still comes, which breaks the socket; its goodbye may
                // not have been read yet. What it sent ends where the socket broke.
                Ok(Err(_)) => return std::future::pending().await,
                Err(_) => return,
            }
        }
        // The session is over, or another socket took this one's place.
        drop(timeout(SILENCE_LIMIT, sink.close()).await);
    };
    let read = async {
        while let Ok(Some(frame)) = timeout(SILENCE_LIMIT, stream.next()).await {
            if received.send(frame).await.is_err() {
                // The writer still has to say why.
                return std::future::pending().await;
            }
        }
    };
    tokio::select! {
        () = write => {}
        () = read => {}
    }
}

/// Sends a frame, and what waits behind it in the same write.
async fn send_gathered<S: Sink<Vec<u8>> + Unpin>(
    sink: &mut S,
    first: Vec<u8>,
    frames: &mut mpsc::Receiver<Vec<u8>>,
) -> Result<(), S::Error> {
    let mut bytes = first.len();
    sink.feed(first).await?;
    while bytes < GATHERED_BYTES
        && let Ok(frame) = frames.try_recv()
    {
        bytes += frame.len();
        sink.feed(frame).await?;
    }
    sink.flush().await
}

/// The frames of a socket, until it ends or holds something else. A page that closes its socket, as browsers do when it is left
/// or loaded anew, takes its tools with it, while the process of a server waits for its client to come back.
fn frames_of(
    stream: impl Stream<Item = tungstenite::Result<Message>> + Unpin,
    takes_its_tools: bool,
) -> impl Stream<Item = Frame> {
    stream::unfold(
        stream,
        move |mut stream| async move { Some((next_frame(&mut stream, takes_its_tools).await?, stream)) },
    )
}

async fn next_frame(
    stream: &mut (impl Stream<Item = tungstenite::Result<Message>> + Unpin),
    takes_its_tools: bool,
) -> Option<Frame> {
    loop {
        match stream.next().await? {
            Ok(Message::Binary(bytes)) => return Frame::decode(bytes.into()).ok(),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(Message::Close(Some(close)))
                if takes_its_tools && matches!(close.code, CloseCode::Normal | CloseCode::Away) =>
            {
                return Some(Frame { kind: FrameKind::End, number: 0, seen: 0, payload: Vec::new() });
            }
            _ => return None,
        }
    }
}

/// Tells the client why there is nothing to attach to.
async fn end(sink: &mut (impl Sink<Vec<u8>> + Unpin), sentence: String) {
    if sink.send(unnumbered(FrameKind::Gone, sentence.into_bytes())).await.is_ok() {
        drop(sink.close().await);
    }
}

fn unnumbered(kind: FrameKind, payload: Vec<u8>) -> Vec<u8> {
    Frame { kind, number: 0, seen: 0, payload }.encode()
}

/// From the upgrade to the client's first frame; both are on one machine.
const ATTACH_LIMIT: Duration = Duration::from_secs(10);

/// A client that sends no frame for so long, or takes none, counts as gone: it answers a ping every 20 s.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);

/// How much goes to a socket at once, so that the time for it is that for a frame.
const GATHERED_BYTES: usize = 64 * 1024;

/// Frames between a socket and its session, which takes them at once: as many calls as come together.
const INCOMING_QUEUE: usize = 64;

#[cfg(test)]
mod tests {
    use futures_util::sink;

    use super::*;

    #[tokio::test]
    async fn a_goodbye_is_read_although_the_socket_broke() {
        let goodbye = || Frame { kind: FrameKind::End, number: 0, seen: 0, payload: Vec::new() };
        let broken = sink::unfold((), |(), _: Vec<u8>| ready(Err::<(), _>("broken")));
        let (outgoing, frames) = mpsc::channel(1);
        let (received, mut incoming) = mpsc::channel(1);
        outgoing.send(Vec::new()).await.unwrap();
        // The goodbye comes when the frame was taken, and could not be sent.
        let stream = stream::once(async {
            outgoing.reserve().await.unwrap().send(Vec::new());
            goodbye()
        });
        relay(pin!(broken), pin!(stream), frames, received).await;
        assert_eq!(incoming.recv().await, Some(goodbye()));
    }
}
