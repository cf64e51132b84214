//! The children behind the HTTP front: one for the stateless callers of a token and server, one for each session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crablet::mcp::transport::shim::ServerEra;
use tokio::time::Instant;

use super::bridge::Callers;
use super::child::{ChildHandle, ChildOptions, child};
use super::grants::HttpGrant;
use crate::config::Server;
use crate::grants::GrantFile;
use crate::sessions::{Sessions, random_text};

/// The children, and what new ones are made with.
#[derive(Debug)]
pub(crate) struct Children {
    open: Arc<Mutex<HashMap<Key, Entry>>>,
    /// `None` over NATS, whose callers have no tokens.
    grants: Option<GrantFile<HttpGrant>>,
}

/// Whose child it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    key_id: String,
    server: String,
    /// `None` for that of the stateless callers.
    session: Option<String>,
}

#[derive(Debug)]
struct Entry {
    handle: ChildHandle,
    /// As it was configured when the child was started.
    server: Server,
    used: Instant,
}

/// Why there is no child, as a sentence for the client.
#[derive(Debug)]
pub(crate) struct Unavailable(pub(crate) String);

impl Children {
    pub(crate) fn new(grants: Option<GrantFile<HttpGrant>>) -> Self {
        Self { open: Arc::default(), grants }
    }

    /// The child of a token's stateless callers, started if there is none.
    pub(crate) async fn shared(
        &self,
        sessions: &Sessions,
        key_id: &str,
        name: &str,
        server: &Server,
    ) -> Result<ChildHandle, Unavailable> {
        let key = Key { key_id: key_id.to_owned(), server: name.to_owned(), session: None };
        if let Some(handle) = self.find(&key, Some(server)) {
            return Ok(handle);
        }
        let era = sessions.era(name, server).await;
        // Others may have asked for it meanwhile.
        match self.find(&key, Some(server)) {
            Some(handle) => Ok(handle),
            None => self.start(sessions, key, server, era),
        }
    }

    /// A new session, and its child.
    pub(crate) async fn open_session(
        &self,
        sessions: &Sessions,
        key_id: &str,
        name: &str,
        server: &Server,
    ) -> Result<(String, ChildHandle), Unavailable> {
        let session = random_text().ok_or_else(|| Unavailable("the system gives no randomness".to_owned()))?;
        let key = Key { key_id: key_id.to_owned(), server: name.to_owned(), session: Some(session.clone()) };
        let era = sessions.era(name, server).await;
        if let Some(oldest) = self.surplus_session(&key) {
            oldest.end().await;
        }
        let handle = self.start(sessions, key, server, era)?;
        Ok((session, handle))
    }

    /// The child of a session, if it is there.
    pub(crate) fn session(&self, key_id: &str, name: &str, session: &str) -> Option<ChildHandle> {
        let key = Key { key_id: key_id.to_owned(), server: name.to_owned(), session: Some(session.to_owned()) };
        self.find(&key, None)
    }

    fn find(&self, key: &Key, server: Option<&Server>) -> Option<ChildHandle> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = open.get_mut(key).filter(|entry| !entry.handle.is_over())?;
        if server.is_some_and(|server| *server != entry.server) {
            return None;
        }
        entry.used = Instant::now();
        Some(entry.handle.clone())
    }

    /// The session that a further one of the same token and server takes the place of: many clients end none. Where there
    /// are no tokens it would be somebody else's.
    fn surplus_session(&self, key: &Key) -> Option<ChildHandle> {
        self.grants.as_ref()?;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_alike =
            |other: &Key| other.key_id == key.key_id && other.server == key.server && other.session.is_some();
        let sessions: Vec<&Entry> = open.iter().filter(|(other, _)| is_alike(other)).map(|(_, entry)| entry).collect();
        let oldest = sessions.iter().min_by_key(|entry| entry.used).filter(|_| sessions.len() >= MAX_SESSIONS);
        oldest.map(|entry| entry.handle.clone())
    }

    fn start(
        &self,
        sessions: &Sessions,
        key: Key,
        server: &Server,
        era: Option<ServerEra>,
    ) -> Result<ChildHandle, Unavailable> {
        let place = sessions.place(&key.server, server).map_err(Unavailable)?;
        let nonce = random_text().ok_or_else(|| Unavailable("the system gives no randomness".to_owned()))?;
        let callers = if key.session.is_some() { Callers::Handshake } else { Callers::Stateless };
        let options = ChildOptions {
            server: key.server.clone(),
            key_id: key.key_id.clone(),
            grants: self.grants.clone(),
            limits: server.limits,
            callers,
            // A server that answered nothing is greeted as most want to be.
            era: era.unwrap_or(ServerEra::Handshake),
            idle: if key.session.is_some() { SESSION_IDLE } else { SHARED_IDLE },
            nonce,
        };
        let (handle, task) = child(options, sessions.start(server), place, sessions.shutdown());
        let entry = Entry { handle: handle.clone(), server: server.clone(), used: Instant::now() };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), entry);
        let open = Arc::clone(&self.open);
        tokio::spawn(async move {
            task.await;
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            // Another may have taken its place.
            if open.get(&key).is_some_and(|entry| entry.handle.is_over()) {
                open.remove(&key);
            }
        });
        Ok(handle)
    }
}

/// The most sessions of one token and server. One more ends the one that was not used for the longest time.
const MAX_SESSIONS: usize = 32;

/// How long a session lives without a request or an open stream.
const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);

/// How long the child of stateless callers lives without a request: the next one starts another.
const SHARED_IDLE: Duration = Duration::from_secs(5 * 60);
