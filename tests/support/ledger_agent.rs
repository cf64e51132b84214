//! The agent of the tests of the agent service, the same as `pkg-tests/fixtures/agent-service/agent.mjs`: in each step it pays, which
//! may be done once, and looks, which may be done again. What the tools really did stands in a ledger, a file that crablet knows
//! nothing of.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crablet::agent::{Agent, ToolDefinition};
use crablet::host::Runner;
use crablet::json::RawJson;
use crablet::model::{Body, Content, Message, Model, ModelEvent, ModelRequest, Origin, StopReason};
use crablet::native::NativeHost;
use futures_util::stream;
use serde::Deserialize;

#[derive(Deserialize)]
struct Step {
    step: u32,
}

/// The agent of a session, whose payments take so long.
pub(crate) fn agent_of(
    host: &NativeHost,
    session: Arc<str>,
    ledger: Arc<str>,
    work: Duration,
) -> Result<Runner<NativeHost>, crablet::Error> {
    let schema = r#"{"type": "object", "properties": {"step": {"type": "number"}}}"#;
    let tool = |name: &str, description: &str| {
        let schema = RawJson::parse(schema).map_err(|error| invalid(error.to_string()))?;
        Ok::<_, crablet::Error>(ToolDefinition::new(name, description, schema))
    };
    let mut look = tool("look", "Looks.")?;
    look.repeatable = true;
    let write = {
        let session = session.clone();
        move |what: String| {
            let file = OpenOptions::new().create(true).append(true).open(&*ledger);
            // In one write, so that the lines of several workers do not mix.
            file.and_then(|mut file| file.write_all(format!("{session} {what}\n").as_bytes()))
        }
    };
    let pay = write.clone();
    Ok(Runner::new(host.clone(), Agent::new(Model::function("steps")))
        .function_model("steps", |request: Arc<ModelRequest>, _| stream::iter(answer(&request.messages).map(Ok)))
        .tool(tool("pay", "Pays.")?, move |input: Step, context| {
            let written = pay(format!("paid {}", context.call_id));
            async move {
                written?;
                tokio::time::sleep(work).await;
                Ok::<_, std::io::Error>(format!("paid {}", input.step))
            }
        })
        .tool(look, move |input: Step, _| {
            let written = write(format!("looked {}", input.step));
            async move { written.map(|()| format!("seen {}", input.step)) }
        }))
}

fn invalid(message: String) -> crablet::Error {
    crablet::Error::new(crablet::ErrorKind::InvalidInput, message)
}

/// The model is a function of what it is told, so that it does the same whoever asks.
fn answer(messages: &[Arc<Message>]) -> impl Iterator<Item = ModelEvent> + use<> {
    let is_prompt =
        |message: &Arc<Message>| matches!(&message.body, Body::User(user) if user.origin != Origin::Steered);
    let since =
        messages.iter().rposition(is_prompt).map_or(messages, |place| messages.get(place..).unwrap_or_default());
    let wanted = since.first().and_then(|prompt| steps_of(prompt)).unwrap_or(0);
    let mut results = Vec::new();
    let (mut done, mut steered) = (0, 0);
    for message in since {
        match &message.body {
            Body::Tool(tool) => {
                done += 1;
                results.extend(tool.results.iter().filter(|result| result.tool_name == "pay"));
            }
            Body::User(user) if user.origin == Origin::Steered => steered += 1,
            _ => {}
        }
    }
    let mut events = vec![ModelEvent::TextStart { block: 0 }];
    let text =
        |text: String| [ModelEvent::TextDelta { block: 0, text }, ModelEvent::TextEnd { block: 0, replay: None }];
    let mut reason = StopReason::Stop;
    if done < wanted {
        events.extend(text(format!("Step {done}.")));
        for (block, name) in [(1, "pay"), (2, "look")] {
            let id = format!("{name}-{}", messages.len());
            events.push(ModelEvent::ToolInputStart { block, id, name: name.into() });
            events.push(ModelEvent::ToolInputDelta { block, json: format!("{{\"step\":{done}}}") });
            events.push(ModelEvent::ToolInputEnd { block, replay: None });
        }
        reason = StopReason::ToolUse;
    } else {
        let failed = results.iter().filter(|result| result.is_error).count();
        events.extend(text(format!("{} payments, {failed} of unknown end, {steered} steered", results.len())));
    }
    events.push(ModelEvent::Stop { reason, raw: None });
    events.into_iter()
}

/// How many steps a prompt asks for.
fn steps_of(message: &Message) -> Option<usize> {
    let Body::User(user) = &message.body else { return None };
    let Some(Content::Text(text)) = user.content.first() else { return None };
    text.split(|letter: char| !letter.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok()
}
