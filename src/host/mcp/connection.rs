use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_channel::{mpsc, oneshot};

use super::driver::{Command, Driver, Listeners, Shared};
use super::http::{self, HttpServer};
use super::lasting::Lasting;
use super::network::Network;
use super::{Carrier, DELIVERY_LIMIT, RequestFunction, function};
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Host, MaybeSend, MaybeSync};
use crate::json::RawJson;
use crate::jsonrpc::{Params, RpcError};
use crate::mcp::client::{
    CallOptions, ClientOptions, Collection, Event, OperationId, Progress, Reply, Request, TransportKind,
};
use crate::mcp::protocol::{CallToolResult, EraChoice, EraRecord, Implementation, ServerInfo, Tool};

/// A connection to an MCP server. Cloning gives another handle to the same connection.
///
/// It connects in the background from the moment it is made; calls wait until it stands. A connection that failed or
/// broke is made anew by the next call, while calls that were under way have failed. A call whose answer was lost on a connection
/// that still stands is sent again, once, if its tool was listed with `readOnlyHint` or `idempotentHint`; nothing else is sent twice.
/// When the last handle is dropped the connection is closed.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    name: Arc<str>,
    open: Box<dyn Open>,
    live: Mutex<Live>,
    next_operation: AtomicU64,
    is_closed: AtomicBool,
    lasting: Lasting,
}

/// The way to the driver that is at work.
#[derive(Clone)]
struct Live {
    commands: mpsc::UnboundedSender<Command>,
    shared: Arc<Shared>,
}

/// Starts a driver and its carrier.
trait Open: MaybeSend + MaybeSync {
    fn open(&self) -> Result<Live, Error>;
}

impl<F: Fn() -> Result<Live, Error> + MaybeSend + MaybeSync> Open for F {
    fn open(&self) -> Result<Live, Error> {
        self()
    }
}

/// How to connect.
#[derive(Clone, Default)]
pub struct ConnectOptions {
    /// Which eras to speak. Default: find out.
    pub era: EraChoice,
    /// What an earlier connection found, so that this one need not probe.
    pub known_era: Option<EraRecord>,
    /// What the client calls itself, if not `crablet`.
    pub client: Option<Implementation>,
    /// Is told what happens on the connection.
    pub observer: Option<Arc<dyn Observer>>,
    /// What the client offers to servers. Declare `elicitation`, `sampling` or `roots` only with an answerer for it.
    pub capabilities: Params,
    /// Answers what the server asks.
    pub answerer: Option<Arc<dyn Answerer>>,
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ConnectOptions").field("era", &self.era).finish_non_exhaustive()
    }
}

impl ConnectOptions {
    fn client(&self, transport: TransportKind) -> (ClientOptions, Listeners) {
        let mut options = ClientOptions::new(transport);
        options.era = self.era;
        options.known_era = self.known_era;
        if let Some(client) = &self.client {
            options.client = client.clone();
        }
        options.capabilities = self.capabilities.clone();
        let (observer, answerer) = (self.observer.clone(), self.answerer.clone());
        (options, Listeners { observer, answerer, lasting: Lasting::default() })
    }
}

/// Is told what happens on a connection: that it stands and with which era record, that tools changed, what the server
/// notifies of, warnings, and its end. Calls and their progress are told to their callers. Implemented by closures.
pub trait Observer: MaybeSend + MaybeSync + 'static {
    /// Something happened.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + MaybeSend + MaybeSync + 'static> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// Answers what a server asks of the user or the program: `elicitation/create`, `sampling/createMessage`, `roots/list`, each
/// with the result that the protocol gives it. Implemented by closures that give a future.
///
/// A question that the server withdraws, or whose call is over, is dropped.
pub trait Answerer: MaybeSend + MaybeSync + 'static {
    /// Answers one question.
    ///
    /// # Errors
    ///
    /// What the server is told instead of a result.
    fn answer(&self, method: &str, params: RawJson) -> BoxFuture<'static, Result<RawJson, RpcError>>;
}

impl<F, Answering> Answerer for F
where
    F: Fn(&str, RawJson) -> Answering + MaybeSend + MaybeSync + 'static,
    Answering: Future<Output = Result<RawJson, RpcError>> + MaybeSend + 'static,
{
    fn answer(&self, method: &str, params: RawJson) -> BoxFuture<'static, Result<RawJson, RpcError>> {
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
    pub fn http<H: Host>(host: &H, name: impl Into<Arc<str>>, mut server: HttpServer, options: ConnectOptions) -> Self {
        let network = Network::new(host.clone(), &mut server);
        let HttpServer { options: endpoint, headers, .. } = server;
        let carry = move |carrier| http::carry(network.clone(), endpoint.clone(), headers.clone(), carrier);
        Self::over(host, name.into(), TransportKind::Http, options, carry)
    }

    /// Connects over any function that answers messages: a message port, a server in the same program.
    pub fn function<H: Host>(
        host: &H,
        name: impl Into<Arc<str>>,
        function: impl RequestFunction,
        options: ConnectOptions,
    ) -> Self {
        let function: Arc<dyn RequestFunction> = Arc::new(function);
        let carry = move |carrier| function::carry(function.clone(), carrier);
        Self::over(host, name.into(), TransportKind::Pipe, options, carry)
    }

    /// Connects to a server behind crablet-shim. With the [resume id](Self::resume_id) of an earlier connection it attaches
    /// to that one's process, and conversations that are restored claim the results of tools that were at work in it; when
    /// the process is gone it starts a new one.
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
        let host = host.clone();
        let lasting = Lasting::default();
        let kept = lasting.clone();
        let was_opened = AtomicBool::new(false);
        let open = move || {
            let new = || {
                let server = crate::mcp::transport::websocket::WebSocketOptions { resume: None, ..server.clone() };
                crate::mcp::transport::websocket::WebSocketTransport::new(server, host.random()?)
            };
            // Later what could be resumed is gone: the transport has tried until then.
            let resumes = server.resume.is_some() && !was_opened.swap(true, Ordering::Relaxed);
            let resuming = || crate::mcp::transport::websocket::WebSocketTransport::new(server.clone(), host.random()?);
            let (machine, instead) = if resumes { (resuming()?, Some(new()?)) } else { (new()?, None) };
            let (live, carrier) = start_driver(&host, options.client(TransportKind::Pipe), &kept);
            host.spawn(super::websocket::carry(host.clone(), machine, instead, carrier));
            Ok(live)
        };
        Ok(Self::new(name.into(), open()?, open, lasting))
    }

    /// Connects over what this function carries messages with, which is called again for each new connection.
    pub(crate) fn over<H: Host, Carrying>(
        host: &H,
        name: Arc<str>,
        kind: TransportKind,
        options: ConnectOptions,
        carry: impl Fn(Carrier) -> Carrying + MaybeSend + MaybeSync + 'static,
    ) -> Self
    where
        Carrying: Future<Output = ()> + MaybeSend + 'static,
    {
        let host = host.clone();
        let lasting = Lasting::default();
        let kept = lasting.clone();
        let open = move || {
            let (live, carrier) = start_driver(&host, options.client(kind), &kept);
            host.spawn(carry(carrier));
            live
        };
        Self::new(name, open(), move || Ok(open()), lasting)
    }

    fn new(name: Arc<str>, live: Live, open: impl Open + 'static, lasting: Lasting) -> Self {
        let inner = Inner {
            name,
            open: Box::new(open),
            live: Mutex::new(live),
            next_operation: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            lasting,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The name that this server was given.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// By what a connection of another process, or of the page after it was loaded anew, can attach to the process that the
    /// server runs in: see [`shim`](Self::shim). `None` until it stands, and for other connections. Of use only with the
    /// same token and within the grace of the shim.
    pub fn resume_id(&self) -> Option<String> {
        self.inner.lasting.resume_id()
    }

    /// Waits until the connection stands, and tells what the server said of itself.
    ///
    /// # Errors
    ///
    /// Why it does not: `network`, `auth`, `unsupported-version`, `protocol`, `timeout` or `connection-closed`.
    pub async fn ready(&self) -> Result<ServerInfo, Error> {
        let (sender, receiver) = oneshot::channel();
        let live = self.send(Command::Ready(sender))?;
        receiver.await.map_err(|_| self.closed(&live))
    }

    /// All tools of the server. Empty when it offers none.
    ///
    /// # Errors
    ///
    /// As for [`ready`](Self::ready), and `rpc` when the server refuses.
    pub async fn tools(&self) -> Result<Vec<Arc<Tool>>, Error> {
        self.tools_with(CallOptions::default()).await
    }

    /// All tools, within other limits, or asked for afresh.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools).
    pub async fn tools_with(&self, options: CallOptions) -> Result<Vec<Arc<Tool>>, Error> {
        match self.perform(Request::ListTools, options, None).await? {
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
        CallToolResult::read(&self.ask(request, options, on_progress).await?)
    }

    /// Sends a request, with limits and a listener of its own, and gives its result as it came.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools).
    pub async fn ask(
        &self,
        request: Request,
        options: CallOptions,
        on_progress: Option<Box<dyn OnProgress>>,
    ) -> Result<RawJson, Error> {
        match self.perform(request, options, on_progress).await? {
            Reply::ToolResult(value) | Reply::Value(value) => Ok(value),
            _ => Err(unexpected_reply()),
        }
    }

    /// All entries of a list as the server sent them. Empty when it offers none.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools).
    pub async fn entries(&self, collection: Collection) -> Result<Vec<RawJson>, Error> {
        self.entries_with(collection, CallOptions::default()).await
    }

    /// All entries of a list, within other limits, or asked for afresh.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools).
    pub async fn entries_with(&self, collection: Collection, options: CallOptions) -> Result<Vec<RawJson>, Error> {
        match self.perform(Request::List(collection), options, None).await? {
            Reply::Entries(entries) => Ok(entries),
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
        self.ask(request, CallOptions::default(), None).await
    }

    /// Tells a handshake server something, such as `notifications/roots/list_changed`. The stateless era has no such messages.
    ///
    /// # Errors
    ///
    /// Why the connection is closed.
    pub fn notify(&self, method: impl Into<String>, params: Params) -> Result<(), Error> {
        self.send(Command::Notify { method: method.into(), params }).map(drop)
    }

    /// A handle that does not keep the connection open.
    pub(super) fn downgrade(&self) -> WeakConnection {
        WeakConnection(Arc::downgrade(&self.inner))
    }

    /// Calls a function when the server's tools have changed, until it gives `false`.
    pub(super) fn on_tools_changed(&self, call: impl Fn() -> bool + MaybeSend + MaybeSync + 'static) {
        self.inner.lasting.changes.add(call);
    }

    /// Closes the connection in good order, for all its handles. Calls that are under way end with `connection-closed`.
    pub async fn close(&self) {
        self.inner.is_closed.store(true, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        if self.send(Command::Close(sender)).is_ok() {
            // The driver drops the sender when it is done.
            let _ = receiver.await;
        }
    }

    /// In a box, so that waiting for a reply is in a program once and not for each kind of request.
    fn perform(
        &self,
        request: Request,
        options: CallOptions,
        on_progress: Option<Box<dyn OnProgress>>,
    ) -> BoxFuture<'_, Result<Reply, Error>> {
        Box::pin(async move {
            let operation = OperationId(self.inner.next_operation.fetch_add(1, Ordering::Relaxed));
            let (done, receiver) = oneshot::channel();
            let live = self.send(Command::Start { operation, request, options, done, on_progress })?;
            let mut guard = CancelOnDrop { operation, commands: Some(&live.commands) };
            let outcome = receiver.await;
            guard.commands = None;
            outcome.unwrap_or_else(|_| Err(self.closed(&live)))
        })
    }

    /// Sends a command to the driver at work, or to a new one when that has ended.
    fn send(&self, command: Command) -> Result<Live, Error> {
        // Nothing can panic while the lock is held that would leave half a value behind.
        let mut live = self.inner.live.lock().unwrap_or_else(PoisonError::into_inner);
        let Err(refused) = live.commands.unbounded_send(command) else { return Ok(live.clone()) };
        if self.inner.is_closed.load(Ordering::Relaxed) {
            return Err(self.closed(&live));
        }
        *live = self.inner.open.open()?;
        match live.commands.unbounded_send(refused.into_inner()) {
            Ok(()) => Ok(live.clone()),
            Err(_) => Err(self.closed(&live)),
        }
    }

    fn closed(&self, live: &Live) -> Error {
        live.shared.closed.get().cloned().unwrap_or_else(|| {
            let message = format!("the connection to the MCP server {} is closed", self.inner.name);
            Error::new(ErrorKind::ConnectionClosed, message)
        })
    }
}

pub(super) struct WeakConnection(Weak<Inner>);

impl WeakConnection {
    pub(super) fn upgrade(&self) -> Option<Connection> {
        self.0.upgrade().map(|inner| Connection { inner })
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

/// Starts a client; what carries its messages is still to be started.
fn start_driver<H: Host>(
    host: &H,
    (mut client, mut listeners): (ClientOptions, Listeners),
    lasting: &Lasting,
) -> (Live, Carrier) {
    listeners.lasting = lasting.clone();
    lasting.remind(&mut client);
    let (commands, receiver) = mpsc::unbounded();
    let (outbound, outbound_receiver) = mpsc::unbounded();
    let (deliveries, inbound) = mpsc::channel(DELIVERY_LIMIT);
    let shared = Arc::new(Shared::default());
    host.spawn(Driver::new(host.clone(), client, listeners, receiver, outbound, inbound, shared.clone()).run());
    (Live { commands, shared }, Carrier { outbound: outbound_receiver, deliveries })
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
