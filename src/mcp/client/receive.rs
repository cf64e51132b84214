//! What the transport delivers.

use super::super::transport::{Inbound, RequestId};
use super::{Client, Event, OperationId, Pending, Phase, Progress};
use crate::error::{Error, ErrorKind};
use crate::json::{MAX_MESSAGE_DEPTH, Object, RawJson, is_deeper_than};
use crate::jsonrpc::{self, Message, RpcError};
use crate::time::Millis;

impl Client {
    pub(super) fn receive(&mut self, now: Millis, inbound: Inbound) {
        match inbound {
            Inbound::Message { request_id, status, message } => {
                self.stir_request(now, request_id.as_ref());
                match Message::parse(message.as_str()) {
                    Ok(messages) => {
                        let is_too_deep = is_deeper_than(message.as_str(), MAX_MESSAGE_DEPTH);
                        for message in messages {
                            if is_too_deep {
                                self.refuse_depth(now, request_id.as_ref(), &message);
                            } else {
                                self.take_message(now, request_id.as_ref(), status, message);
                            }
                        }
                    }
                    Err(error) => {
                        let named = jsonrpc::stray_id(message.as_str()).and_then(|id| self.asked(None, Some(&id)));
                        self.malformed(now, request_id.or(named), error);
                    }
                }
            }
            Inbound::Activity { request_id } => self.stir_request(now, Some(&request_id)),
            Inbound::Authorizing { request_id } => {
                self.wait_longer_for_start(now);
                self.stir_request(now, Some(&request_id));
            }
            Inbound::RequestEnded { id, reason } => self.request_ended(now, &id, reason),
            Inbound::Warning(message) => self.warn(message),
            Inbound::Closed { reason, exit_code, stderr_tail } => self.connection_ended(reason, exit_code, stderr_tail),
        }
    }

    fn stir_request(&mut self, now: Millis, request_id: Option<&RequestId>) {
        if let Some(Pending::Operation(operation)) = request_id.and_then(|id| self.pending.get(id)) {
            self.stir(now, *operation);
        }
    }

    fn take_message(&mut self, now: Millis, request_id: Option<&RequestId>, status: Option<u16>, message: Message) {
        match message {
            Message::Response { id, outcome } => {
                // A refusal is of its request, whatever id it has: that of python-sdk is the text `server-error`.
                let is_refusal = outcome.is_err() && status.is_some_and(|status| status >= 400);
                let refused = request_id.filter(|id| is_refusal && self.pending.contains_key(id)).cloned();
                let asked = self.asked(request_id, id.as_ref()).or(refused);
                match (asked.and_then(|id| self.pending.remove(&id)), id) {
                    (Some(pending), _) => self.take_answer(now, pending, status, outcome),
                    (None, Some(id)) if self.unclaimed.is_expected(&id) => {
                        if !self.unclaimed.keep(id, outcome) {
                            self.warn("too many answers to calls of an earlier client came; the oldest were dropped");
                        }
                    }
                    (None, _) => self.warn("the MCP server answered something that was not asked, or asked no longer"),
                }
            }
            Message::Request { id, method, params } => self.take_request(id, method, params),
            Message::Notification { method, params } => self.take_notification(now, method, params),
        }
    }

    /// The request that is answered under this id. An answer without one can only belong to the request on whose stream it
    /// came.
    fn asked(&self, request_id: Option<&RequestId>, id: Option<&RequestId>) -> Option<RequestId> {
        match id {
            None => request_id.cloned(),
            Some(id) => self.pending.keys().find(|candidate| candidate.matches(id)).cloned(),
        }
    }

    /// What is nested without end is given to nobody: an answer fails its request, everything else is left.
    fn refuse_depth(&mut self, now: Millis, request_id: Option<&RequestId>, message: &Message) {
        let reason =
            format!("the MCP server sent a message with more than {MAX_MESSAGE_DEPTH} levels of arrays and objects");
        let asked = match message {
            Message::Response { id, .. } => self.asked(request_id, id.as_ref()),
            _ => None,
        };
        match asked {
            Some(asked) => self.request_ended(now, &asked, Err(Error::new(ErrorKind::Protocol, reason))),
            None => self.warn(reason),
        }
    }

    fn take_answer(&mut self, now: Millis, pending: Pending, status: Option<u16>, outcome: Result<RawJson, RpcError>) {
        match (pending, outcome) {
            (Pending::Discover, outcome) => self.discovered(now, status, outcome),
            (Pending::Initialize, Ok(result)) => self.initialized(now, &result, false),
            (Pending::Initialize, Err(error)) => self.initialize_refused(now, error),
            (Pending::Listen, outcome) => self.listening_ended(now, outcome.is_err()),
            (Pending::Aside, Ok(_)) => {}
            (Pending::Aside, Err(error)) => self.warn(format!("the MCP server refused: {}", error.message)),
            (Pending::Operation(operation), outcome) => self.answer(now, operation, status, outcome),
        }
    }

    fn malformed(&mut self, now: Millis, request_id: Option<RequestId>, error: Error) {
        match request_id {
            Some(id) => self.request_ended(now, &id, Err(error)),
            None => self.warn(error.to_string()),
        }
    }

    fn request_ended(&mut self, now: Millis, id: &RequestId, reason: Result<(), Error>) {
        let Some(pending) = self.pending.remove(id) else { return };
        let error = reason.err().unwrap_or_else(|| {
            Error::new(ErrorKind::ConnectionClosed, "the MCP server ended its answer without a result")
        });
        match pending {
            Pending::Discover => self.probe_ended(now, error),
            Pending::Initialize => self.initialize_ended(now, error),
            Pending::Listen => self.listening_ended(now, error.kind() == ErrorKind::BadRequest),
            Pending::Aside => self.warn(error.to_string()),
            Pending::Operation(operation) => self.unanswered(now, operation, error),
        }
    }

    fn take_notification(&mut self, now: Millis, method: String, params: Option<RawJson>) {
        let uri = match method.as_str() {
            "notifications/resources/updated" => {
                params.as_ref().and_then(|params| Object::parse(params.as_str()).ok()?.string("uri"))
            }
            _ => None,
        };
        self.forget_changed(&method, uri);
        match method.as_str() {
            "notifications/progress" => self.take_progress(now, params.as_ref()),
            "notifications/cancelled" => self.take_cancellation(now, params.as_ref()),
            "notifications/elicitation/complete" => {
                self.page_completed(now, params.as_ref());
                self.events.push_back(Event::Notification { method, params });
            }
            "notifications/tools/list_changed" => self.events.push_back(Event::ToolsChanged),
            // Says which of the changes that were asked for are told of.
            "notifications/subscriptions/acknowledged" => {}
            _ => self.events.push_back(Event::Notification { method, params }),
        }
    }

    /// Progress of what is over is late and no fault.
    fn take_progress(&mut self, now: Millis, params: Option<&RawJson>) {
        let Some(object) = params.and_then(|params| Object::parse(params.as_str()).ok()) else { return };
        let token = object.raw("progressToken").as_ref().and_then(RequestId::read);
        let Some(operation) = token.and_then(|token| self.operation_of(&token)) else { return };
        self.stir(now, operation);
        let Some(progress) = object.read::<f64>("progress") else { return };
        if self.is_new_progress(operation, progress) {
            let progress = Progress { progress, total: object.read("total"), message: object.string("message") };
            self.events.push_back(Event::Progress { operation, progress });
        }
    }

    fn operation_of(&self, token: &RequestId) -> Option<OperationId> {
        self.pending.iter().find_map(|(id, pending)| match pending {
            Pending::Operation(operation) if id.matches(token) => Some(*operation),
            _ => None,
        })
    }

    fn connection_ended(&mut self, reason: Error, exit_code: Option<i32>, stderr_tail: Option<String>) {
        if matches!(self.phase, Phase::Closed(_)) {
            return;
        }
        let reason = with_last_words(reason, stderr_tail.as_deref());
        self.end_connecting();
        self.pending.clear();
        self.end_operations(&reason);
        self.withdraw_all_questions();
        self.stop_listening();
        self.phase = Phase::Closed(reason.clone());
        self.events.push_back(Event::Closed { reason, exit_code, stderr_tail });
    }
}

/// An error that also tells what the server's process said last, which is usually why it ended.
fn with_last_words(reason: Error, stderr_tail: Option<&str>) -> Error {
    /// As much as a person reads; the event has the whole tail.
    const LINES: usize = 3;
    let lines: Vec<_> = stderr_tail.unwrap_or_default().lines().rev().take(LINES).collect();
    // Transports that know their server may have said it already.
    if lines.first().is_none_or(|last| reason.message().contains(last)) {
        return reason;
    }
    let last: Vec<_> = lines.into_iter().rev().collect();
    let message = format!("{}. It said last: {}", reason.message().trim_end_matches('.'), last.join(" / "));
    Error::new(reason.kind(), message)
}
