//! An agent behind subjects of NATS: many workers, one a session at a time, durable inputs and an ordered stream of events for each
//! session; and a store of conversations in a key-value bucket (feature `nats`).
//!
//! Workers and clients of the npm package's `crablet/agent-service` speak the same protocol, which `docs/agent-service.md`
//! describes: both kinds of workers serve the same sessions, and take over one another's.

mod agent_source;
mod asked_calls;
mod chain;
mod claims;
mod client;
mod event;
mod event_log;
mod event_queue;
mod input;
mod listening;
mod log_journal;
mod names;
mod opening;
mod orders;
mod phase;
mod record;
mod restored;
mod retry;
mod saved;
mod service;
mod session_events;
mod session_inputs;
mod session_work;
mod set_up;
mod store;
mod taken;
mod task;
mod transcript;

pub use agent_source::AgentSource;
pub use client::{AgentClient, InputReceipt, RemoteRun, RemoteSession, SendInput};
pub use event::SessionEvent;
pub use service::{AgentService, ServeOptions};
pub use session_events::{Cursor, EventsFrom, PlacedEvent, SessionEvents};
pub use set_up::ServiceLimits;
pub use store::NatsStore;
pub use transcript::RemoteTranscript;

use crate::error::{Error, ErrorKind};

/// What subjects and streams begin with unless it is said otherwise.
const DEFAULT_PREFIX: &str = "crablet";

/// An id that nobody else makes.
fn nonce() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new(ErrorKind::Internal, format!("the system gives no random numbers: {error}")))?;
    Ok(crate::base64url::encode(&bytes))
}
