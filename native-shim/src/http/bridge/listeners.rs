//! The subscriptions of stateless callers, kept for a child that knows none.

use std::collections::BTreeMap;

use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{self, Params};

use super::handshake_caller::LISTS;
use super::wire::{self, SUBSCRIPTION_KEY};
use super::{Call, Exchange, Outputs};

/// Open `subscriptions/listen` requests.
#[derive(Debug, Default)]
pub(super) struct Listeners(BTreeMap<Exchange, Listener>);

#[derive(Debug)]
struct Listener {
    id: RawJson,
    /// The methods of notifications about lists that are wanted.
    lists: Vec<String>,
    uris: Vec<String>,
}

impl Listeners {
    /// Opens a subscription to what this child offers of what is wanted. Gives the resources that nobody followed before.
    pub(super) fn open(&mut self, call: &Call, child: &Params, outputs: &mut Outputs) -> Vec<String> {
        let wanted = wire::members(&call.params, "notifications");
        let is_true = |params: &Params, name: &str| params.member(name).is_some_and(|value| value.as_str() == "true");
        let (mut honoured, mut lists) = (Params::new(), Vec::new());
        for (capability, name) in LISTS {
            if is_true(&wanted, name) && is_true(&wire::members(child, capability), "listChanged") {
                honoured.set(name, &true);
                lists.push(format!("notifications/{capability}/list_changed"));
            }
        }
        let mut uris: Vec<String> = Vec::new();
        if is_true(&wire::members(child, "resources"), "subscribe") {
            let wanted = Object::parse(wanted.to_raw().as_str()).ok().and_then(|wanted| wanted.read(URIS));
            uris = wanted.unwrap_or_default();
            uris.truncate(MAX_URIS);
        }
        if !uris.is_empty() {
            honoured.set(URIS, &uris);
        }
        let params = Params::new().with("notifications", &honoured).with("_meta", &meta(&call.id));
        outputs.caller(Some(call.exchange), jsonrpc::notification(wire::ACKNOWLEDGED, &params));
        let new = uris.iter().filter(|uri| !self.follows(uri)).cloned().collect();
        self.0.insert(call.exchange, Listener { id: call.id.clone(), lists, uris });
        new
    }

    /// Closes a subscription. Gives the resources that nobody follows any more; `None` when it is not one.
    pub(super) fn close(&mut self, exchange: Exchange) -> Option<Vec<String>> {
        let listener = self.0.remove(&exchange)?;
        Some(listener.uris.into_iter().filter(|uri| !self.follows(uri)).collect())
    }

    /// Tells those who want to hear of it.
    pub(super) fn tell(&self, method: &str, params: &Params, outputs: &mut Outputs) {
        let uri = wire::text(params, "uri");
        for (exchange, listener) in &self.0 {
            let wants = match (&uri, method) {
                (Some(uri), wire::UPDATED) => listener.uris.contains(uri),
                _ => listener.lists.iter().any(|wanted| wanted == method),
            };
            if wants {
                let params = params.clone().with("_meta", &meta(&listener.id));
                outputs.caller(Some(*exchange), jsonrpc::notification(method, &params));
            }
        }
    }

    /// Ends all of them, since the child has ended.
    pub(super) fn end(&mut self, outputs: &mut Outputs) {
        for (exchange, listener) in std::mem::take(&mut self.0) {
            let result = Params::new().with("resultType", "complete").with("_meta", &meta(&listener.id));
            outputs.answer(exchange, wire::success(&listener.id, &result));
        }
    }

    fn follows(&self, uri: &str) -> bool {
        self.0.values().any(|listener| listener.uris.iter().any(|followed| followed == uri))
    }
}

fn meta(id: &RawJson) -> Params {
    Params::new().with(SUBSCRIPTION_KEY, id)
}

const URIS: &str = "resourceSubscriptions";

/// How many resources one subscription may follow.
const MAX_URIS: usize = 1_000;
