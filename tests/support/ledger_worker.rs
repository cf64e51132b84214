//! A worker of an agent service in a process of its own, as `pkg-tests/fixtures/agent-service/worker.mjs` is one in Node: the same
//! options, the same agent.
//!
//! `ledger_worker '{"url", "name", "ledger", "toolMs", "leaseMs", "maxSessions"}'`

mod ledger_agent;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use crablet::agent_service::{AgentService, ServeOptions};
use crablet::native::NativeHost;
use crablet::native::nats::async_nats;
use ledger_agent::agent_of;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    url: String,
    name: String,
    ledger: String,
    #[serde(default = "tool_ms")]
    tool_ms: u64,
    #[serde(default = "lease_ms")]
    lease_ms: u64,
    #[serde(default = "max_sessions")]
    max_sessions: usize,
}

const fn tool_ms() -> u64 {
    20
}

const fn lease_ms() -> u64 {
    15_000
}

const fn max_sessions() -> usize {
    16
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = std::env::args().nth(1).ok_or("the options are the one argument, as JSON")?;
    let options: Options = serde_json::from_str(&options)?;
    let client = async_nats::connect(&options.url).await?;
    let serve = ServeOptions::new(async_nats::jetstream::new(client), &options.name)
        .lease(Duration::from_millis(options.lease_ms))
        .max_sessions(options.max_sessions)
        .on_error(|session, error| eprintln!("the session {session:?} failed: {error}"));
    let host = NativeHost::new()?;
    let (ledger, work) = (Arc::<str>::from(options.ledger), Duration::from_millis(options.tool_ms));
    let agent = move |session: String| std::future::ready(agent_of(&host, session.into(), ledger.clone(), work));
    let service = AgentService::serve(serve, agent).await?;
    println!("serving as {}", service.worker());
    signal(SignalKind::terminate())?.recv().await;
    service.stop(Duration::from_secs(5)).await;
    Ok(())
}
