//! All sessions of the shim: found by token and resume id, started within the limit of processes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crablet::mcp::transport::shim::{Attach, ServerEra};
use crablet::native::process::{GuardianCommand, ServerProcess};
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

impl Sessions {
    pub(crate) fn new(guardian: GuardianCommand, grace: Duration, grants: GrantFile) -> Self {
        Self {
            open: Arc::default(),
            processes: Arc::new(Semaphore::new(MAX_PROCESSES)),
            eras: Mutex::default(),
            crashes: Arc::default(),
            guardian,
            grace,
            grants,
            shutdown: watch::Sender::new(false),
        }
    }

    /// The session that a client wants, started if it wants a new one.
    ///
    /// The error is a sentence for the client.
    pub(crate) fn find(
        &self,
        name: &str,
        server: &Server,
        key_id: &str,
        attach: &Attach,
    ) -> Result<mpsc::Sender<Attachment>, String> {
        if let Some(resume) = &attach.resume {
            return self.open_session(name, key_id, resume).ok_or_else(|| {
                format!("the process of the server {name:?} has ended; the grace was over, or the shim was restarted")
            });
        }
        self.may_start(name, server)?;
        let permit = self.permit()?;
        let process = ServerProcess::start(server.to_command(&self.guardian));
        self.start(name, key_id, server.limits, process, permit)
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
        let permit = self.permit()?;
        self.start(EXPOSING, key_id, Limits::default(), open()?, permit)
    }

    fn open_session(&self, name: &str, key_id: &str, resume: &str) -> Option<mpsc::Sender<Attachment>> {
        let key = Key { key_id: key_id.to_owned(), server: name.to_owned(), resume: resume.to_owned() };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, String> {
        Arc::clone(&self.processes)
            .try_acquire_owned()
            .map_err(|_| format!("the shim runs {MAX_PROCESSES} processes already; close some connections"))
    }

    fn start(
        &self,
        name: &str,
        key_id: &str,
        limits: Limits,
        process: ServerProcess,
        permit: OwnedSemaphorePermit,
    ) -> Result<mpsc::Sender<Attachment>, String> {
        let resume = random_text().ok_or("the system gives no randomness")?;
        let key = Key { key_id: key_id.to_owned(), server: name.to_owned(), resume: resume.clone() };
        let options = SessionOptions {
            server: name.to_owned(),
            key_id: key_id.to_owned(),
            resume,
            grace: self.grace,
            grants: self.grants.clone(),
            limits,
        };
        let (attachments, requests) = mpsc::channel(1);
        let session = run_session(options, process, requests, self.shutdown.subscribe());
        let (open, crashes) = (Arc::clone(&self.open), Arc::clone(&self.crashes));
        let started = Instant::now();
        open.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), attachments.clone());
        tokio::spawn(async move {
            if let Some(report) = session.await {
                let has_failed = report.code != Some(0);
                let ending = report.describe(&key.server);
                let mut crashes = crashes.lock().unwrap_or_else(PoisonError::into_inner);
                crashes.ended(&key.server, has_failed, started.elapsed(), ending);
            }
            open.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            drop(permit);
        });
        Ok(attachments)
    }

    /// Whether the limits of the server leave room for a further process.
    fn may_start(&self, name: &str, server: &Server) -> Result<(), String> {
        if let Some(refusal) = self.crashes.lock().unwrap_or_else(PoisonError::into_inner).refusal(name) {
            return Err(refusal);
        }
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match server.limits.processes {
            Some(limit) if open.keys().filter(|key| key.server == name).count() >= limit => Err(format!(
                "the server {name:?} runs as many processes as its limits allow ({limit}); close some connections"
            )),
            _ => Ok(()),
        }
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
        let found = era.get_or_try_init(|| find_era(server.to_command(&self.guardian))).await;
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
fn random_text() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// More servers than a person runs, fewer than would bring a machine down.
const MAX_PROCESSES: usize = 256;

/// Twice the patience with a server, and time to look after what it leaves.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(6);
