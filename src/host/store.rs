//! Where conversations are kept.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{BoxFuture, MaybeSend, MaybeSync};
use crate::error::{Error, ErrorKind};

/// Keeps conversations, each under an id of the caller's choice.
///
/// What is kept of a conversation is a text that grows: lines are added to it, and now and then it is replaced by a shorter
/// one that says the same. It has a version, which grows by one with each write and is 0 while there is nothing. Each write
/// names the version it builds on, so that of two writers of one conversation the second is refused with `conflict` and
/// changes nothing.
///
/// [`Runner::open`](super::Runner::open) takes up a conversation from a store and keeps it there.
pub trait Store: MaybeSend + MaybeSync + 'static {
    /// What is kept; `None` when there is nothing.
    ///
    /// # Errors
    ///
    /// `storage` when it cannot be read.
    fn read(&self, id: &str) -> BoxFuture<'static, Result<Option<Stored>, Error>>;

    /// Adds lines, all of them or none. Resolves with the new version when they survive a crash.
    ///
    /// # Errors
    ///
    /// `conflict` when the version is another than expected, `storage` for everything else.
    fn append(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>>;

    /// Keeps these lines in the place of what is kept, in one step. With an expected version of 0 it begins a conversation.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    fn replace(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>>;

    /// Forgets a conversation; nothing happens when there is none.
    ///
    /// # Errors
    ///
    /// `storage` when it cannot be removed.
    fn delete(&self, id: &str) -> BoxFuture<'static, Result<(), Error>>;

    /// The ids of all conversations, sorted.
    ///
    /// # Errors
    ///
    /// `storage` when they cannot be read.
    fn list(&self) -> BoxFuture<'static, Result<Vec<String>, Error>>;
}

/// What a store keeps of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// How often it was written.
    pub version: u64,
    /// What [`Session::restore_stored`](crate::agent::Session::restore_stored) reads.
    pub text: String,
}

/// The error of a write whose expected version is not the one that is kept.
pub fn conflict(id: &str, expected: u64) -> Error {
    let message = format!(
        "the conversation \"{id}\" was written by somebody else since version {expected}: open it again to go on from what \
        they wrote"
    );
    Error::new(ErrorKind::Conflict, message)
}

/// Keeps conversations in memory, for as long as it lives itself.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<HashMap<String, Stored>>);

impl MemoryStore {
    fn write(&self, id: &str, expected: u64, write: impl FnOnce(&mut String)) -> Result<u64, Error> {
        self.with(|kept| {
            let version = kept.get(id).map_or(0, |stored| stored.version);
            if version != expected {
                return Err(conflict(id, expected));
            }
            let stored = kept.entry(id.to_owned()).or_insert(Stored { version: 0, text: String::new() });
            stored.version += 1;
            write(&mut stored.text);
            Ok(stored.version)
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, Stored>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for MemoryStore {
    fn read(&self, id: &str) -> BoxFuture<'static, Result<Option<Stored>, Error>> {
        ready(Ok(self.with(|kept| kept.get(id).cloned())))
    }

    fn append(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>> {
        ready(self.write(id, expected, |text| text.push_str(&lines)))
    }

    fn replace(&self, id: &str, expected: u64, lines: String) -> BoxFuture<'static, Result<u64, Error>> {
        ready(self.write(id, expected, |text| *text = lines))
    }

    fn delete(&self, id: &str) -> BoxFuture<'static, Result<(), Error>> {
        self.with(|kept| kept.remove(id));
        ready(Ok(()))
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<String>, Error>> {
        let mut ids: Vec<String> = self.with(|kept| kept.keys().cloned().collect());
        ids.sort_unstable();
        ready(Ok(ids))
    }
}

fn ready<T: MaybeSend + 'static>(value: T) -> BoxFuture<'static, T> {
    Box::pin(std::future::ready(value))
}
