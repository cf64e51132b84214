//! The shim as its users meet it: the real program, real processes, real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets the unexpected stops"
)]

mod agent;
mod claim;
mod configuration;
mod expose;
mod filesystem;
mod handshake;
mod http;
mod http_client;
mod install;
mod load;
mod log;
mod native_messaging;
mod page;
mod pairing;
mod plain;
mod printing;
mod processes;
mod reconnect;
mod secrets;
mod slow_start;
mod support;
