//! JSON-RPC 2.0: messages read tolerantly and written strictly.
//!
//! ```
//! use crablet::jsonrpc::{Message, Params, RequestId, request};
//!
//! let ping = request(&RequestId::Number(1), "ping", &Params::new());
//! assert!(ping.as_str().contains(r#""jsonrpc":"2.0""#));
//!
//! let answer = Message::parse(r#"{"id":1,"result":{}}"#)?; // without `jsonrpc`, which is forgiven
//! let [Message::Response { id: Some(id), outcome: Ok(_) }] = answer.as_slice() else { panic!("a result") };
//! assert_eq!(*id, RequestId::Number(1));
//! # Ok::<(), crablet::Error>(())
//! ```

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::error::{Error, ErrorKind};
use crate::json::{FromJson, Object, RawJson, elements, read_string};

/// The most characters of an error's data that its message has.
const DATA_LENGTH: usize = 500;

/// The most messages of one batch that are read; the rest is ignored. Servers of revision 2025-03-26 answer with a few.
const BATCH_LIMIT: usize = 1_000;

/// A message of the peer.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A request, to be answered under its id.
    Request {
        /// The peer's id as it came, text or number. It goes back unchanged.
        id: RawJson,
        /// What is asked.
        method: String,
        /// The parameters.
        params: Option<RawJson>,
    },
    /// A message without an answer.
    Notification {
        /// What happened.
        method: String,
        /// The parameters.
        params: Option<RawJson>,
    },
    /// The answer to a request of this side.
    Response {
        /// The request, or `None` where the peer gave no id or `null`: it could not tell which request it refuses.
        id: Option<RequestId>,
        /// The result, or the peer's error.
        outcome: Result<RawJson, RpcError>,
    },
}

impl Message {
    /// Reads one message, or a batch of them.
    ///
    /// Elements of a batch that are no messages are skipped. A missing `jsonrpc` member is forgiven, and so is an
    /// `error` of `null` beside a result, and one that is a text and no object.
    ///
    /// # Errors
    ///
    /// `protocol` when the text is not a message and not a batch.
    pub fn parse(text: &str) -> Result<Vec<Self>, Error> {
        if let Some(batch) = elements(text) {
            return Ok(batch.into_iter().take(BATCH_LIMIT).filter_map(|element| Self::read(element.get())).collect());
        }
        Self::read(text).map(|message| vec![message]).ok_or_else(|| no_message(text))
    }

    fn read(text: &str) -> Option<Self> {
        let object = Object::parse(text).ok()?;
        let params = object.raw("params");
        match (object.string("method"), object.raw("id")) {
            (Some(method), Some(id)) => Some(Self::Request { id, method, params }),
            (Some(method), None) => Some(Self::Notification { method, params }),
            (None, id) => {
                let outcome = match error_of(&object) {
                    Some(error) => Err(error),
                    None => Ok(RawJson::from(object.get("result")?)),
                };
                Some(Self::Response { id: id.as_ref().and_then(RequestId::read), outcome })
            }
        }
    }
}

/// Whether a message, or one of a batch, answers this request. An error without an id can only mean the request whose stream it
/// came on. The result is not copied, which can be large.
#[cfg(feature = "mcp")]
pub(crate) fn answers(text: &str, request: &RequestId) -> bool {
    let is_answer = |text: &str| {
        let Ok(object) = Object::parse(text) else { return false };
        let is_error = error_of(&object).is_some();
        let id = object.raw("id").as_ref().and_then(RequestId::read);
        object.string("method").is_none()
            && id.map_or(is_error, |id| id.matches(request) && (is_error || object.get("result").is_some()))
    };
    match elements(text) {
        Some(batch) => batch.iter().take(BATCH_LIMIT).any(|element| is_answer(element.get())),
        None => is_answer(text),
    }
}

/// The error of a response. As a text it counts only in what says that it is JSON-RPC: many other services have an `error` too.
fn error_of(object: &Object<'_>) -> Option<RpcError> {
    let text = || object.string("error").filter(|_| object.get("jsonrpc").is_some());
    let error = object.object("error").map(|error| RpcError::read(&error));
    error.or_else(|| Some(RpcError::new(code::INTERNAL_ERROR, text()?)))
}

/// The id in a text that is no message, as where a server leaves out an empty result: what it belongs to has no other answer.
#[cfg(feature = "mcp")]
pub(crate) fn stray_id(text: &str) -> Option<RequestId> {
    RequestId::read(&Object::parse(text).ok()?.raw("id")?)
}

/// Whether a text is a message or a batch. The result is not copied, which can be large.
#[cfg(feature = "mcp")]
pub(crate) fn is_message(text: &str) -> bool {
    let is_batch = || elements(text).is_some();
    Object::parse(text).map_or_else(
        |_| is_batch(),
        |object| object.string("method").is_some() || object.get("result").is_some() || error_of(&object).is_some(),
    )
}

/// The error for a text that is no message.
pub(crate) fn no_message(text: &str) -> Error {
    Error::new(ErrorKind::Protocol, format!("the peer sent what is no JSON-RPC message: {}", excerpt(text)))
}

/// A JSON-RPC id that this side made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// A whole number.
    Number(u64),
    /// A text.
    Text(String),
}

impl RequestId {
    /// The id in this JSON value, or `None` when it is of a kind that this side never makes. Some peers write `5.0` for 5.
    pub fn read(raw: &RawJson) -> Option<Self> {
        u64::from_json(raw.as_str()).map(Self::Number).or_else(|| read_string(raw.as_str()).map(Self::Text))
    }

    /// Whether a peer that turns ids into texts means the same one.
    pub fn matches(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(number), Self::Text(text)) | (Self::Text(text), Self::Number(number)) => {
                *text == number.to_string()
            }
            _ => self == other,
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) => text.fmt(formatter),
        }
    }
}

/// An error in the place of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// The number of the error; see [`code`].
    pub code: i64,
    /// What the peer says of it.
    pub message: String,
    /// Anything further.
    pub data: Option<RawJson>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    fn read(object: &Object<'_>) -> Self {
        Self {
            code: object.read("code").unwrap_or(code::INTERNAL_ERROR),
            message: object.string("message").unwrap_or_default(),
            data: object.raw("data"),
        }
    }
}

/// The peer's message and number as the crate's error, of kind `rpc`. Data that is a text is part of the message: many servers say
/// there what is wrong.
impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        let mut message = if error.message.is_empty() { "the peer gave no reason".to_owned() } else { error.message };
        let said = error.data.as_ref().and_then(|data| read_string(data.as_str())).unwrap_or_default();
        if !said.is_empty() && !message.contains(&said) {
            message.push_str(": ");
            message.extend(said.chars().take(DATA_LENGTH));
        }
        Self::new(ErrorKind::Rpc, message).with_code(error.code.to_string())
    }
}

/// The numbers of JSON-RPC errors.
pub mod code {
    /// The text was not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON was not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method does not take these parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The peer failed inside.
    pub const INTERNAL_ERROR: i64 = -32603;
}

/// Named parameters in the order in which they are added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(Vec<(String, RawJson)>);

impl Params {
    /// No parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// The members of a JSON object.
    ///
    /// # Errors
    ///
    /// `invalid-input` when it is no object.
    pub fn from_object(raw: &RawJson) -> Result<Self, Error> {
        let object = Object::parse(raw.as_str()).map_err(|_| {
            Error::new(ErrorKind::InvalidInput, "parameters must be a JSON object: each parameter has a name")
        })?;
        Ok(Self(object.iter().map(|(name, value)| (name.to_owned(), RawJson::from(value))).collect()))
    }

    /// Adds a parameter, replacing one of the same name.
    #[must_use]
    pub fn with<T: Serialize + ?Sized>(mut self, name: &str, value: &T) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a parameter, replacing one of the same name.
    pub fn set<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.put(name, to_raw(value));
    }

    /// The part of [`set`](Self::set) that is the same for all types.
    fn put(&mut self, name: &str, value: RawJson) {
        self.0.retain(|(candidate, _)| candidate != name);
        self.0.push((name.to_owned(), value));
    }

    /// A parameter.
    pub fn member(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value)
    }

    /// Takes a parameter out.
    pub fn remove(&mut self, name: &str) -> Option<RawJson> {
        let place = self.0.iter().position(|(candidate, _)| candidate == name)?;
        Some(self.0.remove(place).1)
    }

    /// The names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The JSON object.
    pub fn to_raw(&self) -> RawJson {
        to_raw(self)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The text of a request.
pub fn request(id: &RequestId, method: &str, params: &Params) -> RawJson {
    envelope(Some(id), Some(method), params)
}

/// The text of a notification.
pub fn notification(method: &str, params: &Params) -> RawJson {
    envelope(None, Some(method), params)
}

/// The text of an answer to the peer's request of this id.
pub fn response(id: &RawJson, outcome: &Result<RawJson, RpcError>) -> RawJson {
    let mut members = Params::new().with("jsonrpc", "2.0").with("id", id);
    match outcome {
        Ok(result) => members.set("result", result),
        Err(error) => {
            let mut object = Params::new().with("code", &error.code).with("message", &error.message);
            if let Some(data) = &error.data {
                object.set("data", data);
            }
            members.set("error", &object);
        }
    }
    to_raw(&members)
}

fn envelope(id: Option<&RequestId>, method: Option<&str>, params: &Params) -> RawJson {
    let mut members = Params::new().with("jsonrpc", "2.0");
    if let Some(id) = id {
        members.set("id", id);
    }
    if let Some(method) = method {
        members.set("method", method);
    }
    if !params.is_empty() {
        members.set("params", params);
    }
    to_raw(&members)
}

/// The JSON of a value that always has one.
#[expect(clippy::expect_used, reason = "texts, numbers, raw JSON and maps of them under texts are always written")]
fn to_raw<T: Serialize + ?Sized>(value: &T) -> RawJson {
    RawJson::from_value(value).expect("a value without maps under other keys than texts has a JSON text")
}

/// The start of a text of the peer, for a message to people.
pub(crate) fn excerpt(text: &str) -> String {
    /// Enough to recognise an HTML page or a log line by.
    const LENGTH: usize = 80;
    let mut start: String = text.trim().chars().take(LENGTH).collect();
    if start.len() < text.trim().len() {
        start.push('…');
    }
    if start.is_empty() { "(nothing)".to_owned() } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Vec<Message> {
        Message::parse(text).unwrap()
    }

    #[test]
    fn each_kind_of_message_is_told_by_its_members() {
        let raw = |text: &str| RawJson::parse(text).unwrap();
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","id":-1.5,"method":"ping"}"#),
            [Message::Request { id: raw("-1.5"), method: "ping".to_owned(), params: None }]
        );
        assert_eq!(
            parse(r#"{"method":"n","id":null,"params":{"a":1}}"#),
            [Message::Notification { method: "n".to_owned(), params: Some(raw(r#"{"a":1}"#)) }]
        );
        assert_eq!(
            parse(r#"{"id":0,"result":null,"error":null}"#),
            [Message::Response { id: Some(RequestId::Number(0)), outcome: Ok(raw("null")) }]
        );
        assert_eq!(
            parse(r#"{"id":null,"error":{"code":-32700,"message":"no","data":[1]}}"#),
            [Message::Response {
                id: None,
                outcome: Err(RpcError { code: -32700, message: "no".to_owned(), data: Some(raw("[1]")) })
            }]
        );
    }

    #[test]
    fn the_text_of_an_errors_data_is_told() {
        let told = |data: &str| {
            let data = Some(RawJson::parse(data).unwrap());
            Error::from(RpcError { code: -32603, message: "Internal error".to_owned(), data }).message().to_owned()
        };
        assert_eq!(told(r#""no such table""#), "Internal error: no such table");
        assert_eq!(told(r#""Internal error""#), "Internal error");
        assert_eq!(told(r#"{"a":1}"#), "Internal error");
        assert!(told(&format!("\"{}\"", "x".repeat(9_000))).len() < 600);
    }

    #[test]
    fn a_batch_gives_its_messages_and_skips_the_rest() {
        let batch = parse(r#"[{"method":"a"},7,{"id":"x","result":{}},{}]"#);
        assert_eq!(batch.len(), 2);
        assert!(parse("[]").is_empty());
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_start() {
        for text in ["", "null", "{}", "<html>", "{\"id\":1}", "{\"method\":1}"] {
            let error = Message::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Protocol, "{text}");
        }
        assert!(Message::parse("<html>no</html>").unwrap_err().message().contains("<html>"));
    }

    #[test]
    fn ids_that_became_texts_are_known_again() {
        let text = RequestId::Text("7".to_owned());
        assert!(RequestId::Number(7).matches(&text) && text.matches(&RequestId::Number(7)));
        assert!(!RequestId::Number(7).matches(&RequestId::Text("07".to_owned())));
    }

    #[test]
    fn ids_that_became_fractions_are_known_again() {
        let read = |text: &str| RequestId::read(&RawJson::parse(text).unwrap());
        assert_eq!((read("7.0"), read("7e0")), (Some(RequestId::Number(7)), Some(RequestId::Number(7))));
        assert_eq!((read("7.5"), read("-7"), read("[7]")), (None, None, None));
    }

    #[test]
    fn an_error_that_is_a_text_is_one_in_json_rpc_only() {
        let error = RpcError::new(code::INTERNAL_ERROR, "boom");
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#),
            [Message::Response { id: Some(RequestId::Number(1)), outcome: Err(error) }]
        );
        assert!(Message::parse(r#"{"error":"Not found"}"#).is_err());
    }

    #[test]
    fn messages_are_written_as_the_specification_says() {
        let id = RequestId::Number(3);
        assert_eq!(request(&id, "ping", &Params::new()).as_str(), r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
        assert_eq!(
            notification("n", &Params::new().with("a", &1).with("b", "x").with("a", &2)).as_str(),
            r#"{"jsonrpc":"2.0","method":"n","params":{"b":"x","a":2}}"#
        );
        let peer = RawJson::parse("\"i\"").unwrap();
        assert_eq!(
            response(&peer, &Err(RpcError::new(code::METHOD_NOT_FOUND, "no"))).as_str(),
            r#"{"jsonrpc":"2.0","id":"i","error":{"code":-32601,"message":"no"}}"#
        );
        assert_eq!(
            response(&peer, &Ok(RawJson::parse("{}").unwrap())).as_str(),
            r#"{"jsonrpc":"2.0","id":"i","result":{}}"#
        );
    }
}
