//! The edge of [`mcp::client::auth`](crate::mcp::client::auth): what it needs of a person, of the caller and of the platform.

mod fetch;
mod store;
mod work;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

pub(super) use fetch::Authorized;
pub use store::{MemoryTokenStore, TokenStore};

use crate::error::Error;
use crate::host::{BoxFuture, MaybeSend, MaybeSync};
use crate::mcp::client::auth::{AssertionRequest, AuthOptions};

/// How an HTTP server's tokens are obtained, and who has a part in it. Clones share the store.
#[derive(Clone)]
pub struct OAuth {
    /// What is asked for, and as which client.
    pub options: AuthOptions,
    /// Shows the authorization server's page to a person. Without one a server that wants consent fails with kind `auth`.
    pub consent: Option<Arc<dyn Consent>>,
    /// Supplies assertions, for the grants that need them.
    pub assertions: Option<Arc<dyn AssertionSource>>,
    /// Keeps tokens and registrations. Default: in memory, as long as this value or a clone of it lives.
    pub store: Arc<dyn TokenStore>,
}

impl OAuth {
    /// Tokens with these options, kept in memory, without a person.
    pub fn new(options: AuthOptions) -> Self {
        Self { options, consent: None, assertions: None, store: Arc::new(MemoryTokenStore::default()) }
    }

    /// Asks a person with this.
    #[must_use]
    pub fn consent(mut self, consent: impl Consent) -> Self {
        self.consent = Some(Arc::new(consent));
        self
    }

    /// Gets assertions from this.
    #[must_use]
    pub fn assertions(mut self, source: impl AssertionSource) -> Self {
        self.assertions = Some(Arc::new(source));
        self
    }

    /// Keeps tokens in this.
    #[must_use]
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.store = Arc::new(store);
        self
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OAuth").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Shows a page of an authorization server to a person, and learns the address that the person is sent back to.
pub trait Consent: MaybeSend + MaybeSync + 'static {
    /// The address that people are sent back to, which the authorization server is told beforehand. Asked for once per
    /// authorization, before [`ask`](Self::ask).
    ///
    /// # Errors
    ///
    /// Whatever keeps it from receiving anybody; ends the authorization.
    fn redirect_uri(&self) -> BoxFuture<'static, Result<String, Error>>;

    /// Shows this page and gives the whole address that the person came back to. The future is dropped when nobody waits
    /// any more, and after ten minutes.
    ///
    /// The page is the authorization server's: open it in a browser and never in a shell's command line.
    ///
    /// # Errors
    ///
    /// That the person closed the page, say, with kind `auth`; ends the authorization.
    fn ask(&self, url: String) -> BoxFuture<'static, Result<String, Error>>;
}

/// Supplies the token that vouches for the client or the person: with the grant
/// [`Assertion`](crate::mcp::client::auth::Grant::Assertion) the assertion itself, with
/// [`Enterprise`](crate::mcp::client::auth::Grant::Enterprise) the person's identity token. Implemented by closures that give
/// a future.
pub trait AssertionSource: MaybeSend + MaybeSync + 'static {
    /// A token for this purpose. Asked anew for each authorization.
    ///
    /// # Errors
    ///
    /// Whatever kept it from getting one; ends the authorization.
    fn assertion(&self, request: AssertionRequest) -> BoxFuture<'static, Result<String, Error>>;
}

impl<F, Supplying> AssertionSource for F
where
    F: Fn(AssertionRequest) -> Supplying + MaybeSend + MaybeSync + 'static,
    Supplying: Future<Output = Result<String, Error>> + MaybeSend + 'static,
{
    fn assertion(&self, request: AssertionRequest) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(self(request))
    }
}
