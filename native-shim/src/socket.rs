//! One upgraded socket: the shim's proof, the client's wish, and then frames in both directions.

use std::time::Duration;

use crablet::mcp::transport::shim::{Attach, Frame, FrameKind, server_proof};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::config::Server;
use crate::gate::Admission;
use crate::session::{Attachment, OUTGOING_QUEUE};
use crate::sessions::Sessions;

/// Serves a socket until it ends.
pub(crate) async fn serve_socket<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    admission: Admission,
    server: &Server,
    sessions: &Sessions,
) {
    let (mut sink, mut stream) = socket.split();
    let Admission { server: name, token, nonce, .. } = admission;
    let proof = unnumbered(FrameKind::Proof, server_proof(&token, &nonce).into_bytes());
    if sink.send(proof).await.is_err() {
        return;
    }
    let Ok(Some(first)) = timeout(ATTACH_LIMIT, next_frame(&mut stream)).await else { return };
    let attach = match first.text().and_then(Attach::parse) {
        Ok(attach) if first.kind == FrameKind::Attach => attach,
        _ => return,
    };
    let session = match sessions.find(&name, server, token.key_id(), &attach) {
        Ok(session) => session,
        Err(sentence) => return end(&mut sink, sentence).await,
    };
    let (outgoing, mut frames) = mpsc::channel(OUTGOING_QUEUE);
    let (received, incoming) = mpsc::channel(INCOMING_QUEUE);
    let era = sessions.era(&name, server).await;
    let attachment = Attachment { continues: attach.continues, seen: first.seen, era, outgoing, incoming };
    if session.send(attachment).await.is_err() {
        return end(&mut sink, format!("the process of the server {name:?} has ended")).await;
    }
    // Each direction goes on while the other waits: what a client has seen is told even when it reads slowly.
    let write = async {
        while let Some(frame) = frames.recv().await {
            if !matches!(timeout(SILENCE_LIMIT, sink.send(Message::Binary(frame.into()))).await, Ok(Ok(()))) {
                return;
            }
        }
        // The session is over, or another socket took this one's place.
        drop(timeout(SILENCE_LIMIT, sink.close()).await);
    };
    let read = async {
        while let Ok(Some(frame)) = timeout(SILENCE_LIMIT, next_frame(&mut stream)).await {
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

/// The next frame, or `None` when the socket ended or holds something else.
async fn next_frame(stream: &mut (impl Stream<Item = tungstenite::Result<Message>> + Unpin)) -> Option<Frame> {
    loop {
        match stream.next().await? {
            Ok(Message::Binary(bytes)) => return Frame::decode(bytes.into()).ok(),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            _ => return None,
        }
    }
}

/// Tells the client why there is nothing to attach to.
async fn end(sink: &mut (impl Sink<Message> + Unpin), sentence: String) {
    if sink.send(unnumbered(FrameKind::Gone, sentence.into_bytes())).await.is_ok() {
        drop(sink.close().await);
    }
}

fn unnumbered(kind: FrameKind, payload: Vec<u8>) -> Message {
    Message::Binary(Frame { kind, number: 0, seen: 0, payload }.encode().into())
}

/// From the upgrade to the client's first frame; both are on one machine.
const ATTACH_LIMIT: Duration = Duration::from_secs(10);

/// A client that sends no frame for so long, or takes none, counts as gone: it answers a ping every 20 s.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);

/// Frames between a socket and its session, which takes them at once.
const INCOMING_QUEUE: usize = 4;
