//! The deltas of an answer, read without walking them.

use super::super::scanner::{Scanner, Slot};

/// More text of one content block.
pub(super) struct BlockDelta<'text> {
    pub(super) index: u64,
    /// The delta's type, one of those that [`text_member`] knows.
    pub(super) kind: &'text str,
    pub(super) text: String,
}

impl<'text> BlockDelta<'text> {
    /// Reads a payload that is such a delta and nothing else; `None` for all others.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(super) fn scan(payload: &'text str) -> Option<Self> {
        let (mut kind, mut index) = (Slot::default(), Slot::default());
        let (mut delta_kind, mut text, mut thinking, mut json) = Default::default();
        let mut has_delta = false;
        let mut scanner = Scanner::new(payload);
        scanner.object(|scanner, name| match name {
            "type" => kind.fill(scanner),
            "index" => index.fill(scanner),
            "delta" if has_delta => None,
            "delta" => {
                has_delta = true;
                scanner.object(|scanner, name| {
                    let slot: &mut Slot<'text> = match name {
                        "type" => &mut delta_kind,
                        "text" => &mut text,
                        "thinking" => &mut thinking,
                        "partial_json" => &mut json,
                        _ => return scanner.scalar().map(|_| ()),
                    };
                    slot.fill(scanner)
                })
            }
            _ => scanner.outer(name),
        })?;
        scanner.end()?;
        if kind.written() != Some("content_block_delta") {
            return None;
        }
        let kind = delta_kind.written()?;
        let text = match text_member(kind)? {
            "text" => text,
            "thinking" => thinking,
            _ => json,
        };
        Some(Self { index: index.integer()?.unwrap_or_default(), kind, text: text.text()? })
    }
}

/// The member that holds the text of the deltas of this type; `None` for those that hold more than text.
pub(super) fn text_member(kind: &str) -> Option<&'static str> {
    match kind {
        "text_delta" => Some("text"),
        "thinking_delta" => Some("thinking"),
        "input_json_delta" => Some("partial_json"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deltas_that_make_up_an_answer_are_scanned() {
        for (payload, expected) in [
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\nb"}}"#,
                (0, "text_delta", "a\nb"),
            ),
            (
                r#"{"type": "content_block_delta", "index": 12, "delta": {"type": "input_json_delta", "partial_json": "{\""} }"#,
                (12, "input_json_delta", "{\""),
            ),
            (
                r#"{"delta":{"thinking":"h","type":"thinking_delta","estimated_tokens":7},"type":"content_block_delta"}"#,
                (0, "thinking_delta", "h"),
            ),
        ] {
            let delta = BlockDelta::scan(payload).unwrap();
            assert_eq!((delta.index, delta.kind, delta.text.as_str()), expected);
        }
    }

    #[test]
    fn all_others_are_left_to_the_walk() {
        for payload in [
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_delta","index":0}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","text":"b"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":null,"delta":{"type":"text_delta","text":"b"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"b"},"error":{"message":"m"}}"#,
            r#"{"type":"content_block_delta","index":"1","delta":{"type":"text_delta","text":"b"}}"#,
        ] {
            assert!(BlockDelta::scan(payload).is_none(), "{payload}");
        }
    }
}
