//! Where keys and tokens come from.

use std::future::Future;

use super::{BoxFuture, MaybeSend, MaybeSync};
use crate::error::Error;
use crate::model::{Credentials, Model};

/// Supplies the credentials of a model call. Asked anew at each attempt, so that short-lived tokens work.
///
/// Implemented by [`Credentials`] for a key that never changes, and by closures that take the model and give a future.
pub trait CredentialSource: MaybeSend + MaybeSync + 'static {
    /// The credentials for a call of this model.
    ///
    /// # Errors
    ///
    /// Whatever kept it from getting them; ends the run unless its kind may be retried.
    fn credentials(&self, model: Model) -> BoxFuture<'static, Result<Credentials, Error>>;
}

impl CredentialSource for Credentials {
    fn credentials(&self, _model: Model) -> BoxFuture<'static, Result<Credentials, Error>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

impl<F, Supplying> CredentialSource for F
where
    F: Fn(Model) -> Supplying + MaybeSend + MaybeSync + 'static,
    Supplying: Future<Output = Result<Credentials, Error>> + MaybeSend + 'static,
{
    fn credentials(&self, model: Model) -> BoxFuture<'static, Result<Credentials, Error>> {
        Box::pin(self(model))
    }
}
