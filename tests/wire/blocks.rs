//! The order that the events of an answer keep.

use std::collections::BTreeSet;

use crablet::model::ModelEvent;

/// What is out of order: blocks begin once, in the order of their numbers, change and end only while they are open, and are
/// all ended when the answer succeeds, which it does or does not once, at its end.
pub(crate) fn disorder(events: &[ModelEvent]) -> Option<String> {
    let mut open = BTreeSet::new();
    let mut next = 0;
    for (at, event) in events.iter().enumerate() {
        let is_in_order = match event {
            ModelEvent::TextStart { block }
            | ModelEvent::ReasoningStart { block }
            | ModelEvent::ToolInputStart { block, .. } => {
                let is_next = *block >= next;
                next = *block + 1;
                open.insert(*block) && is_next
            }
            ModelEvent::TextDelta { block, text } | ModelEvent::ReasoningDelta { block, text } => {
                open.contains(block) && !text.is_empty()
            }
            ModelEvent::ToolInputDelta { block, json } => open.contains(block) && !json.is_empty(),
            ModelEvent::TextEnd { block, .. }
            | ModelEvent::ReasoningEnd { block, .. }
            | ModelEvent::ToolInputEnd { block, .. } => open.remove(block),
            ModelEvent::Stop { .. } => at + 1 == events.len() && open.is_empty(),
            ModelEvent::Failed(_) => at + 1 == events.len(),
            _ => true,
        };
        if !is_in_order {
            return Some(format!("event {at}: {event:?}"));
        }
    }
    let has_end = events.last().is_some_and(ModelEvent::is_last);
    (!has_end).then(|| "there is no last event".to_owned())
}
