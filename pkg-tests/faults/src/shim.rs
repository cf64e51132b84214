//! The real crablet-shim, in a folder of its own.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crablet::mcp::transport::shim::Token;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// What the ledger is called in the shim's configuration.
pub(crate) const SERVER: &str = "ledger";

/// A process waits so long for a client that lost its socket, in seconds: longer than any client of a script takes to come
/// back.
const GRACE: &str = "3";

/// A process that nobody uses ends after so many seconds: longer than any script waits between two calls.
const IDLE: u64 = 8;

/// A shim that serves the ledger. Dropping it kills it.
pub(crate) struct Shim {
    pub(crate) port: u16,
    /// Opens the WebSocket.
    pub(crate) token: Token,
    /// Opens the HTTP front.
    pub(crate) http_token: String,
    _process: Child,
    program: PathBuf,
    folder: PathBuf,
}

impl Shim {
    /// Starts the shim that was built beside this program, in this folder.
    pub(crate) async fn start(folder: &Path) -> io::Result<Self> {
        let own = std::env::current_exe()?;
        let program =
            std::env::var_os("CRABLET_SHIM").map_or_else(|| own.with_file_name("crablet-shim"), PathBuf::from);
        // Over HTTP the process of a session that nobody ended goes when it is idle.
        let limits = json!({ "idleSeconds": IDLE });
        let server = json!({ "command": own, "args": ["ledger", folder.join("ledger")], "limits": limits });
        std::fs::create_dir_all(folder.join("ledger"))?;
        std::fs::write(folder.join("servers.json"), json!({ "mcpServers": { SERVER: server } }).to_string())?;
        let mut process = Command::new(&program)
            .args(["serve", "--port", "0", "--grace", GRACE, "--config"])
            .arg(folder.join("servers.json"))
            .env("CRABLET_STATE_DIR", folder.join("state"))
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("shim.log"))?)
            .kill_on_drop(true)
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).await?;
        }
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        let port = port.ok_or_else(|| io::Error::other("crablet-shim does not listen"))?;
        let mut shim = Self {
            port,
            token: Token::from_random([0; 9], [0; 32]),
            http_token: String::new(),
            _process: process,
            program,
            folder: folder.to_owned(),
        };
        shim.token = Token::parse(&shim.grant(&[]).await?).map_err(io::Error::other)?;
        shim.http_token = shim.grant(&["--http"]).await?;
        Ok(shim)
    }

    /// A token for programs.
    async fn grant(&self, further: &[&str]) -> io::Result<String> {
        let arguments = ["grant", "--native", "--server", SERVER];
        let output = Command::new(&self.program)
            .args(arguments)
            .args(further)
            .env("CRABLET_STATE_DIR", self.folder.join("state"))
            .output()
            .await?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Where the ledger writes.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.join("ledger")
    }
}
