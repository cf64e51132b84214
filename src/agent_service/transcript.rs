//! The messages of a session, put together from its events.

use std::sync::Arc;

use super::event::SessionEvent;
use crate::agent::EventKind;
use crate::model::{Body, Message, MessageId, ToolMessage, ToolResult};

/// The messages of a session, put together from its events: also where another worker went on, and what was shown before did not
/// hold.
#[derive(Clone, Debug, Default)]
pub struct RemoteTranscript {
    messages: Vec<Arc<Message>>,
    results: Vec<ToolResult>,
}

impl RemoteTranscript {
    /// A transcript of no events yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next event.
    pub fn apply(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::SessionRestored { messages, results, .. } => self.restore(messages, results),
            SessionEvent::Run(event) => match &event.kind {
                EventKind::MessageAdded(message) => self.push(message.clone()),
                EventKind::ToolResult(result) => {
                    self.results.retain(|earlier| earlier.call_id != result.call_id);
                    self.results.push(ToolResult::clone(result));
                }
                EventKind::StepEnd { message, .. } => self.answer(message),
                EventKind::RunEnd(end) => {
                    if let Some(message) = &end.message {
                        self.answer(message);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// The messages so far. Those of tools have ids of their own here, since events do not name them.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    fn restore(&mut self, messages: &[Arc<Message>], results: &[ToolResult]) {
        match messages.first() {
            Some(first) => {
                if let Some(place) = self.messages.iter().position(|message| message.id == first.id) {
                    self.messages.truncate(place);
                }
            }
            None => self.messages.clear(),
        }
        self.messages.extend(messages.iter().cloned());
        self.results = results.to_vec();
    }

    fn answer(&mut self, message: &Arc<Message>) {
        let Body::Assistant(answer) = &message.body else { return };
        // An answer without content is shown and not kept.
        if answer.content.is_empty() {
            return;
        }
        self.push(message.clone());
        let told = std::mem::take(&mut self.results);
        let result_of = |call_id| told.iter().find(|result| result.call_id == call_id).cloned();
        let results: Vec<_> = answer.tool_calls().filter_map(|call| result_of(call.call_id.clone())).collect();
        if !results.is_empty() {
            let id = MessageId::new(format!("{}-results", message.id));
            self.push(Arc::new(Message { id, body: Body::Tool(ToolMessage { results }) }));
        }
    }

    fn push(&mut self, message: Arc<Message>) {
        // A run that is resumed in the middle of a step tells of a message that the restored history has already.
        if self.messages.last().is_some_and(|last| last.id == message.id) {
            self.messages.pop();
        }
        self.messages.push(message);
    }
}
