//! Tools of pages for the agents of this machine.
//!
//! A page with a token for it is a [`Pages`] entry of the running shim: an MCP server at the other end of a WebSocket, whose
//! tools are listed, held against the user's consent and given names of their own. `crablet-shim expose`, which an agent
//! starts, gets them over a Unix socket that only its user can open, and serves them on standard input and output.

mod agent;
mod consents;
mod control;
mod definition;
#[cfg_attr(windows, path = "endpoint_windows.rs")]
mod endpoint;
mod host;
mod names;
mod page;
mod pages;
mod relay;
mod text;
mod withheld;

pub(crate) use agent::expose;
pub(crate) use consents::{Consent, ConsentFile, Shown};
pub(crate) use control::serve_agents;
pub(crate) use endpoint::{Endpoint, Listening};
pub(crate) use pages::{PageOwner, Pages, follow_consents};
pub(crate) use text::is_hidden;
