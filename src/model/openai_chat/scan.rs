//! The chunks of an answer that say one thing more, read without walking them.

use super::super::scanner::{Scalar, Scanner, Slot};
use super::calls::Piece;

/// What a chunk adds; texts are empty where it says nothing.
pub(super) struct ChatDelta {
    pub(super) reasoning: String,
    /// The member that the reasoning is in.
    pub(super) reasoning_member: Option<&'static str>,
    pub(super) content: String,
    pub(super) call: Option<Piece>,
}

#[derive(Default)]
struct Slots<'text> {
    content: Slot<'text>,
    reasoning_content: Slot<'text>,
    reasoning: Slot<'text>,
    has_calls: bool,
    call: Option<CallSlots<'text>>,
}

#[derive(Default)]
struct CallSlots<'text> {
    index: Slot<'text>,
    id: Slot<'text>,
    name: Slot<'text>,
    arguments: Slot<'text>,
    has_function: bool,
}

impl ChatDelta {
    /// Reads a chunk of one choice that is not over and counts nothing; `None` for all others.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(super) fn scan(payload: &str) -> Option<Self> {
        let mut slots = Slots::default();
        let (mut has_choices, mut has_delta) = (false, false);
        let mut scanner = Scanner::new(payload);
        scanner.object(|scanner, name| match name {
            "choices" if has_choices => None,
            "choices" => {
                has_choices = true;
                scanner.only_element(|scanner| {
                    scanner.object(|scanner, name| match name {
                        "delta" if has_delta => None,
                        "delta" => {
                            has_delta = true;
                            scanner.object(|scanner, name| slots.member(scanner, name))
                        }
                        "index" => matches!(scanner.scalar()?, Scalar::Other("0")).then_some(()),
                        "finish_reason" | "native_finish_reason" => nothing(scanner),
                        _ => scanner.outer(name),
                    })
                })
            }
            _ => scanner.outer(name),
        })?;
        scanner.end()?;
        if !has_delta {
            return None;
        }
        let named = slots.reasoning_content.text()?;
        let (member, reasoning) =
            if named.is_empty() { ("reasoning", slots.reasoning.text()?) } else { ("reasoning_content", named) };
        let reasoning_member = (!reasoning.is_empty()).then_some(member);
        let call = match slots.call {
            Some(call) => Some(call.piece()?),
            None => None,
        };
        Some(Self { reasoning, reasoning_member, content: slots.content.text()?, call })
    }
}

impl<'text> Slots<'text> {
    #[cfg_attr(crablet_small, optimize(speed))]
    fn member(&mut self, scanner: &mut Scanner<'text>, name: &str) -> Option<()> {
        match name {
            "content" => self.content.fill(scanner),
            "reasoning_content" => self.reasoning_content.fill(scanner),
            "reasoning" => self.reasoning.fill(scanner),
            "refusal" | "reasoning_text" => nothing(scanner),
            "tool_calls" if self.has_calls => None,
            "tool_calls" => {
                self.has_calls = true;
                if scanner.peek()? != b'[' {
                    return nothing(scanner);
                }
                let call = self.call.insert(CallSlots::default());
                scanner.only_element(|scanner| scanner.object(|scanner, name| call.member(scanner, name)))
            }
            _ => scanner.scalar().map(|_| ()),
        }
    }
}

impl<'text> CallSlots<'text> {
    #[cfg_attr(crablet_small, optimize(speed))]
    fn member(&mut self, scanner: &mut Scanner<'text>, name: &str) -> Option<()> {
        match name {
            "index" => self.index.fill(scanner),
            "id" => self.id.fill(scanner),
            "extra_content" => nothing(scanner),
            "function" if self.has_function => None,
            "function" => {
                self.has_function = true;
                scanner.object(|scanner, name| match name {
                    "name" => self.name.fill(scanner),
                    "arguments" => self.arguments.fill(scanner),
                    _ => scanner.scalar().map(|_| ()),
                })
            }
            _ => scanner.scalar().map(|_| ()),
        }
    }

    #[cfg_attr(crablet_small, optimize(speed))]
    fn piece(self) -> Option<Piece> {
        // Arguments that are no string are kept as they are written, which is the walk's business.
        self.arguments.written()?;
        Some(Piece {
            index: self.index.integer()?,
            id: self.id.text()?,
            name: self.name.text()?,
            arguments: self.arguments.text()?,
            replay: None,
        })
    }
}

/// A member that says nothing in a chunk that is only a delta.
fn nothing(scanner: &mut Scanner<'_>) -> Option<()> {
    matches!(scanner.scalar()?, Scalar::Other("null") | Scalar::Text("")).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunks_that_make_up_an_answer_are_scanned() {
        for (payload, reasoning, content, arguments) in [
            (
                r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":"a\n"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}"#,
                "",
                "a\n",
                None,
            ),
            (
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"h","tool_calls":null}}]}"#,
                "h",
                "",
                None,
            ),
            (r#"{"choices":[{"index":0,"delta":{"content":"","reasoning":"h"},"finish_reason":""}]}"#, "h", "", None),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"type":"function","function":{"arguments":"{\""}}]}}]}"#,
                "",
                "",
                Some("{\""),
            ),
        ] {
            let delta = ChatDelta::scan(payload).unwrap();
            assert_eq!((delta.reasoning.as_str(), delta.content.as_str()), (reasoning, content));
            assert_eq!(delta.call.as_ref().map(|call| call.arguments.as_str()), arguments);
        }
    }

    #[test]
    fn all_others_are_left_to_the_walk() {
        for payload in [
            r#"{"choices":[]}"#,
            r#"{"choices":[{"index":0}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"choices":null}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"citations":["u"]}"#,
            r#"{"choices":[{"delta":{"content":"a","content":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"text":"a"}]}}]}"#,
            r#"{"choices":[{"delta":{"refusal":"a"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"text":"a"}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":{}}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}},{"index":1}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"},"extra_content":{"google":1}}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"error":{"message":"m"}}]}"#,
        ] {
            assert!(ChatDelta::scan(payload).is_none(), "{payload}");
        }
    }
}
