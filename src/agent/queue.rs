//! Messages that wait: steered ones for the next step, follow-ups for the end of the run.

use std::collections::VecDeque;

use super::input::{InputError, MAX_QUEUED};
use crate::model::{Content, MessageId};

/// A user message that waits to be delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedMessage {
    /// The id that the message has in the queue, and later in the history.
    pub id: MessageId,
    /// What the user says.
    pub content: Vec<Content>,
}

/// Messages in the order in which they are delivered.
#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<QueuedMessage>);

impl Queue {
    /// Adds a message at the end and gives its id.
    ///
    /// # Errors
    ///
    /// When the message is empty, or the queue full.
    pub(super) fn add(
        &mut self,
        content: Vec<Content>,
        id: impl FnOnce() -> MessageId,
    ) -> Result<MessageId, InputError> {
        refuse_empty(&content)?;
        if self.0.len() >= MAX_QUEUED {
            return Err(InputError::QueueFull);
        }
        let id = id();
        self.0.push_back(QueuedMessage { id: id.clone(), content });
        Ok(id)
    }

    /// Adds a message that was saved.
    pub(super) fn restore(&mut self, message: QueuedMessage) {
        self.0.push_back(message);
    }

    /// Puts other content in the place of a message, which keeps its id and its place.
    ///
    /// # Errors
    ///
    /// When no message of this id waits here, or the content is empty.
    pub(super) fn replace(&mut self, id: &MessageId, content: Vec<Content>) -> Result<(), InputError> {
        let message = self.0.iter_mut().find(|message| message.id == *id).ok_or(InputError::Unexpected)?;
        refuse_empty(&content)?;
        message.content = content;
        Ok(())
    }

    /// Takes a message out.
    pub(super) fn remove(&mut self, id: &MessageId) -> Option<QueuedMessage> {
        let index = self.0.iter().position(|message| message.id == *id)?;
        self.0.remove(index)
    }

    /// Takes the message whose turn it is.
    pub(super) fn next(&mut self) -> Option<QueuedMessage> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.0.iter()
    }
}

/// Refuses what says nothing.
///
/// # Errors
///
/// `EmptyPrompt` then.
pub(super) fn refuse_empty(content: &[Content]) -> Result<(), InputError> {
    let is_empty = |content: &Content| matches!(content, Content::Text(text) if text.is_empty());
    if content.iter().all(is_empty) { Err(InputError::EmptyPrompt) } else { Ok(()) }
}
