//! JSON Schema for tool inputs: a subset of draft 2020-12 that needs no network and no regular expressions.
//!
//! Checked: `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `minProperties`, `maxProperties`,
//! `dependentRequired`, `propertyNames`, `items`, `prefixItems`, `minItems`, `maxItems`, `uniqueItems`, `contains`,
//! `minLength`, `maxLength`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, `anyOf`, `oneOf`,
//! `allOf`, `not`, `if`/`then`/`else`, `$ref` within the document, and OpenAPI's `nullable`. Notes to readers (`title`,
//! `description`, `default`, `examples`, `format`, …) are ignored, as the draft says. Every other keyword is listed by
//! [`Schema::unsupported`] and not checked.
//!
//! Numbers are compared by their exact values, however large they are and however they are written: 9007199254740993 is not
//! 9007199254740992, `1.0` is `1`, and 0.3 is a multiple of 0.1.

mod check;
mod compile;
mod dialect;

pub use dialect::Dialect;

use super::{Decimal, RawJson, Tree, quoted};
use crate::ordered_map::OrderedMap;

/// The largest schema text. The largest tool schemas seen in the field are some tens of kilobytes.
pub const MAX_SCHEMA_BYTES: usize = 1024 * 1024;

/// The deepest nesting of a schema, and of an input that is checked; the same as that of the JSON parser.
pub const MAX_SCHEMA_DEPTH: usize = 128;

/// A schema, ready to check inputs.
#[derive(Debug)]
pub struct Schema {
    nodes: Vec<Node>,
    unsupported: Vec<String>,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is not JSON, or the value is neither an object nor a boolean.
    #[error("this is not a JSON Schema: {0}")]
    NotASchema(String),
    /// Larger than [`MAX_SCHEMA_BYTES`].
    #[error("the schema is larger than {MAX_SCHEMA_BYTES} bytes")]
    TooLarge,
    /// Nested deeper than [`MAX_SCHEMA_DEPTH`].
    #[error("the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")]
    TooDeep,
    /// A `$ref` into the document that leads nowhere.
    #[error("the schema refers to {}, which it does not define", quoted(.0))]
    Unresolved(String),
}

impl Schema {
    /// Prepares a schema.
    ///
    /// # Errors
    ///
    /// When it is no schema, too large, too deep, or refers to a definition that it lacks.
    pub fn compile(schema: &RawJson) -> Result<Self, SchemaError> {
        compile::compile(schema)
    }

    /// The keywords that are not checked, as JSON pointers into the schema. References to other documents are among them:
    /// nothing is ever fetched.
    pub fn unsupported(&self) -> &[String] {
        &self.unsupported
    }

    /// Checks a tool's input. `None` when it is valid as it is; otherwise the input after the repairs that models need:
    /// `"5"` for a number, `"true"` for a boolean, a number for a string, JSON text for an object or array, `null` for a
    /// member that may be left out, and `null` for the whole input when nothing is required. A repair is only tried
    /// where the value is not valid as it is.
    ///
    /// # Errors
    ///
    /// What is wrong, in sentences for the model.
    pub fn check(&self, input: &RawJson) -> Result<Option<RawJson>, String> {
        check::check(self, input)
    }

    /// Checks a value as it is, without repairs.
    ///
    /// # Errors
    ///
    /// What is wrong, in sentences.
    pub fn validate(&self, value: &RawJson) -> Result<(), String> {
        check::validate(self, value)
    }
}

/// The place of a schema in [`Schema::nodes`]; 0 is the root.
type NodeId = usize;

/// A schema or subschema.
#[derive(Debug, Default)]
struct Node {
    /// `false` for the schema that nothing fits.
    never: bool,
    reference: Option<NodeId>,
    types: Option<Vec<Type>>,
    values: Option<Vec<Tree>>,
    properties: OrderedMap<String, NodeId>,
    required: Vec<String>,
    additional_properties: Option<NodeId>,
    property_names: Option<NodeId>,
    dependent_required: Vec<(String, Vec<String>)>,
    property_count: Range,
    prefix_items: Vec<NodeId>,
    items: Option<NodeId>,
    contains: Option<NodeId>,
    contains_count: Range,
    item_count: Range,
    unique_items: bool,
    length: Range,
    minimum: Option<Limit>,
    maximum: Option<Limit>,
    exclusive_minimum: Option<Limit>,
    exclusive_maximum: Option<Limit>,
    multiple_of: Option<Limit>,
    any_of: Option<Vec<NodeId>>,
    one_of: Option<Vec<NodeId>>,
    all_of: Vec<NodeId>,
    not: Option<NodeId>,
    condition: Option<NodeId>,
    then: Option<NodeId>,
    otherwise: Option<NodeId>,
}

/// A number that others are compared with.
#[derive(Debug)]
struct Limit {
    /// As the schema has it.
    written: String,
    value: Decimal,
}

#[derive(Debug, Default)]
struct Range {
    minimum: Option<u64>,
    maximum: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Object,
    Array,
    Number,
    Integer,
    String,
}

impl Type {
    const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::String => "string",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        const ALL: [Type; 7] =
            [Type::Null, Type::Boolean, Type::Object, Type::Array, Type::Number, Type::Integer, Type::String];
        ALL.into_iter().find(|candidate| candidate.name() == name)
    }
}
