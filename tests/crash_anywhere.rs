//! Random runs whose process is killed anywhere. Each restore goes through the saved text into a fresh machine. In the
//! end the transcript is that of the run without a crash, no tool that may run once ran twice, and there is exactly one
//! `run-end`.
//!
//! `CRABLET_CRASH_SCRIPTS` sets how many scripts are run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "session/harness.rs"]
mod harness;
#[path = "session/rebuild.rs"]
mod rebuild;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crablet::agent::{
    Agent, Approval, ContextItem, Effect, Event, EventKind, HookQuestion, HookReply, Hooks, Input, Session, Status,
    TimerId, ToolDefinition, ToolOutput,
};
use crablet::model::{Body, Content, ModelEvent, StopReason};
use crablet::{Error, ErrorKind, Millis};
use harness::{agent, call_block, content_in_short, in_short, stop, text, tool};

const DEFAULT_SCRIPTS: u64 = 1_000;

#[test]
fn a_run_that_is_killed_anywhere_ends_as_if_nothing_had_happened() {
    let mut counts = Counts::default();
    let scripts = std::env::var("CRABLET_CRASH_SCRIPTS").ok().and_then(|n| n.parse().ok()).unwrap_or(DEFAULT_SCRIPTS);
    for seed in 0..scripts {
        let script = Script::random(seed);
        let undisturbed = World::new(&script, 0, Saving::BeforeAcknowledging).run();
        let crashed = World::new(&script, 3, Saving::BeforeAcknowledging).run();
        counts.add(&script, &crashed);

        for (call_id, times) in &crashed.performed {
            assert!(*times <= 1 || may_repeat(call_id), "script {seed}: {call_id} was performed {times} times");
        }
        let interrupted = &crashed.interrupted;
        assert_eq!(
            without(&crashed.transcript, interrupted),
            without(&undisturbed.transcript, interrupted),
            "script {seed}"
        );
        assert_eq!(rebuild::transcript(&crashed.events), crashed.transcript, "script {seed}: rebuilt from events");
        let ends = crashed.events.iter().filter(|event| matches!(event.kind, EventKind::RunEnd(_))).count();
        assert_eq!(ends, 1, "script {seed}: exactly one run-end");
        assert!(
            matches!(crashed.events.last().unwrap().kind, EventKind::RunEnd(_)),
            "script {seed}: and it is the last"
        );
    }
    println!("{scripts} scripts\n{counts}");
    counts.demand(if scripts >= DEFAULT_SCRIPTS { 100 } else { 0 });
}

/// The promise needs the write-ahead: a host that acknowledges a checkpoint before it is safe runs tools twice.
#[test]
fn without_the_write_ahead_tools_run_twice() {
    let twice = (0..300).filter(|seed| {
        let script = Script::random(*seed);
        let crashed = World::new(&script, 3, Saving::OnlyModelCalls).run();
        crashed.performed.iter().any(|(call_id, times)| *times > 1 && !may_repeat(call_id))
    });
    assert!(twice.count() > 0, "the test above would not notice a missing write-ahead");
}

/// When a checkpoint is safe and when the host says so.
#[derive(Clone, Copy, PartialEq)]
enum Saving {
    /// As the contract says.
    BeforeAcknowledging,
    /// What a machine without write-ahead amounts to: the start of tools is acknowledged but never saved.
    OnlyModelCalls,
}

/// Where a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KillPoint {
    EffectNotPerformed,
    PerformedNotReported,
    ReportedNotSaved,
    MidStream,
}

const KILL_POINTS: [KillPoint; 4] =
    [KillPoint::EffectNotPerformed, KillPoint::PerformedNotReported, KillPoint::ReportedNotSaved, KillPoint::MidStream];

/// What the model, the tools and the people of one run do. Each is a function of what it is asked, so that it does the
/// same after a crash.
struct Script {
    seed: u64,
    steps: Vec<Step>,
    hooks: Hooks,
    places: u32,
    /// The most messages that the model takes, unless it gets them in a shorter form.
    window: Option<usize>,
}

#[derive(Default)]
struct Step {
    failures: u32,
    /// Kinds of tools, which are their names.
    calls: Vec<&'static str>,
    steered: bool,
    followed_up: bool,
}

const KINDS: [&str; 8] = ["plain", "plain", "often", "alone", "guarded", "client", "checked", "hanging"];

impl Script {
    fn random(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let steps = (0..1 + dice.roll(3)).map(|_| Step {
            failures: if dice.roll(4) == 0 { 1 + dice.roll(2) as u32 } else { 0 },
            calls: (0..dice.roll(4)).map(|_| KINDS[dice.roll(KINDS.len() as u64) as usize]).collect(),
            steered: dice.roll(4) == 0,
            followed_up: dice.roll(6) == 0,
        });
        let steps = steps.collect();
        let hooks = Hooks {
            before_tool_call: dice.roll(3) == 0,
            after_tool_call: dice.roll(3) == 0,
            prepare_step: dice.roll(4) == 0,
            prepare_context: dice.roll(4) == 0,
            ..Hooks::default()
        };
        let places = 1 + dice.roll(3) as u32;
        Self { seed, steps, hooks, places, window: (dice.roll(3) == 0).then_some(4) }
    }

    fn agent(&self) -> Agent {
        let tools = vec![
            tool("plain"),
            ToolDefinition { repeatable: true, ..tool("often") },
            ToolDefinition { sequential: true, ..tool("alone") },
            ToolDefinition { needs_approval: true, ..tool("guarded") },
            ToolDefinition { client_side: true, ..tool("client") },
            ToolDefinition { has_validator: true, repeatable: true, ..tool("checked") },
            ToolDefinition { timeout: Some(1_000), ..tool("hanging") },
        ];
        let mut agent = Agent { hooks: self.hooks, has_store: true, ..agent(tools) };
        agent.policy.max_concurrent_tools = self.places;
        agent
    }

    /// The first and the second half of the answer to a history with so many answers.
    fn answer(&self, number: usize) -> (Vec<ModelEvent>, Vec<ModelEvent>) {
        let first = vec![
            ModelEvent::TextStart { block: 0 },
            ModelEvent::TextDelta { block: 0, text: format!("answer {number}") },
        ];
        let mut second = vec![ModelEvent::TextEnd { block: 0, replay: None }];
        let calls = self.steps.get(number).map(|step| step.calls.as_slice()).unwrap_or_default();
        for (name, block) in calls.iter().zip(1..) {
            second.extend(call_block(block, &format!("{name}-{number}-{block}"), name, "{}"));
        }
        second.extend(stop(if calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse }));
        (first, second)
    }
}

/// The world outside the process: it survives a crash.
struct World<'script> {
    script: &'script Script,
    saving: Saving,
    kills_left: u32,
    kill_next: Option<(KillPoint, u64)>,
    dice: Dice,
    now: Millis,
    store: Option<(String, usize)>,
    events: Vec<Event>,
    failures: Vec<u32>,
    performed: BTreeMap<String, u32>,
    killed: BTreeMap<KillPoint, u32>,
}

/// What is left when a run is over.
struct Aftermath {
    transcript: Vec<String>,
    interrupted: BTreeSet<String>,
    events: Vec<Event>,
    performed: BTreeMap<String, u32>,
    killed: BTreeMap<KillPoint, u32>,
}

/// A process: all of it is gone when it is killed.
struct Process {
    session: Session,
    open: Vec<Open>,
    timers: Vec<(TimerId, Millis)>,
    /// The timer that was set with the last model call, which a restored call sets anew.
    silence: Option<TimerId>,
}

/// Something the host is at.
struct Open {
    effect: Effect,
    is_streaming: bool,
}

struct Killed;

impl<'script> World<'script> {
    fn new(script: &'script Script, kills: u32, saving: Saving) -> Self {
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

    fn run(mut self) -> Aftermath {
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
        let (session, seen) = match &self.store {
            Some((text, seen)) => (Session::restore(text, agent, self.now).unwrap(), *seen),
            None => {
                let mut session = Session::new(agent, self.script.seed);
                session.handle(self.now, Input::Prompt(text("go"))).unwrap();
                (session, 0)
            }
        };
        // What was shown after the saved moment is shown again.
        self.events.truncate(seen);
        Process { session, open: Vec::new(), timers: Vec::new(), silence: None }
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
        let Open { effect, is_streaming } = process.open.remove(index);
        match effect {
            Effect::CallModel { call, ref request } => {
                let history = process.session.history();
                let number = history.iter().filter(|message| matches!(message.body, Body::Assistant(_))).count();
                let (first, second) = self.script.answer(number);
                if !is_streaming {
                    self.give(process, Input::ModelEvents { call, events: first });
                    self.speak_up(process, number);
                    process.open.push(Open { effect, is_streaming: true });
                    return self.pass(KillPoint::MidStream);
                }
                let is_short = request.messages.iter().any(|message| in_short(message).contains("messages in short"));
                let is_too_long = self.script.window.is_some_and(|window| request.messages.len() > window) && !is_short;
                let outcome = match self.failures.get_mut(number) {
                    Some(left) if *left > 0 => {
                        *left -= 1;
                        Err(Error::new(ErrorKind::Overloaded, "busy"))
                    }
                    _ if is_too_long => Err(Error::new(ErrorKind::ContextOverflow, "too long")),
                    _ => {
                        self.give(process, Input::ModelEvents { call, events: second });
                        Ok(())
                    }
                };
                self.give(process, Input::ModelEnded { call, outcome });
            }
            Effect::CallTool { call_id, tool, .. } => {
                *self.performed.entry(call_id.to_string()).or_default() += 1;
                self.pass(KillPoint::PerformedNotReported)?;
                let output = ToolOutput::text(format!("{} is done", tool.name));
                self.give(process, Input::ToolEnded { call_id, output });
                self.pass(KillPoint::ReportedNotSaved)?;
            }
            Effect::ValidateInput { call_id, .. } => {
                self.give(process, Input::InputValidated { call_id, outcome: Ok(None) });
            }
            Effect::AskApproval { call_id, .. } => {
                let allowed = call_id.as_str().len() % 2 == 0;
                let decision = if allowed { Approval::Allow } else { Approval::Deny { reason: None } };
                self.give(process, Input::Approval { call_id, decision });
            }
            Effect::AskHook { hook, question } => {
                let reply = match question {
                    HookQuestion::BeforeToolCall { call_id, .. } if call_id.as_str().ends_with('2') => {
                        Ok(HookReply::Deny("not the second".into()))
                    }
                    HookQuestion::AfterToolCall { result, .. } if result.tool_name == "often" => {
                        Ok(HookReply::ChangeResult(ToolOutput::error("changed")))
                    }
                    HookQuestion::PrepareContext { request, .. } => {
                        let keep = request.messages.iter().map(|message| ContextItem::Keep(message.id.clone()));
                        Ok(HookReply::ChangeContext(keep.collect()))
                    }
                    _ => Ok(HookReply::Continue),
                };
                self.give(process, Input::HookReplied { hook, reply });
            }
            Effect::Checkpoint { seq } => {
                let text = process.session.snapshot();
                // Only the saving before a model call leaves no tool in the phase of the run.
                if self.saving == Saving::BeforeAcknowledging || !text.contains(r#""type":"tools""#) {
                    self.store = Some((text, self.events.len()));
                }
                self.give(process, Input::CheckpointSaved { seq });
            }
            Effect::SetTimer { .. }
            | Effect::ClearTimer { .. }
            | Effect::CancelModel { .. }
            | Effect::CancelTool { .. } => {}
        }
        Ok(())
    }

    /// The user says again what the process may have forgotten.
    fn speak_up(&self, process: &mut Process, number: usize) {
        let Some(step) = self.script.steps.get(number) else { return };
        let mut say = |words: String, input: fn(Vec<Content>) -> Input, wanted: bool| {
            let content = text(&words);
            let queued = process.session.steers().chain(process.session.follow_ups()).any(|queued| queued == content);
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
        let mut copy = Process { session, open: Vec::new(), timers: Vec::new(), silence: None };
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

impl Process {
    fn drain(&mut self, events: &mut Vec<Event>) {
        let mut calls_model = false;
        while let Some(effect) = self.session.poll_effect() {
            match &effect {
                Effect::SetTimer { timer, at } => {
                    self.timers.retain(|(id, _)| id != timer);
                    self.timers.push((*timer, *at));
                    if calls_model {
                        self.silence = Some(*timer);
                    }
                }
                Effect::ClearTimer { timer } => self.timers.retain(|(id, _)| id != timer),
                Effect::CancelTool { call_id } => {
                    self.open.retain(
                        |open| !matches!(&open.effect, Effect::CallTool { call_id: own, .. } if own == call_id),
                    );
                }
                Effect::CancelModel { .. } => panic!("nothing is given up in these scripts"),
                _ => self.open.push(Open { effect: effect.clone(), is_streaming: false }),
            }
            calls_model = matches!(effect, Effect::CallModel { .. });
        }
        while let Some(event) = self.session.poll_event() {
            events.push(event);
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
        let timers = self.timers.iter().filter(|(id, _)| Some(*id) != self.silence && !lost);
        effects.chain(timers.map(|(id, at)| format!("timer {} at {}", id.0, at.0))).collect()
    }
}

impl Open {
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

/// How often each feature and each kill point was met.
#[derive(Default)]
struct Counts {
    features: BTreeMap<&'static str, u32>,
    kill_points: BTreeMap<KillPoint, u32>,
}

impl Counts {
    fn add(&mut self, script: &Script, crashed: &Aftermath) {
        let calls = |name: &str| script.steps.iter().any(|step| step.calls.contains(&name));
        let met = [
            ("parallel", script.steps.iter().any(|step| step.calls.len() > 1)),
            ("sequential", calls("alone")),
            ("approvals", calls("guarded")),
            ("client-side", calls("client")),
            ("validators", calls("checked")),
            ("repeatable", calls("often")),
            ("timers", calls("hanging")),
            ("hooks of tools", script.hooks.before_tool_call || script.hooks.after_tool_call),
            ("hooks of steps", script.hooks.prepare_step || script.hooks.prepare_context),
            ("retry", script.steps.iter().any(|step| step.failures > 0)),
            ("compaction", crashed.events.iter().any(|event| matches!(event.kind, EventKind::CompactionEnd { .. }))),
            ("steering", script.steps.iter().any(|step| step.steered)),
            ("follow-ups", script.steps.iter().any(|step| step.followed_up)),
            ("interrupted tools", !crashed.interrupted.is_empty()),
        ];
        for (feature, is_met) in met {
            *self.features.entry(feature).or_default() += u32::from(is_met);
        }
        for (point, times) in &crashed.killed {
            *self.kill_points.entry(*point).or_default() += times;
        }
    }

    fn demand(&self, least: u32) {
        for (feature, times) in &self.features {
            assert!(*times >= least, "{feature} was met only {times} times");
        }
        for point in KILL_POINTS {
            assert!(self.kill_points.get(&point).is_some_and(|times| *times >= least), "{point:?} was met too rarely");
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (feature, times) in &self.features {
            writeln!(formatter, "  {feature}: {times} scripts")?;
        }
        for (point, times) in &self.kill_points {
            writeln!(formatter, "  killed at {point:?}: {times} times")?;
        }
        Ok(())
    }
}

fn may_repeat(call_id: &str) -> bool {
    ["often", "checked", "client"].iter().any(|name| call_id.starts_with(name))
}

/// The transcript with the outcome of these calls left open.
fn without(transcript: &[String], call_ids: &BTreeSet<String>) -> Vec<String> {
    let mut transcript = transcript.to_vec();
    for line in &mut transcript {
        for call_id in call_ids {
            for outcome in ["ok", "error"] {
                *line = line.replace(&format!("{call_id} {outcome}"), &format!("{call_id} ?"));
            }
        }
    }
    transcript
}

/// SplitMix64: the same rolls for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}
