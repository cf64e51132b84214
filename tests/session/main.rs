//! The session machine by behaviour, under a scripted host and a virtual clock.

mod ending;
mod events;
mod harness;
mod interleaving;
mod model_call;
mod prompt;
mod rebuild;
mod snapshot;
mod store;
mod tools;
