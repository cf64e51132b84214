//! JSON that is still being written: the largest part of it that is certain.

use super::RawJson;

/// Makes a whole value of the beginning of one, as a model streams it. `None` when nothing of it is certain yet, or when
/// it is no JSON.
///
/// Open strings, objects and arrays are closed where the text ends. What could still become something else is left out:
/// a member without its value, a number without what follows it, half a literal, half an escape. Costs one pass over the
/// text, and only when it is called.
pub fn complete(text: &str) -> Option<RawJson> {
    crate::work::count(text.len());
    let mut reader = Reader::default();
    for (offset, character) in text.char_indices() {
        reader.step(offset, character)?;
    }
    let certain = reader.certain?;
    let mut completed = String::with_capacity(certain.length + reader.open.len() + 1);
    completed.push_str(text.get(..certain.length)?);
    if certain.within_string {
        completed.push('"');
    }
    completed.extend(reader.open.iter().rev().map(|container| container.closer()));
    RawJson::parse(completed).ok()
}

/// The deepest nesting; the same as that of the parser that reads the whole value later.
const MAX_DEPTH: usize = 128;

#[derive(Default)]
struct Reader {
    open: Vec<Container>,
    state: State,
    /// Up to where the text is certain; behind it, only the open containers must be closed.
    certain: Option<Certain>,
}

#[derive(Clone, Copy)]
struct Certain {
    length: usize,
    within_string: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Container {
    Object,
    Array,
}

impl Container {
    const fn closer(self) -> char {
        match self {
            Self::Object => '}',
            Self::Array => ']',
        }
    }
}

#[derive(Clone, Copy, Default)]
enum State {
    /// A value must follow, or the end of an array that is still empty.
    #[default]
    Value,
    /// A key must follow, or the end of an object that is still empty.
    Key,
    Colon,
    /// A comma or the end of the container must follow.
    Next,
    String(Text),
    /// A number or a literal.
    Scalar,
}

#[derive(Clone, Copy)]
struct Text {
    is_key: bool,
    escape: Escape,
}

#[derive(Clone, Copy)]
enum Escape {
    None,
    /// Right after a backslash.
    Begun,
    /// This many hexadecimal digits are still to come.
    Digits {
        left: u8,
        value: u16,
    },
    /// The first half of a surrogate pair is complete; the second must follow.
    Pair,
}

impl Reader {
    fn step(&mut self, offset: usize, character: char) -> Option<()> {
        if let State::String(text) = self.state {
            return self.string(offset, character, text);
        }
        if let State::Scalar = self.state {
            if !matches!(character, ',' | '}' | ']' | ' ' | '\n' | '\r' | '\t') {
                return Some(());
            }
            self.value_ended(offset);
        }
        match (self.state, character) {
            (_, ' ' | '\n' | '\r' | '\t') => {}
            (State::Value, '{') => self.opened(offset, Container::Object, State::Key)?,
            (State::Value, '[') => self.opened(offset, Container::Array, State::Value)?,
            (State::Value, '"') => {
                self.certain = Some(Certain { length: offset + 1, within_string: true });
                self.state = State::String(Text { is_key: false, escape: Escape::None });
            }
            (State::Key, '"') => self.state = State::String(Text { is_key: true, escape: Escape::None }),
            (State::Colon, ':') => self.state = State::Value,
            (State::Next, ',') => {
                self.state = match self.open.last()? {
                    Container::Object => State::Key,
                    Container::Array => State::Value,
                };
            }
            (State::Next | State::Key, '}') if self.open.last() == Some(&Container::Object) => self.closed(offset),
            (State::Next | State::Value, ']') if self.open.last() == Some(&Container::Array) => self.closed(offset),
            (State::Value, '-' | '0'..='9' | 't' | 'f' | 'n') => self.state = State::Scalar,
            _ => return None,
        }
        Some(())
    }

    fn string(&mut self, offset: usize, character: char, text: Text) -> Option<()> {
        let escape = match (text.escape, character) {
            (Escape::None, '"') => {
                if text.is_key {
                    self.state = State::Colon;
                } else {
                    self.value_ended(offset + 1);
                }
                return Some(());
            }
            (Escape::None | Escape::Pair, '\\') => Escape::Begun,
            (Escape::None, _) => Escape::None,
            (Escape::Pair, _) => return None,
            (Escape::Begun, 'u') => Escape::Digits { left: 4, value: 0 },
            (Escape::Begun, _) => Escape::None,
            (Escape::Digits { left, value }, _) => {
                let digit = character.to_digit(16)?;
                let value = (value << 4) | u16::try_from(digit).ok()?;
                match (left, value) {
                    (1, 0xd800..=0xdbff) => Escape::Pair,
                    (1, _) => Escape::None,
                    _ => Escape::Digits { left: left - 1, value },
                }
            }
        };
        self.state = State::String(Text { escape, ..text });
        if !text.is_key && matches!(escape, Escape::None) {
            self.certain = Some(Certain { length: offset + character.len_utf8(), within_string: true });
        }
        Some(())
    }

    fn opened(&mut self, offset: usize, container: Container, state: State) -> Option<()> {
        if self.open.len() == MAX_DEPTH {
            return None;
        }
        self.open.push(container);
        self.certain = Some(Certain { length: offset + 1, within_string: false });
        self.state = state;
        Some(())
    }

    fn closed(&mut self, offset: usize) {
        self.open.pop();
        self.value_ended(offset + 1);
    }

    fn value_ended(&mut self, length: usize) {
        self.certain = Some(Certain { length, within_string: false });
        self.state = State::Next;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn completed(text: &str) -> Option<String> {
        complete(text).map(|raw| raw.as_str().to_owned())
    }

    #[test]
    fn what_is_open_is_closed_and_what_is_uncertain_is_left_out() {
        for (text, expected) in [
            ("", None),
            ("{", Some("{}")),
            (r#"{"a"#, Some("{}")),
            (r#"{"a":"#, Some("{}")),
            (r#"{"a":"b"#, Some(r#"{"a":"b"}"#)),
            (r#"{"a":"b\"#, Some(r#"{"a":"b"}"#)),
            (r#"{"a":"\ud83d"#, Some(r#"{"a":""}"#)),
            (r#"{"a":"\ud83d\ude00"#, Some(r#"{"a":"\ud83d\ude00"}"#)),
            (r#"{"a":"b","c"#, Some(r#"{"a":"b"}"#)),
            (r#"{"a":12"#, Some("{}")),
            (r#"{"a":12,"#, Some(r#"{"a":12}"#)),
            (r#"{"a":[1,tru"#, Some(r#"{"a":[1]}"#)),
            (r#"[{"a":null }"#, Some(r#"[{"a":null }]"#)),
            (r#""é"#, Some(r#""é""#)),
            ("nonsense", None),
            ("{]", None),
        ] {
            assert_eq!(completed(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        assert_eq!(completed(&"[".repeat(MAX_DEPTH + 1)), None);
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            ".{0,6}".prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Into::into),
                prop::collection::btree_map(".{0,3}", inner, 0..3)
                    .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_beginning_of_a_document_completes(document in prop::collection::vec(value(), 0..4)) {
            let text = serde_json::to_string(&document).unwrap();
            for (offset, _) in text.char_indices().skip(1) {
                prop_assert!(complete(&text[..offset]).is_some(), "{}", &text[..offset]);
            }
            prop_assert_eq!(completed(&text), Some(text));
        }

        #[test]
        fn no_text_panics(text in r#"[\[\]{}",:\\u0-9a-fé ]{0,40}"#) {
            complete(&text);
        }
    }
}
