//! Connections to MCP servers, as JavaScript holds them.
//!
//! What takes time is told to two functions of the facade, `resolve` and `reject`, for the reason that
//! [`RunHandle::next`](crate::run::RunHandle::next) gives.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use crablet::host::mcp::{Arrival, ConnectOptions, Connection, HttpServer, Observer, OnProgress, RequestFunction};
use crablet::host::{BoxFuture, CancelToken, Cancelled};
use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{Params, RpcError, code};
use crablet::mcp::client::{CallOptions, Collection, Event, Progress, Request};
use crablet::mcp::protocol::{Capabilities, EraChoice, EraRecord, Implementation, ServerInfo, Tool};
use crablet::mcp::tools::agent_name;
use crablet::mcp::transport::RequestId;
use crablet::mcp::transport::shim::Token;
use crablet::mcp::transport::websocket::WebSocketOptions;
use crablet::sse::MAX_EVENT_BYTES;
use crablet::web::{WebHost, error_from_rejection, page_origin};
use crablet::{Error, ErrorKind};
use futures_channel::mpsc;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use js_sys::Function;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::config::{invalid, read_headers};
use crate::functions::{Execution, answered, message, spawn};
use crate::oauth::read_oauth;
use crate::thrown::thrown;

#[wasm_bindgen]
extern "C" {
    /// `CoreServerFunctions` of `src/js/core.ts`.
    #[derive(Clone, Debug)]
    pub type ServerFunctions;

    #[wasm_bindgen(method, getter, structural)]
    fn fetch(this: &ServerFunctions) -> Option<Function>;

    #[wasm_bindgen(method, getter, structural, js_name = WebSocket)]
    fn web_socket(this: &ServerFunctions) -> Option<Function>;

    #[wasm_bindgen(method, structural, catch)]
    fn request(this: &ServerFunctions, message: &str) -> Result<Execution, JsValue>;

    #[wasm_bindgen(method, structural, catch)]
    fn send(this: &ServerFunctions, message: Option<&str>) -> Result<(), JsValue>;

    #[wasm_bindgen(method, structural, catch)]
    fn answer(this: &ServerFunctions, method: &str, params: &str) -> Result<Execution, JsValue>;

    #[wasm_bindgen(method, structural, catch)]
    pub(crate) fn auth(this: &ServerFunctions, question: &str) -> Result<Execution, JsValue>;

    #[wasm_bindgen(method, structural, catch)]
    fn event(this: &ServerFunctions, event: &str) -> Result<(), JsValue>;
}

/// Cancels a call of a connection.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct CancelHandle(pub(crate) CancelToken);

#[wasm_bindgen]
impl CancelHandle {
    /// A handle that is not cancelled.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels what was started with this handle.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// A connection to an MCP server. Freeing the last handle closes it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct McpHandle {
    pub(crate) connection: Connection,
    inlet: Inlet,
}

/// Where a server at a port puts its messages: the way to the connection that stands.
#[derive(Clone, Debug, Default)]
struct Inlet(Rc<RefCell<Option<mpsc::Sender<Arrival>>>>);

impl Inlet {
    fn put(&self, arrival: Arrival) -> Result<(), Error> {
        match self.0.borrow_mut().as_mut().map(|sender| sender.try_send(arrival)) {
            Some(Err(error)) if error.is_full() => Err(overrun()),
            // What comes while no connection stands is of none.
            _ => Ok(()),
        }
    }

    /// The ends of a new connection, whose messages the facade is given.
    fn open(&self, functions: &ServerFunctions) -> (mpsc::Sender<RawJson>, mpsc::Receiver<Arrival>) {
        let (to_server, outlet) = mpsc::channel(WAITING_LIMIT);
        let (inlet, arrivals) = mpsc::channel(WAITING_LIMIT);
        *self.0.borrow_mut() = Some(inlet);
        spawn(pump(functions.clone(), outlet, self.clone()));
        (to_server, arrivals)
    }

    /// Whether no connection is there any more.
    fn is_over(&self) -> bool {
        self.0.borrow().as_ref().is_none_or(mpsc::Sender::is_closed)
    }
}

/// The most messages that wait at a port in one direction.
const WAITING_LIMIT: usize = 1_024;

#[wasm_bindgen]
impl McpHandle {
    /// Begins to connect to the server that `src/js/mcp.ts` describes.
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str, functions: ServerFunctions) -> Result<Self, JsValue> {
        connect(config, functions).map_err(thrown)
    }

    /// A message of a server at a port.
    pub fn receive(&self, message: String) -> Result<(), JsValue> {
        read_message(message).and_then(|message| self.inlet.put(Arrival::Message(message))).map_err(thrown)
    }

    /// A request to a server at a port has no answer: `PortFailure` of `src/js/mcp-port.ts`, as JSON.
    pub fn fail(&self, failure: &str) -> Result<(), JsValue> {
        read_failure(failure).and_then(|(id, reason)| self.inlet.put(Arrival::Failed(id, reason))).map_err(thrown)
    }

    /// Resolves with the JSON text of what the server says of itself.
    pub fn ready(&self, cancel: &CancelHandle, resolve: Function, reject: Function) {
        let connection = self.connection.clone();
        settle(&cancel.0, resolve, reject, async move { Ok(json(&server_text(&connection.ready().await?))) });
    }

    /// Resolves with the JSON text of all entries of a list: `tools`, `agentTools`, `resources`, `resourceTemplates` or `prompts`.
    pub fn list(&self, of: String, refresh: bool, cancel: &CancelHandle, resolve: Function, reject: Function) {
        let connection = self.connection.clone();
        settle(&cancel.0, resolve, reject, async move {
            let options = CallOptions { refresh, ..CallOptions::default() };
            let collection = match of.as_str() {
                "tools" | "agentTools" => None,
                "resources" => Some(Collection::Resources),
                "resourceTemplates" => Some(Collection::ResourceTemplates),
                _ => Some(Collection::Prompts),
            };
            let entries = match collection {
                Some(collection) => connection.entries_with(collection, options).await?,
                None => {
                    let server = (of == "agentTools").then(|| connection.name());
                    connection.tools_with(options).await?.iter().map(|tool| tool_entry(tool, server)).collect()
                }
            };
            serde_json::to_string(&entries).map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))
        });
    }

    /// Resolves with the JSON text of a result. The request is `CoreRequest` of `src/js/core.ts`, as JSON.
    pub fn request(
        &self,
        request: String,
        progress: Option<Function>,
        cancel: &CancelHandle,
        resolve: Function,
        reject: Function,
    ) {
        let connection = self.connection.clone();
        settle(&cancel.0, resolve, reject, async move {
            let (request, options) = read_request(&request)?;
            let on_progress = progress.map(|report| Box::new(Report(report)) as Box<dyn OnProgress>);
            connection.ask(request, options, on_progress).await.map(|result| JsValue::from_str(result.as_str()))
        });
    }

    /// Tells a handshake server something.
    pub fn notify(&self, method: String) -> Result<(), JsValue> {
        self.connection.notify(method, Params::new()).map_err(thrown)
    }

    /// Resolves when the connection is closed.
    pub fn close(&self, cancel: &CancelHandle, resolve: Function, reject: Function) {
        let connection = self.connection.clone();
        settle(&cancel.0, resolve, reject, async move {
            connection.close().await;
            Ok(String::new())
        });
    }
}

/// Runs a piece of work in the background and tells its end, unless it is cancelled before.
pub(crate) fn settle<T: Into<JsValue>>(
    cancel: &CancelToken,
    resolve: Function,
    reject: Function,
    work: impl Future<Output = Result<T, Error>> + 'static,
) {
    // Boxed, so that the rest is in the module once and not for each kind of work.
    settle_boxed(cancel.cancelled(), resolve, reject, Box::pin(async move { work.await.map(Into::into) }));
}

fn settle_boxed(
    cancelled: Cancelled,
    resolve: Function,
    reject: Function,
    work: BoxFuture<'static, Result<JsValue, Error>>,
) {
    spawn(async move {
        let outcome = match select(work, cancelled).await {
            Either::Left((outcome, _)) => outcome,
            // Dropping the work stops it.
            Either::Right(_) => Err(Error::new(ErrorKind::Aborted, "the call was cancelled")),
        };
        // Both functions settle a promise of the facade and do not throw.
        let _ = match outcome {
            Ok(value) => resolve.call1(&JsValue::UNDEFINED, &value),
            Err(error) => reject.call1(&JsValue::UNDEFINED, &thrown(error)),
        };
    });
}

fn read_message(message: String) -> Result<RawJson, Error> {
    if message.len() > MAX_EVENT_BYTES {
        let message = format!("a message of the MCP server is larger than the limit of {MAX_EVENT_BYTES} bytes");
        return Err(Error::new(ErrorKind::Limit, message));
    }
    RawJson::parse(message).map_err(|error| Error::new(ErrorKind::Protocol, error.to_string()))
}

fn overrun() -> Error {
    Error::new(ErrorKind::Limit, "the MCP server sends faster than its messages can be taken")
}

fn read_failure(text: &str) -> Result<(RequestId, Error), Error> {
    let failure = Object::parse(text).map_err(|error| invalid(error.to_string()))?;
    let id = failure.raw("id").as_ref().and_then(RequestId::read).ok_or_else(|| invalid("a failure needs an id"))?;
    let kind = failure.string("kind").and_then(|kind| ErrorKind::from_name(&kind)).unwrap_or(ErrorKind::Protocol);
    let error = Error::new(kind, failure.string("message").unwrap_or_default());
    Ok((
        id,
        match failure.string("code") {
            Some(code) => error.with_code(code),
            None => error,
        },
    ))
}

/// Gives the facade what is sent to a server at a port; `undefined` at the end of the last connection.
async fn pump(functions: ServerFunctions, mut outlet: mpsc::Receiver<RawJson>, inlet: Inlet) {
    while let Some(message) = outlet.next().await {
        // The facade reports what a port throws.
        let _ = functions.send(Some(message.as_str()));
    }
    if inlet.is_over() {
        let _ = functions.send(None);
    }
}

fn connect(config: &str, functions: ServerFunctions) -> Result<McpHandle, Error> {
    let config = Object::parse(config).map_err(|error| invalid(format!("the MCP server is not JSON: {error}")))?;
    let text = |name| config.string(name).unwrap_or_default();
    let answerer = functions.clone();
    let options = ConnectOptions {
        era: match text("era").as_str() {
            "stateless" => EraChoice::Stateless,
            "handshake" => EraChoice::Handshake,
            _ => EraChoice::Auto,
        },
        known_era: config.object("knownEra").and_then(|record| EraRecord::read(&record)),
        client: config.object("client").map(|client| Implementation::read(&client)),
        observer: Some(Arc::new(JsObserver(functions.clone()))),
        capabilities: config.raw("capabilities").and_then(|raw| Params::from_object(&raw).ok()).unwrap_or_default(),
        answerer: Some(Arc::new(move |method: &str, params: RawJson| answer(&answerer, method, &params))),
    };
    let inlet = Inlet::default();
    let connection = match text("type").as_str() {
        "http" => {
            let host = functions.fetch().map_or_else(WebHost::new, WebHost::with_fetch);
            let mut server = HttpServer::new(text("url")).headers(read_headers(&config));
            if let Some(auth) = config.object("auth") {
                server = server.auth(read_oauth(&auth, functions)?);
            }
            Connection::http(&host, text("name"), server, options)
        }
        "shim" => {
            let server = WebSocketOptions {
                url: text("url"),
                server: text("server"),
                token: Token::parse(&text("token"))?,
                origin: page_origin(),
                resume: config.string("resume"),
            };
            let host = functions.web_socket().map_or_else(WebHost::new, WebHost::with_web_socket);
            Connection::shim(&host, text("name"), server, options)?
        }
        "custom" => Connection::function(&WebHost::new(), text("name"), JsServer(functions), options),
        "port" => {
            let inlet = inlet.clone();
            Connection::port(&WebHost::new(), text("name"), options, move || Some(inlet.open(&functions)))
        }
        other => return Err(invalid(format!("there is no kind of MCP server called \"{other}\""))),
    };
    Ok(McpHandle { connection, inlet })
}

/// A server that is a function of the caller.
struct JsServer(ServerFunctions);

impl RequestFunction for JsServer {
    fn request(&self, message: RawJson) -> BoxFuture<'static, Result<Option<RawJson>, Error>> {
        let failed = |thrown: JsValue| {
            error_from_rejection(&thrown, ErrorKind::ConnectionClosed, "the request function of the MCP server failed")
        };
        let asked = self.0.request(message.as_str());
        Box::pin(async move {
            let Some(answer) = answered(asked).await.map_err(failed)? else { return Ok(None) };
            RawJson::parse(answer).map(Some).map_err(|error| invalid(error.to_string()))
        })
    }
}

struct Report(Function);

impl OnProgress for Report {
    fn progress(&mut self, progress: Progress) {
        // The facade reports what the caller's function throws.
        let _ = self.0.call1(&JsValue::UNDEFINED, &JsValue::from_str(progress.to_raw().as_str()));
    }
}

/// What the facade is told of a server, as `CoreServer` of `src/js/core.ts`.
fn server_text(server: &ServerInfo) -> Params {
    let mut members = Params::new();
    if let Some(implementation) = &server.implementation {
        members.set("info", implementation);
    }
    if let Some(capabilities) = server.capabilities.as_ref().and_then(Capabilities::raw) {
        members.set("capabilities", capabilities);
    }
    if let Some(instructions) = &server.instructions {
        members.set("instructions", instructions);
    }
    members
}

/// Reads `CoreRequest` of `src/js/core.ts`.
fn read_request(text: &str) -> Result<(Request, CallOptions), Error> {
    let object = Object::parse(text).map_err(|error| invalid(error.to_string()))?;
    let defaults = CallOptions::default();
    let options = CallOptions {
        idle_timeout: object.integer("idleTimeoutMs").unwrap_or(defaults.idle_timeout),
        maximum: object.integer("timeoutMs"),
        refresh: object.boolean("refresh").unwrap_or_default(),
        ..defaults
    };
    let method = object.string("method").unwrap_or_default();
    let params = object.object("params").unwrap_or_default();
    let member = |name| params.string(name).unwrap_or_default();
    let request = match method.as_str() {
        "tools/call" => Request::CallTool {
            name: member("name"),
            arguments: params.raw("arguments").unwrap_or_else(|| Params::new().to_raw()),
        },
        "logging/setLevel" => Request::SetLogLevel(member("level")),
        "resources/subscribe" => Request::Subscribe { uri: member("uri"), wanted: true },
        "resources/unsubscribe" => Request::Subscribe { uri: member("uri"), wanted: false },
        _ => {
            let params = object.raw("params").map(|raw| Params::from_object(&raw)).transpose()?;
            Request::Other { method, params: params.unwrap_or_default() }
        }
    };
    Ok((request, options))
}

/// Puts a question of the server to the facade.
fn answer(
    functions: &ServerFunctions,
    method: &str,
    params: &RawJson,
) -> BoxFuture<'static, Result<RawJson, RpcError>> {
    let asked = functions.answer(method, params.as_str());
    let failed = |thrown: JsValue| RpcError::new(code::INTERNAL_ERROR, message(&thrown));
    Box::pin(async move {
        let text = answered(asked).await.map_err(failed)?.unwrap_or_default();
        RawJson::parse(text).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
    })
}

/// Tells the facade what happens on a connection.
struct JsObserver(ServerFunctions);

impl Observer for JsObserver {
    fn observe(&self, event: &Event) {
        if let Some(members) = event_members(event) {
            // The facade reports what the caller's function throws.
            let _ = self.0.event(&json(&members));
        }
    }
}

/// `CoreServerEvent` of `src/js/core.ts`.
fn event_members(event: &Event) -> Option<Params> {
    let named = |kind: &str| Params::new().with("type", kind);
    Some(match event {
        Event::Connected { record, server, resume_id } => {
            let mut members = named("connected").with("record", record).with("server", &server_text(server));
            if let Some(resume_id) = resume_id {
                members.set("resume", resume_id);
            }
            members
        }
        Event::ToolsChanged => named("notification").with("method", "notifications/tools/list_changed"),
        Event::Notification { method, params } => {
            let mut members = named("notification").with("method", method);
            if let Some(params) = params {
                members.set("params", params);
            }
            members
        }
        Event::Warning(message) => named("warning").with("message", message),
        Event::Closed { reason, .. } => named("closed").with("error", reason),
        _ => return None,
    })
}

/// A tool as the server describes it; for an agent, with the name that a model calls it by before it.
fn tool_entry(tool: &Tool, server: Option<&str>) -> RawJson {
    let named = server.map(|server| RawJson::from_value(&(agent_name(server, &tool.name), &tool.raw)));
    named.and_then(Result::ok).unwrap_or_else(|| tool.raw.clone())
}

/// An object as JSON text.
pub(crate) fn json(members: &Params) -> String {
    members.to_raw().as_str().to_owned()
}
