//! The work of one worker on one session that it has claimed, until nothing is left to do.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Subscriber;
use futures_util::{FutureExt as _, StreamExt as _};

use super::agent_source::AgentSource;
use super::chain::{Streams, passing};
use super::event::SessionEvent;
use super::event_log::EventLog;
use super::event_queue::Tail;
use super::input::InputBody;
use super::log_journal::LogJournal;
use super::names::{Names, Place};
use super::orders::{Orders, WorkEnd};
use super::record::Log;
use super::restored::{Plan, plan_of};
use super::retry::{AGENT_ATTEMPTS, agent_wait};
use super::saved::SavedState;
use super::session_inputs::{ReadInput, SessionInputs};
use super::store::Logs;
use crate::agent::{Approval, Event, EventKind, InputHash, Status};
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Conversation, Host, Prompt, Run, RunControl, Runner};
use crate::model::CallId;
use crate::native::now;

/// What a worker has for its sessions.
pub(super) struct WorkParts<H> {
    pub(super) streams: Streams,
    pub(super) names: Names,
    pub(super) logs: Arc<Logs>,
    pub(super) worker: String,
    pub(super) agents: Arc<dyn AgentSource<H>>,
    pub(super) on_error: OnError,
}

/// Is told of what goes wrong at a session.
pub(super) type OnError = Arc<dyn Fn(&str, &Error) + Send + Sync>;

/// The outcome of the work on a session.
pub(super) struct Finished {
    pub(super) end: WorkEnd,
    inputs: Option<SessionInputs>,
    /// How long a run waits for a person at most.
    alarm: Option<Duration>,
}

impl Finished {
    /// The work that ended before anything was read.
    pub(super) const fn with(end: WorkEnd) -> Self {
        Self { end, inputs: None, alarm: None }
    }

    /// Answers the messages that were held.
    pub(super) async fn settle(&self, orders: &Orders) {
        orders.settle(self.end, self.inputs.as_ref(), self.alarm).await;
    }
}

/// Works on a session until nothing is left to do.
pub(super) async fn work<H: Host>(parts: &WorkParts<H>, id: &str, orders: &Orders) -> Finished {
    let mut finished = Finished::with(WorkEnd::Done);
    if let Err(error) = try_work(parts, id, orders, &mut finished).await {
        finished.end = match error.kind() {
            ErrorKind::Conflict => WorkEnd::Lost,
            _ => WorkEnd::Failed,
        };
        if error.kind() != ErrorKind::Conflict {
            (parts.on_error)(id, &error);
        }
    } else if orders.is_stopped() {
        finished.end = WorkEnd::HandedOver;
    }
    parts.logs.forget(id);
    finished
}

async fn try_work<H: Host>(
    parts: &WorkParts<H>,
    id: &str,
    orders: &Orders,
    finished: &mut Finished,
) -> Result<(), Error> {
    let place = parts.names.input(id)?;
    let hint = subscribe(&parts.streams, &place).await?;
    let (log, plan, events) = open(parts, id).await?;
    let inputs = Arc::new(Mutex::new(SessionInputs::new(log.taken.clone())));
    let listening = Listening { place, events, inputs: inputs.clone(), hint, hears: true };
    let outcome = match conversation_of(parts, id, orders, &log, &inputs).await {
        Err(error) => give_up(parts, listening, plan.is_open, error).await,
        Ok(None) => Ok(None),
        Ok(Some(taken)) => {
            SessionWork::new(parts, id, orders, listening, taken, plan.is_ending).go_on(plan.resumes).await
        }
    };
    let inputs = std::mem::replace(&mut *lock(&inputs), SessionInputs::new(log.taken));
    finished.inputs = Some(inputs);
    finished.alarm = outcome?;
    Ok(())
}

async fn subscribe(streams: &Streams, place: &Place) -> Result<Subscriber, Error> {
    let mut patience = streams.patience("subscribed to");
    loop {
        match streams.context.client().subscribe(place.subject.clone()).await {
            Ok(hint) => return Ok(hint),
            Err(error) => patience.after(passing(error)).await?,
        }
    }
}

/// Reads the session and its events, keeps slower workers out, and says what holds.
async fn open<H: Host>(parts: &WorkParts<H>, id: &str) -> Result<(Log, Plan, EventLog), Error> {
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
struct Opened<H: Host> {
    agent: Runner<H>,
    conversation: Conversation<H>,
    journal: LogJournal,
}

/// Makes the agent and takes the session up, and tries it a few times; `None` when the service is stopped meanwhile.
///
/// # Errors
///
/// What the last attempt ended with.
async fn conversation_of<H: Host>(
    parts: &WorkParts<H>,
    id: &str,
    orders: &Orders,
    log: &Log,
    inputs: &Arc<Mutex<SessionInputs>>,
) -> Result<Option<Opened<H>>, Error> {
    let mut attempt = 1;
    loop {
        // A function of the caller's that panics has failed.
        let made = AssertUnwindSafe(async { parts.agents.agent(id).await }).catch_unwind().await;
        let made = made.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "making the agent panicked")));
        let error = match made.and_then(|agent| take_up(parts, id, agent, log, inputs.clone())) {
            Ok(opened) => return Ok(Some(opened)),
            Err(error) => error,
        };
        (parts.on_error)(id, &error);
        if attempt == AGENT_ATTEMPTS {
            let message = format!(
                "the agent of this session could not be made, which was tried {AGENT_ATTEMPTS} times: {}",
                error.message()
            );
            return Err(Error::new(error.kind(), message));
        }
        let wait = tokio::time::sleep(agent_wait(attempt));
        tokio::pin!(wait);
        while !orders.is_draining() {
            tokio::select! {
                () = &mut wait => break,
                () = orders.changed() => {}
            }
        }
        if orders.is_draining() {
            orders.stop();
            return Ok(None);
        }
        attempt += 1;
    }
}

fn take_up<H: Host>(
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
async fn give_up<H: Host>(
    parts: &WorkParts<H>,
    listening: Listening,
    is_open: bool,
    error: Error,
) -> Result<Option<Duration>, Error> {
    listening.read(&parts.streams).await?;
    let waiting = lock(&listening.inputs).waiting();
    for refused in waiting {
        listening.refuse(&refused, error.clone());
    }
    if is_open {
        listening.events.push(&SessionEvent::SessionFailed { error });
    }
    listening.events.flush().await?;
    Ok(None)
}

/// The inputs and the events of a session at work.
struct Listening {
    place: Place,
    events: EventLog,
    inputs: Arc<Mutex<SessionInputs>>,
    /// Hears that inputs come; they are read from the stream.
    hint: Subscriber,
    hears: bool,
}

/// Messages of the stream, each with its sequence.
type Messages = Vec<(u64, String)>;

impl Listening {
    /// Reads what came.
    async fn read(&self, streams: &Streams) -> Result<(), Error> {
        let messages = self.reading(streams).await?;
        self.take_in(messages);
        Ok(())
    }

    fn reading(&self, streams: &Streams) -> BoxFuture<'static, Result<Messages, Error>> {
        let (streams, place, mut from) = (streams.clone(), self.place.clone(), lock(&self.inputs).next());
        Box::pin(async move {
            let mut messages = Vec::new();
            while let Some(message) = streams.next(&place, from).await? {
                from = message.sequence + 1;
                messages.push((message.sequence, String::from_utf8_lossy(&message.payload).into_owned()));
            }
            Ok(messages)
        })
    }

    fn take_in(&self, messages: Messages) {
        for (sequence, text) in messages {
            let pushed = lock(&self.inputs).push(sequence, &text);
            if let Err((input_id, error)) = pushed {
                self.events.push(&SessionEvent::InputRefused { input_id, error });
            }
        }
    }

    fn refuse(&self, refused: &ReadInput, error: Error) {
        lock(&self.inputs).settle(refused.sequence);
        self.events.push(&SessionEvent::InputRefused { input_id: refused.input.id.clone(), error });
    }

    fn accept(&self, accepted: &ReadInput, message_id: Option<String>) {
        self.events.push(&SessionEvent::InputAccepted {
            input_id: accepted.input.id.clone(),
            input_type: accepted.input.body.name().to_owned(),
            message_id: message_id.map(crate::model::MessageId::new),
        });
    }
}

/// What a run asks a person or a client about a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Approval,
    Result,
}

struct SessionWork<'work, H: Host> {
    parts: &'work WorkParts<H>,
    id: &'work str,
    orders: &'work Orders,
    listening: Listening,
    agent: Runner<H>,
    conversation: Conversation<H>,
    journal: LogJournal,
    asked: HashMap<String, Asked>,
    /// Whether the end of a run was saved and shown, and is still to be said in the conversation.
    is_ending: bool,
    /// Whether the run that waits was not gone on with since the session was taken up.
    is_untouched: bool,
}

impl<'work, H: Host> SessionWork<'work, H> {
    fn new(
        parts: &'work WorkParts<H>,
        id: &'work str,
        orders: &'work Orders,
        listening: Listening,
        Opened { agent, conversation, journal }: Opened<H>,
        is_ending: bool,
    ) -> Self {
        let asked = HashMap::new();
        Self { parts, id, orders, listening, agent, conversation, journal, asked, is_ending, is_untouched: true }
    }

    /// Works until nothing is left to do, and says how long a run waits for a person at most.
    async fn go_on(mut self, resumes: bool) -> Result<Option<Duration>, Error> {
        let outcome = self.try_go_on(resumes).await;
        // From here on whoever goes on writes.
        self.journal.close();
        outcome?;
        if self.orders.is_stopped() {
            return Ok(None);
        }
        self.listening.events.flush().await?;
        Ok(self.alarm())
    }

    async fn try_go_on(&mut self, resumes: bool) -> Result<(), Error> {
        if resumes {
            self.resume().await?;
        }
        loop {
            self.listening.read(&self.parts.streams).await?;
            self.give(None);
            if self.orders.is_draining() {
                return Ok(());
            }
            let waiting = lock(&self.listening.inputs).waiting();
            if self.waits_for_person() {
                let decisions: Vec<_> = waiting.into_iter().filter(|one| one.input.body.is_decision()).collect();
                if decisions.is_empty() {
                    return Ok(());
                }
                if !self.is_untouched {
                    self.reopen().await?;
                }
                self.resume().await?;
                self.refuse_left(&decisions);
                continue;
            }
            let Some(prompt) = waiting.into_iter().find(|one| one.input.body.is_prompt()) else { return Ok(()) };
            self.start(&prompt).await?;
        }
    }

    /// Takes the session up anew, so that a run that waits asks again for what it waits for.
    async fn reopen(&mut self) -> Result<(), Error> {
        self.journal.close();
        self.journal.is_idle().await;
        let inputs = self.listening.inputs.clone();
        lock(&inputs).give_again();
        let log = self.parts.logs.read(self.id).await?;
        let opened = take_up(self.parts, self.id, self.agent.clone(), &log, inputs)?;
        self.conversation = opened.conversation;
        self.journal = opened.journal;
        self.is_untouched = true;
        Ok(())
    }

    /// Starts a run with a prompt.
    async fn start(&mut self, prompt: &ReadInput) -> Result<(), Error> {
        let (InputBody::Prompt(content) | InputBody::FollowUp(content)) = prompt.input.body.clone() else {
            return Ok(());
        };
        if std::mem::take(&mut self.is_ending)
            && let Some(mut run) = self.conversation.resume()
        {
            // Its end was shown.
            while run.next().await.is_some() {}
            if let Some(error) = self.journal.failure() {
                return Err(error);
            }
        }
        lock(&self.listening.inputs).give(prompt.sequence, None);
        self.listening.accept(prompt, None);
        match self.conversation.send(Prompt(content)) {
            Ok(run) => self.follow(run).await,
            Err(refused) => {
                self.listening.refuse(prompt, refused);
                Ok(())
            }
        }
    }

    async fn resume(&mut self) -> Result<(), Error> {
        match self.conversation.resume() {
            Some(run) => self.follow(run).await,
            None => Ok(()),
        }
    }

    /// Follows a run to its end, or until it waits for a person.
    async fn follow(&mut self, mut run: Run<H>) -> Result<(), Error> {
        self.is_untouched = false;
        self.asked.clear();
        let outcome = self.try_follow(&mut run).await;
        match outcome {
            Ok(Followed::Ended) => lock(&self.listening.inputs).settle_given(),
            Ok(Followed::Suspended) => run.detach(),
            Ok(Followed::Stopped) => self.journal.close(),
            Err(error) => {
                // Before the run is dropped, which aborts it: that is not to be saved.
                self.journal.close();
                return Err(error);
            }
        }
        if self.orders.is_stopped() { Ok(()) } else { self.listening.events.flush().await }
    }

    async fn try_follow(&mut self, run: &mut Run<H>) -> Result<Followed, Error> {
        let control = run.control();
        let mut reading: Option<BoxFuture<'static, Result<Messages, Error>>> = None;
        let mut is_called = false;
        let (mut has_ended, mut is_suspended) = (false, false);
        loop {
            if self.orders.is_stopped() {
                return Ok(Followed::Stopped);
            }
            if std::mem::take(&mut is_called) {
                reading = Some(self.listening.reading(&self.parts.streams));
            }
            let has_room = self.listening.events.has_room();
            let Listening { events, hint, hears, .. } = &mut self.listening;
            tokio::select! {
                moved = events.moved() => moved?,
                () = self.orders.changed() => is_called = true,
                heard = hint.next(), if *hears => {
                    *hears = heard.is_some();
                    is_called = true;
                }
                messages = read(&mut reading), if reading.is_some() => {
                    reading = None;
                    self.listening.take_in(messages?);
                    self.give((!has_ended).then_some(&control));
                }
                happened = run.next(), if has_room => {
                    // What cannot be saved is not shown either: whoever goes on does so from the last checkpoint.
                    if let Some(error) = self.journal.failure() {
                        return Err(error);
                    }
                    let Some(happened) = happened else { return Ok(Followed::Ended) };
                    for event in happened {
                        match &innermost(&event).kind {
                            EventKind::ApprovalResponse { .. } | EventKind::ToolResult(_) => is_suspended = false,
                            _ => is_suspended |= event.kind == EventKind::RunSuspended,
                        }
                        has_ended |= matches!(event.kind, EventKind::RunEnd(_));
                        self.note(&event);
                        self.listening.events.push(&event.into());
                    }
                    // What is given makes the run go on, or is still to be saved.
                    if !has_ended && !self.give(Some(&control)) && is_suspended {
                        return Ok(Followed::Suspended);
                    }
                }
            }
        }
    }

    /// Follows who is asked for what.
    fn note(&mut self, event: &Event) {
        match &innermost(event).kind {
            EventKind::ApprovalRequest { call_id, .. } => {
                self.asked.insert(call_id.to_string(), Asked::Approval);
            }
            EventKind::ToolStart { call_id, client_side: true, .. } => {
                self.asked.insert(call_id.to_string(), Asked::Result);
            }
            EventKind::ApprovalResponse { call_id, .. } => {
                self.asked.remove(call_id.as_str());
            }
            EventKind::ToolResult(result) => {
                self.asked.remove(result.call_id.as_str());
            }
            _ => {}
        }
    }

    /// Gives the run what waits for it, and says whether there was something. Without a run, refuses what only a run can take.
    fn give(&self, run: Option<&RunControl>) -> bool {
        let waiting = lock(&self.listening.inputs).waiting();
        let (mut is_prompt_before, mut has_given) = (false, false);
        for input in waiting {
            is_prompt_before |= input.input.body.is_prompt();
            let Some(run) = run else {
                // What comes behind a prompt is for its run.
                if !self.waits_for_person() && !is_prompt_before {
                    self.listening.refuse(&input, Error::new(ErrorKind::InvalidInput, NO_RUN));
                }
                continue;
            };
            match self.give_to(run, &input) {
                None => {}
                Some(Ok(message_id)) => {
                    has_given = true;
                    self.listening.accept(&input, message_id);
                }
                Some(Err(error)) => self.listening.refuse(&input, error),
            }
        }
        has_given
    }

    /// The id of the message that waits, where there is one; `None` when it is not the input's turn.
    fn give_to(&self, run: &RunControl, waiting: &ReadInput) -> Option<Result<Option<String>, Error>> {
        if self.conversation.status() == Status::Idle {
            // The run is over, and its end is about to be shown.
            return None;
        }
        // A checkpoint that has the input finds it given.
        let mut inputs = lock(&self.listening.inputs);
        let given = match &waiting.input.body {
            InputBody::Prompt(_) => return None,
            InputBody::FollowUp(content) => run.follow_up(content.clone()).map(|id| Some(id.to_string())),
            InputBody::Steer(content) => run.steer(content.clone()).map(|steered| Some(steered.id().to_string())),
            InputBody::Abort { reason } => {
                run.abort(Some(reason.as_deref().unwrap_or("the run was aborted by a client")));
                Ok(None)
            }
            InputBody::Approve { call_id, allow, reason, input_hash } => {
                if self.asked.get(call_id) != Some(&Asked::Approval) {
                    return None;
                }
                let decision = if *allow { Approval::Allow } else { Approval::Deny { reason: reason.clone() } };
                approve(run, CallId::new(call_id.clone()), decision, input_hash.as_deref()).map(|()| None)
            }
            InputBody::ToolResult { call_id, output } => {
                if self.asked.get(call_id) != Some(&Asked::Result) {
                    return None;
                }
                run.tool_result(CallId::new(call_id.clone()), output.clone()).map(|()| None)
            }
        };
        if let Ok(message_id) = &given {
            inputs.give(waiting.sequence, message_id.clone());
        }
        Some(given)
    }

    /// Refuses decisions about calls that do not wait: those that do were asked for again when the run went on.
    fn refuse_left(&self, decisions: &[ReadInput]) {
        for decision in decisions {
            let is_waiting = lock(&self.listening.inputs).is_waiting(decision.sequence);
            if is_waiting && !self.orders.is_stopped() {
                self.listening.refuse(decision, Error::new(ErrorKind::InvalidInput, "no such call waits"));
            }
        }
    }

    fn waits_for_person(&self) -> bool {
        !self.is_ending && self.conversation.status() != Status::Idle
    }

    /// How long a run waits for a person at most.
    fn alarm(&self) -> Option<Duration> {
        if !self.waits_for_person() {
            return None;
        }
        let due = SavedState::last(&self.conversation.snapshot())?.due_at()?;
        Some(Duration::from_millis(due.since(now()) + 1))
    }
}

/// Why a run is not followed any further.
#[derive(Clone, Copy)]
enum Followed {
    Ended,
    Suspended,
    Stopped,
}

async fn read(reading: &mut Option<BoxFuture<'static, Result<Messages, Error>>>) -> Result<Messages, Error> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

fn approve(run: &RunControl, call_id: CallId, decision: Approval, input_hash: Option<&str>) -> Result<(), Error> {
    let Some(text) = input_hash else { return run.approve(call_id, decision) };
    let hash = InputHash::parse(text)
        .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "this is not the inputHash of an approval request"))?;
    run.approve_input(call_id, decision, hash)
}

fn innermost(event: &Event) -> &Event {
    let mut event = event;
    while let EventKind::SubAgentEvent { event: within, .. } = &event.kind {
        event = within;
    }
    event
}

fn lock(inputs: &Mutex<SessionInputs>) -> MutexGuard<'_, SessionInputs> {
    inputs.lock().unwrap_or_else(PoisonError::into_inner)
}

const NO_RUN: &str = "no run is at work: send a prompt";
/// How often a session is read again when a slower worker was first.
const MAX_OPENINGS: usize = 5;
