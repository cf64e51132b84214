//! The async edge: the trait that a platform implements, and the drivers over it.
//!
//! A [`Runner`] is an agent with its functions and its platform, a [`Conversation`] takes prompts, a [`Run`] is one prompt being
//! worked on. With a [`Store`] a conversation is saved by itself:
//!
#![cfg_attr(feature = "native", doc = "```")]
#![cfg_attr(not(feature = "native"), doc = "```ignore")]
//! use std::sync::Arc;
//!
//! use crablet::agent::Agent;
//! use crablet::host::{MemoryStore, Runner};
//! use crablet::native::NativeHost;
//! # use crablet::model::{Model, ModelEvent, ModelRequest, StopReason};
//! # use futures_util::stream;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = Model::function("example");
//! let agent = Runner::new(NativeHost::new()?, Agent::new(model)).instructions("Answer in one sentence.");
//! # let agent = agent.function_model("example", |_: Arc<ModelRequest>, _| {
//! #     stream::iter([
//! #         Ok(ModelEvent::TextStart { block: 0 }),
//! #         Ok(ModelEvent::TextDelta { block: 0, text: "Hello.".into() }),
//! #         Ok(ModelEvent::TextEnd { block: 0, replay: None }),
//! #         Ok(ModelEvent::Stop { reason: StopReason::Stop, raw: None }),
//! #     ])
//! # });
//! let store = Arc::new(MemoryStore::default());
//! let chat = agent.open(store.clone(), "monday").await?;
//! println!("{}", chat.send("Hello")?.answer().await?.text);
//! drop(chat);
//!
//! // Later, also in another process where the store is one of files.
//! let chat = agent.open(store, "monday").await?;
//! assert_eq!(chat.history().len(), 2);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(
    target_arch = "wasm32",
    allow(clippy::arc_with_non_send_sync, reason = "what is shared is Send natively, and on wasm there is one thread")
)]

mod agent_loop;
mod cancel;
mod checkpoints;
mod control;
mod conversation;
mod credentials;
mod deadlines;
mod driver;
mod effects;
mod function_model;
mod hook_asking;
mod hooks;
mod journal;
mod live_tools;
mod maybe_send;
#[cfg(feature = "mcp")]
pub mod mcp;
mod model_call;
mod model_function;
pub(crate) mod origin;
mod port;
mod prompt;
mod run;
mod runner;
#[cfg(feature = "oauth")]
#[cfg_attr(not(any(feature = "native", feature = "web")), allow(dead_code))]
mod signing;
mod store;
mod tool;
#[cfg(feature = "tools")]
pub mod tools;

use std::future::Future;

pub use agent_loop::AgentLoop;
pub use cancel::{CancelGuard, CancelToken, Cancelled};
pub use control::{RunControl, Steered};
pub use conversation::Conversation;
pub use credentials::CredentialSource;
pub use function_model::FunctionModel;
pub use hooks::{ApprovalRequest, Approver, HookContext, Hooks};
pub use journal::Journal;
pub use live_tools::LiveTools;
pub use maybe_send::{BoxFuture, BoxStream, MaybeSend, MaybeSync};
pub use prompt::Prompt;
pub use run::{Answer, Run};
pub use runner::Runner;
#[cfg(feature = "oauth")]
pub use signing::SigningKey;
#[cfg(feature = "oauth")]
#[cfg_attr(not(any(feature = "native", feature = "web")), allow(unused_imports))]
pub(crate) use signing::{pkcs8, unreadable};
pub use store::{MemoryStore, Store, Stored, conflict};
pub use tool::{FunctionTool, IntoToolResult, Tool, ToolContext};

use crate::error::Error;
use crate::model::{HttpRequest, ResponseHead};
use crate::time::Millis;

/// What crablet needs of a platform. Cloning shares the same platform.
///
/// Dropping a future stops what it started: a dropped fetch or body aborts the request, a dropped sleep clears its timer.
pub trait Host: Clone + MaybeSend + MaybeSync + 'static {
    /// The body of an answer.
    type Body: Body;
    /// An open WebSocket.
    type Socket: Socket;

    /// Sends a request and waits for the head of the answer. Redirects to another origin are not followed with
    /// credentials.
    ///
    /// # Errors
    ///
    /// `network` when there is no answer; on the web that includes everything that CORS forbids.
    fn fetch(
        &self,
        request: HttpRequest,
    ) -> impl Future<Output = Result<(ResponseHead, Self::Body), Error>> + MaybeSend + 'static;

    /// Opens a WebSocket and waits until it is open.
    ///
    /// # Errors
    ///
    /// `network` when it does not open; `auth` where the platform tells that the server refused it.
    fn connect(
        &self,
        url: String,
        protocols: Vec<String>,
    ) -> impl Future<Output = Result<Self::Socket, Error>> + MaybeSend + 'static;

    /// Waits for this many milliseconds, however many they are.
    fn sleep(&self, milliseconds: u64) -> impl Future<Output = ()> + MaybeSend + 'static;

    /// The wall clock.
    fn now(&self) -> Millis;

    /// Unpredictable bytes, fit for secrets.
    ///
    /// # Errors
    ///
    /// `internal` when the platform has no source of randomness.
    fn random(&self) -> Result<[u8; 16], Error>;

    /// A key that signs: this private key, or a new pair for ES256 whose private half cannot leave the platform.
    ///
    /// # Errors
    ///
    /// `invalid-input` for a key that cannot be read, `internal` when the platform cannot sign, which is what the default
    /// does.
    #[cfg(feature = "oauth")]
    fn signing_key(
        &self,
        key: Option<crate::mcp::client::auth::PrivateKey>,
    ) -> BoxFuture<'static, Result<std::sync::Arc<dyn SigningKey>, Error>> {
        let _ = key;
        let error = Error::new(crate::ErrorKind::Internal, "this host cannot sign");
        Box::pin(std::future::ready(Err(error)))
    }

    /// Runs a future in the background until it ends.
    fn spawn(&self, future: impl Future<Output = ()> + MaybeSend + 'static);
}

/// The bytes of an answer, as they arrive.
pub trait Body: MaybeSend + 'static {
    /// The next chunk, or `None` at the end.
    ///
    /// # Errors
    ///
    /// `network` when the connection broke before the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Error>> + MaybeSend;
}

/// An open WebSocket.
pub trait Socket: MaybeSend + 'static {
    /// The subprotocol that the server chose; empty for none.
    fn protocol(&self) -> &str;

    /// Sends a binary frame.
    ///
    /// # Errors
    ///
    /// `connection-closed` when the socket is no longer open.
    fn send(&mut self, frame: Vec<u8>) -> impl Future<Output = Result<(), Error>> + MaybeSend;

    /// The next frame, text or binary, or `None` after a close.
    ///
    /// # Errors
    ///
    /// `connection-closed` when the connection broke.
    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Error>> + MaybeSend;

    /// The code and reason of the close, once `next` gave `None`.
    fn close_reason(&self) -> Option<(u16, String)>;
}
