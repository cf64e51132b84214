//! Names of tools and ids of calls, made acceptable to a provider. The same input always gives the same output, so that
//! request bodies stay equal from one request to the next and prompt caches keep working.

use std::borrow::Cow;

use super::request::ToolSpec;
use crate::ordered_map::OrderedMap;

/// What a provider accepts as the id of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum IdRule {
    /// Letters, digits, `_` and `-`, at most 64: Anthropic.
    Word,
    /// Anything of at most 64 characters: OpenAI and those that follow it.
    Short,
    /// Exactly nine letters and digits: Mistral.
    Nine,
}

impl IdRule {
    /// The id as the provider accepts it. One that fits is unchanged; others get a suffix made of the whole id, so that
    /// different ids stay different.
    pub(super) fn apply<'id>(self, id: &'id str) -> Cow<'id, str> {
        let fits = match self {
            Self::Word => is_word(id),
            Self::Short => !id.is_empty() && id.chars().count() <= MAX_LENGTH,
            Self::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        };
        match self {
            _ if fits => Cow::Borrowed(id),
            Self::Word | Self::Short => Cow::Owned(mangled(id)),
            Self::Nine => Cow::Owned(letters(hash(id))),
        }
    }
}

/// A tool's name as providers accept it: letters, digits, `_` and `-`, at most 64, with no digit or `-` at the beginning.
pub(super) fn wire_tool_name(name: &str) -> Cow<'_, str> {
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    match (is_word(name), begins_well) {
        (true, true) => Cow::Borrowed(name),
        (_, true) => Cow::Owned(mangled(name)),
        (_, false) => Cow::Owned(mangled(&format!("tool_{name}"))),
    }
}

/// Nine letters and digits that differ for different texts.
pub(super) fn fingerprint(text: &str) -> String {
    letters(hash(text))
}

/// The way back from the name on the wire to the one that the tool is registered with.
#[derive(Debug, Default)]
pub(super) struct ToolNames(OrderedMap<String, String>);

impl ToolNames {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        let mangled = tools.iter().filter_map(|tool| match wire_tool_name(&tool.name) {
            Cow::Borrowed(_) => None,
            Cow::Owned(wire) => Some((wire, tool.name.clone())),
        });
        Self(mangled.collect())
    }

    pub(super) fn registered(&self, wire: String) -> String {
        self.0.get(&wire).cloned().unwrap_or(wire)
    }
}

/// What OpenAI and Anthropic allow for names, and the former for ids.
const MAX_LENGTH: usize = 64;

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_LENGTH && text.bytes().all(is_word_byte)
}

const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn mangled(text: &str) -> String {
    const KEPT: usize = 48;
    let replaced = text.chars().map(|character| match u8::try_from(character) {
        Ok(byte) if is_word_byte(byte) => character,
        _ => '_',
    });
    let mut result: String = replaced.take(KEPT).collect();
    result.push('_');
    result.push_str(&letters(hash(text)));
    result
}

/// FNV-1a: not for secrets, only to keep different texts different.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Nine letters and digits: 53 bits of a hash.
fn letters(hash: u64) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let digits = (0..9).scan(hash, |rest, _| {
        let digit = ALPHABET.get((*rest % 62) as usize).copied();
        *rest /= 62;
        digit
    });
    digits.map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::json::RawJson;

    #[test]
    fn ids_are_changed_only_where_they_must_and_stay_apart() {
        let long = "x".repeat(70);
        let ids = [
            "functions.write:0".to_owned(),
            "a\nb".to_owned(),
            format!("{long}1"),
            format!("{long}2"),
            "call_1".to_owned(),
        ];
        for rule in [IdRule::Word, IdRule::Short, IdRule::Nine] {
            let mapped: BTreeSet<_> = ids.iter().map(|id| rule.apply(id).into_owned()).collect();
            assert_eq!(mapped.len(), ids.len(), "{rule:?}");
            assert!(mapped.iter().all(|id| rule.apply(id) == id.as_str()), "what was made fits: {rule:?}");
        }
        assert_eq!(IdRule::Word.apply("call_1"), "call_1");
        assert_eq!(IdRule::Short.apply("functions.write:0"), "functions.write:0");
        assert_eq!(IdRule::Nine.apply("abcDEF123"), "abcDEF123");
    }

    #[test]
    fn names_find_their_way_back() {
        let spec = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: RawJson::parse("{}").unwrap(),
        };
        let mangled = ["files/read.txt", "7zip", "-x", "größe", "", "\u{1F980}"];
        let names = ToolNames::new(&mangled.map(spec));
        for name in mangled {
            let wire = wire_tool_name(name).into_owned();
            assert!(
                is_word(&wire) && !wire.starts_with(|first: char| first.is_ascii_digit() || first == '-'),
                "{wire}"
            );
            assert_eq!(names.registered(wire), name);
        }
        assert_eq!(names.registered("files_read".to_owned()), "files_read");
        assert_eq!(names.registered("unknown".to_owned()), "unknown");
    }
}
