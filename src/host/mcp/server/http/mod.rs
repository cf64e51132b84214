//! A server of one's own over Streamable HTTP, for clients of both eras, whatever HTTP server carries it.

mod answer;
mod lane;
mod request;
mod session;

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::AbortHandle;

pub use answer::{EventStream, Framing, HttpBody, HttpResponse, Sleep};
pub use lane::{LaneSender, OpenExchange};

use self::session::Session;
use super::{McpServer, ServerControl};
use crate::host::Host;
use crate::json::RawJson;
use crate::jsonrpc::{RpcError, code};
use crate::mcp::protocol::EraChoice;
use crate::mcp::server::http::{
    Answer, Asked, Exchange, Gate, Headers, Part, PostedRequest, Rules, SESSION, fits_arguments, preflight, readable_by,
};
use crate::mcp::transport::streamable_http::mirrored::mirrored_params;
use crate::ordered_map::OrderedMap;

/// How a server answers over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOptions {
    /// Who may come in. Default: programs of this machine, and pages of the server's own origin.
    pub gate: Gate,
    /// Whether clients of the handshake era get sessions, which live in this process. Without them, as behind a balancer that
    /// sends each request elsewhere, their requests stand alone, and tools cannot ask them for anything. Default: true.
    pub sessions: bool,
    /// The most sessions. One more takes the place of the one that was not used for the longest time and has no open request;
    /// if there is none, it is refused with 503. Default 128.
    pub max_sessions: usize,
    /// How long a session lives at least without a request or an open stream, in milliseconds; at most it is twice as long.
    /// Default: half an hour.
    pub session_idle: u64,
    /// The most requests at work that belong to no session; more are refused with 503. A subscription is one. Default 1024.
    pub max_requests: usize,
    /// The longest body, in bytes; a longer one is refused with 413. Default 4 MiB.
    pub max_body_bytes: usize,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            gate: Gate::default(),
            sessions: true,
            max_sessions: 128,
            session_idle: 30 * 60 * 1000,
            max_requests: 1_024,
            max_body_bytes: 4 * 1024 * 1024,
        }
    }
}

/// A request, as an HTTP server has received it. `Debug` shows the names of the headers and the length of the body.
#[derive(Clone)]
pub struct HttpCall<'a> {
    /// The method.
    pub method: &'a str,
    /// The headers. Where the protocol has none, as HTTP/2, `host` is the authority.
    pub headers: Headers<'a>,
    /// The whole body; empty if there is none.
    pub body: &'a [u8],
    /// Who asks, if that was found out. A session is for the caller that began it: with another it is not there. Tools find it
    /// in [`ServerCall::caller`](super::ServerCall::caller).
    pub caller: Option<&'a str>,
}

impl fmt::Debug for HttpCall<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed = formatter.debug_struct("HttpCall");
        printed.field("method", &self.method).field("headers", &self.headers);
        printed.field("body_bytes", &self.body.len()).field("caller", &self.caller).finish()
    }
}

/// Serves over HTTP. Cheap to clone; all clones share sessions and limits.
///
/// An HTTP server asks [`check`](Self::check) with the head of a request, then whoever decides on access, reads the body up to
/// [`HttpOptions::max_body_bytes`], and sends what [`handle`](Self::handle) gives. `examples/mcp_server.rs` does so with axum.
pub struct HttpHandler<H: Host>(Arc<Shared<H>>);

struct Shared<H> {
    host: H,
    options: HttpOptions,
    sleep: Sleep,
    server: Mutex<McpServer>,
    sessions: Mutex<OrderedMap<String, Session>>,
    /// What changes the open subscriptions of the stateless era.
    listeners: Mutex<OrderedMap<Exchange, Listener>>,
    requests: AtomicUsize,
    next_exchange: AtomicU64,
    uses: AtomicU64,
}

/// An open subscription of the stateless era.
struct Listener {
    control: ServerControl,
    task: AbortHandle,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl McpServer {
    /// Serves over HTTP. Requests of the stateless era, and sessions of the handshake era, go on in the background of the host.
    pub fn http<H: Host>(&self, host: &H, options: HttpOptions) -> HttpHandler<H> {
        let sleeping = host.clone();
        HttpHandler(Arc::new(Shared {
            host: host.clone(),
            options,
            sleep: Sleep::new(move |milliseconds| {
                let host = sleeping.clone();
                async move { host.sleep(milliseconds).await }
            }),
            server: Mutex::new(self.clone()),
            sessions: Mutex::default(),
            listeners: Mutex::default(),
            requests: AtomicUsize::new(0),
            next_exchange: AtomicU64::new(1),
            uses: AtomicU64::new(0),
        }))
    }
}

impl<H: Host> HttpHandler<H> {
    /// Looks at the head of a request, before its body is read: who asks, from where, and whether it is well made.
    ///
    /// # Errors
    ///
    /// The answer to a request that is refused, or to a browser that asks whether it may send one.
    pub fn check(&self, method: &str, headers: &Headers<'_>) -> Result<(), HttpResponse> {
        let origin = self.0.options.gate.check(headers)?;
        let checked = match preflight(method, headers) {
            Some(answer) => Err(answer),
            None => self.rules().check_head(method, headers),
        };
        checked.map_err(|answer| readable(origin, answer.into()))
    }

    /// Answers a request. Checks its head too.
    pub async fn handle(&self, call: HttpCall<'_>) -> HttpResponse {
        if let Err(refused) = self.check(call.method, &call.headers) {
            return refused;
        }
        let origin = call.headers.text("origin");
        let response = if call.body.len() > self.0.options.max_body_bytes {
            Answer::empty(413).into()
        } else {
            match self.rules().read(call.method, &call.headers, call.body) {
                Ok(asked) => self.serve(asked, call.caller).await,
                Err(answer) => answer.into(),
            }
        };
        readable(origin, response)
    }

    /// The longest body that is taken, in bytes.
    pub fn max_body_bytes(&self) -> usize {
        self.0.options.max_body_bytes
    }

    /// Serves something else from now on. Sessions and subscriptions are told which lists changed; calls at work go on.
    pub fn replace(&self, server: McpServer) {
        *lock(&self.0.server) = server.clone();
        self.each_control(|control| control.replace(server.clone()));
    }

    /// Tells clients that follow a resource that it changed.
    pub fn resource_updated(&self, uri: &str) {
        self.each_control(|control| control.resource_updated(uri));
    }

    /// Ends every session and subscription. Requests that come later begin new ones.
    pub fn close(&self) {
        lock(&self.0.sessions).clear();
        lock(&self.0.listeners).clear();
    }

    fn each_control(&self, tell: impl Fn(&ServerControl)) {
        lock(&self.0.sessions).iter().for_each(|(_, session)| tell(session.control()));
        lock(&self.0.listeners).iter().for_each(|(_, listener)| tell(&listener.control));
    }

    fn rules(&self) -> Rules {
        Rules { sessions: self.0.options.sessions }
    }

    async fn serve(&self, asked: Asked, caller: Option<&str>) -> HttpResponse {
        match asked {
            Asked::Request { part, request } => self.ask(part, request, caller).await,
            Asked::Message { session, message } => match self.session(&session, caller) {
                Some(session) if session.tell(message).await => Answer::empty(202).into(),
                _ => Answer::no_session().into(),
            },
            Asked::Listen { session, after } => match self.session(&session, caller) {
                Some(session) => match session.listen(self.exchange(), after) {
                    Some(open) => HttpResponse::of_stream(open, None, after.is_none(), &self.0.sleep),
                    None => Answer::lost_events().into(),
                },
                None => Answer::no_session().into(),
            },
            Asked::End { session } => match self.session(&session, caller) {
                Some(_) => {
                    lock(&self.0.sessions).remove(&session);
                    Answer::empty(204).into()
                }
                None => Answer::no_session().into(),
            },
        }
    }

    async fn ask(&self, part: Part, request: PostedRequest, caller: Option<&str>) -> HttpResponse {
        let eras = lock(&self.0.server).options.eras;
        match part {
            Part::Stateless if eras == EraChoice::Handshake => {
                let message = "this server speaks revisions up to 2025-11-25: send initialize";
                Answer::failed(400, Some(&request.id), RpcError::new(code::INVALID_REQUEST, message)).into()
            }
            Part::Stateless => {
                let checked = self.check_arguments(&request);
                match checked {
                    Ok(()) => self.ask_once(request, None, caller).await,
                    Err(error) => Answer::failed(400, Some(&request.id), error).into(),
                }
            }
            // It is told which revision is spoken.
            Part::Opening | Part::Unbound(_) if eras == EraChoice::Stateless => {
                self.ask_once(request, None, caller).await
            }
            Part::Unbound(revision) => self.ask_once(request, Some(revision), caller).await,
            Part::Opening => self.open_session(request, caller).await,
            Part::Session(session) => match self.session(&session, caller) {
                Some(session) => session.ask(self.exchange(), request, &self.0.sleep).await,
                None => Answer::no_session().into(),
            },
        }
    }

    fn check_arguments(&self, request: &PostedRequest) -> Result<(), RpcError> {
        if request.method != "tools/call" {
            return Ok(());
        }
        let name: Option<String> = request.params.member("name").and_then(|name| name.read().ok());
        let schema = name.and_then(|name| lock(&self.0.server).catalog.input_schema(&name));
        // A tool whose annotations cannot be obeyed has no such headers.
        let mirrored = schema.and_then(|schema| mirrored_params(&schema).ok()).unwrap_or_default();
        fits_arguments(&mirrored, &request.params, request.headers.as_deref().unwrap_or_default())
    }

    async fn open_session(&self, request: PostedRequest, caller: Option<&str>) -> HttpResponse {
        let (Ok(random), true) = (self.0.host.random(), self.has_room()) else {
            return busy(&request.id, "there are too many sessions; try again later");
        };
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let sessions = Arc::downgrade(&self.0);
        let ended = name.clone();
        let forget = move || {
            if let Some(shared) = sessions.upgrade() {
                lock(&shared.sessions).remove(&ended);
            }
        };
        let server = lock(&self.0.server).clone();
        let life = (self.use_number(), self.0.options.session_idle);
        let session = Session::start(&self.0.host, &server, caller, life, forget);
        lock(&self.0.sessions).insert(name.clone(), session.clone());
        let mut response = session.ask(self.exchange(), request, &self.0.sleep).await;
        if session.is_initialized() {
            response.headers.push((SESSION, name));
        } else {
            lock(&self.0.sessions).remove(&name);
        }
        response
    }

    /// Whether a further session may begin, now that the one which was not used for the longest time has ended if it had to.
    fn has_room(&self) -> bool {
        let mut sessions = lock(&self.0.sessions);
        if sessions.len() < self.0.options.max_sessions.max(1) {
            return true;
        }
        let unused = sessions.iter().filter_map(|(name, session)| Some((session.unused_since()?, name.clone())));
        let oldest = unused.min_by_key(|(since, _)| *since);
        oldest.is_some_and(|(_, name)| sessions.remove(&name).is_some())
    }

    fn session(&self, name: &str, caller: Option<&str>) -> Option<Session> {
        let session = lock(&self.0.sessions).get(name).cloned()?;
        session.is_of(caller).then(|| {
            session.is_used(self.use_number());
            session
        })
    }

    fn use_number(&self) -> u64 {
        self.0.uses.fetch_add(1, Ordering::Relaxed)
    }

    fn exchange(&self) -> Exchange {
        Exchange(self.0.next_exchange.fetch_add(1, Ordering::Relaxed))
    }
}

impl<H: Host> Clone for HttpHandler<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<H: Host> fmt::Debug for HttpHandler<H> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpHandler").field("options", &self.0.options).finish_non_exhaustive()
    }
}

fn busy(id: &RawJson, sentence: &str) -> HttpResponse {
    Answer::failed(503, Some(id), RpcError::new(code::INTERNAL_ERROR, sentence)).into()
}

fn readable(origin: Option<&str>, mut response: HttpResponse) -> HttpResponse {
    response.headers.extend(readable_by(origin));
    response
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
