use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::OpenApiError;
use super::document::{Document, Fields, list, text};
use super::parameter::{Parameter, Place, parameters};
use super::schema::SchemaPrinter;
use crate::host::tools::text::clipped;

/// An operation of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiOperation {
    /// As in the document; a method and a path where it has none.
    pub id: String,
    /// In capitals.
    pub method: &'static str,
    /// Such as `/pets/{petId}`.
    pub path: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// One line about it.
    pub summary: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// Whether it is going to go away.
    pub deprecated: bool,
}

/// An operation with the objects of the document that it comes from.
pub(super) struct FoundOperation<'a> {
    pub(super) operation: ApiOperation,
    pub(super) path_item: &'a Fields,
    pub(super) given: &'a Fields,
}

/// What an operation needs of a model, and how it is sent.
pub(super) struct OperationPlan {
    /// Each parameter with its property of the input.
    pub(super) parameters: Vec<(String, Parameter)>,
    /// The property of the input that is the body, and its media type.
    pub(super) body: Option<(String, String)>,
    pub(super) input_schema: Value,
}

impl ApiOperation {
    /// What a model is told of it.
    pub(super) fn describe(&self) -> String {
        let told = [self.summary.as_deref(), self.description.as_deref()];
        let mut told: Vec<&str> = told.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        told.dedup();
        let main = if told.is_empty() { format!("{} {}", self.method, self.path) } else { told.join("\n\n") };
        let main = if self.deprecated { format!("Deprecated. {main}") } else { main };
        clipped(&main, MAX_DESCRIPTION).to_owned()
    }
}

/// The operations of a document by path and method, and the paths that cannot be resolved.
pub(super) fn operations(document: &Document) -> (Vec<FoundOperation<'_>>, Vec<(String, OpenApiError)>) {
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    let paths = document.root().get("paths").and_then(Value::as_object);
    for (path, value) in paths.into_iter().flatten().filter(|(path, _)| path.starts_with('/')) {
        let path_item = match document.resolve(Some(value)) {
            Ok(Some(path_item)) => path_item,
            Ok(None) => continue,
            Err(error) => {
                skipped.push((path.clone(), error));
                continue;
            }
        };
        for (method, given) in path_item {
            let method = METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(method));
            if let (Some(method), Some(given)) = (method, given.as_object()) {
                found.push(FoundOperation { operation: read(method, path, given), path_item, given });
            }
        }
    }
    (found, skipped)
}

fn read(method: &'static str, path: &str, given: &Fields) -> ApiOperation {
    ApiOperation {
        id: text(given, "operationId").map_or_else(|| format!("{}{path}", method.to_ascii_lowercase()), str::to_owned),
        method,
        path: path.to_owned(),
        tags: list(given, "tags").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        summary: text(given, "summary").map(str::to_owned),
        description: text(given, "description").map(str::to_owned),
        deprecated: given.get("deprecated") == Some(&Value::Bool(true)),
    }
}

/// How an operation is called.
pub(super) fn plan(document: &Document, found: &FoundOperation<'_>) -> Result<OperationPlan, OpenApiError> {
    let mut printer = SchemaPrinter::new(document);
    let mut input = Input::default();
    let mut planned = Vec::new();
    for (parameter, schema) in parameters(document, found.path_item, found.given)? {
        let schema = described(printer.print(schema)?, parameter.description.as_deref());
        let wanted = if input.names.contains(&parameter.name) {
            format!("{}_{}", parameter.place.as_str(), parameter.name)
        } else {
            parameter.name.clone()
        };
        let property = input.add(&wanted, schema, parameter.required);
        planned.push((property, parameter));
    }
    for name in names_in(&found.operation.path) {
        let is_there = |(_, parameter): &(String, Parameter)| parameter.place == Place::Path && parameter.name == name;
        if !planned.iter().any(is_there) {
            return Err(OpenApiError::Path(name.to_owned()));
        }
    }
    let body = match body(document, found.given)? {
        Some(JsonBody { media_type, given, schema }) => {
            let schema = described(printer.print(schema)?, text(given, "description"));
            let property = input.add("body", schema, given.get("required") == Some(&Value::Bool(true)));
            Some((property, media_type.to_owned()))
        }
        None => None,
    };
    Ok(OperationPlan { parameters: planned, body, input_schema: input.schema() })
}

/// A body that can be sent.
struct JsonBody<'a> {
    media_type: &'a str,
    given: &'a Fields,
    schema: Option<&'a Value>,
}

fn body<'a>(document: &'a Document, given: &'a Fields) -> Result<Option<JsonBody<'a>>, OpenApiError> {
    let Some(body) = document.resolve(given.get("requestBody"))? else { return Ok(None) };
    let Some(content) = body.get("content").and_then(Value::as_object) else { return Ok(None) };
    match content.iter().find(|(media_type, _)| is_json(media_type)) {
        Some((media_type, content)) => Ok(Some(JsonBody { media_type, given: body, schema: content.get("schema") })),
        None if body.get("required") == Some(&Value::Bool(true)) => {
            let kinds: Vec<&str> = content.keys().map(String::as_str).collect();
            Err(OpenApiError::Body(if kinds.is_empty() { "of no type".to_owned() } else { kinds.join(" or ") }))
        }
        None => Ok(None),
    }
}

fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let kind = essence.strip_prefix("application/");
    kind.is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
}

/// The names in braces of a path.
pub(super) fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name))
}

fn described(mut schema: Value, description: Option<&str>) -> Value {
    if let (Some(schema), Some(description)) = (schema.as_object_mut(), description) {
        schema.insert("description".to_owned(), json!(description));
    }
    schema
}

#[derive(Default)]
struct Input {
    names: BTreeSet<String>,
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Input {
    fn add(&mut self, wanted: &str, schema: Value, is_required: bool) -> String {
        let property = unique_name(wanted, &mut self.names);
        self.properties.insert(property.clone(), schema);
        if is_required {
            self.required.push(property.clone());
        }
        property
    }

    fn schema(self) -> Value {
        json!({
            "type": "object", "properties": self.properties, "required": self.required, "additionalProperties": false,
        })
    }
}

/// A name of letters, digits, `_` and `-` that is not taken yet.
pub(super) fn unique_name(wanted: &str, taken: &mut BTreeSet<String>) -> String {
    let is_kept = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let mut mangled = String::new();
    for character in wanted.chars() {
        if is_kept(character) {
            mangled.push(character);
        } else if !mangled.ends_with('_') {
            mangled.push('_');
        }
    }
    let mangled = mangled.trim_matches('_');
    let mangled = if mangled.is_empty() { "unnamed" } else { mangled };
    let mut name = clipped(mangled, MAX_NAME).to_owned();
    let mut number = 2_u32;
    while taken.contains(&name) {
        let suffix = format!("_{number}");
        name = format!("{}{suffix}", clipped(mangled, MAX_NAME - suffix.len()));
        number += 1;
    }
    taken.insert(name.clone());
    name
}

const METHODS: [&str; 8] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"];

/// The longest description of a tool, in bytes.
const MAX_DESCRIPTION: usize = 2_000;

/// The longest name of a tool or a property that every provider takes.
const MAX_NAME: usize = 64;
