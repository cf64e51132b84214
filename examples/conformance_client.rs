//! The client that the official MCP conformance suite drives: `conformance_client <server address>`.
//!
//! The suite names the scenario, the revision and further data in the environment. A scenario chooses only which calls are
//! made; how the protocol behaves is the same for all.

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use crablet::host::mcp::{AssertionSource, ConnectOptions, Connection, Consent, HttpServer, OAuth};
use crablet::host::{BoxFuture, Host};
use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{Params, RpcError, code};
use crablet::mcp::client::CallOptions;
use crablet::mcp::client::auth::{
    AssertionRequest, AuthOptions, Grant, IdentityProvider, PrivateKey, RegisteredClient, Secret, SigningAlgorithm,
};
use crablet::mcp::protocol::EraChoice;
use crablet::model::HttpRequest;
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
    let host = NativeHost::new()?;
    let mut server = HttpServer::new(address);
    if scenario.starts_with("auth/") {
        server = server.auth(oauth(&host, &scenario)?);
    }
    let connection = Connection::http(&host, "conformance", server, options);
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
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" | "auth/wif-jwt-bearer" => Ok(()),
        _ if scenario.starts_with("auth/") => call(connection, "test-tool", "{}").await,
        _ => Ok(()),
    }
}

/// Who the client is in a scenario about authorization: what its context says.
fn oauth(host: &NativeHost, scenario: &str) -> Result<OAuth, Error> {
    let context = context()?;
    let context = Object::parse(context.as_str()).map_err(unusable)?;
    let text = |name: &str| context.string(name);
    let key = text("private_key_pem").map(|pem| PrivateKey {
        pem: Secret::new(pem),
        algorithm: text("signing_algorithm").and_then(|name| SigningAlgorithm::from_name(&name)).unwrap_or_default(),
        key_id: None,
    });
    let client = text("client_id").map(|id| RegisteredClient {
        id,
        secret: text("client_secret").map(Secret::new),
        key,
        issuer: None,
    });
    let provider = text("idp_token_endpoint").map(|token_endpoint| IdentityProvider {
        token_endpoint,
        client_id: text("idp_client_id").unwrap_or_default(),
        client_secret: None,
    });
    let grant = match (scenario, provider) {
        ("auth/client-credentials-jwt" | "auth/client-credentials-basic", _) => Grant::ClientCredentials,
        ("auth/wif-jwt-bearer", _) => Grant::Assertion,
        (_, Some(provider)) => Grant::Enterprise(provider),
        _ => Grant::AuthorizationCode,
    };
    let options = AuthOptions {
        grant,
        client,
        client_metadata_url: Some("https://conformance-test.local/client-metadata.json".to_owned()),
        client_name: Some("crablet conformance".to_owned()),
        ..AuthOptions::default()
    };
    let assertion = text("valid_jwt").or_else(|| text("idp_id_token")).unwrap_or_default();
    Ok(OAuth::new(options).consent(FollowRedirect { host: host.clone() }).assertions(supply(assertion)))
}

fn supply(assertion: String) -> impl AssertionSource {
    move |_: AssertionRequest| std::future::ready(Ok(assertion.clone()))
}

/// Plays the person: opens the page, which sends it straight back.
struct FollowRedirect {
    host: NativeHost,
}

impl Consent for FollowRedirect {
    fn redirect_uri(&self) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(std::future::ready(Ok("http://localhost:3000/callback".to_owned())))
    }

    fn ask(&self, url: String) -> BoxFuture<'static, Result<String, Error>> {
        let fetching = self.host.fetch(HttpRequest { method: "GET", url, headers: Vec::new(), body: Vec::new() });
        Box::pin(async move {
            let (head, _) = fetching.await?;
            let location = head.header("location").map(str::to_owned);
            location.ok_or_else(|| Error::new(ErrorKind::Auth, "the page sends nobody back"))
        })
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
