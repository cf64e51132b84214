use super::super::protocol::{Era, EraChoice, Revision, STATELESS_VERSION};
use super::call::{CallNumber, LogLevel, Outcome, PendingCall, Request};
use super::{HandshakeClient, Outgoing, Server, render};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{self, Params, RequestId, RpcError, code};

/// A request before anyone has said `initialize`.
const NOT_INITIALIZED: i64 = -32000;
/// There is no such resource, in the words of the handshake era.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// The client did not say that it can be asked for what is needed (2026-07-28).
pub(super) const MISSING_CAPABILITY: i64 = -32021;
/// The request is of a revision that is not spoken (2026-07-28).
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// The most calls at work for one connection.
const MAX_CALLS: usize = 1_000;

/// The most completions of one answer (2024-11-05 and later, "Completion").
const MAX_COMPLETIONS: usize = 100;

/// Where a request says what else was always said once.
pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// What a request says of itself and of its client.
struct Context {
    id: RawJson,
    era: Era,
    progress_token: Option<RawJson>,
    log_level: Option<LogLevel>,
    client_capabilities: Params,
}

impl Server {
    /// Takes a line of the client. Never fails: what is wrong with it is answered.
    pub fn handle_line(&mut self, line: &str) -> Outgoing {
        let Ok(message) = Object::parse(line) else { return reply(&null(), Err(unreadable(line))) };
        let method = message.get("method").map(|_| message.string("method"));
        let id = message.get("id").map(|id| readable_id(&RawJson::from(id)));
        match (method, id) {
            (Some(Some(method)), Some(Some(id))) => self.request(id, &method, &message),
            (Some(Some(method)), None) => self.notified(&method, &message),
            (None, id) if message.get("result").is_some() || message.get("error").is_some() => {
                let outcome = match message.object("error") {
                    Some(error) => Err(RpcError::new(0, error.string("message").unwrap_or_default())),
                    None => message.raw("result").ok_or_else(|| RpcError::new(0, "there is no result")),
                };
                self.answered(id.flatten().as_ref().and_then(RequestId::read).as_ref(), outcome)
            }
            (_, None) => Outgoing::None,
            (Some(Some(_)), Some(None)) => {
                let error = RpcError::new(code::INVALID_REQUEST, "an id is a text or a number");
                reply(&null(), Err(error))
            }
            (_, Some(id)) => {
                let error = RpcError::new(code::INVALID_REQUEST, "a request has a method, which is a text");
                reply(&id.unwrap_or_else(null), Err(error))
            }
        }
    }

    /// Ends a call. Gives the lines to send: the answer, what the client is asked first, or nothing for a call that was
    /// cancelled.
    pub fn complete(&mut self, call: PendingCall, outcome: Outcome) -> Vec<String> {
        if !self.calls.contains_key(&call.number) {
            return Vec::new();
        }
        match outcome {
            Outcome::NeedsInput { requests, state } if !matches!(call.request, Request::Completion { .. }) => {
                self.ask(call, requests, state)
            }
            outcome => vec![self.finished(call, outcome)],
        }
    }

    /// The answer to a call of a tool that is not available, in the words of the availability of this moment: a failed
    /// result, for the client's model to read.
    pub fn gate_reply(&mut self, call: &PendingCall) -> Option<String> {
        if !self.calls.contains_key(&call.number) {
            return None;
        }
        let reason = match &call.request {
            Request::Tool { name, .. } => self.availability.reason(name),
            _ => None,
        };
        let reason = reason.unwrap_or("it was not available a moment ago: call it again").to_owned();
        Some(self.finished(call.clone(), Outcome::Failed(reason)))
    }

    fn request(&mut self, id: RawJson, method: &str, message: &Object<'_>) -> Outgoing {
        let params = match message.get("params") {
            None => Object::default(),
            Some(params) if params.get() == "null" => Object::default(),
            Some(params) => match Object::parse(params.get()) {
                Ok(params) => params,
                Err(_) => return reply(&id, Err(invalid_params("the parameters are an object"))),
            },
        };
        let meta = params.object("_meta").unwrap_or_default();
        let is_stateless = meta.get(VERSION_KEY).is_some()
            || self.options.eras == EraChoice::Stateless
            || (method == "server/discover" && self.client.is_none());
        if method == "initialize" && self.options.eras == EraChoice::Stateless && meta.get(VERSION_KEY).is_none() {
            let requested = params.string("protocolVersion").unwrap_or_default();
            return reply(&id, Err(unsupported_version(&requested)));
        }
        if is_stateless && self.options.eras != EraChoice::Handshake {
            return match stateless_context(id.clone(), &meta) {
                Ok(context) => self.stateless(context, method, &params),
                Err(error) => reply(&id, Err(error)),
            };
        }
        self.handshake_request(id, method, &params, &meta)
    }

    fn stateless(&mut self, context: Context, method: &str, params: &Object<'_>) -> Outgoing {
        match method {
            "server/discover" => reply(&context.id, Ok(self.discovered())),
            "subscriptions/listen" => {
                let id = context.id.clone();
                let full = || reply(&id, Err(RpcError::new(code::INTERNAL_ERROR, "there are too many subscriptions")));
                self.listen(context.id, params).unwrap_or_else(full)
            }
            _ => self.shared(context, method, params),
        }
    }

    fn handshake_request(&mut self, id: RawJson, method: &str, params: &Object<'_>, meta: &Object<'_>) -> Outgoing {
        if method == "initialize" {
            let wanted = params.string("protocolVersion").and_then(|version| Revision::from_name(&version));
            let revision = wanted.unwrap_or(Revision::LATEST);
            let capabilities = members(params, "capabilities");
            self.client = Some(HandshakeClient { revision, capabilities });
            return reply(&id, Ok(self.initialized(revision)));
        }
        if method == "ping" {
            return reply(&id, Ok(Params::new().to_raw()));
        }
        let Some(client) = &self.client else {
            let error = if is_method(method) {
                RpcError::new(NOT_INITIALIZED, "the server is not initialized: send initialize first")
            } else {
                unknown_method(method)
            };
            return reply(&id, Err(error));
        };
        let era = Era::Handshake(client.revision);
        let client_capabilities = client.capabilities.clone();
        let context = Context { id, era, progress_token: progress_token(meta), log_level: None, client_capabilities };
        match method {
            "logging/setLevel" if self.catalog.logs => {
                match params.string("level").and_then(|level| LogLevel::from_name(&level)) {
                    Some(level) => {
                        self.log_level = Some(level);
                        reply(&context.id, Ok(Params::new().to_raw()))
                    }
                    None => reply(
                        &context.id,
                        Err(invalid_params("the level is one of debug to emergency, as in RFC 5424")),
                    ),
                }
            }
            "resources/subscribe" | "resources/unsubscribe" if self.catalog.has_resources() => {
                let Some(uri) = params.string("uri") else {
                    return reply(&context.id, Err(invalid_params("the uri is missing")));
                };
                if method == "resources/unsubscribe" {
                    self.subscribed.remove(&uri);
                } else if !self.subscribe(uri) {
                    let error = RpcError::new(code::INTERNAL_ERROR, "there are too many subscriptions");
                    return reply(&context.id, Err(error));
                }
                reply(&context.id, Ok(Params::new().to_raw()))
            }
            _ => self.shared(context, method, params),
        }
    }

    /// The methods that both eras have.
    fn shared(&mut self, context: Context, method: &str, params: &Object<'_>) -> Outgoing {
        let catalog = &self.catalog;
        let is_served = match method {
            // A list of none is a list.
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                return reply(&context.id, self.listed(method, params, context.era));
            }
            "tools/call" => true,
            "resources/read" => catalog.has_resources(),
            "prompts/get" => !catalog.prompts.is_empty(),
            "completion/complete" => catalog.completes,
            _ => false,
        };
        if !is_served {
            return reply(&context.id, Err(unknown_method(method)));
        }
        let read = match method {
            "tools/call" => self.tool_request(params, context.era),
            "resources/read" => self.resource_request(params, context.era),
            "prompts/get" => self.prompt_request(params),
            _ => completion_request(params),
        };
        match read {
            Ok(Ok(request)) => self.start(context, request, params),
            Ok(Err(reason)) => {
                let result = render::failed_tool(&reason);
                reply(&context.id, Ok(result_of(context.era, result)))
            }
            Err(error) => reply(&context.id, Err(error)),
        }
    }

    /// A call of a tool; what is wrong with its arguments is the inner error where a model is to read it.
    fn tool_request(&self, params: &Object<'_>, era: Era) -> Result<Result<Request, String>, RpcError> {
        let name = params.string("name").ok_or_else(|| invalid_params("the name of the tool is missing"))?;
        let Some(tool) = self.catalog.find_tool(&name) else {
            let former = self.catalog.former_reason(&name).map(|reason| Err(reason.to_owned()));
            return former.ok_or_else(|| invalid_params(format!("there is no tool {name:?}")));
        };
        let arguments = params.raw("arguments").unwrap_or_else(|| Params::new().to_raw());
        let checked = if arguments.as_str().starts_with('{') {
            tool.input.validate(&arguments)
        } else {
            Err("the arguments are an object".to_owned())
        };
        let reason = match checked {
            Ok(()) => return Ok(Ok(Request::Tool { name, arguments })),
            Err(reason) => format!("the arguments of {name} are not valid: {reason}"),
        };
        match era {
            Era::Handshake(revision) if revision < Revision::V2025_11_25 => Err(invalid_params(reason)),
            _ => Ok(Err(reason)),
        }
    }

    fn resource_request(&self, params: &Object<'_>, era: Era) -> Result<Result<Request, String>, RpcError> {
        let uri = params.string("uri").ok_or_else(|| invalid_params("the uri is missing"))?;
        match self.catalog.find_resource(&uri) {
            Some(variables) => Ok(Ok(Request::Resource { uri, variables })),
            None => Err(not_found(&uri, era)),
        }
    }

    fn prompt_request(&self, params: &Object<'_>) -> Result<Result<Request, String>, RpcError> {
        let name = params.string("name").ok_or_else(|| invalid_params("the name of the prompt is missing"))?;
        let prompt =
            self.catalog.find_prompt(&name).ok_or_else(|| invalid_params(format!("there is no prompt {name:?}")))?;
        let arguments = texts(params, "arguments")?;
        let is_missing = |wanted: &str| !arguments.iter().any(|(given, _)| given == wanted);
        match prompt.arguments.iter().find(|argument| argument.required && is_missing(&argument.name)) {
            Some(missing) => Err(invalid_params(format!("the argument {:?} is missing", missing.name))),
            None => Ok(Ok(Request::Prompt { name, arguments })),
        }
    }

    fn start(&mut self, context: Context, request: Request, params: &Object<'_>) -> Outgoing {
        let Context { id, era, progress_token, log_level, client_capabilities } = context;
        if self.calls.iter().any(|(_, open)| *open == id) {
            return reply(
                &null(),
                Err(RpcError::new(code::INVALID_REQUEST, "a request of this id is at work already")),
            );
        }
        if self.calls.len() >= MAX_CALLS {
            return reply(
                &id,
                Err(RpcError::new(code::INTERNAL_ERROR, "too many requests are at work; wait for answers")),
            );
        }
        let number = CallNumber(self.next_call);
        self.next_call += 1;
        self.calls.insert(number, id.clone());
        let (input_responses, request_state) = match era {
            Era::Stateless => (members(params, "inputResponses"), params.string("requestState")),
            Era::Handshake(_) => (Params::new(), None),
        };
        self.gated(PendingCall {
            request,
            input_responses,
            request_state,
            number,
            id,
            era,
            progress_token,
            log_level,
            client_capabilities,
        })
    }

    /// A call to run, or one of a tool that is not available.
    pub(super) fn gated(&self, call: PendingCall) -> Outgoing {
        match &call.request {
            Request::Tool { name, .. } if self.availability.reason(name).is_some() => Outgoing::Blocked(call),
            _ => Outgoing::Call(call),
        }
    }

    fn notified(&mut self, method: &str, message: &Object<'_>) -> Outgoing {
        if method != "notifications/cancelled" {
            return Outgoing::None;
        }
        let Some(id) = message.object("params").and_then(|params| params.raw("requestId")) else {
            return Outgoing::None;
        };
        self.listening.remove(id.as_str());
        let found = self.calls.iter().find(|(_, open)| **open == id).map(|(number, _)| *number);
        let Some(number) = found else { return Outgoing::None };
        self.calls.remove(&number);
        self.forget_asked(number);
        Outgoing::Cancelled(number)
    }

    /// The answer to a call, which is over with it.
    pub(super) fn finished(&mut self, call: PendingCall, outcome: Outcome) -> String {
        let result = self.result(&call, outcome);
        self.close(call, result)
    }

    pub(super) fn close(&mut self, call: PendingCall, outcome: Result<RawJson, RpcError>) -> String {
        self.calls.remove(&call.number);
        render::line(&jsonrpc::response(&call.id, &outcome))
    }

    fn result(&self, call: &PendingCall, outcome: Outcome) -> Result<RawJson, RpcError> {
        let era = call.era;
        match (&call.request, outcome) {
            (Request::Tool { name, .. }, Outcome::Tool(result)) => {
                let schema = self.catalog.find_tool(name).and_then(|tool| tool.output.as_ref());
                let unfit = match (schema, &result.structured_content) {
                    (Some(schema), Some(value)) if !result.is_error => schema.validate(value).err(),
                    (Some(_), None) if !result.is_error => Some("it has no structured content".to_owned()),
                    _ => None,
                };
                let rendered = match unfit {
                    Some(reason) => {
                        render::failed_tool(&format!("the result of {name} is not what it promised: {reason}"))
                    }
                    None => render::tool_result(&result, era),
                };
                Ok(result_of(era, rendered))
            }
            (Request::Tool { .. }, Outcome::Failed(reason)) => Ok(result_of(era, render::failed_tool(&reason))),
            (Request::Resource { .. }, Outcome::Contents(contents)) => {
                let contents: Vec<Params> = contents.iter().map(render::contents).collect();
                Ok(self.cacheable(era, Params::new().with("contents", &contents)))
            }
            (Request::Resource { uri, .. }, Outcome::NotFound) => Err(not_found(uri, era)),
            (Request::Prompt { .. }, Outcome::Prompt { description, messages }) => {
                let mut result = Params::new();
                if let Some(description) = description {
                    result.set("description", &description);
                }
                let messages: Vec<Params> =
                    messages.iter().map(|message| render::prompt_message(message, era)).collect();
                Ok(result_of(era, result.with("messages", &messages)))
            }
            (Request::Completion { .. }, Outcome::Completion { mut values, total }) => {
                let count = u64::try_from(values.len()).unwrap_or(u64::MAX);
                let total = total.unwrap_or(count).max(count);
                values.truncate(MAX_COMPLETIONS);
                let has_more = total > u64::try_from(values.len()).unwrap_or(u64::MAX);
                let completion = Params::new().with("values", &values).with("total", &total).with("hasMore", &has_more);
                Ok(result_of(era, Params::new().with("completion", &completion)))
            }
            (_, Outcome::Refused(reason)) => Err(invalid_params(reason)),
            (_, Outcome::Failed(reason)) => Err(RpcError::new(code::INTERNAL_ERROR, reason)),
            _ => Err(RpcError::new(code::INTERNAL_ERROR, "the server answered something else than it was asked")),
        }
    }
}

fn stateless_context(id: RawJson, meta: &Object<'_>) -> Result<Context, RpcError> {
    let Some(version) = meta.string(VERSION_KEY) else {
        return Err(invalid_params(format!("_meta lacks {VERSION_KEY}, which says the protocol's version")));
    };
    if version != STATELESS_VERSION {
        return Err(unsupported_version(&version));
    }
    if meta.object(CAPABILITIES_KEY).is_none() {
        return Err(invalid_params(format!("_meta lacks {CAPABILITIES_KEY}, which is an object, if an empty one")));
    }
    Ok(Context {
        id,
        era: Era::Stateless,
        progress_token: progress_token(meta),
        log_level: meta.string(LOG_LEVEL_KEY).and_then(|level| LogLevel::from_name(&level)),
        client_capabilities: members(meta, CAPABILITIES_KEY),
    })
}

fn unsupported_version(requested: &str) -> RpcError {
    let data = Params::new().with("supported", &[STATELESS_VERSION]).with("requested", requested).to_raw();
    let message = format!("the protocol version {requested:?} is not spoken here in this way");
    RpcError { code: UNSUPPORTED_VERSION, message, data: Some(data) }
}

fn completion_request(params: &Object<'_>) -> Result<Result<Request, String>, RpcError> {
    let reference = params.object("ref").ok_or_else(|| invalid_params("the ref is missing"))?;
    let argument = params.object("argument").ok_or_else(|| invalid_params("the argument is missing"))?;
    let (of, is_prompt) = match reference.string("type").as_deref() {
        Some("ref/prompt") => (reference.string("name"), true),
        Some("ref/resource") => (reference.string("uri"), false),
        _ => return Err(invalid_params("the ref is of the type ref/prompt or ref/resource")),
    };
    let of = of.ok_or_else(|| invalid_params("the ref names nothing"))?;
    let name = argument.string("name").ok_or_else(|| invalid_params("the argument has no name"))?;
    let known = params.object("context").map(|context| texts(&context, "arguments")).transpose()?.unwrap_or_default();
    let value = argument.string("value").unwrap_or_default();
    Ok(Ok(Request::Completion { of, is_prompt, argument: name, value, known }))
}

/// Members of an object that are all texts; none when it is absent.
fn texts(params: &Object<'_>, name: &str) -> Result<Vec<(String, String)>, RpcError> {
    if params.raw(name).is_none() {
        return Ok(Vec::new());
    }
    let object = params.object(name).ok_or_else(|| invalid_params(format!("{name} is an object")))?;
    let read = |name: &str| {
        let value = object.string(name).ok_or_else(|| invalid_params(format!("the argument {name:?} is a text")))?;
        Ok((name.to_owned(), value))
    };
    object.iter().map(|(name, _)| read(name)).collect()
}

fn members(params: &Object<'_>, name: &str) -> Params {
    params.raw(name).and_then(|raw| Params::from_object(&raw).ok()).unwrap_or_default()
}

fn progress_token(meta: &Object<'_>) -> Option<RawJson> {
    meta.raw("progressToken").and_then(|token| readable_id(&token))
}

/// A result, which says in the stateless era that it is one.
fn result_of(era: Era, result: Params) -> RawJson {
    if era == Era::Stateless { result.with("resultType", "complete").to_raw() } else { result.to_raw() }
}

/// Whether one of the eras has this method.
fn is_method(method: &str) -> bool {
    matches!(
        method,
        "tools/list"
            | "tools/call"
            | "resources/list"
            | "resources/read"
            | "resources/templates/list"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "prompts/list"
            | "prompts/get"
            | "completion/complete"
            | "logging/setLevel"
    )
}

/// An id that is a text or a number.
fn readable_id(id: &RawJson) -> Option<RawJson> {
    let starts = |character: char| character == '"' || character == '-' || character.is_ascii_digit();
    id.as_str().starts_with(starts).then(|| id.clone())
}

fn unreadable(line: &str) -> RpcError {
    match serde_json::from_str::<&serde_json::value::RawValue>(line) {
        Ok(value) if value.get().starts_with('[') => {
            RpcError::new(code::INVALID_REQUEST, "batches are not taken: send one message a line")
        }
        Ok(_) => RpcError::new(code::INVALID_REQUEST, "a message is a JSON object"),
        Err(_) => RpcError::new(code::PARSE_ERROR, "the line is not JSON"),
    }
}

pub(super) fn invalid_params(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

fn unknown_method(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("there is no method {method}"))
}

fn not_found(uri: &str, era: Era) -> RpcError {
    let number = if era == Era::Stateless { code::INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    RpcError {
        data: Some(Params::new().with("uri", uri).to_raw()),
        ..RpcError::new(number, "there is no such resource")
    }
}

fn reply(id: &RawJson, outcome: Result<RawJson, RpcError>) -> Outgoing {
    Outgoing::Reply(render::line(&jsonrpc::response(id, &outcome)))
}

fn null() -> RawJson {
    RawJson::from(serde_json::value::RawValue::NULL)
}
