//! Events in the form in which they cross to JavaScript: one text with all deltas, one table that says how to cut it, and
//! the other events as JSON.

use crablet::agent::{Event, EventKind};

/// The events of one wake-up. `BatchDecoder` in `src/js/batch.ts` is the inverse.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Batch {
    /// The text of all deltas, joined.
    pub(crate) text: String,
    /// `[kind, block, length]` for each event, in order. The length is in UTF-16 units, which is how JavaScript cuts.
    pub(crate) table: Vec<u32>,
    /// The other events as the JSON text of a list; `None` when there are none.
    pub(crate) others: Option<String>,
}

impl Batch {
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(crate) fn encode(events: &[Event]) -> Self {
        let mut batch = Self { table: Vec::with_capacity(events.len() * 3), ..Self::default() };
        let mut others = Vec::new();
        for event in events {
            match &event.kind {
                EventKind::TextDelta(block, delta) => batch.delta(TEXT, block.0, delta),
                EventKind::ReasoningDelta(block, delta) => batch.delta(REASONING, block.0, delta),
                EventKind::ToolInputDelta(block, delta) => batch.delta(TOOL_INPUT, block.0, delta),
                _ => batch.other(event, &mut others),
            }
        }
        if !others.is_empty() {
            others.push(b']');
            batch.others = String::from_utf8(others).ok();
        }
        batch
    }

    #[cfg_attr(crablet_small, optimize(speed))]
    fn delta(&mut self, kind: u32, block: u32, delta: &str) {
        let length = if delta.is_ascii() { delta.len() } else { delta.encode_utf16().count() };
        self.text.push_str(delta);
        self.table.extend([kind, block, u32::try_from(length).unwrap_or(u32::MAX)]);
    }

    /// Writes an event behind the others, since a copy of an event can be as large as an answer.
    fn other(&mut self, event: &Event, others: &mut Vec<u8>) {
        let before = others.len();
        others.push(if before == 0 { b'[' } else { b',' });
        // Writing an event fails only where a map has keys that are not text, and no event has one.
        if serde_json::to_writer(&mut *others, event).is_err() {
            others.truncate(before);
            return;
        }
        self.table.extend([OTHER, 0, 0]);
    }
}

const OTHER: u32 = 0;
const TEXT: u32 = 1;
const REASONING: u32 = 2;
const TOOL_INPUT: u32 = 3;

#[cfg(test)]
mod tests {
    use crablet::agent::{BlockId, RunId};

    use super::*;

    fn event(kind: EventKind) -> Event {
        Event { run_id: RunId("r".into()), step: 0, kind }
    }

    #[test]
    fn the_order_of_deltas_and_others_is_kept() {
        let batch = Batch::encode(&[
            event(EventKind::TextStart(BlockId(4))),
            event(EventKind::TextDelta(BlockId(4), "ab".into())),
            event(EventKind::ReasoningDelta(BlockId(5), "c".into())),
            event(EventKind::TextEnd(BlockId(4))),
        ]);
        assert_eq!(batch.text, "abc");
        assert_eq!(batch.table, [OTHER, 0, 0, TEXT, 4, 2, REASONING, 5, 1, OTHER, 0, 0]);
        assert_eq!(
            batch.others.as_deref(),
            Some(
                r#"[{"type":"text-start","runId":"r","step":0,"id":"4"},{"type":"text-end","runId":"r","step":0,"id":"4"}]"#
            )
        );
    }

    #[test]
    fn lengths_are_utf16_units() {
        let deltas = ["a", "é", "𝄞🦀", "日本"];
        let events: Vec<_> =
            deltas.iter().map(|delta| event(EventKind::TextDelta(BlockId(0), (*delta).into()))).collect();
        let batch = Batch::encode(&events);
        let units: Vec<u16> = batch.text.encode_utf16().collect();
        let mut position = 0;
        for (row, delta) in batch.table.chunks(3).zip(deltas) {
            let end = position + row[2] as usize;
            assert_eq!(String::from_utf16(&units[position..end]).unwrap(), delta);
            position = end;
        }
        assert_eq!(position, units.len());
        assert_eq!(batch.others, None);
    }
}
