use serde_json::{Map, Value};

use super::OpenApiError;
use crate::percent;

/// A JSON object of a document.
pub(super) type Fields = Map<String, Value>;

/// An OpenAPI document, whose references are followed within it.
pub(super) struct Document {
    root: Value,
    fields: Fields,
    /// Whether schemas are those of OpenAPI 3.0, a dialect of its own.
    pub(super) is_30: bool,
}

impl Document {
    pub(super) fn new(root: Value) -> Result<Self, OpenApiError> {
        let fields = root.as_object().ok_or(OpenApiError::NotADocument)?.clone();
        let version = fields.get("openapi").or_else(|| fields.get("swagger"));
        let version = version.map(|version| version.as_str().map_or_else(|| version.to_string(), str::to_owned));
        let version = version.unwrap_or_default();
        let is =
            |wanted: &str| version == wanted || version.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'));
        if !is("3.0") && !is("3.1") {
            return Err(OpenApiError::Version(version));
        }
        Ok(Self { is_30: is("3.0"), root, fields })
    }

    pub(super) fn root(&self) -> &Fields {
        &self.fields
    }

    /// The object that a value is or refers to; `None` when there is none.
    pub(super) fn resolve<'a>(&'a self, value: Option<&'a Value>) -> Result<Option<&'a Fields>, OpenApiError> {
        let mut found = value.and_then(Value::as_object);
        for _ in 0..MAX_REFERENCES {
            match found.and_then(|object| object.get("$ref")).and_then(Value::as_str) {
                Some(reference) => found = Some(self.target(reference)?),
                None => return Ok(found),
            }
        }
        let reference = found.and_then(|object| object.get("$ref")).and_then(Value::as_str).unwrap_or_default();
        Err(OpenApiError::Circle(reference.to_owned()))
    }

    pub(super) fn target(&self, reference: &str) -> Result<&Fields, OpenApiError> {
        let pointer = reference.strip_prefix('#').filter(|pointer| pointer.starts_with('/'));
        let pointer = pointer.ok_or_else(|| OpenApiError::Outside(reference.to_owned()))?;
        let target = self.root.pointer(&percent::decode(pointer)).and_then(Value::as_object);
        target.ok_or_else(|| OpenApiError::Nowhere(reference.to_owned()))
    }
}

/// A text member.
pub(super) fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

/// The elements of a list; none when it is absent.
pub(super) fn list<'a>(fields: &'a Fields, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// How many references may lead to each other before a thing itself is found.
const MAX_REFERENCES: usize = 16;
