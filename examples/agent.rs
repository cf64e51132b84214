//! An agent in the terminal: streams the answer of any OpenAI-compatible model, with the tools of MCP servers.
//!
//! ```sh
//! cargo run --example agent -- --model-url http://localhost:11434/v1 --model qwen3 "Who are you?"
//! cargo run --example agent -- --model-url … --shim-server files --token … 'List the directory "."'
//! cargo run --example agent -- --model-url … --mcp-url http://localhost:3001/mcp 'Echo "hello"'
//! cargo run --example agent -- --model-url … --session monday "And what did I ask before?"
//! ```
//!
//! With `--session`, the conversation is kept under a name in the folder `sessions`: the next prompt goes on with it, and a
//! run that was killed is taken up where it was.
//!
//! The key is read from the environment variable `API_KEY`, and the shim's token from `SHIM_TOKEN` when it is not given.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use crablet::agent::{Agent, EventKind};
use crablet::host::mcp::{self, ConnectOptions, Connection, HttpServer};
use crablet::host::{Run, Runner};
use crablet::mcp::transport::shim::Token;
use crablet::mcp::transport::websocket::WebSocketOptions;
use crablet::model::{Credentials, openai_chat};
use crablet::native::{FileStore, NativeHost};
use crablet::{Error, ErrorKind};

/// The folder of conversations.
const SESSIONS: &str = "sessions";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", error.kind());
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Error> {
    let host = NativeHost::new()?;
    let servers = connect(&host, &arguments)?;

    let model = openai_chat::compatible(&arguments.model_url, arguments.model.as_str());
    let mut agent =
        Runner::new(host, Agent::new(model)).instructions("Use the tools you have. Answer in a few sentences.");
    if let Ok(key) = std::env::var("API_KEY") {
        agent = agent.credentials(Credentials::Key(key));
    }
    for server in &servers {
        agent = agent.tools(mcp::tools(server).await?);
    }

    let conversation = match arguments.session {
        Some(name) => agent.open(Arc::new(FileStore::new(SESSIONS)), &name).await?,
        None => agent.conversation()?,
    };
    if let Some(interrupted) = conversation.resume() {
        show(interrupted).await?;
    }
    let outcome = show(conversation.send(arguments.prompt)?).await;
    for server in &servers {
        server.close().await;
    }
    outcome
}

/// Prints what happens, until the run is over.
async fn show(mut run: Run<NativeHost>) -> Result<(), Error> {
    while let Some(events) = run.next().await {
        for event in events {
            match event.kind {
                EventKind::TextDelta(_, delta) => print!("{delta}"),
                EventKind::TextEnd(_) => println!(),
                EventKind::ToolCall { tool_name, input, .. } => println!("[{tool_name} {}]", input.as_str()),
                EventKind::ToolResult(result) if result.is_error => println!("[{} failed]", result.tool_name),
                EventKind::StepRetry { error, .. } => eprintln!("\n[forget that, trying again: {error}]"),
                EventKind::RunEnd(end) => return end.error.map_or(Ok(()), Err),
                _ => {}
            }
        }
        // A terminal that is gone shows nothing, and the answer is still worked out.
        let _unshown = std::io::stdout().flush();
    }
    Err(Error::new(ErrorKind::Internal, "the run ended without an end event"))
}

fn connect(host: &NativeHost, arguments: &Arguments) -> Result<Vec<Connection>, Error> {
    let mut servers = Vec::new();
    if let Some(server) = &arguments.shim_server {
        let options = WebSocketOptions {
            url: arguments.shim_url.clone(),
            server: server.clone(),
            token: Token::parse(&arguments.token)?,
            origin: String::new(),
            resume: None,
        };
        servers.push(Connection::shim(host, server.as_str(), options, ConnectOptions::default())?);
    }
    if let Some(url) = &arguments.mcp_url {
        servers.push(Connection::http(host, "mcp", HttpServer::new(url), ConnectOptions::default()));
    }
    Ok(servers)
}

const USAGE: &str = "usage: agent [--model-url URL] [--model NAME] [--mcp-url URL]
             [--shim-server NAME] [--token TOKEN] [--shim-url URL] [--session NAME] PROMPT";

struct Arguments {
    model_url: String,
    model: String,
    mcp_url: Option<String>,
    shim_server: Option<String>,
    shim_url: String,
    token: String,
    session: Option<String>,
    prompt: String,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            model_url: "http://localhost:11434/v1".to_owned(),
            model: "qwen3".to_owned(),
            mcp_url: None,
            shim_server: None,
            shim_url: "ws://127.0.0.1:6735".to_owned(),
            token: std::env::var("SHIM_TOKEN").unwrap_or_default(),
            session: None,
            prompt: String::new(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
            match word.as_str() {
                "--model-url" => arguments.model_url = value()?,
                "--model" => arguments.model = value()?,
                "--mcp-url" => arguments.mcp_url = Some(value()?),
                "--shim-server" => arguments.shim_server = Some(value()?),
                "--shim-url" => arguments.shim_url = value()?,
                "--session" => arguments.session = Some(value()?),
                "--token" => arguments.token = value()?,
                option if option.starts_with("--") => return Err(format!("{option} is not known")),
                _ => arguments.prompt = word,
            }
        }
        if arguments.prompt.is_empty() { Err("what is the prompt?".to_owned()) } else { Ok(arguments) }
    }
}
