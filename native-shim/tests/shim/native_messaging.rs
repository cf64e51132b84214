//! The shim as a browser starts it for an extension: real pipes, real servers, and everything that can go wrong between.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crablet::Millis;
use crablet::mcp::transport::shim::{
    Attach, ClientProof, Exit, Frame, FrameKind, Hello, MAX_BROWSER_MESSAGE_BYTES, MAX_HOST_MESSAGE_BYTES,
    NATIVE_MESSAGING_TOKEN, ProofContext, Token, verify_server_proof,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::{ECHO, assert_gone, scratch_directory, script, write_config};

const EXTENSION: &str = "abcdefghijklmnopabcdefghijklmnop";
const NONCE: [u8; 16] = [7; 16];

/// A browser's end of the pipes of one shim.
struct Browser {
    directory: PathBuf,
    process: Child,
    to_shim: Option<ChildStdin>,
    from_shim: BufReader<ChildStdout>,
    /// Beginnings of frames that come in pieces.
    pieces: HashMap<u64, String>,
    numbers: HashMap<u64, u64>,
}

impl Browser {
    /// A shim for an extension that was granted all of these servers.
    async fn start(servers: Value) -> Self {
        let names: Vec<_> = servers.as_object().unwrap().keys().map(String::as_str).collect();
        Self::start_as(&[&format!("chrome-extension://{EXTENSION}/")], &servers, &names).await
    }

    async fn start_as(arguments: &[&str], servers: &Value, granted: &[&str]) -> Self {
        let directory = scratch_directory();
        write_config(&directory, &json!({ "mcpServers": servers }).to_string());
        let mut install = Command::new(env!("CARGO_BIN_EXE_crablet-shim"));
        install.args(["install", "--browser", "chromium", "--extension", EXTENSION, "--config"]);
        install.arg(directory.join("servers.json")).env("HOME", &directory).env_remove("XDG_CONFIG_HOME");
        for server in granted {
            install.args(["--server", server]);
        }
        assert!(install.env("CRABLET_STATE_DIR", directory.join("state")).output().await.unwrap().status.success());
        let mut process = Command::new(directory.join("state/native-messaging/dev.crablet.shim"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (to_shim, from_shim) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        Self { directory, process, to_shim, from_shim, pieces: HashMap::new(), numbers: HashMap::new() }
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.to_shim.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        let text = message.to_string();
        self.write(&u32::try_from(text.len()).unwrap().to_ne_bytes()).await;
        self.write(text.as_bytes()).await;
    }

    /// The next message that is more than a question whether this side is there; `None` at the end of the pipe.
    async fn message(&mut self) -> Option<Value> {
        loop {
            let length = self.from_shim.read_u32_le().await.ok()?;
            assert!(usize::try_from(length).unwrap() <= MAX_HOST_MESSAGE_BYTES, "a browser takes no {length} bytes");
            let mut text = vec![0; usize::try_from(length).unwrap()];
            self.from_shim.read_exact(&mut text).await.unwrap();
            let message: Value = serde_json::from_slice(&text).unwrap();
            let frame = message["data"].as_str().and_then(|data| Frame::decode(STANDARD.decode(data).unwrap()).ok());
            if !frame.is_some_and(|frame| matches!(frame.kind, FrameKind::Ping | FrameKind::Seen)) {
                return Some(message);
            }
        }
    }

    async fn open(&mut self, channel: u64, server: &str) -> Value {
        let context = ProofContext { authority: "a", origin: "", server };
        let proof = ClientProof::new(&token(), NONCE, Millis(0), context);
        let protocols = ["crablet.v1".to_owned(), proof.to_subprotocol()];
        self.send(json!({ "type": "open", "channel": channel, "server": server, "protocols": protocols })).await;
        self.message().await.unwrap()
    }

    /// Opens a channel and attaches to a new process.
    async fn connect(&mut self, channel: u64, server: &str) -> Hello {
        assert_eq!(self.open(channel, server).await, json!({ "type": "open", "channel": channel }));
        let (_, proof) = self.frame().await;
        assert_eq!(proof.kind, FrameKind::Proof);
        let nonce =
            ClientProof::new(&token(), NONCE, Millis(0), ProofContext { authority: "", origin: "", server: "" });
        assert!(verify_server_proof(&token(), nonce.nonce(), proof.text().unwrap()));
        self.send_frame(channel, FrameKind::Attach, 0, Attach::default().to_payload()).await;
        let (_, hello) = self.frame().await;
        assert_eq!(hello.kind, FrameKind::Hello, "{:?}", hello.text());
        Hello::parse(hello.text().unwrap()).unwrap()
    }

    async fn send_frame(&mut self, channel: u64, kind: FrameKind, number: u64, payload: Vec<u8>) {
        let data = STANDARD.encode(Frame { kind, number, seen: 0, payload }.encode());
        self.send(json!({ "type": "frame", "channel": channel, "data": data })).await;
    }

    /// Sends a JSON-RPC message.
    async fn tell(&mut self, channel: u64, message: Value) {
        let number = self.numbers.entry(channel).or_default();
        *number += 1;
        let number = *number;
        self.send_frame(channel, FrameKind::Message, number, message.to_string().into_bytes()).await;
    }

    /// The next whole frame, and its channel.
    async fn frame(&mut self) -> (u64, Frame) {
        loop {
            let message = self.message().await.expect("a frame");
            assert_eq!(message["type"], "frame", "{message}");
            let channel = message["channel"].as_u64().unwrap();
            *self.pieces.entry(channel).or_default() += message["data"].as_str().unwrap();
            if message["more"] == true {
                continue;
            }
            let whole = self.pieces.remove(&channel).unwrap();
            return (channel, Frame::decode(STANDARD.decode(whole).unwrap()).unwrap());
        }
    }

    /// The next JSON-RPC message, and its channel.
    async fn told(&mut self) -> (u64, Value) {
        let (channel, frame) = self.frame().await;
        assert_eq!(frame.kind, FrameKind::Message, "{:?}", frame.text());
        (channel, serde_json::from_slice(&frame.payload).unwrap())
    }

    /// Closes the shim's standard input.
    fn hang_up(&mut self) {
        self.to_shim = None;
    }

    /// Waits for the end of the shim: its exit code, what it said last, and its log.
    async fn end(mut self) -> (Option<i32>, VecDeque<Value>, String) {
        let mut messages = VecDeque::new();
        while let Some(message) = self.message().await {
            messages.push_back(message);
        }
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).await.unwrap();
        let code = self.process.wait().await.unwrap().code();
        std::fs::remove_dir_all(&self.directory).unwrap();
        (code, messages, log)
    }
}

fn token() -> Token {
    Token::parse(NATIVE_MESSAGING_TOKEN).unwrap()
}

#[tokio::test]
async fn several_servers_share_one_pipe() {
    let mut browser = Browser::start(json!({ "one": script(ECHO), "two": script(ECHO) })).await;
    let (one, two) = (browser.connect(1, "one").await, browser.connect(2, "two").await);
    assert_eq!(one.grace_ms, 0, "nothing waits for a browser that is gone");
    assert_ne!(one.resume, two.resume);
    browser.tell(2, json!({ "jsonrpc": "2.0", "id": "b" })).await;
    assert_eq!(browser.told().await, (2, json!({ "jsonrpc": "2.0", "id": "b" })));
    browser.tell(1, json!({ "jsonrpc": "2.0", "id": "a" })).await;
    assert_eq!(browser.told().await, (1, json!({ "jsonrpc": "2.0", "id": "a" })));
    browser.send(json!({ "type": "close", "channel": 1 })).await;
    browser.tell(2, json!({ "jsonrpc": "2.0", "id": "c" })).await;
    loop {
        match browser.message().await.unwrap() {
            closed if closed["type"] == "close" => assert_eq!(closed["channel"], 1),
            frame if frame["channel"] == 2 => break,
            other => panic!("{other}"),
        }
    }
    browser.hang_up();
    assert_eq!(browser.end().await.0, Some(0));
}

#[tokio::test]
async fn messages_of_megabytes_pass_both_ways() {
    let mut browser = Browser::start(json!({ "echo": script(ECHO) })).await;
    browser.connect(1, "echo").await;
    let long = "\u{20ac}\n\"".repeat(1_500_000);
    let message = json!({ "jsonrpc": "2.0", "id": 1, "params": long });
    browser.tell(1, message.clone()).await;
    assert!(browser.told().await == (1, message), "another message came back");
    browser.hang_up();
    assert_eq!(browser.end().await.0, Some(0));
}

#[tokio::test]
async fn the_exit_of_a_server_is_told_with_its_last_words() {
    let crash = r#"read -r first; case "$first" in *server/discover*) exit 1 ;; esac; echo 'boom' >&2; exit 3"#;
    let mut browser = Browser::start(json!({ "crash": script(crash) })).await;
    browser.connect(1, "crash").await;
    browser.tell(1, json!({ "jsonrpc": "2.0", "id": 1 })).await;
    let (_, frame) = browser.frame().await;
    assert_eq!(frame.kind, FrameKind::Exit);
    let exit = Exit::parse(frame.text().unwrap()).unwrap();
    assert_eq!((exit.code, exit.stderr_tail.trim()), (Some(3), "boom"));
}

/// A server with a child in its group and another that left it; it tells their ids, and none of them ends by itself.
const FAMILY: &str = r#"
trap '' TERM
(trap '' TERM; while :; do sleep 100; done) & child=$!
setsid sh -c 'trap "" TERM; while :; do sleep 100; done' & other=$!
echo "{\"jsonrpc\":\"2.0\",\"params\":[$$,$child,$other]}"
read -r first
echo '{"jsonrpc":"2.0","id":"discover","error":{"code":-32601,"message":"unknown"}}'
while :; do sleep 100; done
"#;

#[tokio::test]
async fn nothing_is_left_when_the_browser_closes_the_pipe_or_is_killed() {
    for is_killed in [false, true] {
        let mut browser = Browser::start(json!({ "family": script(FAMILY) })).await;
        browser.connect(1, "family").await;
        let (_, told) = browser.told().await;
        let ids: Vec<_> = told["params"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        assert_eq!(ids.len(), 3);
        if is_killed {
            browser.process.kill().await.unwrap();
        } else {
            browser.hang_up();
            assert_eq!(browser.end().await.0, Some(0));
        }
        for id in ids {
            assert_gone(id).await;
        }
    }
}

#[tokio::test]
async fn a_channel_that_is_closed_takes_its_process_along() {
    let mut browser = Browser::start(json!({ "family": script(FAMILY) })).await;
    browser.connect(1, "family").await;
    let (_, told) = browser.told().await;
    browser.send(json!({ "type": "close", "channel": 1 })).await;
    for id in told["params"].as_array().unwrap() {
        assert_gone(id.as_u64().unwrap()).await;
    }
    assert_eq!(browser.message().await.unwrap(), json!({ "type": "close", "channel": 1 }));
    browser.connect(2, "family").await;
}

#[tokio::test]
async fn an_extension_gets_what_it_was_granted_and_nothing_else() {
    let mut narrow = script(ECHO);
    narrow["origins"] = json!(["https://app.example"]);
    let servers = json!({ "echo": script(ECHO), "other": script(ECHO), "narrow": narrow });
    let chromium = format!("chrome-extension://{EXTENSION}/");
    let stranger = "chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba/";
    for (arguments, server, reason) in [
        (vec![chromium.as_str()], "other", "may not use the server \"other\""),
        (vec![chromium.as_str()], "none", "may not use the server \"none\""),
        (vec![chromium.as_str()], "narrow", "leave out the extension"),
        (vec![stranger], "echo", "may not use the server \"echo\""),
        (vec!["/home/me/host.json", "notes@example.org"], "echo", "may not use the server \"echo\""),
        (vec!["/home/me/host.json", EXTENSION], "echo", "did not say which extension"),
        (vec![EXTENSION], "echo", "did not say which extension"),
        (vec![], "echo", "did not say which extension"),
    ] {
        let mut browser = Browser::start_as(&arguments, &servers, &["echo", "narrow"]).await;
        let answer = browser.open(1, server).await;
        assert_eq!((&answer["type"], &answer["channel"]), (&json!("refused"), &json!(1)), "{answer}");
        assert!(answer["reason"].as_str().unwrap().contains(reason), "{answer}");
        // Frames of a channel that is not there are nobody's.
        browser.send_frame(1, FrameKind::Attach, 0, Attach::default().to_payload()).await;
        browser.hang_up();
        let (code, rest, log) = browser.end().await;
        assert_eq!((code, rest.len()), (Some(0), 0));
        assert!(log.contains(reason), "{log}");
    }
}

#[tokio::test]
async fn what_was_granted_can_be_taken_back() {
    let mut browser = Browser::start(json!({ "echo": script(ECHO) })).await;
    browser.connect(1, "echo").await;
    let shim = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crablet-shim"));
        command.args(arguments).env("CRABLET_STATE_DIR", browser.directory.join("state"));
        command
    };
    let listed = shim(&["tokens"]).output().await.unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    assert!(listed.contains(&format!("echo  for the extension {EXTENSION}, over native messaging")), "{listed}");
    let key_id = listed.split(' ').next().unwrap();
    assert!(shim(&["revoke", key_id]).status().await.unwrap().success());
    assert_eq!(browser.open(2, "echo").await["type"], "refused");
    // The open connection ends at the next look at the file.
    let (_, frame) = browser.frame().await;
    assert_eq!((frame.kind, frame.text().unwrap()), (FrameKind::Gone, "the token was revoked"));
}

#[tokio::test]
async fn what_is_no_message_ends_the_shim_with_a_reason() {
    let too_long = u32::try_from(MAX_BROWSER_MESSAGE_BYTES + 1).unwrap().to_ne_bytes();
    let behind = |text: &str| [&u32::try_from(text.len()).unwrap().to_ne_bytes(), text.as_bytes()].concat();
    for (bytes, reason) in [
        (too_long.to_vec(), "bytes was announced"),
        (u32::MAX.to_ne_bytes().to_vec(), "bytes was announced"),
        (behind("not JSON, and secret"), "none of crablet's"),
        (behind(r#"{"type":"frame","channel":1,"data":"***"}"#), "not base64"),
        (behind(""), "none of crablet's"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "bytes was announced"),
    ] {
        let mut browser = Browser::start(json!({ "echo": script(ECHO) })).await;
        browser.write(&bytes).await;
        let (code, mut messages, log) = browser.end().await;
        let last = messages.pop_back().unwrap();
        assert_eq!((code, &last["type"]), (Some(1), &json!("failed")));
        assert!(last["reason"].as_str().unwrap().contains(reason) && !last.to_string().contains("secret"), "{last}");
        assert!(log.contains(reason) && !log.contains("secret"), "{log}");
    }
}

#[tokio::test]
async fn a_pipe_that_ends_in_a_message_is_told() {
    let mut browser = Browser::start(json!({ "echo": script(ECHO) })).await;
    browser.connect(1, "echo").await;
    browser.write(&100u32.to_ne_bytes()).await;
    browser.write(b"{\"type\":").await;
    browser.hang_up();
    let (code, _, log) = browser.end().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("in the middle of a message"), "{log}");
}

#[tokio::test]
async fn channels_are_bounded_and_odd_frames_close_theirs() {
    let mut browser = Browser::start(json!({ "echo": script(ECHO) })).await;
    browser.connect(1, "echo").await;
    let again = browser.open(1, "echo").await;
    assert!(again["reason"].as_str().unwrap().contains("the channel 1 is open"), "{again}");
    browser.send(json!({ "type": "later", "channel": 9 })).await;
    browser.send(json!({ "type": "frame", "channel": 1, "data": "AQI=" })).await;
    assert_eq!(browser.message().await.unwrap(), json!({ "type": "close", "channel": 1 }));
    // A server is only started once the client has attached.
    for channel in 100..164 {
        assert_eq!(browser.open(channel, "echo").await["type"], "open");
        browser.frame().await;
    }
    assert_eq!(browser.open(164, "echo").await["type"], "refused");
}

/// What a server is given and says of it, and what goes through the pipe, is in no frame of the shim's own and in no log.
#[tokio::test]
async fn no_secret_is_in_a_frame_or_the_log() {
    const KEY: &str = "planted-key-+%=-value";
    const MESSAGE: &str = "planted-message-value";
    let told =
        r#"while read -r line; do case "$line" in *crash*) env >&2; exit 3 ;; *) printf '%s\n' "$line" ;; esac; done"#;
    let says = r#"env >&2; echo "cannot log in with $API_KEY" >&2"#;
    let mut server = script(&format!("{says}\n{}", ECHO.replace("exec cat", told)));
    server["env"] = json!({ "API_KEY": KEY });
    let mut browser = Browser::start(json!({ "talkative": server })).await;
    browser.connect(1, "talkative").await;
    browser.tell(1, json!({ "jsonrpc": "2.0", "id": 1, "params": { "text": MESSAGE } })).await;
    assert_eq!(browser.told().await.1["params"]["text"], MESSAGE, "the server is there");
    browser.tell(1, json!({ "jsonrpc": "2.0", "id": 2, "method": "crash" })).await;
    let (_, exit) = browser.frame().await;
    assert_eq!(exit.kind, FrameKind::Exit);
    let told = exit.text().unwrap().to_owned();
    assert!(told.contains("API_KEY=[redacted]"), "{told}");
    let mut seen = vec![told];
    // Frames that are none, channels of nobody's and proofs that are wrong, each with what must not be repeated.
    let proof = format!("crablet.proof.{MESSAGE}.{KEY}");
    for message in [
        json!({ "type": "open", "channel": 2, "server": "talkative", "protocols": ["crablet.v1", proof] }),
        json!({ "type": "open", "channel": 3, "server": "other", "protocols": ["crablet.v1", proof] }),
        json!({ "type": "frame", "channel": 9, "data": STANDARD.encode(MESSAGE) }),
        json!({ "type": MESSAGE, "channel": 4, "token": KEY }),
    ] {
        browser.send(message).await;
    }
    browser.write(&u32::try_from(MESSAGE.len()).unwrap().to_ne_bytes()).await;
    browser.write(MESSAGE.as_bytes()).await;
    browser.hang_up();
    let (_, messages, log) = browser.end().await;
    seen.extend(messages.iter().map(Value::to_string));
    let frames = messages.iter().filter_map(|message| STANDARD.decode(message["data"].as_str()?).ok());
    seen.extend(frames.map(|frame| String::from_utf8_lossy(&frame).into_owned()));
    assert!(log.contains("API_KEY=[redacted]"), "the log has what servers say, without their keys: {log}");
    seen.push(log);
    let token = NATIVE_MESSAGING_TOKEN.rsplit('.').next().unwrap();
    for text in &seen {
        for secret in [&KEY[..KEY.len() - 4], &MESSAGE[..MESSAGE.len() - 4], token] {
            assert!(!text.contains(secret), "{secret} shows: {text}");
        }
    }
}
