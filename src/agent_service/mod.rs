//! Conversations of an agent that many workers serve over NATS.
//!
//! `docs/agent-service.md` describes the protocol. So far the store of conversations is here, which reads and writes what the npm
//! package's `crablet/agent-service` does; its workers and clients are JavaScript.

mod chain;
mod names;
mod record;
mod store;

pub use store::NatsStore;

use crate::error::{Error, ErrorKind};

/// An id that nobody else makes.
fn nonce() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new(ErrorKind::Internal, format!("the system gives no random numbers: {error}")))?;
    Ok(crate::base64url::encode(&bytes))
}
