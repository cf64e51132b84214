//! One level of a JSON value: the elements of an array, the members of an object.
//!
//! Each value is passed over by serde_json's reader, and only what stands between them is read here: asked for a map or a list, that
//! reader can tell of every other type that it met, numbers with their table of powers included, which is 5 KB of a module.

use std::borrow::Cow;

use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::string::read_string;
use crate::work;

/// The members of an object, each with its value as it is written.
pub(super) type Members<'text> = Vec<(Cow<'text, str>, &'text RawValue)>;

/// The elements of an array; `None` when it is none.
pub(crate) fn elements(text: &str) -> Option<Vec<&RawValue>> {
    let mut level = Level::begin(text, b'[')?;
    let mut elements = Vec::new();
    let mut is_open = level.is_there_one(b']')?;
    while is_open {
        elements.push(level.value()?);
        is_open = level.is_there_another(b']')?;
    }
    level.end()?;
    Some(elements)
}

/// The members of an object in the order of the text; `None` when it is none.
pub(super) fn members(text: &str) -> Option<Members<'_>> {
    let mut level = Level::begin(text, b'{')?;
    // Enough for every payload of a stream, so that reading one allocates once.
    let mut members = Vec::with_capacity(12);
    let mut is_open = level.is_there_one(b'}')?;
    while is_open {
        let name = name(level.value()?.get())?;
        level.take(b':')?;
        members.push((name, level.value()?));
        is_open = level.is_there_another(b'}')?;
    }
    level.end()?;
    Some(members)
}

/// A member's name, borrowed from the text unless it holds escapes.
fn name(json: &str) -> Option<Cow<'_, str>> {
    let written = json.strip_prefix('"')?.strip_suffix('"')?;
    if written.contains('\\') { read_string(json).map(Cow::Owned) } else { Some(Cow::Borrowed(written)) }
}

/// The place that has been reached within a level.
struct Level<'text> {
    text: &'text str,
    at: usize,
}

impl<'text> Level<'text> {
    fn begin(text: &'text str, bracket: u8) -> Option<Self> {
        work::count(text.len());
        let mut level = Self { text, at: 0 };
        level.take(bracket)?;
        Some(level)
    }

    /// Whether the level is not empty.
    fn is_there_one(&mut self, end: u8) -> Option<bool> {
        let is_over = self.peek()? == end;
        if is_over {
            self.at += 1;
        }
        Some(!is_over)
    }

    /// Whether another value follows the one before.
    fn is_there_another(&mut self, end: u8) -> Option<bool> {
        let mark = self.peek()?;
        self.at += 1;
        (mark == b',' || mark == end).then_some(mark == b',')
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        let is_there = self.peek()? == expected;
        self.at += 1;
        is_there.then_some(())
    }

    fn value(&mut self) -> Option<&'text RawValue> {
        let mut values = Deserializer::from_str(self.text.get(self.at..)?).into_iter();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }

    /// Nothing follows.
    fn end(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// The byte that comes next behind white space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    type Map<'text> = HashMap<String, &'text RawValue>;

    proptest! {
        /// What is nearly JSON, and JSON itself.
        #[test]
        fn a_level_is_read_as_serde_json_reads_it(
            text in r#"( |[\[\]{}:,"]|"a"|"a\\u00e9"|-?[01]\.?[0-9]?|e1|nul|true|\[\]|"b":|\{"a":1\}|\[1, 2\]){0,9}"#,
            shape in 0usize..3,
        ) {
            let text = match shape {
                0 => format!("[{text}]"),
                1 => format!(r#"{{"x":{text}}}"#),
                _ => text,
            };
            let texts = |values: Vec<&RawValue>| values.into_iter().map(|value| value.get().to_owned()).collect::<Vec<_>>();
            let expected = serde_json::from_str::<Vec<&RawValue>>(&text).ok();
            prop_assert_eq!(elements(&text).map(texts), expected.map(texts), "{}", &text);
            let expected = serde_json::from_str::<Map<'_>>(&text).ok();
            let read = members(&text).map(|members| members.into_iter().map(|(name, value)| (name.into_owned(), value)).collect());
            let texts = |map: Map<'_>| {
                let mut members: Vec<_> = map.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect();
                members.sort();
                members
            };
            prop_assert_eq!(read.map(texts), expected.map(texts), "{}", &text);
        }
    }
}
