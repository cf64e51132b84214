//! Names of the wire, and messages that several ways write.

use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{self, Message, Params, RequestId, RpcError};
use crablet::mcp::protocol::STATELESS_VERSION;

/// There is no such resource, in the handshake era; the stateless one has no number of its own for it.
pub(super) const RESOURCE_NOT_FOUND: i64 = -32_002;

/// What a stateless request says of itself, in `_meta`.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
pub(super) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
pub(super) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
pub(super) const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

pub(super) const LISTEN: &str = "subscriptions/listen";
pub(super) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
pub(super) const CANCELLED: &str = "notifications/cancelled";
pub(super) const PROGRESS: &str = "notifications/progress";
pub(super) const MESSAGE: &str = "notifications/message";
pub(super) const UPDATED: &str = "notifications/resources/updated";

/// A request of the shim.
pub(super) fn request(number: u64, method: &str, params: &Params) -> RawJson {
    jsonrpc::request(&RequestId::Number(number), method, params)
}

/// The notification that ends a request of the shim before its answer.
pub(super) fn cancellation(number: u64, reason: &str) -> RawJson {
    jsonrpc::notification(CANCELLED, &Params::new().with("requestId", &number).with("reason", reason))
}

/// An answer that is an error.
pub(crate) fn failure(id: &RawJson, error: RpcError) -> RawJson {
    jsonrpc::response(id, &Err(error))
}

/// The id of an answer to something whose id is not known.
#[cfg(feature = "nats")]
pub(crate) fn null() -> RawJson {
    RawJson::from(serde_json::value::RawValue::NULL)
}

/// An answer with a result.
pub(super) fn success(id: &RawJson, result: &Params) -> RawJson {
    jsonrpc::response(id, &Ok(result.to_raw()))
}

/// The answer to an open request whose child has ended.
pub(super) fn child_ended(id: &RawJson, sentence: &str) -> RawJson {
    failure(id, RpcError::new(jsonrpc::code::INTERNAL_ERROR, sentence))
}

pub(super) fn unknown_method(method: &str) -> RpcError {
    RpcError::new(jsonrpc::code::METHOD_NOT_FOUND, format!("there is no method {method}"))
}

/// The messages of a line; none of one that is no JSON-RPC.
pub(super) fn messages(line: &str) -> Vec<Message> {
    Message::parse(line).unwrap_or_default()
}

/// The number of a request of the shim that an answer names. Some servers make texts of numbers.
pub(super) fn number_of(id: Option<&RequestId>) -> Option<u64> {
    match id? {
        RequestId::Number(number) => Some(*number),
        RequestId::Text(text) => text.parse().ok(),
    }
}

/// The number in a member, such as a progress token that the shim has set.
pub(super) fn number_in(params: &Params, name: &str) -> Option<u64> {
    number_of(RequestId::read(params.member(name)?).as_ref())
}

/// A member that is an object; empty when it is none.
pub(super) fn members(params: &Params, name: &str) -> Params {
    params.member(name).map(object).unwrap_or_default()
}

/// The members of a value; none when it is no object.
pub(super) fn object(raw: &RawJson) -> Params {
    Params::from_object(raw).unwrap_or_default()
}

/// A member that is a text.
pub(super) fn text(params: &Params, name: &str) -> Option<String> {
    params.member(name)?.read().ok()
}

/// The `_meta` of a request of the shim's own to a stateless child.
pub(super) fn own_meta() -> Params {
    let info = Params::new().with("name", "crablet-shim").with("version", env!("CARGO_PKG_VERSION"));
    Params::new().with(VERSION_KEY, STATELESS_VERSION).with(CAPABILITIES_KEY, &Params::new()).with(CLIENT_KEY, &info)
}

/// Whether capabilities let a caller be asked by this request of a child.
pub(super) fn can_be_asked(capabilities: &Params, method: &str, params: &Params) -> bool {
    let offered = |name| capabilities.member(name).and_then(|raw| Object::parse(raw.as_str()).ok());
    match method {
        "sampling/createMessage" => offered("sampling").is_some(),
        "roots/list" => offered("roots").is_some(),
        "elicitation/create" => offered("elicitation").is_some_and(|offered| {
            let has = |mode: &str| offered.get(mode).is_some();
            // Without a mode of its own, an offer means forms.
            if text(params, "mode").as_deref() == Some("url") { has("url") } else { has("form") || !has("url") }
        }),
        _ => false,
    }
}
