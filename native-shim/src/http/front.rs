//! The HTTP front of `serve`: Streamable HTTP of both eras at `/mcp/<name>`.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crablet::host::mcp::{Framing, HttpResponse, Sleep};
use crablet::jsonrpc::{RpcError, code};
use crablet::mcp::server::http::{Answer, Asked, Headers, Part, PostedRequest, Rules, SESSION, preflight, readable_by};
use crablet::mcp::transport::shim::MAX_MESSAGE_BYTES;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use tokio::time::timeout;

use super::answer::{AnswerBody, empty, set, waiting, written};
use super::bridge::Input;
use super::child::ChildHandle;
use super::children::{Children, Unavailable};
use super::gate::{Admitted, HttpGate, Refused};
use super::grants::HttpGrant;
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
    waiting: Sleep,
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
        Self { children: Children::new(Some(grants.clone())), grants, lockout: Mutex::default(), waiting: waiting() }
    }

    /// Answers a request. Why it was refused is a line for the log.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        gate: Gate<'_>,
        sessions: &Sessions,
    ) -> (Response<AnswerBody>, Option<String>) {
        let config = gate.config;
        let (mut response, origin, reason) = match self.admit(&request, gate) {
            Err(Refused { refusal: Refusal { status, reason }, origin }) => {
                let mut response = empty(status);
                // What follows the head is not read.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                if status == StatusCode::UNAUTHORIZED {
                    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
                (response, origin, Some(reason))
            }
            Ok(Admitted { origin, key_id: None, .. }) => {
                let answer = preflight(request.method().as_str(), &read_headers(request.headers()));
                (written(answer.unwrap_or_else(|| Answer::empty(400))), origin, None)
            }
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
        set(response.headers_mut(), readable_by(origin.as_deref()));
        (response, reason)
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
        let (head, body) = request.into_parts();
        let (method, headers) = (head.method.as_str(), read_headers(&head.headers));
        let rules = Rules::default();
        if let Err(answer) = rules.check_head(method, &headers) {
            return closing(written(answer));
        }
        let body = match read_body(body).await {
            Ok(body) => body,
            Err(status) => return closing(empty(status)),
        };
        match rules.read(method, &headers, &body) {
            Err(answer) => written(answer),
            Ok(Asked::Request { part, request }) => self.ask(caller, part, request).await,
            Ok(Asked::Message { session, message }) => match self.session(caller, &session) {
                Some(child) if child.tell(Input::Message(message)).await => empty(StatusCode::ACCEPTED),
                _ => written(Answer::no_session()),
            },
            Ok(Asked::Listen { session, after }) => match self.session(caller, &session) {
                Some(child) => match child.listen(after).await {
                    Some(open) => written(HttpResponse::of_stream(open, None, after.is_none(), &self.waiting)),
                    None => written(Answer::lost_events()),
                },
                None => written(Answer::no_session()),
            },
            Ok(Asked::End { session }) => match self.session(caller, &session) {
                Some(child) => {
                    child.end().await;
                    empty(StatusCode::NO_CONTENT)
                }
                None => written(Answer::no_session()),
            },
        }
    }

    fn session(&self, caller: Caller<'_>, session: &str) -> Option<ChildHandle> {
        self.children.session(caller.key_id, caller.name, session)
    }

    async fn ask(&self, caller: Caller<'_>, part: Part, asked: PostedRequest) -> Response<AnswerBody> {
        let Caller { key_id, name, server, sessions } = caller;
        let id = asked.id.clone();
        let framing = if part == Part::Stateless { Framing::Stateless } else { Framing::Session };
        let mut opened = None;
        let child = match part {
            Part::Session(session) => match self.session(caller, &session) {
                Some(child) => Ok(child),
                None => return written(Answer::no_session()),
            },
            // There is none without a session here.
            Part::Opening | Part::Unbound(_) => {
                self.children.open_session(sessions, key_id, name, server).await.map(|(session, child)| {
                    opened = Some((session, child.clone()));
                    child
                })
            }
            Part::Stateless => self.children.shared(sessions, key_id, name, server).await,
        };
        let exchange = match child {
            Ok(child) => child.call(asked).await.ok_or("the server has just ended; try again".to_owned()),
            Err(Unavailable(sentence)) => Err(sentence),
        };
        let mut response = match exchange {
            Ok(exchange) => written(HttpResponse::of_request(exchange, framing, &self.waiting).await),
            Err(sentence) => {
                let error = RpcError::new(code::INTERNAL_ERROR, sentence);
                written(Answer::failed(StatusCode::SERVICE_UNAVAILABLE.as_u16(), Some(&id), error))
            }
        };
        if let Some((session, child)) = opened {
            if child.is_over() {
                child.end().await;
            } else {
                set(response.headers_mut(), vec![(SESSION, session)]);
            }
        }
        response
    }
}

fn read_headers(headers: &HeaderMap) -> Headers<'_> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
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

/// An answer after which the rest of a body is not read.
fn closing(mut response: Response<AnswerBody>) -> Response<AnswerBody> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

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
