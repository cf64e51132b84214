//! The HTTP front of `serve`: Streamable HTTP of both eras at `/mcp/<name>`.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crablet::json::RawJson;
use crablet::jsonrpc::{RpcError, code};
use crablet::mcp::transport::shim::MAX_MESSAGE_BYTES;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, CONNECTION,
    HeaderMap, HeaderName, HeaderValue, VARY, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};
use tokio::time::timeout;

use super::answer::{AnswerBody, SESSION, answer_to, empty, event_stream, json};
use super::bridge::{Input, failure};
use super::child::Asked;
use super::children::{Children, Unavailable};
use super::event_log::EventId;
use super::gate::{Admitted, HttpGate, Refused};
use super::grants::HttpGrant;
use super::head::{self, Part, check_media, part_of, repeated_arguments};
use super::message::{Posted, null, read_message};
use crate::config::Server;
use crate::gate::{Gate, Refusal};
use crate::grants::GrantFile;
use crate::lockout::Lockout;
use crate::sessions::Sessions;

/// The front.
#[derive(Debug)]
pub(crate) struct HttpFront {
    grants: GrantFile<HttpGrant>,
    children: Children,
    lockout: Mutex<Lockout>,
}

/// A caller that was let in.
#[derive(Clone, Copy)]
struct Caller<'a> {
    key_id: &'a str,
    name: &'a str,
    server: &'a Server,
    sessions: &'a Sessions,
}

/// Whether a request is one for this front.
pub(crate) fn is_http(target: &str) -> bool {
    target.starts_with("/mcp/")
}

impl HttpFront {
    pub(crate) fn new(grants: GrantFile<HttpGrant>) -> Self {
        Self { children: Children::new(Some(grants.clone())), grants, lockout: Mutex::default() }
    }

    /// Answers a request. Why it was refused is a line for the log.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        gate: Gate<'_>,
        sessions: &Sessions,
    ) -> (Response<AnswerBody>, Option<String>) {
        let config = gate.config;
        let (response, origin, reason) = match self.admit(&request, gate) {
            Err(Refused { refusal: Refusal { status, reason }, origin }) => {
                let mut response = empty(status);
                // What follows the head is not read.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                if status == StatusCode::UNAUTHORIZED {
                    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
                (response, origin, Some(reason))
            }
            Ok(Admitted { origin, key_id: None, .. }) => (preflight(request.headers()), origin, None),
            Ok(Admitted { server: name, origin, key_id: Some(key_id) }) => {
                let response = match config.servers.get(&name) {
                    Some(server) => {
                        self.serve(request, Caller { key_id: &key_id, name: &name, server, sessions }).await
                    }
                    None => empty(StatusCode::NOT_FOUND),
                };
                (response, origin, None)
            }
        };
        (readable_for(origin.as_deref(), response), reason)
    }

    fn admit(&self, request: &Request<Incoming>, gate: Gate<'_>) -> Result<Admitted, Refused> {
        let refused = |reason: String| Refusal { status: StatusCode::FORBIDDEN, reason };
        if request.uri().authority().is_some() {
            return Err(refused("the request is one for a proxy".to_owned()).into());
        }
        let grants = self.grants.read().map_err(|error| refused(format!("nobody can come in: {error}")))?;
        let target = request.uri().path_and_query().map_or("", |target| target.as_str());
        let mut lockout = self.lockout.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = HttpGate { gate, grants: &grants };
        gate.check(request.method(), target, request.headers(), &mut lockout)
    }

    async fn serve(&self, request: Request<Incoming>, caller: Caller<'_>) -> Response<AnswerBody> {
        let method = request.method().clone();
        if ![Method::POST, Method::GET, Method::DELETE].contains(&method) {
            return not_allowed("POST, GET, DELETE");
        }
        if let Err(status) = check_media(&method, request.headers()) {
            return closing(status);
        }
        if method == Method::POST {
            return self.post(request, caller).await;
        }
        let headers = request.headers();
        let session = match head::session(headers) {
            // The era has neither sessions nor streams of their own.
            _ if head::is_stateless(headers) => return not_allowed("POST"),
            None => return not_allowed("POST"),
            Some(session) => session,
        };
        let Some(child) = self.children.session(caller.key_id, caller.name, session) else { return no_session() };
        if method == Method::DELETE {
            child.end().await;
            return empty(StatusCode::NO_CONTENT);
        }
        let last = headers.get("last-event-id").map(|id| id.to_str().ok().and_then(EventId::parse));
        let opened = match last {
            None => child.listen(None).await.map(|open| event_stream(open, None, true)),
            Some(None) => None,
            Some(Some(last)) => child.listen(Some(last)).await.map(|open| event_stream(open, None, false)),
        };
        let lost = || {
            let message = "what followed this event is not known any more; ask again for what is missing";
            failed(StatusCode::BAD_REQUEST, RpcError::new(code::INVALID_REQUEST, message))
        };
        opened.unwrap_or_else(lost)
    }

    async fn post(&self, request: Request<Incoming>, caller: Caller<'_>) -> Response<AnswerBody> {
        let (head, body) = request.into_parts();
        let body = match read_body(body).await {
            Ok(body) => body,
            Err(status) => return closing(status),
        };
        let posted = match read_message(&body) {
            Ok(posted) => posted,
            Err((id, error)) => return json(StatusCode::BAD_REQUEST, &failure(&id, error)),
        };
        match posted {
            Posted::Request { id, method, params } => {
                let part = part_of(&head.headers, Some(&method), &params);
                let headers = repeated_arguments(&head.headers);
                match part.and_then(|part| Ok((part, headers?))) {
                    Ok((part, headers)) => {
                        self.ask(caller, part, Asked { id, method, params, headers: Some(headers) }).await
                    }
                    Err(error) => json(StatusCode::BAD_REQUEST, &failure(&id, error)),
                }
            }
            Posted::Notification { method, params, raw } => {
                self.tell(caller, &head.headers, Input::Notification { method, params, raw }).await
            }
            Posted::Response { id, raw } => self.tell(caller, &head.headers, Input::Response { id, raw }).await,
        }
    }

    async fn ask(&self, caller: Caller<'_>, part: Part, asked: Asked) -> Response<AnswerBody> {
        let Caller { key_id, name, server, sessions } = caller;
        let id = asked.id.clone();
        let is_stateless = part == Part::Stateless;
        let mut opened = None;
        let child = match part {
            Part::Stateless => self.children.shared(sessions, key_id, name, server).await,
            Part::Opening => {
                self.children.open_session(sessions, key_id, name, server).await.map(|(session, child)| {
                    opened = Some((session, child.clone()));
                    child
                })
            }
            Part::Session(session) => match self.children.session(key_id, name, &session) {
                Some(child) => Ok(child),
                None => return no_session(),
            },
        };
        let exchange = match child {
            Ok(child) => child.call(asked).await.ok_or("the server has just ended; try again".to_owned()),
            Err(Unavailable(sentence)) => Err(sentence),
        };
        let mut response = match exchange {
            Ok(exchange) => answer_to(exchange, is_stateless).await,
            Err(sentence) => unavailable(&id, sentence),
        };
        if let Some((session, child)) = opened {
            match HeaderValue::from_str(&session) {
                Ok(session) if !child.is_over() => drop(response.headers_mut().insert(SESSION, session)),
                _ => child.end().await,
            }
        }
        response
    }

    /// What has no answer.
    async fn tell(&self, caller: Caller<'_>, headers: &HeaderMap, input: Input) -> Response<AnswerBody> {
        let (params, is_answer) = match &input {
            Input::Notification { params, .. } => (params.clone(), false),
            _ => (Default::default(), true),
        };
        match part_of(headers, None, &params) {
            Ok(Part::Session(session)) => match self.children.session(caller.key_id, caller.name, &session) {
                Some(child) if child.tell(input).await => empty(StatusCode::ACCEPTED),
                _ => no_session(),
            },
            Ok(_) if is_answer => {
                let message = "a server of this revision asks nothing that could be answered";
                failed(StatusCode::BAD_REQUEST, RpcError::new(code::INVALID_REQUEST, message))
            }
            // The era has no notifications over HTTP: whoever ends a request closes its stream.
            Ok(_) => empty(StatusCode::ACCEPTED),
            Err(error) => failed(StatusCode::BAD_REQUEST, error),
        }
    }
}

/// The whole body.
///
/// # Errors
///
/// The status for one that is too long, too slow or cut off.
async fn read_body(body: impl Body<Data = Bytes, Error: Error + Send + Sync + 'static>) -> Result<Bytes, StatusCode> {
    // A body that is too long by its own account is not read at all.
    if body.size_hint().lower() > MAX_MESSAGE_BYTES as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    match timeout(BODY_LIMIT, Limited::new(body, MAX_MESSAGE_BYTES).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// The answer to a browser that asks whether a page of an allowed origin may send a request.
fn preflight(asked: &HeaderMap) -> Response<AnswerBody> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, DELETE"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    let wanted = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_ours = |name: &&str| {
        let name = name.to_ascii_lowercase();
        REQUEST_HEADERS.contains(&name.as_str()) || name.starts_with("mcp-")
    };
    let allowed: Vec<&str> = wanted.split(',').map(str::trim).filter(is_ours).collect();
    if let Ok(allowed) = HeaderValue::from_str(&allowed.join(", ")) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    if asked.get(&PRIVATE_NETWORK_ASKED).is_some_and(|value| value == "true") {
        headers.insert(PRIVATE_NETWORK_ALLOWED, HeaderValue::from_static("true"));
    }
    response
}

/// An answer that the page of an allowed origin can read; nobody else's browser shows it to its page.
fn readable_for(origin: Option<&str>, mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin.and_then(|origin| HeaderValue::from_str(origin).ok()) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let readable = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, readable);
    }
    response
}

fn not_allowed(allowed: &'static str) -> Response<AnswerBody> {
    let mut response = closing(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// An answer after which the rest of a body is not read.
fn closing(status: StatusCode) -> Response<AnswerBody> {
    let mut response = empty(status);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn no_session() -> Response<AnswerBody> {
    let message = "there is no such session, or it has ended: send initialize for a new one";
    failed(StatusCode::NOT_FOUND, RpcError::new(SESSION_NOT_FOUND, message))
}

fn unavailable(id: &RawJson, sentence: String) -> Response<AnswerBody> {
    json(StatusCode::SERVICE_UNAVAILABLE, &failure(id, RpcError::new(code::INTERNAL_ERROR, sentence)))
}

fn failed(status: StatusCode, error: RpcError) -> Response<AnswerBody> {
    json(status, &failure(&null(), error))
}

/// The headers beside `mcp-*` that a page may send.
const REQUEST_HEADERS: [&str; 4] = ["authorization", "content-type", "accept", "last-event-id"];

/// Chrome asks so before a page of a public address may reach this machine.
const PRIVATE_NETWORK_ASKED: HeaderName = HeaderName::from_static("access-control-request-private-network");
const PRIVATE_NETWORK_ALLOWED: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// As the official servers answer for a session that has ended.
const SESSION_NOT_FOUND: i64 = -32_001;

/// How long a body may take to come; both sides are on one machine.
const BODY_LIMIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use tokio::time::Instant;

    use super::*;

    /// A body that sends this much, and then nothing more.
    struct Stuck(Option<Bytes>);

    impl Body for Stuck {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            self.0.take().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        for sent in [None, Some(Bytes::from_static(b"{"))] {
            let before = Instant::now();
            assert_eq!(read_body(Stuck(sent)).await, Err(StatusCode::REQUEST_TIMEOUT));
            assert_eq!(before.elapsed().as_secs(), BODY_LIMIT.as_secs());
        }
    }
}
