//! Stateless callers of a stateless child: messages go through as they are, but for the names of requests.

use crablet::Millis;
use crablet::json::RawJson;
use crablet::jsonrpc::{self, Message, Params, RpcError};

use super::open_calls::{OpenCall, OpenCalls};
use super::tool_headers::{Page, ToolHeaders, Verdict};
use super::wire::{self, SUBSCRIPTION_KEY};
use super::{Call, Input, Outputs, Translation};

#[derive(Debug, Default)]
pub(super) struct StatelessRelay {
    open: OpenCalls,
    tools: ToolHeaders,
}

impl Translation for StatelessRelay {
    fn handle(&mut self, _now: Millis, input: Input, outputs: &mut Outputs) {
        match input {
            Input::Call(call) => match self.tools.check(call) {
                Verdict::Pass(call) => self.forward(call, outputs),
                Verdict::Refuse(call, error) => outputs.answer(call.exchange, wire::failure(&call.id, error)),
                Verdict::Wait => {}
                Verdict::Ask => self.ask_for_tools(Params::new(), outputs),
            },
            Input::Left(exchange) => {
                if let Some((number, _)) = self.open.remove_exchange(exchange) {
                    outputs.child(&wire::cancellation(number, "the caller closed the stream"));
                } else {
                    self.tools.remove(exchange);
                }
            }
            Input::Child(line) => {
                for message in wire::messages(&line) {
                    self.message(message, outputs);
                }
            }
            Input::ChildEnded(sentence) => {
                for call in self.tools.end() {
                    outputs.answer(call.exchange, wire::child_ended(&call.id, &sentence));
                }
                self.open.end(&sentence, outputs);
            }
            // The era has neither.
            Input::Message(_) | Input::Timer => {}
        }
    }
}

impl StatelessRelay {
    fn forward(&mut self, call: Call, outputs: &mut Outputs) {
        let number = self.open.number();
        let open = OpenCall::of(&call);
        let mut params = call.params;
        if open.progress_token.is_some() {
            let meta = wire::members(&params, "_meta").with("progressToken", &number);
            params.set("_meta", &meta);
        }
        outputs.child(&wire::request(number, &call.method, &params));
        self.open.insert(number, open);
    }

    fn ask_for_tools(&mut self, page: Params, outputs: &mut Outputs) {
        let number = self.open.number();
        self.tools.asked(number);
        outputs.child(&wire::request(number, "tools/list", &page.with("_meta", &wire::own_meta())));
    }

    fn message(&mut self, message: Message, outputs: &mut Outputs) {
        match message {
            Message::Response { id, outcome } => {
                let Some(number) = wire::number_of(id.as_ref()) else { return };
                if self.tools.awaits(number) {
                    return self.tools_listed(outcome.ok().as_ref(), outputs);
                }
                let Some(call) = self.open.remove(number) else { return };
                let outcome = outcome.map(|result| restore_subscription(&result, &call.id));
                outputs.answer(call.exchange, jsonrpc::response(&call.id, &outcome));
            }
            Message::Notification { method, params } => {
                let params = params.as_ref().map(wire::object).unwrap_or_default();
                match method.as_str() {
                    wire::PROGRESS => self.open.progress(&params, outputs),
                    wire::MESSAGE => self.open.log(&params, outputs),
                    _ => self.subscribed(&method, params, outputs),
                }
            }
            Message::Request { id, method, .. } => {
                let reason = format!("{method} is no request of the revision 2026-07-28: a server asks by its result");
                outputs.child(&wire::failure(&id, RpcError::new(jsonrpc::code::METHOD_NOT_FOUND, reason)));
            }
        }
    }

    /// A message that belongs to a subscription goes there, and nothing else does: the child has nobody else to tell.
    fn subscribed(&mut self, method: &str, mut params: Params, outputs: &mut Outputs) {
        let meta = wire::members(&params, "_meta");
        let Some(call) = wire::number_in(&meta, SUBSCRIPTION_KEY).and_then(|number| self.open.get(number)) else {
            return;
        };
        params.set("_meta", &meta.with(SUBSCRIPTION_KEY, &call.id));
        if method == "notifications/tools/list_changed" {
            self.tools.forget();
        }
        outputs.caller(Some(call.exchange), jsonrpc::notification(method, &params));
    }

    fn tools_listed(&mut self, result: Option<&RawJson>, outputs: &mut Outputs) {
        match self.tools.page(result) {
            Page::More(page) => self.ask_for_tools(page, outputs),
            Page::Last(calls) => {
                for (call, verdict) in calls {
                    match verdict {
                        Ok(()) => self.forward(call, outputs),
                        Err(error) => outputs.answer(call.exchange, wire::failure(&call.id, error)),
                    }
                }
            }
        }
    }
}

/// The result that ends a subscription names it, as its caller does.
fn restore_subscription(result: &RawJson, id: &RawJson) -> RawJson {
    // Nearly no result has it, and results can be large.
    if !result.as_str().contains(SUBSCRIPTION_KEY) {
        return result.clone();
    }
    let mut result = wire::object(result);
    let meta = wire::members(&result, "_meta");
    if meta.member(SUBSCRIPTION_KEY).is_some() {
        result.set("_meta", &meta.with(SUBSCRIPTION_KEY, id));
    }
    result.to_raw()
}
