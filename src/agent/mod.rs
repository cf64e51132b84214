//! The conversation machine: inputs in, effects and events out.

mod answer;
mod call;
mod compaction;
mod context;
mod conversation;
mod definition;
mod discovery;
mod effect;
mod ending;
mod event;
mod event_json;
mod ids;
mod input;
mod plan;
mod prepare;
mod repetition;
mod restore;
mod retry;
mod run;
mod session;
mod snapshot;
mod step;
mod step_hooks;
mod timers;
mod tokens;
mod tool_set;
mod tools;

pub use compaction::Compaction;
pub use definition::{Agent, Hooks, Policy, ToolDefinition};
pub use discovery::Discovery;
pub use effect::{Effect, HookId, HookQuestion, ModelCallId, TimerId};
pub use event::{BlockId, EndReason, Event, EventKind, RunEnd, RunId};
pub use input::{Approval, HookReply, Input, InputError, ToolOutput};
pub use plan::{ContextItem, StepChange};
pub use session::{RestoreError, Session, Status};
