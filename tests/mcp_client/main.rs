//! The MCP client and Streamable HTTP, by behaviour: both machines joined with a scripted server under a virtual clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

#[path = "../mcp_support/mod.rs"]
mod mcp_support;

mod any_answer;
mod calls;
mod claims;
mod era;
mod legacy;
mod pages;
mod pipe;
mod questions;
mod server;
mod session;
mod standing;
mod streams;
mod tasks;
