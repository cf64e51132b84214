//! The server side of MCP as a machine, for both eras: lines go in, lines and calls come out. It does no I/O, and runs
//! no tool itself.
//!
//! ```
//! use crablet::json::RawJson;
//! use crablet::mcp::protocol::{CallToolResult, ContentBlock, Implementation};
//! use crablet::mcp::server::{Catalog, Outcome, Outgoing, Request, Server, ServerTool};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = RawJson::parse(r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#)?;
//! let catalog = Catalog::new().tool(ServerTool::new("greet", "Greets somebody", schema))?;
//! let info = Implementation { name: "greeter".into(), title: None, version: "1.0.0".into() };
//! let mut server = Server::new(catalog, info);
//!
//! let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
//! let Outgoing::Reply(line) = server.handle_line(hello) else { panic!("a line to send") };
//! assert!(line.contains("2025-11-25"));
//!
//! let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}"#;
//! let Outgoing::Call(call) = server.handle_line(call) else { panic!("a call to run") };
//! let Request::Tool { name, arguments } = &call.request else { panic!("a tool") };
//! assert_eq!((name.as_str(), arguments.as_str()), ("greet", r#"{"name":"Ada"}"#));
//! let said = vec![ContentBlock::Text { text: "Hello Ada".into() }];
//! let lines = server.complete(call, Outcome::Tool(CallToolResult { content: said, ..CallToolResult::default() }));
//! assert!(lines[0].contains("Hello Ada"));
//! # Ok(())
//! # }
//! ```
//!
//! The rules: notifications and messages without a method are never answered. Faults of the protocol are JSON-RPC errors;
//! that a tool is not available is a failed result, which a model can read. `initialize` always succeeds. Arguments are
//! checked before availability. Every line that comes out is one line.

mod ask;
mod call;
mod catalog;
mod dispatch;
pub mod http;
mod list;
mod notify;
mod render;
mod uri_template;

use crate::json::RawJson;
use crate::jsonrpc::Params;
use crate::ordered_map::OrderedMap;

pub use ask::InputRequest;
pub use call::{CallNumber, LogLevel, Outcome, PendingCall, Request};
pub use catalog::{Catalog, CatalogError, ServerPrompt, ServerTool};
pub use notify::Notice;

use self::ask::Asked;
use super::protocol::{EraChoice, Implementation, Revision};

/// The machine of one connection.
#[derive(Debug)]
pub struct Server {
    catalog: Catalog,
    info: Implementation,
    options: ServerOptions,
    availability: Availability,
    /// Who said `initialize`, if anyone.
    client: Option<HandshakeClient>,
    /// Calls that are at work, with the id that their answer goes to.
    calls: OrderedMap<CallNumber, RawJson>,
    next_call: u64,
    /// What a client of the handshake era was asked.
    asked: OrderedMap<CallNumber, Asked>,
    next_question: u64,
    /// Open `subscriptions/listen` requests, by the text of their id.
    listening: OrderedMap<String, notify::Interest>,
    /// Resources that a client of the handshake era wants to hear of.
    subscribed: OrderedMap<String, ()>,
    log_level: Option<LogLevel>,
}

/// How a server behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// The eras spoken. Default: both.
    pub eras: EraChoice,
    /// How to use the server, for the client's model.
    pub instructions: Option<String>,
    /// The most entries of one page of a list. Default 100.
    pub page_size: usize,
    /// How long a client may keep lists and resources, in milliseconds (2026-07-28). Default 0: not at all.
    pub cache_milliseconds: u64,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { eras: EraChoice::Auto, instructions: None, page_size: 100, cache_milliseconds: 0 }
    }
}

/// Which tools may be called at the moment. They are listed in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// Why no tool may be called.
    pub closed: Option<String>,
    /// Why single tools may not be called, by name.
    pub blocked: Vec<(String, String)>,
}

impl Availability {
    /// Why a tool may not be called; `None` when it may. The words are for the client's model: say what to do.
    pub fn reason(&self, tool: &str) -> Option<&str> {
        let blocked = self.blocked.iter().find(|(name, _)| name == tool).map(|(_, reason)| reason);
        self.closed.as_ref().or(blocked).map(String::as_str)
    }
}

/// What a line leads to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outgoing {
    /// Nothing.
    None,
    /// A line to send.
    Reply(String),
    /// A call to run and to give back to [`Server::complete`].
    Call(PendingCall),
    /// A call of a tool that is not available. Look again whether it is; then run it as a call, or send
    /// [`Server::gate_reply`].
    Blocked(PendingCall),
    /// The client wants no answer to this call any more: stop it. Completing it all the same gives no line.
    Cancelled(CallNumber),
    /// A line to send, and a request that stays open until it is cancelled or the connection ends: notices of this
    /// subscription follow on it.
    Listening {
        /// The id of the request.
        subscription: RawJson,
        /// The line.
        line: String,
    },
}

#[derive(Debug)]
struct HandshakeClient {
    revision: Revision,
    capabilities: Params,
}

impl Server {
    /// A server with the default options.
    pub fn new(catalog: Catalog, info: Implementation) -> Self {
        Self::with_options(catalog, info, ServerOptions::default())
    }

    /// A server. Catalogues are cheap to clone: one may serve many connections.
    pub fn with_options(catalog: Catalog, info: Implementation, options: ServerOptions) -> Self {
        Self {
            catalog,
            info,
            options,
            availability: Availability::default(),
            client: None,
            calls: OrderedMap::new(),
            next_call: 0,
            asked: OrderedMap::new(),
            next_question: 0,
            listening: OrderedMap::new(),
            subscribed: OrderedMap::new(),
            log_level: None,
        }
    }

    /// Says which tools may be called from now on.
    pub fn set_availability(&mut self, availability: Availability) {
        self.availability = availability;
    }

    /// Which tools may be called.
    pub fn availability(&self) -> &Availability {
        &self.availability
    }

    /// What is served.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The handshake revision that was agreed on, once a client has said `initialize`.
    pub fn handshake(&self) -> Option<Revision> {
        self.client.as_ref().map(|client| client.revision)
    }
}
