//! A worker of an agent service.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::{AckKind, Context, Message};
use futures_util::{FutureExt as _, StreamExt as _};

use super::DEFAULT_PREFIX;
use super::agent_source::AgentSource;
use super::chain::Streams;
use super::claims::Claims;
use super::names::{Names, session_of};
use super::orders::{Orders, WorkEnd};
use super::session_work::{Finished, OnError, WorkParts, work};
use super::set_up::{ServiceLimits, set_up};
use super::store::{Logs, PATIENCE};
use super::task::OwnedTask;
use crate::error::{Error, ErrorKind};
use crate::host::Host;

/// How an agent is served.
#[derive(Clone)]
pub struct ServeOptions {
    context: Context,
    name: String,
    prefix: String,
    max_sessions: usize,
    lease: Duration,
    patience: Duration,
    limits: ServiceLimits,
    on_error: OnError,
}

impl ServeOptions {
    /// Serves under this name: 1 to 64 of letters, digits, `-` and `_`. Let the connection behind the context reconnect for
    /// ever, as is async-nats' default.
    pub fn new(context: Context, name: impl Into<String>) -> Self {
        Self {
            context,
            name: name.into(),
            prefix: DEFAULT_PREFIX.to_owned(),
            max_sessions: 16,
            lease: Duration::from_secs(15),
            patience: PATIENCE,
            limits: ServiceLimits::default(),
            on_error: Arc::new(|_, _| {}),
        }
    }

    /// What all subjects and streams begin with, of the same letters. Default `crablet`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The most sessions that this worker is at at once, at least 1. Default 16.
    #[must_use]
    pub const fn max_sessions(mut self, max_sessions: usize) -> Self {
        self.max_sessions = max_sessions;
        self
    }

    /// After how long a worker that says nothing is held for dead; at least a second. The same for all workers. Default 15
    /// seconds.
    #[must_use]
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long a write is tried again while the server is away. Default 30 seconds.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The limits of the streams, when they are made.
    #[must_use]
    pub fn limits(mut self, limits: ServiceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Is told of what goes wrong at a session, named first: that its agent could not be made, each time, or that it could not be
    /// saved. Called from a task of the worker, which waits for it: it shall write a line and return.
    #[must_use]
    pub fn on_error(mut self, on_error: impl Fn(&str, &Error) + Send + Sync + 'static) -> Self {
        self.on_error = Arc::new(on_error);
        self
    }
}

impl fmt::Debug for ServeOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServeOptions")
            .field("name", &self.name)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// A worker at work: it takes inputs of sessions, one worker a session at a time, runs them, and publishes their events.
///
/// Workers of the npm package's `crablet/agent-service` serve the same sessions. Dropping it is as if the worker had died: others go
/// on with its sessions after the lease. [`stop`](Self::stop) ends it in peace.
pub struct AgentService {
    worker: String,
    shared: Arc<Shared>,
    claims: Arc<Claims>,
    pulls: Vec<OwnedTask>,
    beat: OwnedTask,
}

impl AgentService {
    /// Serves an agent. Makes the streams that are missing.
    ///
    /// # Errors
    ///
    /// `invalid-input` for options that cannot be; `storage` when JetStream cannot be reached or the streams cannot be made.
    pub async fn serve<H: Host>(options: ServeOptions, agents: impl AgentSource<H>) -> Result<Self, Error> {
        let ServeOptions { context, name, prefix, max_sessions, lease, patience, limits, on_error } = options;
        let invalid = |message| Error::new(ErrorKind::InvalidInput, message);
        if lease < MIN_LEASE {
            return Err(invalid("the lease is at least a second: the server looks at ages once a second"));
        }
        if max_sessions == 0 {
            return Err(invalid("max_sessions is at least 1"));
        }
        let names = Names::new(&prefix, &name)?;
        let streams = Streams::new(context, patience);
        let worker = super::nonce()?;
        let consumer = set_up(&streams, &names, lease, &limits).await?;
        let claims = Arc::new(Claims::new(streams.clone(), names.clone(), worker.clone()));
        claims.renew().await?;
        let shared = Arc::new(Shared::default());
        let logs = Arc::new(Logs::new(streams.clone(), names.sessions()));
        let parts = WorkParts { streams, names, logs, worker: worker.clone(), agents: Arc::new(agents), on_error };
        let puller = Arc::new(Puller { parts, claims: claims.clone(), shared: shared.clone(), consumer, lease });
        let pulls = (0..max_sessions).map(|_| OwnedTask::spawn(pull(puller.clone()))).collect();
        let beat = OwnedTask::spawn(beat(shared.clone(), claims.clone(), lease / BEATS));
        Ok(Self { worker, shared, claims, pulls, beat })
    }

    /// What this worker is called in claims and events.
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// The sessions that it is at.
    pub fn sessions(&self) -> Vec<String> {
        self.shared.orders().iter().filter_map(|(session, orders)| orders.as_ref().map(|_| session.clone())).collect()
    }

    /// Takes nothing new and waits until the runs have ended, for this long at most. Runs that are still at work then are left to
    /// other workers at once, as if this one had died: a tool at work is reported as interrupted.
    pub async fn stop(mut self, drain: Duration) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        self.shared.orders().values().flatten().for_each(|orders| orders.drain());
        if tokio::time::timeout(drain, self.pulls_ended()).await.is_err() {
            self.shared.must_leave.store(true, Ordering::Relaxed);
            self.shared.orders().values().flatten().for_each(|orders| orders.stop());
            self.pulls_ended().await;
        }
        drop(self.beat);
        // An entry that stays lapses by itself.
        let _lapses = self.claims.leave().await;
    }

    async fn pulls_ended(&mut self) {
        while let Some(pull) = self.pulls.last_mut() {
            pull.ended().await;
            self.pulls.pop();
        }
    }
}

impl fmt::Debug for AgentService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AgentService").field("worker", &self.worker).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shared {
    /// The sessions that this worker is at; `None` while one is being claimed.
    works: Mutex<HashMap<String, Option<Arc<Orders>>>>,
    is_stopped: AtomicBool,
    must_leave: AtomicBool,
}

impl Shared {
    fn orders(&self) -> MutexGuard<'_, HashMap<String, Option<Arc<Orders>>>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// Says that this worker is alive and its messages are being worked on.
async fn beat(shared: Arc<Shared>, claims: Arc<Claims>, every: Duration) {
    let messages = async {
        let mut ticks = tokio::time::interval(every);
        loop {
            ticks.tick().await;
            let works: Vec<Arc<Orders>> = shared.orders().values().flatten().cloned().collect();
            for orders in works {
                orders.working().await;
            }
        }
    };
    let entry = async {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // The next beat tries again. Meanwhile others may take over; then the revisions keep this worker out.
            let _again = claims.renew().await;
        }
    };
    // Neither ends.
    tokio::join!(messages, entry);
}

struct Puller<H> {
    parts: WorkParts<H>,
    claims: Arc<Claims>,
    shared: Arc<Shared>,
    consumer: Consumer<pull::Config>,
    lease: Duration,
}

/// Takes one message after the other.
async fn pull<H: Host>(puller: Arc<Puller<H>>) {
    while !puller.shared.is_stopped() {
        match next(&puller.consumer).await {
            Ok(None) => {}
            Ok(Some(message)) if puller.shared.is_stopped() => answer(&message, AckKind::Nak(None)).await,
            Ok(Some(message)) => puller.take(message).await,
            // The server is away.
            Err(_) => tokio::time::sleep(AWAY).await,
        }
    }
}

async fn next(consumer: &Consumer<pull::Config>) -> Result<Option<Message>, async_nats::Error> {
    let mut batch = consumer.batch().max_messages(1).expires(PULL).messages().await?;
    batch.next().await.transpose()
}

impl<H: Host> Puller<H> {
    /// Works on the session of a message, unless somebody is at it.
    async fn take(&self, message: Message) {
        let Some(session) = message.subject.rsplit('.').next().and_then(session_of) else {
            // No client of this protocol wrote it, and nobody can read its events.
            return answer(&message, AckKind::Ack).await;
        };
        let is_being_claimed = {
            let mut works = self.shared.orders();
            match works.get(&session) {
                // While the map is locked, so that the work does not end meanwhile.
                Some(Some(orders)) => return orders.hold(message),
                Some(None) => true,
                None => {
                    works.insert(session.clone(), None);
                    false
                }
            }
        };
        if is_being_claimed {
            return answer(&message, AckKind::Nak(Some(CLAIMING))).await;
        }
        let claim = self.claims.claim(&session).await;
        let Ok(Some(claim)) = claim else {
            self.shared.orders().remove(&session);
            return answer(&message, AckKind::Nak(Some(self.lease / BEATS))).await;
        };
        let orders = Arc::new(Orders::default());
        orders.hold(message);
        self.shared.orders().insert(session.clone(), Some(orders.clone()));
        if self.shared.is_stopped() {
            orders.drain();
        }
        if self.shared.must_leave.load(Ordering::Relaxed) {
            orders.stop();
        }
        // What panics costs its session this attempt, and no other session its worker.
        let finished = AssertUnwindSafe(work(&self.parts, &session, &orders)).catch_unwind().await;
        let finished = finished.unwrap_or_else(|_| Finished::with(WorkEnd::Failed));
        self.shared.orders().remove(&session);
        // First the claim, then the messages: whoever gets one of them finds the session free.
        if finished.end != WorkEnd::Lost {
            // One that stays is taken over, as it names a worker that is not at the session.
            let _stays = self.claims.release(claim).await;
        }
        finished.settle(&orders).await;
    }
}

async fn answer(message: &Message, answer: AckKind) {
    // A message that is not answered is delivered again.
    let _away = message.ack_with(answer).await;
}

/// How often in a lease a worker says that it is alive.
const BEATS: u32 = 4;
const MIN_LEASE: Duration = Duration::from_secs(1);
/// How long a request for a message stands.
const PULL: Duration = Duration::from_secs(5);
const AWAY: Duration = Duration::from_millis(500);
const CLAIMING: Duration = Duration::from_millis(100);
