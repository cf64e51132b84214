use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;
use crate::host::{BoxFuture, MaybeSend, MaybeSync};
use crate::ordered_map::OrderedMap;

/// Keeps tokens, and what authorization servers registered, by name. Names hold the addresses of the authorization server
/// and of the MCP server; values are JSON texts that hold secrets.
///
/// What a store loses or fails at is obtained anew. Several connections, and several processes, may share one.
pub trait TokenStore: MaybeSend + MaybeSync + 'static {
    /// What is kept under this name.
    ///
    /// # Errors
    ///
    /// Taken for nothing being kept.
    fn load(&self, key: String) -> BoxFuture<'static, Result<Option<String>, Error>>;

    /// Keeps this value in place of what was kept; `None` forgets it. One is kept after the other, and tokens are used when they are
    /// kept, or after ten seconds.
    ///
    /// # Errors
    ///
    /// Ignored.
    fn save(&self, key: String, value: Option<String>) -> BoxFuture<'static, Result<(), Error>>;
}

/// A store that is gone with its last clone.
#[derive(Clone, Default)]
pub struct MemoryTokenStore {
    kept: Arc<Mutex<OrderedMap<String, String>>>,
}

impl TokenStore for MemoryTokenStore {
    fn load(&self, key: String) -> BoxFuture<'static, Result<Option<String>, Error>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(std::future::ready(Ok(kept.get(&key).cloned())))
    }

    fn save(&self, key: String, value: Option<String>) -> BoxFuture<'static, Result<(), Error>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match value {
            Some(value) => drop(kept.insert(key, value)),
            None => drop(kept.remove(&key)),
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What it keeps is secret.
impl fmt::Debug for MemoryTokenStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MemoryTokenStore(..)")
    }
}
