//! The scenarios. Each checks what it got, counts what it did, and gives what it leaves open, if it leaves something.

use std::time::Duration;

use crablet::agent::{Agent, EventKind, ToolDefinition};
use crablet::host::mcp::{self, ConnectOptions, Connection};
use crablet::host::{Conversation, Runner};
use crablet::json::RawJson;
use crablet::mcp::client::CallOptions;
use crablet::mcp::transport::shim::Token;
use crablet::mcp::transport::websocket::WebSocketOptions;
use crablet::model::openai_chat;
use crablet::native::NativeHost;
use crablet::{Error, ErrorKind};

use crate::{Counter, Given};

const WEATHER: &str = "get the weather in \"Oslo\"";
const ANSWER: &str = "rain in Oslo";

/// How far the slow tool counts: about a second, so that there is a middle to leave it in.
const LONG: u32 = 80;
const SHORT: u32 = 2;

#[derive(Clone)]
pub(crate) struct Scenarios {
    host: NativeHost,
    model: String,
    shim: WebSocketOptions,
}

/// What stays open until the lane's next scenario is over.
pub(crate) struct Kept {
    conversation: Conversation<NativeHost>,
    connection: Option<Connection>,
}

impl Kept {
    pub(crate) async fn close(self) {
        drop(self.conversation);
        if let Some(connection) = self.connection {
            connection.close().await;
        }
    }
}

#[derive(serde::Deserialize)]
struct City {
    city: String,
}

impl Scenarios {
    pub(crate) fn new(given: &Given) -> Result<Self, Error> {
        let shim = WebSocketOptions {
            url: given.shim.url.clone(),
            server: given.shim.server.clone(),
            token: Token::parse(&given.shim.token)?,
            origin: String::new(),
            resume: None,
        };
        Ok(Self { host: NativeHost::new()?, model: given.model.clone(), shim })
    }

    pub(crate) async fn run(&self, name: &str, counter: &Counter) -> Result<Option<Kept>, Error> {
        match name {
            "session" => self.session(counter).await,
            "aborted" => self.aborted(counter).await,
            "forked" => self.forked(counter).await,
            "saved" => self.saved(counter).await,
            "shimAgent" => self.shim_agent(counter).await,
            "shimCalls" => self.shim_calls(counter).await,
            "shimGone" => self.shim_gone(counter).await,
            _ => Err(Error::new(ErrorKind::InvalidInput, format!("there is no scenario {name:?}"))),
        }
    }

    /// A conversation of some prompts, kept open.
    async fn session(&self, counter: &Counter) -> Result<Option<Kept>, Error> {
        let conversation = self.runner()?.conversation()?;
        for _ in 0..3 {
            asked(&conversation, counter).await?;
        }
        Ok(Some(Kept { conversation, connection: None }))
    }

    /// A run that its reader drops in the middle, after which the conversation goes on.
    async fn aborted(&self, counter: &Counter) -> Result<Option<Kept>, Error> {
        let conversation = self.runner()?.conversation()?;
        let mut run = conversation.send("count to 500")?;
        let mut batches = 0;
        while let Some(events) = run.next().await {
            batches += usize::from(events.iter().any(|event| matches!(event.kind, EventKind::TextDelta(..))));
            if batches == 3 {
                break;
            }
        }
        drop(run);
        counter.count("runs");
        counter.count("aborts");
        asked(&conversation, counter).await?;
        Ok(None)
    }

    /// A conversation that goes two ways.
    async fn forked(&self, counter: &Counter) -> Result<Option<Kept>, Error> {
        let runner = self.runner()?;
        let conversation = runner.conversation()?;
        asked(&conversation, counter).await?;
        let history = conversation.history();
        let last = history.last().map(|message| message.id.clone()).ok_or_else(|| unexpected("no history"))?;
        let other = runner.fork(&conversation, &last)?;
        asked(&conversation, counter).await?;
        asked(&other, counter).await?;
        counter.count("forks");
        Ok(None)
    }

    /// A conversation that is saved in the middle of a run and goes on elsewhere.
    async fn saved(&self, counter: &Counter) -> Result<Option<Kept>, Error> {
        let conversation = self.runner()?.conversation()?;
        let mut run = conversation.send(WEATHER)?;
        while let Some(events) = run.next().await {
            if events.iter().any(|event| matches!(event.kind, EventKind::ToolResult(_))) {
                break;
            }
        }
        let saved = conversation.snapshot();
        drop(run);
        let restored = self.runner()?.restore(&saved)?;
        let run = restored.resume().ok_or_else(|| unexpected("nothing to resume"))?;
        is_right(&run.answer().await?.text)?;
        counter.count("runs");
        counter.count("saves and restores");
        Ok(None)
    }

    /// An agent whose tools are behind the shim, kept open.
    async fn shim_agent(&self, counter: &Counter) -> Result<Option<Kept>, Error> {
        let connection = self.connect()?;
        let runner = self.runner()?.tools(mcp::tools(&connection).await?);
        let conversation = runner.conversation()?;
        let answer = conversation.send("Read note.txt")?.answer().await?;
        if !answer.text.contains("the word is soak") {
            return Err(unexpected(&answer.text));
        }
        counter.count("runs");
        counter.count("tool calls");
        Ok(Some(Kept { conversation, connection: Some(connection) }))
    }

    /// A client that calls, gives a call up, and says goodbye.
    async fn shim_calls(&self, counter: &Counter) -> Result<Option<Kept>, Error> {
        let connection = self.connect()?;
        for _ in 0..4 {
            let result = count(&connection, SHORT).await?;
            if result.structured_content.as_ref().map(RawJson::as_str) != Some(r#"{"counted":2}"#) {
                return Err(unexpected(&format!("{result:?}")));
            }
            counter.count("tool calls");
        }
        if tokio::time::timeout(Duration::from_millis(60), count(&connection, LONG)).await.is_err() {
            counter.count("aborts");
        }
        connection.close().await;
        Ok(None)
    }

    /// A client that is dropped in the middle of a call.
    async fn shim_gone(&self, counter: &Counter) -> Result<Option<Kept>, Error> {
        let connection = self.connect()?;
        connection.ready().await?;
        let left = tokio::time::timeout(Duration::from_millis(60), count(&connection, LONG)).await;
        drop(connection);
        if left.is_err() {
            counter.count("vanished");
        }
        Ok(None)
    }

    fn connect(&self) -> Result<Connection, Error> {
        Connection::shim(&self.host, "notes", self.shim.clone(), ConnectOptions::default())
    }

    fn runner(&self) -> Result<Runner<NativeHost>, Error> {
        let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
        let schema = RawJson::parse(schema).map_err(|error| unexpected(&error.to_string()))?;
        let tool = ToolDefinition::new("get_weather", "Get the weather of a city", schema);
        let agent = Agent::new(openai_chat::compatible(&self.model, "scripted-demo"));
        Ok(Runner::new(self.host.clone(), agent).tool(tool, async |input: City, _| format!("rain in {}", input.city)))
    }
}

/// A prompt with a tool call, checked.
async fn asked(conversation: &Conversation<NativeHost>, counter: &Counter) -> Result<(), Error> {
    is_right(&conversation.send(WEATHER)?.answer().await?.text)?;
    counter.count("runs");
    counter.count("tool calls");
    Ok(())
}

async fn count(connection: &Connection, to: u32) -> Result<crablet::mcp::protocol::CallToolResult, Error> {
    let arguments =
        RawJson::from_value(&serde_json::json!({ "to": to })).map_err(|error| unexpected(&error.to_string()))?;
    connection.call_tool("count", arguments, CallOptions::default(), None).await
}

fn is_right(text: &str) -> Result<(), Error> {
    if text.contains(ANSWER) { Ok(()) } else { Err(unexpected(text)) }
}

fn unexpected(seen: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("unexpected: {seen}"))
}
