//! The shared state of a conversation at work: its session, the tasks started for it, and what came back.
//!
//! Nothing of the caller's is ever called, polled or dropped while the lock is held: what a change of state has to call is
//! gathered in an [`Aftermath`] and called after the lock is released. So a tool may abort its own run, and a listener may
//! snapshot the conversation it belongs to.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use futures_channel::oneshot;

use super::checkpoints::Waiting;
use super::deadlines::{Deadline, Deadlines};
use super::journal::Recorder;
use super::{BoxFuture, CancelToken, Host};
use crate::agent::{Effect, Event, EventKind, HookId, Input, InputError, ModelCallId, Save, Session, Status};
use crate::error::Error;
use crate::model::{CallId, Content, EncodedCache, MessageId};
use crate::ordered_map::OrderedMap;
use crate::time::Millis;

/// The most inputs that tools may have posted and the run has not read. A tool that reports more often than its reader
/// reads loses the oldest reports, since the newest tell where it stands.
const MAX_POSTED_INPUTS: usize = 256;

/// Names a task, so that the effect that cancels it finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TaskKey {
    Model(ModelCallId),
    Tool(CallId),
    Validation(CallId),
    Hook(HookId),
    Approval(CallId),
}

pub(super) type Task = BoxFuture<'static, ()>;

pub(super) struct Driver {
    clock: Box<dyn Clock>,
    state: Mutex<State>,
}

/// What one look at the state gave a run to do.
pub(super) struct Progress {
    /// Effects to start.
    pub(super) effects: Vec<Effect>,
    /// What happened since the last look.
    pub(super) events: Vec<Event>,
    /// Whether a timer or a task's input was handled, so that tasks may be able to go on.
    pub(super) handled: bool,
    /// Whether the run has ended.
    pub(super) over: bool,
    /// When the next timer is due.
    pub(super) deadline: Option<Deadline>,
}

impl Driver {
    pub(super) fn new<H: Host>(host: &H, session: Session, recorder: Option<Arc<dyn Recorder>>) -> Self {
        let driver = Self {
            clock: Box::new(HostClock(host.clone())),
            state: Mutex::new(State {
                session,
                recorder,
                cache: EncodedCache::default(),
                posted: Vec::new(),
                tasks: OrderedMap::new(),
                next_task: 0,
                deadlines: Deadlines::default(),
                effects: Vec::new(),
                checkpoints: Vec::new(),
                gap: None,
                saving: false,
                events: Vec::new(),
                steered: Vec::new(),
                waker: None,
                run: 0,
                attached: false,
            }),
        };
        // A restored session has effects to hand out before its first input.
        let now = driver.now();
        driver.change(|state, aftermath| {
            state.deadlines.observe(now);
            state.settle(aftermath);
        });
        driver
    }

    pub(super) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Reads the session.
    pub(super) fn session<T>(&self, read: impl FnOnce(&Session) -> T) -> T {
        read(&self.lock().session)
    }

    /// Changes what of the session may be changed without an input.
    pub(super) fn edit_session<T>(&self, edit: impl FnOnce(&mut Session) -> T) -> T {
        self.change(|state, aftermath| {
            let outcome = edit(&mut state.session);
            state.settle(aftermath);
            outcome
        })
    }

    /// Encodes or does other pure work with the cache of encoded turns.
    pub(super) fn with_cache<T>(&self, work: impl FnOnce(&mut EncodedCache) -> T) -> T {
        work(&mut self.lock().cache)
    }

    /// Gives the session an input and takes the consequences at once.
    pub(super) fn input(&self, input: Input) -> Result<(), InputError> {
        let now = self.now();
        self.change(|state, aftermath| state.input(now, input, aftermath))
    }

    /// Like [`input`](Self::input), for the controls of one run only.
    pub(super) fn input_of_run(&self, run: u64, input: Input) -> Result<(), InputError> {
        let now = self.now();
        self.change(
            |state, aftermath| {
                if state.run == run { state.input(now, input, aftermath) } else { Err(InputError::Idle) }
            },
        )
    }

    /// Adds a steered message to a run. The receiver is told whether it was delivered.
    pub(super) fn steer(
        &self,
        run: u64,
        content: Vec<Content>,
    ) -> Result<(MessageId, oneshot::Receiver<bool>), InputError> {
        let now = self.now();
        self.change(|state, aftermath| {
            if state.run != run {
                return Err(InputError::Idle);
            }
            state.deadlines.observe(now);
            let id = state.session.steer(now, content)?;
            let (sender, receiver) = oneshot::channel();
            state.steered.push((id.clone(), sender));
            state.settle(aftermath);
            aftermath.waker = state.waker.take();
            Ok((id, receiver))
        })
    }

    /// Adds a follow-up to a run and gives its id.
    pub(super) fn follow_up(&self, run: u64, content: Vec<Content>) -> Result<MessageId, InputError> {
        self.change(|state, aftermath| {
            if state.run != run {
                return Err(InputError::Idle);
            }
            let id = state.session.follow_up(content)?;
            // So that it is saved although nothing else happens, as in a run that waits for a person.
            state.settle(aftermath);
            aftermath.waker = state.waker.take();
            Ok(id)
        })
    }

    /// Leaves an input for the run to handle at its next turn.
    pub(super) fn post(&self, input: Input) {
        self.change(|state, aftermath| {
            if state.posted.len() >= MAX_POSTED_INPUTS {
                let oldest = state.posted.iter().position(|input| matches!(input, Input::ToolProgress { .. }));
                oldest.map(|oldest| state.posted.remove(oldest));
            }
            state.posted.push(input);
            aftermath.waker = state.waker.take();
        });
    }

    /// Binds a new run to the conversation and gives its number; `None` while another one is bound. Events of an earlier
    /// run that was put aside and not taken up again are forgotten.
    pub(super) fn attach_new(&self) -> Option<u64> {
        let mut state = self.lock();
        if state.attached {
            return None;
        }
        state.events.clear();
        state.attached = true;
        state.run += 1;
        Some(state.run)
    }

    /// Whether there is nothing to go on with: no run is active, and the events of the last one were read.
    pub(super) fn is_done(&self) -> bool {
        let state = self.lock();
        state.session.status() == Status::Idle && state.events.is_empty()
    }

    /// Binds the run that was last bound again; `None` while one is bound.
    pub(super) fn attach(&self) -> Option<u64> {
        let mut state = self.lock();
        (!std::mem::replace(&mut state.attached, true)).then_some(state.run)
    }

    /// Unbinds the run, leaving its tasks where they are.
    pub(super) fn detach(&self) {
        let mut state = self.lock();
        state.attached = false;
        state.waker = None;
    }

    /// Starts a task. Its future is first polled at the next turn of the run.
    pub(super) fn start(&self, key: TaskKey, cancel: CancelToken, future: Task) {
        self.change(|state, _| {
            let number = state.next_task;
            state.next_task += 1;
            state.tasks.insert(number, Entry { key, cancel, future: Some(future) });
        });
    }

    /// Claims the saving of checkpoints; `false` while somebody else does it.
    pub(super) fn begin_saving(&self) -> bool {
        !std::mem::replace(&mut self.lock().saving, true)
    }

    /// Gives the claim back.
    pub(super) fn end_saving(&self) {
        self.lock().saving = false;
    }

    /// Takes the checkpoints that wait to be saved. `None` gives the claim back.
    pub(super) fn take_checkpoints(&self) -> Option<Waiting> {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.checkpoints);
        let (seqs, saves): (Vec<u64>, Vec<Save>) = waiting.into_iter().unzip();
        let save = saves.into_iter().reduce(Save::then);
        state.saving = save.is_some();
        let gap = state.gap.clone().filter(|_| matches!(save, Some(Save::Append(_))));
        save.map(|save| Waiting { seqs, save, gap })
    }

    /// What has changed since the last checkpoint that was taken.
    pub(super) fn changes(&self) -> Save {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.checkpoints).into_iter().map(|(_, save)| save);
        let waiting: Vec<Save> = waiting.chain([state.session.changes()]).collect();
        waiting.into_iter().reduce(Save::then).unwrap_or(Save::Append(String::new()))
    }

    /// Remembers whether what comes next can build on what was just saved.
    pub(super) fn was_saved(&self, failure: Option<&Error>) {
        self.lock().gap = failure.cloned();
    }

    /// Polls every task once, in the order in which they were started. A run has a handful of them, so this costs less than
    /// a waker for each.
    pub(super) fn poll_tasks(&self, context: &mut Context<'_>) {
        let mut last = None;
        loop {
            let taken = {
                let mut state = self.lock();
                state
                    .tasks
                    .iter_mut()
                    .filter(|(number, _)| Some(**number) > last)
                    .find_map(|(number, entry)| Some((*number, entry.future.take()?)))
            };
            let Some((number, mut future)) = taken else { return };
            let finished = future.as_mut().poll(context).is_ready();
            let mut state = self.lock();
            if finished {
                let entry = state.tasks.remove(&number);
                drop(state);
                drop(entry);
            } else if let Some(entry) = state.tasks.get_mut(&number) {
                entry.future = Some(future);
            } else {
                // It was cancelled while it was polled.
                drop(state);
                drop(future);
            }
            last = Some(number);
        }
    }

    /// Handles what arrived, then the timers that are due, and collects what follows from it.
    ///
    /// The order matters after a sleep of the machine: data that arrived meanwhile moves the deadlines that it meets. When
    /// nothing is left to do, the waker is called as soon as something is. Timers up to `slept_until` are due whatever the
    /// clock says: it may have been set back.
    pub(super) fn advance(&self, waker: &Waker, slept_until: Option<Millis>) -> Progress {
        let now = self.now();
        self.change(|state, aftermath| {
            state.deadlines.observe(now);
            let mut handled = false;
            for input in std::mem::take(&mut state.posted) {
                // An input that nobody waits for any more, such as a late result, is dropped by the session.
                let _unexpected = state.session.handle(now, input);
                handled = true;
            }
            state.settle(aftermath);
            if let Some(until) = slept_until {
                state.deadlines.slept_until(until);
            }
            while let Some(timer) = state.deadlines.take_due() {
                let _unexpected = state.session.handle(now, Input::Timer { timer });
                state.settle(aftermath);
                handled = true;
            }
            let idle = state.session.status() == Status::Idle;
            let effects = std::mem::take(&mut state.effects);
            let events = std::mem::take(&mut state.events);
            let pending = !handled && effects.is_empty() && events.is_empty();
            state.waker = pending.then(|| waker.clone());
            Progress { effects, events, handled, over: idle, deadline: state.deadlines.next() }
        })
    }

    /// Takes what tells that something waits to be saved.
    pub(super) fn take_checkpoint_effects(&self) -> Vec<Effect> {
        let mut state = self.lock();
        let is_checkpoint = |effect: &mut Effect| matches!(effect, Effect::Checkpoint { .. });
        state.effects.extract_if(.., is_checkpoint).collect()
    }

    /// Takes what is left of a run that nobody reads: the effects to start, without its events.
    pub(super) fn take_leftovers(&self) -> Vec<Effect> {
        self.change(|state, _| {
            state.events.clear();
            std::mem::take(&mut state.effects)
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut State, &mut Aftermath) -> T) -> T {
        let mut aftermath = Aftermath::default();
        let outcome = change(&mut self.lock(), &mut aftermath);
        aftermath.take_effect();
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs while the lock is held, so a poisoned state is still a consistent one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// What has to be called once the lock is released.
#[derive(Default)]
struct Aftermath {
    cancelled: Vec<CancelToken>,
    dropped: Vec<Entry>,
    steered: Vec<(oneshot::Sender<bool>, bool)>,
    waker: Option<Waker>,
}

impl Aftermath {
    fn take_effect(self) {
        for token in self.cancelled {
            token.cancel();
        }
        drop(self.dropped);
        for (sender, delivered) in self.steered {
            // Nobody has to wait for it.
            let _gone = sender.send(delivered);
        }
        if let Some(waker) = self.waker {
            waker.wake();
        }
    }
}

struct State {
    session: Session,
    recorder: Option<Arc<dyn Recorder>>,
    cache: EncodedCache,
    /// Inputs of tasks and tools that the run has not handled.
    posted: Vec<Input>,
    tasks: OrderedMap<u64, Entry>,
    next_task: u64,
    deadlines: Deadlines,
    /// Effects that wait for the run to start them.
    effects: Vec<Effect>,
    /// Checkpoints that wait to be saved.
    checkpoints: Vec<(u64, Save)>,
    /// Why the last save failed.
    gap: Option<Error>,
    /// Whether checkpoints are being saved.
    saving: bool,
    events: Vec<Event>,
    /// Steered messages whose outcome somebody may wait for.
    steered: Vec<(MessageId, oneshot::Sender<bool>)>,
    waker: Option<Waker>,
    /// Grows by one with each run, so that controls of an older run reach nothing.
    run: u64,
    attached: bool,
}

struct Entry {
    key: TaskKey,
    cancel: CancelToken,
    /// Taken while it is polled.
    future: Option<Task>,
}

impl State {
    fn input(&mut self, now: Millis, input: Input, aftermath: &mut Aftermath) -> Result<(), InputError> {
        self.deadlines.observe(now);
        let outcome = self.session.handle(now, input);
        self.settle(aftermath);
        aftermath.waker = self.waker.take();
        outcome
    }

    /// Takes everything the session has to say. What stops something takes effect at once; what starts something waits
    /// for the run.
    fn settle(&mut self, aftermath: &mut Aftermath) {
        while let Some(effect) = self.session.next_effect() {
            match effect {
                Effect::CancelModel { call } => self.cancel_model(call, aftermath),
                Effect::CancelTool { call_id } => self.cancel_tool(&call_id, aftermath),
                Effect::SetTimer { timer, at } => self.deadlines.set(timer, at),
                Effect::ClearTimer { timer } => self.deadlines.clear(timer),
                Effect::Checkpoint { seq, .. } => {
                    if let Some(recorder) = &self.recorder {
                        self.checkpoints.push((seq, recorder.changes(&mut self.session)));
                    }
                    // Tells the run that something waits to be saved.
                    self.effects.push(Effect::Checkpoint { seq, save: Save::Append(String::new()) });
                }
                starting => self.effects.push(starting),
            }
        }
        while let Some(event) = self.session.poll_event() {
            match &event.kind {
                EventKind::SteerDelivered { id } => self.tell_steered(id, true, aftermath),
                EventKind::SteerDropped { id } => self.tell_steered(id, false, aftermath),
                _ => {}
            }
            self.events.push(event);
        }
        if self.session.status() == Status::Idle {
            self.stop_everything(aftermath);
        }
    }

    fn tell_steered(&mut self, id: &MessageId, delivered: bool, aftermath: &mut Aftermath) {
        if let Some(index) = self.steered.iter().position(|(steered, _)| steered == id) {
            aftermath.steered.push((self.steered.swap_remove(index).1, delivered));
        }
    }

    fn cancel_model(&mut self, call: ModelCallId, aftermath: &mut Aftermath) {
        self.effects.retain(
            |effect| !matches!(effect.innermost(), Effect::CallModel { call: waiting, .. } if *waiting == call),
        );
        let key = TaskKey::Model(call);
        for entry in self.tasks.extract_if(|entry| entry.key == key) {
            aftermath.cancelled.push(entry.cancel.clone());
            aftermath.dropped.push(entry);
        }
    }

    /// A tool keeps running after its token fired, since what it does to stop in good order is its own business.
    fn cancel_tool(&mut self, call_id: &CallId, aftermath: &mut Aftermath) {
        self.effects.retain(
            |effect| !matches!(effect.innermost(), Effect::CallTool { call_id: waiting, .. } | Effect::ClaimTool { call_id: waiting, .. } if waiting == call_id),
        );
        let key = TaskKey::Tool(call_id.clone());
        let running = self.tasks.values().filter(|entry| entry.key == key);
        aftermath.cancelled.extend(running.map(|entry| entry.cancel.clone()));
    }

    /// After the end of a run only its checkpoints are still of interest.
    fn stop_everything(&mut self, aftermath: &mut Aftermath) {
        self.deadlines.clear_all();
        self.effects.retain(|effect| matches!(effect, Effect::Checkpoint { .. }));
        for entry in std::mem::take(&mut self.tasks).into_values() {
            aftermath.cancelled.push(entry.cancel.clone());
            aftermath.dropped.push(entry);
        }
    }
}

/// The host's clock without the host's type, so that the driver is compiled once.
trait Clock: super::MaybeSend + super::MaybeSync {
    fn now(&self) -> Millis;
}

struct HostClock<H>(H);

impl<H: Host> Clock for HostClock<H> {
    fn now(&self) -> Millis {
        self.0.now()
    }
}
