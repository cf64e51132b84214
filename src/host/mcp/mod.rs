//! MCP servers, connected: the drivers over the machines of [`crate::mcp`].
//!
//! A [`Connection`] is a handle to a client that works in the background. Calls run beside one another; dropping the future
//! of a call cancels it, and dropping the last handle closes the connection.
//!
#![cfg_attr(feature = "native", doc = "```no_run")]
#![cfg_attr(not(feature = "native"), doc = "```ignore")]
//! use crablet::host::mcp::{ConnectOptions, Connection, HttpServer};
//! use crablet::json::RawJson;
//! use crablet::mcp::client::CallOptions;
//! use crablet::native::NativeHost;
//!
//! # async fn example() -> Result<(), crablet::Error> {
//! let server = HttpServer::new("https://example.com/mcp");
//! let docs = Connection::http(&NativeHost::new()?, "docs", server, ConnectOptions::default());
//! for tool in docs.tools().await? {
//!     println!("{}", tool.name);
//! }
//!
//! let query = RawJson::parse(r#"{"query": "wasm"}"#).expect("this is JSON");
//! let result = docs.call_tool("search", query, CallOptions::default(), None).await?;
//! println!("{:?}", result.content);
//! # Ok(())
//! # }
//! ```
//!
//! [`tools()`] makes the tools of a connection those of an agent.

#[cfg(feature = "oauth")]
mod auth;
mod catalog;
mod connection;
mod driver;
mod function;
mod http;
mod lasting;
mod network;
#[cfg(feature = "shim")]
mod pairing;
mod pipe;
mod sent;
#[cfg(feature = "mcp-server")]
mod server;
mod timers;
mod tools;
mod under_way;
#[cfg(feature = "shim")]
mod websocket;

#[cfg(feature = "oauth")]
pub use auth::{AssertionSource, Consent, MemoryTokenStore, OAuth, TokenStore};
pub use connection::{Answerer, ConnectOptions, Connection, Observer, OnProgress};
pub use function::RequestFunction;
pub use http::{HeaderSource, HttpServer};
#[cfg(feature = "shim")]
pub use pairing::{Paired, pair};
pub use pipe::{Arrival, PipeEnd, pipe};
#[cfg(feature = "mcp-server")]
pub use server::{
    EventStream, Framing, HttpBody, HttpCall, HttpHandler, HttpOptions, HttpResponse, IntoOutcome, LaneSender,
    McpServer, OpenExchange, ServerCall, ServerControl, Serving, Sleep,
};
pub use tools::{live_tools, tools};

use futures_channel::mpsc;

use crate::mcp::client::Opening;
use crate::mcp::transport::{Inbound, Outbound};

/// What a carrier tells its client's driver.
#[derive(Debug)]
pub(crate) enum Delivery {
    Opened(Opening),
    Inbound(Inbound),
}

/// How many deliveries may wait for the client. It takes them at once; the bound keeps a fast network from filling the
/// memory while a slow observer is called.
const DELIVERY_LIMIT: usize = 32;

/// The two ends of the way between a client's driver and what carries its messages.
pub(crate) struct Carrier {
    pub(crate) outbound: mpsc::UnboundedReceiver<Outbound>,
    deliveries: mpsc::Sender<Delivery>,
}

impl Carrier {
    /// Hands something over; `false` when nobody is there any more.
    pub(crate) async fn deliver(&mut self, delivery: Delivery) -> bool {
        send(&mut self.deliveries, delivery).await
    }
}

/// Hands something over once there is a place for it; `false` when nobody is there any more.
pub(crate) async fn send<T>(sender: &mut mpsc::Sender<T>, item: T) -> bool {
    let is_ready = std::future::poll_fn(|context| sender.poll_ready(context)).await.is_ok();
    is_ready && sender.start_send(item).is_ok()
}
