//! JSON read tolerantly: raw values that keep their text, and objects walked a level at a time.

mod object;
mod raw;

pub use object::Object;
pub use raw::RawJson;
