//! The client side of MCP as a machine, for every transport and both eras.
//!
//! Inputs go in with [`Client::handle`]; what the host must do comes out of [`Client::poll_effect`], and what its caller
//! learns out of [`Client::poll_event`]. Every operation that was started ends with exactly one [`Event::Done`]. Operations
//! may be started before the connection stands: they wait for it.
//!
//! ```
//! use crablet::Millis;
//! use crablet::json::RawJson;
//! use crablet::jsonrpc;
//! use crablet::mcp::client::{
//!     CallOptions, Client, ClientOptions, Effect, Event, Input, Opening, OperationId, Reply, Request, TransportKind,
//! };
//! use crablet::mcp::transport::{Inbound, Outbound};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Millis(0);
//! let mut client = Client::new(ClientOptions::new(TransportKind::Pipe));
//! client.handle(now, Input::Connect(Opening::default()))?;
//! let request = Request::CallTool { name: "clock".into(), arguments: RawJson::parse("{}")? };
//! client.handle(now, Input::Start { operation: OperationId(1), request, options: CallOptions::default() })?;
//!
//! // The host carries messages and keeps timers. Here it is the server too.
//! while let Some(effect) = client.poll_effect() {
//!     let Effect::Send(Outbound::Request { id, message, .. }) = effect else { continue };
//!     let result = if message.as_str().contains("server/discover") {
//!         r#"{"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}"#
//!     } else {
//!         r#"{"resultType": "complete", "content": [{"type": "text", "text": "noon"}]}"#
//!     };
//!     let message = jsonrpc::response(&RawJson::from_value(&id)?, &Ok(RawJson::parse(result)?));
//!     client.handle(now, Input::Inbound(Inbound::Message { request_id: Some(id), status: None, message }))?;
//! }
//!
//! let mut events = std::iter::from_fn(|| client.poll_event());
//! let done = events.find_map(|event| if let Event::Done { outcome, .. } = event { Some(outcome) } else { None });
//! assert!(matches!(done, Some(Ok(Reply::ToolResult(result))) if result.as_str().contains("noon")));
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "oauth")]
pub mod auth;
mod cache;
mod claim;
mod connect;
mod io;
mod listen;
mod listing;
mod operation;
mod output;
mod pages;
mod question;
mod receive;
mod repeat;
mod task;

use std::collections::VecDeque;
use std::sync::Arc;

pub use io::{
    CallOptions, Claim, ClientOptions, Effect, Event, Input, Opening, OperationId, Progress, Reply, Request, Standing,
    TimerId, TransportKind,
};

pub use listing::Collection;
pub use question::QuestionId;

use self::cache::Cache;
use self::claim::Unclaimed;
use self::connect::Connecting;
use self::listen::Listening;
use self::operation::Operation;
use self::question::Question;
use super::protocol::{Era, ServerInfo, Tool};
use super::transport::streamable_http::mirrored;
use super::transport::{Outbound, RequestId};
use crate::error::{Error, ErrorKind};
use crate::jsonrpc::{self, Params};
use crate::ordered_map::OrderedMap;
use crate::time::Millis;

/// How long finding out the era and starting the server may take, in milliseconds. Servers that are downloaded on their
/// first start take most of it.
const STARTUP_LIMIT: u64 = 60_000;

/// How long a server behind a pipe may leave `server/discover` unanswered before `initialize` is sent as well, in
/// milliseconds. Some servers of the handshake era answer nothing else.
const PROBE_LIMIT: u64 = 3_000;

/// The machine.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    phase: Phase,
    /// Grows with each connection that was agreed on, so that late news of an earlier one are told apart.
    generation: u64,
    server: ServerInfo,
    operations: OrderedMap<OperationId, Operation>,
    /// What waits for an answer.
    pending: OrderedMap<RequestId, Pending>,
    /// The tools of the last list, for the headers of calls.
    tools: OrderedMap<String, Arc<Tool>>,
    /// What the server asked and nobody answered yet.
    questions: OrderedMap<QuestionId, Question>,
    next_question: u64,
    listening: Listening,
    /// Answers that are still good by the server's own word.
    cache: Cache,
    id_prefix: String,
    resume_id: Option<String>,
    unclaimed: Unclaimed,
    next_id: u64,
    effects: VecDeque<Effect>,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Connecting(Connecting),
    Ready { era: Era, is_assumed: bool },
    Closing,
    Closed(Error),
}

/// What a request on the wire is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Discover,
    Initialize,
    Listen,
    Operation(OperationId),
    /// Something whose answer changes nothing.
    Aside,
}

impl Client {
    /// A client that does nothing until [`Input::Connect`].
    pub fn new(options: ClientOptions) -> Self {
        Self {
            options,
            phase: Phase::Idle,
            generation: 0,
            server: ServerInfo::default(),
            operations: OrderedMap::new(),
            pending: OrderedMap::new(),
            tools: OrderedMap::new(),
            questions: OrderedMap::new(),
            next_question: 0,
            listening: Listening::default(),
            cache: Cache::default(),
            id_prefix: String::new(),
            resume_id: None,
            unclaimed: Unclaimed::default(),
            next_id: 1,
            effects: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Takes an input. Never blocks; the time is the wall clock's and may jump.
    ///
    /// # Errors
    ///
    /// Only for [`Input::Start`], and then nothing was started: `invalid-input` for what no server can take and for an id
    /// in use, `limit` when too many operations are open, or the reason why the connection is closed.
    pub fn handle(&mut self, now: Millis, input: Input) -> Result<(), Error> {
        match input {
            Input::Connect(opening) if matches!(self.phase, Phase::Idle) => self.open(now, opening),
            Input::Connect(_) => {}
            Input::Start { operation, request, options } => return self.start(now, operation, request, &options),
            Input::Cancel { operation, reason } => self.cancel(operation, &reason),
            Input::Notify { method, params } => {
                if let Phase::Ready { era: era @ Era::Handshake(_), .. } = self.phase {
                    self.send_notification(era, &method, &params);
                }
            }
            Input::Inbound(inbound) => self.receive(now, inbound),
            Input::Answer { question, outcome } => self.take_answer_to_question(now, question, outcome),
            Input::Timer(timer) => self.take_timer(now, timer),
            Input::Close => self.close(),
        }
        Ok(())
    }

    /// The next thing for the host to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The next thing for the caller to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn close(&mut self) {
        let error = Error::new(ErrorKind::ConnectionClosed, "the connection to the MCP server was closed");
        self.end_operations(&error);
        self.withdraw_all_questions();
        self.stop_listening();
        match self.phase {
            Phase::Idle | Phase::Connecting(_) | Phase::Ready { .. } => {
                self.end_connecting();
                self.phase = Phase::Closing;
                self.effects.push_back(Effect::Send(Outbound::Close));
            }
            Phase::Closing | Phase::Closed(_) => {}
        }
    }

    fn take_timer(&mut self, now: Millis, timer: TimerId) {
        match timer {
            TimerId::Startup => self.startup_timed_out(),
            TimerId::Probe => self.probe_timed_out(),
            TimerId::Listen => self.listen_again(now),
            TimerId::Idle(operation) => self.idle_timer(now, operation),
            TimerId::Maximum(operation) => self.time_out(operation, "took longer than its hard limit"),
            TimerId::Task(operation) => self.ask_for_task(now, operation),
        }
    }

    /// Puts a request on the wire.
    fn send_request(&mut self, era: Era, pending: Pending, method: &str, params: Params) -> RequestId {
        let id = self.next_request_id();
        self.send_request_as(id.clone(), era, pending, method, params);
        id
    }

    /// Puts a request on the wire under an id that is not in use.
    fn send_request_as(&mut self, id: RequestId, era: Era, pending: Pending, method: &str, mut params: Params) {
        let mut meta = meta(&params);
        // Lists are short; a token on everything else also keeps a working server's progress from being lost.
        if matches!(pending, Pending::Operation(_)) && !method.ends_with("/list") {
            meta.set("progressToken", &id);
        }
        if era == Era::Stateless {
            // What every request says of its client: revision 2026-07-28, "`_meta`".
            meta.set("io.modelcontextprotocol/protocolVersion", era.version());
            meta.set("io.modelcontextprotocol/clientInfo", &self.options.client);
            meta.set("io.modelcontextprotocol/clientCapabilities", &self.capabilities(method));
            if let Some(level) = &self.options.standing.log_level {
                meta.set("io.modelcontextprotocol/logLevel", level);
            }
        }
        let headers = self.headers(era, method, &params);
        if !meta.is_empty() {
            params.set("_meta", &meta);
        }
        self.pending.insert(id.clone(), pending);
        self.effects.push_back(Effect::Send(Outbound::Request {
            message: jsonrpc::request(&id, method, &params),
            id,
            era,
            headers,
            opens_session: pending == Pending::Initialize,
        }));
    }

    /// What a stateless request may be answered with: what the caller answers, and tasks in the place of results.
    fn capabilities(&self, method: &str) -> Params {
        let mut capabilities = self.options.capabilities.clone();
        if method == "tools/call" || method.starts_with("tasks/") {
            let declared = capabilities.member("extensions").and_then(|raw| Params::from_object(raw).ok());
            let extensions = declared.unwrap_or_default().with(task::EXTENSION, &Params::new());
            capabilities.set("extensions", &extensions);
        }
        capabilities
    }

    /// What the server is asked to keep up; worth giving to the client of the next connection.
    pub const fn standing(&self) -> &Standing {
        &self.options.standing
    }

    fn send_notification(&mut self, era: Era, method: &str, params: &Params) {
        let message = jsonrpc::notification(method, params);
        self.effects.push_back(Effect::Send(Outbound::Notify { message, era, headers: Vec::new() }));
    }

    /// The headers that repeat parts of a stateless request over HTTP.
    fn headers(&self, era: Era, method: &str, params: &Params) -> Vec<(String, String)> {
        if era != Era::Stateless || self.options.transport != TransportKind::Http {
            return Vec::new();
        }
        let text = |name| params.member(name).and_then(|value| crate::json::read_string(value.as_str()));
        let subject = match method {
            "tools/call" | "prompts/get" => text("name"),
            "resources/read" => text("uri"),
            "tasks/get" | "tasks/update" | "tasks/cancel" => text("taskId"),
            _ => None,
        };
        let mut headers = vec![("mcp-method".to_owned(), method.to_owned())];
        headers.extend(subject.as_deref().map(mirrored::name));
        if let (Some(tool), Some(arguments)) =
            (subject.and_then(|name| self.tools.get(&name)), params.member("arguments"))
        {
            headers.extend(mirrored::params(tool, arguments));
        }
        headers
    }

    fn next_request_id(&mut self) -> RequestId {
        let number = self.next_id;
        self.next_id += 1;
        match self.id_prefix.as_str() {
            "" => RequestId::Number(number),
            prefix => RequestId::Text(format!("{prefix}{number}")),
        }
    }

    fn warn(&mut self, message: impl Into<String>) {
        self.events.push_back(Event::Warning(message.into()));
    }
}

/// The `_meta` of parameters, to be added to.
fn meta(params: &Params) -> Params {
    params.member("_meta").and_then(|meta| Params::from_object(meta).ok()).unwrap_or_default()
}
