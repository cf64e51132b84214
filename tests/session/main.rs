//! The session machine by behaviour, under a scripted host and a virtual clock.

mod ending;
mod harness;
mod model_call;
mod prompt;
mod rebuild;
mod snapshot;
mod store;
mod tools;
