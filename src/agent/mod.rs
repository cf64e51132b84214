//! The conversation machine: inputs in, effects and events out.

mod definition;
mod effect;
mod event;
mod input;
mod session;

pub use definition::{Agent, Hooks, Policy, ToolDefinition};
pub use effect::{Effect, HookId, HookQuestion, ModelCallId, TimerId};
pub use event::{BlockId, EndReason, Event, EventKind, RunEnd, RunId};
pub use input::{Approval, HookReply, Input, InputError, ToolOutput};
pub use session::{RestoreError, Session, Status};
