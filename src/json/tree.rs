use super::level::elements;
use super::string::quoted;
use super::{FromJson, MAX_VALUE_DEPTH, Object, read_string};
use crate::ordered_map::OrderedMap;

/// A JSON value as a tree, for what changes a value or looks at it from several sides. Everything else stays text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Boolean(bool),
    /// As it was written.
    Number(String),
    Text(String),
    List(Vec<Self>),
    Object(Members),
}

/// The members of an object by their names.
pub(crate) type Members = OrderedMap<String, Tree>;

impl Tree {
    /// Reads the text of a JSON value, without spaces around it.
    ///
    /// # Errors
    ///
    /// What about it cannot be read.
    pub(crate) fn read(json: &str) -> Result<Self, &'static str> {
        Self::read_within(json, MAX_VALUE_DEPTH)
    }

    fn read_within(json: &str, depth: usize) -> Result<Self, &'static str> {
        let depth = depth.checked_sub(1).ok_or("it is nested too deeply")?;
        Ok(match json.as_bytes().first() {
            Some(b'{') => {
                let mut members = Vec::new();
                for (name, value) in Object::parse(json).map_err(|_| NOT_JSON)?.iter() {
                    members.push((name.to_owned(), Self::read_within(value.get(), depth)?));
                }
                Self::Object(OrderedMap::of_many(members))
            }
            Some(b'[') => {
                let mut list = Vec::new();
                for value in elements(json).ok_or(NOT_JSON)? {
                    list.push(Self::read_within(value.get(), depth)?);
                }
                Self::List(list)
            }
            Some(b'"') => Self::Text(read_string(json).ok_or(NOT_JSON)?),
            Some(b't') => Self::Boolean(true),
            Some(b'f') => Self::Boolean(false),
            Some(b'n') => Self::Null,
            _ => {
                f64::from_json(json).ok_or("a number in it is out of range")?;
                Self::Number(json.to_owned())
            }
        })
    }

    /// The value as JSON, with the members of objects in the order of their names.
    pub(crate) fn to_json(&self) -> String {
        let mut json = String::new();
        self.write(&mut json);
        json
    }

    fn write(&self, json: &mut String) {
        match self {
            Self::Null => json.push_str("null"),
            Self::Boolean(true) => json.push_str("true"),
            Self::Boolean(false) => json.push_str("false"),
            Self::Number(number) => json.push_str(number),
            Self::Text(text) => json.push_str(&quoted(text)),
            Self::List(elements) => {
                let mut before = '[';
                for element in elements {
                    json.push(std::mem::replace(&mut before, ','));
                    element.write(json);
                }
                json.push_str(if before == '[' { "[]" } else { "]" });
            }
            Self::Object(members) => {
                let mut before = '{';
                for (name, value) in members.iter() {
                    json.push(std::mem::replace(&mut before, ','));
                    json.push_str(&quoted(name));
                    json.push(':');
                    value.write(json);
                }
                json.push_str(if before == '{' { "{}" } else { "}" });
            }
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// A member, when this is an object that has it.
    #[cfg(any(feature = "mcp", feature = "openai-chat"))]
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        if let Self::Object(members) = self { members.get(name) } else { None }
    }

    /// The value that a JSON pointer leads to (RFC 6901).
    pub(crate) fn at(&self, pointer: &str) -> Option<&Self> {
        let Some(path) = pointer.strip_prefix('/') else { return pointer.is_empty().then_some(self) };
        path.split('/').try_fold(self, |value, name| match value {
            Self::Object(members) => members.get(&name.replace("~1", "/").replace("~0", "~")),
            Self::List(elements) => elements.get(usize::from_json(name)?),
            _ => None,
        })
    }
}

/// Anything but `null`.
impl FromJson for Tree {
    fn from_json(text: &str) -> Option<Self> {
        Self::read(text).ok().filter(|value| *value != Self::Null)
    }
}

const NOT_JSON: &str = "it is not JSON";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::hash_map("[a-c~/\"é]{0,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again(value in value()) {
            let json = value.to_string();
            prop_assert_eq!(Tree::read(&json).unwrap().to_json(), json);
        }

        #[test]
        fn pointers_lead_where_they_lead_in_serde_json(value in value(), pointer in "(/([a-c0-2]|~0|~1){0,2}){0,3}") {
            let tree = Tree::read(&value.to_string()).unwrap();
            prop_assert_eq!(tree.at(&pointer).map(Tree::to_json), value.pointer(&pointer).map(Value::to_string));
        }
    }

    #[test]
    fn members_are_in_the_order_of_their_names_and_the_last_of_equal_ones_counts() {
        assert_eq!(Tree::read(r#"{"b": 1.50, "a": [ ], "b": {}}"#).unwrap().to_json(), r#"{"a":[],"b":{}}"#);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        assert_eq!(Tree::read("1e999"), Err("a number in it is out of range"));
        let deep = |levels: usize| Tree::read(&["[".repeat(levels), "]".repeat(levels)].concat()).map(drop);
        assert_eq!(deep(MAX_VALUE_DEPTH), Ok(()));
        assert_eq!(deep(100_000), Err("it is nested too deeply"));
        assert_eq!(Tree::read(&json!("é\u{1}").to_string()).unwrap().as_text(), Some("é\u{1}"));
    }
}
