//! The agents that a worker serves.

use std::future::{Future, ready};

use crate::error::Error;
use crate::host::{BoxFuture, Host, Runner};

/// Gives the agent of each session: one [`Runner`] for all, or a function of the id of the session that makes one, which may look
/// things up first.
pub trait AgentSource<H>: Send + Sync + 'static {
    /// The agent of this session. Asked for each time a worker takes the session up.
    ///
    /// # Errors
    ///
    /// What keeps it from being made. It is tried five times in some eight seconds; then the inputs that wait are refused with
    /// this error. A panic counts as one.
    fn agent(&self, session: &str) -> BoxFuture<'static, Result<Runner<H>, Error>>;
}

impl<H: Host> AgentSource<H> for Runner<H> {
    fn agent(&self, _session: &str) -> BoxFuture<'static, Result<Self, Error>> {
        Box::pin(ready(Ok(self.clone())))
    }
}

impl<H, F, Making> AgentSource<H> for F
where
    H: Host,
    F: Fn(String) -> Making + Send + Sync + 'static,
    Making: Future<Output = Result<Runner<H>, Error>> + Send + 'static,
{
    fn agent(&self, session: &str) -> BoxFuture<'static, Result<Runner<H>, Error>> {
        Box::pin(self(session.to_owned()))
    }
}
