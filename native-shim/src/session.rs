//! One process and the client it belongs to: a task that outlives sockets, and ends the process when the client is gone
//! for longer than the grace.

use std::collections::VecDeque;
use std::time::Duration;

use crablet::Error;
use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{Message, RequestId};
use crablet::mcp::transport::shim::{
    Exit, Frame, FrameKind, Hello, Link, MAX_MESSAGE_BYTES, Receipt, ServerEra, WINDOW_BYTES, WINDOW_FRAMES,
};
use crablet::native::process::{ExitReport, ProcessEvent, ProcessInput, ProcessOutput, ReadyInput, ServerProcess};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::grants::GrantFile;
use crate::limits::Limits;
use crate::log::{Flood, show_server_line};

/// A socket that wants to be the client's.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// Whether the client remembers its numbers.
    pub(crate) continues: bool,
    /// The last number that the client has seen.
    pub(crate) seen: u64,
    pub(crate) era: Option<ServerEra>,
    /// Encoded frames to the socket. Holds [`OUTGOING_QUEUE`].
    pub(crate) outgoing: mpsc::Sender<Vec<u8>>,
    pub(crate) incoming: mpsc::Receiver<Frame>,
}

/// What a session is made of beside its process.
#[derive(Debug)]
pub(crate) struct SessionOptions {
    pub(crate) server: String,
    pub(crate) key_id: String,
    pub(crate) resume: String,
    pub(crate) grace: Duration,
    pub(crate) grants: GrantFile,
    pub(crate) limits: Limits,
}

/// Room for everything that can be under way unseen, and for unnumbered frames between.
pub(crate) const OUTGOING_QUEUE: usize = WINDOW_FRAMES + 64;

/// Runs a session until its process is gone, and tells how that ended if it ended by itself.
pub(crate) async fn run_session(
    options: SessionOptions,
    process: ServerProcess,
    mut attachments: mpsc::Receiver<Attachment>,
    mut shutdown: watch::Receiver<bool>,
) -> Option<ExitReport> {
    let ServerProcess { input, mut output, mut log } = process;
    let server = options.server.clone();
    let mut session = Session::new(options);
    let mut flood = Flood::new();
    let mut ping = interval(PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (started, limits) = (Instant::now(), session.options.limits);
    let mut exited = None;
    while !session.over {
        tokio::select! {
            Some(attachment) = attachments.recv() => {
                session.attach(attachment);
                ping.reset_immediately();
            }
            frame = next_frame(&mut session.client) => match frame {
                Some(frame) => session.take_with_followers(frame),
                None => session.detach(),
            },
            ready = input.ready(), if exited.is_none() && !session.to_process.is_empty() => match ready {
                Ok(place) => session.fill(place),
                // Its exit is about to be told.
                Err(_) => session.forget_messages(),
            },
            Some(event) = output.next(), if exited.is_none() && session.link.has_room_for(0) => {
                exited = session.pass_on(event);
            }
            Some(line) = log.recv() => show_server_line(&server, &line, &mut flood),
            _ = ping.tick(), if session.client.is_some() => session.check_client(),
            () = sleep_until(session.grace_ends), if session.client.is_none() => break,
            () = end_of(session.moved, limits.idle) => session.end_with("the process was idle for too long"),
            () = end_of(started, limits.lifetime) => session.end_with("the process has reached its greatest age"),
            // Whoever waits for an answer need not wait for the grace.
            _ = shutdown.changed() => session.end_with("crablet-shim was stopped"),
        }
        // What is at hand needs no round of waiting for each message. A goodbye does not overtake what was sent before it.
        if exited.is_none() {
            session.feed(&input);
            exited = session.read(&mut output);
        }
    }
    // A client that comes now is told that it is too late.
    drop((session, input, attachments));
    while exited.is_none() && !matches!(output.next().await, Some(ProcessEvent::Exited(_)) | None) {}
    // Its last words are in the log, however quickly its client was gone.
    while let Ok(line) = log.try_recv() {
        show_server_line(&server, &line, &mut flood);
    }
    exited
}

/// When so much time has passed since a moment; never without a limit.
async fn end_of(since: Instant, limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep_until(since + limit).await,
        None => std::future::pending().await,
    }
}

struct Session {
    options: SessionOptions,
    link: Link,
    client: Option<Client>,
    clients: u64,
    grace_ends: Instant,
    /// When a message last went either way.
    moved: Instant,
    /// Received and not yet taken by the process; empty ones are of an unknown kind and skipped.
    to_process: VecDeque<Vec<u8>>,
    to_process_bytes: usize,
    handshake: Handshake,
    /// Nothing numbered follows.
    exit_sent: bool,
    over: bool,
}

struct Client {
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: mpsc::Receiver<Frame>,
}

/// The one exchange that a later client must know of.
enum Handshake {
    /// None yet; so many messages of the client were looked at.
    Awaited(usize),
    Asked(RequestId),
    Answered(RawJson),
    /// This client opens without one.
    None,
}

impl Session {
    fn new(options: SessionOptions) -> Self {
        let grace_ends = Instant::now() + options.grace.max(FIRST_ATTACH);
        Self {
            options,
            link: Link::new(),
            client: None,
            clients: 0,
            grace_ends,
            moved: Instant::now(),
            to_process: VecDeque::new(),
            to_process_bytes: 0,
            handshake: Handshake::Awaited(0),
            exit_sent: false,
            over: false,
        }
    }

    /// Takes a socket in place of the one before, if any: the client opens a new one only when its old one is dead.
    fn attach(&mut self, attachment: Attachment) {
        let Attachment { continues, seen, era, outgoing, incoming } = attachment;
        self.client = Some(Client { outgoing, incoming });
        if continues {
            if let Err(error) = self.link.peer_has_seen(seen) {
                return self.refuse(&error);
            }
        } else {
            self.clients += 1;
        }
        let hello = Hello {
            resume: self.options.resume.clone(),
            id_prefix: format!("{}-", self.clients),
            next: self.link.first_unseen(),
            grace_ms: u64::try_from(self.options.grace.as_millis()).unwrap_or(u64::MAX),
            era,
            initialized: match &self.handshake {
                Handshake::Answered(result) => Some(result.clone()),
                _ => None,
            },
        };
        let unseen = self.link.unseen();
        // A client that remembers sends again what is not yet taken; another must not use those numbers a second time.
        let seen = if continues { self.link.seen() } else { self.link.received() };
        self.send(Frame { kind: FrameKind::Hello, number: 0, seen, payload: hello.to_payload() }.encode());
        unseen.iter().for_each(|frame| self.send(frame.encode()));
    }

    fn detach(&mut self) {
        self.client = None;
        self.grace_ends = Instant::now() + self.options.grace;
    }

    /// Takes a frame and those that came together with it.
    fn take_with_followers(&mut self, frame: Frame) {
        let mut next = Some(frame);
        while let Some(frame) = next.take().filter(|_| !self.over) {
            self.take(frame);
            next = self.client.as_mut().and_then(|client| client.incoming.try_recv().ok());
        }
    }

    fn take(&mut self, frame: Frame) {
        if let Err(error) = self.try_take(frame) {
            self.refuse(&error);
        }
    }

    fn try_take(&mut self, frame: Frame) -> Result<(), Error> {
        self.link.peer_has_seen(frame.seen)?;
        self.over = frame.kind == FrameKind::End || (self.exit_sent && self.link.has_nothing_unseen());
        if frame.number == 0 || self.link.receive(frame.number)? == Receipt::Repeated {
            return Ok(());
        }
        let payload = if frame.kind == FrameKind::Message { frame.payload } else { Vec::new() };
        self.to_process_bytes += payload.len();
        self.to_process.push_back(payload);
        if self.to_process.len() > WINDOW_FRAMES || self.to_process_bytes > WINDOW_BYTES + MAX_MESSAGE_BYTES {
            let message = "the client sends on although the server takes no more";
            return Err(Error::new(crablet::ErrorKind::Limit, message));
        }
        Ok(())
    }

    /// Gives the process what it takes without waiting.
    fn feed(&mut self, input: &ProcessInput) {
        while !self.to_process.is_empty()
            && let Some(place) = input.try_ready()
        {
            self.fill(place);
        }
    }

    fn fill(&mut self, place: ReadyInput<'_>) {
        if let Some(message) = self.next_for_process() {
            place.send(message);
        }
    }

    /// Passes on what the process has given already, and gives its end if that is part of it.
    fn read(&mut self, output: &mut ProcessOutput) -> Option<ExitReport> {
        while self.link.has_room_for(0)
            && let Some(event) = output.try_next()
        {
            let exited = self.pass_on(event);
            if exited.is_some() {
                return exited;
            }
        }
        None
    }

    /// The next message that the process shall get, which counts as seen from now on.
    fn next_for_process(&mut self) -> Option<String> {
        let payload = self.to_process.pop_front()?;
        self.to_process_bytes -= payload.len();
        self.moved = Instant::now();
        self.link.took(payload.len());
        if self.link.should_tell_seen() {
            self.send_unnumbered(FrameKind::Seen, Vec::new());
        }
        let message =
            String::from_utf8(payload).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        self.look_for_handshake(&message);
        (!message.is_empty()).then_some(message)
    }

    /// The process takes nothing more.
    fn forget_messages(&mut self) {
        self.to_process.clear();
        self.to_process_bytes = 0;
    }

    /// Tells the client what the process did, and gives its end.
    fn pass_on(&mut self, event: ProcessEvent) -> Option<ExitReport> {
        match event {
            ProcessEvent::Message(message) => {
                self.pass_message(message);
                None
            }
            ProcessEvent::Exited(report) => {
                self.pass_exit(&report);
                Some(report)
            }
        }
    }

    fn pass_message(&mut self, message: String) {
        self.moved = Instant::now();
        if let Handshake::Asked(asked) = &self.handshake {
            let answers = Message::parse(&message).unwrap_or_default().into_iter().find_map(|message| match message {
                Message::Response { id: Some(id), outcome } if id.matches(asked) => Some(outcome),
                _ => None,
            });
            match answers {
                Some(Ok(result)) => self.handshake = Handshake::Answered(result),
                Some(Err(_)) => self.handshake = Handshake::Awaited(0),
                None => {}
            }
        }
        let frame = self.link.send(FrameKind::Message, message.into_bytes());
        self.send(frame);
    }

    fn pass_exit(&mut self, report: &ExitReport) {
        let exit = Exit {
            code: report.code,
            signal: report.signal,
            message: report.describe(&self.options.server),
            stderr_tail: report.stderr_tail.clone(),
        };
        let frame = self.link.send(FrameKind::Exit, exit.to_payload());
        self.exit_sent = true;
        self.send(frame);
    }

    /// Messages are relayed unread, but for the first ones of a client: a later client has to know the answer to
    /// `initialize`.
    fn look_for_handshake(&mut self, message: &str) {
        let Handshake::Awaited(count) = &mut self.handshake else { return };
        *count += 1;
        if *count > HANDSHAKE_WITHIN {
            self.handshake = Handshake::None;
            return;
        }
        let is_initialize = |object: &Object<'_>| object.string("method").as_deref() == Some("initialize");
        let id = Object::parse(message).ok().filter(is_initialize).and_then(|object| object.raw("id"));
        if let Some(id) = id.as_ref().and_then(RequestId::read) {
            self.handshake = Handshake::Asked(id);
        }
    }

    /// Now and then: asks the client whether it is there, and the file whether it may still be.
    fn check_client(&mut self) {
        let is_revoked = self
            .options
            .grants
            .read()
            .is_ok_and(|grants| !grants.iter().any(|grant| grant.token.key_id() == self.options.key_id));
        if is_revoked {
            self.end_with("the token was revoked");
        } else {
            self.send_unnumbered(FrameKind::Ping, Vec::new());
        }
    }

    fn refuse(&mut self, error: &Error) {
        self.end_with(error.message());
    }

    fn end_with(&mut self, why: &str) {
        self.send_unnumbered(FrameKind::Gone, why.as_bytes().to_vec());
        self.over = true;
    }

    fn send_unnumbered(&mut self, kind: FrameKind, payload: Vec<u8>) {
        let frame = self.link.unnumbered(kind, payload);
        self.send(frame.encode());
    }

    /// Hands a written frame to the socket. One whose queue is full has a client that reads nothing, and is dropped. What came over
    /// one that has ended is read first, since its last frame may be the client's goodbye.
    fn send(&mut self, frame: Vec<u8>) {
        let Some(client) = &self.client else { return };
        if let Err(TrySendError::Full(_)) = client.outgoing.try_send(frame) {
            self.detach();
        }
    }
}

/// The next frame of the client; never, while there is none.
async fn next_frame(client: &mut Option<Client>) -> Option<Frame> {
    match client {
        Some(client) => client.incoming.recv().await,
        None => std::future::pending().await,
    }
}

/// Below the 30 s after which a browser stops the worker of an extension that hears nothing.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// A client opens with `initialize`, at most after a discovery and what goes with it.
const HANDSHAKE_WITHIN: usize = 8;

/// From the start of a process to its first client, which is about to attach.
const FIRST_ATTACH: Duration = Duration::from_secs(10);

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
