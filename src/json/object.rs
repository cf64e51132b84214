use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::level::{Members, elements, members};
use super::string::read_string;
use super::{FromJson, RawJson};

/// The members of a JSON object, each left as text until it is asked for.
///
/// Reading this way is tolerant (unknown members are skipped, a member of another type reads as absent) and keeps the
/// text of what is stored. Of repeated keys the last one counts, as in JavaScript.
#[derive(Debug, Default)]
pub struct Object<'text> {
    members: Members<'text>,
}

impl<'text> Object<'text> {
    /// Reads the outer level of an object.
    ///
    /// # Errors
    ///
    /// When the text is not one valid JSON object.
    pub fn parse(text: &'text str) -> Result<Self, serde_json::Error> {
        members(text).map(|members| Self { members }).ok_or_else(|| problem(text))
    }

    /// Reads an array of objects; `None` when it is none, or an element is no object.
    pub fn parse_all(text: &'text str) -> Option<Vec<Self>> {
        let mut objects = Vec::new();
        for element in elements(text)? {
            objects.push(Self { members: members(element.get())? });
        }
        Some(objects)
    }

    /// The members in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'text RawValue)> {
        self.members.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// A member, whatever its type.
    pub fn get(&self, name: &str) -> Option<&'text RawValue> {
        self.members.iter().rev().find(|(candidate, _)| candidate == name).map(|(_, value)| *value)
    }

    /// A member read into a type; `None` when it is absent, `null` or of another type.
    pub fn read<T: FromJson>(&self, name: &str) -> Option<T> {
        T::from_json(self.get(name)?.get())
    }

    /// A text member. Half a surrogate pair, which JSON can hold and text cannot, reads as U+FFFD.
    pub fn string(&self, name: &str) -> Option<String> {
        read_string(self.get(name)?.get())
    }

    /// A member that is a whole number of at most 64 bits. Some servers write `5.0` for 5.
    pub fn integer(&self, name: &str) -> Option<u64> {
        self.read(name)
    }

    /// A member that is `true` or `false`.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        self.read(name)
    }

    /// A member kept as its text; `None` when it is absent or `null`.
    pub fn raw(&self, name: &str) -> Option<RawJson> {
        self.get(name).filter(|value| value.get() != "null").map(RawJson::from)
    }

    /// A member that is an object.
    pub fn object(&self, name: &str) -> Option<Self> {
        Self::parse(self.get(name)?.get()).ok()
    }

    /// The elements of a member that is an array.
    pub fn array(&self, name: &str) -> Option<Vec<&'text RawValue>> {
        elements(self.get(name)?.get())
    }

    /// Those elements of a member that are objects; empty when the member is no array.
    pub fn objects(&self, name: &str) -> Vec<Self> {
        let elements = self.array(name).unwrap_or_default();
        elements.into_iter().filter_map(|element| Self::parse(element.get()).ok()).collect()
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        let members = members(value.get()).ok_or_else(|| Error::custom(NOT_AN_OBJECT))?;
        Ok(Self { members })
    }
}

/// What keeps a text that has no members from being an object.
fn problem(text: &str) -> serde_json::Error {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) => Error::custom(NOT_AN_OBJECT),
        Err(error) => error,
    }
}

const NOT_AN_OBJECT: &str = "it is not an object";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_another_type_read_as_absent() {
        let object = Object::parse(r#"{"a":1,"b":null,"c":{"d":[{"e":2},3]},"f\"g":"h"}"#).unwrap();
        assert_eq!(object.integer("a"), Some(1));
        assert_eq!(object.string("a"), None);
        let numbers = Object::parse(r#"{"a":5.0,"b":5.5,"c":-1,"d":1e99,"e":"5"}"#).unwrap();
        assert_eq!(["a", "b", "c", "d", "e"].map(|name| numbers.integer(name)), [Some(5), None, None, None, None]);
        assert_eq!(object.raw("b"), None);
        assert_eq!(object.string("f\"g").as_deref(), Some("h"));
        let inner = object.object("c").unwrap();
        assert_eq!(inner.objects("d").len(), 1);
        assert!(Object::parse("[1]").is_err());
    }

    #[test]
    fn the_last_of_repeated_keys_counts() {
        assert_eq!(Object::parse(r#"{"a":1,"a":2}"#).unwrap().integer("a"), Some(2));
    }
}
