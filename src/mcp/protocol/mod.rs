//! The messages of the Model Context Protocol, read tolerantly: unknown members are skipped and unknown kinds are kept.

mod content;
mod era;
mod resource;
mod server;
mod tool;

pub use content::{ContentBlock, ResourceBody, ResourceContents};
pub use era::{Era, EraChoice, EraRecord, Revision, STATELESS_VERSION};
pub use resource::{Prompt, PromptArgument, PromptMessage, Resource};
pub use server::{Capabilities, Implementation, ServerInfo};
pub use tool::{CallToolResult, Tool, ToolAnnotations};
