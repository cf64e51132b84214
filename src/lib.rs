//! An agent loop, the wire protocols of LLM providers and the Model Context Protocol, in one crate that compiles to
//! WebAssembly.
//!
//! An agent is a model, instructions and tools. A conversation with it takes prompts and gives runs; a run is read event
//! by event, while the model speaks and tools work:
//!
#![cfg_attr(feature = "native", doc = "```")]
#![cfg_attr(not(feature = "native"), doc = "```ignore")]
//! use crablet::agent::{Agent, EventKind, ToolDefinition};
//! use crablet::host::Runner;
//! use crablet::json::RawJson;
//! use crablet::native::NativeHost;
//! # use crablet::model::{Model, ModelEvent, StopReason};
//! # use futures_util::stream;
//!
//! #[derive(serde::Deserialize)]
//! struct Place {
//!     city: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = Model::function("example");
//! let schema = r#"{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}"#;
//! let weather = ToolDefinition::new("weather", "The weather in a city", RawJson::parse(schema)?);
//!
//! let agent = Runner::new(NativeHost::new()?, Agent::new(model))
//!     .instructions("Answer in one sentence.")
//!     .tool(weather, async |place: Place, _context| format!("It rains in {}.", place.city));
//! # let agent = agent.function_model("example", |request: std::sync::Arc<crablet::model::ModelRequest>, _| {
//! #     stream::iter(if request.messages.len() == 1 {
//! #         vec![
//! #             ModelEvent::ToolInputStart { block: 0, id: "call-1".into(), name: "weather".into() },
//! #             ModelEvent::ToolInputDelta { block: 0, json: r#"{"city":"Oslo"}"#.into() },
//! #             ModelEvent::ToolInputEnd { block: 0, replay: None },
//! #             ModelEvent::Stop { reason: StopReason::ToolUse, raw: None },
//! #         ]
//! #     } else {
//! #         vec![
//! #             ModelEvent::TextStart { block: 0 },
//! #             ModelEvent::TextDelta { block: 0, text: "Yes, take one.".into() },
//! #             ModelEvent::TextEnd { block: 0, replay: None },
//! #             ModelEvent::Stop { reason: StopReason::Stop, raw: None },
//! #         ]
//! #     }.into_iter().map(Ok))
//! # });
//!
//! let conversation = agent.conversation()?;
//! let mut run = conversation.send("Umbrella in Oslo?")?;
//! # let mut text = String::new();
//! while let Some(events) = run.next().await {
//!     for event in events {
//!         match event.kind {
//!             EventKind::TextDelta(_, delta) => print!("{delta}"),
//! #           EventKind::RunEnd(end) => text = end.text,
//!             EventKind::ToolCall { tool_name, input, .. } => println!("[{tool_name} {}]", input.as_str()),
//!             _ => {}
//!         }
//!     }
//! }
//! let saved: String = conversation.snapshot(); // restore it anywhere with `agent.restore(&saved)`
//! # assert_eq!(text, "Yes, take one.");
//! # assert_eq!(agent.restore(&saved)?.history().len(), 4);
//! # Ok(())
//! # }
//! ```
//!
//! # The map
//!
//! The core does no I/O, reads no clock and calls nobody back: inputs go in, effects and events come out. It can be driven
//! by hand, tested with a clock of one's own, and saved at any moment.
//!
//! - [`agent`]: the conversation machine, [`Session`](agent::Session), and the definition of an agent
//! - [`model`]: messages, requests and events in one form for every provider, and the wire protocols
//! - [`mcp`]: the Model Context Protocol
//! - [`json`], [`sse`], [`jsonrpc`]: what the others read and write
//!
//! The edge performs the effects. It is one driver for every platform:
//!
//! - [`host`]: the trait [`Host`](host::Host), and [`Runner`](host::Runner), [`Conversation`](host::Conversation) and
//!   [`Run`](host::Run) over it
//! - `native` (feature `native`): the host on tokio and reqwest
//! - `agent_service` (feature `nats`): an agent that many workers serve over NATS JetStream, and its clients
//! - `web` (feature `web`, on wasm32): the host on `fetch`, `WebSocket` and timers
//!
//! # Contact with the platform
//!
//! Everything crablet asks of its surroundings goes through [`host::Host`]: HTTP requests, WebSockets, sleeping, the wall
//! clock, random bytes for each conversation and for OAuth, signatures for OAuth, and background tasks for MCP connections and
//! checkpoints. Nothing reads files, global state or environment variables, but for the proxy variables that the native
//! host honours, and for the built-in tools of the feature `tools`, which do what they are for.
//!
//! # Features
//!
//! Each wire protocol is a feature (`anthropic`, `openai-chat`; `models` is all of them), so that what is not used is not
//! linked. `mcp` adds the Model Context Protocol, `oauth` tokens for its servers, `shim` the connection to `crablet-shim`,
//! `native` and `web` the hosts, `catalog` what is known of models. Not on by default: `web`; `tools`, built-in tools;
//! `mcp-server`, the server side of MCP; `nats`, MCP servers and agents behind NATS.

// Hot functions of the small build of the npm package (docs/decisions/0034).
#![cfg_attr(crablet_small, feature(optimize_attribute))]

pub mod agent;
#[cfg(all(feature = "nats", not(target_arch = "wasm32")))]
pub mod agent_service;
#[cfg(any(feature = "host", feature = "shim", feature = "oauth", feature = "mcp-server"))]
#[cfg_attr(not(any(feature = "host", feature = "shim")), allow(dead_code))]
mod base64url;
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
// Parts that are left out use the rest of it.
#[cfg_attr(not(all(feature = "host", feature = "mcp", feature = "wires")), allow(dead_code))]
mod ordered_map;
mod percent;
#[cfg(feature = "planted-defects")]
#[doc(hidden)]
pub mod planted;
#[cfg(not(feature = "planted-defects"))]
mod planted;
#[cfg(any(feature = "host", feature = "oauth"))]
mod redaction;
pub mod sse;
mod time;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub mod web;
mod work;

pub use error::{Error, ErrorKind};
pub use time::Millis;

/// The guide for Rust, whose snippets are compiled.
#[cfg(all(doctest, feature = "native", feature = "models"))]
#[doc = include_str!("../docs/rust.md")]
mod guide {}

/// The guide for agents behind NATS, whose Rust is compiled.
#[cfg(all(doctest, feature = "nats"))]
#[doc = include_str!("../docs/agent-service.md")]
mod agent_service_guide {}

/// The quick start, whose Rust is compiled.
#[cfg(all(doctest, feature = "native", feature = "models"))]
#[doc = include_str!("../docs/quick-start.md")]
mod quick_start {}

/// The guide for structured output, whose Rust is compiled.
#[cfg(all(doctest, feature = "native", feature = "models"))]
#[doc = include_str!("../docs/structured-output.md")]
mod output_guide {}

/// The guide for authorization, whose Rust is compiled.
#[cfg(all(doctest, feature = "native", feature = "oauth"))]
#[doc = include_str!("../docs/authorization.md")]
mod authorization_guide {}
