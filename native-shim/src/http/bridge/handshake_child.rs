//! Stateless callers of a handshake child: the shim is the client that the child wants, and says so once. What the child
//! asks becomes a result that asks the caller, who comes back with the answer.

use std::collections::BTreeMap;

use crablet::Millis;
use crablet::json::RawJson;
use crablet::jsonrpc::{self, Message, Params, RpcError, code};
use crablet::mcp::protocol::{Revision, STATELESS_VERSION};
use crablet::mcp::server::LogLevel;

use super::listeners::Listeners;
use super::open_calls::{OpenCall, OpenCalls};
use super::suspended::{Due, Question, Suspended, SuspendedCall, subject};
use super::tool_headers::{Page, ToolHeaders, Verdict};
use super::wire::{self, CAPABILITIES_KEY};
use super::{Call, Exchange, Input, Outputs, Translation};

#[derive(Debug)]
pub(super) struct HandshakeChild {
    open: OpenCalls,
    /// Of each open request: what its caller can be asked, and what it is about.
    askable: BTreeMap<u64, (Params, Option<String>)>,
    suspended: Suspended,
    listeners: Listeners,
    tools: ToolHeaders,
    phase: Phase,
    /// The lowest level that the child was asked for.
    log_level: Option<LogLevel>,
    next_key: u64,
}

#[derive(Debug)]
enum Phase {
    /// `initialize` is under way; what has come meanwhile waits.
    Greeting { number: u64, waiting: Vec<Call> },
    /// The child's answer to it.
    Ready(Params),
    /// The child refused it.
    Refused(RpcError),
}

impl HandshakeChild {
    pub(super) fn new(nonce: &str, outputs: &mut Outputs) -> Self {
        let mut open = OpenCalls::default();
        let number = open.number();
        outputs.child(&wire::request(number, "initialize", &greeting()));
        Self {
            open,
            askable: BTreeMap::new(),
            suspended: Suspended::new(nonce),
            listeners: Listeners::default(),
            tools: ToolHeaders::default(),
            phase: Phase::Greeting { number, waiting: Vec::new() },
            log_level: None,
            next_key: 0,
        }
    }
}

impl Translation for HandshakeChild {
    fn handle(&mut self, now: Millis, input: Input, outputs: &mut Outputs) {
        match input {
            Input::Call(call) => self.call(now, call, outputs),
            Input::Left(exchange) => self.left(exchange, outputs),
            Input::Child(line) => {
                for message in wire::messages(&line) {
                    self.message(now, message, outputs);
                }
            }
            Input::ChildEnded(sentence) => self.ended(&sentence, outputs),
            Input::Timer => {}
            // The era has neither.
            Input::Message(_) => {}
        }
        while let Some(due) = self.suspended.take_due(now) {
            match due {
                Due::Ask(call, result) => outputs.answer(call.exchange, wire::success(&call.id, &result)),
                Due::Lost(number, lost) => give_up(number, lost, outputs),
            }
        }
    }

    fn timer(&self) -> Option<Millis> {
        self.suspended.due()
    }
}

impl HandshakeChild {
    fn call(&mut self, now: Millis, call: Call, outputs: &mut Outputs) {
        let initialized = match &mut self.phase {
            Phase::Greeting { waiting, .. } => return waiting.push(call),
            Phase::Refused(error) => {
                return outputs.answer(call.exchange, wire::failure(&call.id, error.clone()));
            }
            Phase::Ready(initialized) => initialized,
        };
        match call.method.as_str() {
            "server/discover" => {
                let result = discovered(initialized);
                outputs.answer(call.exchange, wire::success(&call.id, &result));
            }
            wire::LISTEN => {
                let capabilities = wire::members(initialized, "capabilities");
                for uri in self.listeners.open(&call, &capabilities, outputs) {
                    self.tell_interest("resources/subscribe", &uri, outputs);
                }
            }
            method if is_of_the_handshake_era(method) => {
                let error = wire::unknown_method(method);
                outputs.answer(call.exchange, wire::failure(&call.id, error));
            }
            _ if call.params.member("requestState").is_some() => self.come_back(now, &call, outputs),
            _ => match self.tools.check(call) {
                Verdict::Pass(call) => self.forward(call, outputs),
                Verdict::Refuse(call, error) => outputs.answer(call.exchange, wire::failure(&call.id, error)),
                Verdict::Wait => {}
                Verdict::Ask => self.ask_for_tools(&Params::new(), outputs),
            },
        }
    }

    fn forward(&mut self, call: Call, outputs: &mut Outputs) {
        let number = self.open.number();
        let open = OpenCall::of(&call);
        if let Some(level) = open.log_level {
            self.lower_log_level(level, outputs);
        }
        let about = subject(&call);
        let given = wire::members(&call.params, "_meta");
        let mut meta = Params::new();
        for (name, value) in given.iter().filter(|(name, _)| !name.starts_with("io.modelcontextprotocol/")) {
            meta.set(name, value);
        }
        if open.progress_token.is_some() {
            meta.set("progressToken", &number);
        }
        let mut params = call.params;
        params.remove("_meta");
        params.remove("inputResponses");
        if !meta.is_empty() {
            params.set("_meta", &meta);
        }
        outputs.child(&wire::request(number, &call.method, &params));
        self.open.insert(number, open);
        self.askable.insert(number, (wire::members(&given, CAPABILITIES_KEY), about));
    }

    /// The child has one level for all; what is too low for a caller is left out on the way back.
    fn lower_log_level(&mut self, level: LogLevel, outputs: &mut Outputs) {
        let Phase::Ready(initialized) = &self.phase else { return };
        let logs = wire::members(initialized, "capabilities").member("logging").is_some();
        if !logs || self.log_level.is_some_and(|lowest| lowest <= level) {
            return;
        }
        self.log_level = Some(level);
        let number = self.open.number();
        outputs.child(&wire::request(number, "logging/setLevel", &Params::new().with("level", level.as_str())));
    }

    fn ask_for_tools(&mut self, page: &Params, outputs: &mut Outputs) {
        let number = self.open.number();
        self.tools.asked(number);
        outputs.child(&wire::request(number, "tools/list", page));
    }

    fn tell_interest(&mut self, method: &str, uri: &str, outputs: &mut Outputs) {
        let number = self.open.number();
        outputs.child(&wire::request(number, method, &Params::new().with("uri", uri)));
    }

    fn left(&mut self, exchange: Exchange, outputs: &mut Outputs) {
        if let Phase::Greeting { waiting, .. } = &mut self.phase {
            waiting.retain(|call| call.exchange != exchange);
        } else if let Some(uris) = self.listeners.close(exchange) {
            for uri in uris {
                self.tell_interest("resources/unsubscribe", &uri, outputs);
            }
        } else if let Some((number, lost)) = self.suspended.take_waiting(exchange) {
            give_up(number, lost, outputs);
        } else if let Some((number, _)) = self.open.remove_exchange(exchange) {
            self.askable.remove(&number);
            outputs.child(&wire::cancellation(number, "the caller closed the stream"));
        } else {
            self.tools.remove(exchange);
        }
    }

    fn message(&mut self, now: Millis, message: Message, outputs: &mut Outputs) {
        match message {
            Message::Response { id, outcome } => {
                if let Some(number) = wire::number_of(id.as_ref()) {
                    self.returned(now, number, outcome, outputs);
                }
            }
            Message::Notification { method, params } => {
                let params = params.as_ref().map(wire::object).unwrap_or_default();
                match method.as_str() {
                    wire::PROGRESS => self.open.progress(&params, outputs),
                    wire::MESSAGE => self.open.log(&params, outputs),
                    wire::CANCELLED => {
                        if let Some(id) = params.member("requestId") {
                            self.suspended.retract(id);
                        }
                    }
                    _ => {
                        if method == "notifications/tools/list_changed" {
                            self.tools.forget();
                        }
                        self.listeners.tell(&method, &params, outputs);
                    }
                }
            }
            Message::Request { id, method, params } => {
                let params = params.as_ref().map(wire::object).unwrap_or_default();
                self.asked(now, Question { id, method, params }, outputs);
            }
        }
    }

    /// The child wants to know something: whoever waits for the child is asked.
    fn asked(&mut self, now: Millis, question: Question, outputs: &mut Outputs) {
        if question.method == "ping" {
            return outputs.child(&wire::success(&question.id, &Params::new()));
        }
        let can = |number: &u64, method: &str| {
            let askable = self.askable.get(number);
            matches!(method, "tools/call" | "prompts/get" | "resources/read")
                && askable.is_some_and(|(can, _)| wire::can_be_asked(can, &question.method, &question.params))
        };
        let newest = self.open.newest().find(|(number, call)| can(number, &call.method)).map(|(number, _)| number);
        let Some(number) = newest.or_else(|| self.suspended.newest_for(&question.method, &question.params)) else {
            let reason = format!("no caller that could be asked {} waits for an answer", question.method);
            return outputs.child(&wire::failure(&question.id, RpcError::new(code::METHOD_NOT_FOUND, reason)));
        };
        self.next_key += 1;
        let key = format!("input-{}", self.next_key);
        if let Some((call, (capabilities, subject))) = self.open.remove(number).zip(self.askable.remove(&number)) {
            self.suspended.insert(number, (call, capabilities, subject), BTreeMap::from([(key, question)]), now);
        } else if let Some(suspended) = self.suspended.get_mut(number) {
            suspended.questions.insert(key, question);
        }
    }

    /// A caller is back with answers: they go to the child, and the request waits on.
    fn come_back(&mut self, now: Millis, call: &Call, outputs: &mut Outputs) {
        let (number, suspended) = match self.suspended.come_back(call) {
            Ok(suspended) => suspended,
            Err(error) => return outputs.answer(call.exchange, wire::failure(&call.id, error)),
        };
        let answers = wire::members(&call.params, "inputResponses");
        let mut missing = BTreeMap::new();
        for (key, question) in suspended.questions {
            match answers.member(&key) {
                Some(answer) => outputs.child(&jsonrpc::response(&question.id, &Ok(answer.clone()))),
                None => drop(missing.insert(key, question)),
            }
        }
        let capabilities = wire::members(&wire::members(&call.params, "_meta"), CAPABILITIES_KEY);
        let open = OpenCall::of(call);
        if let Some(outcome) = suspended.outcome {
            return outputs.answer(call.exchange, translated(&open, outcome));
        }
        if missing.is_empty() {
            self.open.insert(number, open);
            self.askable.insert(number, (capabilities, suspended.subject));
            return;
        }
        // A caller that left something out is asked for it again.
        self.suspended.insert(number, (open, capabilities, suspended.subject), missing, now);
    }

    fn returned(&mut self, now: Millis, number: u64, outcome: Result<RawJson, RpcError>, outputs: &mut Outputs) {
        if matches!(self.phase, Phase::Greeting { number: asked, .. } if asked == number) {
            return self.greeted(now, outcome, outputs);
        }
        if self.tools.awaits(number) {
            return self.tools_listed(outcome.ok().as_ref(), outputs);
        }
        if let Some(call) = self.open.remove(number) {
            self.askable.remove(&number);
            outputs.answer(call.exchange, translated(&call, outcome));
        } else if let Some((call, outcome)) = self.suspended.returned(number, outcome) {
            outputs.answer(call.exchange, translated(&call, outcome));
        }
    }

    fn greeted(&mut self, now: Millis, outcome: Result<RawJson, RpcError>, outputs: &mut Outputs) {
        let phase = match outcome {
            Ok(result) => {
                outputs.child(&jsonrpc::notification("notifications/initialized", &Params::new()));
                Phase::Ready(wire::object(&result))
            }
            Err(error) => {
                let reason = format!("the server refused to be initialized: {}", error.message);
                Phase::Refused(RpcError::new(code::INTERNAL_ERROR, reason))
            }
        };
        if let Phase::Greeting { waiting, .. } = std::mem::replace(&mut self.phase, phase) {
            waiting.into_iter().for_each(|call| self.call(now, call, outputs));
        }
    }

    fn tools_listed(&mut self, result: Option<&RawJson>, outputs: &mut Outputs) {
        match self.tools.page(result) {
            Page::More(page) => self.ask_for_tools(&page, outputs),
            Page::Last(calls) => {
                for (call, verdict) in calls {
                    match verdict {
                        Ok(()) => self.forward(call, outputs),
                        Err(error) => outputs.answer(call.exchange, wire::failure(&call.id, error)),
                    }
                }
            }
        }
    }

    fn ended(&mut self, sentence: &str, outputs: &mut Outputs) {
        let waiting = match &mut self.phase {
            Phase::Greeting { waiting, .. } => std::mem::take(waiting),
            Phase::Ready(_) | Phase::Refused(_) => Vec::new(),
        };
        for call in waiting.into_iter().chain(self.tools.end()) {
            outputs.answer(call.exchange, wire::child_ended(&call.id, sentence));
        }
        self.open.end(sentence, outputs);
        self.listeners.end(outputs);
        for call in self.suspended.end() {
            outputs.answer(call.exchange, wire::child_ended(&call.id, sentence));
        }
    }
}

/// What the shim says of itself. It can pass on every question, though not every caller may take it: that shows only when
/// there is one.
fn greeting() -> Params {
    let elicitation = Params::new().with("form", &Params::new()).with("url", &Params::new());
    let capabilities =
        Params::new().with("elicitation", &elicitation).with("sampling", &Params::new()).with("roots", &Params::new());
    let client = Params::new().with("name", "crablet-shim").with("version", env!("CARGO_PKG_VERSION"));
    Params::new()
        .with("protocolVersion", Revision::LATEST.as_str())
        .with("capabilities", &capabilities)
        .with("clientInfo", &client)
}

/// The answer to `server/discover`, from that to `initialize`.
fn discovered(initialized: &Params) -> Params {
    let mut capabilities = wire::members(initialized, "capabilities");
    // The tasks of the handshake era are of another kind.
    capabilities.remove("tasks");
    let mut result = Params::new()
        .with("resultType", "complete")
        .with("supportedVersions", &[STATELESS_VERSION])
        .with("capabilities", &capabilities);
    if let Some(instructions) = initialized.member("instructions") {
        result.set("instructions", instructions);
    }
    if let Some(info) = initialized.member("serverInfo") {
        result.set("_meta", &Params::new().with(wire::SERVER_KEY, info));
    }
    cacheable(result)
}

/// The answer to a request, in the words of the stateless era.
fn translated(call: &OpenCall, outcome: Result<RawJson, RpcError>) -> RawJson {
    let outcome = match outcome {
        Ok(result) => {
            let mut result = wire::object(&result).with("resultType", "complete");
            if matches!(
                call.method.as_str(),
                "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" | "resources/read"
            ) {
                result = cacheable(result);
            }
            Ok(result.to_raw())
        }
        Err(error) if error.code == wire::RESOURCE_NOT_FOUND && call.method == "resources/read" => {
            Err(RpcError { code: code::INVALID_PARAMS, ..error })
        }
        Err(error) => Err(error),
    };
    jsonrpc::response(&call.id, &outcome)
}

/// Nothing is known of how long it holds, nor of who else may see it.
fn cacheable(result: Params) -> Params {
    result.with("ttlMs", &0).with("cacheScope", "private")
}

/// Methods that the stateless era has not, or means otherwise.
fn is_of_the_handshake_era(method: &str) -> bool {
    matches!(method, "initialize" | "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe")
        || method.starts_with("tasks/")
        || method.starts_with("notifications/")
}

/// Ends a request whose caller does not come back.
fn give_up(number: u64, lost: SuspendedCall, outputs: &mut Outputs) {
    for question in lost.questions.into_values() {
        let error = RpcError::new(code::INTERNAL_ERROR, "the client did not answer in time");
        outputs.child(&wire::failure(&question.id, error));
    }
    if lost.outcome.is_none() {
        outputs.child(&wire::cancellation(number, "the client did not come back with its answers"));
    }
}
