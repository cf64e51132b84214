//! The body of a POST: one JSON-RPC message, read strictly, since what is read in it decides what the server is asked.

use crate::json::{MAX_VALUE_DEPTH, Object, RawJson, is_deeper_than};
use crate::jsonrpc::{Params, RpcError, code};

/// A request, to be answered under its id.
#[derive(Clone, Debug, PartialEq)]
pub struct PostedRequest {
    /// The id, a text or a whole number.
    pub id: RawJson,
    /// The method.
    pub method: String,
    /// The parameters; none of them is there twice.
    pub params: Params,
    /// The `mcp-param-*` headers, in lower case, each of which is there once; `None` where messages have none that could
    /// disagree with them, such as over NATS.
    pub headers: Option<Vec<(String, String)>>,
    /// The whole message.
    pub raw: RawJson,
}

/// A message without an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum PostedMessage {
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The parameters.
        params: Params,
        /// The whole message.
        raw: RawJson,
    },
    /// The answer to a request of the server.
    Response {
        /// The id of that request.
        id: RawJson,
        /// The whole message.
        raw: RawJson,
    },
}

/// What a body holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Posted {
    /// A request.
    Request(PostedRequest),
    /// A message without an answer.
    Message(PostedMessage),
}

/// Reads a body.
///
/// # Errors
///
/// What is wrong with it, and the id that this answers, `null` where that cannot be told.
pub fn read_message(body: &[u8]) -> Result<Posted, (RawJson, RpcError)> {
    let refused = |code, message: &str| (null(), RpcError::new(code, message));
    let text = std::str::from_utf8(body).map_err(|_| refused(code::PARSE_ERROR, "the body is not UTF-8"))?;
    if is_deeper_than(text, MAX_VALUE_DEPTH) {
        return Err(refused(code::INVALID_REQUEST, "the message is nested too deeply"));
    }
    let raw = RawJson::parse(text).map_err(|_| refused(code::PARSE_ERROR, "the body is not JSON"))?;
    let message = Object::parse(text).map_err(|_| {
        refused(code::INVALID_REQUEST, "a body is one JSON-RPC message, which is an object; batches are not taken")
    })?;
    let id = match message.get("id").map(RawJson::from) {
        Some(id) if !is_id(&id) => return Err(refused(code::INVALID_REQUEST, "an id is a text or a whole number")),
        id => id,
    };
    let invalid = |message: &str| {
        let error = RpcError::new(code::INVALID_REQUEST, message);
        (id.clone().unwrap_or_else(null), error)
    };
    if repeats_a_name(&message) {
        return Err(invalid("a member of the message is there twice"));
    }
    if message.string("jsonrpc").as_deref() != Some("2.0") {
        return Err(invalid("the member jsonrpc is \"2.0\""));
    }
    if message.get("method").is_none() {
        let answers = message.get("result").is_some() != message.get("error").is_some();
        return match id {
            Some(id) if answers => Ok(Posted::Message(PostedMessage::Response { id, raw })),
            _ => Err(invalid("a message has a method, or an id and either a result or an error")),
        };
    }
    let method = message.string("method").ok_or_else(|| invalid("the method is a text"))?;
    let params = match message.get("params") {
        None => Object::default(),
        Some(params) if params.get() == "null" => Object::default(),
        Some(params) => Object::parse(params.get()).map_err(|_| invalid("the parameters are an object"))?,
    };
    let is_ambiguous = repeats_a_name(&params) || params.object("_meta").is_some_and(|meta| repeats_a_name(&meta));
    if is_ambiguous {
        return Err(invalid("a parameter is there twice"));
    }
    let params = params.iter().fold(Params::new(), |params, (name, value)| params.with(name, value));
    Ok(match id {
        Some(id) => Posted::Request(PostedRequest { id, method, params, headers: None, raw }),
        None => Posted::Message(PostedMessage::Notification { method, params, raw }),
    })
}

/// The id of an answer to something whose id is not known.
pub(super) fn null() -> RawJson {
    RawJson::from(serde_json::value::RawValue::NULL)
}

fn is_id(id: &RawJson) -> bool {
    id.read::<String>().is_ok() || id.read::<i64>().is_ok() || id.read::<u64>().is_ok()
}

/// Which of two members of the same name counts depends on the reader: what is checked here might be the one, and what
/// the server uses the other.
fn repeats_a_name(object: &Object<'_>) -> bool {
    let mut names: Vec<&str> = object.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| matches!(pair, [first, second] if first == second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Posted, i64> {
        read_message(text.as_bytes()).map_err(|(_, error)| error.code)
    }

    #[test]
    fn each_kind_of_message_is_told_from_the_others() {
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"b":[1]}}"#),
            Ok(Posted::Request(PostedRequest { method, params, .. })) if method == "m" && params.member("b").is_some()
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","method":"m"}"#),
            Ok(Posted::Message(PostedMessage::Notification { .. }))
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            Ok(Posted::Message(PostedMessage::Response { .. }))
        ));
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","\u006dethod":"b"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"a","name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"a":1,"a":2}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
            r#"{"id":1,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#,
            "7",
        ] {
            assert_eq!(read(text).unwrap_err(), code::INVALID_REQUEST, "{text}");
        }
        for text in ["", "{", "nothing", r#"{"jsonrpc":"2.0","method":"a"} {}"#] {
            assert_eq!(read(text).unwrap_err(), code::PARSE_ERROR, "{text}");
        }
        assert_eq!(read_message(&[0xff]).unwrap_err().1.code, code::PARSE_ERROR);
    }

    #[test]
    fn an_error_names_the_request_where_it_can() {
        let (id, _) = read_message(br#"{"jsonrpc":"2.0","id":"x","method":5}"#).unwrap_err();
        assert_eq!(id.as_str(), r#""x""#);
    }

    #[test]
    fn depth_is_counted_outside_of_texts() {
        let nested = |depth: usize, inner: &str| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{open}{inner}{close}}}}}"#)
        };
        assert!(read(&nested(MAX_VALUE_DEPTH - 2, r#""[[\"[[""#)).is_ok());
        assert_eq!(read(&nested(MAX_VALUE_DEPTH - 1, "")), Err(code::INVALID_REQUEST));
        assert_eq!(read(&"[".repeat(1_000_000)), Err(code::INVALID_REQUEST));
    }
}
