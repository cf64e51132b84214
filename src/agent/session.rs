//! The conversation: its history, its queues and the run that is active.

use std::sync::Arc;

use super::conversation::{Checkpoints, Conversation};
use super::definition::Agent;
use super::effect::Effect;
use super::event::{Event, EventKind};
use super::input::{Input, InputError};
use super::journal::{self, Save};
use super::queue::{QueuedMessage, refuse_empty};
use super::restore;
use super::run::Run;
use super::snapshot::State;
use super::tree::{self, TreeEntry, TreeError};
use crate::model::{Content, Message, MessageId, Usage};
use crate::time::Millis;

/// A conversation with an agent.
///
/// The caller gives inputs with [`handle`](Self::handle), then performs every effect of
/// [`poll_effect`](Self::poll_effect) and shows every event of [`poll_event`](Self::poll_event) until both are empty.
///
/// An answer that comes too late (of an attempt that was cancelled, a tool that was aborted) is refused with
/// [`InputError::Unexpected`] and changes nothing: a host ignores that error for the answers it gives on its own.
///
/// Most programs use the driver in `host`. This is all that one has to do, with a model that is the program itself:
///
/// ```
/// use std::sync::Arc;
///
/// use crablet::Millis;
/// use crablet::agent::{Agent, Effect, Input, Session};
/// use crablet::model::{Content, Model, ModelEvent, StopReason};
///
/// let model = Model::function("parrot");
/// let mut session = Session::new(Arc::new(Agent::new(model)), 7);
/// let now = Millis(0);
/// session.handle(now, Input::Prompt(vec![Content::Text("hello".into())]))?;
///
/// while let Some(effect) = session.poll_effect() {
///     if let Effect::CallModel { call, .. } = effect {
///         let events = vec![
///             ModelEvent::TextStart { block: 0 },
///             ModelEvent::TextDelta { block: 0, text: "hello yourself".into() },
///             ModelEvent::TextEnd { block: 0, replay: None },
///             ModelEvent::Stop { reason: StopReason::Stop, raw: None },
///         ];
///         session.handle(now, Input::ModelEvents { call, events })?;
///         session.handle(now, Input::ModelEnded { call, outcome: Ok(()) })?;
///     }
/// }
///
/// let shown: Vec<&str> = std::iter::from_fn(|| session.poll_event()).map(|event| event.kind.name()).collect();
/// assert_eq!(shown.first(), Some(&"run-start"));
/// assert_eq!(shown.last(), Some(&"run-end"));
/// assert_eq!(session.history().len(), 2);
/// # Ok::<(), crablet::agent::InputError>(())
/// ```
#[derive(Debug)]
pub struct Session {
    pub(super) conversation: Conversation,
    pub(super) run: Option<Run>,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Nothing: a prompt is welcome.
    Idle,
    /// A run is active.
    Running,
    /// A run waits for approvals or client-side tools.
    Suspended,
}

impl Session {
    /// An empty conversation. The seed makes its ids; use a random one.
    pub fn new(agent: Arc<Agent>, seed: u64) -> Self {
        Self { conversation: Conversation::new(agent, seed), run: None }
    }

    /// The conversation that [`snapshot`](Self::snapshot) saved. What was open is handed out again as effects, and
    /// `run-start` is shown again when a run is active.
    ///
    /// The agent may be another than before: a call whose tool it lacks gets an error for its result.
    ///
    /// # Errors
    ///
    /// When the text is not a snapshot, is damaged, or was written by a newer version.
    pub fn restore(snapshot: &str, agent: Arc<Agent>, now: Millis) -> Result<Self, RestoreError> {
        let mut session = Self::restore_stored(snapshot, agent, now)?;
        session.conversation.journal.begin_again();
        Ok(session)
    }

    /// As [`restore`](Self::restore), for a text that is what the store holds: checkpoints add to it. After `restore` the
    /// first one writes everything.
    ///
    /// # Errors
    ///
    /// As for `restore`.
    pub fn restore_stored(stored: &str, agent: Arc<Agent>, now: Millis) -> Result<Self, RestoreError> {
        let (conversation, run) = restore::read(stored, agent)?;
        let mut session = Self { conversation, run };
        session.reopen(now);
        Ok(session)
    }

    /// The session of a sub-agent, for a call in a run of another session.
    pub(super) fn nested(agent: Arc<Agent>, seed: u64) -> Self {
        let mut conversation = Conversation::new(agent, seed);
        conversation.is_nested = true;
        Self { conversation, run: None }
    }

    /// The session of a sub-agent as it was saved. It is [reopened](Self::reopen) with the session around it.
    pub(super) fn of_sub_agent(mut conversation: Conversation, run: Option<Run>) -> Self {
        conversation.is_nested = true;
        Self { conversation, run }
    }

    /// Hands out again what was open when the session was saved.
    pub(super) fn reopen(&mut self, now: Millis) {
        if let Some(run) = &mut self.run {
            run.reopen(&mut self.conversation, now);
        }
        self.advance(now);
    }

    /// Takes a restored run whose end was saved for over, and does not show that end once more.
    #[cfg(feature = "host")]
    pub(crate) fn close_ended(&mut self) {
        if self.run.as_ref().is_some_and(Run::is_ending) {
            self.run = None;
            self.conversation.effects.clear();
            self.conversation.events.clear();
        }
    }

    /// Takes an input. Never blocks, never panics.
    ///
    /// # Errors
    ///
    /// When the input does not fit the state; the session is then unchanged.
    pub fn handle(&mut self, now: Millis, input: Input) -> Result<(), InputError> {
        let conversation = &mut self.conversation;
        match input {
            Input::Prompt(content) => self.prompt(now, content)?,
            Input::Steer(content) => return self.steer(now, content).map(drop),
            Input::FollowUp(content) => drop(self.follow_up(content)?),
            Input::EditQueued { id, content } => {
                let queues = [&mut conversation.steers, &mut conversation.follow_ups];
                let queue = queues.into_iter().find(|queue| queue.iter().any(|message| message.id == id));
                queue.ok_or(InputError::Unexpected)?.replace(&id, content)?;
                conversation.checkpoint();
            }
            Input::Unqueue { id } => self.unqueue(now, &id)?,
            // Without a run there is nothing left to stop, which is what the caller wants.
            Input::Abort { reason } => {
                if let Some(run) = &mut self.run {
                    run.abort(conversation, now, reason);
                }
            }
            Input::ToolsChanged(tools) => {
                if self.run.is_some() {
                    conversation.next_tools = Some(tools);
                } else {
                    conversation.tools.replace(tools);
                }
            }
            Input::CheckpointSaved { seq } => self.checkpoint_saved(now, seq)?,
            Input::CheckpointFailed { seq, error } => {
                if seq > conversation.checkpoints.asked {
                    return Err(InputError::Unexpected);
                }
                conversation.journal.begin_again();
                if let Some(run) = &mut self.run
                    && !conversation.is_saved(seq)
                {
                    run.saving_failed(conversation, now, error);
                }
            }
            input => {
                let run = self.run.as_mut().ok_or(InputError::Unexpected)?;
                run.handle(conversation, now, input)?;
            }
        }
        self.advance(now);
        Ok(())
    }

    /// As [`Input::Steer`], and gives the id of the message.
    ///
    /// # Errors
    ///
    /// When no run is active, the message is empty or the queue full.
    pub fn steer(&mut self, now: Millis, content: Vec<Content>) -> Result<MessageId, InputError> {
        let conversation = &mut self.conversation;
        self.run.as_ref().filter(|run| !run.is_ending()).ok_or(InputError::Idle)?;
        let id = conversation.steers.add(content, || conversation.ids.message())?;
        // Not waited for: what was said outlives a crash all the same.
        conversation.checkpoint();
        self.advance(now);
        Ok(id)
    }

    /// As [`Input::FollowUp`], and gives the id of the message.
    ///
    /// # Errors
    ///
    /// When no run is active, the message is empty or the queue full.
    pub fn follow_up(&mut self, content: Vec<Content>) -> Result<MessageId, InputError> {
        let conversation = &mut self.conversation;
        self.run.as_ref().filter(|run| !run.is_ending()).ok_or(InputError::Idle)?;
        let id = conversation.follow_ups.add(content, || conversation.ids.message())?;
        conversation.checkpoint();
        Ok(id)
    }

    /// What the host must do next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        let mut effect = self.next_effect();
        if let Some(Effect::Checkpoint { save, .. }) = &mut effect {
            *save = self.changes();
        }
        effect
    }

    /// As [`poll_effect`](Self::poll_effect), but a checkpoint holds nothing yet: for the driver, which asks for
    /// [`changes`](Self::changes) where there is a journal, so that programs without one do not hold what writes them.
    pub(crate) fn next_effect(&mut self) -> Option<Effect> {
        self.conversation.effects.pop_front()
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.conversation.events.pop_front()
    }

    /// The whole conversation as JSON text: can be saved at any moment and restored anywhere.
    ///
    /// It holds no key, no function and nothing of the agent's definition. Effects that were not polled yet are handed out
    /// again after a restore; events that were not polled yet are not shown again.
    ///
    #[doc = include_str!("snapshot_format.md")]
    pub fn snapshot(&self) -> String {
        journal::whole(&self.conversation, self.run.as_ref())
    }

    /// What has changed since the last time this was asked or a checkpoint was polled: for a host that keeps the saved form
    /// without a store, at moments of its own choice. What it costs is what has changed.
    pub fn changes(&mut self) -> Save {
        journal::changes(&mut self.conversation, self.run.as_ref())
    }

    /// Goes to another place of the session's tree: what comes next follows this message, `None` for an empty history. What
    /// followed it so far stays in the tree. With a store, the move is saved with the next checkpoint, which is asked for.
    ///
    /// # Errors
    ///
    /// While a run is active, when there is no such message, or when it is an answer with tool calls.
    pub fn seek(&mut self, to: Option<&MessageId>) -> Result<(), TreeError> {
        if self.run.is_some() {
            return Err(TreeError::Busy);
        }
        if let Some(id) = to {
            self.place(id)?;
        }
        self.conversation.seek(to);
        self.conversation.checkpoint();
        Ok(())
    }

    /// Names a place of the session's tree, to find it again; `None` takes the name away.
    ///
    /// # Errors
    ///
    /// When there is no such message.
    pub fn label(&mut self, id: &MessageId, label: Option<String>) -> Result<(), TreeError> {
        let node = self.conversation.tree.get_mut(id).ok_or_else(|| TreeError::Unknown(id.clone()))?;
        node.label = label;
        self.conversation.journal.label_changed(id);
        self.conversation.checkpoint();
        Ok(())
    }

    /// Every message of the session in the order in which they came, also those that [`seek`](Self::seek) left.
    pub fn tree(&self) -> impl Iterator<Item = TreeEntry<'_>> {
        let tree = &self.conversation.tree;
        tree.nodes.iter().map(|node| tree.entry(node))
    }

    /// A message of the session's tree, found by its id without a search.
    pub fn entry(&self, id: &MessageId) -> Option<TreeEntry<'_>> {
        let tree = &self.conversation.tree;
        tree.get(id).map(|node| tree.entry(node))
    }

    /// Another conversation that begins with the way to a message, that one included, and goes its own way: to try another
    /// prompt, or to answer one again. The messages are shared, not copied. The seed makes the ids of what is new.
    ///
    /// # Errors
    ///
    /// When there is no such message, or when it is an answer with tool calls: no conversation goes on between a call and
    /// its result.
    pub fn fork(&self, last: &MessageId, seed: u64) -> Result<Self, TreeError> {
        self.place(last)?;
        let Conversation { agent, tree, tools, .. } = &self.conversation;
        let way = tree.way(tree.index(last));
        let mut fork = Self::new(agent.clone(), seed);
        for message in &way {
            fork.conversation.remember(message);
        }
        for node in way.iter().filter_map(|message| tree.get(&message.id)) {
            if let Some(copy) = fork.conversation.tree.get_mut(&node.message.id) {
                copy.label.clone_from(&node.label);
            }
        }
        fork.conversation.tree.compactions.extend(tree.compactions_within(&way));
        fork.conversation.compacted = fork.conversation.tree.compaction_of(&way);
        fork.conversation.tools.add_found(tools.found().to_vec());
        Ok(fork)
    }

    /// A place after which a conversation can go on.
    fn place(&self, id: &MessageId) -> Result<(), TreeError> {
        let node = self.conversation.tree.get(id).ok_or_else(|| TreeError::Unknown(id.clone()))?;
        if tree::may_end_a_history(&node.message) { Ok(()) } else { Err(TreeError::Open(id.clone())) }
    }

    /// What the session is doing.
    pub fn status(&self) -> Status {
        match &self.run {
            None => Status::Idle,
            Some(run) if run.is_suspended() => Status::Suspended,
            Some(_) => Status::Running,
        }
    }

    /// The messages so far, oldest first.
    pub fn history(&self) -> &[Arc<Message>] {
        &self.conversation.history
    }

    /// The agent's definition.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.conversation.agent
    }

    /// Messages that will be delivered before the next step, in order.
    pub fn steers(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.conversation.steers.iter()
    }

    /// Messages that wait until the run would otherwise end, in order. They stay when a run is aborted or fails.
    pub fn follow_ups(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.conversation.follow_ups.iter()
    }

    /// Whether the active run, or one of a sub-agent, waits for this answer of the host.
    pub(super) fn awaits(&self, input: &Input) -> bool {
        self.run.as_ref().is_some_and(|run| run.awaits(input))
    }

    /// Tokens of the active run so far.
    pub(super) fn usage(&self) -> Usage {
        self.run.as_ref().map(Run::usage_so_far).unwrap_or_default()
    }

    /// What the session around this one has lent it.
    pub(super) fn lent(&self) -> (u64, Checkpoints) {
        (self.conversation.ids.next, self.conversation.checkpoints)
    }

    /// Goes back to what was lent before.
    pub(super) fn take_back(&mut self, (next, checkpoints): (u64, Checkpoints)) {
        self.conversation.ids.next = next;
        self.conversation.checkpoints = checkpoints;
    }

    /// What is small, to be written as part of the state of another session.
    pub(super) fn state(&self) -> State<'_> {
        State { conversation: &self.conversation, run: self.run.as_ref() }
    }

    fn prompt(&mut self, now: Millis, content: Vec<Content>) -> Result<(), InputError> {
        if self.run.is_some() {
            return Err(InputError::Busy);
        }
        refuse_empty(&content)?;
        self.run = Some(Run::start(&mut self.conversation, now, content)?);
        Ok(())
    }

    fn unqueue(&mut self, now: Millis, id: &MessageId) -> Result<(), InputError> {
        let conversation = &mut self.conversation;
        if conversation.follow_ups.remove(id).is_none() {
            let QueuedMessage { id, .. } = conversation.steers.remove(id).ok_or(InputError::Unexpected)?;
            if let Some(run) = &mut self.run {
                run.context(conversation, now).emit(EventKind::SteerDropped { id });
            }
        }
        conversation.checkpoint();
        Ok(())
    }

    fn checkpoint_saved(&mut self, now: Millis, seq: u64) -> Result<(), InputError> {
        let checkpoints = &mut self.conversation.checkpoints;
        if seq > checkpoints.asked {
            return Err(InputError::Unexpected);
        }
        if seq <= checkpoints.saved {
            // A later one was saved first and covers it.
            return Ok(());
        }
        checkpoints.saved = seq;
        if let Some(run) = &mut self.run {
            run.checkpoint_saved(&mut self.conversation, now, seq);
        }
        Ok(())
    }

    /// Goes on as far as it can without an answer from outside.
    pub(super) fn advance(&mut self, now: Millis) {
        let Some(run) = &mut self.run else { return };
        run.advance(&mut self.conversation, now);
        if run.is_out_of_time(now) {
            run.time_is_up(&mut self.conversation, now);
            run.advance(&mut self.conversation, now);
        }
        if run.is_over() {
            self.run = None;
        }
    }
}

/// Why a snapshot could not be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Not JSON, or not a snapshot.
    #[error("this is not a crablet snapshot: {0}")]
    Malformed(String),
    /// Written by a newer version.
    #[error("this snapshot has format version {0}, which is newer than this crablet reads; update crablet")]
    TooNew(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_and_what_passes_their_border_can_go_to_another_thread() {
        fn check<T: Send + Sync + 'static>() {}
        check::<Session>();
        check::<Input>();
        check::<Effect>();
        check::<Event>();
    }
}
