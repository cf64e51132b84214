//! The session machine by behaviour, under a scripted host and a virtual clock.

mod harness;
mod prompt;
mod snapshot;
