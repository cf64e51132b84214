//! A shim in a state directory of its own, and a client of it that can lose its socket at will.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use crablet::Millis;
use crablet::host::{Host, Socket};
use crablet::json::RawJson;
use crablet::mcp::transport::shim::{ClientProof, Frame, FrameKind, Hello, ProofContext, SUBPROTOCOL, Token};
use crablet::mcp::transport::websocket::{Effect, Input, WebSocketOptions, WebSocketTransport};
use crablet::mcp::transport::{Era, Inbound, Outbound, RequestId, Revision};
use crablet::native::{NativeHost, WebSocket};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};

/// How long a test waits for what has to come, on the busiest machine: only something that stands still takes so long.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits for what has to come; fails when it does not.
pub(crate) async fn in_time<T>(what: &str, comes: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, comes).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// Answers the shim's question for the era, and echoes everything else.
pub(crate) const ECHO: &str = r#"
read -r first
case "$first" in
*server/discover*) echo '{"jsonrpc":"2.0","id":"discover","error":{"code":-32601,"message":"unknown"}}' ;;
*) printf '%s\n' "$first" ;;
esac
exec cat
"#;

/// A server whose behaviour is a shell script.
pub(crate) fn script(text: &str) -> Value {
    json!({ "command": "/bin/sh", "args": ["-c", text] })
}

const FILESYSTEM: &str = "@modelcontextprotocol/server-filesystem@2026.8.31";

/// The server's program, installed into `.cache/shim-servers` on the first run; needs node and npm.
pub(crate) fn filesystem_server() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(install_filesystem_server).clone()
}

fn install_filesystem_server() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/shim-servers");
    // Written last, so that an installation that was interrupted is made again.
    let complete = folder.join("complete");
    if !complete.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        let status = std::process::Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"])
            .arg(&folder)
            .arg(FILESYSTEM)
            .stdout(Stdio::null())
            .status()
            .expect("npm is needed to install the server");
        assert!(status.success(), "npm could not install {FILESYSTEM}");
        std::fs::write(complete, FILESYSTEM).unwrap();
    }
    folder.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
}

/// A shim under test. Dropping it kills it, without a chance to clean up.
pub(crate) struct Shim {
    pub(crate) port: u16,
    pub(crate) process: Child,
    stderr: BufReader<ChildStderr>,
    directory: PathBuf,
}

impl Shim {
    /// A shim that serves these servers; further arguments go to `serve`.
    pub(crate) async fn start(servers: Value, arguments: &[&str]) -> Self {
        let directory = scratch_directory();
        write_config(&directory, &json!({ "mcpServers": servers }).to_string());
        let (process, stderr, port) = serve(&directory, 0, arguments).await;
        Self { port, process, stderr, directory }
    }

    /// Starts the shim again on the same port and state, after its end.
    pub(crate) async fn start_again(&mut self) {
        let port;
        (self.process, self.stderr, port) = serve(&self.directory, self.port, &[]).await;
        assert_eq!(port, self.port);
    }

    /// A token for these servers; for a program without an origin when the origin is empty.
    pub(crate) async fn grant(&self, origin: &str, servers: &[&str]) -> Token {
        let servers: Vec<&str> = servers.iter().flat_map(|server| ["--server", server]).collect();
        self.grant_with(origin, &servers).await
    }

    /// A token for what these arguments of `grant` say.
    pub(crate) async fn grant_with(&self, origin: &str, arguments: &[&str]) -> Token {
        let client = if origin.is_empty() { vec!["--native"] } else { vec!["--origin", origin] };
        let (is_good, printed, told) = self.run(&[&["grant"], client.as_slice(), arguments].concat()).await;
        assert!(is_good, "{told}");
        Token::parse(&printed).unwrap()
    }

    /// Runs a command with this shim's state: whether it went well, what it printed and what it told.
    pub(crate) async fn run(&self, arguments: &[&str]) -> (bool, String, String) {
        let output = self.command(arguments).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    /// A command with this shim's state.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crablet-shim"));
        command.args(arguments).env("CRABLET_STATE_DIR", self.state());
        command
    }

    /// The state directory.
    /// The path of the configuration file.
    pub(crate) fn config(&self) -> String {
        self.directory.join("servers.json").display().to_string()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.join("state")
    }

    /// A token for these servers over HTTP, as [`grant`](Self::grant) gives one.
    pub(crate) async fn grant_http(&self, origin: &str, servers: &[&str]) -> String {
        let servers = servers.iter().flat_map(|server| ["--server", server]);
        let arguments: Vec<&str> = std::iter::once("--http").chain(servers).collect();
        self.grant_with(origin, &arguments).await.reveal()
    }

    /// Takes a token back.
    pub(crate) async fn revoke(&self, token: &str) {
        let (is_good, _, told) = self.run(&["revoke", token.split('.').next().unwrap()]).await;
        assert!(is_good, "{told}");
    }

    /// What a client of a server needs.
    pub(crate) async fn options(&self, server: &str) -> WebSocketOptions {
        WebSocketOptions {
            url: format!("ws://127.0.0.1:{}", self.port),
            server: server.into(),
            token: self.grant("", &[server]).await,
            origin: String::new(),
            resume: None,
        }
    }

    /// Connects a client to a server.
    pub(crate) async fn client(&self, server: &str) -> Client {
        Client::connect(self.options(server).await).await
    }

    /// A socket to a server after the shim's proof and this first frame, for a client that keeps to no rules.
    pub(crate) async fn open_socket(&self, server: &str, attach: String) -> WebSocket {
        let host = NativeHost::new().unwrap();
        let authority = format!("127.0.0.1:{}", self.port);
        let context = ProofContext { authority: &authority, origin: "", server };
        let proof = ClientProof::new(&self.grant("", &[server]).await, [7; 16], host.now(), context);
        let subprotocols = vec![SUBPROTOCOL.to_owned(), proof.to_subprotocol()];
        let mut socket = host.connect(format!("ws://{authority}/servers/{server}"), subprotocols).await.unwrap();
        assert_eq!(next_frame(&mut socket).await.kind, FrameKind::Proof);
        let attach = Frame { kind: FrameKind::Attach, number: 0, seen: 0, payload: attach.into_bytes() };
        socket.send(attach.encode()).await.unwrap();
        socket
    }

    /// Writes the configuration file anew.
    pub(crate) fn write_config(&self, text: &str) {
        write_config(&self.directory, text);
    }

    /// What the doctor says of the set-up, and whether it is content.
    pub(crate) async fn doctor(&self) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_crablet-shim"))
            .args(["doctor", "--port", &self.port.to_string(), "--config"])
            .arg(self.directory.join("servers.json"))
            .env("CRABLET_STATE_DIR", self.directory.join("state"))
            .output()
            .await
            .unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    /// The next line of the log that holds this text.
    pub(crate) async fn log_line(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let count = in_time(text, self.stderr.read_line(&mut line)).await.unwrap();
            assert!(count > 0, "the log ended without {text:?}");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Ends the shim with this signal, and gives the rest of its log.
    pub(crate) async fn end(&mut self, signal: &str) -> String {
        let id = self.process.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
        self.process.wait().await.unwrap();
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).await.unwrap();
        rest
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// `crablet-shim pair`, waiting.
pub(crate) struct Pairing {
    pub(crate) code: String,
    process: Child,
}

impl Pairing {
    /// Starts the command and reads the code that it shows.
    pub(crate) async fn start(shim: &Shim, arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_crablet-shim"))
            .arg("pair")
            .args(arguments)
            .env("CRABLET_STATE_DIR", shim.directory.join("state"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut code = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut code).await.unwrap();
        Self { code: code.trim().to_owned(), process }
    }

    /// Waits for its end: whether it paired, and what it said last.
    pub(crate) async fn end(self) -> (bool, String) {
        let output = self.process.wait_with_output().await.unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let last = told.lines().last().unwrap_or_default();
        (output.status.success(), last.split(" `crablet-shim").next().unwrap_or_default().to_owned())
    }
}

/// The machine of the transport on the native host.
pub(crate) struct Client {
    host: NativeHost,
    machine: WebSocketTransport,
    socket: Option<(u64, WebSocket)>,
    timer: Option<Millis>,
    inbound: VecDeque<Inbound>,
    pub(crate) hello: Option<Hello>,
    /// How often the shim said hello.
    pub(crate) attached: usize,
}

impl Client {
    /// Connects; gives up nothing, an [`Inbound::Closed`] is delivered like everything else.
    pub(crate) async fn connect(options: WebSocketOptions) -> Self {
        let host = NativeHost::new().unwrap();
        let machine = WebSocketTransport::new(options, host.random().unwrap()).unwrap();
        let mut client =
            Self { host, machine, socket: None, timer: None, inbound: VecDeque::new(), hello: None, attached: 0 };
        client.give(Input::Connect).await;
        client
    }

    /// Sends a message.
    pub(crate) async fn send(&mut self, message: Value) {
        let message = RawJson::parse(message.to_string()).unwrap();
        let era = Era::Handshake(Revision::V2025_11_25);
        let outbound = match message.read::<Value>().unwrap()["id"].as_u64() {
            Some(id) => {
                let id = RequestId::Number(id);
                Outbound::Request { id, message, era, headers: Vec::new(), opens_session: false }
            }
            None => Outbound::Notify { message, era, headers: Vec::new() },
        };
        self.give(Input::Outbound(outbound)).await;
    }

    pub(crate) async fn close(&mut self) {
        self.give(Input::Outbound(Outbound::Close)).await;
    }

    /// The next message of the server.
    pub(crate) async fn message(&mut self) -> Value {
        match self.next().await {
            Inbound::Message { message, .. } => message.read().unwrap(),
            other => panic!("{other:?} instead of a message"),
        }
    }

    /// The next thing that the transport tells.
    pub(crate) async fn next(&mut self) -> Inbound {
        loop {
            if let Some(inbound) = self.inbound.pop_front() {
                return inbound;
            }
            self.step().await;
        }
    }

    /// Waits until the shim has said hello so often.
    pub(crate) async fn attached(&mut self, times: usize) {
        while self.attached < times {
            assert!(self.inbound.is_empty(), "{:?}", self.inbound);
            self.step().await;
        }
    }

    /// Waits until the shim has said hello so often, and counts the messages that come meanwhile: requests that come
    /// back in the order of their ids.
    pub(crate) async fn attached_or_message(&mut self, times: usize, got: &mut u64) {
        while self.attached < times {
            self.step().await;
            while let Some(inbound) = self.inbound.pop_front() {
                let Inbound::Message { message, .. } = inbound else { panic!("{inbound:?}") };
                *got += 1;
                assert_eq!(message.read::<Value>().unwrap()["id"], *got);
            }
        }
    }

    /// Breaks the connection without a close.
    pub(crate) async fn drop_socket(&mut self) {
        if let Some((socket, _)) = self.socket.take() {
            self.give(Input::Closed { socket, code: None, reason: String::new() }).await;
        }
    }

    /// Ends the wait before the next attempt.
    pub(crate) async fn reconnect_now(&mut self) {
        let before = self.attached;
        while self.attached == before {
            match self.timer.take() {
                // The machine lets its timer run down early only when the clock says so.
                Some(timer) if self.socket.is_none() => self.give_at(timer, Input::Timer).await,
                timer => {
                    self.timer = timer;
                    self.step().await;
                }
            }
        }
    }

    /// Sends a frame that the machine would not.
    pub(crate) async fn send_frame(&mut self, frame: Frame) {
        let (_, socket) = self.socket.as_mut().unwrap();
        let _ = socket.send(frame.encode()).await;
    }

    async fn step(&mut self) {
        let now = self.host.now();
        let due = self.timer.map_or(u64::MAX, |timer| timer.since(now));
        let socket = self.socket.as_mut();
        let number = socket.as_ref().map_or(0, |(number, _)| *number);
        let frame = async {
            match socket {
                Some((_, socket)) => socket.next().await.unwrap_or(None),
                None => std::future::pending().await,
            }
        };
        let input = tokio::select! {
            frame = frame => match frame {
                Some(bytes) => Input::Frame { socket: number, bytes },
                None => {
                    self.socket = None;
                    Input::Closed { socket: number, code: None, reason: String::new() }
                }
            },
            () = tokio::time::sleep(Duration::from_millis(due)) => {
                self.timer = None;
                Input::Timer
            }
        };
        self.give(input).await;
    }

    async fn give(&mut self, input: Input) {
        self.give_at(self.host.now(), input).await;
    }

    async fn give_at(&mut self, now: Millis, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.machine.handle(now.max(self.host.now()), input);
            while let Some(effect) = self.machine.poll_effect() {
                match effect {
                    Effect::Open { socket, url, subprotocols } => {
                        inputs.push_back(match self.host.connect(url, subprotocols).await {
                            Ok(open) => {
                                let subprotocol = open.protocol().to_owned();
                                self.socket = Some((socket, open));
                                Input::Opened { socket, subprotocol }
                            }
                            Err(error) => match error.status() {
                                Some(status) => Input::Refused { socket, status },
                                None => Input::Closed { socket, code: None, reason: error.message().to_owned() },
                            },
                        });
                    }
                    Effect::Send { bytes, .. } => {
                        if let Some((_, socket)) = &mut self.socket {
                            // A socket that broke is noticed where it is read.
                            let _ = socket.send(bytes).await;
                        }
                    }
                    Effect::Close { .. } => self.socket = None,
                    Effect::SetTimer(at) => self.timer = Some(at),
                    Effect::ClearTimer => self.timer = None,
                    Effect::Attached(hello) => {
                        self.attached += 1;
                        self.hello = Some(hello);
                    }
                    Effect::Deliver(inbound) => self.inbound.push_back(inbound),
                }
            }
        }
    }
}

pub(crate) async fn next_frame(socket: &mut WebSocket) -> Frame {
    Frame::decode(socket.next().await.unwrap().unwrap()).unwrap()
}

/// Waits until a process is gone from the table, zombies included.
pub(crate) async fn assert_gone(id: u64) {
    for _ in 0..3000 {
        if !Path::new(&format!("/proc/{id}")).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    panic!("process {id} is still there:\n{status}");
}

/// Starts `serve` in the directory of a shim, and gives it with its log and its port when it listens.
async fn serve(directory: &Path, port: u16, arguments: &[&str]) -> (Child, BufReader<ChildStderr>, u16) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_crablet-shim"))
        .args(["serve", "--port", &port.to_string(), "--config"])
        .arg(directory.join("servers.json"))
        .args(arguments)
        .env("CRABLET_STATE_DIR", directory.join("state"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
    let stderr = BufReader::new(process.stderr.take().unwrap());
    let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(' ').next()).expect("it listens");
    (process, stderr, port.parse().unwrap())
}

pub(crate) fn write_config(directory: &Path, text: &str) {
    std::fs::write(directory.join("servers.json"), text).unwrap();
}

pub(crate) fn scratch_directory() -> PathBuf {
    let mut name = [0; 8];
    getrandom::fill(&mut name).unwrap();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{:016x}", u64::from_be_bytes(name)));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}
