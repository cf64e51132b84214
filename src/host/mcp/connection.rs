use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_channel::{mpsc, oneshot};

use super::driver::{Command, Driver, Listeners, Shared};
use super::http::{self, HttpServer};
use super::{Carrier, DELIVERY_LIMIT, RequestFunction, function};
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Host, MaybeSend};
use crate::json::RawJson;
use crate::jsonrpc::{Params, RpcError};
use crate::mcp::client::{CallOptions, ClientOptions, Event, OperationId, Progress, Reply, Request, TransportKind};
use crate::mcp::protocol::{CallToolResult, EraChoice, EraRecord, Implementation, ServerInfo, Tool};

/// A connection to an MCP server. Cloning gives another handle to the same connection.
///
/// It connects in the background from the moment it is made; calls wait until it stands. When the last handle is dropped
/// the connection is closed.
#[derive(Clone)]
pub struct Connection {
    name: Arc<str>,
    commands: mpsc::UnboundedSender<Command>,
    next_operation: Arc<AtomicU64>,
    shared: Arc<Shared>,
}

/// How to connect.
#[derive(Default)]
pub struct ConnectOptions {
    /// Which eras to speak. Default: find out.
    pub era: EraChoice,
    /// What an earlier connection found, so that this one need not probe.
    pub known_era: Option<EraRecord>,
    /// What the client calls itself, if not `crablet`.
    pub client: Option<Implementation>,
    /// Is told what happens on the connection.
    pub observer: Option<Box<dyn Observer>>,
    /// What the client offers to servers. Declare `elicitation`, `sampling` or `roots` only with an answerer for it.
    pub capabilities: Params,
    /// Answers what the server asks.
    pub answerer: Option<Box<dyn Answerer>>,
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ConnectOptions").field("era", &self.era).finish_non_exhaustive()
    }
}

impl ConnectOptions {
    fn into_client(self, transport: TransportKind) -> (ClientOptions, Listeners) {
        let mut options = ClientOptions::new(transport);
        options.era = self.era;
        options.known_era = self.known_era;
        if let Some(client) = self.client {
            options.client = client;
        }
        options.capabilities = self.capabilities;
        (options, Listeners { observer: self.observer, answerer: self.answerer })
    }
}

/// Is told what happens on a connection: that it stands and with which era record, that tools changed, what the server
/// notifies of, warnings, and its end. Calls and their progress are told to their callers. Implemented by closures.
pub trait Observer: MaybeSend + 'static {
    /// Something happened.
    fn observe(&mut self, event: &Event);
}

impl<F: FnMut(&Event) + MaybeSend + 'static> Observer for F {
    fn observe(&mut self, event: &Event) {
        self(event);
    }
}

/// Answers what a server asks of the user or the program: `elicitation/create`, `sampling/createMessage`, `roots/list`, each
/// with the result that the protocol gives it. Implemented by closures that give a future.
///
/// A question that the server withdraws, or whose call is over, is dropped.
pub trait Answerer: MaybeSend + 'static {
    /// Answers one question.
    ///
    /// # Errors
    ///
    /// What the server is told instead of a result.
    fn answer(&mut self, method: &str, params: RawJson) -> BoxFuture<'static, Result<RawJson, RpcError>>;
}

impl<F, Answering> Answerer for F
where
    F: FnMut(&str, RawJson) -> Answering + MaybeSend + 'static,
    Answering: Future<Output = Result<RawJson, RpcError>> + MaybeSend + 'static,
{
    fn answer(&mut self, method: &str, params: RawJson) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        Box::pin(self(method, params))
    }
}

/// Is told of the progress of one call. Implemented by closures.
pub trait OnProgress: MaybeSend + 'static {
    /// The server reported.
    fn progress(&mut self, progress: Progress);
}

impl<F: FnMut(Progress) + MaybeSend + 'static> OnProgress for F {
    fn progress(&mut self, progress: Progress) {
        self(progress);
    }
}

impl Connection {
    /// Connects over Streamable HTTP. The name tells this server from others, in tool names and errors.
    pub fn http<H: Host>(host: &H, name: impl Into<Arc<str>>, server: HttpServer, options: ConnectOptions) -> Self {
        let (client, listeners) = options.into_client(TransportKind::Http);
        let (connection, driver, carrier) = Self::parts(host, name.into(), client, listeners);
        host.spawn(driver.run());
        host.spawn(http::carry(host.clone(), server, carrier));
        connection
    }

    /// Connects over any function that answers messages: a message port, a server in the same program.
    pub fn function<H: Host>(
        host: &H,
        name: impl Into<Arc<str>>,
        function: impl RequestFunction,
        options: ConnectOptions,
    ) -> Self {
        let (client, listeners) = options.into_client(TransportKind::Pipe);
        let (connection, driver, carrier) = Self::parts(host, name.into(), client, listeners);
        host.spawn(driver.run());
        host.spawn(function::carry(function, carrier));
        connection
    }

    /// Connects to a server behind crablet-shim.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the shim's address is not one of this machine, `internal` when the platform has no source of
    /// randomness.
    #[cfg(feature = "shim")]
    pub fn shim<H: Host>(
        host: &H,
        name: impl Into<Arc<str>>,
        server: crate::mcp::transport::websocket::WebSocketOptions,
        options: ConnectOptions,
    ) -> Result<Self, Error> {
        let machine = crate::mcp::transport::websocket::WebSocketTransport::new(server, host.random()?)?;
        let (client, listeners) = options.into_client(TransportKind::Pipe);
        let (connection, driver, carrier) = Self::parts(host, name.into(), client, listeners);
        host.spawn(driver.run());
        host.spawn(super::websocket::carry(host.clone(), machine, carrier));
        Ok(connection)
    }

    fn parts<H: Host>(
        host: &H,
        name: Arc<str>,
        client: ClientOptions,
        listeners: Listeners,
    ) -> (Self, Driver<H>, Carrier) {
        let (commands, receiver) = mpsc::unbounded();
        let (outbound, outbound_receiver) = mpsc::unbounded();
        let (deliveries, inbound) = mpsc::channel(DELIVERY_LIMIT);
        let shared = Arc::new(Shared::default());
        let driver = Driver::new(host.clone(), client, listeners, receiver, outbound, inbound, shared.clone());
        let connection = Self { name, commands, next_operation: Arc::default(), shared };
        (connection, driver, Carrier { outbound: outbound_receiver, deliveries })
    }

    /// The name that this server was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the connection stands, and tells what the server said of itself.
    ///
    /// # Errors
    ///
    /// Why it does not: `network`, `auth`, `unsupported-version`, `protocol`, `timeout` or `connection-closed`.
    pub async fn ready(&self) -> Result<ServerInfo, Error> {
        let (sender, receiver) = oneshot::channel();
        self.send(Command::Ready(sender))?;
        receiver.await.map_err(|_| self.closed())
    }

    /// All tools of the server. Empty when it offers none.
    ///
    /// # Errors
    ///
    /// As for [`ready`](Self::ready), and `rpc` when the server refuses.
    pub async fn tools(&self) -> Result<Vec<Arc<Tool>>, Error> {
        match self.perform(Request::ListTools, CallOptions::default(), None).await? {
            Reply::Tools(tools) => Ok(tools),
            _ => Err(unexpected_reply()),
        }
    }

    /// Calls a tool by the server's name for it. Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools), and `invalid-input` when the arguments are no JSON object. A tool that failed is an
    /// `Ok` with `is_error`.
    pub async fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: RawJson,
        options: CallOptions,
        on_progress: Option<Box<dyn OnProgress>>,
    ) -> Result<CallToolResult, Error> {
        let request = Request::CallTool { name: name.into(), arguments };
        match self.perform(request, options, on_progress).await? {
            Reply::ToolResult(result) => Ok(result),
            _ => Err(unexpected_reply()),
        }
    }

    /// Sends any other request and gives its result as it came. Dropping the future cancels it.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools).
    pub async fn request(&self, method: impl Into<String>, params: Params) -> Result<RawJson, Error> {
        let request = Request::Other { method: method.into(), params };
        match self.perform(request, CallOptions::default(), None).await? {
            Reply::Value(value) => Ok(value),
            _ => Err(unexpected_reply()),
        }
    }

    /// Closes the connection in good order, for all its handles. Calls that are under way end with `connection-closed`.
    pub async fn close(&self) {
        let (sender, receiver) = oneshot::channel();
        if self.send(Command::Close(sender)).is_ok() {
            // The driver drops the sender when it is done.
            let _ = receiver.await;
        }
    }

    async fn perform(
        &self,
        request: Request,
        options: CallOptions,
        on_progress: Option<Box<dyn OnProgress>>,
    ) -> Result<Reply, Error> {
        let operation = OperationId(self.next_operation.fetch_add(1, Ordering::Relaxed));
        let (done, receiver) = oneshot::channel();
        self.send(Command::Start { operation, request, options, done, on_progress })?;
        let mut guard = CancelOnDrop { operation, commands: Some(&self.commands) };
        let outcome = receiver.await;
        guard.commands = None;
        outcome.unwrap_or_else(|_| Err(self.closed()))
    }

    fn send(&self, command: Command) -> Result<(), Error> {
        self.commands.unbounded_send(command).map_err(|_| self.closed())
    }

    fn closed(&self) -> Error {
        self.shared.closed.get().cloned().unwrap_or_else(|| {
            Error::new(ErrorKind::ConnectionClosed, format!("the connection to the MCP server {} is closed", self.name))
        })
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Cancels an operation whose future is dropped before its end.
struct CancelOnDrop<'connection> {
    operation: OperationId,
    commands: Option<&'connection mpsc::UnboundedSender<Command>>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(commands) = self.commands {
            // A closed connection has nothing to cancel.
            let _ = commands.unbounded_send(Command::Cancel(self.operation));
        }
    }
}

/// The client answers each request with its own kind of reply.
fn unexpected_reply() -> Error {
    Error::new(ErrorKind::Internal, "the MCP client answered with another kind of reply than was asked for")
}
