//! What outlives a run: the history, the queues, the ids, the checkpoints, and what waits for the host to take it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::compaction::{self, Compacted};
use super::definition::{Agent, ToolDefinition};
use super::effect::Effect;
use super::event::Event;
use super::ids::Ids;
use super::journal::{Journal, Save};
use super::limits::Allowance;
use super::queue::{Queue, QueuedMessage};
use super::tokens;
use super::tool_set::ToolSet;
use super::tree::{Tree, TreeCompaction};
use crate::model::{Body, CallId, Content, Message, MessageId, Origin, UserMessage};

/// The lasting part of a session.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) agent: Arc<Agent>,
    pub(super) tools: ToolSet,
    /// Tools that take effect at the next step.
    pub(super) next_tools: Option<Vec<Arc<ToolDefinition>>>,
    /// The way to the head of the tree.
    pub(super) history: Vec<Arc<Message>>,
    pub(super) tree: Tree,
    /// The stretch of the history that is sent in a shorter form.
    pub(super) compacted: Option<Compacted>,
    /// About how many tokens the messages take that a model call sends, by the estimate alone.
    pub(super) context_tokens: u64,
    /// What the provider counts for 1000 estimated tokens.
    pub(super) token_scale: u64,
    /// The ids of all calls in the history, which can be very many. Follows from it and is not saved.
    pub(super) call_ids: HashSet<CallId>,
    pub(super) ids: Ids,
    pub(super) steers: Queue,
    pub(super) follow_ups: Queue,
    pub(super) checkpoints: Checkpoints,
    /// Whether the host keeps checkpoints.
    pub(super) has_store: bool,
    /// Whether this is the conversation of a sub-agent.
    pub(super) is_nested: bool,
    /// What the run outside leaves to this one. Lent with each input and not saved.
    pub(super) allowance: Allowance,
    pub(super) journal: Journal,
    pub(super) effects: VecDeque<Effect>,
    pub(super) events: VecDeque<Event>,
}

impl Conversation {
    pub(super) fn new(agent: Arc<Agent>, seed: u64) -> Self {
        let mut tools = ToolSet::new(agent.tools.clone(), agent.discovery.clone());
        if let (true, Some(limit)) = (agent.policy.result_reader, agent.policy.max_result_characters) {
            // What is read must not be too long itself, with what is said after it.
            tools.let_results_be_read(limit.saturating_sub(40).max(limit / 2));
        }
        Self {
            tools,
            has_store: agent.has_store,
            is_nested: false,
            allowance: Allowance::default(),
            next_tools: None,
            agent,
            history: Vec::new(),
            tree: Tree::default(),
            compacted: None,
            context_tokens: 0,
            token_scale: tokens::EXACT,
            call_ids: HashSet::new(),
            ids: Ids::new(seed),
            steers: Queue::default(),
            follow_ups: Queue::default(),
            checkpoints: Checkpoints::default(),
            journal: Journal::default(),
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
        self.tree.push(message.clone());
        self.note(message);
        self.history.push(message.clone());
    }

    /// Goes to another place of the tree; `false` when there is no such message.
    pub(super) fn seek(&mut self, to: Option<&MessageId>) -> bool {
        let Some(history) = self.tree.seek(to) else { return false };
        self.compacted = self.tree.compaction_of(&history);
        self.history = history;
        self.context_tokens = self.context().iter().map(|message| tokens::of_message(message)).sum();
        true
    }

    /// Takes note of what follows from a message.
    pub(super) fn note(&mut self, message: &Message) {
        if let Body::Assistant(assistant) = &message.body {
            self.call_ids.extend(assistant.tool_calls().map(|call| call.call_id.clone()));
        }
        self.context_tokens = self.context_tokens.saturating_add(tokens::of_message(message));
    }

    /// About how many tokens a model call sends: instructions and tools too, by what the provider counted last.
    pub(super) fn sent_tokens(&self) -> u64 {
        tokens::scaled(self.estimate(), self.token_scale)
    }

    /// The part of them that the messages take.
    pub(super) fn message_tokens(&self) -> u64 {
        tokens::scaled(self.context_tokens, self.token_scale)
    }

    /// Learns from the provider's count of what was just sent.
    pub(super) fn calibrate(&mut self, counted: Option<u64>) {
        if let Some(counted) = counted {
            self.token_scale = tokens::scale(counted, self.estimate());
        }
    }

    fn estimate(&self) -> u64 {
        let instructions = self.agent.instructions.as_deref().map_or(0, tokens::of_text);
        let tools = self.tools.specs(None).iter().map(tokens::of_tool).sum::<u64>();
        self.context_tokens.saturating_add(instructions).saturating_add(tools)
    }

    /// The messages that a model call sends: the history, or what stands for it.
    pub(super) fn context(&self) -> Vec<Arc<Message>> {
        match &self.compacted {
            None => self.history.clone(),
            Some(compacted) => compacted.apply(&self.history),
        }
    }

    /// The messages from the latest prompt on.
    pub(super) fn since_the_prompt(&self) -> Vec<Arc<Message>> {
        let is_prompt =
            |message: &Arc<Message>| matches!(&message.body, Body::User(user) if user.origin == Origin::Prompt);
        let start = self.history.iter().rposition(is_prompt).unwrap_or_default();
        self.history.get(start..).unwrap_or_default().to_vec()
    }

    /// The older stretch to leave out so that about `keep` tokens of the newest messages stay; `None` when there is nothing
    /// more to leave out.
    pub(super) fn stretch(&self, keep: u64) -> Option<(usize, usize)> {
        compaction::stretch(&self.history, self.compacted.as_ref(), tokens::estimated(keep, self.token_scale))
    }

    /// Sends a message in the place of this stretch: in the words of a model, where there are any and they make it shorter, or in the
    /// lines that are made without one. Gives it, and how many messages it stands for.
    pub(super) fn leave_out(
        &mut self,
        start: usize,
        end: usize,
        in_words: Option<String>,
    ) -> Option<(Arc<Message>, usize)> {
        let mut body = self.stand_in(start, end, None)?;
        if let Some(words) = in_words.and_then(|words| self.stand_in(start, end, Some(words)))
            && tokens::of_body(&words) < self.sent_of(start, end).max(tokens::of_body(&body))
        {
            body = words;
        }
        let message = Arc::new(Message { id: self.ids.message(), body });
        let (first, last) = (self.history.get(start)?.id.clone(), self.history.get(end - 1)?.id.clone());
        self.tree.compactions.push(Arc::new(TreeCompaction { first, last, message: message.clone() }));
        self.compacted = Some(Compacted { start, end, message: message.clone() });
        self.context_tokens = self.context().iter().map(|message| tokens::of_message(message)).sum();
        Some((message, end - start))
    }

    /// Whether lines in the place of this stretch would be shorter than what is sent of it now.
    pub(super) fn is_shorter_by_lines(&self, start: usize, end: usize) -> bool {
        let lines = self.stand_in(start, end, None);
        lines.is_some_and(|lines| tokens::of_body(&lines) < self.sent_of(start, end))
    }

    /// About how many tokens what is sent of this stretch takes.
    pub(super) fn sent_of(&self, start: usize, end: usize) -> u64 {
        let stays = self.history.iter().take(start).chain(self.history.iter().skip(end));
        self.context_tokens.saturating_sub(stays.map(|message| tokens::of_message(message)).sum())
    }

    /// Whether enough has come since the last compaction to make another one before the provider complains. With less, one would
    /// be made at every step where what stays is beyond the threshold by itself, and the provider's cache would never hold.
    pub(super) fn is_due_again(&self, keep: u64) -> bool {
        let Some(compacted) = &self.compacted else { return true };
        let since = self.history.iter().skip(compacted.end).map(|message| tokens::of_message(message)).sum();
        tokens::scaled(since, self.token_scale) > keep.saturating_add(keep / 4)
    }

    fn stand_in(&self, start: usize, end: usize, in_words: Option<String>) -> Option<Body> {
        Some(compaction::summary(self.history.get(start..end)?, self.history.get(end..)?, in_words))
    }

    /// Adds a user message to the history.
    pub(super) fn push_user(&mut self, content: Vec<Content>, origin: Origin) -> Arc<Message> {
        self.push(Body::User(UserMessage { content, origin }))
    }

    /// Adds a message that waited in a queue to the history.
    pub(super) fn push_queued(&mut self, queued: QueuedMessage, origin: Origin) -> Arc<Message> {
        let body = Body::User(UserMessage { content: queued.content, origin });
        let message = Arc::new(Message { id: queued.id, body });
        self.remember(&message);
        message
    }

    /// Asks for a checkpoint of the state as it is now, and returns the number that answers for it.
    ///
    /// A checkpoint that the host has not taken yet covers this state too. Without a store there is nothing to wait for.
    pub(super) fn checkpoint(&mut self) -> u64 {
        if !self.has_store {
            return self.checkpoints.saved;
        }
        let asked = self.checkpoints.asked;
        let waiting = |effect: &Effect| matches!(effect, Effect::Checkpoint { seq, .. } if *seq == asked);
        if !self.effects.iter().any(waiting) {
            self.checkpoints.asked = asked.saturating_add(1);
            // What it writes is filled in when the host takes it.
            let save = Save::Append(String::new());
            self.effects.push_back(Effect::Checkpoint { seq: self.checkpoints.asked, save });
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
