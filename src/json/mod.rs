//! JSON read tolerantly: raw values that keep their text, and objects walked a level at a time.

mod object;
mod partial;
#[cfg(feature = "openai-chat")]
mod progress;
mod raw;
pub mod schema;
mod string;

pub use object::Object;
pub use partial::complete;
#[cfg(feature = "openai-chat")]
pub(crate) use progress::Progress;
pub use raw::RawJson;
pub use schema::{Schema, SchemaError};
pub use string::read_string;
