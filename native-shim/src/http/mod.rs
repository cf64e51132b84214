//! Streamable HTTP in front of the servers, of both eras whatever a server speaks.
//!
//! A request passes [`gate`] (who), [`front`] (what), [`head`] and [`message`] (whether it is well made), and reaches the
//! task of a child ([`child`]), where the machine of [`bridge`] translates. What comes back goes through [`streams`] to
//! the response ([`answer`]).

mod answer;
pub(crate) mod bridge;
pub(crate) mod child;
pub(crate) mod children;
mod event_log;
mod front;
mod gate;
mod grants;
pub(crate) mod head;
mod lane;
pub(crate) mod message;
mod streams;

pub(crate) use answer::{AnswerBody, empty};
pub(crate) use front::{HttpFront, is_http};
pub(crate) use grants::HttpGrant;
