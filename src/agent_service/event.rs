//! The events of a session behind subjects, as a client gets them.

use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::agent::{Event, EventKind};
use crate::error::Error;
use crate::json::{Object, RawJson};
use crate::model::{CallId, Message, MessageId, ToolResult, optional};

/// An event of a session behind subjects: what its runs show, and what the service says beside that.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// An event of a run.
    Run(Box<Event>),
    /// `input-accepted`: a worker has taken an input.
    InputAccepted {
        /// The input.
        input_id: String,
        /// Its type in JSON: `prompt`, `follow-up`, `steer`, `abort`, `approve` or `tool-result`.
        input_type: String,
        /// The id of a steered message or a follow-up that waits.
        message_id: Option<MessageId>,
    },
    /// `input-refused`: nothing can be done with an input.
    InputRefused {
        /// The input.
        input_id: String,
        /// Why.
        error: Error,
    },
    /// `session-restored`: another worker goes on, or the same one anew. What was shown before holds only as far as it is in
    /// here; calls without a result are worked on again.
    SessionRestored {
        /// Whether a run is to be gone on with.
        is_open: bool,
        /// The history from the last prompt on.
        messages: Vec<Arc<Message>>,
        /// The results of the open step that are saved.
        results: Vec<ToolResult>,
    },
    /// `session-failed`: a run is open that no worker can go on with, since its agent cannot be made. It is gone on with when
    /// the next input comes.
    SessionFailed {
        /// What every attempt ended with.
        error: Error,
    },
    /// `event-too-long`: an event was longer than a message may be. What it told of is in the session.
    EventTooLong {
        /// The type of that event.
        of: String,
        /// How many bytes it has.
        bytes: u64,
        /// The call that it told of.
        call_id: Option<CallId>,
    },
    /// `events-missed`: events before this one are gone, by the limits of the stream. Said by the client.
    EventsMissed,
    /// An event of a type that this version does not know.
    Other {
        /// The type.
        name: String,
        /// The whole event.
        json: RawJson,
    },
}

impl SessionEvent {
    /// Reads an event; `None` when it has no type.
    pub fn read(text: &str) -> Option<Self> {
        let object = Object::parse(text).ok()?;
        let name = object.string("type")?;
        let known = match name.as_str() {
            "input-accepted" => object.string("inputId").map(|input_id| Self::InputAccepted {
                input_id,
                input_type: object.string("inputType").unwrap_or_default(),
                message_id: object.string("messageId").map(MessageId::new),
            }),
            "input-refused" => {
                object.string("inputId").map(|input_id| Self::InputRefused { input_id, error: error_of(&object) })
            }
            "session-restored" => Some(Self::SessionRestored {
                is_open: object.boolean("isOpen").unwrap_or(false),
                messages: object
                    .objects("messages")
                    .iter()
                    .filter_map(|one| Message::read(one).ok().map(Arc::new))
                    .collect(),
                results: object.objects("results").iter().filter_map(|one| ToolResult::read(one).ok()).collect(),
            }),
            "session-failed" => Some(Self::SessionFailed { error: error_of(&object) }),
            "event-too-long" => Some(Self::EventTooLong {
                of: object.string("of").unwrap_or_default(),
                bytes: object.integer("bytes").unwrap_or_default(),
                call_id: object.string("callId").map(CallId::new),
            }),
            "events-missed" => Some(Self::EventsMissed),
            _ => Event::read(&object).map(|event| Self::Run(Box::new(event))),
        };
        known.or_else(|| Some(Self::Other { name, json: RawJson::parse(text).ok()? }))
    }

    /// What happened, when it is an event of a run.
    pub fn kind(&self) -> Option<&EventKind> {
        match self {
            Self::Run(event) => Some(&event.kind),
            _ => None,
        }
    }

    /// The `type` of the JSON form.
    pub fn name(&self) -> &str {
        match self {
            Self::Run(event) => event.kind.name(),
            Self::InputAccepted { .. } => "input-accepted",
            Self::InputRefused { .. } => "input-refused",
            Self::SessionRestored { .. } => "session-restored",
            Self::SessionFailed { .. } => "session-failed",
            Self::EventTooLong { .. } => "event-too-long",
            Self::EventsMissed => "events-missed",
            Self::Other { name, .. } => name,
        }
    }
}

impl From<Event> for SessionEvent {
    fn from(event: Event) -> Self {
        Self::Run(Box::new(event))
    }
}

impl Serialize for SessionEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Run(event) => return event.serialize(serializer),
            Self::Other { json, .. } => return json.serialize(serializer),
            _ => {}
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.name())?;
        match self {
            Self::InputAccepted { input_id, input_type, message_id } => {
                map.serialize_entry("inputId", input_id)?;
                map.serialize_entry("inputType", input_type)?;
                optional(&mut map, "messageId", message_id.as_ref())?;
            }
            Self::InputRefused { input_id, error } => {
                map.serialize_entry("inputId", input_id)?;
                map.serialize_entry("error", error)?;
            }
            Self::SessionRestored { is_open, messages, results } => {
                map.serialize_entry("isOpen", is_open)?;
                map.serialize_entry("messages", messages)?;
                map.serialize_entry("results", results)?;
            }
            Self::SessionFailed { error } => map.serialize_entry("error", error)?,
            Self::EventTooLong { of, bytes, call_id } => {
                map.serialize_entry("of", of)?;
                map.serialize_entry("bytes", bytes)?;
                optional(&mut map, "callId", call_id.as_ref())?;
            }
            Self::Run(_) | Self::Other { .. } | Self::EventsMissed => {}
        }
        map.end()
    }
}

fn error_of(object: &Object<'_>) -> Error {
    Error::read(&object.object("error").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    #[test]
    fn what_the_service_says_is_written_and_read_as_the_npm_package_does() {
        for text in [
            r#"{"type":"input-accepted","inputId":"i","inputType":"prompt"}"#,
            r#"{"type":"input-accepted","inputId":"i","inputType":"steer","messageId":"m"}"#,
            r#"{"type":"input-refused","inputId":"i","error":{"kind":"invalid-input","message":"no","retryable":false}}"#,
            r#"{"type":"session-restored","isOpen":true,"messages":[{"id":"m","role":"user","content":[]}],"results":[]}"#,
            r#"{"type":"session-failed","error":{"kind":"network","message":"no","retryable":true}}"#,
            r#"{"type":"event-too-long","of":"tool-result","bytes":7,"callId":"c"}"#,
            r#"{"type":"events-missed"}"#,
            r#"{"type":"from-the-future","some":{"b":1,"a":2}}"#,
            r#"{"type":"run-start","runId":"r","step":0}"#,
        ] {
            assert_eq!(serde_json::to_string(&SessionEvent::read(text).unwrap()).unwrap(), text);
        }
        assert_eq!(SessionEvent::read("[]"), None);
    }
}
