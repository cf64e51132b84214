//! One call, from its message to its answer.

use std::sync::Arc;
use std::time::Duration;

use crablet::host::mcp::OpenExchange;
use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{self, Params, RpcError, code};
use crablet::mcp::protocol::STATELESS_VERSION;
use crablet::mcp::server::http::{Posted, PostedMessage, PostedRequest, read_message, unsupported_version};
use crablet::mcp::transport::shim::MAX_MESSAGE_BYTES;
use hyper::body::Bytes;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::front::Calls;
use super::reply::Reply;
use super::session;
use crate::http::bridge::{CAPABILITIES_KEY, Input, VERSION_KEY, failure, null};
use crate::http::child::ChildHandle;
use crate::http::children::Unavailable;

/// Where a message came in.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// At the subject of a server.
    Server(Arc<str>),
    /// At a subject of a session.
    Session(ChildHandle),
}

impl Place {
    pub(super) const fn is_session(&self) -> bool {
        matches!(self, Self::Session(_))
    }

    /// What a session of a shim that leaves answers, so that its client opens another elsewhere.
    pub(super) fn leaving(&self) -> (i64, String) {
        (SESSION_NOT_FOUND, "the shim of this session is being stopped: send initialize for a new one".to_owned())
    }
}

/// Answers a request that was not begun.
pub(super) async fn refuse(payload: &[u8], reply: Reply, (code, sentence): (i64, String)) {
    let (Ok(Posted::Request(PostedRequest { id, .. })) | Err((id, _))) = read_message(payload) else { return };
    let message = failure(&id, RpcError::new(code, sentence));
    reply.answer(&id, message, None).await;
}

/// Works on what came until it is answered.
pub(super) async fn serve_call(calls: &Arc<Calls>, place: Place, payload: &Bytes, reply: Reply) {
    if payload.len() > MAX_MESSAGE_BYTES {
        let sentence = format!("the message has {} bytes; the shim takes at most {MAX_MESSAGE_BYTES}", payload.len());
        return reply.answer(&null(), failure(&null(), RpcError::new(code::INVALID_REQUEST, sentence)), None).await;
    }
    match read_message(payload) {
        Err((id, error)) => reply.answer(&id, failure(&id, error), None).await,
        Ok(Posted::Request(asked)) => request(calls, place, asked, reply).await,
        Ok(Posted::Message(told)) => tell(&place, told).await,
    }
}

/// Hands on what has no answer. At the subject of a server there is nobody for it.
pub(super) async fn tell(place: &Place, told: PostedMessage) {
    let Place::Session(child) = place else { return };
    // A child that has ended takes nothing, and its session is about to be gone.
    child.tell(Input::Message(told)).await;
}

async fn request(calls: &Arc<Calls>, place: Place, mut asked: PostedRequest, reply: Reply) {
    let id = asked.id.clone();
    let method = asked.method.clone();
    let (child, session) = match child_for(calls, &place, &mut asked).await {
        Ok(found) => found,
        Err(error) => return reply.answer(&id, failure(&id, error), None).await,
    };
    let Some(open) = child.call(asked).await else {
        let (code, sentence) = match place {
            Place::Session(_) => (SESSION_NOT_FOUND, "this session has just ended: send initialize for a new one"),
            Place::Server(_) => (code::INTERNAL_ERROR, "the server has just ended, before this request; try again"),
        };
        return reply.answer(&id, failure(&id, RpcError::new(code, sentence)), None).await;
    };
    let cancellable = calls.cancellable(&reply.subject);
    // A request that only listens never ends by itself.
    let leaving = if method == "subscriptions/listen" { calls.leaving.clone() } else { CancellationToken::new() };
    match carry(calls, open, &child, &reply, [&cancellable.cancelled, &leaving]).await {
        Ending::Answered(message) => {
            let session = session.filter(|_| !child.is_over());
            reply.answer(&id, message, session.as_deref()).await;
        }
        Ending::Unanswered => reply.end().await,
        Ending::Unwanted => {
            if place.is_session() {
                cancel_at_child(&child, &id).await;
            }
            reply.end().await;
        }
    }
}

/// The child that a request is for, and the subjects of the session that it opens.
async fn child_for(
    calls: &Arc<Calls>,
    place: &Place,
    asked: &mut PostedRequest,
) -> Result<(ChildHandle, Option<String>), RpcError> {
    let name = match place {
        Place::Session(child) => return Ok((child.clone(), None)),
        Place::Server(name) => name,
    };
    let unavailable = |sentence: String| RpcError::new(code::INTERNAL_ERROR, sentence);
    let server = calls.server(name).ok_or_else(|| unavailable(format!("the shim has no server {name:?} any more")))?;
    let sessions = &calls.shim.sessions;
    if asked.method == "initialize" {
        let opened = calls.children.open_session(sessions, KEY, name, &server).await;
        let (session, child) = opened.map_err(|Unavailable(sentence)| unavailable(sentence))?;
        let subject = format!("{}.{name}.session.{session}", calls.prefix);
        if let Err(error) = session::open(calls, &subject, child.clone()).await {
            child.end().await;
            return Err(unavailable(format!("the subject of the session cannot be listened to: {error}")));
        }
        return Ok((child, Some(subject)));
    }
    if calls.is_sessions_only(name) {
        let sentence = "this server keeps what it knows of a client: send initialize, and then the rest to its session";
        return Err(RpcError::new(code::METHOD_NOT_FOUND, sentence));
    }
    say_revision(&mut asked.params)?;
    let child = calls.children.shared(sessions, KEY, name, &server).await;
    Ok((child.map_err(|Unavailable(sentence)| unavailable(sentence))?, None))
}

/// Checks the revision that a request without a session is of. Who says none, such as a plain program, need not know of it.
fn say_revision(params: &mut Params) -> Result<(), RpcError> {
    let meta = params.member("_meta").and_then(|meta| Params::from_object(meta).ok()).unwrap_or_default();
    match meta.member(VERSION_KEY).map(|version| version.read::<String>().unwrap_or_default()) {
        Some(version) if version == STATELESS_VERSION => Ok(()),
        Some(version) => Err(unsupported_version(&version)),
        None => {
            params.set("_meta", &meta.with(VERSION_KEY, STATELESS_VERSION).with(CAPABILITIES_KEY, &Params::new()));
            Ok(())
        }
    }
}

enum Ending {
    Answered(RawJson),
    /// The child owes nothing any more.
    Unanswered,
    /// Nobody wants the answer any more.
    Unwanted,
}

/// Carries what comes for one exchange to its caller, until the answer or until nobody wants it. Dropping the exchange ends a
/// stateless request at the child.
async fn carry(
    calls: &Calls,
    mut open: OpenExchange,
    child: &ChildHandle,
    reply: &Reply,
    [cancelled, leaving]: [&CancellationToken; 2],
) -> Ending {
    if reply.is_stream {
        open.becomes_stream();
    }
    let watch = calls.absences.watch();
    let mut signs = interval_at(Instant::now() + FIRST_SIGN, SIGN_INTERVAL);
    signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            piece = open.next() => {
                let Some(piece) = piece else { return Ending::Unanswered };
                if piece.is_last {
                    return Ending::Answered(piece.message);
                }
                if reply.is_stream {
                    reply.tell(&piece.message).await;
                } else {
                    refuse_question(child, &piece.message).await;
                }
            }
            _ = signs.tick(), if reply.is_stream => reply.alive(watch.subject()).await,
            () = watch.gone.cancelled() => return Ending::Unwanted,
            () = cancelled.cancelled() => return Ending::Unwanted,
            () = leaving.cancelled() => return Ending::Unwanted,
        }
    }
}

/// Carries what a session tells beside its requests, until the session or its caller is gone.
pub(super) async fn listen(calls: &Calls, child: &ChildHandle, reply: &Reply) {
    let Some(open) = child.listen(None).await else { return reply.end().await };
    let cancelled = CancellationToken::new();
    carry(calls, open, child, reply, [&cancelled, &calls.leaving]).await;
    reply.end().await;
}

/// A question of the child to a caller that takes one message only.
async fn refuse_question(child: &ChildHandle, message: &RawJson) {
    let Ok(question) = Object::parse(message.as_str()) else { return };
    if let (Some(id), Some(_)) = (question.raw("id"), question.get("method")) {
        let error = RpcError::new(code::METHOD_NOT_FOUND, "the caller takes an answer only, and can be asked nothing");
        child.tell(Input::Message(PostedMessage::Response { raw: failure(&id, error), id })).await;
    }
}

async fn cancel_at_child(child: &ChildHandle, id: &RawJson) {
    let method = "notifications/cancelled";
    let params = Params::new().with("requestId", id).with("reason", "the caller is gone, or wants no answer any more");
    let raw = jsonrpc::notification(method, &params);
    child.tell(Input::Message(PostedMessage::Notification { method: method.to_owned(), params, raw })).await;
}

/// All callers over NATS have one name here: NATS decides who they are.
const KEY: &str = "nats";

/// As over HTTP, for a session that has ended.
const SESSION_NOT_FOUND: i64 = -32_001;

/// When a call first says that it is at work; most are over before.
const FIRST_SIGN: Duration = Duration::from_millis(500);

/// How often a call says that it is at work.
const SIGN_INTERVAL: Duration = Duration::from_secs(2);
