//! The host of a run, and what survives when its process is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crablet::agent::{
    Approval, ContextEdit, Effect, Event, EventKind, HookQuestion, HookReply, Input, Save, Session, Status, TimerId,
    ToolOutput,
};
use crablet::json::{Object, RawJson};
use crablet::model::{Body, Content, ModelRequest, StopReason};
use crablet::{Error, ErrorKind, Millis};

use crate::harness::{content_in_short, in_short, innermost, stop, text, text_block};
use crate::script::{Dice, Script, TASK, nested_answer};

/// When a checkpoint is safe and when the host says so.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Saving {
    /// As the contract says.
    BeforeAcknowledging,
    /// What a machine without write-ahead amounts to: the start of tools is acknowledged but never saved.
    OnlyModelCalls,
}

/// Where a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KillPoint {
    EffectNotPerformed,
    PerformedNotReported,
    ReportedNotSaved,
    MidStream,
}

pub(crate) const KILL_POINTS: [KillPoint; 4] =
    [KillPoint::EffectNotPerformed, KillPoint::PerformedNotReported, KillPoint::ReportedNotSaved, KillPoint::MidStream];

/// The world outside the process: it survives a crash.
pub(crate) struct World<'script> {
    script: &'script Script,
    saving: Saving,
    kills_left: u32,
    kill_next: Option<(KillPoint, u64)>,
    dice: Dice,
    now: Millis,
    store: Option<Stored>,
    pub(crate) events: Vec<Event>,
    failures: Vec<u32>,
    pub(crate) performed: BTreeMap<String, u32>,
    pub(crate) killed: BTreeMap<KillPoint, u32>,
}

/// What is left when a run is over.
pub(crate) struct Aftermath {
    pub(crate) transcript: Vec<String>,
    pub(crate) interrupted: BTreeSet<String>,
    pub(crate) events: Vec<Event>,
    pub(crate) performed: BTreeMap<String, u32>,
    pub(crate) killed: BTreeMap<KillPoint, u32>,
}

impl Aftermath {
    /// The object that the run ended with.
    pub(crate) fn output(&self) -> Option<&RawJson> {
        self.events.iter().find_map(|event| match &event.kind {
            EventKind::RunEnd(end) => end.output.as_ref(),
            _ => None,
        })
    }
}

/// What is on the disk.
#[derive(Clone)]
struct Stored {
    text: String,
    /// How many events had been shown by then.
    seen: usize,
}

/// A process: all of it is gone when it is killed.
pub(crate) struct Process {
    session: Session,
    open: Vec<Open>,
    timers: Vec<(TimerId, Millis)>,
    /// What a store would hold if every checkpoint that was asked for were saved.
    written: String,
    /// What was acknowledged without being saved.
    unsaved: Option<Save>,
    /// The timers that were set with a model call, which a restored call sets anew.
    silence: Vec<TimerId>,
}

/// Something the host is at.
pub(crate) struct Open {
    effect: Effect,
    is_streaming: bool,
    /// How many events belong to the state that a checkpoint writes.
    seen: Option<usize>,
}

pub(crate) struct Killed;

impl<'script> World<'script> {
    pub(crate) fn new(script: &'script Script, kills: u32, saving: Saving) -> Self {
        Self {
            script,
            saving,
            kills_left: kills,
            kill_next: None,
            dice: Dice(script.seed ^ 0x5eed),
            now: Millis(1_000_000),
            store: None,
            events: Vec::new(),
            failures: script.steps.iter().map(|step| step.failures).collect(),
            performed: BTreeMap::new(),
            killed: BTreeMap::new(),
        }
    }

    pub(crate) fn run(mut self) -> Aftermath {
        loop {
            let mut process = self.start();
            if let Ok(()) = self.work(&mut process) {
                return self.look_back(&process.session);
            }
            self.kills_left -= 1;
            self.now = self.now.after(self.dice.roll(2_000));
        }
    }

    fn look_back(self, session: &Session) -> Aftermath {
        let mut interrupted = BTreeSet::new();
        for message in session.history() {
            if let Body::Tool(tool) = &message.body {
                let was =
                    tool.results.iter().filter(|result| content_in_short(&result.content).contains("interrupted"));
                interrupted.extend(was.map(|result| result.call_id.to_string()));
            }
        }
        Aftermath {
            transcript: session.history().iter().map(|message| in_short(message)).collect(),
            interrupted,
            events: self.events,
            performed: self.performed,
            killed: self.killed,
        }
    }

    fn start(&mut self) -> Process {
        self.kill_next = (self.kills_left > 0).then(|| {
            let point = KILL_POINTS[self.dice.roll(KILL_POINTS.len() as u64) as usize];
            (point, self.dice.roll(5))
        });
        let agent = Arc::new(self.script.agent());
        // Both ways to go on: adding to what is stored, or beginning it again.
        let restore = if self.dice.roll(2) == 0 { Session::restore_stored } else { Session::restore };
        let (session, seen) = match &self.store {
            Some(Stored { text, seen }) => (restore(text, agent, self.now).unwrap(), *seen),
            None => {
                let mut session = Session::new(agent, self.script.seed);
                session.handle(self.now, Input::Prompt(text("go"))).unwrap();
                (session, 0)
            }
        };
        // What was shown after the saved moment is shown again.
        self.events.truncate(seen);
        let written = self.store.as_ref().map(|stored| stored.text.clone()).unwrap_or_default();
        Process { written, ..Process::new(session) }
    }

    /// Works in a random order until the run is over.
    fn work(&mut self, process: &mut Process) -> Result<(), Killed> {
        for _ in 0..10_000 {
            process.drain(&mut self.events);
            if self.dice.roll(3) == 0 {
                self.compare_with_a_restored_copy(process);
            }
            if process.session.status() == Status::Idle && process.open.is_empty() {
                return Ok(());
            }
            let workable: Vec<usize> = (0..process.open.len()).filter(|index| !process.open[*index].hangs()).collect();
            if workable.is_empty() {
                let index = (0..process.timers.len()).min_by_key(|index| process.timers[*index].1);
                let (timer, at) = process.timers.remove(index.expect("the run hangs"));
                self.now = self.now.max(at);
                self.give(process, Input::Timer { timer });
            } else {
                let index = workable[self.dice.roll(workable.len() as u64) as usize];
                self.perform(process, index)?;
            }
        }
        panic!("script {}: the run does not end", self.script.seed)
    }

    fn perform(&mut self, process: &mut Process, index: usize) -> Result<(), Killed> {
        self.pass(KillPoint::EffectNotPerformed)?;
        // Checkpoints are saved in their order.
        let is_checkpoint = |open: &Open| matches!(open.effect, Effect::Checkpoint { .. });
        let index = if is_checkpoint(&process.open[index]) {
            process.open.iter().position(is_checkpoint).unwrap_or(index)
        } else {
            index
        };
        let Open { effect, is_streaming, seen } = process.open.remove(index);
        match effect {
            Effect::CallModel { call, ref request } => {
                if is_summary(request) {
                    let events = [text_block(0, "messages in short"), stop(StopReason::Stop)].concat();
                    self.give(process, Input::ModelEvents { call, events });
                    self.pass(KillPoint::MidStream)?;
                    self.give(process, Input::ModelEnded { call, outcome: Ok(()) });
                    return Ok(());
                }
                let task = task_of(request);
                let history = if task.is_some() { &request.messages[..] } else { process.session.history() };
                let number = history.iter().filter(|message| matches!(message.body, Body::Assistant(_))).count();
                let (first, second) = match &task {
                    Some(task) => nested_answer(task, number),
                    None => self.script.answer(number),
                };
                if !is_streaming {
                    self.give(process, Input::ModelEvents { call, events: first });
                    if task.is_none() {
                        self.speak_up(process, number);
                    }
                    process.open.push(Open { effect, is_streaming: true, seen });
                    return self.pass(KillPoint::MidStream);
                }
                let is_short = request.messages.iter().any(|message| in_short(message).contains("messages in short"));
                let is_too_long = self.script.window.is_some_and(|window| request.messages.len() > window) && !is_short;
                let outcome = match self.failures.get_mut(number) {
                    Some(left) if *left > 0 && task.is_none() => {
                        *left -= 1;
                        Err(Error::new(ErrorKind::Overloaded, "busy"))
                    }
                    _ if is_too_long && task.is_none() => Err(Error::new(ErrorKind::ContextOverflow, "too long")),
                    _ => {
                        self.give(process, Input::ModelEvents { call, events: second });
                        Ok(())
                    }
                };
                self.give(process, Input::ModelEnded { call, outcome });
            }
            Effect::CallTool { call_id, tool, input, .. } => {
                let name = Object::parse(input.as_str()).unwrap().string("call");
                *self.performed.entry(name.unwrap_or_else(|| call_id.to_string())).or_default() += 1;
                self.pass(KillPoint::PerformedNotReported)?;
                let output = ToolOutput::text(format!("{} is done", tool.name));
                self.give(process, Input::ToolEnded { call_id, output });
                self.pass(KillPoint::ReportedNotSaved)?;
            }
            Effect::ValidateInput { call_id, .. } => {
                self.give(process, Input::InputValidated { call_id, outcome: Ok(None) });
            }
            Effect::AskApproval { call_id, input, .. } => {
                let allowed = input.as_str().len() % 2 == 0 && call_id.as_str().len() % 2 == 0;
                let decision = if allowed { Approval::Allow } else { Approval::Deny { reason: None } };
                self.give(process, Input::Approval { call_id, decision, input_hash: None });
            }
            Effect::AskHook { hook, question, .. } => {
                let reply = match question {
                    HookQuestion::BeforeToolCall { call_id, .. } if call_id.as_str().ends_with('2') => {
                        Ok(HookReply::Deny("not the second".into()))
                    }
                    HookQuestion::AfterToolCall { result, .. } if result.tool_name == "often" => {
                        Ok(HookReply::ChangeResult(ToolOutput::error("changed")))
                    }
                    HookQuestion::PrepareContext { request, .. } => {
                        let keep = request.messages.iter().map(|message| message.id.clone());
                        Ok(HookReply::EditContext(vec![ContextEdit::Keep(keep.collect())]))
                    }
                    _ => Ok(HookReply::Continue),
                };
                self.give(process, Input::HookReplied { hook, reply });
            }
            Effect::Checkpoint { seq, save } => {
                let save = process.unsaved.take().map_or(save.clone(), |unsaved| unsaved.then(save));
                // Only the saving before a model call leaves no tool in the phase of the run.
                let last_line = save.text().lines().last().unwrap_or_default();
                if self.saving == Saving::BeforeAcknowledging || !last_line.contains(r#""type":"tools""#) {
                    let before = self.store.take().map(|stored| stored.text).unwrap_or_default();
                    self.store = Some(Stored { text: added(before, &save), seen: seen.unwrap_or_default() });
                } else {
                    process.unsaved = Some(save);
                }
                self.give(process, Input::CheckpointSaved { seq });
            }
            Effect::ClaimTool { call_id, .. } => self.give(process, Input::ToolNotClaimed { call_id }),
            Effect::SetTimer { .. }
            | Effect::ClearTimer { .. }
            | Effect::CancelModel { .. }
            | Effect::CancelTool { .. }
            | Effect::OfSubAgent { .. } => {}
        }
        Ok(())
    }

    /// The user says again what the process may have forgotten.
    fn speak_up(&self, process: &mut Process, number: usize) {
        let Some(step) = self.script.steps.get(number) else { return };
        let mut say = |words: String, input: fn(Vec<Content>) -> Input, wanted: bool| {
            let content = text(&words);
            let queued =
                process.session.steers().chain(process.session.follow_ups()).any(|queued| queued.content == content);
            if wanted
                && !queued
                && !process.session.history().iter().any(|message| in_short(message) == format!("user({words})"))
            {
                process.session.handle(self.now, input(content)).unwrap();
            }
        };
        say(format!("steer {number}"), Input::Steer, step.steered);
        say(format!("follow {number}"), Input::FollowUp, step.followed_up);
    }

    fn give(&self, process: &mut Process, input: Input) {
        process.session.handle(self.now, input).unwrap();
    }

    fn pass(&mut self, point: KillPoint) -> Result<(), Killed> {
        match &mut self.kill_next {
            Some((next, 0)) if *next == point => {
                *self.killed.entry(point).or_default() += 1;
                self.kill_next = None;
                Err(Killed)
            }
            Some((next, left)) if *next == point => {
                *left -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A session restored at this moment asks for what this one is waiting for.
    fn compare_with_a_restored_copy(&self, process: &Process) {
        let text = process.session.snapshot();
        let session = Session::restore(&text, process.session.agent().clone(), self.now).unwrap();
        let mut copy = Process::new(session);
        copy.drain(&mut Vec::new());
        let (ours, theirs) = (process.waits_for(), copy.waits_for());
        let seed = self.script.seed;
        if process.open.iter().any(Open::is_lost_in_a_crash) {
            assert!(ours.is_subset(&theirs), "script {seed}: {ours:?} became {theirs:?}");
        } else {
            assert_eq!(ours, theirs, "script {seed}");
        }
    }
}

/// Whether the model is asked to say in short what is left out.
fn is_summary(request: &ModelRequest) -> bool {
    request.messages.first().is_some_and(|message| in_short(message).starts_with("user(Say in short"))
}

/// The task of the sub-agent whose model is called.
fn task_of(request: &ModelRequest) -> Option<String> {
    match request.messages.first().map(|message| &message.body) {
        Some(Body::User(user)) => Some(content_in_short(&user.content)).filter(|text| text.starts_with(TASK)),
        _ => None,
    }
}

/// What a store holds after this save.
fn added(stored: String, save: &Save) -> String {
    match save {
        Save::Append(lines) => stored + lines,
        Save::Replace(lines) => lines.clone(),
    }
}

impl Process {
    fn new(session: Session) -> Self {
        Self {
            session,
            open: Vec::new(),
            timers: Vec::new(),
            written: String::new(),
            unsaved: None,
            silence: Vec::new(),
        }
    }

    /// The lines that were added say the same as the whole.
    fn check_what_is_written(&self) {
        let restored = |text: &str| {
            Session::restore(text, self.session.agent().clone(), Millis(0)).map(|session| session.snapshot())
        };
        assert_eq!(restored(&self.written).unwrap(), restored(&self.session.snapshot()).unwrap());
    }

    fn drain(&mut self, events: &mut Vec<Event>) {
        let mut calls_model = false;
        while let Some(effect) = self.session.poll_effect() {
            let effect = innermost(effect);
            match &effect {
                Effect::SetTimer { timer, at } => {
                    self.timers.retain(|(id, _)| id != timer);
                    self.timers.push((*timer, *at));
                    if calls_model {
                        self.silence.push(*timer);
                    }
                }
                Effect::ClearTimer { timer } => self.timers.retain(|(id, _)| id != timer),
                Effect::CancelTool { call_id } => {
                    self.open.retain(
                        |open| !matches!(&open.effect, Effect::CallTool { call_id: own, .. } if own == call_id),
                    );
                }
                Effect::Checkpoint { save, .. } => {
                    self.written = added(std::mem::take(&mut self.written), save);
                    self.check_what_is_written();
                    self.open.push(Open::new(&effect));
                }
                Effect::CancelModel { .. } => panic!("nothing is given up in these scripts"),
                _ => self.open.push(Open::new(&effect)),
            }
            calls_model = matches!(effect, Effect::CallModel { .. });
        }
        while let Some(event) = self.session.poll_event() {
            events.push(event);
        }
        for open in &mut self.open {
            open.seen.get_or_insert(events.len());
        }
    }

    /// What the session waits for, up to the attempt of the model call, and without what is lost in a crash.
    fn waits_for(&self) -> BTreeSet<String> {
        let effects = self.open.iter().filter(|open| !open.is_lost_in_a_crash()).map(|open| match &open.effect {
            // What the first of the hooks before a model call said is asked for again.
            Effect::CallModel { request, .. }
            | Effect::AskHook {
                question: HookQuestion::PrepareStep { request, .. } | HookQuestion::PrepareContext { request, .. },
                ..
            } => format!("model or its hooks {}", request.messages.len()),
            Effect::CallTool { call_id, tool, .. } | Effect::ValidateInput { call_id, tool, .. }
                if tool.has_validator =>
            {
                format!("validator or tool {call_id}")
            }
            Effect::CallTool { call_id, .. } => format!("tool {call_id}"),
            Effect::AskApproval { call_id, .. } => format!("approval {call_id}"),
            Effect::AskHook { hook, .. } => format!("hook {}", hook.0),
            other => format!("{other:?}"),
        });
        let lost = self.open.iter().any(Open::is_lost_in_a_crash);
        let timers = self.timers.iter().filter(|(id, _)| !self.silence.contains(id) && !lost);
        effects.chain(timers.map(|(id, at)| format!("timer {} at {}", id.0, at.0))).collect()
    }
}

impl Open {
    fn new(effect: &Effect) -> Self {
        Self { effect: effect.clone(), is_streaming: false, seen: None }
    }

    /// A tool that never answers, once it was performed, or before.
    fn hangs(&self) -> bool {
        matches!(&self.effect, Effect::CallTool { tool, .. } if tool.name == "hanging")
    }

    /// What a restored session does not ask for again: a tool that may have run, and the saving itself.
    fn is_lost_in_a_crash(&self) -> bool {
        match &self.effect {
            Effect::CallTool { tool, .. } => !tool.repeatable && !tool.client_side,
            Effect::Checkpoint { .. } => true,
            _ => false,
        }
    }
}
