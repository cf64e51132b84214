//! What the hooks before a model call make of its step.

use std::sync::Arc;

use super::conversation::Conversation;
use crate::model::{Body, Message, MessageId, Model, ModelRequest, ToolChoice};
use crate::ordered_map::OrderedMap;

/// What shall be different for one step. What is `None` is as the agent says.
#[derive(Clone, Debug, Default)]
pub struct StepChange {
    /// The model that answers.
    pub model: Option<Model>,
    /// The system prompt.
    pub instructions: Option<Arc<str>>,
    /// The names of the tools that the model is told of and may call.
    pub active_tools: Option<Vec<String>>,
    /// Whether and what the model must call.
    pub tool_choice: Option<ToolChoice>,
}

/// An element of the messages that a model call sends instead of the history. The history itself stays as it is.
///
/// A message that is not mentioned is not sent. Messages that are kept are encoded once and not again at each step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ContextItem {
    /// A message of the request that the hook was shown.
    Keep(MessageId),
    /// Another message: a summary, a replacement, a note.
    Insert(Body),
}

/// What the hooks have said so far about the step. Belongs to the process: a restored session asks again.
#[derive(Debug, Default)]
pub(super) struct StepPlan {
    /// `None` until the hook was asked.
    pub(super) change: Option<StepChange>,
    /// `None` until the hook was asked.
    pub(super) messages: Option<Vec<Arc<Message>>>,
}

impl StepPlan {
    /// The request of the step.
    pub(super) fn request(&self, conversation: &Conversation, active_tools: Option<&[String]>) -> ModelRequest {
        let agent = &conversation.agent;
        let change = self.change.clone().unwrap_or_default();
        let mut options = agent.options.clone();
        if change.tool_choice.is_some() {
            Arc::make_mut(&mut options).tool_choice = change.tool_choice;
        }
        ModelRequest {
            model: change.model.unwrap_or_else(|| agent.model.clone()),
            instructions: change.instructions.or_else(|| agent.instructions.clone()),
            messages: self.messages.clone().unwrap_or_else(|| conversation.context()),
            tools: conversation.tools.specs(active_tools),
            options,
        }
    }
}

/// The messages that these items say, or the id that none has.
pub(super) fn arrange(
    conversation: &mut Conversation,
    items: Vec<ContextItem>,
) -> Result<Vec<Arc<Message>>, MessageId> {
    let by_id: OrderedMap<MessageId, Arc<Message>> =
        conversation.context().into_iter().map(|message| (message.id.clone(), message)).collect();
    let mut arranged = Vec::with_capacity(items.len());
    for item in items {
        arranged.push(match item {
            ContextItem::Keep(id) => by_id.get(&id).cloned().ok_or(id)?,
            ContextItem::Insert(body) => Arc::new(Message { id: conversation.ids.message(), body }),
        });
    }
    Ok(arranged)
}
