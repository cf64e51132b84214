//! An agent loop, the wire protocols of LLM providers and the Model Context Protocol, in one crate that compiles to
//! WebAssembly.
//!
//! The core ([`agent`], [`model`], [`mcp`], [`json`]) does no I/O: inputs go in, effects and events come out. [`host`] is
//! the async edge over it, with a native and a web implementation.

pub mod agent;
mod error;
#[cfg(feature = "host")]
pub mod host;
pub mod json;
#[cfg(feature = "mcp")]
pub mod jsonrpc;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model;
#[cfg(all(feature = "native", not(target_arch = "wasm32")))]
pub mod native;
pub mod sse;
mod time;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub mod web;

pub use error::{Error, ErrorKind};
pub use time::Millis;
