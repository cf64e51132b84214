//! The events of a model that is a JavaScript function, read from JSON.

use crablet::json::Object;
use crablet::model::{ModelEvent, StopReason, Usage};

/// Reads one event of `src/js/function-model.ts`; `None` for what is none.
pub(crate) fn read_event(object: &Object<'_>) -> Option<ModelEvent> {
    let block = object.integer("block").and_then(|block| u32::try_from(block).ok());
    Some(match object.string("type")?.as_str() {
        "text-start" => ModelEvent::TextStart { block: block? },
        "text-delta" => ModelEvent::TextDelta { block: block?, text: object.string("text")? },
        "text-end" => ModelEvent::TextEnd { block: block?, replay: None },
        "reasoning-start" => ModelEvent::ReasoningStart { block: block? },
        "reasoning-delta" => ModelEvent::ReasoningDelta { block: block?, text: object.string("text")? },
        "reasoning-end" => ModelEvent::ReasoningEnd { block: block?, replay: None },
        "tool-input-start" => {
            ModelEvent::ToolInputStart { block: block?, id: object.string("id")?, name: object.string("name")? }
        }
        "tool-input-delta" => ModelEvent::ToolInputDelta { block: block?, json: object.string("json")? },
        "tool-input-end" => ModelEvent::ToolInputEnd { block: block?, replay: None },
        "usage" => ModelEvent::Usage(Usage::read(object)),
        "stop" => {
            let raw = object.string("reason");
            let reason = raw.as_deref().and_then(StopReason::from_name).unwrap_or_default();
            ModelEvent::Stop { reason, raw }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<ModelEvent> {
        read_event(&Object::parse(text).unwrap())
    }

    #[test]
    fn events_are_read() {
        assert_eq!(
            read(r#"{"type":"text-delta","block":2,"text":"hi"}"#),
            Some(ModelEvent::TextDelta { block: 2, text: "hi".into() })
        );
        assert_eq!(
            read(r#"{"type":"stop","reason":"tool-use"}"#),
            Some(ModelEvent::Stop { reason: StopReason::ToolUse, raw: Some("tool-use".into()) })
        );
        assert_eq!(read(r#"{"type":"text-delta","text":"no block"}"#), None);
        assert_eq!(read(r#"{"type":"from-the-future"}"#), None);
    }
}
