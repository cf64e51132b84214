//! What outlives a run: the history, the queues, the ids, the checkpoints, and what waits for the host to take it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::definition::Agent;
use super::effect::Effect;
use super::event::Event;
use super::ids::Ids;
use super::tool_set::ToolSet;
use crate::model::{Body, CallId, Content, Message, Origin, Part, UserMessage};

/// The lasting part of a session.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) agent: Arc<Agent>,
    pub(super) tools: ToolSet,
    /// Tools that take effect at the next step.
    pub(super) next_tools: Option<ToolSet>,
    pub(super) history: Vec<Arc<Message>>,
    /// The ids of all calls in the history. Follows from it and is not saved.
    pub(super) call_ids: HashSet<CallId>,
    pub(super) ids: Ids,
    pub(super) steers: VecDeque<Vec<Content>>,
    pub(super) follow_ups: VecDeque<Vec<Content>>,
    pub(super) checkpoints: Checkpoints,
    pub(super) effects: VecDeque<Effect>,
    pub(super) events: VecDeque<Event>,
}

impl Conversation {
    pub(super) fn new(agent: Arc<Agent>, seed: u64) -> Self {
        Self {
            tools: ToolSet::new(agent.tools.clone()),
            next_tools: None,
            agent,
            history: Vec::new(),
            call_ids: HashSet::new(),
            ids: Ids::new(seed),
            steers: VecDeque::new(),
            follow_ups: VecDeque::new(),
            checkpoints: Checkpoints::default(),
            effects: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Adds a message to the history.
    pub(super) fn push(&mut self, body: Body) -> Arc<Message> {
        let message = Arc::new(Message { id: self.ids.message(), body });
        self.remember(&message);
        message
    }

    /// Adds a message that has its id already.
    pub(super) fn remember(&mut self, message: &Arc<Message>) {
        if let Body::Assistant(assistant) = &message.body {
            self.call_ids.extend(assistant.content.iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some(call.call_id.clone()),
                _ => None,
            }));
        }
        self.history.push(message.clone());
    }

    /// Adds a user message to the history.
    pub(super) fn push_user(&mut self, content: Vec<Content>, origin: Origin) -> Arc<Message> {
        self.push(Body::User(UserMessage { content, origin }))
    }

    /// Asks for a checkpoint of the state as it is now, and returns the number that answers for it.
    ///
    /// A checkpoint that the host has not taken yet covers this state too. Without a store there is nothing to wait for.
    pub(super) fn checkpoint(&mut self) -> u64 {
        if !self.agent.has_store {
            return self.checkpoints.saved;
        }
        let asked = self.checkpoints.asked;
        let waiting = |effect: &Effect| matches!(effect, Effect::Checkpoint { seq } if *seq == asked);
        if !self.effects.iter().any(waiting) {
            self.checkpoints.asked = asked.saturating_add(1);
            self.effects.push_back(Effect::Checkpoint { seq: self.checkpoints.asked });
        }
        self.checkpoints.asked
    }

    /// Whether the state of that checkpoint is safe.
    pub(super) fn is_saved(&self, seq: u64) -> bool {
        seq <= self.checkpoints.saved
    }
}

/// How far the saving has come. A saved checkpoint answers for all earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checkpoints {
    pub(super) asked: u64,
    pub(super) saved: u64,
}
