//! The listening socket: loopback only, every request through the gate, nothing told to who is refused.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use crablet::mcp::transport::shim::{MAX_FRAME_BYTES, PAIRING_SUBPROTOCOL};
use crablet::native::now;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::config::Config;
use crate::connection::serve_requests;
use crate::expose::{PageOwner, Pages};
use crate::gate::{Admission, Gate, Memory, PairingAdmission, Refusal, is_pairing};
use crate::grants::{Grant, GrantFile};
use crate::http::{AnswerBody, HttpFront, HttpGrant, empty, is_http};
use crate::log::Flood;
use crate::origin::Origin;
use crate::pairing_socket::serve_pairing;
use crate::pairings::PairingFile;
use crate::plain_socket::{PLAIN_SUBPROTOCOL, serve_plain_socket};
use crate::sessions::Sessions;
use crate::socket::{Client, Purpose, serve_socket};
use crate::state::StateDirectory;

/// Everything that the connections share.
#[derive(Debug)]
pub(crate) struct Shim {
    /// Replaced as a whole when the file changes.
    config: RwLock<Arc<Config>>,
    pub(crate) port: u16,
    /// The origins of this run; `None` for every origin that a token names.
    pub(crate) origins: Option<Vec<Origin>>,
    pub(crate) grants: GrantFile,
    pub(crate) sessions: Sessions,
    pub(crate) pages: Arc<Pages>,
    pairings: PairingFile,
    http: HttpFront,
    memory: Mutex<Memory>,
    refusals: Mutex<Flood>,
}

/// Where tokens and codes are kept.
#[derive(Debug)]
pub(crate) struct KeyFiles {
    pub(crate) grants: GrantFile,
    pub(crate) http_grants: GrantFile<HttpGrant>,
    pairings: PairingFile,
}

impl KeyFiles {
    /// Those of this directory.
    pub(crate) fn of(state: &StateDirectory) -> Self {
        Self { grants: GrantFile::of(state), http_grants: GrantFile::of(state), pairings: PairingFile::of(state) }
    }
}

/// Opens the listening socket, on this machine's own address only.
pub(crate) async fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

impl Shim {
    pub(crate) fn new(
        config: Config,
        port: u16,
        origins: Option<Vec<Origin>>,
        keys: KeyFiles,
        sessions: Sessions,
        pages: Arc<Pages>,
    ) -> Self {
        let KeyFiles { grants, http_grants, pairings } = keys;
        Self {
            config: RwLock::new(Arc::new(config)),
            port,
            origins,
            grants,
            sessions,
            pages,
            pairings,
            http: HttpFront::new(http_grants),
            memory: Mutex::default(),
            refusals: Mutex::new(Flood::new()),
        }
    }

    /// The servers that are offered from now on. Processes that run are not touched.
    pub(crate) fn replace_config(&self, config: Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// What the file said last.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes connections for ever.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            match listener.accept().await {
                Ok((stream, peer)) if peer.ip().is_loopback() => match Arc::clone(&connections).try_acquire_owned() {
                    Ok(permit) => drop(tokio::spawn(Arc::clone(&self).serve_connection(stream, peer, permit))),
                    Err(_) => self.note_refusal(peer, &format!("{MAX_CONNECTIONS} connections are open already")),
                },
                Ok((_, peer)) => self.note_refusal(peer, "it is not on this machine"),
                // Out of file descriptors, mostly: some will be closed.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn serve_connection(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, permit: OwnedSemaphorePermit) {
        // Small frames are answers that somebody waits for.
        drop(stream.set_nodelay(true));
        let permit = Arc::new(permit);
        let answer = |request: Request<Incoming>| {
            let (shim, permit) = (Arc::clone(&self), Arc::clone(&permit));
            async move {
                if is_http(target(&request)) {
                    shim.answer_http(request, peer).await
                } else {
                    shim.answer(request, peer, permit)
                }
            }
        };
        serve_requests(stream, answer).await;
    }

    fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        peer: SocketAddr,
        permit: Arc<OwnedSemaphorePermit>,
    ) -> Response<AnswerBody> {
        let shim = Arc::clone(self);
        let config = self.config();
        let outcome = if is_pairing(target(&request)) {
            self.check_pairing(&request, &config).map(|admission| {
                let response = accept(&admission.websocket_key, PAIRING_SUBPROTOCOL);
                tokio::spawn(async move {
                    if let Some(socket) = upgrade(request).await {
                        serve_pairing(socket, admission, &shim.pairings, &shim.grants).await;
                    }
                    drop(permit);
                });
                response
            })
        } else {
            self.check(&request, &config).map(|admission| {
                let response = accept(&admission.websocket_key, admission.subprotocol);
                tokio::spawn(async move {
                    let purpose = match config.servers.get(&admission.server) {
                        Some(server) => Purpose::Use(server),
                        None => Purpose::Offer { pages: &shim.pages, owner: PageOwner::of(&admission) },
                    };
                    let client = Client::of(&admission);
                    match (upgrade(request).await, purpose) {
                        (Some(socket), Purpose::Use(server)) if admission.subprotocol == PLAIN_SUBPROTOCOL => {
                            serve_plain_socket(socket, client, server, &shim.sessions).await;
                        }
                        (Some(socket), purpose) => serve_socket(socket, client, purpose, &shim.sessions).await,
                        (None, _) => {}
                    }
                    drop(permit);
                });
                response
            })
        };
        outcome.unwrap_or_else(|Refusal { status, reason }| {
            self.note_refusal(peer, &reason);
            let mut response = empty(status);
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            if status == StatusCode::UPGRADE_REQUIRED {
                response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
            }
            response
        })
    }

    async fn answer_http(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<AnswerBody> {
        let config = self.config();
        let (response, refused) = self.http.answer(request, self.gate(&config, &[]), &self.sessions).await;
        if let Some(reason) = refused {
            self.note_refusal(peer, &reason);
        }
        response
    }

    fn check(&self, request: &Request<Incoming>, config: &Config) -> Result<Admission, Refusal> {
        let grants = self.grants.read().map_err(|error| Refusal {
            status: StatusCode::FORBIDDEN,
            reason: format!("nobody can come in: {error}"),
        })?;
        let gate = self.gate(config, &grants);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        gate.check(request.method(), target(request), request.headers(), &mut memory)
    }

    fn check_pairing(&self, request: &Request<Incoming>, config: &Config) -> Result<PairingAdmission, Refusal> {
        let gate = self.gate(config, &[]);
        let awaits = |origin: Option<&str>| self.pairings.awaits(origin, gate.now);
        gate.check_pairing(request.method(), target(request), request.headers(), awaits)
    }

    fn gate<'a>(&'a self, config: &'a Config, grants: &'a [Grant]) -> Gate<'a> {
        Gate { config, port: self.port, origins: self.origins.as_deref(), grants, now: now() }
    }

    fn note_refusal(&self, peer: SocketAddr, reason: &str) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.note(&format!("refused {peer}: {reason}"));
    }
}

fn target(request: &Request<Incoming>) -> &str {
    request.uri().path_and_query().map_or("", |target| target.as_str())
}

async fn upgrade(request: Request<Incoming>) -> Option<WebSocketStream<TokioIo<Upgraded>>> {
    let upgraded = hyper::upgrade::on(request).await.ok()?;
    let limits = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES));
    Some(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(limits)).await)
}

fn accept(key: &str, subprotocol: &'static str) -> Response<AnswerBody> {
    let mut response = empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(subprotocol));
    // The key is base64 of 20 bytes, which every header may hold.
    if let Ok(accepted) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    }
    response
}

/// Twice the processes, so that a client whose socket died can come back while the old one is still open.
const MAX_CONNECTIONS: usize = 512;

/// How much is read of a WebSocket at once: a burst of calls. Each reading fills as much with zeros first.
const READ_BYTES: usize = 32 * 1024;

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
