//! Who is refused is refused before the upgrade, is told nothing, and starts nothing.

use std::path::PathBuf;

use crate::support::{Client, ECHO, Shim, next_frame, script};
use crablet::host::Host;
use crablet::mcp::transport::Inbound;
use crablet::mcp::transport::shim::{ClientProof, Frame, FrameKind, MAX_FRAME_BYTES, ProofContext, Token, server_path};
use crablet::native::NativeHost;
use crablet::{ErrorKind, Millis};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ORIGIN: &str = "https://app.example";
const NEIGHBOUR: &str = "https://neighbour.example";

/// A request as a hostile page or program could make it.
struct Attempt {
    path: String,
    host: String,
    origin: Option<&'static str>,
    protocols: String,
}

impl Attempt {
    async fn send(&self, port: u16) -> String {
        let origin = self.origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\n{origin}Connection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: {}\r\n\r\n",
            self.path, self.host, self.protocols
        );
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let mut buffer = [0; 1024];
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            let count = stream.read(&mut buffer).await.unwrap();
            if count == 0 {
                break;
            }
            answer.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn proof(token: &Token, nonce: u8, age: u64, authority: &str, server: &str) -> String {
    proof_from(ORIGIN, token, nonce, age, authority, server)
}

fn proof_from(origin: &str, token: &Token, nonce: u8, age: u64, authority: &str, server: &str) -> String {
    let now = NativeHost::new().unwrap().now();
    let context = ProofContext { authority, origin, server };
    let proof = ClientProof::new(token, [nonce; 16], Millis(now.0 - age), context);
    format!("crablet.v1, {}", proof.to_subprotocol())
}

#[tokio::test]
async fn hostile_attempts_are_refused_before_the_upgrade() {
    let marker = marker("started");
    let server = script(&format!("touch {}; {ECHO}", marker.display()));
    let mut shim = Shim::start(json!({ "files": server, "other": server }), &[]).await;
    let port = shim.port;
    let token = shim.grant(ORIGIN, &["files"]).await;
    // Another page that may come in, with a token of its own.
    shim.grant(NEIGHBOUR, &["files"]).await;
    let authority = format!("127.0.0.1:{port}");
    let good = |nonce| Attempt {
        path: "/servers/files".into(),
        host: authority.clone(),
        origin: Some(ORIGIN),
        protocols: proof(&token, nonce, 0, &authority, "files"),
    };
    let stranger = Token::from_random([9; 9], [9; 32]);
    let elsewhere = format!("127.0.0.1:{}", port ^ 1);
    let rebound = format!("rebind.example:{port}");

    let attempts = [
        ("unknown path", 404, Attempt { path: "/".into(), ..good(1) }),
        ("unknown server", 404, Attempt { path: "/servers/shell".into(), ..good(2) }),
        ("query", 404, Attempt { path: "/servers/files?command=sh".into(), ..good(3) }),
        ("path tricks", 404, Attempt { path: "/servers/other/../files".into(), ..good(4) }),
        ("rebound name", 403, Attempt { host: rebound, ..good(5) }),
        ("no port", 403, Attempt { host: "127.0.0.1".into(), ..good(6) }),
        ("evil origin", 403, Attempt { origin: Some("https://evil.example"), ..good(7) }),
        ("null origin", 403, Attempt { origin: Some("null"), ..good(8) }),
        ("near origin", 403, Attempt { origin: Some("https://app.example.evil"), ..good(9) }),
        ("other scheme", 403, Attempt { origin: Some("http://app.example"), ..good(10) }),
        // A proof that was made for one page is worth nothing to another, though both are paired.
        ("a neighbour with this page's proof", 401, Attempt { origin: Some(NEIGHBOUR), ..good(18) }),
        (
            "a neighbour with this page's token",
            403,
            Attempt {
                origin: Some(NEIGHBOUR),
                protocols: proof_from(NEIGHBOUR, &token, 19, 0, &authority, "files"),
                ..good(19)
            },
        ),
        ("no proof", 401, Attempt { protocols: "crablet.v1, mcp".into(), ..good(11) }),
        ("no origin with a page's token", 401, Attempt { origin: None, ..good(12) }),
        ("unknown token", 401, Attempt { protocols: proof(&stranger, 13, 0, &authority, "files"), ..good(13) }),
        ("expired", 401, Attempt { protocols: proof(&token, 14, 61_000, &authority, "files"), ..good(14) }),
        ("for another port", 401, Attempt { protocols: proof(&token, 15, 0, &elsewhere, "files"), ..good(15) }),
        ("for another server", 401, Attempt { protocols: proof(&token, 16, 0, &authority, "other"), ..good(16) }),
        (
            "another server's path",
            403,
            Attempt { path: "/servers/other".into(), protocols: proof(&token, 17, 0, &authority, "other"), ..good(17) },
        ),
    ];
    for (name, status, attempt) in attempts {
        let answer = attempt.send(port).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        assert!(answer.ends_with("\r\n\r\n") && answer.contains("content-length: 0"), "no detail for {name}: {answer}");
    }
    assert!(!marker.exists(), "nothing was started");

    // The same request is good once.
    let once = good(20);
    assert!(once.send(port).await.starts_with("HTTP/1.1 101 "));
    assert!(once.send(port).await.starts_with("HTTP/1.1 401 "));

    let log = shim.end("-TERM").await;
    assert!(log.contains(r#"the origin "https://evil.example" is not allowed to use "files""#), "{log}");
    assert!(log.contains("was used before"), "{log}");
    let secret = token.reveal().split('.').nth(1).unwrap().to_owned();
    assert!(!log.contains(&secret) && !log.contains("crablet.proof"), "{log}");
}

/// A file that is there once something was run that should not have been.
fn marker(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()))
}

/// Neither the path, nor the query, nor the first frame, nor a message is a way to a command line.
#[tokio::test]
async fn no_word_of_a_client_becomes_a_command() {
    let marker = marker("injected");
    let touch = format!("touch {}", marker.display());
    let shim = Shim::start(json!({ "files": script(ECHO) }), &[]).await;
    let token = shim.grant(ORIGIN, &["files"]).await;
    let authority = format!("127.0.0.1:{}", shim.port);
    let names =
        [format!("files;{touch}"), format!("$({touch})"), "../../bin/sh".to_owned(), format!("sh\0-c\0{touch}")];
    let queries = [format!("?command=/bin/sh&args=-c&args={touch}"), format!("?env=PATH%3D/tmp&cwd=/&command={touch}")];
    let named = names.iter().map(|name| (server_path(name), name.as_str()));
    let queried = queries.iter().map(|query| (format!("/servers/files{}", query.replace(' ', "%20")), "files"));
    for (nonce, (path, server)) in (1..).zip(named.chain(queried)) {
        let protocols = proof(&token, nonce, 0, &authority, server);
        let answer = Attempt { path, host: authority.clone(), origin: Some(ORIGIN), protocols }.send(shim.port).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{server}: {answer}");
    }
    assert!(!marker.exists());

    // A client that is let in and asks for a command in its first frame gets the configured server.
    let attach =
        json!({ "continues": false, "command": "/bin/sh", "args": ["-c", touch], "env": { "X": "y" }, "cwd": "/" });
    let mut socket = shim.open_socket("files", attach.to_string()).await;
    assert_eq!(next_frame(&mut socket).await.kind, FrameKind::Hello);

    let mut client = shim.client("files").await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": touch, "params": { "command": touch } })).await;
    assert_eq!(client.message().await["id"], 1);
    assert!(!marker.exists(), "nothing but the configured server was started");
}

#[tokio::test]
async fn a_client_with_a_wrong_token_or_server_is_told_so() {
    let shim = Shim::start(json!({ "files": script(ECHO) }), &[]).await;
    let mut options = shim.options("files").await;
    options.server = "other".into();
    let Inbound::Closed { reason, .. } = Client::connect(options.clone()).await.next().await else { panic!() };
    assert_eq!(reason.message(), format!("crablet-shim at 127.0.0.1:{} has no server \"other\"", shim.port));
    options.server = "files".into();
    options.token = Token::from_random([9; 9], [9; 32]);
    let Inbound::Closed { reason, .. } = Client::connect(options).await.next().await else { panic!() };
    assert_eq!(reason.kind(), ErrorKind::Auth);
    assert!(reason.message().contains("does not accept the token"), "{}", reason.message());
}

#[tokio::test]
async fn only_this_address_is_listened_on() {
    let shim = Shim::start(json!({}), &[]).await;
    assert!(TcpStream::connect(("127.0.0.1", shim.port)).await.is_ok());
    for other in ["127.0.0.2", "::1"] {
        assert!(TcpStream::connect((other, shim.port)).await.is_err(), "{other}");
    }
}

#[tokio::test]
async fn endless_heads_and_other_protocols_end_the_connection() {
    let shim = Shim::start(json!({ "files": script(ECHO) }), &[]).await;
    for junk in [format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(1 << 20)), "\u{16}\u{3}\u{1} TLS?\r\n\r\n".to_owned()] {
        let mut stream = TcpStream::connect(("127.0.0.1", shim.port)).await.unwrap();
        // The shim may hang up while this is still being written.
        let _ = stream.write_all(junk.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
    }
    let mut client = shim.client("files").await;
    client.attached(1).await;
}

#[tokio::test]
async fn a_frame_that_is_too_large_ends_the_socket_and_nothing_else() {
    let shim = Shim::start(json!({ "files": script(ECHO) }), &[]).await;
    let mut client = shim.client("files").await;
    client.attached(1).await;
    let payload = vec![b' '; MAX_FRAME_BYTES];
    client.send_frame(Frame { kind: FrameKind::Message, number: 1, seen: 0, payload }).await;
    client.attached(2).await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1 })).await;
    assert_eq!(client.message().await["id"], 1);
}

#[tokio::test]
async fn frames_against_the_rules_end_the_session_with_a_sentence() {
    let shim = Shim::start(json!({ "files": script(ECHO) }), &[]).await;
    for (number, seen) in [(7, 0), (0, 99)] {
        let mut client = shim.client("files").await;
        client.attached(1).await;
        client.send_frame(Frame { kind: FrameKind::Message, number, seen, payload: b"{}".to_vec() }).await;
        let Inbound::Closed { reason, .. } = client.next().await else { panic!() };
        assert!(reason.message().contains("frame"), "{}", reason.message());
    }
}

#[tokio::test]
async fn a_page_with_its_token_comes_in() {
    let shim = Shim::start(json!({ "my files": script(ECHO) }), &["--origin", ORIGIN]).await;
    let token = shim.grant(ORIGIN, &["my files"]).await;
    let authority = format!("localhost:{}", shim.port);
    let attempt = Attempt {
        path: "/servers/my%20files".into(),
        host: authority.clone(),
        origin: Some(ORIGIN),
        protocols: proof(&token, 1, 0, &authority, "my files"),
    };
    let answer = attempt.send(shim.port).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(answer.contains("sec-websocket-protocol: crablet.v1\r\n"), "{answer}");
    assert!(answer.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{answer}");
}
