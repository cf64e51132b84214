//! An agent of one provider with one tool, called from a page. Its size is a row of `make size`.

#![cfg(target_arch = "wasm32")]

use crablet::agent::{Agent, ToolDefinition};
use crablet::host::{Runner, ToolContext};
use crablet::json::RawJson;
use crablet::model::{Credentials, anthropic};
use crablet::web::WebHost;
use crablet::{Error, ErrorKind};
use wasm_bindgen::prelude::wasm_bindgen;

/// What the model answers to a question.
///
/// # Errors
///
/// The message of whatever ended the run.
#[wasm_bindgen]
pub async fn ask(question: String, key: String) -> Result<String, String> {
    let answer = agent(key).map_err(|error| error.to_string())?.run(question).await;
    answer.map(|answer| answer.text).map_err(|error| error.to_string())
}

fn agent(key: String) -> Result<Runner<WebHost>, Error> {
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
    let schema = RawJson::parse(schema).map_err(|error| Error::new(ErrorKind::InvalidInput, error.to_string()))?;
    let length = ToolDefinition::new("length", "How long a text is", schema);
    Ok(Runner::new(WebHost::new(), Agent::new(anthropic::model("claude-sonnet-5")))
        .instructions("Answer briefly.")
        .credentials(Credentials::Key(key))
        .tool(length, async |input: RawJson, _: ToolContext| Ok::<_, String>(input)))
}
