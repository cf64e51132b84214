//! What a turn costs does not grow with the conversation: the work of the machine, the bytes of a checkpoint, the messages that
//! are encoded. What must grow is counted by itself: the body of the request, which holds the conversation, and the list of
//! messages that it is made of, a pointer each.
#![cfg(feature = "anthropic")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::alloc::System;
use std::sync::Arc;

use crablet::Millis;
use crablet::agent::{Agent, Effect, Input, Save, Session, ToolDefinition, ToolOutput};
use crablet::json::RawJson;
use crablet::model::{Access, Content, EncodedCache, Message, ModelEvent, ModelRequest, StopReason, anthropic};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What one turn cost: a prompt, an answer with a tool call, the result, and the final answer.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Allocations of the machine. Each step of its work makes some, so that they count its operations.
    operations: usize,
    /// Bytes that the machine allocated, without the lists of messages.
    bytes: usize,
    /// Bytes of the lists of messages of the requests.
    lists: usize,
    /// Bytes of checkpoints that add to what is stored.
    appended: usize,
    /// Bytes of checkpoints that are the whole text.
    replaced: usize,
    /// Bytes that are encoded anew, as the growth of the cache.
    encoded: usize,
    /// Bytes of the requests' bodies.
    bodies: usize,
}

struct Host {
    session: Session,
    cache: EncodedCache,
    /// Whether bodies are made. All of them together would be the square of the conversation.
    encodes: bool,
    cost: Cost,
}

impl Host {
    fn give(&mut self, input: Input) -> Vec<Effect> {
        let region = Region::new(ALLOCATOR);
        self.session.handle(Millis(0), input).unwrap();
        let mut effects = Vec::new();
        while let Some(effect) = self.session.poll_effect() {
            effects.push(effect);
        }
        while self.session.poll_event().is_some() {}
        let stats = region.change();
        self.cost.operations += stats.allocations + stats.reallocations;
        self.cost.bytes += stats.bytes_allocated;
        effects
    }

    /// Performs effects until a model call or a tool waits for its answer.
    fn work(&mut self, input: Input) -> Vec<Effect> {
        let mut waiting = Vec::new();
        let mut effects = self.give(input);
        while !effects.is_empty() {
            let mut next = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Checkpoint { seq, save } => {
                        match save {
                            Save::Append(lines) => self.cost.appended += lines.len(),
                            Save::Replace(lines) => self.cost.replaced += lines.len(),
                        }
                        next.extend(self.give(Input::CheckpointSaved { seq }));
                    }
                    Effect::CallModel { call, request } => {
                        let list = request.messages.len() * size_of::<Arc<Message>>();
                        self.cost.lists += list;
                        self.cost.bytes -= list;
                        if self.encodes {
                            self.encode(&request);
                        }
                        waiting.push(Effect::CallModel { call, request });
                    }
                    effect @ Effect::CallTool { .. } => waiting.push(effect),
                    _ => {}
                }
            }
            effects = next;
        }
        waiting
    }

    fn encode(&mut self, request: &ModelRequest) {
        let Access::Http { wire, .. } = &request.model.access else { return };
        let before = self.cache.bytes();
        let body = wire.encode(request, &mut self.cache).unwrap().body;
        self.cost.encoded += self.cache.bytes() - before;
        self.cost.bodies += body.len();
    }

    fn turn(&mut self, number: usize) -> Cost {
        self.cost = Cost::default();
        let mut waiting = self.work(Input::Prompt(vec![Content::Text(format!("question {number:06}"))]));
        while let Some(effect) = waiting.pop() {
            waiting = match effect {
                Effect::CallModel { call, request } => {
                    let asks = !matches!(&request.messages.last().unwrap().body, crablet::model::Body::Tool(_));
                    let events = if asks { call_of(number) } else { answer_of(number) };
                    drop(request);
                    self.give(Input::ModelEvents { call, events });
                    self.work(Input::ModelEnded { call, outcome: Ok(()) })
                }
                Effect::CallTool { call_id, .. } => {
                    self.work(Input::ToolEnded { call_id, output: ToolOutput::text("found it") })
                }
                _ => Vec::new(),
            };
        }
        self.cost
    }
}

fn call_of(number: usize) -> Vec<ModelEvent> {
    vec![
        ModelEvent::ToolInputStart { block: 0, id: format!("call_{number:06}"), name: "search".into() },
        ModelEvent::ToolInputDelta { block: 0, json: r#"{"query":"it"}"#.into() },
        ModelEvent::ToolInputEnd { block: 0, replay: None },
        ModelEvent::Stop { reason: StopReason::ToolUse, raw: None },
    ]
}

fn answer_of(number: usize) -> Vec<ModelEvent> {
    vec![
        ModelEvent::TextStart { block: 0 },
        ModelEvent::TextDelta { block: 0, text: format!("answer {number:06}") },
        ModelEvent::TextEnd { block: 0, replay: None },
        ModelEvent::Stop { reason: StopReason::Stop, raw: None },
    ]
}

/// The middle one of what some turns cost, so that a vector that grows in one of them does not count.
fn middle(costs: &[Cost], of: impl Fn(&Cost) -> usize) -> usize {
    let mut values: Vec<usize> = costs.iter().map(of).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn a_turn_costs_the_same_after_ten_turns_and_after_ten_thousand() {
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let mut agent = Agent::new(anthropic::model("claude-sonnet-5"));
    agent.tools = vec![Arc::new(ToolDefinition::new("search", "Searches.", schema))];
    agent.has_store = true;
    let session = Session::new(Arc::new(agent), 7);
    let mut host = Host { session, cache: EncodedCache::default(), encodes: false, cost: Cost::default() };

    let mut turns = 0;
    let mut written = 0;
    let mut measured = Vec::new();
    for history in [10, 100, 1_000, 10_000] {
        let mut costs = Vec::new();
        while turns < history + 11 {
            // The turn before those that count fills the cache.
            host.encodes = turns + 1 >= history;
            let cost = host.turn(turns);
            written += cost.appended + cost.replaced;
            turns += 1;
            if turns > history {
                costs.push(cost);
            }
        }
        let cost = Cost {
            operations: middle(&costs, |cost| cost.operations),
            bytes: middle(&costs, |cost| cost.bytes),
            lists: middle(&costs, |cost| cost.lists),
            appended: middle(&costs, |cost| cost.appended),
            replaced: middle(&costs, |cost| cost.replaced),
            encoded: middle(&costs, |cost| cost.encoded),
            bodies: middle(&costs, |cost| cost.bodies),
        };
        println!("after {history} turns: {cost:?}");
        measured.push(cost);
    }

    let [first, .., last] = measured.as_slice() else { return };
    let is_flat = |of: fn(&Cost) -> usize| of(last) <= of(first) + of(first) / 10;
    assert!(is_flat(|cost| cost.operations), "operations of the machine: {measured:#?}");
    assert!(is_flat(|cost| cost.bytes), "bytes that the machine allocates: {measured:#?}");
    assert!(is_flat(|cost| cost.appended), "bytes of checkpoints: {measured:#?}");
    assert!(is_flat(|cost| cost.encoded), "bytes that are encoded: {measured:#?}");
    assert_eq!(last.replaced, 0, "a whole text is rare");
    assert!(last.bodies > 500 * first.bodies, "the body holds the conversation: {measured:#?}");
    let whole = host.session.snapshot().len();
    assert!(written < 8 * whole, "all checkpoints together wrote {written} bytes of a conversation of {whole}");
}
