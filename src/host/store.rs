//! Where a conversation's checkpoints are kept.

use std::future::Future;

use super::{BoxFuture, MaybeSend, MaybeSync};
use crate::error::Error;

/// Keeps the last checkpoint of one conversation.
///
/// With a store, a tool that is not repeatable runs only after the checkpoint that records its start is saved. A save
/// that fails ends the run with kind `storage`.
pub trait Store: MaybeSend + MaybeSync + 'static {
    /// Saves a snapshot in place of the one before. Calls do not overlap within one conversation; the future resolves
    /// when the snapshot survives a crash.
    ///
    /// # Errors
    ///
    /// `conflict` when somebody else wrote the conversation, `storage` for everything else.
    fn save(&self, snapshot: String) -> BoxFuture<'static, Result<(), Error>>;
}

impl<F, Saving> Store for F
where
    F: Fn(String) -> Saving + MaybeSend + MaybeSync + 'static,
    Saving: Future<Output = Result<(), Error>> + MaybeSend + 'static,
{
    fn save(&self, snapshot: String) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self(snapshot))
    }
}
