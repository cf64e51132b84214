//! The work of one worker on one session that it has claimed, until nothing is left to do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;

use super::agent_source::AgentSource;
use super::asked_calls::{AskedCalls, innermost};
use super::chain::Streams;
use super::input::InputBody;
use super::listening::{Listening, Messages, lock, subscribe};
use super::log_journal::LogJournal;
use super::names::Names;
use super::opening::{Opened, conversation_of, give_up, open, take_up};
use super::orders::{Orders, WorkEnd};
use super::saved::SavedState;
use super::session_inputs::{ReadInput, SessionInputs};
use super::store::Logs;
use crate::agent::{EventKind, Status};
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Conversation, Host, Prompt, Run, RunControl, Runner};
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
        Err(error) => give_up(parts, listening, plan.is_open, error).await.map(|()| None),
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

struct SessionWork<'work, H: Host> {
    parts: &'work WorkParts<H>,
    id: &'work str,
    orders: &'work Orders,
    listening: Listening,
    agent: Runner<H>,
    conversation: Conversation<H>,
    journal: LogJournal,
    asked: AskedCalls,
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
        let asked = AskedCalls::default();
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
                        self.asked.note(&event);
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
            answer @ (InputBody::Approve { .. } | InputBody::ToolResult { .. }) => {
                self.asked.answer(run, answer)?.map(|()| None)
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

const NO_RUN: &str = "no run is at work: send a prompt";
