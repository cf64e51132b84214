//! What the hooks before a model call make of its step.

use std::sync::Arc;

use super::conversation::Conversation;
use super::output::Output;
use crate::model::{Body, Message, MessageId, Model, ModelRequest, ToolChoice};

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

/// A change of the messages that a model call sends. The history itself stays as it is.
///
/// Messages that no edit touches are encoded once and not again at each step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ContextEdit {
    /// Send only these of the messages so far.
    Keep(Vec<MessageId>),
    /// Do not send this message.
    Drop(MessageId),
    /// Send this in its place.
    Replace(MessageId, Body),
    /// Send this too, before the message, or after all where there is none.
    Insert(Option<MessageId>, Body),
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
    pub(super) fn request(
        &self,
        conversation: &Conversation,
        active_tools: Option<&[String]>,
        output: Option<&Output>,
    ) -> ModelRequest {
        let agent = &conversation.agent;
        let change = self.change.clone().unwrap_or_default();
        let mut options = agent.options.clone();
        if change.tool_choice.is_some() {
            Arc::make_mut(&mut options).tool_choice = change.tool_choice;
        }
        if let Some(output) = output {
            Arc::make_mut(&mut options).output = Some(output.schema.clone());
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

/// The messages that a call would send, with these changes, or the id that none has.
pub(super) fn edited(conversation: &mut Conversation, edits: Vec<ContextEdit>) -> Result<Vec<Arc<Message>>, MessageId> {
    let mut messages = conversation.context();
    for edit in edits {
        let mut made = |body| Arc::new(Message { id: conversation.ids.message(), body });
        match edit {
            ContextEdit::Keep(ids) => {
                if let Some(unknown) = ids.iter().find(|id| position(&messages, id).is_err()) {
                    return Err(unknown.clone());
                }
                messages.retain(|message| ids.contains(&message.id));
            }
            ContextEdit::Drop(id) => drop(messages.remove(position(&messages, &id)?)),
            ContextEdit::Replace(id, body) => {
                let index = position(&messages, &id)?;
                messages.splice(index..=index, [made(body)]);
            }
            ContextEdit::Insert(Some(id), body) => messages.insert(position(&messages, &id)?, made(body)),
            ContextEdit::Insert(None, body) => messages.push(made(body)),
        }
    }
    Ok(messages)
}

fn position(messages: &[Arc<Message>], id: &MessageId) -> Result<usize, MessageId> {
    messages.iter().position(|message| message.id == *id).ok_or_else(|| id.clone())
}
