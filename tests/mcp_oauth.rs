//! OAuth through a whole connection: in virtual time, and natively against servers over HTTP with a loopback port.
#![cfg(all(feature = "native", feature = "oauth"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

#[path = "support/mod.rs"]
mod support;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use crablet::Error;
use crablet::ErrorKind;
use crablet::host::BoxFuture;
use crablet::host::mcp::{ConnectOptions, Connection, Consent, HttpServer, OAuth, TokenStore};
use crablet::json::RawJson;
use crablet::mcp::client::CallOptions;
use crablet::mcp::client::auth::{AuthOptions, RegisteredClient};
use crablet::native::{LoopbackConsent, NativeHost};
use serde_json::{Value, json};
use support::{Exchange, ScriptedHost};

/// A person who takes their time, and who can be seen to be asked.
#[derive(Clone)]
struct Slow {
    host: ScriptedHost,
    milliseconds: u64,
    is_asked: Arc<AtomicBool>,
}

struct Asked(Arc<AtomicBool>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Consent for Slow {
    fn redirect_uri(&self) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(std::future::ready(Ok("http://localhost/callback".to_owned())))
    }

    fn ask(&self, url: String) -> BoxFuture<'static, Result<String, Error>> {
        let Self { host, milliseconds, is_asked } = self.clone();
        is_asked.store(true, Ordering::Relaxed);
        Box::pin(async move {
            let _asked = Asked(is_asked);
            host.pause(milliseconds).await;
            let state = url.split('&').find(|pair| pair.starts_with("state=")).unwrap();
            Ok(format!("http://localhost/callback?code=c&{state}"))
        })
    }
}

/// A host whose server wants a token, and has no metadata.
fn refusing(mut host: ScriptedHost) -> ScriptedHost {
    host = host.then(Exchange::new(401, "text/plain"));
    for _ in 0..4 {
        host = host.then(Exchange::new(404, "text/plain"));
    }
    host
}

fn token(host: ScriptedHost) -> ScriptedHost {
    host.then(Exchange::new(200, "application/json").chunk(r#"{"access_token":"t","token_type":"Bearer"}"#))
}

fn connect(host: &ScriptedHost, milliseconds: u64) -> (Connection, Slow) {
    let person = Slow { host: host.clone(), milliseconds, is_asked: Arc::default() };
    let client = RegisteredClient { id: "id".to_owned(), ..RegisteredClient::default() };
    let auth = OAuth::new(AuthOptions { client: Some(client), ..AuthOptions::default() }).consent(person.clone());
    let server = HttpServer::new("https://mcp.example/mcp").auth(auth);
    (Connection::http(host, "remote", server, ConnectOptions::default()), person)
}

#[test]
fn a_person_may_take_longer_than_a_server() {
    let discovered = r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#;
    let called = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}]}}"#;
    let host = token(refusing(ScriptedHost::new())).then(Exchange::new(200, "application/json").chunk(discovered));
    let host = token(refusing(host)).then(Exchange::new(200, "application/json").chunk(called));
    // Longer than connecting may take, and longer than a call may be silent.
    let (connection, _) = connect(&host, 150_000);
    let input = RawJson::parse("{}").unwrap();
    let result = host.block_on(connection.call_tool("any", input, CallOptions::default(), None)).unwrap();
    assert_eq!(result.text(), "done");
    assert!(host.elapsed() >= 300_000);
    let last = host.requests().pop().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer t"));
}

/// A store that takes longer for what it keeps first.
#[derive(Clone)]
struct SlowStore {
    host: ScriptedHost,
    saved: Arc<Mutex<Vec<String>>>,
    milliseconds: u64,
}

impl TokenStore for SlowStore {
    fn load(&self, _: String) -> BoxFuture<'static, Result<Option<String>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn save(&self, key: String, _: Option<String>) -> BoxFuture<'static, Result<(), Error>> {
        let Self { host, saved, milliseconds } = self.clone();
        Box::pin(async move {
            host.pause(if key.starts_with("tokens ") { milliseconds } else { 1 }).await;
            saved.lock().unwrap().push(key);
            Ok(())
        })
    }
}

#[test]
fn tokens_are_kept_in_order_and_before_they_are_used() {
    let discovered = r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#;
    for (milliseconds, elapsed, kept) in [(500, 501, 2), (u64::MAX, 10_001, 1)] {
        let host = token(refusing(ScriptedHost::new())).then(Exchange::new(200, "application/json").chunk(discovered));
        let store = SlowStore { host: host.clone(), saved: Arc::default(), milliseconds };
        let person = Slow { host: host.clone(), milliseconds: 0, is_asked: Arc::default() };
        let client = RegisteredClient { id: "id".to_owned(), ..RegisteredClient::default() };
        let options = AuthOptions { client: Some(client), ..AuthOptions::default() };
        let auth = OAuth::new(options).consent(person).store(store.clone());
        let server = HttpServer::new("https://mcp.example/mcp").auth(auth);
        let connection = Connection::http(&host, "remote", server, ConnectOptions::default());
        host.block_on(connection.ready()).unwrap();
        assert_eq!(host.elapsed(), elapsed);
        let saved = store.saved.lock().unwrap().clone();
        assert_eq!((saved.len(), saved.last().unwrap().as_str()), (kept, "server https://mcp.example/mcp"));
    }
}

#[test]
fn a_person_who_never_comes_is_given_up() {
    let host = refusing(ScriptedHost::new());
    let (connection, person) = connect(&host, u64::MAX);
    let error = host.block_on(connection.ready()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert_eq!(host.elapsed(), 600_000);
    assert!(!person.is_asked.load(Ordering::Relaxed));
}

#[test]
fn nobody_is_asked_for_a_connection_that_is_gone() {
    let host = refusing(ScriptedHost::new());
    let (connection, person) = connect(&host, u64::MAX);
    host.block_on(async {
        while !person.is_asked.load(Ordering::Relaxed) {
            host.pause(1).await;
        }
        drop(connection);
        host.pause(1).await;
    });
    assert!(!person.is_asked.load(Ordering::Relaxed));
}

#[test]
fn tokens_are_not_sent_where_others_can_read_them() {
    let host = ScriptedHost::new();
    let server = HttpServer::new("http://mcp.example/mcp").auth(OAuth::new(AuthOptions::default()));
    let connection = Connection::http(&host, "remote", server, ConnectOptions::default());
    assert_eq!(host.block_on(connection.ready()).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(host.requests(), []);
}

/// An authorization server and an MCP server in one.
#[derive(Default)]
struct Servers {
    url: String,
    /// The challenge that each code was given for.
    codes: HashMap<String, String>,
    tokens: HashSet<String>,
    clients: usize,
    calls: usize,
}

type Shared = Arc<Mutex<Servers>>;

async fn serve() -> (String, Shared) {
    let servers = Shared::default();
    let app = Router::new()
        .route("/mcp", post(answer))
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .route("/register", post(register))
        .route("/authorize", get(authorize))
        .route("/token", post(grant))
        .with_state(servers.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    servers.lock().unwrap().url.clone_from(&url);
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, servers)
}

async fn resource(State(servers): State<Shared>) -> Json<Value> {
    let url = servers.lock().unwrap().url.clone();
    Json(json!({ "resource": format!("{url}/mcp"), "authorization_servers": [url] }))
}

async fn metadata(State(servers): State<Shared>) -> Json<Value> {
    let url = servers.lock().unwrap().url.clone();
    let at = |path: &str| format!("{url}{path}");
    Json(json!({
        "issuer": url, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"), "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"], "authorization_response_iss_parameter_supported": true
    }))
}

async fn register(State(servers): State<Shared>, Json(asked): Json<Value>) -> Response {
    assert_eq!(asked["token_endpoint_auth_method"], "none");
    let mut servers = servers.lock().unwrap();
    servers.clients += 1;
    (StatusCode::CREATED, Json(json!({ "client_id": format!("client-{}", servers.clients) }))).into_response()
}

async fn authorize(State(servers): State<Shared>, Query(asked): Query<HashMap<String, String>>) -> Redirect {
    let mut servers = servers.lock().unwrap();
    let code = format!("code-{}", servers.codes.len());
    servers.codes.insert(code.clone(), asked["code_challenge"].clone());
    let issuer = servers.url.replace(':', "%3A").replace('/', "%2F");
    Redirect::to(&format!("{}?code={code}&state={}&iss={issuer}", asked["redirect_uri"], asked["state"]))
}

async fn grant(State(servers): State<Shared>, body: String) -> Response {
    let asked: HashMap<_, _> = body.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let mut servers = servers.lock().unwrap();
    let challenge = servers.codes.remove(asked["code"]);
    if asked["grant_type"] != "authorization_code" || challenge != Some(challenge_of(asked["code_verifier"])) {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response();
    }
    let token = format!("token-{}", servers.tokens.len());
    servers.tokens.insert(token.clone());
    Json(json!({ "access_token": token, "token_type": "Bearer" })).into_response()
}

/// The challenge of a verifier (RFC 7636, section 4.2), by other code than crablet's.
fn challenge_of(verifier: &str) -> String {
    use aws_lc_rs::digest::{SHA256, digest};
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hash = digest(&SHA256, verifier.as_bytes());
    let bits: Vec<bool> =
        hash.as_ref().iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    let digit = |bits: &[bool]| (0..6).fold(0, |value, place| value * 2 + usize::from(bits.get(place) == Some(&true)));
    bits.chunks(6).map(|bits| char::from(ALPHABET[digit(bits)])).collect()
}

async fn answer(State(servers): State<Shared>, headers: HeaderMap, Json(message): Json<Value>) -> Response {
    let mut servers = servers.lock().unwrap();
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if token.is_none_or(|token| !servers.tokens.contains(token)) {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response();
    }
    let result = match message["method"].as_str() {
        Some("server/discover") => json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } }),
        _ => {
            servers.calls += 1;
            json!({ "content": [{ "type": "text", "text": "done" }] })
        }
    };
    Json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).into_response()
}

/// Opens the page as a browser does, in a task of its own.
fn browse(pages: Arc<AtomicUsize>) -> impl Fn(&str) + Send + Sync {
    move |url| {
        pages.fetch_add(1, Ordering::Relaxed);
        let url = url.to_owned();
        tokio::spawn(async move { reqwest::get(url).await.unwrap().text().await });
    }
}

#[tokio::test]
async fn a_browser_comes_back_to_a_port_of_this_machine() {
    let (url, servers) = serve().await;
    let pages = Arc::new(AtomicUsize::new(0));
    let auth = OAuth::new(AuthOptions::default()).consent(LoopbackConsent::new(browse(pages.clone())));
    let server = HttpServer::new(format!("{url}/mcp")).auth(auth);
    let connection = Connection::http(&NativeHost::new().unwrap(), "remote", server, ConnectOptions::default());
    let call = || connection.call_tool("any", RawJson::parse("{}").unwrap(), CallOptions::default(), None);
    assert_eq!(call().await.unwrap().text(), "done");
    // Everybody is sent to the person once more, and once only.
    servers.lock().unwrap().tokens.clear();
    let results = futures_util::future::join_all((0..8).map(|_| call())).await;
    assert!(results.into_iter().all(|result| result.unwrap().text() == "done"));
    assert_eq!(pages.load(Ordering::Relaxed), 2);
    assert_eq!(servers.lock().unwrap().calls, 9);
    connection.close().await;
}
