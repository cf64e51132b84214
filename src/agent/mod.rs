//! The conversation machine: inputs in, effects and events out.
//!
//! [`Agent`] is the definition, [`Session`] the machine, and `host` drives it. A session is plain data at any moment, also while
//! something is open:
//!
//! ```
//! use std::sync::Arc;
//!
//! use crablet::Millis;
//! use crablet::agent::{Agent, Effect, Input, Session};
//! use crablet::model::{Content, Model};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! fn asks_the_model(session: &mut Session) -> bool {
//!     std::iter::from_fn(|| session.poll_effect()).any(|effect| matches!(effect, Effect::CallModel { .. }))
//! }
//!
//! let agent = Arc::new(Agent::new(Model::function("parrot")));
//! let mut session = Session::new(Arc::clone(&agent), 7);
//! session.handle(Millis(0), Input::Prompt(vec![Content::Text("hello".into())]))?;
//! assert!(asks_the_model(&mut session));
//!
//! // The process dies before the model has answered: another asks again.
//! let mut elsewhere = Session::restore(&session.snapshot(), agent, Millis(60_000))?;
//! assert!(asks_the_model(&mut elsewhere));
//! # Ok(())
//! # }
//! ```

mod answer;
mod approval;
mod call;
mod call_execution;
mod call_preparation;
mod compaction;
mod context;
mod conversation;
mod definition;
mod discovery;
mod effect;
mod ending;
mod event;
mod event_json;
mod event_reader;
mod fallback;
mod ids;
mod input;
mod journal;
mod limits;
mod lines;
mod output;
mod plan;
mod prepare;
mod queue;
mod repetition;
mod restore;
mod restore_run;
mod result_cap;
mod result_reader;
mod retry;
mod run;
mod session;
mod skill;
mod snapshot;
mod step;
mod step_hooks;
mod sub_agent;
mod summarizing;
mod timers;
mod tokens;
mod tool_set;
mod tools;
mod trace;
mod trace_conventions;
mod tree;

pub use approval::InputHash;
pub use compaction::{Compaction, Summarizer};
pub use definition::{Agent, Hooks, Policy, Terminate, ToolDefinition};
pub use discovery::Discovery;
pub use effect::{Effect, HookId, HookQuestion, ModelCallId, TimerId};
pub use event::{BlockId, EndReason, Event, EventKind, RunEnd, RunId};
pub use input::{Approval, HookReply, Input, InputError, ToolOutput};
pub use journal::Save;
#[cfg(all(feature = "nats", not(target_arch = "wasm32")))]
pub(crate) use lines::text_of_line;
pub use output::OutputDefinition;
pub use plan::{ContextEdit, StepChange};
pub use queue::QueuedMessage;
pub use session::{RestoreError, Session, Status};
pub use skill::Skill;
pub use sub_agent::SubAgent;
pub use trace::{Attribute, Span, Trace, TraceOptions};
pub use tree::{TreeEntry, TreeError};
