//! Other models that answer when one fails.

use std::sync::Arc;

use super::conversation::Conversation;
use super::run::Run;
use crate::error::{Error, ErrorKind};
use crate::model::{Model, ModelRequest};

impl Run {
    /// The request of the step, to the model whose turn it is.
    pub(super) fn request(&self, conversation: &Conversation) -> Arc<ModelRequest> {
        let mut request = self.plan.request(conversation, self.active_tools.as_deref(), self.output.as_ref());
        if let Some(model) = self.fallback_model(conversation) {
            request.model = model.clone();
        }
        Arc::new(request)
    }

    /// Leaves the next attempts to the next model, after the attempts of one have ended with this error. Gives that model;
    /// `None` when there is none, or when another would fail too.
    pub(super) fn fall_back(&mut self, conversation: &Conversation, error: &Error, attempt: u32) -> Option<Model> {
        if !is_worth_another_model(error) {
            return None;
        }
        let next = conversation.agent.fallbacks.get(self.fallback)?;
        self.fallback += 1;
        self.attempts_before = attempt;
        Some(next.clone())
    }

    /// The model that answers in the place of the first one.
    fn fallback_model<'agent>(&self, conversation: &'agent Conversation) -> Option<&'agent Model> {
        conversation.agent.fallbacks.get(self.fallback.checked_sub(1)?)
    }
}

/// What may be different with another model: what may be different later, an account without credit, a smaller window. A
/// wrong key or a wrong request is for a person to see.
fn is_worth_another_model(error: &Error) -> bool {
    error.is_retryable() || matches!(error.kind(), ErrorKind::Quota | ErrorKind::ContextOverflow)
}
