//! A handshake caller of a handshake child: messages go through as they were written. What is added is the choice of the
//! stream on which a message of the child goes.

use std::collections::BTreeMap;

use crablet::Millis;
use crablet::json::RawJson;
use crablet::jsonrpc::{self, Message, Params, RequestId, RpcError};
use crablet::mcp::server::http::PostedMessage;

use super::wire;
use super::{Call, Exchange, Input, Outputs, Translation};

#[derive(Debug, Default)]
pub(super) struct HandshakeRelay {
    open: BTreeMap<Exchange, Open>,
    /// Requests of the child without an answer.
    asked: Vec<RawJson>,
}

#[derive(Debug)]
struct Open {
    id: RawJson,
    progress_token: Option<RawJson>,
}

impl Translation for HandshakeRelay {
    fn handle(&mut self, _now: Millis, input: Input, outputs: &mut Outputs) {
        match input {
            Input::Call(call) => self.call(call, outputs),
            Input::Message(PostedMessage::Notification { method, params, raw }) => {
                if method == wire::CANCELLED {
                    self.cancelled(&params, outputs);
                }
                outputs.child(&raw);
            }
            Input::Message(PostedMessage::Response { id, raw }) => {
                // Only what was asked is answered, and once.
                if let Some(place) = self.asked.iter().position(|asked| *asked == id) {
                    self.asked.remove(place);
                    outputs.child(&raw);
                }
            }
            Input::Child(line) => {
                for message in wire::messages(&line) {
                    self.message(message, outputs);
                }
            }
            Input::ChildEnded(sentence) => {
                for (exchange, open) in std::mem::take(&mut self.open) {
                    outputs.answer(exchange, wire::child_ended(&open.id, &sentence));
                }
            }
            // A stream that ends is no cancellation in this era.
            Input::Left(_) | Input::Timer => {}
        }
    }
}

impl HandshakeRelay {
    fn call(&mut self, call: Call, outputs: &mut Outputs) {
        let Call { exchange, id, method, params, .. } = call;
        if self.open.values().any(|open| open.id == id) {
            let error = RpcError::new(jsonrpc::code::INVALID_REQUEST, "a request of this id is at work already");
            return outputs.answer(exchange, wire::failure(&id, error));
        }
        let mut message = Params::new().with("jsonrpc", "2.0").with("id", &id).with("method", &method);
        if !params.is_empty() {
            message.set("params", &params);
        }
        outputs.child(&message.to_raw());
        let progress_token = wire::members(&params, "_meta").remove("progressToken");
        self.open.insert(exchange, Open { id, progress_token });
    }

    fn cancelled(&mut self, params: &Params, outputs: &mut Outputs) {
        let Some(id) = params.member("requestId") else { return };
        let found = self.open.iter().find(|(_, open)| open.id == *id).map(|(exchange, _)| *exchange);
        if let Some(exchange) = found {
            self.open.remove(&exchange);
            outputs.unanswered(exchange);
        }
    }

    fn message(&mut self, message: Message, outputs: &mut Outputs) {
        match message {
            Message::Response { id, outcome } => {
                let Some(exchange) = id.and_then(|id| self.exchange_of(&id)) else { return };
                if let Some(open) = self.open.remove(&exchange) {
                    outputs.answer(exchange, jsonrpc::response(&open.id, &outcome));
                }
            }
            Message::Notification { method, params } => {
                let params = params.as_ref().map(wire::object).unwrap_or_default();
                let exchange = match method.as_str() {
                    wire::PROGRESS => params.member("progressToken").and_then(|token| self.exchange_of_token(token)),
                    // They are about something a request does, most likely the newest one.
                    wire::MESSAGE | wire::CANCELLED => self.newest(),
                    _ => None,
                };
                if method == wire::CANCELLED
                    && let Some(id) = params.member("requestId")
                {
                    self.asked.retain(|asked| asked != id);
                }
                outputs.caller(exchange, jsonrpc::notification(&method, &params));
            }
            Message::Request { id, method, params } => {
                if self.asked.len() >= MAX_ASKED {
                    let error = RpcError::new(jsonrpc::code::INTERNAL_ERROR, "too many requests wait for the client");
                    return outputs.child(&wire::failure(&id, error));
                }
                self.asked.push(id.clone());
                let mut message = Params::new().with("jsonrpc", "2.0").with("id", &id).with("method", &method);
                if let Some(params) = &params {
                    message.set("params", params);
                }
                outputs.caller(self.newest(), message.to_raw());
            }
        }
    }

    fn exchange_of(&self, id: &RequestId) -> Option<Exchange> {
        let is_it = |open: &Open| RequestId::read(&open.id).is_some_and(|own| id.matches(&own));
        self.open.iter().find(|(_, open)| is_it(open)).map(|(exchange, _)| *exchange)
    }

    fn exchange_of_token(&self, token: &RawJson) -> Option<Exchange> {
        let found = self.open.iter().find(|(_, open)| open.progress_token.as_ref() == Some(token));
        found.map(|(exchange, _)| *exchange)
    }

    fn newest(&self) -> Option<Exchange> {
        self.open.keys().next_back().copied()
    }
}

/// The most requests of a child that wait for their answers.
const MAX_ASKED: usize = 256;
