//! The Model Context Protocol: its messages, a client, a server (feature `mcp-server`), and the transports under the client, all
//! without I/O. [`host::mcp`](crate::host::mcp) connects them to the world.
//!
//! ```
//! use crablet::json::RawJson;
//! use crablet::mcp::protocol::{CallToolResult, ContentBlock};
//!
//! let raw = RawJson::parse(r#"{"content": [{"type": "text", "text": "12 °C"}], "later": "members are skipped"}"#)?;
//! let result = CallToolResult::read(&raw)?;
//! assert!(!result.is_error);
//! assert_eq!(result.content, [ContentBlock::Text { text: "12 °C".into() }]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod client;
pub mod protocol;
#[cfg(feature = "mcp-server")]
pub mod server;
pub mod tools;
pub mod transport;
