//! A handshake caller of a stateless child: the shim is the client that the child wants. It says in each request what the
//! caller said once, asks the caller what the child's results ask for, and listens for it.

use std::collections::BTreeMap;

use crablet::Millis;
use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{self, Message, Params, RequestId, RpcError, code};
use crablet::mcp::protocol::{Revision, STATELESS_VERSION};
use crablet::mcp::server::LogLevel;
use crablet::mcp::server::http::PostedMessage;

use super::open_calls::{OpenCall, OpenCalls};
use super::wire::{self, CAPABILITIES_KEY, CLIENT_KEY, LOG_LEVEL_KEY, VERSION_KEY};
use super::{Call, Exchange, Input, Outputs, Translation};

#[derive(Debug, Default)]
pub(super) struct HandshakeCaller {
    open: OpenCalls,
    /// Each open request as it was sent, for when it has to be sent again with answers.
    sent: BTreeMap<u64, Sent>,
    /// `initialize`, from its coming to the child's answer to the discovery.
    greeting: Option<(u64, Exchange, RawJson, Revision)>,
    capabilities: Params,
    client: Option<RawJson>,
    child: Params,
    log_level: Option<LogLevel>,
    is_announced: bool,
    followed: Vec<String>,
    listening: Option<u64>,
    questions: BTreeMap<u64, Question>,
    next_question: u64,
}

#[derive(Clone, Debug)]
struct Sent {
    method: String,
    params: Params,
    rounds: u32,
    /// What the child asked for, while the caller is asked.
    asked: Option<Asked>,
}

#[derive(Clone, Debug)]
struct Asked {
    answers: Params,
    state: Option<RawJson>,
    open: usize,
}

/// A request to the caller.
#[derive(Debug)]
struct Question {
    call: u64,
    key: String,
}

impl Translation for HandshakeCaller {
    fn handle(&mut self, _now: Millis, input: Input, outputs: &mut Outputs) {
        match input {
            Input::Call(call) => self.call(call, outputs),
            Input::Message(PostedMessage::Notification { method, params, .. }) => {
                self.notified(&method, &params, outputs)
            }
            Input::Message(PostedMessage::Response { id, raw }) => self.answered(&id, &raw, outputs),
            Input::Child(line) => {
                for message in wire::messages(&line) {
                    self.message(message, outputs);
                }
            }
            Input::ChildEnded(sentence) => {
                if let Some((_, exchange, id, _)) = self.greeting.take() {
                    outputs.answer(exchange, wire::child_ended(&id, &sentence));
                }
                self.open.end(&sentence, outputs);
            }
            // A stream that ends is no cancellation in this era.
            Input::Left(_) | Input::Timer => {}
        }
    }
}

impl HandshakeCaller {
    fn call(&mut self, call: Call, outputs: &mut Outputs) {
        let done = || Ok(Params::new());
        let outcome = match call.method.as_str() {
            "initialize" => return self.initialize(call, outputs),
            "ping" => done(),
            "logging/setLevel" if self.child.member("logging").is_some() => {
                let level = wire::text(&call.params, "level").and_then(|level| LogLevel::from_name(&level));
                self.log_level = level.or(self.log_level);
                level.map(|_| Params::new()).ok_or_else(|| invalid("the level is one of debug to emergency"))
            }
            "resources/subscribe" | "resources/unsubscribe" => self.follow(&call, outputs),
            "logging/setLevel" | wire::LISTEN | "server/discover" => Err(wire::unknown_method(&call.method)),
            _ if self.open.number_of_id(&call.id).is_some() => {
                Err(RpcError::new(code::INVALID_REQUEST, "a request of this id is at work already"))
            }
            _ => return self.forward(call, outputs),
        };
        let message = match outcome {
            Ok(result) => wire::success(&call.id, &result),
            Err(error) => wire::failure(&call.id, error),
        };
        outputs.answer(call.exchange, message);
    }

    fn initialize(&mut self, call: Call, outputs: &mut Outputs) {
        self.capabilities = wire::members(&call.params, "capabilities");
        self.client = call.params.member("clientInfo").cloned();
        let wanted = wire::text(&call.params, "protocolVersion").and_then(|version| Revision::from_name(&version));
        let number = self.open.number();
        self.greeting = Some((number, call.exchange, call.id, wanted.unwrap_or(Revision::LATEST)));
        outputs.child(&wire::request(number, "server/discover", &Params::new().with("_meta", &self.meta())));
    }

    /// The child said what it is: that is the answer to `initialize`.
    fn greeted(
        &mut self,
        (exchange, id, revision): (Exchange, RawJson, Revision),
        outcome: Result<RawJson, RpcError>,
        outputs: &mut Outputs,
    ) {
        let discovered = match outcome {
            Ok(discovered) => wire::object(&discovered),
            Err(error) => return outputs.answer(exchange, wire::failure(&id, error)),
        };
        self.child = wire::members(&discovered, "capabilities");
        // Extensions are of the newer era; what a handshake revision does not know it skips.
        let mut capabilities = self.child.clone();
        capabilities.remove("extensions");
        let info = wire::members(&discovered, "_meta").remove(wire::SERVER_KEY);
        let unnamed = || Params::new().with("name", "unnamed").with("version", "0").to_raw();
        let mut result = Params::new()
            .with("protocolVersion", revision.as_str())
            .with("capabilities", &capabilities)
            .with("serverInfo", &info.unwrap_or_else(unnamed));
        if let Some(instructions) = discovered.member("instructions") {
            result.set("instructions", instructions);
        }
        outputs.answer(exchange, wire::success(&id, &result));
    }

    /// What every request to the child says of this caller.
    fn meta(&self) -> Params {
        let mut meta = Params::new().with(VERSION_KEY, STATELESS_VERSION).with(CAPABILITIES_KEY, &self.capabilities);
        if let Some(client) = &self.client {
            meta.set(CLIENT_KEY, client);
        }
        meta
    }

    fn forward(&mut self, call: Call, outputs: &mut Outputs) {
        let Call { exchange, id, method, mut params, .. } = call;
        let given = wire::members(&params, "_meta");
        let progress_token = given.member("progressToken").cloned();
        let mut meta = given.iter().fold(self.meta(), |meta, (name, value)| {
            if name.starts_with("io.modelcontextprotocol/") { meta } else { meta.with(name, value) }
        });
        if self.child.member("logging").is_some() {
            // Who never said what it wants to hear of hears what people want to read.
            meta.set(LOG_LEVEL_KEY, self.log_level.unwrap_or(LogLevel::Info).as_str());
        }
        params.set("_meta", &meta);
        let sent = Sent { method: method.clone(), params, rounds: 0, asked: None };
        let open = OpenCall { exchange, id, method, progress_token, log_level: None };
        self.send(sent, open, outputs);
    }

    fn send(&mut self, mut sent: Sent, open: OpenCall, outputs: &mut Outputs) {
        let number = self.open.number();
        if open.progress_token.is_some() {
            let meta = wire::members(&sent.params, "_meta").with("progressToken", &number);
            sent.params.set("_meta", &meta);
        }
        outputs.child(&wire::request(number, &sent.method, &sent.params));
        self.open.insert(number, open);
        self.sent.insert(number, sent);
    }

    fn notified(&mut self, method: &str, params: &Params, outputs: &mut Outputs) {
        match method {
            "notifications/initialized" if !self.is_announced => {
                self.is_announced = true;
                self.listen(outputs);
            }
            wire::CANCELLED => {
                let number = params.member("requestId").and_then(|id| self.open.number_of_id(id));
                let Some((number, call)) = number.and_then(|number| Some((number, self.open.remove(number)?))) else {
                    return;
                };
                // One that waits for the caller is not at work there.
                if self.sent.remove(&number).is_some_and(|sent| sent.asked.is_none()) {
                    outputs.child(&wire::cancellation(number, "the caller cancelled the request"));
                }
                self.questions.retain(|_, question| question.call != number);
                outputs.unanswered(call.exchange);
            }
            _ => {}
        }
    }

    /// Listens to what the child can tell, in place of an earlier subscription.
    fn listen(&mut self, outputs: &mut Outputs) {
        let mut wanted = Params::new();
        for (capability, name) in LISTS {
            let capability = wire::members(&self.child, capability);
            if capability.member("listChanged").is_some_and(|value| value.as_str() == "true") {
                wanted.set(name, &true);
            }
        }
        if !self.followed.is_empty() {
            wanted.set("resourceSubscriptions", &self.followed);
        }
        let earlier = self.listening.take();
        if !wanted.is_empty() {
            let number = self.open.number();
            let params = Params::new().with("notifications", &wanted).with("_meta", &self.meta());
            outputs.child(&wire::request(number, wire::LISTEN, &params));
            self.listening = Some(number);
        }
        if let Some(number) = earlier {
            outputs.child(&wire::cancellation(number, "another subscription takes its place"));
        }
    }

    fn follow(&mut self, call: &Call, outputs: &mut Outputs) -> Result<Params, RpcError> {
        let offers = wire::members(&self.child, "resources");
        if offers.member("subscribe").is_none_or(|value| value.as_str() != "true") {
            return Err(wire::unknown_method(&call.method));
        }
        let uri = wire::text(&call.params, "uri").ok_or_else(|| invalid("the uri is missing"))?;
        self.followed.retain(|followed| *followed != uri);
        if call.method == "resources/subscribe" {
            if self.followed.len() >= MAX_FOLLOWED {
                return Err(RpcError::new(code::INTERNAL_ERROR, "too many resources are followed"));
            }
            self.followed.push(uri);
        }
        self.listen(outputs);
        Ok(Params::new())
    }

    fn message(&mut self, message: Message, outputs: &mut Outputs) {
        match message {
            Message::Response { id, outcome } => {
                let Some(number) = wire::number_of(id.as_ref()) else { return };
                if let Some((_, exchange, id, revision)) = self.greeting.take_if(|greeting| greeting.0 == number) {
                    self.greeted((exchange, id, revision), outcome, outputs);
                } else if self.listening == Some(number) {
                    self.listening = None;
                } else if let Some(call) = self.open.remove(number) {
                    let sent = self.sent.remove(&number);
                    self.returned(number, call, sent, outcome, outputs);
                }
            }
            Message::Notification { method, params } => {
                let mut params = params.as_ref().map(wire::object).unwrap_or_default();
                match method.as_str() {
                    wire::PROGRESS => self.open.progress(&params, outputs),
                    wire::ACKNOWLEDGED | wire::CANCELLED => {}
                    wire::MESSAGE => {
                        let exchange = self.open.newest().next().map(|(_, call)| call.exchange);
                        outputs.caller(exchange, jsonrpc::notification(&method, &params));
                    }
                    _ => {
                        params.remove("_meta");
                        outputs.caller(None, jsonrpc::notification(&method, &params));
                    }
                }
            }
            Message::Request { id, method, .. } => outputs.child(&wire::failure(&id, wire::unknown_method(&method))),
        }
    }

    /// A result of the child: the answer, or what the caller has to be asked first.
    fn returned(
        &mut self,
        number: u64,
        call: OpenCall,
        sent: Option<Sent>,
        outcome: Result<RawJson, RpcError>,
        outputs: &mut Outputs,
    ) {
        let kind =
            |result: &RawJson| Object::parse(result.as_str()).ok().and_then(|result| result.string("resultType"));
        let outcome = match (outcome, sent) {
            (Ok(result), Some(sent)) if kind(&result).as_deref() == Some("input_required") => {
                return self.ask(number, call, sent, &wire::object(&result), outputs);
            }
            (Ok(result), _) => complete(&result, kind(&result)),
            (Err(error), _) => Err(error),
        };
        outputs.answer(call.exchange, jsonrpc::response(&call.id, &outcome));
    }

    fn ask(&mut self, number: u64, call: OpenCall, mut sent: Sent, result: &Params, outputs: &mut Outputs) {
        let requests = wire::members(result, "inputRequests");
        let state = result.member("requestState").cloned();
        sent.rounds += 1;
        if sent.rounds > MAX_ROUNDS || requests.iter().count() > MAX_QUESTIONS {
            let error = RpcError::new(code::INTERNAL_ERROR, "the server asked the client for too much");
            return outputs.answer(call.exchange, wire::failure(&call.id, error));
        }
        let exchange = call.exchange;
        let mut open = 0;
        for (key, request) in requests.iter() {
            let request = wire::object(request);
            let Some(method) = wire::text(&request, "method") else { continue };
            self.next_question += 1;
            self.questions.insert(self.next_question, Question { call: number, key: key.to_owned() });
            let id = RequestId::Text(question_id(self.next_question));
            let message = jsonrpc::request(&id, &method, &wire::members(&request, "params"));
            outputs.caller(Some(exchange), message);
            open += 1;
        }
        let asked = Asked { answers: Params::new(), state, open };
        if open == 0 {
            // There is nothing to ask: the child only wants its state back.
            return self.resend(call, sent, asked, outputs);
        }
        sent.asked = Some(asked);
        self.open.insert(number, call);
        self.sent.insert(number, sent);
    }

    /// The caller answered a question; with the last one the request goes to the child again.
    fn answered(&mut self, id: &RawJson, raw: &RawJson, outputs: &mut Outputs) {
        let number = id.read::<String>().ok().and_then(|id| id.strip_prefix(QUESTION)?.parse().ok());
        let Some(Question { call: number, key }) = number.and_then(|number: u64| self.questions.remove(&number)) else {
            return;
        };
        let Some(Message::Response { outcome, .. }) = wire::messages(raw.as_str()).pop() else { return };
        let asked = self.sent.get_mut(&number).and_then(|sent| sent.asked.as_mut());
        match (outcome, asked) {
            (Ok(answer), Some(asked)) => {
                asked.answers.set(&key, &answer);
                asked.open -= 1;
                if asked.open > 0 {
                    return;
                }
                let (call, sent) = (self.open.remove(number), self.sent.remove(&number));
                if let (Some(call), Some(mut sent)) = (call, sent)
                    && let Some(asked) = sent.asked.take()
                {
                    self.resend(call, sent, asked, outputs);
                }
            }
            (Err(error), _) => {
                self.questions.retain(|_, question| question.call != number);
                self.sent.remove(&number);
                if let Some(call) = self.open.remove(number) {
                    outputs.answer(call.exchange, wire::failure(&call.id, error));
                }
            }
            (Ok(_), None) => {}
        }
    }

    fn resend(&mut self, call: OpenCall, mut sent: Sent, asked: Asked, outputs: &mut Outputs) {
        sent.params.remove("requestState");
        sent.params.remove("inputResponses");
        if !asked.answers.is_empty() {
            sent.params.set("inputResponses", &asked.answers);
        }
        if let Some(state) = &asked.state {
            sent.params.set("requestState", state);
        }
        self.send(sent, call, outputs);
    }
}

/// A complete result in the words of the handshake era.
fn complete(result: &RawJson, kind: Option<String>) -> Result<RawJson, RpcError> {
    match kind.as_deref() {
        // A server of this era need not say it.
        None => return Ok(result.clone()),
        Some("complete") => {}
        Some(kind) => {
            let reason = format!("the server gave a result of the kind {kind:?}, which this protocol version lacks");
            return Err(RpcError::new(code::INTERNAL_ERROR, reason));
        }
    }
    let mut result = wire::object(result);
    for name in ["resultType", "ttlMs", "cacheScope"] {
        result.remove(name);
    }
    Ok(result.to_raw())
}

fn invalid(message: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

fn question_id(number: u64) -> String {
    format!("{QUESTION}{number}")
}

/// Which lists can change, and what listening to that is called.
pub(super) const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// Before the number of a question, so that no caller takes its id for one of its own.
const QUESTION: &str = "shim-";

/// How often one request may ask for input.
const MAX_ROUNDS: u32 = 16;

/// How much one result may ask for.
const MAX_QUESTIONS: usize = 32;

/// How many resources one session may follow.
const MAX_FOLLOWED: usize = 1_000;
