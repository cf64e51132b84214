//! The session machine by behaviour, under a scripted host and a virtual clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod approvals;
mod cases;
mod compaction;
mod cost;
mod crashes;
mod discovery;
mod ending;
mod events;
mod fallback;
mod harness;
mod incremental;
mod interleaving;
mod model_call;
mod output;
mod prompt;
mod rebuild;
mod snapshot;
mod step_hooks;
mod store;
mod sub_agents;
mod tools;
mod trace;
mod tree;
