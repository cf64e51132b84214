use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::json::RawJson;
use crate::jsonrpc::Message;
use crate::mcp::transport::Inbound;
use crate::model::{HttpRequest, secrets_of_headers};

/// The most secrets of one connection that are looked for: tokens are renewed, and an answer is to one of the last requests.
const MAX_SECRETS: usize = 16;

/// What is shorter, in bytes, is left in errors: it is no secret, and it may be part of a word.
const SHORTEST_SECRET: usize = 8;

/// The keys and tokens that a connection's last requests carried. Servers repeat what they refuse, and errors must not.
#[derive(Clone, Default)]
pub(super) struct Sent(Arc<Mutex<Vec<String>>>);

impl Sent {
    /// Remembers what this request carries.
    pub(super) fn remember(&self, request: &HttpRequest) {
        let mut secrets = self.secrets();
        for secret in secrets_of_headers(&request.headers) {
            if secret.len() < SHORTEST_SECRET || secrets.contains(&secret) {
                continue;
            }
            if secrets.len() == MAX_SECRETS {
                secrets.remove(0);
            }
            secrets.push(secret);
        }
    }

    /// Takes them out of an error.
    pub(super) fn redact(&self, error: &mut Error) {
        error.redact(&self.secrets());
    }

    /// Takes them out of what arrived, where that tells of an error. Results are the caller's.
    pub(super) fn redact_inbound(&self, inbound: &mut Inbound) {
        match inbound {
            Inbound::RequestEnded { reason: Err(error), .. } | Inbound::Closed { reason: error, .. } => {
                self.redact(error);
            }
            Inbound::Message { message, .. } => {
                let secrets = self.secrets();
                if secrets.iter().any(|secret| message.as_str().contains(secret)) && is_error(message) {
                    let text = secrets
                        .iter()
                        .fold(message.as_str().to_owned(), |text, secret| text.replace(secret, "[redacted]"));
                    if let Ok(redacted) = RawJson::parse(text) {
                        *message = redacted;
                    }
                }
            }
            _ => {}
        }
    }

    fn secrets(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_error(message: &RawJson) -> bool {
    let messages = Message::parse(message.as_str()).unwrap_or_default();
    messages.iter().any(|message| matches!(message, Message::Response { outcome: Err(_), .. }))
}
