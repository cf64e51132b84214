use std::fmt;
use std::sync::Arc;

use super::super::protocol::{EraChoice, EraRecord, Implementation, ServerInfo, Tool};
use super::super::transport::{Inbound, Outbound};
use super::listing::Collection;
use super::question::QuestionId;
use crate::error::Error;
use crate::json::RawJson;
use crate::jsonrpc::{Params, RpcError};
use crate::time::Millis;

/// How a client is set up.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// What the client calls itself.
    pub client: Implementation,
    /// What carries the messages; decides how the era is found out and how calls are cancelled.
    pub transport: TransportKind,
    /// Which eras to speak.
    pub era: EraChoice,
    /// What an earlier client found. A wrong record costs one request and is found out by itself.
    pub known_era: Option<EraRecord>,
    /// The client's capabilities. Declare only what is answered: `elicitation`, `sampling` and `roots` bring questions.
    pub capabilities: Params,
    /// Whether to hear of changes of a stateless server's lists, which keeps one request open. Default yes.
    pub listen: bool,
    /// What an earlier client of the same server was asked to keep up.
    pub standing: Standing,
}

/// What a server is asked to keep up until further notice. Asked for again in each new session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// From which level on the server tells what it logs, such as `info`; `None` leaves it to the server.
    pub log_level: Option<String>,
    /// The addresses of resources whose changes are told.
    pub resources: Vec<String>,
}

impl ClientOptions {
    /// A client of this crate's name over a transport of this kind, which finds out the era by itself.
    pub fn new(transport: TransportKind) -> Self {
        Self {
            client: Implementation {
                name: env!("CARGO_PKG_NAME").to_owned(),
                title: None,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            transport,
            era: EraChoice::Auto,
            known_era: None,
            capabilities: Params::new(),
            listen: true,
            standing: Standing::default(),
        }
    }
}

/// What a transport learnt of its server before the first message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opening {
    /// The era that the server speaks, where the transport found out.
    pub era: Option<EraChoice>,
    /// The result of an `initialize` that was already answered on this connection, which must not be sent again.
    pub initialized: Option<RawJson>,
    /// A text before every request id, where the connection outlives a client; else empty.
    pub id_prefix: String,
    /// By what a later client can attach to the same process of the server, where the connection outlives a client.
    pub resume_id: Option<String>,
    /// Whether an earlier client was attached to this process, whose calls may be [claimed](Claim::Take).
    pub is_resumed: bool,
}

/// What a client must know of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportKind {
    /// Streamable HTTP: each request has a stream of its own, and a status.
    Http,
    /// All messages share one stream each way: stdio, WebSocket, a message port, a function.
    Pipe,
}

/// Names an operation; the caller's choice, unique among the open ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// Something that happened outside the machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input {
    /// The transport is there: find out the era and agree on a revision.
    Connect(Opening),
    /// Start an operation; ended by one [`Event::Done`].
    Start {
        /// Its name.
        operation: OperationId,
        /// What is asked.
        request: Request,
        /// Its limits.
        options: CallOptions,
    },
    /// Nobody wants this operation any more. It ends with `aborted`; unknown ones are ignored.
    Cancel {
        /// Which.
        operation: OperationId,
        /// Why, for the server.
        reason: String,
    },
    /// A question of [`Effect::Ask`] was answered, or not.
    Answer {
        /// Which.
        question: QuestionId,
        /// The result that the method has, or why there is none.
        outcome: Result<RawJson, RpcError>,
    },
    /// Tell a handshake server something, such as `notifications/roots/list_changed`. Ignored while the connection does not
    /// stand, and by the stateless era, which has no such messages.
    Notify {
        /// The method.
        method: String,
        /// The parameters.
        params: Params,
    },
    /// The transport has something.
    Inbound(Inbound),
    /// A timer is due.
    Timer(TimerId),
    /// End the connection. Open operations end with `connection-closed`.
    Close,
}

/// What is asked of a server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request {
    /// All tools, over all pages; answered by [`Reply::Tools`].
    ListTools,
    /// All entries of another list, over all pages; answered by [`Reply::Entries`].
    List(Collection),
    /// A tool call; answered by [`Reply::ToolResult`].
    CallTool {
        /// The tool.
        name: String,
        /// Its input, a JSON object.
        arguments: RawJson,
    },
    /// From which level on the server tells what it logs; answered by [`Reply::Value`].
    SetLogLevel(String),
    /// Whether changes of the resource at this address are told; answered by [`Reply::Value`].
    Subscribe {
        /// The address.
        uri: String,
        /// Whether they shall be told.
        wanted: bool,
    },
    /// Any other request; answered by [`Reply::Value`].
    Other {
        /// The method.
        method: String,
        /// The parameters.
        params: Params,
    },
}

impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ListTools => formatter.write_str("listing the tools"),
            Self::List(collection) => write!(formatter, "the request {}", collection.method()),
            Self::CallTool { name, .. } => write!(formatter, "the call of {name}"),
            Self::SetLogLevel(_) => formatter.write_str("setting the log level"),
            Self::Subscribe { uri, .. } => write!(formatter, "the subscription of {uri}"),
            Self::Other { method, .. } => write!(formatter, "the request {method}"),
        }
    }
}

/// The limits of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOptions {
    /// The most milliseconds without anything from the server about it. Default 120 000.
    pub idle_timeout: u64,
    /// The most milliseconds altogether; `None`, the default, for no limit.
    pub maximum: Option<u64>,
    /// Whether to ask the server even though its last answer is still good by its own word (`ttlMs`). Default no.
    pub refresh: bool,
    /// Whether a later client of the same process may have the result of this tool call. Default [`Claim::None`].
    pub claim: Claim,
}

/// How a tool call outlives its client, where the connection does: behind crablet-shim. Elsewhere nothing can be claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// The result is for this client only.
    #[default]
    None,
    /// Sends the call so that a later client can claim its result by this key, which no other call has.
    Offer(Arc<str>),
    /// Sends nothing and waits for the result of the call that an earlier client sent with this key. Ends with
    /// `connection-closed` when the client is not attached to the process of an earlier one, and with `timeout` when
    /// nothing comes within the limits.
    Take(Arc<str>),
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { idle_timeout: 120_000, maximum: None, refresh: false, claim: Claim::None }
    }
}

/// What the host must do. Exhaustive on purpose: a host that does not know an effect would lose it.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Hand this to the transport.
    Send(Outbound),
    /// Put a question of the server to the user or the program; answered by [`Input::Answer`]. Only asked what the
    /// client's capabilities offer.
    Ask {
        /// Names it.
        question: QuestionId,
        /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
        method: String,
        /// Its parameters.
        params: RawJson,
    },
    /// Nobody wants the answer of this question any more. Not answered.
    Withdraw(QuestionId),
    /// Give [`Input::Timer`] at this moment. Replaces the timer of the same name.
    SetTimer {
        /// The timer.
        timer: TimerId,
        /// When.
        at: Millis,
    },
    /// Forget a timer.
    ClearTimer(TimerId),
}

/// Names a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TimerId {
    /// The limit of connecting.
    Startup,
    /// The limit of the first probe.
    Probe,
    /// The wait before changes are listened to again.
    Listen,
    /// The idle limit of an operation.
    Idle(OperationId),
    /// The hard limit of an operation.
    Maximum(OperationId),
    /// The wait before a server is asked again how far the task of an operation is.
    Task(OperationId),
}

/// What the caller learns.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The connection stands; again after each session that had to be replaced.
    Connected {
        /// What was found, worth keeping.
        record: EraRecord,
        /// What the server says of itself.
        server: ServerInfo,
        /// By what a later client can attach to the same process, where one can: see [`Opening`].
        resume_id: Option<String>,
    },
    /// An operation is over.
    Done {
        /// Which.
        operation: OperationId,
        /// How. A tool that failed is an `Ok` with `is_error`.
        outcome: Result<Reply, Error>,
    },
    /// An operation reports.
    Progress {
        /// Which.
        operation: OperationId,
        /// How far it is.
        progress: Progress,
    },
    /// The server's tools changed; list them again when they are needed.
    ToolsChanged,
    /// Any other notification of the server.
    Notification {
        /// The method, such as `notifications/message`.
        method: String,
        /// Its parameters.
        params: Option<RawJson>,
    },
    /// Something that whoever runs this should know, though nothing failed.
    Warning(String),
    /// The connection is over.
    Closed {
        /// Why.
        reason: Error,
        /// The exit code of the server's process, where there is one.
        exit_code: Option<i32>,
        /// The last lines of the process's error output.
        stderr_tail: Option<String>,
    },
}

/// How far an operation is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Grows.
    pub progress: f64,
    /// Where it ends, if the server knows.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

impl Progress {
    /// `{progress, total?, message?}`, as in the protocol.
    pub fn to_raw(&self) -> RawJson {
        let mut members = Params::new().with("progress", &self.progress);
        if let Some(total) = &self.total {
            members.set("total", total);
        }
        if let Some(message) = &self.message {
            members.set("message", message);
        }
        members.to_raw()
    }
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// The tools.
    Tools(Vec<Arc<Tool>>),
    /// The entries of a list, as the server sent them.
    Entries(Vec<RawJson>),
    /// A tool's result as the server sent it, an object; see
    /// [`CallToolResult::read`](crate::mcp::protocol::CallToolResult::read).
    ToolResult(RawJson),
    /// A result as the server sent it.
    Value(RawJson),
}
