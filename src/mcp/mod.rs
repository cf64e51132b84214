//! The Model Context Protocol: its messages, a client, and the transports under it, all without I/O.

pub mod client;
pub mod protocol;
#[cfg(feature = "mcp-server")]
pub mod server;
pub mod tools;
pub mod transport;
