//! How a worker takes up a session that it has claimed.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;

use super::event::SessionEvent;
use super::event_log::EventLog;
use super::event_queue::Tail;
use super::listening::{Listening, lock};
use super::log_journal::LogJournal;
use super::names::Place;
use super::orders::Orders;
use super::record::Log;
use super::restored::{Plan, plan_of};
use super::retry::{AGENT_ATTEMPTS, Attempts, Next};
use super::session_inputs::SessionInputs;
use super::session_work::WorkParts;
use crate::error::{Error, ErrorKind};
use crate::host::{Conversation, Host, Runner};
use crate::native::now;

/// Reads the session and its events, keeps slower workers out, and says what holds.
pub(super) async fn open<H: Host>(parts: &WorkParts<H>, id: &str) -> Result<(Log, Plan, EventLog), Error> {
    let place = parts.names.events(id)?;
    for _ in 1..MAX_OPENINGS {
        match try_open(parts, id, &place).await {
            // A slower worker was at it just now. It is kept out once this one was first.
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            outcome => return outcome,
        }
    }
    try_open(parts, id, &place).await
}

async fn try_open<H: Host>(parts: &WorkParts<H>, id: &str, place: &Place) -> Result<(Log, Plan, EventLog), Error> {
    let log = parts.logs.read(id).await?;
    let tail = match parts.streams.last(place).await? {
        Some(last) => Tail::read(last.sequence, &String::from_utf8_lossy(&last.payload)),
        None => Tail::default(),
    };
    let mut plan = plan_of(&log.text, &tail, now());
    if plan.fences {
        parts.logs.fence(id, &log).await?;
    }
    let events = EventLog::new(parts.streams.clone(), place.clone(), id.to_owned(), parts.worker.clone(), tail);
    std::mem::take(&mut plan.events).into_iter().for_each(|said| events.push_said(said));
    events.flush().await?;
    Ok((log, plan, events))
}

/// A conversation that a session was taken up as.
pub(super) struct Opened<H: Host> {
    pub(super) agent: Runner<H>,
    pub(super) conversation: Conversation<H>,
    pub(super) journal: LogJournal,
}

/// Makes the agent and takes the session up, and tries it a few times; `None` when the service is stopped meanwhile.
///
/// # Errors
///
/// What the last attempt ended with.
pub(super) async fn conversation_of<H: Host>(
    parts: &WorkParts<H>,
    id: &str,
    orders: &Orders,
    log: &Log,
    inputs: &Arc<Mutex<SessionInputs>>,
) -> Result<Option<Opened<H>>, Error> {
    let mut attempts = Attempts::default();
    loop {
        // A function of the caller's that panics has failed.
        let made = AssertUnwindSafe(async { parts.agents.agent(id).await }).catch_unwind().await;
        let made = made.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "making the agent panicked")));
        let error = match made.and_then(|agent| take_up(parts, id, agent, log, inputs.clone())) {
            Ok(opened) => return Ok(Some(opened)),
            Err(error) => error,
        };
        (parts.on_error)(id, &error);
        match attempts.failed(orders).await {
            Next::Again => {}
            Next::Stopped => return Ok(None),
            Next::NoMore => {
                let message = format!(
                    "the agent of this session could not be made, which was tried {AGENT_ATTEMPTS} times: {}",
                    error.message()
                );
                return Err(Error::new(error.kind(), message));
            }
        }
    }
}

/// Takes a session up as it is saved.
pub(super) fn take_up<H: Host>(
    parts: &WorkParts<H>,
    id: &str,
    agent: Runner<H>,
    log: &Log,
    inputs: Arc<Mutex<SessionInputs>>,
) -> Result<Opened<H>, Error> {
    let journal = LogJournal::new(parts.logs.clone(), id.to_owned(), inputs, log.version);
    let runner = agent.clone().journal(journal.clone());
    let conversation = if log.version == 0 { runner.conversation()? } else { runner.restore_stored(&log.text)? };
    Ok(Opened { agent, conversation, journal })
}

/// Refuses what came, since the agent of the session cannot be made.
pub(super) async fn give_up<H: Host>(
    parts: &WorkParts<H>,
    listening: Listening,
    is_open: bool,
    error: Error,
) -> Result<(), Error> {
    listening.read(&parts.streams).await?;
    let waiting = lock(&listening.inputs).waiting();
    for refused in waiting {
        listening.refuse(&refused, error.clone());
    }
    if is_open {
        listening.events.push(&SessionEvent::SessionFailed { error });
    }
    listening.events.flush().await
}

/// How often a session is read again when a slower worker was first.
const MAX_OPENINGS: usize = 5;
