use serde_json::{Map, Value, json};

use super::OpenApiError;
use super::document::{Document, Fields, text};

/// Writes the schemas of one operation as JSON Schema without references.
pub(super) struct SchemaPrinter<'a> {
    document: &'a Document,
    left: usize,
}

impl<'a> SchemaPrinter<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self { document, left: MAX_SCHEMAS }
    }

    /// A schema without references. What refers to itself becomes one that takes anything from there on.
    pub(super) fn print(&mut self, schema: Option<&'a Value>) -> Result<Value, OpenApiError> {
        match schema {
            None => Ok(json!({})),
            Some(schema) => Ok(match self.inner(schema, &mut Vec::new(), 0)? {
                Value::Bool(true) => json!({}),
                Value::Bool(false) => json!({ "not": {} }),
                printed => printed,
            }),
        }
    }

    fn inner(&mut self, schema: &'a Value, path: &mut Vec<&'a str>, depth: usize) -> Result<Value, OpenApiError> {
        if schema.is_boolean() {
            return Ok(schema.clone());
        }
        let Some(given) = schema.as_object() else { return Ok(json!({})) };
        self.left = self.left.checked_sub(1).ok_or(OpenApiError::TooLarge(MAX_SCHEMAS))?;
        if depth > MAX_DEPTH {
            return Ok(json!({}));
        }
        let Some(reference) = text(given, "$ref") else { return self.keywords(given, path, depth) };
        if path.contains(&reference) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            return Ok(json!({ "description": format!("another {name}") }));
        }
        let target = self.document.target(reference)?;
        path.push(reference);
        let mut printed = match text(target, "$ref") {
            Some(_) => self.referred(target, path, depth + 1)?,
            None => self.keywords(target, path, depth + 1)?,
        };
        path.pop();
        // In 3.1 other keywords may stand beside a reference; of those a description is the one that is used.
        if let (Some(printed), Some(description)) = (printed.as_object_mut(), given.get("description")) {
            printed.insert("description".to_owned(), description.clone());
        }
        Ok(printed)
    }

    /// A target that is itself a reference.
    fn referred(&mut self, target: &'a Fields, path: &mut Vec<&'a str>, depth: usize) -> Result<Value, OpenApiError> {
        self.left = self.left.checked_sub(1).ok_or(OpenApiError::TooLarge(MAX_SCHEMAS))?;
        let reference = text(target, "$ref").unwrap_or_default();
        if path.contains(&reference) || depth > MAX_DEPTH {
            let name = reference.rsplit('/').next().unwrap_or_default();
            return Ok(json!({ "description": format!("another {name}") }));
        }
        let next = self.document.target(reference)?;
        path.push(reference);
        let printed = match text(next, "$ref") {
            Some(_) => self.referred(next, path, depth + 1),
            None => self.keywords(next, path, depth + 1),
        };
        path.pop();
        printed
    }

    fn keywords(&mut self, schema: &'a Fields, path: &mut Vec<&'a str>, depth: usize) -> Result<Value, OpenApiError> {
        let mut printed = Map::new();
        for (keyword, value) in schema {
            let keyword = keyword.as_str();
            if DROPPED.contains(&keyword) || keyword.starts_with("x-") {
                continue;
            }
            let shown = if SCHEMA.contains(&keyword) {
                self.inner(value, path, depth + 1)?
            } else if SCHEMAS.contains(&keyword) {
                let parts = value.as_array().map_or(&[][..], Vec::as_slice);
                Value::Array(parts.iter().map(|part| self.inner(part, path, depth + 1)).collect::<Result<_, _>>()?)
            } else if NAMED_SCHEMAS.contains(&keyword) {
                let mut named = Map::new();
                for (name, schema) in value.as_object().into_iter().flatten() {
                    if keyword != "properties" || !self.is_read_only(schema) {
                        named.insert(name.clone(), self.inner(schema, path, depth + 1)?);
                    }
                }
                Value::Object(named)
            } else {
                value.clone()
            };
            printed.insert(keyword.to_owned(), shown);
        }
        self.require_only_what_is_asked(schema, &mut printed);
        if self.document.is_30 {
            modernise(schema, &mut printed);
        }
        Ok(Value::Object(printed))
    }

    /// What only the server sets is not asked of the model.
    fn is_read_only(&self, property: &'a Value) -> bool {
        let says = |fields: &Fields| fields.get("readOnly") == Some(&Value::Bool(true));
        property.as_object().is_some_and(says) || self.document.resolve(Some(property)).ok().flatten().is_some_and(says)
    }

    fn require_only_what_is_asked(&self, schema: &'a Fields, printed: &mut Fields) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        let is_asked = |name: &str| properties.get(name).is_none_or(|property| !self.is_read_only(property));
        if let Some(required) = printed.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name.as_str().is_none_or(is_asked));
        }
    }
}

/// The words of OpenAPI 3.0 that JSON Schema has others for.
fn modernise(schema: &Fields, printed: &mut Fields) {
    if schema.get("nullable") == Some(&Value::Bool(true))
        && let Some(kind) = printed.get("type").filter(|kind| kind.is_string()).cloned()
    {
        printed.insert("type".to_owned(), json!([kind, "null"]));
        if let Some(choices) = printed.get_mut("enum").and_then(Value::as_array_mut)
            && !choices.contains(&Value::Null)
        {
            choices.push(Value::Null);
        }
    }
    for (exclusive, inclusive) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(is_exclusive) = printed.get(exclusive).and_then(Value::as_bool) else { continue };
        printed.remove(exclusive);
        if is_exclusive && let Some(bound) = printed.remove(inclusive) {
            printed.insert(exclusive.to_owned(), bound);
        }
    }
}

/// The most schema objects of one operation once its references are written out: beyond it no model reads them.
const MAX_SCHEMAS: usize = 2_000;

/// The deepest that schemas stand in each other.
const MAX_DEPTH: usize = 24;

/// Keywords that hold a schema, a list of schemas, or an object of schemas.
const SCHEMA: [&str; 5] = ["items", "additionalProperties", "not", "contains", "propertyNames"];
const SCHEMAS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED_SCHEMAS: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// Keywords that are not for a model.
const DROPPED: [&str; 14] = [
    "$id",
    "$schema",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
    "deprecated",
    "discriminator",
    "example",
    "externalDocs",
    "nullable",
    "readOnly",
    "writeOnly",
    "xml",
];
