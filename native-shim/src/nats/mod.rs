//! The servers that are named for it, over NATS request/reply (feature `nats`).
//!
//! Each is a service of NATS's own service API in a queue group, so that calls spread over all shims of that group. A message
//! of the subject of a server reaches the task of a child as one over HTTP does (`crate::http`), with the same translation
//! between the eras. Who may send it is decided by the account of the NATS server: the checks of pages do not apply here, which
//! is why only servers that were named are served.
//!
//! The subjects of a server `files`, under the prefix `mcp`:
//!
//! | subject | what it takes |
//! |---|---|
//! | `mcp.files` | a request, answered by one message |
//! | `mcp.files.stream` | a request, answered by as many messages as it has: see [`reply`] |
//! | `mcp.files.cancel` | the reply subject of a call, which is cancelled wherever it is at work |
//! | `mcp.files.session.ID.call`, `.stream`, `.listen`, `.end` | the same for a session, at the one shim that has it |

mod absences;
mod call;
mod doctor;
mod front;
mod options;
mod reply;
mod session;

pub(crate) use doctor::examine;
pub(crate) use front::NatsFront;
pub(crate) use options::{NatsArguments, NatsError};
