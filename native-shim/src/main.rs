//! `crablet-shim` hands local stdio MCP servers to pages, extensions and workers over a loopback WebSocket.

fn main() {}
