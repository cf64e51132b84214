//! The client that the official MCP conformance suite drives: `conformance_client <server address>`.
//!
//! The suite names the scenario, the revision and further data in the environment. A scenario chooses only which calls are
//! made; how the protocol behaves is the same for all.

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use crablet::host::mcp::{ConnectOptions, Connection, HttpServer};
use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{Params, RpcError, code};
use crablet::mcp::client::CallOptions;
use crablet::mcp::protocol::EraChoice;
use crablet::native::NativeHost;
use crablet::{Error, ErrorKind};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", error.kind());
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Error> {
    let address = env::args().next_back().unwrap_or_default();
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let version = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let era = if version.as_str() >= "2026-07-28" { EraChoice::Auto } else { EraChoice::Handshake };
    let observer = |event: &crablet::mcp::client::Event| eprintln!("{event:?}");
    // Says yes to every form; the defaults of its schema are filled in by the client.
    let answerer = |method: &str, _params: RawJson| {
        let answer = match method {
            "elicitation/create" => RawJson::parse(r#"{"action":"accept","content":{"confirmed":true}}"#),
            _ => RawJson::parse("{}"),
        };
        std::future::ready(answer.map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string())))
    };
    let options = ConnectOptions {
        era,
        observer: Some(Arc::new(observer)),
        capabilities: Params::new().with("elicitation", &Params::new().with("form", &Params::new())),
        answerer: Some(Arc::new(answerer)),
        ..ConnectOptions::default()
    };
    let connection = Connection::http(&NativeHost::new()?, "conformance", HttpServer::new(address), options);
    let outcome = perform(&connection, &scenario).await;
    connection.close().await;
    outcome
}

/// Makes the calls of a scenario.
async fn perform(connection: &Connection, scenario: &str) -> Result<(), Error> {
    let tools = connection.tools().await?;
    match scenario {
        "tools_call" => call(connection, "add_numbers", r#"{"a":5,"b":3}"#).await,
        "sse-retry" => call(connection, "test_reconnection", "{}").await,
        "elicitation-sep1034-client-defaults" => call(connection, "test_client_elicitation_defaults", "{}").await,
        "http-standard-headers" => {
            call(connection, "test_headers", "{}").await?;
            call(connection, "my-hyphenated-tool", "{}").await?;
            for resource in connection.resources().await? {
                connection.read_resource(&resource.uri).await?;
            }
            for prompt in connection.prompts().await? {
                connection.prompt(&prompt.name, &BTreeMap::new()).await?;
            }
            Ok(())
        }
        "http-custom-headers" => {
            let context = context()?;
            let object = Object::parse(context.as_str()).map_err(unusable)?;
            for planned in object.objects("toolCalls") {
                let name = planned.string("name").unwrap_or_default();
                let arguments = planned.raw("arguments").map_or_else(|| "{}".to_owned(), |raw| raw.as_str().to_owned());
                call(connection, &name, &arguments).await?;
            }
            Ok(())
        }
        "http-invalid-tool-headers" => {
            for tool in &tools {
                call(connection, &tool.name, r#"{"region":"us"}"#).await?;
            }
            Ok(())
        }
        "json-schema-2020-12-preservation" => {
            let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema = tool.map_or("null", |tool| tool.input_schema.as_str());
            call(connection, "json_schema_echo", &format!(r#"{{"schema":{schema}}}"#)).await
        }
        "sep-2322-client-request-state" => {
            let (echo, unrelated) = tokio::join!(
                call(connection, "test_mrtr_echo_state", "{}"),
                call(connection, "test_mrtr_unrelated", "{}")
            );
            echo.and(unrelated)?;
            call(connection, "test_mrtr_no_state", "{}").await?;
            call(connection, "test_mrtr_no_result_type", "{}").await
        }
        _ => Ok(()),
    }
}

async fn call(connection: &Connection, name: &str, arguments: &str) -> Result<(), Error> {
    let arguments = RawJson::parse(arguments).map_err(unusable)?;
    let result = connection.call_tool(name, arguments, CallOptions::default(), None).await?;
    eprintln!("{name}: {}", result.text());
    Ok(())
}

fn context() -> Result<RawJson, Error> {
    let text = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    RawJson::parse(text).map_err(unusable)
}

fn unusable(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidInput, error.to_string())
}
