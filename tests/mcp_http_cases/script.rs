//! Cases with a scripted server: `input.server`, or one in each of `input.variants`, and `input.ops`.

use base64_text::decode;
use crablet::Error;
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::client::{self, CallOptions, ClientOptions, Collection, Event, Reply, Request, TransportKind};
use crablet::mcp::protocol::{CallToolResult, EraChoice};
use crablet::model::HttpRequest;
use serde_json::{Map, Value};

use super::mcp_support::{Answer, Cut, Then, World, body_of, method_of};

/// Runs a case, whole and cut at every byte; the number of runs, or `None` when it has no scripted server.
pub(super) fn run(case: &Value) -> Option<Result<usize, String>> {
    let (input, expected) = (&case["input"], &case["expected"]);
    let own = input["server"].is_array().then_some(input);
    let variants = input["variants"].as_array().map(Vec::as_slice).unwrap_or_default();
    let scripts: Vec<&Value> =
        own.into_iter().chain(variants.iter().filter(|variant| variant["server"].is_array())).collect();
    if scripts.is_empty() {
        return None;
    }
    let mut runs = 0;
    for (index, script) in scripts.iter().enumerate() {
        let ops = if script["ops"].is_array() { &script["ops"] } else { &input["ops"] };
        let own = &expected["variants"][index];
        let expected = if own.is_object() { own } else { expected };
        for cut in cuts(&script["server"]) {
            if let Err(problem) = run_script(&script["server"], ops, expected, cut) {
                return Some(Err(format!("variant {index}, {cut:?}: {problem}")));
            }
            runs += 1;
        }
    }
    Some(Ok(runs))
}

/// Every place at which the longest answer can be cut in two, and all of them at once.
fn cuts(server: &Value) -> Vec<Cut> {
    let steps = server.as_array().map(Vec::as_slice).unwrap_or_default();
    let longest = steps.iter().map(|step| chunks(&step["respond"]).concat().len()).max().unwrap_or_default();
    let mut cuts = vec![Cut::AsWritten, Cut::Bytes];
    // `$ID` is longer than the ids it stands for, so this reaches beyond every end.
    cuts.extend((1..longest).map(Cut::At));
    cuts
}

fn run_script(server: &Value, ops: &Value, expected: &Value, cut: Cut) -> Result<(), String> {
    let mut script = Script::new(server)?;
    let mut options = ClientOptions::new(TransportKind::Http);
    let has_handshake = script.steps.iter().any(|step| step.rpc.as_deref() == Some("initialize"));
    let has_discover = script.steps.iter().any(|step| step.rpc.as_deref() == Some("server/discover"));
    options.era = match (has_discover, has_handshake) {
        (false, true) => EraChoice::Handshake,
        (true, false) => EraChoice::Stateless,
        _ => EraChoice::Auto,
    };
    let mut problems = Vec::new();
    let mut results = Vec::new();
    let requests = {
        let problems = &mut problems;
        let mut world = World::new(options, |request| {
            script.answer(request).unwrap_or_else(|problem| {
                problems.push(problem);
                Answer::new(500)
            })
        })
        .cut(cut);
        let ops = ops.as_array().ok_or("the case has no list of ops")?;
        for op in ops {
            results.push(perform(&mut world, op)?);
        }
        world.settle();
        if world.open_exchanges() > 0 && world.requests.iter().all(|request| request.method != "GET") {
            return Err("an answer's body was neither read to its end nor aborted".to_owned());
        }
        world.requests.clone()
    };
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    check_headers(server, &requests)?;
    check(expected, &results, &requests)
}

/// What an op gave, and how long it took.
struct Outcome {
    given: Given,
    took: u64,
}

enum Given {
    Done,
    Text(String),
    Tools(Vec<String>),
    /// The member of the expectation, and the keys of the list.
    Named(&'static str, Vec<String>),
    Failed(Error),
}

fn perform(world: &mut World<'_>, op: &Value) -> Result<Outcome, String> {
    let started = world.now;
    let timeout = op["timeout_ms"].as_u64();
    let options = CallOptions { maximum: timeout, ..CallOptions::default() };
    let given = match (op.as_str(), op.get("callTool")) {
        (Some("connect"), _) => world.connected().map(|()| Given::Done),
        (Some("listAllTools" | "listTools"), _) => {
            let operation = world.start(Request::ListTools, options);
            world.finish(operation).map(given)
        }
        (Some("close"), _) => {
            world.input(client::Input::Close);
            let closed = world.run_until(|event| matches!(event, Event::Closed { .. }).then_some(()));
            closed.ok_or("the connection did not close")?;
            Ok(Given::Done)
        }
        (Some(word @ ("listResources" | "listPrompts")), _) => {
            let (collection, key, member) = match word {
                "listResources" => (Collection::Resources, "uri", "resources"),
                _ => (Collection::Prompts, "name", "prompts"),
            };
            let operation = world.start(Request::List(collection), options);
            world.finish(operation).map(|reply| match reply {
                Reply::Entries(entries) => Given::Named(member, keys(&entries, key)),
                _ => Given::Done,
            })
        }
        (Some("ping"), _) => {
            let operation = world.start(other("ping", Params::new()), options);
            world.finish(operation).map(|_| Given::Done)
        }
        (None, None) if op["readResource"].is_object() || op["getPrompt"].is_object() => {
            let (method, asked, member, texts) = match op.get("readResource") {
                Some(asked) => ("resources/read", asked, "contents", "text"),
                None => ("prompts/get", &op["getPrompt"], "messages", "content"),
            };
            let params = Params::from_object(&RawJson::parse(asked.to_string()).map_err(|error| error.to_string())?);
            let operation = world.start(other(method, params.map_err(|error| error.to_string())?), options);
            world.finish(operation).map(|reply| match reply {
                Reply::Value(value) => {
                    let value: Value = value.read().unwrap_or_default();
                    let parts = value[member].as_array().into_iter().flatten();
                    let text = |part: &Value| part[texts].as_str().or(part[texts]["text"].as_str()).map(str::to_owned);
                    Given::Text(parts.filter_map(text).collect::<Vec<_>>().join("\n"))
                }
                _ => Given::Done,
            })
        }
        (None, Some(call)) => {
            let name = call["name"].as_str().ok_or("callTool has no name")?.to_owned();
            let arguments = RawJson::parse(call["arguments"].to_string()).map_err(|error| error.to_string())?;
            let operation = world.start(Request::CallTool { name, arguments }, options);
            world.finish(operation).map(given)
        }
        _ => return Err(format!("this runner does not know the op {op}")),
    };
    let given = given.unwrap_or_else(Given::Failed);
    Ok(Outcome { given, took: world.now.since(started) })
}

fn other(method: &str, params: Params) -> Request {
    Request::Other { method: method.to_owned(), params }
}

fn keys(entries: &[RawJson], key: &str) -> Vec<String> {
    let entries = entries.iter().filter_map(|entry| entry.read::<Value>().ok());
    entries.map(|entry| entry[key].as_str().unwrap_or_default().to_owned()).collect()
}

fn given(reply: Reply) -> Given {
    match reply {
        Reply::Tools(tools) => Given::Tools(tools.iter().map(|tool| tool.name.clone()).collect()),
        Reply::ToolResult(result) => {
            CallToolResult::read(&result).map_or_else(Given::Failed, |result| Given::Text(result.text()))
        }
        _ => Given::Done,
    }
}

fn check(expected: &Value, results: &[Outcome], requests: &[HttpRequest]) -> Result<(), String> {
    let known = ["op_results", "op_results_any", "tools", "max_requests", "facts", "variants"];
    let members = expected.as_object().ok_or("expected is no object")?;
    if let Some(unknown) = members.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("this runner cannot check expected.{unknown}"));
    }
    if let Some(wanted) = expected["op_results"].as_array() {
        check_results(wanted, results)?;
    }
    if let Some(choices) = expected["op_results_any"].as_array() {
        let checked =
            choices.iter().map(|choice| check_results(choice.as_array().ok_or("no list of results")?, results));
        let problems: Vec<String> = checked.filter_map(Result::err).collect();
        if problems.len() == choices.len() {
            return Err(problems.join("; or "));
        }
    }
    if let Some(tools) = expected["tools"].as_array() {
        let last = results.last().ok_or("there is no result")?;
        check_result(&serde_json::json!({ "tools": tools }), last)?;
    }
    if let Some(most) = expected["max_requests"].as_u64() {
        let lists = requests.iter().filter(|request| method_of(request) == "tools/list").count() as u64;
        if lists > most {
            return Err(format!("{lists} lists were asked for, at most {most} expected"));
        }
    }
    Ok(())
}

fn check_results(wanted: &[Value], results: &[Outcome]) -> Result<(), String> {
    if wanted.len() != results.len() {
        return Err(format!("{} results, {} expected", results.len(), wanted.len()));
    }
    wanted.iter().zip(results).try_for_each(|(wanted, result)| check_result(wanted, result))
}

fn check_result(wanted: &Value, result: &Outcome) -> Result<(), String> {
    let matches = match (&result.given, wanted) {
        (Given::Done, Value::String(word)) => word == "ok",
        (Given::Text(text), wanted) => wanted["text"].as_str() == Some(text),
        (Given::Tools(names), wanted) => wanted["tools"] == Value::from(names.clone()),
        (Given::Named(member, names), wanted) => wanted[*member] == Value::from(names.clone()),
        (Given::Failed(error), wanted) => {
            let kind = error.kind().as_str().replace('-', "_");
            let kinds = wanted["error"].as_str().unwrap_or_default();
            let contained = wanted["message_contains"].as_str();
            kinds.split('|').any(|name| name.trim() == kind)
                && contained.is_none_or(|texts| texts.split(" | ").any(|text| error.message().contains(text)))
                && wanted["within_ms"].as_u64().is_none_or(|limit| result.took <= limit)
        }
        _ => false,
    };
    if matches {
        return Ok(());
    }
    let given = match &result.given {
        Given::Done => "ok".to_owned(),
        Given::Text(text) => format!("the text {text:?}"),
        Given::Tools(names) => format!("the tools {names:?}"),
        Given::Named(member, names) => format!("the {member} {names:?}"),
        Given::Failed(error) => format!("{}: {error}, after {} ms", error.kind(), result.took),
    };
    Err(format!("got {given}; expected {wanted}"))
}

/// What holds for every handshake server: `initialize` is sent outside of a session, everything later inside the newest
/// one and with the agreed version, and the client never sends a batch.
fn check_headers(server: &Value, requests: &[HttpRequest]) -> Result<(), String> {
    let ids = server.as_array().into_iter().flatten().filter_map(|step| {
        let respond = &step["respond"];
        let is_opening = step["rpc"] == "initialize" && respond["status"] == 200;
        is_opening
            .then(|| (respond["headers"]["mcp-session-id"].as_str(), &respond["json"]["result"]["protocolVersion"]))
    });
    let mut sessions = ids.collect::<Vec<_>>().into_iter();
    let mut refused = server
        .as_array()
        .into_iter()
        .flatten()
        .filter(|step| step["rpc"] == "initialize" && step["respond"]["status"] != 200)
        .count();
    let mut current = None;
    for request in requests {
        if body_of(request).is_array() {
            return Err("the client sent a batch".to_owned());
        }
        if method_of(request) == "initialize" {
            if request.header("mcp-session-id").is_some() || request.header("mcp-protocol-version").is_some() {
                return Err("initialize carried a session or a version".to_owned());
            }
            if refused > 0 {
                refused -= 1;
            } else {
                current = sessions.next().or(current);
            }
            continue;
        }
        let Some((session, version)) = current else { continue };
        if request.header("mcp-session-id") != session {
            return Err(format!("{} {} was not sent in the session", request.method, method_of(request)));
        }
        if version.as_str() >= Some("2025-06-18") && request.header("mcp-protocol-version") != version.as_str() {
            return Err(format!("{} {} did not name the version", request.method, method_of(request)));
        }
    }
    Ok(())
}

struct Script {
    steps: Vec<Step>,
    call_id: Value,
}

struct Step {
    http: String,
    rpc: Option<String>,
    when_header: Map<String, Value>,
    nth: Option<u64>,
    expect_params: Option<Value>,
    respond: Value,
    seen: u64,
}

impl Script {
    fn new(server: &Value) -> Result<Self, String> {
        let known = ["http", "rpc", "when_header", "nth", "expect_params", "respond", "note"];
        let step = |step: &Value| {
            let members = step.as_object().ok_or("a server step is no object")?;
            if let Some(unknown) = members.keys().find(|name| !known.contains(&name.as_str())) {
                return Err(format!("this runner does not know the member {unknown} of a server step"));
            }
            Ok(Step {
                http: step["http"].as_str().ok_or("a server step has no http")?.to_owned(),
                rpc: step["rpc"].as_str().map(str::to_owned),
                when_header: step["when_header"].as_object().cloned().unwrap_or_default(),
                nth: step["nth"].as_u64(),
                expect_params: step.get("expect_params").cloned(),
                respond: step["respond"].clone(),
                seen: 0,
            })
        };
        let steps = server.as_array().ok_or("server is no list")?.iter().map(step).collect::<Result<_, String>>()?;
        Ok(Self { steps, call_id: Value::Null })
    }

    fn answer(&mut self, request: &HttpRequest) -> Result<Answer, String> {
        let body = body_of(request);
        let rpc = method_of(request);
        if rpc == "tools/call" {
            self.call_id = body["id"].clone();
        }
        let mut chosen = None;
        for (index, step) in self.steps.iter_mut().enumerate() {
            let header_matches = |(name, value): (&String, &Value)| request.header(name) == value.as_str();
            let is_match = step.http == request.method
                && step.rpc.as_ref().is_none_or(|wanted| *wanted == rpc)
                && step.when_header.iter().all(header_matches);
            if is_match {
                step.seen += 1;
                if chosen.is_none() && step.nth.is_none_or(|nth| nth == step.seen) {
                    chosen = Some(index);
                }
            }
        }
        let Some(step) = chosen.and_then(|index| self.steps.get(index)) else {
            return match (request.method, body.get("id")) {
                ("GET" | "DELETE", _) => Ok(Answer::new(405)),
                ("POST", None) => Ok(Answer::new(202)),
                _ => Err(format!("the client sent {} {rpc}, for which there is no step", request.method)),
            };
        };
        if let Some(wanted) = step.expect_params.as_ref().and_then(Value::as_object)
            && let Some((name, value)) =
                wanted.iter().find(|(name, value)| body["params"].get(name.as_str()) != Some(value))
        {
            return Err(format!("{rpc} was sent with other parameters: {name} is not {value}"));
        }
        self.fill(&step.respond, &body["id"])
    }

    fn fill(&self, respond: &Value, id: &Value) -> Result<Answer, String> {
        let mut answer =
            Answer::new(respond["status"].as_u64().and_then(|status| status.try_into().ok()).ok_or("no status")?);
        for (name, value) in respond["headers"].as_object().into_iter().flatten() {
            answer = answer.header(&name.to_ascii_lowercase(), value.as_str().unwrap_or_default());
        }
        let text_id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let fill = |bytes: Vec<u8>| {
            let Ok(text) = String::from_utf8(bytes.clone()) else { return bytes };
            text.replace("\"$IDSTR\"", &Value::from(text_id.clone()).to_string())
                .replace("\"$CALLID\"", &self.call_id.to_string())
                .replace("\"$ID\"", &id.to_string())
                .into_bytes()
        };
        answer.chunks = chunks(respond).into_iter().map(fill).collect();
        answer.then = match respond["then"].as_str() {
            None | Some("close") => Then::Close,
            Some("hold") => Then::Hold,
            Some("reset") => Then::Break,
            Some(other) => return Err(format!("this runner does not know then: {other}")),
        };
        answer.delay = respond["delay_ms"].as_u64().unwrap_or_default();
        Ok(answer)
    }
}

fn chunks(respond: &Value) -> Vec<Vec<u8>> {
    if let Some(json) = respond.get("json") {
        return vec![json.to_string().into_bytes()];
    }
    let chunk = |chunk: &Value| match (chunk.as_str(), chunk["b64"].as_str()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(text)) => decode(text),
        (None, None) => Vec::new(),
    };
    if let Some(recipe) = respond["chunks_gen"].as_array() {
        return recipe.iter().flat_map(|step| generated(step, chunk)).collect();
    }
    respond["chunks"].as_array().into_iter().flatten().map(chunk).collect()
}

/// The chunks of one step of a recipe: a chunk, `{"repeat": chunk, "times": n}`, or `{"line_bytes": n}`.
fn generated(step: &Value, chunk: impl Fn(&Value) -> Vec<u8>) -> Vec<Vec<u8>> {
    let number = |name: &str| step[name].as_u64().and_then(|number| usize::try_from(number).ok());
    match (number("times"), number("line_bytes")) {
        (Some(times), _) => vec![chunk(&step["repeat"]); times],
        (None, Some(bytes)) => vec![[vec![b'x'; bytes.saturating_sub(1)], b"\n".to_vec()].concat()],
        (None, None) => vec![chunk(step)],
    }
}

mod base64_text {
    /// The bytes of standard base64.
    pub(super) fn decode(text: &str) -> Vec<u8> {
        const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
        for value in text.chars().filter_map(|character| ALPHABET.find(character)) {
            bits = bits << 6 | u32::try_from(value).unwrap();
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count & 0xff) as u8);
            }
        }
        bytes
    }
}
