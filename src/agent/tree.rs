//! The session tree: every message with the one it follows. A history is the way from a first message to the head.

use std::collections::HashMap;
use std::sync::Arc;

use super::compaction::Compacted;
use crate::error::{Error, ErrorKind};
use crate::model::{Body, Message, MessageId};

/// A message in its place in the session tree.
#[derive(Clone, Copy, Debug)]
pub struct TreeEntry<'session> {
    /// The message.
    pub message: &'session Arc<Message>,
    /// The message it follows; `None` for one that begins a conversation.
    pub parent: Option<&'session MessageId>,
    /// The caller's name for this place.
    pub label: Option<&'session str>,
}

/// Why a place in the session tree was refused. The session is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// A run is active, and its history cannot be exchanged under it.
    #[error("a run is active on this session: wait for it or abort it before going elsewhere in its tree")]
    Busy,
    /// There is no such message.
    #[error("there is no message {0} in this session")]
    Unknown(MessageId),
    /// The message is an answer with tool calls.
    #[error(
        "no conversation can go on after the message {0}, between calls and their results: choose a user message, a \
        final answer or the results"
    )]
    Open(MessageId),
}

impl From<TreeError> for Error {
    fn from(refused: TreeError) -> Self {
        let kind = match refused {
            TreeError::Busy => ErrorKind::Busy,
            TreeError::Unknown(_) | TreeError::Open(_) => ErrorKind::InvalidInput,
        };
        Self::new(kind, refused.to_string())
    }
}

/// Every message of a session in the order in which they came, and the compactions of its histories.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) compactions: Vec<Arc<TreeCompaction>>,
    /// Where the history ends.
    head: Option<usize>,
    /// Grows with the conversation.
    by_id: HashMap<MessageId, usize>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) message: Arc<Message>,
    pub(super) parent: Option<usize>,
    pub(super) label: Option<String>,
}

/// A compaction as it is kept: the stretch is named by its messages, since a place in a history is none in another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TreeCompaction {
    pub(super) first: MessageId,
    pub(super) last: MessageId,
    pub(super) message: Arc<Message>,
}

impl Tree {
    /// Adds a message after the head, which it becomes.
    pub(super) fn push(&mut self, message: Arc<Message>) {
        let parent = self.head;
        self.head = Some(self.nodes.len());
        self.by_id.insert(message.id.clone(), self.nodes.len());
        self.nodes.push(Node { message, parent, label: None });
    }

    /// Adds a message after this one, `None` for the first of a history; `false` when there is no such message.
    pub(super) fn push_after(&mut self, parent: Option<&MessageId>, message: Arc<Message>) -> bool {
        self.head = match parent {
            Some(id) => match self.index(id) {
                Some(index) => Some(index),
                None => return false,
            },
            None => None,
        };
        self.push(message);
        true
    }

    pub(super) fn head(&self) -> Option<&MessageId> {
        self.node(self.head?).map(|node| &node.message.id)
    }

    pub(super) fn get(&self, id: &MessageId) -> Option<&Node> {
        self.node(self.index(id)?)
    }

    pub(super) fn get_mut(&mut self, id: &MessageId) -> Option<&mut Node> {
        let index = self.index(id)?;
        self.nodes.get_mut(index)
    }

    /// Moves the head, `None` to before the first message, and gives the way to it; `None` when there is no such message.
    pub(super) fn seek(&mut self, to: Option<&MessageId>) -> Option<Vec<Arc<Message>>> {
        self.head = match to {
            Some(id) => Some(self.index(id)?),
            None => None,
        };
        Some(self.way(self.head))
    }

    /// The messages from a first one to this one.
    pub(super) fn way(&self, to: Option<usize>) -> Vec<Arc<Message>> {
        let mut way = Vec::new();
        let mut next = to;
        // A parent stands before its children, so that this ends whatever was read.
        while let Some(node) = next.and_then(|index| self.node(index)) {
            way.push(node.message.clone());
            next = node.parent;
        }
        way.reverse();
        way
    }

    pub(super) fn index(&self, id: &MessageId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The compactions whose whole stretch lies on this way.
    pub(super) fn compactions_within(&self, way: &[Arc<Message>]) -> impl Iterator<Item = Arc<TreeCompaction>> {
        let has = |id: &MessageId| way.iter().any(|message| message.id == *id);
        self.compactions.iter().filter(move |compaction| has(&compaction.last)).cloned()
    }

    /// What the caller sees of a node.
    pub(super) fn entry<'tree>(&'tree self, node: &'tree Node) -> TreeEntry<'tree> {
        TreeEntry { message: &node.message, parent: self.parent_of(node), label: node.label.as_deref() }
    }

    /// The latest compaction whose whole stretch lies on this way.
    pub(super) fn compaction_of(&self, history: &[Arc<Message>]) -> Option<Compacted> {
        self.compactions.iter().rev().find_map(|compaction| {
            let end = history.iter().rposition(|message| message.id == compaction.last)?;
            let start = history.iter().position(|message| message.id == compaction.first)?;
            (start <= end).then(|| Compacted { start, end: end + 1, message: compaction.message.clone() })
        })
    }

    /// The messages that have a label, in order.
    pub(super) fn labelled(&self) -> Vec<MessageId> {
        let labelled = self.nodes.iter().filter(|node| node.label.is_some());
        labelled.map(|node| node.message.id.clone()).collect()
    }

    /// The id of the message that a node follows.
    pub(super) fn parent_of(&self, node: &Node) -> Option<&MessageId> {
        node.parent.and_then(|index| self.node(index)).map(|parent| &parent.message.id)
    }

    fn node(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)
    }
}

/// Whether a conversation can go on after this message. Between a call and its result none can.
pub(super) fn may_end_a_history(message: &Message) -> bool {
    !matches!(&message.body, Body::Assistant(answer) if answer.tool_calls().next().is_some())
}
