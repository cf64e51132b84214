//! The exchanges that this server and the one in TypeScript both have to have (`pkg-tests/fixtures/mcp-server`).

use crablet::mcp::protocol::{
    CallToolResult, ContentBlock, Implementation, PromptArgument, PromptMessage, Resource, ResourceBody,
    ResourceContents,
};
use crablet::mcp::server::{
    Availability, Catalog, InputRequest, Outcome, Outgoing, PendingCall, Request, Server, ServerOptions, ServerPrompt,
    ServerTool,
};
use serde_json::{Value, json};

use super::{message, raw, said};

#[test]
fn every_exchange_goes_as_it_is_written() {
    let file: Value = serde_json::from_str(include_str!("../../pkg-tests/fixtures/mcp-server/exchanges.json")).unwrap();
    let exchanges = file["exchanges"].as_array().unwrap();
    for exchange in exchanges {
        let mut server = fixture();
        for step in exchange["steps"].as_array().unwrap() {
            let line = step["send"].as_str().map_or_else(|| step["send"].to_string(), str::to_owned);
            let sent = answers(&mut server, &line);
            let expected = step["expect"].as_array().unwrap();
            let is_met = sent.len() == expected.len() && expected.iter().zip(&sent).all(|(want, got)| holds(want, got));
            assert!(is_met, "{}: {line}\nsent {}\nexpected {}", exchange["name"], json!(sent), json!(expected));
        }
    }
    assert!(exchanges.len() > 20, "the file was read");
}

/// Whether everything expected is there.
fn holds(expected: &Value, sent: &Value) -> bool {
    match expected {
        Value::Object(members) => members.iter().all(|(name, value)| match value.as_str() {
            Some("__absent__") => sent.get(name).is_none(),
            _ => sent.get(name).is_some_and(|sent| holds(value, sent)),
        }),
        Value::Array(items) => sent.as_array().is_some_and(|sent| {
            items.len() == sent.len() && items.iter().zip(sent).all(|(expected, sent)| holds(expected, sent))
        }),
        _ => expected == sent,
    }
}

fn answers(server: &mut Server, line: &str) -> Vec<Value> {
    let lines = match server.handle_line(line) {
        Outgoing::Reply(line) | Outgoing::Listening { line, .. } => vec![line],
        Outgoing::Call(call) => {
            let outcome = outcome(&call);
            server.complete(call, outcome)
        }
        Outgoing::Blocked(call) => server.gate_reply(&call).into_iter().collect(),
        _ => Vec::new(),
    };
    lines.iter().map(|line| message(line)).collect()
}

fn fixture() -> Server {
    let tool = |name: &str, description: &str, schema: Value| ServerTool::new(name, description, raw(&schema));
    let text = json!({ "type": "string" });
    let number = json!({ "type": "number" });
    let echo = json!({ "type": "object", "properties": { "text": text }, "required": ["text"] });
    let sum = json!({ "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"] });
    let mut adds = tool("sum", "Adds", sum);
    adds.output_schema = Some(raw(&json!({ "type": "object", "properties": { "sum": number }, "required": ["sum"] })));
    let anything = json!({ "type": "object" });
    let tools = [
        tool("echo", "Says it again", echo),
        adds,
        tool("fail", "Fails", anything.clone()),
        tool("ask", "Asks first", anything.clone()),
        tool("blocked", "Is blocked", anything),
    ];
    let resource = |uri: &str, name: &str, mime_type: Option<&str>| Resource {
        uri: uri.to_owned(),
        name: name.to_owned(),
        title: None,
        description: None,
        mime_type: mime_type.map(str::to_owned),
        size: None,
    };
    let who = PromptArgument { name: "who".into(), description: Some("Whom".into()), required: true };
    let hello = ServerPrompt {
        name: "hello".into(),
        title: None,
        description: Some("Says hello".into()),
        arguments: vec![who],
    };
    let catalog = tools
        .into_iter()
        .try_fold(Catalog::new(), Catalog::tool)
        .and_then(|catalog| catalog.resource(resource("test://note", "note", Some("text/plain"))))
        .and_then(|catalog| catalog.resource_template(resource("test://many/{id}", "many", None)))
        .and_then(|catalog| catalog.prompt(hello))
        .unwrap()
        .completions()
        .logging();
    let info = Implementation { name: "fixture".into(), title: None, version: "1.0.0".into() };
    let options = ServerOptions { instructions: Some("Be kind.".into()), page_size: 4, ..ServerOptions::default() };
    let mut server = Server::with_options(catalog, info, options);
    let blocked = vec![("blocked".to_owned(), "closed for now".to_owned())];
    server.set_availability(Availability { closed: None, blocked });
    server
}

fn outcome(call: &PendingCall) -> Outcome {
    match &call.request {
        Request::Tool { name, arguments } => tool_outcome(call, name, &arguments.read().unwrap()),
        Request::Resource { uri, variables } => {
            let text = match variables.first() {
                Some((_, id)) if id == "0" => return Outcome::NotFound,
                Some((_, id)) => format!("number {id}"),
                None => "note text".to_owned(),
            };
            let mime_type = variables.is_empty().then(|| "text/plain".to_owned());
            Outcome::Contents(vec![ResourceContents { uri: uri.clone(), mime_type, body: ResourceBody::Text(text) }])
        }
        Request::Prompt { arguments, .. } => {
            let content = ContentBlock::Text { text: format!("Say hello to {}", arguments[0].1) };
            let messages = vec![PromptMessage { role: "user".into(), content }];
            Outcome::Prompt { description: Some("Says hello".into()), messages }
        }
        Request::Completion { value, .. } => {
            let fruits = ["apple", "avocado", "berry"].map(str::to_owned);
            let values = fruits.into_iter().filter(|fruit| fruit.starts_with(value.as_str())).collect();
            Outcome::Completion { values, total: None }
        }
        other => panic!("{other:?}"),
    }
}

fn tool_outcome(call: &PendingCall, name: &str, input: &Value) -> Outcome {
    match name {
        "echo" => Outcome::Tool(said(input["text"].as_str().unwrap())),
        "sum" => {
            // As it was written, without a decimal point.
            let sum = input["a"].as_i64().unwrap() + input["b"].as_i64().unwrap();
            let structured_content = Some(raw(&json!({ "sum": sum })));
            Outcome::Tool(CallToolResult { structured_content, ..CallToolResult::default() })
        }
        "ask" => match call.input_responses.member("who") {
            None => {
                let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                let requests = vec![("who".to_owned(), InputRequest::elicit("Who are you?", &raw(&form)))];
                Outcome::NeedsInput { requests, state: Some("kept".into()) }
            }
            Some(answer) => {
                let answer: Value = answer.read().unwrap();
                let state = call.request_state.as_deref().unwrap();
                Outcome::Tool(said(&format!("Hello {} {state}", answer["content"]["name"].as_str().unwrap())))
            }
        },
        _ => Outcome::Failed("no disk".into()),
    }
}
