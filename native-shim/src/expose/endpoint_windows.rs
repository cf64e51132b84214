//! Where `crablet-shim expose` would find the running shim: nowhere on Windows yet. A named pipe would be the way, once it can
//! be told without unsafe code that the program at its other end is the same user's.

use std::io;

use tokio::io::DuplexStream;

use crate::state::StateDirectory;

/// The connection of an agent.
pub(crate) type AgentStream = DuplexStream;

/// No place.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint;

/// Nobody comes.
#[derive(Debug)]
pub(crate) struct Listening;

/// Why there is no way to a shim.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreachable {
    #[error("agents reach the shim on Linux and macOS only so far")]
    NotRunning,
}

impl Endpoint {
    pub(crate) fn of(_directory: &StateDirectory) -> Self {
        Self
    }

    pub(crate) fn listen(&self) -> io::Result<Option<Listening>> {
        Ok(Some(Listening))
    }

    pub(crate) async fn connect(&self) -> Result<AgentStream, Unreachable> {
        Err(Unreachable::NotRunning)
    }
}

impl Listening {
    pub(crate) async fn accept(&self) -> io::Result<AgentStream> {
        std::future::pending().await
    }
}
