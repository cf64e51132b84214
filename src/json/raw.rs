use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value kept as the text it came in: order of keys, precision of numbers and spacing unchanged.
///
/// Tool inputs and schemas pass through crablet as this type. Cloning costs a reference count.
///
/// Raw JSON cannot be deserialized from inside an internally tagged, untagged or flattened serde enum; such types are
/// read with [`Object`](super::Object) instead.
#[derive(Clone)]
// The text is not moved into the count's allocation: some texts are megabytes.
pub struct RawJson(Arc<Box<RawValue>>);

impl RawJson {
    /// Keeps this text if it is one valid JSON value.
    ///
    /// # Errors
    ///
    /// The parser's error, with line and column, when it is not.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        crate::work::count(text.len());
        RawValue::from_string(text).map(Self::from)
    }

    /// The JSON text of a value.
    ///
    /// # Errors
    ///
    /// When the value cannot be written as JSON, such as a map with keys that are not strings.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Values as a JSON array.
    #[cfg(any(feature = "anthropic", feature = "bedrock"))]
    pub(crate) fn listed(values: &[Self]) -> String {
        super::listed(&values.iter().map(|value| value.as_str().to_owned()).collect::<Vec<_>>())
    }

    /// Reads the text into a type.
    ///
    /// # Errors
    ///
    /// When the value is of another shape.
    pub fn read<'text, T: Deserialize<'text>>(&'text self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::new(raw))
    }
}

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        Self::from(raw.to_owned())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kept_as_it_was() {
        let text = r#"{"b": 1.0, "a":12345678901234567890123}"#;
        let raw = RawJson::parse(text).unwrap();
        assert_eq!(raw.as_str(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
    }

    #[test]
    fn text_that_is_not_one_value_is_refused() {
        for text in ["", "{", "{}{}", "nul"] {
            assert!(RawJson::parse(text).is_err(), "{text}");
        }
    }
}
