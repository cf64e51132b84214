//! JSON read tolerantly: raw values that keep their text, objects walked a level at a time, and schemas that check and repair
//! what a model wrote.
//!
//! ```
//! use crablet::json::{Object, RawJson, Schema};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = r#"{"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}"#;
//! let schema = Schema::compile(&RawJson::parse(schema)?)?;
//!
//! let input = RawJson::parse(r#"{"count": "5"}"#)?;
//! let repaired = schema.check(&input)?.expect("a text for a number is repaired");
//! assert_eq!(Object::parse(repaired.as_str())?.integer("count"), Some(5));
//! assert!(schema.check(&RawJson::parse("{}")?).is_err());
//! # Ok(())
//! # }
//! ```

mod decimal;
mod depth;
mod from_json;
mod level;
mod number;
mod object;
mod partial;
mod raw;
pub mod schema;
mod string;
mod tree;
#[cfg(any(feature = "wires", feature = "shim"))]
mod written;

pub(crate) use decimal::Decimal;
pub use depth::{MAX_MESSAGE_DEPTH, MAX_VALUE_DEPTH, is_deeper_than};
pub use from_json::FromJson;
pub(crate) use level::elements;
pub use object::Object;
pub use partial::complete;
pub use raw::RawJson;
pub use schema::{Schema, SchemaError};
#[cfg(any(feature = "anthropic", feature = "openai-chat"))]
pub(crate) use string::plain;
pub(crate) use string::quoted;
pub use string::read_string;
#[cfg(any(feature = "anthropic", feature = "openai-chat"))]
pub(crate) use string::unescaped;
pub(crate) use tree::{Members, Tree};
#[cfg(feature = "wires")]
pub(crate) use written::{add_member, listed};
#[cfg(any(feature = "wires", feature = "shim"))]
pub(crate) use written::{filled, quoted_list};
