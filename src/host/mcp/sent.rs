use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(not(target_arch = "wasm32"))]
use serde_json::Value;

use crate::error::Error;
use crate::json::RawJson;
use crate::jsonrpc::Message;
use crate::mcp::transport::Inbound;
use crate::model::{HttpRequest, secrets_of_headers, secrets_of_url};
use crate::redaction::{SHORTEST_SECRET, redacted};

/// The most secrets of one connection that are looked for: tokens are renewed, and an answer is to one of the last requests.
const MAX_SECRETS: usize = 32;

/// The keys and tokens that a connection's last requests carried. Servers repeat what they refuse, and errors must not.
#[derive(Clone, Default)]
pub(super) struct Sent(Arc<Mutex<Vec<String>>>);

impl Sent {
    /// Remembers what this request carries.
    pub(super) fn remember(&self, request: &HttpRequest) {
        let mut secrets = self.secrets();
        for secret in [secrets_of_headers(&request.headers), secrets_of_url(&request.url)].concat() {
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
                if !secrets.is_empty()
                    && is_error(message)
                    && let Some(clean) = redacted_message(message, &secrets)
                {
                    *message = clean;
                }
            }
            _ => {}
        }
    }

    fn secrets(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wasm module, which has no room for more, looks for secrets without parsing.
#[cfg(target_arch = "wasm32")]
fn redacted_message(message: &RawJson, secrets: &[String]) -> Option<RawJson> {
    RawJson::parse(redacted(message.as_str(), secrets)?).ok()
}

#[cfg(not(target_arch = "wasm32"))]
fn redacted_message(message: &RawJson, secrets: &[String]) -> Option<RawJson> {
    let mut value = message.read().ok()?;
    redact_texts(&mut value, secrets).then(|| RawJson::parse(value.to_string()).ok())?
}

/// Cleans every text, and says whether there was something to clean.
#[cfg(not(target_arch = "wasm32"))]
fn redact_texts(value: &mut Value, secrets: &[String]) -> bool {
    match value {
        Value::String(text) => redacted(text, secrets).map(|clean| *text = clean).is_some(),
        Value::Array(items) => items.iter_mut().fold(false, |found, item| redact_texts(item, secrets) | found),
        Value::Object(members) => {
            members.values_mut().fold(false, |found, member| redact_texts(member, secrets) | found)
        }
        _ => false,
    }
}

/// Looks for the word first, since most messages are none and some are large.
fn is_error(message: &RawJson) -> bool {
    if !message.as_str().contains("\"error\"") {
        return false;
    }
    let messages = Message::parse(message.as_str()).unwrap_or_default();
    messages.iter().any(|message| matches!(message, Message::Response { outcome: Err(_), .. }))
}
