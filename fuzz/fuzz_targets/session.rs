//! Any sequence of inputs, most of them answers to what is open: no panic, one `run-end` a run, one result a call, a refused
//! input changes nothing, and at any moment a restored copy goes on as the original would.
#![no_main]

use std::collections::HashSet;
use std::sync::Arc;

use crablet::agent::{
    Agent, Approval, Effect, EventKind, HookReply, Hooks, Input, Session, Status, ToolDefinition, ToolOutput,
};
use crablet::json::RawJson;
use crablet::model::{Body, Content, Model, ModelEvent, Part, StopReason};
use crablet::{Error, ErrorKind, Millis};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

#[derive(Arbitrary, Debug)]
struct Script {
    hooks: u8,
    has_store: bool,
    max_steps: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Prompt(String),
    Steer,
    FollowUp,
    Abort,
    /// Answers something that was asked: which, and how.
    Answer(u8, Answer),
    Wait(u16),
    /// The process dies, and another one goes on.
    Restore,
}

#[derive(Arbitrary, Debug)]
enum Answer {
    Text(String),
    Calls(Vec<(u8, String)>),
    /// A part of an answer, without its end.
    Part(String),
    Failed(u8),
    Output(String, bool),
    Changed(String),
}

const TOOLS: [&str; 5] = ["plain", "alone", "guarded", "client", "nobody"];

libfuzzer_sys::fuzz_target!(|script: Script| {
    let agent = agent(&script);
    let mut host = Host { session: Session::new(agent.clone(), 7), now: 1_000, open: Vec::new(), running: false, restored: false };
    for step in script.steps {
        host.step(step, &agent);
    }
    host.give(Input::Abort { reason: None });
    assert_eq!(host.session.status(), Status::Idle);
    assert!(!host.running, "a run has no end");
    check_history(&host.session);
});

struct Host {
    session: Session,
    now: u64,
    open: Vec<Effect>,
    /// Whether a run was begun and not ended, as events tell.
    running: bool,
    restored: bool,
}

impl Host {
    fn step(&mut self, step: Step, agent: &Arc<Agent>) {
        let text = |words: &str| vec![Content::Text(words.into())];
        match step {
            Step::Prompt(words) => self.give(Input::Prompt(text(&words))),
            Step::Steer => self.give(Input::Steer(text("wait"))),
            Step::FollowUp => self.give(Input::FollowUp(text("then"))),
            Step::Abort => self.give(Input::Abort { reason: None }),
            Step::Wait(milliseconds) => self.now += u64::from(milliseconds),
            Step::Answer(which, answer) => self.answer(which, answer),
            Step::Restore => {
                let saved = self.session.snapshot();
                self.session = Session::restore(&saved, agent.clone(), Millis(self.now)).expect("what was saved is read");
                self.open.clear();
                self.restored = true;
                self.drain();
            }
        }
    }

    fn answer(&mut self, which: u8, answer: Answer) {
        if self.open.is_empty() {
            return;
        }
        let effect = self.open.remove(usize::from(which) % self.open.len());
        match effect.innermost().clone() {
            Effect::CallModel { call, .. } => {
                let (events, ends) = model_events(&answer);
                self.give(Input::ModelEvents { call, events });
                match (answer, ends) {
                    (Answer::Failed(kind), _) => {
                        let kind = [ErrorKind::Overloaded, ErrorKind::Network, ErrorKind::Auth][usize::from(kind) % 3];
                        self.give(Input::ModelEnded { call, outcome: Err(Error::new(kind, "no")) });
                    }
                    (_, true) => self.give(Input::ModelEnded { call, outcome: Ok(()) }),
                    (_, false) => self.open.push(effect),
                }
            }
            Effect::ValidateInput { call_id, .. } => {
                let outcome = match answer {
                    Answer::Failed(_) => Err("no".to_owned()),
                    Answer::Changed(text) => Ok(RawJson::parse(text).ok()),
                    _ => Ok(None),
                };
                self.give(Input::InputValidated { call_id, outcome });
            }
            Effect::CallTool { call_id, .. } | Effect::ClaimTool { call_id, .. } => {
                let output = match answer {
                    Answer::Output(text, terminate) => ToolOutput { terminate, ..ToolOutput::text(text) },
                    Answer::Failed(_) => ToolOutput::error("no"),
                    _ => ToolOutput::default(),
                };
                self.give(Input::ToolEnded { call_id, output });
            }
            Effect::AskApproval { call_id, .. } => {
                let decision = match answer {
                    Answer::Failed(_) => Approval::Deny { reason: None },
                    _ => Approval::Allow,
                };
                self.give(Input::Approval { call_id, decision, input_hash: None });
            }
            Effect::AskHook { hook, .. } => {
                let reply = match answer {
                    Answer::Failed(0) => Ok(HookReply::Stop),
                    Answer::Failed(1) => Ok(HookReply::Ask),
                    Answer::Failed(_) => Err("it threw".to_owned()),
                    Answer::Changed(text) => Ok(RawJson::parse(text).map_or(HookReply::Continue, HookReply::ChangeInput)),
                    Answer::Output(text, _) => Ok(HookReply::ChangeResult(ToolOutput::text(text))),
                    Answer::Text(text) => Ok(HookReply::Deny(text)),
                    _ => Ok(HookReply::Continue),
                };
                self.give(Input::HookReplied { hook, reply });
            }
            Effect::Checkpoint { seq, .. } => match answer {
                Answer::Failed(_) => {
                    self.give(Input::CheckpointFailed { seq, error: Error::new(ErrorKind::Storage, "full") });
                }
                _ => self.give(Input::CheckpointSaved { seq }),
            },
            Effect::SetTimer { timer, at } => {
                self.now = self.now.max(at.0);
                self.give(Input::Timer { timer });
            }
            _ => {}
        }
    }

    fn give(&mut self, input: Input) {
        let before = self.session.snapshot();
        if self.session.handle(Millis(self.now), input).is_err() {
            assert_eq!(self.session.snapshot(), before, "a refused input changes nothing");
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(effect) = self.session.poll_effect() {
            self.open.push(effect);
        }
        while let Some(event) = self.session.poll_event() {
            match event.kind {
                // A run that was restored is told of anew.
                EventKind::RunStart => {
                    assert!(!self.running || self.restored);
                    self.restored = false;
                    self.running = true;
                }
                EventKind::RunEnd(_) => {
                    assert!(self.running);
                    self.running = false;
                }
                _ => assert!(self.running, "{:?} outside of a run", event.kind.name()),
            }
        }
    }
}

/// The events, and whether the answer is over with them.
fn model_events(answer: &Answer) -> (Vec<ModelEvent>, bool) {
    let stop = |reason| ModelEvent::Stop { reason, raw: None };
    match answer {
        Answer::Text(text) => (
            vec![
                ModelEvent::TextStart { block: 0 },
                ModelEvent::TextDelta { block: 0, text: text.clone() },
                ModelEvent::TextEnd { block: 0, replay: None },
                stop(StopReason::Stop),
            ],
            true,
        ),
        Answer::Calls(calls) => {
            let mut events = Vec::new();
            for (block, (kind, input)) in (0..).zip(calls) {
                let name = TOOLS[usize::from(*kind) % TOOLS.len()].to_owned();
                // Ids that come again are a provider's mistake that there is.
                events.push(ModelEvent::ToolInputStart { block, id: format!("c{}", kind / 5), name });
                events.push(ModelEvent::ToolInputDelta { block, json: input.clone() });
                events.push(ModelEvent::ToolInputEnd { block, replay: None });
            }
            events.push(stop(StopReason::ToolUse));
            (events, true)
        }
        Answer::Part(text) => {
            (vec![ModelEvent::TextStart { block: 0 }, ModelEvent::TextDelta { block: 0, text: text.clone() }], false)
        }
        _ => (Vec::new(), true),
    }
}

fn agent(script: &Script) -> Arc<Agent> {
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let tool = |name| ToolDefinition::new(name, "a tool", schema.clone());
    let tools = [
        tool(TOOLS[0]),
        ToolDefinition { sequential: true, timeout: Some(500), ..tool(TOOLS[1]) },
        ToolDefinition { needs_approval: true, ..tool(TOOLS[2]) },
        ToolDefinition { has_validator: true, client_side: true, ..tool(TOOLS[3]) },
    ];
    let has = |bit: u8| script.hooks & (1 << bit) != 0;
    let hooks = Hooks {
        before_tool_call: has(0),
        after_tool_call: has(1),
        prepare_step: has(2),
        prepare_context: has(3),
        stop_when: has(4),
        ..Hooks::default()
    };
    let mut agent = Agent { tools: tools.map(Arc::new).to_vec(), hooks, ..Agent::new(Model::function("f")) };
    agent.has_store = script.has_store;
    agent.policy.max_steps = u32::from(script.max_steps % 8) + 1;
    Arc::new(agent)
}

/// Each answer with calls is followed by one result for each, in their order, and no call id comes twice.
fn check_history(session: &Session) {
    let mut seen = HashSet::new();
    let mut expected = None;
    for message in session.history() {
        match &message.body {
            Body::Assistant(assistant) => {
                assert_eq!(expected, None);
                let calls: Vec<_> = assistant
                    .content
                    .iter()
                    .filter_map(|part| match part {
                        Part::ToolCall(call) => Some(call.call_id.clone()),
                        _ => None,
                    })
                    .collect();
                assert!(calls.iter().all(|call| seen.insert(call.clone())), "an id comes twice: {calls:?}");
                expected = Some(calls).filter(|calls| !calls.is_empty());
            }
            Body::Tool(tool) => {
                let results: Vec<_> = tool.results.iter().map(|result| result.call_id.clone()).collect();
                assert_eq!(expected.take(), Some(results));
            }
            _ => assert_eq!(expected, None),
        }
    }
    assert_eq!(expected, None);
}
