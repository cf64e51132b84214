use std::sync::mpsc::RecvTimeoutError;

use crablet::Millis;
use crablet::mcp::transport::shim::Token;
use crablet::native::process::ServerCommand;

use super::*;
use crate::grants::Grant;
use crate::state::StateDirectory;

/// A session of `cat` with the shim's hand on it.
struct World {
    attachments: mpsc::Sender<Attachment>,
    grants: GrantFile,
    token: Token,
    directory: StateDirectory,
    shutdown: watch::Sender<bool>,
}

/// How long a session waits for a client to come back.
const GRACE: Duration = Duration::from_secs(60);

/// A socket as the session sees it.
struct Socket {
    frames: mpsc::Receiver<Vec<u8>>,
    sender: mpsc::Sender<Frame>,
}

impl World {
    fn start(name: &str) -> Self {
        Self::with_limits(name, Limits::default())
    }

    fn with_limits(name: &str, limits: Limits) -> Self {
        Self::with(name, limits, ServerCommand::new("cat", [""; 0]))
    }

    fn with(name: &str, limits: Limits, command: ServerCommand) -> Self {
        let directory = StateDirectory::scratch(&format!("session-{name}"));
        let grants = GrantFile::of(&directory);
        let token = Token::from_random([1; 9], [2; 32]);
        let grant = Grant::new(token.clone(), vec![], vec!["echo".into()], Millis(1));
        grants.add(grant).unwrap();
        let options = SessionOptions {
            server: "echo".into(),
            key_id: token.key_id().into(),
            resume: "r".into(),
            grace: GRACE,
            grants: grants.clone(),
            limits,
        };
        let (attachments, requests) = mpsc::channel(1);
        let (shutdown, stopped) = watch::channel(false);
        let process = ServerProcess::start(command);
        tokio::spawn(run_session(options, process, requests, stopped));
        Self { attachments, grants, token, directory, shutdown }
    }

    async fn attach(&self, continues: bool, seen: u64) -> Socket {
        let (outgoing, frames) = mpsc::channel(OUTGOING_QUEUE);
        let (sender, incoming) = mpsc::channel(4);
        let attachment = Attachment { continues, seen, era: None, outgoing, incoming };
        self.attachments.send(attachment).await.unwrap();
        Socket { frames, sender }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.directory.remove();
    }
}

impl Socket {
    /// The next frame that is no ping.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            let frame = Frame::decode(self.frames.recv().await?).unwrap();
            if frame.kind != FrameKind::Ping {
                return Some(frame);
            }
        }
    }

    async fn send(&self, number: u64, seen: u64, text: &str) {
        let frame = Frame { kind: FrameKind::Message, number, seen, payload: text.as_bytes().to_vec() };
        self.sender.send(frame).await.unwrap();
    }
}

#[tokio::test]
async fn a_new_socket_takes_the_place_of_a_dead_one() {
    let world = World::start("takeover");
    let mut first = world.attach(false, 0).await;
    assert_eq!(first.next().await.unwrap().kind, FrameKind::Hello);
    first.send(1, 0, r#"{"jsonrpc":"2.0","id":1}"#).await;
    assert_eq!(first.next().await.unwrap().number, 1);

    let mut second = world.attach(true, 0).await;
    assert_eq!(second.next().await.unwrap().kind, FrameKind::Hello);
    let again = second.next().await.unwrap();
    assert_eq!((again.number, again.text().unwrap()), (1, r#"{"jsonrpc":"2.0","id":1}"#));
    assert_eq!(first.next().await, None, "the session let go of the first socket");
    // The message that the client sends again is known.
    second.send(1, 1, r#"{"jsonrpc":"2.0","id":1}"#).await;
    second.send(2, 1, r#"{"jsonrpc":"2.0","id":2}"#).await;
    let next = second.next().await.unwrap();
    assert_eq!((next.number, next.text().unwrap()), (2, r#"{"jsonrpc":"2.0","id":2}"#));
}

#[tokio::test(start_paused = true)]
async fn a_goodbye_counts_although_the_socket_has_ended() {
    let world = World::start("goodbye");
    let (outgoing, _) = mpsc::channel(OUTGOING_QUEUE);
    let (sender, incoming) = mpsc::channel(4);
    sender.send(Frame { kind: FrameKind::End, number: 0, seen: 0, payload: Vec::new() }).await.unwrap();
    drop(sender);
    let begun = Instant::now();
    let attachment = Attachment { continues: false, seen: 0, era: None, outgoing, incoming };
    world.attachments.send(attachment).await.unwrap();
    world.attachments.closed().await;
    assert!(begun.elapsed() < GRACE, "the session waited for the client to come back");
}

#[tokio::test]
async fn a_token_that_was_revoked_ends_the_session() {
    let world = World::start("revoked");
    let mut socket = world.attach(false, 0).await;
    assert_eq!(socket.next().await.unwrap().kind, FrameKind::Hello);
    // Else the look at the file that belongs to this ping may come after the revocation.
    let ping = Frame::decode(socket.frames.recv().await.unwrap()).unwrap();
    assert_eq!(ping.kind, FrameKind::Ping);
    world.grants.revoke(world.token.key_id()).unwrap();
    drop(socket);
    // The file is looked at with every ping, the first of which comes with the hello.
    let mut socket = world.attach(false, 0).await;
    loop {
        match socket.next().await {
            Some(frame) if frame.kind == FrameKind::Gone => {
                break assert_eq!(frame.text(), Ok("the token was revoked"));
            }
            Some(_) => {}
            None => panic!("the session ended without a word"),
        }
    }
}

#[tokio::test]
async fn a_stopped_shim_says_so() {
    let world = World::start("stopped");
    let mut socket = world.attach(false, 0).await;
    assert_eq!(socket.next().await.unwrap().kind, FrameKind::Hello);
    world.shutdown.send(true).unwrap();
    let frame = socket.next().await.unwrap();
    assert_eq!((frame.kind, frame.text()), (FrameKind::Gone, Ok("crablet-shim was stopped")));
    assert_eq!(socket.next().await, None);
}

/// The end of a process is an event, not something that a timer finds: it is told while the clock stands still.
#[tokio::test(start_paused = true)]
async fn a_crash_is_told_without_waiting_for_a_timer() {
    // A paused clock jumps to the next timer when nothing else is to be done, but not while a thread is busy.
    let (told, wait) = std::sync::mpsc::channel::<()>();
    let busy = tokio::task::spawn_blocking(move || wait.recv_timeout(Duration::from_secs(60)));
    let before = Instant::now();
    let command = ServerCommand::new("/bin/sh", ["-c", "read -r message; echo boom >&2; exit 3"]);
    let world = World::with("crash", Limits::default(), command);
    let mut socket = world.attach(false, 0).await;
    assert_eq!(socket.next().await.unwrap().kind, FrameKind::Hello);
    socket.send(1, 0, r#"{"jsonrpc":"2.0","id":1}"#).await;
    let exit = loop {
        let frame = socket.next().await.unwrap();
        if frame.kind == FrameKind::Exit {
            break Exit::parse(frame.text().unwrap()).unwrap();
        }
    };
    assert_eq!((exit.code, exit.stderr_tail.as_str()), (Some(3), "boom"));
    assert_eq!(before.elapsed(), Duration::ZERO, "a timer ran");
    drop(told);
    assert_eq!(busy.await.unwrap(), Err(RecvTimeoutError::Disconnected), "the clock stood still until here");
}

async fn ending(socket: &mut Socket) -> String {
    loop {
        let frame = socket.next().await.unwrap();
        if frame.kind == FrameKind::Gone {
            return frame.text().unwrap().to_owned();
        }
    }
}

#[tokio::test]
async fn a_process_that_nobody_uses_or_that_is_too_old_is_ended() {
    let limit = Some(Duration::from_millis(300));
    let idle = World::with_limits("idle", Limits { idle: limit, ..Limits::default() });
    let mut socket = idle.attach(false, 0).await;
    assert_eq!(ending(&mut socket).await, "the process was idle for too long");

    let old = World::with_limits("old", Limits { lifetime: limit, ..Limits::default() });
    let mut socket = old.attach(false, 0).await;
    assert_eq!(ending(&mut socket).await, "the process has reached its greatest age");
}
