//! What happens in a run, rolled by dice.

use std::sync::Arc;

use crablet::agent::{Agent, Compaction, Hooks, OutputDefinition, Summarizer, ToolDefinition};
use crablet::json::RawJson;
use crablet::model::{Model, ModelEvent, OutputSchema, StopReason};

use crate::harness::{agent, call_block, stop, tool};

/// What the model, the tools and the people of one run do. Each is a function of what it is asked, so that it does the
/// same after a crash.
pub(crate) struct Script {
    pub(crate) seed: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) hooks: Hooks,
    pub(crate) places: u32,
    /// The most messages that the model takes, unless it gets them in a shorter form.
    pub(crate) window: Option<usize>,
    /// Whether the last answer shall be an object.
    pub(crate) wants_object: bool,
    /// Whether that object is also shown to a validator of the host.
    pub(crate) has_validator: bool,
    /// Whether other models stand in for one that fails.
    pub(crate) has_fallbacks: bool,
}

#[derive(Default)]
pub(crate) struct Step {
    pub(crate) failures: u32,
    /// Kinds of tools, which are their names.
    pub(crate) calls: Vec<&'static str>,
    pub(crate) steered: bool,
    pub(crate) followed_up: bool,
}

pub(crate) const KINDS: [&str; 9] =
    ["plain", "plain", "often", "alone", "guarded", "client", "checked", "hanging", "helper"];

/// The kinds of tools that a sub-agent has.
const NESTED_KINDS: [&str; 4] = ["plain", "often", "alone", "guarded"];

impl Script {
    pub(crate) fn random(seed: u64) -> Self {
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
        let window = (dice.roll(3) == 0).then_some(4);
        let (wants_object, has_validator) = (dice.roll(3) == 0, dice.roll(2) == 0);
        Self { seed, steps, hooks, places, window, wants_object, has_validator, has_fallbacks: dice.roll(3) == 0 }
    }

    pub(crate) fn agent(&self) -> Agent {
        let tools = vec![
            tool("plain"),
            ToolDefinition { repeatable: true, ..tool("often") },
            ToolDefinition { sequential: true, claimable: true, ..tool("alone") },
            ToolDefinition { needs_approval: true, ..tool("guarded") },
            ToolDefinition { client_side: true, ..tool("client") },
            ToolDefinition { has_validator: true, repeatable: true, ..tool("checked") },
            ToolDefinition { timeout: Some(1_000), ..tool("hanging") },
            ToolDefinition::sub_agent("helper", "A sub-agent of the test.", Arc::new(helper())),
        ];
        let mut agent = Agent { hooks: self.hooks, has_store: true, ..agent(tools) };
        agent.policy.max_concurrent_tools = self.places;
        if self.seed.is_multiple_of(2) {
            agent.policy.compaction = Some(Compaction { summarizer: Summarizer::MODEL, ..Compaction::default() });
        }
        if self.wants_object {
            let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
            let schema = OutputSchema::new("answer", RawJson::parse(schema).expect("it is JSON"));
            let mut output = OutputDefinition::new(schema);
            output.has_validator = self.has_validator;
            agent.output = Some(output);
        }
        if self.has_fallbacks {
            // As many as a script has failures.
            agent.fallbacks =
                (1..7).map(|number| Model { id: format!("other-{number}").into(), ..agent.model.clone() }).collect();
            agent.policy.max_attempts = 1;
        }
        agent
    }

    /// The first and the second half of the answer to a history with so many answers.
    pub(crate) fn answer(&self, number: usize) -> (Vec<ModelEvent>, Vec<ModelEvent>) {
        let calls = self.steps.get(number).map(|step| step.calls.as_slice()).unwrap_or_default();
        let is_object = self.wants_object && calls.is_empty() && number % 2 == 1;
        let text = if is_object {
            format!(r#"{{"n":{number}}}"#)
        } else {
            format!("answer {number}{}", " and more".repeat(60))
        };
        let first = vec![ModelEvent::TextStart { block: 0 }, ModelEvent::TextDelta { block: 0, text }];
        let mut second = vec![ModelEvent::TextEnd { block: 0, replay: None }];
        for (name, block) in calls.iter().zip(1..) {
            let input =
                if *name == "helper" { format!(r#"{{"prompt":"{TASK} {number}-{block}"}}"#) } else { "{}".to_owned() };
            second.extend(call_block(block, &format!("{name}-{number}-{block}"), name, &input));
        }
        second.extend(stop(if calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse }));
        (first, second)
    }
}

/// How the prompt of a sub-agent begins.
pub(crate) const TASK: &str = "task";

/// The agent that works on calls of `helper`.
fn helper() -> Agent {
    agent(vec![
        tool("plain"),
        ToolDefinition { repeatable: true, ..tool("often") },
        ToolDefinition { sequential: true, ..tool("alone") },
        ToolDefinition { needs_approval: true, ..tool("guarded") },
    ])
}

/// The answer of a sub-agent's model to a history with so many answers. Calls get new ids in every life, so the input says
/// which one it is.
pub(crate) fn nested_answer(task: &str, number: usize) -> (Vec<ModelEvent>, Vec<ModelEvent>) {
    let first = vec![
        ModelEvent::TextStart { block: 0 },
        ModelEvent::TextDelta { block: 0, text: format!("{task}, answer {number}") },
    ];
    let mut second = vec![ModelEvent::TextEnd { block: 0, replay: None }];
    let mut dice = Dice(task.bytes().fold(number as u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte)));
    let calls = if number < 2 { dice.roll(3) } else { 0 };
    for block in 1..=calls {
        let name = NESTED_KINDS[dice.roll(NESTED_KINDS.len() as u64) as usize];
        let input = format!(r#"{{"call":"{name} of {task}, {number}-{block}"}}"#);
        second.extend(call_block(block as u32, "", name, &input));
    }
    second.extend(stop(if calls == 0 { StopReason::Stop } else { StopReason::ToolUse }));
    (first, second)
}

/// Whether the tool of this call may run more than once for it.
pub(crate) fn may_repeat(call_id: &str) -> bool {
    ["often", "checked", "client"].iter().any(|name| call_id.starts_with(name))
}

/// SplitMix64: the same rolls for the same seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}
