//! Built-in tools that need a machine: files in a folder, `fetch` and `bash`. Each is opted into.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use crablet::host::tools::{FileOptions, file_tools};
//! use crablet::host::{Host, Runner};
//! use crablet::native::tools::{FetchOptions, FolderFiles, fetch_tool};
//!
//! fn with_tools<H: Host>(agent: Runner<H>) -> Result<Runner<H>, Box<dyn std::error::Error>> {
//!     let notes = Arc::new(FolderFiles::open("notes")?);
//!     let fetch = fetch_tool(FetchOptions::new(["https://en.wikipedia.org"]))?;
//!     Ok(agent.tools(file_tools(notes, FileOptions::default())).tools([fetch]))
//! }
//! ```

#[cfg(unix)]
mod bash;
#[cfg(unix)]
mod command_policy;
mod fetch;
mod folder_files;
mod origins;
mod private_address;

#[cfg(unix)]
pub use bash::{BashOptions, bash_tool};
#[cfg(unix)]
pub use command_policy::{CommandPolicy, Decision};
pub use fetch::{FetchOptions, fetch_tool};
pub use folder_files::FolderFiles;
