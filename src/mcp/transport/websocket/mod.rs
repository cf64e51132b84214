//! The transport to a server behind crablet-shim: a machine over the frames of [`shim`](super::shim).
//!
//! It checks the shim's proof before it sends anything, numbers what it sends, and when the socket breaks it attaches
//! again within the grace: calls stay pending meanwhile, and nothing is lost, repeated or sent again by itself. All
//! requests share one stream here, so that it gives no [`Inbound::RequestEnded`] for a request that the server got, and
//! leaves time limits of requests to the client above it.

mod address;
mod contract;
mod waiting;

use std::collections::VecDeque;

use sha2::{Digest, Sha256};

use super::shim::{
    Attach, ClientProof, Exit, Frame, FrameKind, Hello, Link, ProofContext, Receipt, SUBPROTOCOL, server_path,
    verify_server_proof,
};
use super::{Inbound, Outbound};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::time::Millis;
pub(crate) use address::loopback_authority;
pub use contract::{Effect, Input, WebSocketOptions};
use waiting::WaitingMessages;

/// The machine. Give it [`Input`]s, and after each take [`Effect`]s until there are none.
#[derive(Debug)]
pub struct WebSocketTransport {
    options: WebSocketOptions,
    authority: String,
    seed: [u8; 16],
    drawn: u64,
    phase: Phase,
    socket: u64,
    attempts: u32,
    resume: Option<String>,
    link: Option<Link>,
    grace_ms: u64,
    grace_ends: Option<Millis>,
    deadline: Option<(Millis, u64)>,
    armed: Option<Millis>,
    waiting: WaitingMessages,
    effects: VecDeque<Effect>,
}

impl WebSocketTransport {
    /// A machine that does nothing until [`Input::Connect`]. The seed must be unpredictable and used once.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the address is not `ws://` (or `wss://`) with a loopback host: a token must not be proved to
    /// whoever an address points to.
    pub fn new(options: WebSocketOptions, seed: [u8; 16]) -> Result<Self, Error> {
        let authority = loopback_authority(&options.url)?;
        Ok(Self {
            resume: options.resume.clone(),
            options,
            authority,
            seed,
            drawn: 0,
            phase: Phase::Idle,
            socket: 0,
            attempts: 0,
            link: None,
            grace_ms: 0,
            grace_ends: None,
            deadline: None,
            armed: None,
            waiting: WaitingMessages::default(),
            effects: VecDeque::new(),
        })
    }

    /// Takes note of what happened. Never fails and never blocks: what goes wrong is told by [`Inbound`].
    pub fn handle(&mut self, now: Millis, input: Input) {
        if let Err(error) = self.take(now, input) {
            self.finish(error, None);
        }
        self.arm();
    }

    /// The next thing to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The resume id of the process, once the shim has said hello: what a client stores to attach again later.
    pub fn resume_id(&self) -> Option<&str> {
        self.resume.as_deref()
    }

    fn take(&mut self, now: Millis, input: Input) -> Result<(), Error> {
        match input {
            Input::Connect if self.phase == Phase::Idle => self.open(now),
            Input::Connect => {}
            Input::Outbound(outbound) => return self.take_outbound(outbound),
            Input::Opened { socket, .. }
            | Input::Refused { socket, .. }
            | Input::Frame { socket, .. }
            | Input::Closed { socket, .. }
                if socket != self.socket || !self.phase.has_socket() => {}
            Input::Opened { subprotocol, .. } => return self.opened(&subprotocol),
            Input::Refused { status, .. } => return Err(self.refused(status)),
            Input::Frame { bytes, .. } => return self.take_frame(now, Frame::decode(bytes)?),
            Input::Closed { code, reason, .. } => return self.lost(now, &describe_close(code, &reason)),
            Input::Timer => return self.timer_ran_down(now),
        }
        Ok(())
    }

    fn take_outbound(&mut self, outbound: Outbound) -> Result<(), Error> {
        match outbound {
            Outbound::Request { id, .. } if self.phase == Phase::Over => {
                let reason = Err(Error::new(ErrorKind::ConnectionClosed, "the connection to the server has ended"));
                self.deliver(Inbound::RequestEnded { id, reason });
            }
            Outbound::Request { id, message, .. } => match self.waiting.push(Some(id.clone()), message) {
                Ok(()) => self.send_waiting(),
                Err(error) => self.deliver(Inbound::RequestEnded { id, reason: Err(error) }),
            },
            Outbound::Notify { .. } | Outbound::Cancel { .. } | Outbound::Close if self.phase == Phase::Over => {}
            Outbound::Notify { message, .. } => {
                self.waiting.push(None, message)?;
                self.send_waiting();
            }
            Outbound::Cancel { id } => self.waiting.cancel(&id),
            Outbound::Close => {
                if self.phase == Phase::Attached {
                    self.send_unnumbered(FrameKind::End);
                }
                return Err(Error::new(ErrorKind::ConnectionClosed, "the client closed the connection"));
            }
        }
        Ok(())
    }

    fn send_waiting(&mut self) {
        let Some(link) = self.link.as_mut().filter(|_| self.phase == Phase::Attached) else { return };
        while let Some(message) = self.waiting.pop_if(|bytes| link.has_room_for(bytes)) {
            let bytes = link.send(FrameKind::Message, message.as_str().as_bytes().to_vec());
            self.effects.push_back(Effect::Send { socket: self.socket, bytes });
        }
    }

    fn open(&mut self, now: Millis) {
        self.socket += 1;
        let context =
            ProofContext { authority: &self.authority, origin: &self.options.origin, server: &self.options.server };
        let proof = ClientProof::new(&self.options.token, draw(&self.seed, &mut self.drawn), now, context);
        self.effects.push_back(Effect::Open {
            socket: self.socket,
            url: format!("{}{}", self.options.url.trim_end_matches('/'), server_path(&self.options.server)),
            subprotocols: vec![SUBPROTOCOL.to_owned(), proof.to_subprotocol()],
        });
        self.phase = Phase::Proving { nonce: proof.nonce().to_owned() };
        self.wait_until(now, OPEN_LIMIT);
    }

    fn opened(&self, subprotocol: &str) -> Result<(), Error> {
        if subprotocol == SUBPROTOCOL {
            return Ok(());
        }
        let message = format!(
            "the program at {} is not crablet-shim: it did not choose the subprotocol {SUBPROTOCOL}",
            self.authority
        );
        Err(Error::new(ErrorKind::Protocol, message))
    }

    fn take_frame(&mut self, now: Millis, frame: Frame) -> Result<(), Error> {
        match &self.phase {
            Phase::Proving { nonce } => {
                let is_shim = frame.kind == FrameKind::Proof
                    && frame.text().is_ok_and(|proof| verify_server_proof(&self.options.token, nonce, proof));
                if !is_shim {
                    let message = format!(
                        "the program at {} could not prove that it is your crablet-shim; stop it, or check the port",
                        self.authority
                    );
                    return Err(Error::new(ErrorKind::Auth, message));
                }
                let attach = Attach { resume: self.resume.clone(), continues: self.link.is_some() };
                let seen = self.link.as_ref().map_or(0, Link::seen);
                let frame = Frame { kind: FrameKind::Attach, number: 0, seen, payload: attach.to_payload() };
                self.effects.push_back(Effect::Send { socket: self.socket, bytes: frame.encode() });
                self.phase = Phase::Attaching;
                self.wait_until(now, HELLO_LIMIT);
                Ok(())
            }
            Phase::Attaching => self.take_hello(now, &frame),
            Phase::Attached => {
                self.wait_until(now, SILENCE_LIMIT);
                self.take_attached(&frame)
            }
            Phase::Idle | Phase::Waiting | Phase::Over => Ok(()),
        }
    }

    fn take_hello(&mut self, now: Millis, frame: &Frame) -> Result<(), Error> {
        match frame.kind {
            FrameKind::Hello => {}
            FrameKind::Gone => return Err(gone(frame)),
            // The shim is still finding out what the server speaks.
            FrameKind::Ping => {
                self.send_unnumbered(FrameKind::Seen);
                return Ok(());
            }
            _ => return Ok(()),
        }
        let hello = Hello::parse(frame.text()?)?;
        let resends = match &mut self.link {
            Some(_) if self.resume.as_deref() != Some(&hello.resume) => {
                return Err(Error::new(ErrorKind::Protocol, "the shim attached another process than was asked for"));
            }
            Some(link) => {
                link.peer_has_seen(frame.seen)?;
                link.unseen()
            }
            None => {
                self.link = Some(Link::starting_at(frame.seen.saturating_add(1), hello.next));
                Vec::new()
            }
        };
        for frame in resends {
            self.effects.push_back(Effect::Send { socket: self.socket, bytes: frame.encode() });
        }
        self.resume = Some(hello.resume.clone());
        self.grace_ms = hello.grace_ms;
        self.grace_ends = None;
        self.attempts = 0;
        self.phase = Phase::Attached;
        self.wait_until(now, SILENCE_LIMIT);
        self.effects.push_back(Effect::Attached(hello));
        self.send_waiting();
        Ok(())
    }

    fn take_attached(&mut self, frame: &Frame) -> Result<(), Error> {
        let Some(link) = &mut self.link else { return Ok(()) };
        link.peer_has_seen(frame.seen)?;
        let is_new = frame.number > 0 && link.receive(frame.number)? == Receipt::New;
        if is_new {
            link.took(frame.payload.len());
        }
        match frame.kind {
            FrameKind::Message if is_new => {
                let message = RawJson::parse(frame.text()?).map_err(|error| {
                    Error::new(ErrorKind::Protocol, format!("a message came that is not JSON: {error}"))
                })?;
                self.deliver(Inbound::Message { request_id: None, status: None, message });
            }
            FrameKind::Exit if is_new => {
                let exit = Exit::parse(frame.text()?)?;
                // Lets the shim forget the process at once.
                self.send_unnumbered(FrameKind::Seen);
                let error = Error::new(ErrorKind::ConnectionClosed, exit.message.clone());
                self.finish(error, Some(exit));
                return Ok(());
            }
            FrameKind::Gone => return Err(gone(frame)),
            FrameKind::Ping => self.send_unnumbered(FrameKind::Seen),
            _ => {}
        }
        self.send_waiting();
        if self.link.as_ref().is_some_and(Link::should_tell_seen) {
            self.send_unnumbered(FrameKind::Seen);
        }
        Ok(())
    }

    fn timer_ran_down(&mut self, now: Millis) -> Result<(), Error> {
        self.armed = None;
        let Some((deadline, duration)) = self.deadline else { return Ok(()) };
        if now < deadline {
            // The deadline was moved while the timer ran. After a jump of the clock it is never further off than it was
            // when it was set.
            self.wait_until(now, duration.min(deadline.since(now)));
            return Ok(());
        }
        if self.phase == Phase::Waiting {
            self.open(now);
            return Ok(());
        }
        self.effects.push_back(Effect::Close { socket: self.socket });
        self.lost(now, "nothing came in time")
    }

    /// The shim does not let this client in, and would not the next time.
    fn refused(&mut self, status: u16) -> Error {
        self.phase = Phase::Waiting;
        let (authority, server) = (&self.authority, &self.options.server);
        let (kind, message) = match status {
            401 | 403 => (
                ErrorKind::Auth,
                format!(
                    "crablet-shim at {authority} does not accept the token for the server \"{server}\"; it may be revoked, \
                     or be for another server or origin: the shim's log says which"
                ),
            ),
            404 => (ErrorKind::InvalidInput, format!("crablet-shim at {authority} has no server \"{server}\"")),
            _ => (ErrorKind::Network, format!("the program at {authority} opens no WebSocket; check the port")),
        };
        Error::new(kind, message).with_status(status)
    }

    /// The socket is gone: wait for the next attempt while the grace lasts, otherwise it is over.
    fn lost(&mut self, now: Millis, why: &str) -> Result<(), Error> {
        self.phase = Phase::Waiting;
        if self.link.is_none() {
            let message = format!(
                "no connection to crablet-shim at {} ({why}); start `crablet-shim serve`, and if it runs, its log says \
                 why it refused",
                self.authority
            );
            return Err(Error::new(ErrorKind::Network, message));
        }
        let grace_ends = *self.grace_ends.get_or_insert(now.after(self.grace_ms));
        if now >= grace_ends {
            let message =
                format!("the connection to the shim at {} broke and did not come back ({why})", self.authority);
            return Err(Error::new(ErrorKind::ConnectionClosed, message));
        }
        let [jitter, ..] = draw(&self.seed, &mut self.drawn);
        let full = (FIRST_RETRY << self.attempts.min(8)).min(LONGEST_RETRY);
        let delay = full / 2 + full / 2 * u64::from(jitter) / u64::from(u8::MAX);
        self.attempts += 1;
        self.wait_until(now, delay.min(grace_ends.since(now)));
        Ok(())
    }

    /// Ends the machine: the last thing it says.
    fn finish(&mut self, reason: Error, exit: Option<Exit>) {
        if self.phase == Phase::Over {
            return;
        }
        if self.phase.has_socket() {
            self.effects.push_back(Effect::Close { socket: self.socket });
        }
        if self.armed.take().is_some() {
            self.effects.push_back(Effect::ClearTimer);
        }
        self.phase = Phase::Over;
        self.deadline = None;
        self.link = None;
        self.waiting = WaitingMessages::default();
        let (exit_code, stderr_tail) = exit.map_or((None, None), |exit| (exit.code, Some(exit.stderr_tail)));
        self.deliver(Inbound::Closed { reason, exit_code, stderr_tail: stderr_tail.filter(|tail| !tail.is_empty()) });
    }

    fn deliver(&mut self, inbound: Inbound) {
        self.effects.push_back(Effect::Deliver(inbound));
    }

    fn send_unnumbered(&mut self, kind: FrameKind) {
        let frame = match &mut self.link {
            Some(link) => link.unnumbered(kind, Vec::new()),
            None => Frame { kind, number: 0, seen: 0, payload: Vec::new() },
        };
        self.effects.push_back(Effect::Send { socket: self.socket, bytes: frame.encode() });
    }

    fn wait_until(&mut self, now: Millis, duration: u64) {
        self.deadline = Some((now.after(duration), duration));
    }

    /// Sets the host's timer when it would run down too late; one that runs down early is set again then.
    fn arm(&mut self) {
        let Some((deadline, _)) = self.deadline else { return };
        if self.armed.is_none_or(|armed| armed > deadline) {
            self.armed = Some(deadline);
            self.effects.push_back(Effect::SetTimer(deadline));
        }
    }
}

#[derive(Debug, PartialEq)]
enum Phase {
    Idle,
    /// From opening the socket until the shim has proved itself.
    Proving {
        nonce: String,
    },
    /// Until the hello.
    Attaching,
    Attached,
    /// Between two sockets.
    Waiting,
    Over,
}

impl Phase {
    fn has_socket(&self) -> bool {
        matches!(self, Self::Proving { .. } | Self::Attaching | Self::Attached)
    }
}

fn gone(frame: &Frame) -> Error {
    let text = frame.text().ok().filter(|text| !text.is_empty());
    Error::new(ErrorKind::ConnectionClosed, text.unwrap_or("the shim no longer has this server's process").to_owned())
}

fn describe_close(code: Option<u16>, reason: &str) -> String {
    match (code, reason) {
        (None, "") => "the socket did not open or broke".to_owned(),
        (None, reason) => reason.to_owned(),
        (Some(code), "") => format!("close code {code}"),
        (Some(code), reason) => format!("close code {code}: {reason}"),
    }
}

/// The next unpredictable bytes of the seed's sequence.
fn draw(seed: &[u8; 16], drawn: &mut u64) -> [u8; 16] {
    *drawn += 1;
    let digest = Sha256::new().chain_update(seed).chain_update(drawn.to_be_bytes()).finalize();
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, drawn)| *byte = drawn);
    bytes
}

/// From opening the socket to the shim's proof, in milliseconds; both are on one machine.
const OPEN_LIMIT: u64 = 10_000;

/// From attaching to the hello, in milliseconds: the shim may first have to find out what the server speaks, and a
/// server that is downloaded on its first start takes up to 60 s.
const HELLO_LIMIT: u64 = 90_000;

/// Without a frame for so many milliseconds the socket counts as dead; the shim pings every 20 s.
const SILENCE_LIMIT: u64 = 60_000;

/// The first wait before a reconnect, in milliseconds; doubled each time.
const FIRST_RETRY: u64 = 250;

/// The longest wait between reconnects, in milliseconds.
const LONGEST_RETRY: u64 = 5_000;

#[cfg(test)]
mod tests;
