use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::transport::shim::Token;
use crablet::native::process::{GuardianCommand, ServerCommand};

use super::*;
use crate::config::Server;
use crate::sessions::Sessions;
use crate::state::StateDirectory;

/// A child that takes everything and answers nothing, and a handshake caller of it.
struct World {
    handle: ChildHandle,
    grants: GrantFile<HttpGrant>,
    token: Token,
    directory: StateDirectory,
}

impl World {
    fn start(name: &str, limits: Limits) -> Self {
        let directory = StateDirectory::scratch(&format!("child-{name}"));
        let grants = GrantFile::of(&directory);
        let token = Token::from_random([1; 9], [2; 32]);
        grants.add(HttpGrant::new(&token, vec![], vec!["deaf".into()], now())).unwrap();
        // The process is started here, without a guardian; the sessions only keep a place for it.
        let guardian = GuardianCommand { program: "unused".into(), arguments: vec![] };
        let sessions = Sessions::new(guardian, Duration::ZERO, GrantFile::of(&directory));
        let server = Server {
            command: "unused".into(),
            arguments: vec![],
            environment: Default::default(),
            directory: None,
            origins: vec![],
            limits,
        };
        let place = sessions.place("deaf", &server).unwrap();
        let options = ChildOptions {
            server: "deaf".into(),
            key_id: token.key_id().into(),
            grants: Some(grants.clone()),
            limits,
            callers: Callers::Handshake,
            era: ServerEra::Handshake,
            idle: UNUSED,
            nonce: "n".into(),
        };
        let process = ServerProcess::start(ServerCommand::new("/bin/sh", ["-c", "while read -r line; do :; done"]));
        let (handle, task) = child(options, process, place, sessions.shutdown());
        tokio::spawn(async move {
            task.await;
            drop(sessions);
        });
        Self { handle, grants, token, directory }
    }

    /// Sends the request that a session begins with.
    async fn call(&self) -> OpenExchange {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
        let asked = PostedRequest {
            id: RawJson::parse("1").unwrap(),
            method: "initialize".into(),
            params: Params::from_object(&RawJson::parse(params).unwrap()).unwrap(),
            headers: Some(vec![]),
            raw: RawJson::parse("{}").unwrap(),
        };
        self.handle.call(asked).await.unwrap()
    }

    /// Waits until the child has ended.
    async fn end(&self) {
        self.handle.commands.closed().await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.directory.remove();
    }
}

/// What the caller is told at last.
async fn told(mut open: OpenExchange) -> String {
    let piece = open.next().await.unwrap();
    assert!(piece.is_last, "{piece:?}");
    piece.message.as_str().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_revoked_ends_the_child_at_the_next_look() {
    let world = World::start("revoked", Limits::default());
    let open = world.call().await;
    // The first look is at once; the call is at work by now.
    tokio::time::sleep(LOOK_INTERVAL / 2).await;
    let revoked = Instant::now();
    world.grants.revoke(world.token.key_id()).unwrap();
    let told = told(open).await;
    assert!(told.contains("the server \\\"deaf\\\" was ended: the token was revoked"), "{told}");
    assert!(revoked.elapsed() <= LOOK_INTERVAL, "{:?}", revoked.elapsed());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_says_nothing_for_too_long_is_ended() {
    let limit = 2 * LOOK_INTERVAL + Duration::from_secs(1);
    let world = World::start("idle", Limits { idle: Some(limit), ..Limits::default() });
    let started = Instant::now();
    let told = told(world.call().await).await;
    assert!(told.contains("the process was idle for too long"), "{told}");
    assert_eq!(started.elapsed().as_secs(), limit.as_secs());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_too_old_is_ended() {
    let limit = 2 * LOOK_INTERVAL + Duration::from_secs(1);
    let world = World::start("old", Limits { lifetime: Some(limit), ..Limits::default() });
    let started = Instant::now();
    let told = told(world.call().await).await;
    assert!(told.contains("the process has reached its greatest age"), "{told}");
    assert_eq!(started.elapsed().as_secs(), limit.as_secs());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_lives_as_long_as_somebody_waits_for_it_and_a_while_longer() {
    let world = World::start("unused", Limits::default());
    let open = world.call().await;
    tokio::time::sleep(2 * UNUSED).await;
    assert!(!world.handle.is_over());
    drop(open);
    let left = Instant::now();
    world.end().await;
    assert_eq!(left.elapsed().as_secs(), UNUSED.as_secs());
}

#[tokio::test]
async fn a_call_behind_the_end_of_its_child_is_answered_too() {
    let world = World::start("behind", Limits::default());
    // The task has not run yet, so that the end is the first that it sees and the call the second.
    world.handle.commands.try_send(Command::End).unwrap();
    let told = told(world.call().await).await;
    assert!(told.contains("the server \\\"deaf\\\" was ended: the session was ended"), "{told}");
    assert!(world.handle.is_over());
}

/// How long the child of these tests lives without a caller.
const UNUSED: Duration = Duration::from_secs(100);
