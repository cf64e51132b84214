//! JSON read tolerantly: raw values that keep their text, and objects walked a level at a time.

mod depth;
mod from_json;
mod object;
mod partial;
mod raw;
pub mod schema;
mod string;
#[cfg(feature = "wires")]
mod written;

pub use depth::{MAX_MESSAGE_DEPTH, MAX_VALUE_DEPTH, is_deeper_than};
pub use from_json::FromJson;
pub use object::Object;
pub use partial::complete;
pub use raw::RawJson;
pub use schema::{Schema, SchemaError};
pub(crate) use string::plain;
pub use string::read_string;
#[cfg(feature = "wires")]
pub(crate) use written::{add_member, filled, listed, quoted, quoted_list};
