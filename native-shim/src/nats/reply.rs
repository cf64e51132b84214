//! What goes back to a caller.
//!
//! To `PREFIX.NAME` one message, the answer: a JSON-RPC message. To `PREFIX.NAME.stream` any number of messages before it,
//! which the header `Crablet-Event` tells from it: `message` (a JSON-RPC message that belongs to the call, such as progress),
//! `alive` (an empty one, after half a second and then every two: the shim that has the call is there) and `end` (an empty one: there will be no
//! answer, since the call was cancelled). The answer to `initialize` has the header `Crablet-Session`, the start of the
//! session's own subjects. An error that the shim puts in the place of an answer which is too large for NATS has the header
//! `Crablet-Error: limit`.

use async_nats::service::Request;
use async_nats::{Client, HeaderMap, Subject};
use crablet::ErrorKind;
use crablet::json::RawJson;
use crablet::jsonrpc::{RpcError, code};
use hyper::body::Bytes;

use crate::http::bridge::failure;
use crate::log::note;

/// The header that tells what comes before an answer from it.
const EVENT: &str = "Crablet-Event";

/// The header that names a session.
const SESSION: &str = "Crablet-Session";

/// The header that says of which kind an error of the shim itself is.
const ERROR: &str = "Crablet-Error";

/// The way back to one caller.
#[derive(Debug)]
pub(super) struct Reply {
    client: Client,
    pub(super) subject: Subject,
    /// Counts the call in the statistics of the service.
    request: Option<Request>,
    /// Whether the caller takes more than the answer.
    pub(super) is_stream: bool,
}

impl Reply {
    /// To the caller of a message; `None` of one that says nowhere to answer to, and is not taken therefore.
    pub(super) fn to(client: &Client, subject: Option<Subject>, is_stream: bool) -> Option<Self> {
        Some(Self { client: client.clone(), subject: subject?, request: None, is_stream })
    }

    /// To the caller of a service's request.
    pub(super) fn of(client: &Client, request: Request, is_stream: bool) -> Option<Self> {
        let mut reply = Self::to(client, request.message.reply.clone(), is_stream)?;
        reply.request = Some(request);
        Some(reply)
    }

    /// Sends a message that comes before the answer. One above the limit of NATS is left out.
    pub(super) async fn tell(&self, message: &RawJson) {
        if self.fits(message) {
            self.publish(event("message"), message.as_str()).await;
        } else {
            note("a message of a server was larger than the NATS server takes, and left out");
        }
    }

    /// Says that the call is at work; NATS answers to `returns` if the caller is gone.
    pub(super) async fn alive(&self, returns: String) {
        let sent =
            self.client.publish_with_reply_and_headers(self.subject.clone(), returns, event("alive"), Bytes::new());
        lost(sent.await);
    }

    /// Says that no answer comes.
    pub(super) async fn end(&self) {
        if self.is_stream {
            self.publish(event("end"), "").await;
        }
    }

    /// Sends the answer, or in its place that it is too large.
    pub(super) async fn answer(self, id: &RawJson, message: RawJson, session: Option<&str>) {
        let mut headers = HeaderMap::new();
        if let Some(session) = session {
            headers.insert(SESSION, session);
        }
        let message = if self.fits(&message) {
            message
        } else {
            headers.insert(ERROR, ErrorKind::Limit.as_str());
            let (size, limit) = (message.as_str().len(), self.client.max_payload());
            let sentence = format!(
                "the answer has {size} bytes, and the NATS server takes at most {limit} in a message (its max_payload): ask for \
                 less, or have the limit raised"
            );
            failure(id, RpcError::new(code::INTERNAL_ERROR, sentence))
        };
        self.publish(headers, message.as_str()).await;
    }

    fn fits(&self, message: &RawJson) -> bool {
        message.as_str().len() + ROOM_FOR_HEADERS <= self.client.max_payload()
    }

    async fn publish(&self, headers: HeaderMap, text: &str) {
        let payload = Bytes::copy_from_slice(text.as_bytes());
        let sent = match &self.request {
            // The answer; what comes before it is not what the service counts.
            Some(request) if headers.get(EVENT).is_none() => request.respond_with_headers(Ok(payload), headers).await,
            _ if headers.is_empty() => self.client.publish(self.subject.clone(), payload).await,
            _ => self.client.publish_with_headers(self.subject.clone(), headers, payload).await,
        };
        lost(sent);
    }
}

fn event(name: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(EVENT, name);
    headers
}

/// Only a connection that is closed for good takes nothing.
fn lost(sent: Result<(), async_nats::PublishError>) {
    if let Err(error) = sent {
        note(format!("an answer could not be sent over NATS: {error}"));
    }
}

/// What the headers of a message take at most of its limit.
const ROOM_FOR_HEADERS: usize = 512;
