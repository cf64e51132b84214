//! Carries the messages of one client over NATS; docs/nats.md has the subjects.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::{Message, StatusCode, Subscriber};
use futures_util::StreamExt;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{NatsBody, NatsServer};
use crate::error::{Error, ErrorKind};
use crate::host::mcp::{Carrier, Delivery};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{self, Message as RpcMessage, RpcError, code};
use crate::mcp::client::Opening;
use crate::mcp::transport::{Era, Inbound, Outbound, RequestId};

/// Carries until the connection is over.
pub(super) async fn carry(server: NatsServer, mut carrier: Carrier) {
    let inbox = server.client.new_inbox();
    let replies = match server.client.subscribe(format!("{inbox}.*")).await {
        Ok(replies) => replies,
        Err(error) => {
            let reason = Error::new(ErrorKind::Network, format!("NATS gives no answers: {error}"));
            return close(&mut carrier, reason).await;
        }
    };
    if !carrier.deliver(Delivery::Opened(Opening::default())).await {
        return;
    }
    Work { server, inbox, session: None, calls: BTreeMap::new(), count: 0 }.run(replies, carrier).await;
}

async fn close(carrier: &mut Carrier, reason: Error) {
    carrier.deliver(Delivery::Inbound(Inbound::Closed { reason, exit_code: None, stderr_tail: None })).await;
}

struct Work {
    server: NatsServer,
    inbox: String,
    /// What the subjects of the session begin with.
    session: Option<String>,
    calls: BTreeMap<u64, Call>,
    count: u64,
}

/// A request that is not answered yet.
struct Call {
    id: RequestId,
    message: RawJson,
    /// The session whose subject it went to.
    session: Option<String>,
    opens_session: bool,
    heard: Instant,
}

impl Work {
    async fn run(mut self, mut replies: Subscriber, mut carrier: Carrier) {
        let mut look = interval(LOOK_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let inbound = tokio::select! {
                reply = replies.next() => match reply {
                    Some(reply) => self.received(reply),
                    None => {
                        let reason = Error::new(ErrorKind::ConnectionClosed, "the NATS connection is closed");
                        return close(&mut carrier, reason).await;
                    }
                },
                outbound = carrier.outbound.next() => match outbound {
                    Some(Outbound::Close) => {
                        self.end().await;
                        let reason = Error::new(ErrorKind::ConnectionClosed, "the client closed the connection");
                        return close(&mut carrier, reason).await;
                    }
                    Some(outbound) => self.take(outbound).await,
                    None => return self.end().await,
                },
                _ = look.tick(), if !self.calls.is_empty() => self.silent(),
            };
            for inbound in inbound {
                if !carrier.deliver(Delivery::Inbound(inbound)).await {
                    return;
                }
            }
        }
    }

    async fn take(&mut self, outbound: Outbound) -> Vec<Inbound> {
        match outbound {
            Outbound::Request { id, message, era, opens_session, .. } => {
                if opens_session {
                    self.session = None;
                }
                // What is of no session says all of itself.
                let session = self.session.clone().filter(|_| era != Era::Stateless);
                let call = Call { id, message, session, opens_session, heard: Instant::now() };
                self.request(call).await
            }
            Outbound::Notify { message, era, .. } => self.tell(&message, era).await,
            Outbound::Cancel { id } => {
                let number = self.calls.iter().find(|(_, call)| call.id == id).map(|(number, _)| *number);
                if let Some(number) = number
                    && let Some(Call { session: None, .. }) = self.calls.remove(&number)
                    && self.server.is_stream
                {
                    let subject = format!("{}.cancel", self.server.subject);
                    // A connection that is gone cancels nothing, and nobody waits.
                    drop(self.server.client.publish(subject, self.reply_subject(number).into()).await);
                }
                Vec::new()
            }
            Outbound::Close => Vec::new(),
        }
    }

    async fn request(&mut self, call: Call) -> Vec<Inbound> {
        let encoded = match &self.server.envelope {
            None => Ok(NatsBody::Publish(call.message.as_str().as_bytes().to_vec())),
            Some(envelope) => envelope.encode(&call.message),
        };
        let body = match encoded {
            Ok(NatsBody::Publish(body)) => body,
            Ok(NatsBody::Answer(outcome)) => return answered(call.id, &outcome),
            Ok(NatsBody::Drop) => {
                let reason = Error::new(ErrorKind::Protocol, "the envelope has no body for this request");
                return failed(call.id, reason);
            }
            Err(error) => return failed(call.id, error),
        };
        if let Some(excess) = self.excess(&body) {
            let message = format!("the request {excess}; nothing was sent: send less, or have the limit raised");
            return failed(call.id, Error::new(ErrorKind::Limit, message));
        }
        self.count += 1;
        let number = self.count;
        let subject = match (&call.session, self.server.is_stream) {
            (Some(session), true) => format!("{session}.stream"),
            (Some(session), false) => format!("{session}.call"),
            (None, true) => format!("{}.stream", self.server.subject),
            (None, false) => self.server.subject.clone(),
        };
        match self.server.client.publish_with_reply(subject, self.reply_subject(number), body.into()).await {
            Ok(()) => {
                self.calls.insert(number, call);
                Vec::new()
            }
            Err(error) => {
                failed(call.id, Error::new(ErrorKind::Network, format!("the request was not sent over NATS: {error}")))
            }
        }
    }

    async fn tell(&self, message: &RawJson, era: Era) -> Vec<Inbound> {
        let sent = match (&self.session, &self.server.envelope) {
            (Some(session), _) if era != Era::Stateless => {
                let sent = self.publish(format!("{session}.call"), self.fitting(message).into()).await;
                let method = Object::parse(message.as_str()).ok().and_then(|message| message.string("method"));
                if method.as_deref() == Some("notifications/initialized") && self.server.is_stream {
                    let reply = format!("{}.{LISTEN}", self.inbox);
                    let asked = self.server.client.publish_with_reply(format!("{session}.listen"), reply, "".into());
                    sent.and(asked.await.map_err(|error| error.to_string()))
                } else {
                    sent
                }
            }
            (_, Some(envelope)) => match envelope.encode(message) {
                Ok(NatsBody::Publish(body)) => self.publish(self.server.subject.clone(), body).await,
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
            // Nobody would take it.
            _ => Ok(()),
        };
        let warning = |error| Inbound::Warning(format!("a notification did not reach the server: {error}"));
        sent.err().map(warning).into_iter().collect()
    }

    /// That something is larger than the NATS server takes, if it is.
    fn excess(&self, body: &[u8]) -> Option<String> {
        let (size, limit) = (body.len(), self.server.client.max_payload());
        (size > limit).then(|| {
            format!("has {size} bytes, and the NATS server takes at most {limit} in a message (its max_payload)")
        })
    }

    /// An answer to a question of the server, or in the place of one that is too large that it is: the server waits for it.
    fn fitting(&self, message: &RawJson) -> String {
        let object = Object::parse(message.as_str()).unwrap_or_default();
        let answered = object.raw("id").filter(|_| object.get("method").is_none());
        match (answered, self.excess(message.as_str().as_bytes())) {
            (Some(id), Some(excess)) => {
                let error = RpcError::new(code::INTERNAL_ERROR, format!("the answer {excess}"));
                jsonrpc::response(&id, &Err(error)).as_str().to_owned()
            }
            _ => message.as_str().to_owned(),
        }
    }

    async fn publish(&self, subject: String, body: Vec<u8>) -> Result<(), String> {
        self.server.client.publish(subject, body.into()).await.map_err(|error| error.to_string())
    }

    fn received(&mut self, reply: Message) -> Vec<Inbound> {
        let last = reply.subject.rsplit('.').next().unwrap_or_default();
        let event = reply.headers.as_ref().and_then(|headers| headers.get(EVENT)).map(|event| event.as_str());
        let text = || String::from_utf8_lossy(&reply.payload).into_owned();
        let Some(number) = last.parse().ok().filter(|number| self.calls.contains_key(number)) else {
            // Of a call that is over nothing is of interest, but what a session tells belongs to none.
            return if last == LISTEN && event == Some("message") { message(None, text()) } else { Vec::new() };
        };
        if let (Some(event @ ("alive" | "message")), Some(call)) = (event, self.calls.get_mut(&number)) {
            call.heard = Instant::now();
            let id = call.id.clone();
            return if event == "alive" {
                vec![Inbound::Activity { request_id: id }]
            } else {
                message(Some(id), text())
            };
        }
        let Some(call) = self.calls.remove(&number) else { return Vec::new() };
        if reply.status == Some(StatusCode::NO_RESPONDERS) {
            return failed(call.id, self.unheard(call.session.is_some()));
        }
        if event == Some("end") {
            let reason = Error::new(ErrorKind::ConnectionClosed, "the shim ended the request without an answer");
            return failed(call.id, reason);
        }
        let header = |name| reply.headers.as_ref().and_then(|headers| headers.get(name)).map(|value| value.to_string());
        if let Some(refusal) = header("Nats-Service-Error") {
            let reason = Error::new(ErrorKind::Server, format!("the NATS service refused the request: {refusal}"));
            return failed(
                call.id,
                match header("Nats-Service-Error-Code") {
                    Some(code) => reason.with_code(code),
                    None => reason,
                },
            );
        }
        match self.answer(&call, &reply.payload) {
            Err(error) => failed(call.id, error),
            Ok(Err(error)) if error.code == SESSION_NOT_FOUND && call.session.is_some() => {
                failed(call.id, self.unheard(true))
            }
            Ok(Err(error)) if let Some(kind) = header(ERROR).and_then(|kind| ErrorKind::from_name(&kind)) => {
                failed(call.id, Error::new(kind, error.message))
            }
            Ok(outcome) => {
                if call.opens_session {
                    self.session = header(SESSION);
                }
                answered(call.id, &outcome)
            }
        }
    }

    /// The outcome in the body of an answer.
    fn answer(&self, call: &Call, body: &[u8]) -> Result<Result<RawJson, RpcError>, Error> {
        let text = match &self.server.envelope {
            None => String::from_utf8_lossy(body).into_owned(),
            Some(envelope) => envelope.decode(body, &call.message)?.as_str().to_owned(),
        };
        match RpcMessage::parse(&text)?.pop() {
            Some(RpcMessage::Response { outcome, .. }) => Ok(outcome),
            _ => Err(Error::new(ErrorKind::Protocol, "what came back over NATS is no answer")),
        }
    }

    /// Why a request that reached nobody failed.
    fn unheard(&self, is_of_session: bool) -> Error {
        if is_of_session {
            return Error::new(
                ErrorKind::SessionExpired,
                "the session is gone with its shim; the request was not done",
            );
        }
        let message = format!(
            "nobody serves {} over NATS (no responders), so that nothing was done: is a crablet-shim running there that was told \
             to serve it?",
            self.server.subject
        );
        Error::new(ErrorKind::Network, message)
    }

    /// The calls of which nothing was heard for too long.
    fn silent(&mut self) -> Vec<Inbound> {
        let silence = self.server.silence;
        let is_silent = |call: &Call| call.heard.elapsed() >= silence;
        let silent: Vec<u64> =
            self.calls.iter().filter(|(_, call)| is_silent(call)).map(|(number, _)| *number).collect();
        let (kind, what) = if self.server.is_stream {
            let what = "no sign of life of a shim came, so that the one that took the request is gone or cannot be reached, or this \
                        user may not publish to the subject";
            (ErrorKind::ConnectionClosed, what)
        } else {
            (ErrorKind::Timeout, "no answer came over NATS")
        };
        let message = format!("{what} (within {} ms); whether the request was done is not known", silence.as_millis());
        let calls = silent.into_iter().filter_map(|number| self.calls.remove(&number)).collect::<Vec<_>>();
        calls.into_iter().flat_map(|call| failed(call.id, Error::new(kind, message.clone()))).collect()
    }

    /// Ends the session in good order.
    async fn end(&self) {
        if let Some(session) = &self.session {
            // One that cannot be told ends by itself.
            drop(self.publish(format!("{session}.end"), Vec::new()).await);
        }
    }

    fn reply_subject(&self, number: u64) -> String {
        format!("{}.{number}", self.inbox)
    }
}

fn message(request_id: Option<RequestId>, text: String) -> Vec<Inbound> {
    vec![match RawJson::parse(text) {
        Ok(message) => Inbound::Message { request_id, status: None, message },
        Err(error) => Inbound::Warning(format!("the MCP server sent a message that is not JSON: {error}")),
    }]
}

fn answered(id: RequestId, outcome: &Result<RawJson, RpcError>) -> Vec<Inbound> {
    let Ok(raw) = RawJson::from_value(&id) else { return Vec::new() };
    let message = jsonrpc::response(&raw, outcome);
    let ended = Inbound::RequestEnded { id: id.clone(), reason: Ok(()) };
    vec![Inbound::Message { request_id: Some(id), status: None, message }, ended]
}

fn failed(id: RequestId, reason: Error) -> Vec<Inbound> {
    vec![Inbound::RequestEnded { id, reason: Err(reason) }]
}

/// The header that tells what comes before an answer from it.
const EVENT: &str = "Crablet-Event";

/// The header that says of which kind an error of the shim itself is.
const ERROR: &str = "Crablet-Error";

/// The header that names a session.
const SESSION: &str = "Crablet-Session";

/// The end of the reply subject for what a session tells beside its requests.
const LISTEN: &str = "listen";

/// What a shim answers for a session that has ended: the request was not begun.
const SESSION_NOT_FOUND: i64 = -32_001;

/// How often silent calls are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
