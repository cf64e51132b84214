//! The wasm-bindgen exports behind crablet's npm package. Nothing here is called by hand: the TypeScript facade in `src/js`
//! is the API, and `src/js/core.ts` describes this boundary from the other side.
//!
//! Structured values cross as JSON text and errors as objects; docs/decisions/0017 says why. Events cross once a batch, see
//! `batch.rs`.

// Hot functions of the small build of the npm package (docs/decisions/0034).
#![cfg_attr(crablet_small, feature(optimize_attribute))]

// What needs no JavaScript is also built for the native tests.
#[cfg(any(test, target_arch = "wasm32"))]
mod batch;
#[cfg(any(test, target_arch = "wasm32"))]
mod function_events;
#[cfg(any(test, target_arch = "wasm32"))]
mod tool_output;

#[cfg(target_arch = "wasm32")]
mod agent;
#[cfg(target_arch = "wasm32")]
mod config;
#[cfg(target_arch = "wasm32")]
mod functions;
#[cfg(target_arch = "wasm32")]
mod hooks;
#[cfg(target_arch = "wasm32")]
mod journal;
#[cfg(target_arch = "wasm32")]
mod mcp;
#[cfg(target_arch = "wasm32")]
mod models;
#[cfg(target_arch = "wasm32")]
mod oauth;
#[cfg(target_arch = "wasm32")]
mod pairing;
#[cfg(all(target_arch = "wasm32", feature = "planted-defects"))]
mod planted;
#[cfg(target_arch = "wasm32")]
mod run;
#[cfg(target_arch = "wasm32")]
mod sse;
#[cfg(target_arch = "wasm32")]
mod thrown;
