//! Where a script finds what it talks to.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crablet::mcp::transport::shim::Token;

use crate::world::World;

/// The addresses and folders that all scripts share, whichever build plays them.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) world: Arc<World>,
    /// Stands before the model, the MCP server and the shim.
    pub(crate) proxy: SocketAddr,
    /// Opens the shim's WebSocket.
    pub(crate) token: Token,
    /// Opens its HTTP front.
    pub(crate) http_token: String,
    /// Where conversations are kept.
    pub(crate) stores: PathBuf,
    /// Where the tools of the MCP server write down what they did.
    pub(crate) ledger: PathBuf,
}
