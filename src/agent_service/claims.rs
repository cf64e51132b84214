//! Who works on which session.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::chain::Streams;
use super::names::{Names, key_of};
use crate::error::Error;
use crate::json::Object;

/// What was read about a session that is to be claimed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'read> {
    /// The worker that the claim on it names.
    pub(super) holder: Option<&'read str>,
    /// Whether that worker's entry is there.
    pub(super) is_holder_alive: bool,
    /// This worker.
    pub(super) me: &'read str,
}

/// What a worker may do with a session that it is not at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Take,
    TakeOver,
    Wait,
}

/// Whether a worker may claim a session that it is not at itself.
pub(super) fn decide(seen: Seen<'_>) -> Decision {
    match seen.holder {
        None => Decision::Take,
        // A claim of this worker's own that it knows nothing of: it could not be released.
        Some(holder) if holder == seen.me => Decision::TakeOver,
        Some(_) if seen.is_holder_alive => Decision::Wait,
        Some(_) => Decision::TakeOver,
    }
}

/// Who works on which session. A claim says which worker, and holds for as long as that worker's entry is there, which the server
/// takes away unless it is renewed. No clock but the server's is looked at.
///
/// A claim only keeps workers from getting in each other's way. What a worker that was only slow still does is refused by the
/// revisions of the session and of its events.
pub(super) struct Claims {
    streams: Streams,
    names: Names,
    worker: String,
    revision: AtomicU64,
}

impl Claims {
    pub(super) const fn new(streams: Streams, names: Names, worker: String) -> Self {
        Self { streams, names, worker, revision: AtomicU64::new(0) }
    }

    /// Says that this worker is alive. An entry that the server took away meanwhile is made anew. Calls may not overlap.
    pub(super) async fn renew(&self) -> Result<(), Error> {
        let place = self.names.worker(&self.worker);
        let known = self.revision.load(Ordering::Relaxed);
        let mut revision = self.streams.chain(&place, known, &super::nonce()?, &alive()?).await?;
        if revision.is_none() {
            let last = self.streams.last(&place).await?.map_or(0, |last| last.sequence);
            revision = self.streams.chain(&place, last, &super::nonce()?, &alive()?).await?;
        }
        self.revision.store(revision.unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    /// Takes this worker's entry away, so that others need not wait for it to lapse.
    pub(super) async fn leave(&self) -> Result<(), Error> {
        match self.revision.load(Ordering::Relaxed) {
            0 => Ok(()),
            revision => self.streams.delete(&self.names.worker(&self.worker).stream, revision).await,
        }
    }

    /// Claims a session that this worker is not at: the revision of the claim, or `None` when another worker is at it.
    pub(super) async fn claim(&self, session: &str) -> Result<Option<u64>, Error> {
        let place = self.names.claim(session)?;
        let claim =
            serde_json::to_string(&Claim { v: 1, worker: &self.worker, id: &super::nonce()? }).unwrap_or_default();
        if let Some(revision) = self.streams.chain(&place, 0, &super::nonce()?, &claim).await? {
            return Ok(Some(revision));
        }
        let Some(last) = self.streams.last(&place).await? else { return Ok(None) };
        let text = String::from_utf8_lossy(&last.payload);
        let holder = Object::parse(&text).ok().and_then(|claim| claim.string("worker")).filter(|name| !name.is_empty());
        let is_holder_alive = match &holder {
            Some(holder) => self.streams.last(&self.names.worker(holder)).await?.is_some(),
            None => false,
        };
        match decide(Seen { holder: holder.as_deref(), is_holder_alive, me: &self.worker }) {
            Decision::Wait => Ok(None),
            Decision::Take | Decision::TakeOver => {
                self.streams.chain(&place, last.sequence, &super::nonce()?, &claim).await
            }
        }
    }

    /// Gives a claim up. One that another worker has taken over stays.
    pub(super) async fn release(&self, revision: u64) -> Result<(), Error> {
        self.streams.delete(&key_of(&self.names.claims(), "").stream, revision).await
    }
}

#[derive(Serialize)]
struct Claim<'claim> {
    v: u32,
    worker: &'claim str,
    id: &'claim str,
}

fn alive() -> Result<String, Error> {
    Ok(format!("{{\"v\":1,\"id\":\"{}\"}}", super::nonce()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_taken_unless_a_worker_that_lives_is_at_it() {
        let decided = |holder, is_holder_alive| decide(Seen { holder, is_holder_alive, me: "me" });
        assert_eq!(decided(None, false), Decision::Take);
        assert_eq!(decided(Some("other"), true), Decision::Wait);
        assert_eq!(decided(Some("other"), false), Decision::TakeOver);
        assert_eq!(decided(Some("me"), true), Decision::TakeOver);
    }
}
