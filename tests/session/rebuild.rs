//! The conversation rebuilt from events alone, as somebody does who sees nothing else.

use std::collections::HashMap;

use crablet::agent::{Event, EventKind};
use crablet::model::{Body, CallId, Message};

use crate::harness::in_short;

/// The messages in short, as the harness writes them.
pub(crate) fn transcript(events: &[Event]) -> Vec<String> {
    let mut messages = Vec::new();
    let mut results = HashMap::new();
    for event in events {
        match &event.kind {
            EventKind::MessageAdded(message) => messages.push(in_short(message)),
            EventKind::StepStart | EventKind::StepRetry { .. } => results.clear(),
            EventKind::ToolResult(result) => {
                let outcome = if result.is_error { "error" } else { "ok" };
                results.insert(result.call_id.clone(), format!("{} {outcome}", result.call_id));
            }
            EventKind::StepEnd { message, .. } => messages.extend(step(message, &results)),
            EventKind::RunEnd(end) => {
                messages.extend(end.message.iter().flat_map(|message| step(message, &results)));
            }
            _ => {}
        }
    }
    messages
}

/// An answer and the results of its calls. An answer without content is not kept.
fn step(message: &Message, results: &HashMap<CallId, String>) -> Vec<String> {
    let Body::Assistant(answer) = &message.body else { panic!("a step ends with an answer") };
    if answer.content.is_empty() {
        return Vec::new();
    }
    let results: Vec<&str> = answer.tool_calls().map(|call| results[&call.call_id].as_str()).collect();
    let results = (!results.is_empty()).then(|| format!("tool({})", results.join("; ")));
    std::iter::once(in_short(message)).chain(results).collect()
}
