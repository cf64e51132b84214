use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use futures_util::stream::StreamExt;

use super::timers::Timers;
use super::{Carrier, Delivery};
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Host, Socket};
use crate::mcp::client::Opening;
use crate::mcp::protocol::EraChoice;
use crate::mcp::transport::shim::{Hello, ServerEra};
use crate::mcp::transport::websocket::{Effect, Input, WebSocketTransport};
use crate::mcp::transport::{Inbound, Outbound};

/// How long the socket may take no frame, in milliseconds: as long as it may be silent.
const SEND_LIMIT: u64 = 60_000;

/// Carries the messages of one client to crablet-shim until the connection is over. A machine that shall attach to the
/// process of an earlier client has another one that is used instead when the process is gone.
pub(super) async fn carry<H: Host>(
    host: H,
    machine: WebSocketTransport,
    instead: Option<WebSocketTransport>,
    carrier: Carrier,
) {
    let mut shim = Shim {
        timers: Timers::new(host.clone()),
        host,
        machine,
        instead,
        carrier,
        opening: None,
        socket: None,
        frames: VecDeque::new(),
        said_hello: false,
    };
    shim.run().await;
}

struct Shim<H: Host> {
    host: H,
    machine: WebSocketTransport,
    instead: Option<WebSocketTransport>,
    carrier: Carrier,
    /// The machine has one timer.
    timers: Timers<H, ()>,
    opening: Option<(u64, Connecting<H::Socket>)>,
    socket: Option<(u64, H::Socket)>,
    /// What is to be sent on the socket.
    frames: VecDeque<Vec<u8>>,
    said_hello: bool,
}

type Connecting<S> = BoxFuture<'static, Result<S, Error>>;

/// What the carrier waits for.
enum Step<S> {
    Outbound(Option<Outbound>),
    Opened(Result<S, Error>),
    Frame(Result<Option<Vec<u8>>, Error>),
    Timer,
}

impl<H: Host> Shim<H> {
    async fn run(&mut self) {
        self.input(Input::Connect);
        loop {
            while let Some(effect) = self.machine.poll_effect() {
                if !self.perform(effect).await {
                    return;
                }
            }
            if let Err(error) = self.send_frames().await {
                self.lost(Some(error));
                continue;
            }
            match self.next_step().await {
                Step::Outbound(Some(outbound)) => {
                    if outbound == Outbound::Close {
                        self.instead = None;
                    }
                    self.input(Input::Outbound(outbound));
                }
                // The client is gone: dropping the socket closes it.
                Step::Outbound(None) => return,
                Step::Opened(opened) => self.take_opened(opened),
                Step::Frame(Ok(Some(bytes))) => {
                    if let Some((socket, _)) = self.socket {
                        self.input(Input::Frame { socket, bytes });
                    }
                }
                Step::Frame(Ok(None)) => self.lost(None),
                Step::Frame(Err(error)) => self.lost(Some(error)),
                Step::Timer => self.input(Input::Timer),
            }
        }
    }

    /// `false` when the connection is over.
    async fn perform(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::Open { socket, url, subprotocols } => {
                self.opening = Some((socket, Box::pin(self.host.connect(url, subprotocols))));
            }
            Effect::Send { socket, bytes } => {
                if self.socket.as_ref().is_some_and(|(open, _)| *open == socket) {
                    self.frames.push_back(bytes);
                }
            }
            Effect::Close { socket } => self.close(socket).await,
            Effect::SetTimer(at) => self.timers.set((), at),
            Effect::ClearTimer => self.timers.clear(()),
            Effect::Attached(hello) => {
                if !std::mem::replace(&mut self.said_hello, true) {
                    let is_resumed = self.instead.take().is_some();
                    return self.carrier.deliver(Delivery::Opened(opening(hello, is_resumed))).await;
                }
            }
            // The process is gone; other reasons would be those of a new one too.
            Effect::Deliver(Inbound::Closed { reason, .. })
                if reason.kind() == ErrorKind::ConnectionClosed && self.instead.is_some() =>
            {
                if let Some(machine) = self.instead.take() {
                    self.machine = machine;
                    self.input(Input::Connect);
                }
            }
            Effect::Deliver(inbound) => {
                let is_last = matches!(inbound, Inbound::Closed { .. });
                return self.carrier.deliver(Delivery::Inbound(inbound)).await && !is_last;
            }
        }
        true
    }

    fn input(&mut self, input: Input) {
        self.machine.handle(self.host.now(), input);
    }

    /// Sends what is to be sent. A frame is never given up half-way, so nothing else is done meanwhile.
    async fn send_frames(&mut self) -> Result<(), Error> {
        let Some((_, socket)) = &mut self.socket else { return Ok(()) };
        while let Some(frame) = self.frames.pop_front() {
            let mut sending = pin!(socket.send(frame));
            // Most frames are taken at once, without a timer.
            let sent = match sending.as_mut().now_or_never() {
                Some(sent) => sent,
                None => match select(sending, pin!(self.host.sleep(SEND_LIMIT))).await {
                    Either::Left((sent, _)) => sent,
                    Either::Right(_) => Err(Error::new(ErrorKind::ConnectionClosed, "the shim takes no more messages")),
                },
            };
            sent?;
        }
        Ok(())
    }

    async fn next_step(&mut self) -> Step<H::Socket> {
        let Self { carrier, timers, opening, socket, .. } = self;
        let mut frame = pin!(next_frame(socket.as_mut().map(|(_, socket)| socket)));
        poll_fn(|context: &mut Context<'_>| {
            if let Poll::Ready(outbound) = carrier.outbound.poll_next_unpin(context) {
                return Poll::Ready(Step::Outbound(outbound));
            }
            if let Some((_, connecting)) = opening
                && let Poll::Ready(opened) = connecting.as_mut().poll(context)
            {
                return Poll::Ready(Step::Opened(opened));
            }
            if let Poll::Ready(frame) = frame.as_mut().poll(context) {
                return Poll::Ready(Step::Frame(frame));
            }
            timers.poll_due(context).map(|()| Step::Timer)
        })
        .await
    }

    fn take_opened(&mut self, opened: Result<H::Socket, Error>) {
        let Some((number, _)) = self.opening.take() else { return };
        match opened {
            Ok(socket) => {
                let subprotocol = socket.protocol().to_owned();
                self.socket = Some((number, socket));
                self.input(Input::Opened { socket: number, subprotocol });
            }
            Err(error) => self.input(match error.status() {
                Some(status) => Input::Refused { socket: number, status },
                None => Input::Closed { socket: number, code: None, reason: error.to_string() },
            }),
        }
    }

    fn lost(&mut self, error: Option<Error>) {
        let Some((number, socket)) = self.socket.take() else { return };
        self.frames.clear();
        let (code, reason) = match (socket.close_reason(), error) {
            (Some((code, reason)), _) => (Some(code), reason),
            (None, error) => (None, error.map(|error| error.to_string()).unwrap_or_default()),
        };
        self.input(Input::Closed { socket: number, code, reason });
    }

    /// Sends what is left and closes.
    async fn close(&mut self, number: u64) {
        if self.opening.as_ref().is_some_and(|(opening, _)| *opening == number) {
            self.opening = None;
        }
        if self.socket.as_ref().is_some_and(|(open, _)| *open == number) {
            // A socket that takes no more is closed all the same.
            let _ = self.send_frames().await;
            self.frames.clear();
            self.socket = None;
        }
    }
}

async fn next_frame<S: Socket>(socket: Option<&mut S>) -> Result<Option<Vec<u8>>, Error> {
    match socket {
        Some(socket) => socket.next().await,
        None => std::future::pending().await,
    }
}

fn opening(hello: Hello, is_resumed: bool) -> Opening {
    Opening {
        era: hello.era.map(|era| match era {
            ServerEra::Handshake => EraChoice::Handshake,
            ServerEra::Stateless => EraChoice::Stateless,
        }),
        initialized: hello.initialized,
        id_prefix: hello.id_prefix,
        resume_id: Some(hello.resume),
        is_resumed,
    }
}
