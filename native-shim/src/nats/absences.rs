//! Callers that are gone. NATS says so of a message that asked for an answer and found nobody: signs of life are such messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::{Client, StatusCode, SubscribeError};
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

/// The calls whose callers are looked after, by numbers that are the ends of reply subjects.
#[derive(Clone, Debug)]
pub(super) struct Absences {
    prefix: Arc<str>,
    next: Arc<AtomicU64>,
    calls: Arc<Mutex<HashMap<u64, CancellationToken>>>,
}

/// A caller that is looked after, until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    absences: Absences,
    number: u64,
    pub(super) gone: CancellationToken,
}

impl Absences {
    /// Begins to listen.
    pub(super) async fn listen(client: &Client) -> Result<Self, SubscribeError> {
        let absences = Self { prefix: client.new_inbox().into(), next: Arc::default(), calls: Arc::default() };
        let mut returns = client.subscribe(format!("{}.*", absences.prefix)).await?;
        let known = absences.clone();
        tokio::spawn(async move {
            while let Some(message) = returns.next().await {
                let number = message.subject.rsplit('.').next().and_then(|number| number.parse().ok());
                if message.status == Some(StatusCode::NO_RESPONDERS)
                    && let Some(number) = number
                    && let Some(gone) = known.calls().get(&number)
                {
                    gone.cancel();
                }
            }
        });
        Ok(absences)
    }

    /// Looks after a further caller.
    pub(super) fn watch(&self) -> Watch {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let gone = CancellationToken::new();
        self.calls().insert(number, gone.clone());
        Watch { absences: self.clone(), number, gone }
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<u64, CancellationToken>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Where NATS says that nobody was there.
    pub(super) fn subject(&self) -> String {
        format!("{}.{}", self.absences.prefix, self.number)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.absences.calls().remove(&self.number);
    }
}
