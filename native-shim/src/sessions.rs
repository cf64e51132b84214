//! All sessions of the shim: found by token and resume id, started within the limit of processes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crablet::mcp::transport::shim::{Attach, ServerEra};
use crablet::native::process::{ExitReport, GuardianCommand, ServerProcess};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Instant, timeout};

use crate::config::Server;
use crate::crashes::Crashes;
use crate::era::{Unsure, find_era};
use crate::grants::{EXPOSING, GrantFile};
use crate::limits::Limits;
use crate::session::{Attachment, SessionOptions, run_session};

/// The sessions, and what new ones are made with.
#[derive(Debug)]
pub(crate) struct Sessions {
    open: Arc<Mutex<HashMap<Key, mpsc::Sender<Attachment>>>>,
    /// One permit for each process that may still run.
    processes: Arc<Semaphore>,
    /// How many processes each server has.
    running: Arc<Mutex<HashMap<String, usize>>>,
    eras: Mutex<HashMap<String, KnownEra>>,
    crashes: Arc<Mutex<Crashes>>,
    guardian: GuardianCommand,
    grace: Duration,
    grants: GrantFile,
    shutdown: watch::Sender<bool>,
}

/// What was found out about a server, and for which command line.
#[derive(Clone, Debug)]
struct KnownEra {
    server: Server,
    era: Arc<OnceCell<Option<ServerEra>>>,
}

/// Only the same token for the same server finds a process by its resume id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    key_id: String,
    server: String,
    resume: String,
}

/// A place among the processes that may run at the same time, from the start of one to its end.
#[derive(Debug)]
pub(crate) struct Place {
    server: String,
    started: Instant,
    running: Arc<Mutex<HashMap<String, usize>>>,
    crashes: Arc<Mutex<Crashes>>,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// The process ended without having been asked to.
    pub(crate) fn ended_by_itself(&self, report: &ExitReport) {
        let (has_failed, ending) = (report.code != Some(0), report.describe(&self.server));
        let mut crashes = self.crashes.lock().unwrap_or_else(PoisonError::into_inner);
        crashes.ended(&self.server, has_failed, self.started.elapsed(), ending);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(count) = self.running.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&self.server) {
            *count = count.saturating_sub(1);
        }
    }
}

impl Sessions {
    pub(crate) fn new(guardian: GuardianCommand, grace: Duration, grants: GrantFile) -> Self {
        Self {
            open: Arc::default(),
            processes: Arc::new(Semaphore::new(MAX_PROCESSES)),
            running: Arc::default(),
            eras: Mutex::default(),
            crashes: Arc::default(),
            guardian,
            grace,
            grants,
            shutdown: watch::Sender::new(false),
        }
    }

    /// The session that a client wants, started if it wants a new one, and what its server speaks.
    ///
    /// The error is a sentence for the client.
    pub(crate) async fn find(
        &self,
        name: &str,
        server: &Server,
        key_id: &str,
        attach: &Attach,
    ) -> Result<(mpsc::Sender<Attachment>, Option<ServerEra>), String> {
        if let Some(resume) = &attach.resume {
            let session = self.open_session(name, key_id, resume).ok_or_else(|| {
                format!("the process of the server {name:?} has ended; the grace was over, or the shim was restarted")
            })?;
            return Ok((session, self.era(name, server).await));
        }
        let mut place = self.place(name, server)?;
        // First, not meanwhile: the process that is asked may install a package (`npx`), and two that install the same one at
        // the same time break each other.
        let era = self.era(name, server).await;
        place.started = Instant::now();
        Ok((self.open(key_id, server.limits, self.start(server), place)?, era))
    }

    /// The session of a page that offers tools, which is opened if it wants a new one.
    ///
    /// The error is a sentence for the client.
    pub(crate) fn find_page(
        &self,
        key_id: &str,
        attach: &Attach,
        open: impl FnOnce() -> Result<ServerProcess, String>,
    ) -> Result<mpsc::Sender<Attachment>, String> {
        if let Some(resume) = &attach.resume {
            return self
                .open_session(EXPOSING, key_id, resume)
                .ok_or_else(|| "the page was away for longer than the grace, or the shim was restarted".to_owned());
        }
        let place = self.place_within(EXPOSING, None)?;
        self.open(key_id, Limits::default(), open()?, place)
    }

    fn open_session(&self, name: &str, key_id: &str, resume: &str) -> Option<mpsc::Sender<Attachment>> {
        let key = Key { key_id: key_id.to_owned(), server: name.to_owned(), resume: resume.to_owned() };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// Starts a process of a server, for which there is a place.
    pub(crate) fn start(&self, server: &Server) -> ServerProcess {
        ServerProcess::start(server.to_command(&self.guardian))
    }

    /// Tells when the shim ends.
    pub(crate) fn shutdown(&self) -> watch::Receiver<bool> {
        self.shutdown.subscribe()
    }

    /// A place for a further process of a server, if its limits and those of the shim leave room for one.
    ///
    /// The error is a sentence for the client.
    pub(crate) fn place(&self, name: &str, server: &Server) -> Result<Place, String> {
        if let Some(refusal) = self.crashes.lock().unwrap_or_else(PoisonError::into_inner).refusal(name) {
            return Err(refusal);
        }
        self.place_within(name, server.limits.processes)
    }

    fn place_within(&self, name: &str, limit: Option<usize>) -> Result<Place, String> {
        let permit = Arc::clone(&self.processes)
            .try_acquire_owned()
            .map_err(|_| format!("the shim runs {MAX_PROCESSES} processes already; close some connections"))?;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let count = running.entry(name.to_owned()).or_default();
        if let Some(limit) = limit.filter(|limit| *count >= *limit) {
            return Err(format!(
                "the server {name:?} runs as many processes as its limits allow ({limit}); close some connections"
            ));
        }
        *count += 1;
        let (running, crashes) = (Arc::clone(&self.running), Arc::clone(&self.crashes));
        Ok(Place { server: name.to_owned(), started: Instant::now(), running, crashes, _permit: permit })
    }

    fn open(
        &self,
        key_id: &str,
        limits: Limits,
        process: ServerProcess,
        place: Place,
    ) -> Result<mpsc::Sender<Attachment>, String> {
        let name = &place.server;
        let resume = random_text().ok_or("the system gives no randomness")?;
        let key = Key { key_id: key_id.to_owned(), server: name.clone(), resume: resume.clone() };
        let options = SessionOptions {
            server: name.clone(),
            key_id: key_id.to_owned(),
            resume,
            grace: self.grace,
            grants: self.grants.clone(),
            limits,
        };
        let (attachments, requests) = mpsc::channel(1);
        let session = run_session(options, process, requests, self.shutdown());
        let open = Arc::clone(&self.open);
        open.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), attachments.clone());
        tokio::spawn(async move {
            if let Some(report) = session.await {
                place.ended_by_itself(&report);
            }
            open.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        });
        Ok(attachments)
    }

    /// What a server speaks, found out at the first connection to it.
    pub(crate) async fn era(&self, name: &str, server: &Server) -> Option<ServerEra> {
        let era = {
            let mut eras = self.eras.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || KnownEra { server: server.clone(), era: Arc::default() };
            let known = eras.entry(name.to_owned()).or_insert_with(new);
            if known.server != *server {
                *known = new();
            }
            Arc::clone(&known.era)
        };
        let found = era.get_or_try_init(|| find_era(name, server.to_command(&self.guardian))).await;
        found.copied().unwrap_or_else(|Unsure(guess)| guess)
    }

    /// Ends every process, and waits until they are gone.
    pub(crate) async fn shut_down(&self) {
        // No session is there when nobody listens.
        let _ = self.shutdown.send(true);
        let all = u32::try_from(MAX_PROCESSES).unwrap_or(u32::MAX);
        // What is left after this is ended by the guardians.
        drop(timeout(SHUTDOWN_LIMIT, self.processes.acquire_many(all)).await);
    }
}

/// 128 unpredictable bits as text.
pub(crate) fn random_text() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// More servers than a person runs, fewer than would bring a machine down.
const MAX_PROCESSES: usize = 256;

/// Twice the patience with a server, and time to look after what it leaves.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(6);
