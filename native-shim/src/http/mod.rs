//! Streamable HTTP in front of the servers, of both eras whatever a server speaks.
//!
//! A request passes [`gate`] (who), is read by the rules of [`crablet::mcp::server::http`] in [`front`], and reaches the task
//! of a child ([`child`]), where the machine of [`bridge`] translates. What comes back goes through [`streams`] to the
//! response ([`answer`]).

mod answer;
pub(crate) mod bridge;
pub(crate) mod child;
pub(crate) mod children;
mod front;
mod gate;
mod grants;
mod streams;

pub(crate) use answer::{AnswerBody, empty};
pub(crate) use front::{HttpFront, is_http};
pub(crate) use grants::HttpGrant;
