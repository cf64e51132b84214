//! The conversation rebuilt from events alone, as somebody does who sees nothing else.

use std::collections::HashMap;

use crablet::agent::{BlockId, Event, EventKind};
use crablet::model::{Body, CallId};

use crate::harness::in_short;

/// The messages in short, as the harness writes them.
pub(crate) fn transcript(events: &[Event]) -> Vec<String> {
    let mut messages = Vec::new();
    let mut step = Step::default();
    for event in events {
        match &event.kind {
            EventKind::MessageAdded(message) => messages.push(in_short(message)),
            EventKind::StepStart | EventKind::StepRetry { .. } => step = Step::default(),
            EventKind::TextStart(id) => step.blocks.push(Block::Text(*id, String::new())),
            EventKind::TextDelta(id, delta) => step.append(*id, delta),
            EventKind::ToolInputStart { call_id, .. } => step.blocks.push(Block::Call(call_id.clone())),
            EventKind::ToolResult(result) => {
                let outcome = if result.is_error { "error" } else { "ok" };
                step.results.insert(result.call_id.clone(), format!("{} {outcome}", result.call_id));
            }
            EventKind::StepEnd { message, .. } => {
                if matches!(&message.body, Body::Assistant(assistant) if !assistant.content.is_empty()) {
                    messages.push(in_short(message));
                }
                messages.extend(step.tool_message());
                step = Step::default();
            }
            // A step that was cut short has no end of its own: its message is what its blocks say.
            EventKind::RunEnd(_) => {
                messages.extend(step.cut_message());
                messages.extend(step.tool_message());
                step = Step::default();
            }
            _ => {}
        }
    }
    messages
}

#[derive(Default)]
struct Step {
    blocks: Vec<Block>,
    results: HashMap<CallId, String>,
}

enum Block {
    Text(BlockId, String),
    Call(CallId),
}

impl Step {
    fn append(&mut self, id: BlockId, delta: &str) {
        for block in &mut self.blocks {
            if let Block::Text(own, text) = block
                && *own == id
            {
                text.push_str(delta);
            }
        }
    }

    fn cut_message(&self) -> Option<String> {
        let parts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(_, text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Block::Call(call_id) => self.results.contains_key(call_id).then(|| format!("call {call_id}")),
        });
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| format!("assistant({})", parts.join("; ")))
    }

    fn tool_message(&self) -> Option<String> {
        let results = self.blocks.iter().filter_map(|block| match block {
            Block::Call(call_id) => self.results.get(call_id).cloned(),
            Block::Text(..) => None,
        });
        let results: Vec<String> = results.collect();
        (!results.is_empty()).then(|| format!("tool({})", results.join("; ")))
    }
}
