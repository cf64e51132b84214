//! Built-in tools, each of which an agent opts into: files over a [`FileStore`], a [`Scratchpad`] that agents share,
//! and the operations of an OpenAPI document ([`open_api_tools`]).
//! With the feature `native` there are more in [`native::tools`](crate::native::tools): a folder of the machine, `fetch` and
//! `bash`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use crablet::agent::Agent;
//! use crablet::host::tools::{self, FileOptions, MemoryFiles, Scratchpad};
//! use crablet::host::{Host, Runner};
//!
//! fn with_tools<H: Host>(agent: Runner<H>, notes: &Scratchpad) -> Runner<H> {
//!     let files = Arc::new(MemoryFiles::default());
//!     agent.tools(tools::file_tools(files, FileOptions::default())).tools(notes.tools())
//! }
//! ```

mod edit;
mod file_store;
mod files;
mod glob;
mod memory_files;
mod openapi;
mod path;
mod response;
mod scratchpad;
mod search;
mod text;
mod walk;

use std::future::Future;
use std::sync::Arc;

use serde::de::DeserializeOwned;

pub use file_store::{FileEntry, FileError, FileKind, FileStore};
pub use files::{FileLimits, FileOptions, file_tools, reading_tools};
pub use memory_files::MemoryFiles;
pub use openapi::{
    ApiOperation, Authorization, Authorizer, OpenApiError, OpenApiOptions, OpenApiTools, open_api_tools,
};
pub use path::{InvalidPath, normal_path};
pub(crate) use response::{add_chunk, response_output};
pub use scratchpad::{Scratchpad, ScratchpadError};

use super::{FunctionTool, IntoToolResult, MaybeSend, MaybeSync, Tool, ToolContext};
use crate::agent::ToolDefinition;
use crate::json::RawJson;

/// A tool with its definition, as [`Runner::tools`](super::Runner::tools) takes it.
pub type BuiltInTool = (ToolDefinition, Arc<dyn Tool>);

/// A definition whose schema is written in the source.
#[expect(clippy::expect_used, reason = "every schema here is a constant that a test reads")]
pub(crate) fn definition(name: &str, description: impl Into<String>, input_schema: &str) -> ToolDefinition {
    ToolDefinition::new(name, description, RawJson::parse(input_schema).expect("a schema of the source is JSON"))
}

/// A definition and its function.
pub(crate) fn built_in<F, I, Running>(definition: ToolDefinition, function: F) -> BuiltInTool
where
    F: Fn(I, ToolContext) -> Running + MaybeSend + MaybeSync + 'static,
    I: DeserializeOwned + 'static,
    Running: Future<Output: IntoToolResult> + MaybeSend + 'static,
{
    (definition, Arc::new(FunctionTool::new(function)))
}
