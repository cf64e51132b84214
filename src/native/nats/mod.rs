//! MCP servers over NATS: those that `crablet-shim serve --nats` serves, and services of one's own (feature `nats`).
//!
//! ```no_run
//! use crablet::host::mcp::{ConnectOptions, Connection};
//! use crablet::native::NativeHost;
//! use crablet::native::nats::{NatsServer, async_nats};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = async_nats::connect("nats://127.0.0.1:4222").await?;
//! let files = Connection::nats(&NativeHost::new()?, "files", NatsServer::new(client, "files"), ConnectOptions::default());
//! println!("{} tools", files.tools().await?.len());
//! # Ok(())
//! # }
//! ```

mod carrier;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use async_nats;

use crate::error::Error;
use crate::host::Host;
use crate::host::mcp::{ConnectOptions, Connection};
use crate::json::RawJson;
use crate::jsonrpc::RpcError;
use crate::mcp::client::TransportKind;

/// A server over NATS and how it is spoken to.
#[derive(Clone)]
pub struct NatsServer {
    client: async_nats::Client,
    subject: String,
    /// Whether it answers with more than one message.
    is_stream: bool,
    silence: Duration,
    envelope: Option<Arc<dyn NatsEnvelope>>,
}

impl NatsServer {
    /// The server of this name that a shim serves under the usual prefix: its subject is `mcp.NAME`.
    pub fn new(client: async_nats::Client, name: &str) -> Self {
        Self::at(client, format!("mcp.{name}"))
    }

    /// The server at this subject.
    pub fn at(client: async_nats::Client, subject: impl Into<String>) -> Self {
        Self { client, subject: subject.into(), is_stream: true, silence: STREAM_SILENCE, envelope: None }
    }

    /// A service that is not crablet-shim: it takes JSON-RPC messages and answers each request with one message. It has 180
    /// seconds for that, unless [`silence`](Self::silence) says otherwise.
    #[must_use]
    pub const fn plain(mut self) -> Self {
        self.is_stream = false;
        self.silence = PLAIN_SILENCE;
        self
    }

    /// A [plain](Self::plain) service that is spoken to in another way.
    #[must_use]
    pub fn envelope(self, envelope: impl NatsEnvelope) -> Self {
        Self { envelope: Some(Arc::new(envelope)), ..self.plain() }
    }

    /// The longest time without a sign of the shim that works on a request, which gives one every two seconds; of a plain
    /// service, until its answer. Then the request fails. Default 10 seconds.
    #[must_use]
    pub const fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }
}

impl fmt::Debug for NatsServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NatsServer").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// How a service is spoken to that does not take JSON-RPC messages as they are.
pub trait NatsEnvelope: Send + Sync + 'static {
    /// What is published for a message of the client, which is a JSON-RPC object.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being sent; fails the request.
    fn encode(&self, message: &RawJson) -> Result<NatsBody, Error>;

    /// The answer in the body that came back for a message: a JSON-RPC response, whose id may be any, since that of the request
    /// is put there.
    ///
    /// # Errors
    ///
    /// Why it is none; fails the request.
    fn decode(&self, body: &[u8], message: &RawJson) -> Result<RawJson, Error>;
}

/// What an [envelope](NatsEnvelope) makes of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum NatsBody {
    /// Publish this.
    Publish(Vec<u8>),
    /// Publish nothing: this is the result of a request that the service does not know, or its refusal.
    Answer(Result<RawJson, RpcError>),
    /// Publish nothing: a notification that the service does not know.
    Drop,
}

impl Connection {
    /// Connects to a server over NATS.
    ///
    /// A request is published once. It is sent again in two cases: when it reached nobody because the shim of its session is
    /// gone, then in a new session; and, once, when nothing more was heard of a call whose tool is listed with `readOnlyHint` or
    /// `idempotentHint`. It fails with `network` when nobody serves the subject, and nothing was done; with `connection-closed`
    /// when no sign of life of a shim came for too long, and whether it was done is not known: so also when this user may not
    /// publish there, which `async-nats` tells its event callback only; with `timeout` when a [plain](NatsServer::plain) service
    /// was silent for too long; with `limit` when it is larger than the NATS server takes, and was not sent, or its answer is.
    pub fn nats<H: Host>(host: &H, name: impl Into<Arc<str>>, server: NatsServer, options: ConnectOptions) -> Self {
        Self::over(host, name.into(), TransportKind::Pipe, options, move |carrier| {
            carrier::carry(server.clone(), carrier)
        })
    }
}

/// Five signs of life.
const STREAM_SILENCE: Duration = Duration::from_secs(10);

/// As long as other clients of such services wait.
const PLAIN_SILENCE: Duration = Duration::from_secs(180);
