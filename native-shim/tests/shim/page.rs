//! A page that offers tools, as the package's `expose` is one in a browser: an MCP server behind a WebSocket to the shim.

use crablet::host::Host;
use crablet::host::mcp::{McpServer, ServerControl};
use crablet::mcp::transport::shim::{
    Attach, ClientProof, EXPOSING_PATH, Frame, FrameKind, Hello, Link, ProofContext, Receipt, SUBPROTOCOL, Token,
    verify_server_proof,
};
use crablet::native::NativeHost;
use futures_channel::mpsc;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::support::{Shim, in_time};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A page that is open.
pub(crate) struct Page {
    pub(crate) control: ServerControl,
    state: watch::Receiver<Value>,
    leave: Option<oneshot::Sender<Leaving>>,
}

/// How a page goes.
pub(crate) enum Leaving {
    /// As a browser closes the sockets of a page that is left.
    Closed,
    /// The connection breaks, and the page comes back with its numbers.
    Broken,
}

impl Page {
    /// Opens a page of this origin, or a program when it is empty, that serves these tools.
    pub(crate) async fn open(shim: &Shim, origin: &str, token: &Token, server: &McpServer) -> Self {
        let attaching = Attach::default();
        let opened = attach(shim.port, origin, token, &attaching, 0);
        let (socket, hello) = in_time("a hello", opened).await.expect("it is let in");
        let (to_server, lines) = mpsc::channel(64);
        let (out, going) = mpsc::channel(64);
        let (serving, control) = server.serve(lines, out);
        tokio::spawn(serving);
        let (told, state) = watch::channel(Value::Null);
        let (leave, left) = oneshot::channel();
        let place = Place { port: shim.port, origin: origin.to_owned(), token: token.clone(), resume: hello.resume };
        tokio::spawn(run(place, socket, to_server, going, told, left));
        Self { control, state, leave: Some(leave) }
    }

    /// Waits until the shim tells this of a tool: what it is offered as, or why it is not.
    pub(crate) async fn told(&mut self, tool: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let of_tool = |state: &Value| {
            let tools = state["tools"].as_array()?;
            tools.iter().find(|entry| entry["name"] == tool).filter(|entry| wanted(entry)).cloned()
        };
        let there = self.state.wait_for(|state| of_tool(state).is_some());
        let state = in_time("what becomes of a tool of the page", there).await.expect("the page is there");
        of_tool(&state).unwrap()
    }

    /// Waits until a tool is offered, and gives its name for agents.
    pub(crate) async fn offered(&mut self, tool: &str) -> String {
        let entry = self.told(tool, |entry| entry["offeredAs"].is_string()).await;
        entry["offeredAs"].as_str().unwrap().to_owned()
    }

    /// Waits until a tool is withheld, and gives the reason.
    pub(crate) async fn withheld(&mut self, tool: &str) -> String {
        let entry = self.told(tool, |entry| entry["withheld"].is_string()).await;
        entry["withheld"].as_str().unwrap().to_owned()
    }

    pub(crate) fn leave(&mut self, how: Leaving) {
        let _ = self.leave.take().unwrap().send(how);
    }
}

struct Place {
    port: u16,
    origin: String,
    token: Token,
    resume: String,
}

/// Opens the socket and attaches; the hello, or what came instead.
pub(crate) async fn attach(
    port: u16,
    origin: &str,
    token: &Token,
    attach: &Attach,
    seen: u64,
) -> Result<(Socket, Hello), String> {
    let host = NativeHost::new().unwrap();
    let authority = format!("127.0.0.1:{port}");
    let context = ProofContext { authority: &authority, origin, server: "" };
    let proof = ClientProof::new(token, host.random().unwrap(), host.now(), context);
    let mut request = format!("ws://{authority}{EXPOSING_PATH}").into_client_request().unwrap();
    let headers = request.headers_mut();
    let offered = format!("{SUBPROTOCOL}, {}", proof.to_subprotocol());
    headers.insert("sec-websocket-protocol", offered.parse().unwrap());
    if !origin.is_empty() {
        headers.insert("origin", origin.parse().unwrap());
    }
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.map_err(|error| error.to_string())?;
    let shown = next_frame(&mut socket).await.ok_or("no proof")?;
    assert!(verify_server_proof(token, proof.nonce(), shown.text().unwrap()));
    let frame = Frame { kind: FrameKind::Attach, number: 0, seen, payload: attach.to_payload() };
    socket.send(Message::Binary(frame.encode().into())).await.unwrap();
    let frame = next_frame(&mut socket).await.ok_or("no hello")?;
    match frame.kind {
        FrameKind::Hello => Ok((socket, Hello::parse(frame.text().unwrap()).unwrap())),
        _ => Err(frame.text().unwrap().to_owned()),
    }
}

async fn next_frame(socket: &mut Socket) -> Option<Frame> {
    loop {
        match socket.next().await?.ok()? {
            Message::Binary(bytes) => return Frame::decode(bytes.into()).ok(),
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

async fn run(
    place: Place,
    mut socket: Socket,
    mut to_server: mpsc::Sender<String>,
    mut going: mpsc::Receiver<String>,
    told: watch::Sender<Value>,
    left: oneshot::Receiver<Leaving>,
) {
    let mut link = Link::new();
    let mut left = Some(left);
    loop {
        let frame = tokio::select! {
            frame = next_frame(&mut socket) => frame,
            line = going.next() => {
                let frame = link.send(FrameKind::Message, line.unwrap().into_bytes());
                drop(socket.send(Message::Binary(frame.into())).await);
                continue;
            }
            how = leaving(&mut left) => {
                left = None;
                match how {
                    Ok(Leaving::Closed) => {
                        let close = CloseFrame { code: CloseCode::Away, reason: "".into() };
                        drop(socket.close(Some(close)).await);
                        return;
                    }
                    Ok(Leaving::Broken) => None,
                    Err(_) => return,
                }
            }
        };
        let Some(frame) = frame else {
            // Without a close, and then back to the same session.
            let wanted = Attach { resume: Some(place.resume.clone()), continues: true };
            drop(socket);
            let Ok((opened, _)) = attach(place.port, &place.origin, &place.token, &wanted, link.seen()).await else {
                return;
            };
            socket = opened;
            for frame in link.unseen() {
                drop(socket.send(Message::Binary(frame.encode().into())).await);
            }
            continue;
        };
        let _ = link.peer_has_seen(frame.seen);
        if frame.kind == FrameKind::Ping {
            let seen = link.unnumbered(FrameKind::Seen, Vec::new());
            drop(socket.send(Message::Binary(seen.encode().into())).await);
        }
        if frame.number == 0 || link.receive(frame.number) != Ok(Receipt::New) {
            continue;
        }
        link.took(frame.payload.len());
        let text = frame.text().unwrap().to_owned();
        let message: Value = serde_json::from_str(&text).unwrap();
        if message["method"] == "notifications/crablet/exposed" {
            told.send_replace(message["params"].clone());
        } else if to_server.send(text).await.is_err() {
            return;
        }
    }
}

/// How the page shall go; never, once it was told.
async fn leaving(left: &mut Option<oneshot::Receiver<Leaving>>) -> Result<Leaving, oneshot::error::RecvError> {
    match left {
        Some(left) => left.await,
        None => std::future::pending().await,
    }
}
