//! The Rust snippet of the README: an agent with one tool, answering with a model of a local Ollama.

use crablet::agent::{Agent, EventKind, ToolDefinition};
use crablet::host::Runner;
use crablet::json::RawJson;
use crablet::model::openai_chat;
use crablet::native::NativeHost;

#[derive(serde::Deserialize)]
struct Place {
    city: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = openai_chat::compatible("http://localhost:11434/v1", "qwen3");
    let schema = r#"{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}"#;
    let weather = ToolDefinition::new("get_weather", "Get the weather of a city", RawJson::parse(schema)?);

    let agent = Runner::new(NativeHost::new()?, Agent::new(model))
        .tool(weather, async |place: Place, _context| format!("{}: 12 °C, light rain", place.city));

    let mut run = agent.conversation()?.send("Get the weather in \"Oslo\"")?;
    while let Some(events) = run.next().await {
        for event in events {
            match event.kind {
                EventKind::TextDelta(_, delta) => print!("{delta}"),
                EventKind::RunEnd(end) => return end.error.map_or(Ok(()), |error| Err(error.into())),
                _ => {}
            }
        }
    }
    Ok(())
}
