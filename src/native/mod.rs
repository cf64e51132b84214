//! The host on tokio and reqwest: HTTP with rustls, WebSockets, timers and the system's randomness.
//!
#![cfg_attr(feature = "anthropic", doc = "```no_run")]
#![cfg_attr(not(feature = "anthropic"), doc = "```ignore")]
//! use std::sync::Arc;
//!
//! use crablet::agent::Agent;
//! use crablet::host::Runner;
//! use crablet::model::{Credentials, anthropic};
//! use crablet::native::{FileStore, NativeHost};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let agent = Runner::new(NativeHost::new()?, Agent::new(anthropic::model("claude-sonnet-5")))
//!         .credentials(Credentials::Key(std::env::var("ANTHROPIC_API_KEY")?));
//!     let chat = agent.open(Arc::new(FileStore::new("chats")), "monday").await?;
//!     if let Some(interrupted) = chat.resume() {
//!         interrupted.answer().await?;
//!     }
//!     println!("{}", chat.send("Why is the sky blue?")?.answer().await?.text);
//!     Ok(())
//! }
//! ```

mod file_store;
mod http;
#[cfg(feature = "oauth")]
mod loopback;
#[cfg(feature = "nats")]
pub mod nats;
pub mod process;
#[cfg(feature = "mcp-server")]
mod serve_stdio;
#[cfg(feature = "oauth")]
mod signing;
mod socket;
mod stdio;
#[cfg(feature = "tools")]
pub mod tools;

use std::future::Future;
#[cfg(feature = "oauth")]
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use file_store::FileStore;
pub use http::HttpBody;
#[cfg(feature = "oauth")]
pub use loopback::LoopbackConsent;
#[cfg(feature = "mcp-server")]
pub use serve_stdio::{serve_stdio, serve_stdio_with};
pub use socket::WebSocket;

use crate::error::{Error, ErrorKind};
#[cfg(feature = "oauth")]
use crate::host::{BoxFuture, SigningKey};
use crate::host::{Host, MaybeSend};
use crate::model::{HttpRequest, ResponseHead};
use crate::time::Millis;

/// A native program as a host. Its futures run on any tokio runtime with timers and I/O enabled.
///
/// Clones share one pool of connections.
#[derive(Clone, Debug)]
pub struct NativeHost {
    client: reqwest::Client,
}

impl NativeHost {
    /// A host with a connection pool of its own.
    ///
    /// # Errors
    ///
    /// `internal` when the system's TLS roots cannot be set up.
    pub fn new() -> Result<Self, Error> {
        let client = http::client().map_err(|error| {
            Error::new(ErrorKind::Internal, format!("the HTTP client cannot be set up: {}", http::cause_of(&error)))
        })?;
        Ok(Self { client })
    }
}

impl Host for NativeHost {
    type Body = HttpBody;
    type Socket = WebSocket;

    fn fetch(
        &self,
        request: HttpRequest,
    ) -> impl Future<Output = Result<(ResponseHead, HttpBody), Error>> + MaybeSend + 'static {
        http::fetch(self.client.clone(), request)
    }

    fn connect(
        &self,
        url: String,
        protocols: Vec<String>,
    ) -> impl Future<Output = Result<WebSocket, Error>> + MaybeSend + 'static {
        WebSocket::open(url, protocols)
    }

    fn sleep(&self, milliseconds: u64) -> impl Future<Output = ()> + MaybeSend + 'static {
        tokio::time::sleep(Duration::from_millis(milliseconds))
    }

    fn now(&self) -> Millis {
        now()
    }

    fn random(&self) -> Result<[u8; 16], Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::new(ErrorKind::Internal, format!("the system gives no randomness: {error}")))?;
        Ok(bytes)
    }

    #[cfg(feature = "oauth")]
    fn signing_key(
        &self,
        key: Option<crate::mcp::client::auth::PrivateKey>,
    ) -> BoxFuture<'static, Result<Arc<dyn SigningKey>, Error>> {
        Box::pin(std::future::ready(signing::signing_key(key)))
    }

    fn spawn(&self, future: impl Future<Output = ()> + MaybeSend + 'static) {
        // Outside a runtime, such as in a drop after its end, nothing can run any more.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(future);
        }
    }
}

/// The time of day: the clock of [`NativeHost`].
pub fn now() -> Millis {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}
