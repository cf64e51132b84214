//! Whole runs over a scripted host in virtual time: what a caller of [`Runner`](crablet::host::Runner) sees.
#![cfg(all(feature = "host", feature = "openai-chat"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

#[path = "../support/mod.rs"]
mod support;

mod aborting;
mod hooks;
mod http;
mod long_lived;
mod models;
mod output;
mod properties;
mod restoring;
mod storing;
mod sub_agents;
mod tools;

use crablet::agent::{Agent, Event, ToolDefinition};
use crablet::host::{Run, Runner};
use crablet::json::RawJson;

use support::{ScriptedHost, ScriptedModel};

/// An agent whose model is this script.
fn runner(host: &ScriptedHost, model: &ScriptedModel) -> Runner<ScriptedHost> {
    Runner::new(host.clone(), Agent::new(ScriptedModel::model())).function_model("script", model.clone())
}

/// A tool that takes any object.
fn definition(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "A tool of the test", RawJson::parse(r#"{"type":"object"}"#).unwrap())
}

/// Every event of a run, as JSON.
async fn events(mut run: Run<ScriptedHost>) -> Vec<serde_json::Value> {
    let mut events = Vec::new();
    while let Some(batch) = run.next().await {
        events.extend(batch.iter().map(json));
    }
    events
}

fn json(event: &Event) -> serde_json::Value {
    serde_json::to_value(event).unwrap()
}

/// The types of events, with runs of the same type written once.
fn types(events: &[serde_json::Value]) -> String {
    let mut types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    types.dedup();
    types.join(" ")
}
