//! The JSON form of messages, used in snapshots, in stores and in JavaScript.
//!
//! A message is `{id, role, content}`; an assistant message has `model`, `stopReason` and `usage` too, a user message its
//! `origin` unless that is `prompt`. Content is a list of parts, each with a `type`. Writing and reading are inverse to each
//! other; raw JSON inside (tool inputs, outputs, replay data) keeps its text.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::message::{
    AssistantMessage, Body, CallId, Content, File, FileData, Message, MessageId, ModelRef, Origin, Part, Source,
    StopReason, ToolCall, ToolInput, ToolMessage, ToolResult, Usage, UserMessage,
};
use super::prices::Dollars;
use crate::json::{Object, RawJson, elements, quoted, read_string};

/// Why JSON is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The text is not a JSON object.
    #[error("a message is a JSON object: {0}")]
    NotAnObject(String),
    /// A member that cannot be left out is absent or of another type.
    #[error("the member \"{member}\" of a {of} is missing or of the wrong type")]
    Member {
        /// The member.
        member: &'static str,
        /// What it belongs to: a role or a type of part.
        of: &'static str,
    },
    /// The role is none of the three.
    #[error("{} is not a role of a message: use \"user\", \"assistant\" or \"tool\"", quoted(.0))]
    Role(String),
}

impl Message {
    /// Reads the text of one message.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and when the text is not an object.
    pub fn parse(text: &str) -> Result<Self, MessageError> {
        Self::read(&Object::parse(text).map_err(|error| MessageError::NotAnObject(error.to_string()))?)
    }

    /// Reads a message. Members and types of parts that this version does not know are skipped.
    ///
    /// # Errors
    ///
    /// When the id or the role is missing, or a part of a known type lacks what makes it one.
    pub fn read(object: &Object<'_>) -> Result<Self, MessageError> {
        let id = MessageId::new(required(object.string("id"), "id", "message")?);
        let role = required(object.string("role"), "role", "message")?;
        let body = match role.as_str() {
            "user" => Body::User(UserMessage {
                content: Content::read_list(object.get("content"))?,
                origin: object.string("origin").and_then(|name| Origin::from_name(&name)).unwrap_or_default(),
            }),
            "assistant" => Body::Assistant(AssistantMessage {
                content: read_parts(object.objects("content"), Part::read)?,
                model: object.object("model").map(|model| ModelRef::read(&model)).unwrap_or_default(),
                stop_reason: object
                    .string("stopReason")
                    .and_then(|name| StopReason::from_name(&name))
                    .unwrap_or_default(),
                usage: object.object("usage").map(|usage| Usage::read(&usage)).unwrap_or_default(),
            }),
            "tool" => Body::Tool(ToolMessage {
                results: read_parts(object.objects("content"), |part| match part.string("type").as_deref() {
                    Some("tool-result") => ToolResult::read(part).map(Some),
                    _ => Ok(None),
                })?,
            }),
            _ => return Err(MessageError::Role(role)),
        };
        Ok(Self { id, body })
    }
}

impl Content {
    /// Reads a part of a user message or of a tool result; `None` for a type that has no place there.
    ///
    /// # Errors
    ///
    /// When a part of a known type lacks what makes it one.
    pub fn read(part: &Object<'_>) -> Result<Option<Self>, MessageError> {
        match part.string("type").as_deref() {
            Some("text") => Ok(Some(Self::Text(required(part.string("text"), "text", "text")?))),
            Some("image" | "audio" | "file") => Ok(Some(Self::File(File::read(part)?))),
            _ => Ok(None),
        }
    }

    /// Reads content that is a list of parts or, as people write it, one text.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_list(content: Option<&RawValue>) -> Result<Vec<Self>, MessageError> {
        let Some(content) = content else { return Ok(Vec::new()) };
        if let Some(text) = read_string(content.get()) {
            return Ok(vec![Self::Text(text)]);
        }
        let elements = elements(content.get()).unwrap_or_default();
        let parts = elements.into_iter().filter_map(|element| Object::parse(element.get()).ok()).collect();
        read_parts(parts, Self::read)
    }
}

impl Part {
    /// Reads a part of an assistant message; `None` for a type that this version does not know.
    ///
    /// # Errors
    ///
    /// When a part of a known type lacks what makes it one.
    pub fn read(part: &Object<'_>) -> Result<Option<Self>, MessageError> {
        let replay = || part.get("replay").map(RawJson::from);
        Ok(Some(match part.string("type").as_deref() {
            Some("text") => Self::Text { text: required(part.string("text"), "text", "text")?, replay: replay() },
            Some("reasoning") => Self::Reasoning { text: part.string("text").unwrap_or_default(), replay: replay() },
            Some("tool-call") => Self::ToolCall(ToolCall::read(part)?),
            Some("source") => Self::Source(Source::read(part)),
            Some("image" | "audio" | "file") => Self::File(File::read(part)?),
            Some("provider") => Self::Provider {
                kind: required(part.string("kind"), "kind", "provider")?,
                replay: required(replay(), "replay", "provider")?,
            },
            _ => return Ok(None),
        }))
    }
}

impl ToolCall {
    /// Reads a `tool-call` part: the input as `input`, or one that is not JSON as `inputText` with `invalid` saying why.
    ///
    /// # Errors
    ///
    /// When the id, the name or the input is missing.
    pub fn read(part: &Object<'_>) -> Result<Self, MessageError> {
        let input = match (part.get("input"), part.string("inputText")) {
            (Some(input), _) => ToolInput::Json(input.into()),
            (None, Some(text)) => ToolInput::Malformed { text, reason: part.string("invalid").unwrap_or_default() },
            (None, None) => return Err(MessageError::Member { member: "input", of: "tool-call" }),
        };
        Ok(Self {
            call_id: CallId::new(required(part.string("callId"), "callId", "tool-call")?),
            tool_name: required(part.string("toolName"), "toolName", "tool-call")?,
            input,
            replay: part.get("replay").map(RawJson::from),
        })
    }
}

impl ToolResult {
    /// Reads a `tool-result` part.
    ///
    /// # Errors
    ///
    /// When the id or the name is missing, or the content is malformed.
    pub fn read(part: &Object<'_>) -> Result<Self, MessageError> {
        Ok(Self {
            call_id: CallId::new(required(part.string("callId"), "callId", "tool-result")?),
            tool_name: required(part.string("toolName"), "toolName", "tool-result")?,
            content: Content::read_list(part.get("content"))?,
            output: part.get("output").map(RawJson::from),
            details: part.get("details").map(RawJson::from),
            is_error: part.boolean("isError").unwrap_or(false),
        })
    }
}

impl File {
    /// Reads a part of type `image`, `audio` or `file`. A `data:` address in base64 is read as its bytes.
    ///
    /// # Errors
    ///
    /// When the media type is missing, or both `data` and `url` are.
    pub fn read(part: &Object<'_>) -> Result<Self, MessageError> {
        let data = match (part.string("data"), part.string("url")) {
            (Some(data), _) => FileData::Base64(data.into()),
            (None, Some(url)) => match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
                Some((_, data)) => FileData::Base64(data.into()),
                None => FileData::Url(url),
            },
            (None, None) => return Err(MessageError::Member { member: "data", of: "file" }),
        };
        Ok(Self {
            media_type: required(part.string("mediaType"), "mediaType", "file")?,
            data,
            name: part.string("name"),
        })
    }

    /// The `type` of the part that this file is written as: `image`, `audio` or `file`, by its media type.
    pub fn part_type(&self) -> &'static str {
        match self.media_type.split('/').next() {
            Some("image") => "image",
            Some("audio") => "audio",
            _ => "file",
        }
    }

    /// Where the file is, or its bytes in the form of an address (RFC 2397).
    #[cfg(any(feature = "openai-chat", feature = "openai-responses"))]
    pub(super) fn address(&self) -> String {
        match &self.data {
            FileData::Base64(data) => format!("data:{};base64,{data}", self.media_type),
            FileData::Url(url) => url.clone(),
        }
    }
}

impl Source {
    /// Reads a `source` part. Everything in it may be missing.
    pub fn read(part: &Object<'_>) -> Self {
        Self { url: part.string("url"), title: part.string("title"), replay: part.get("replay").map(RawJson::from) }
    }
}

impl ModelRef {
    /// Reads `{wire, provider, id}`. What is missing reads as empty.
    pub fn read(object: &Object<'_>) -> Self {
        let member = |name| object.string(name).unwrap_or_default().into();
        Self { wire: member("wire"), provider: member("provider"), id: member("id") }
    }
}

impl Usage {
    /// Reads `{inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, cost}`. Each may be missing.
    pub fn read(object: &Object<'_>) -> Self {
        Self {
            input: object.integer("inputTokens"),
            output: object.integer("outputTokens"),
            cache_read: object.integer("cacheReadTokens"),
            cache_write: object.integer("cacheWriteTokens"),
            reasoning: object.integer("reasoningTokens"),
            cost: Dollars::read(object, "cost"),
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        match &self.body {
            Body::User(user) => {
                map.serialize_entry("role", "user")?;
                map.serialize_entry("content", &user.content)?;
                if user.origin != Origin::default() {
                    map.serialize_entry("origin", user.origin.as_str())?;
                }
            }
            Body::Assistant(assistant) => {
                map.serialize_entry("role", "assistant")?;
                map.serialize_entry("content", &assistant.content)?;
                map.serialize_entry("model", &assistant.model)?;
                map.serialize_entry("stopReason", assistant.stop_reason.as_str())?;
                map.serialize_entry("usage", &assistant.usage)?;
            }
            Body::Tool(tool) => {
                map.serialize_entry("role", "tool")?;
                map.serialize_entry("content", &tool.results)?;
            }
        }
        map.end()
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text_part(serializer, "text", text, None),
            Self::File(file) => file.serialize(serializer),
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text { text, replay } => text_part(serializer, "text", text, replay.as_ref()),
            Self::Reasoning { text, replay } => text_part(serializer, "reasoning", text, replay.as_ref()),
            Self::ToolCall(call) => call.serialize(serializer),
            Self::Source(source) => source.serialize(serializer),
            Self::File(file) => file.serialize(serializer),
            Self::Provider { kind, replay } => {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("type", "provider")?;
                map.serialize_entry("kind", kind)?;
                map.serialize_entry("replay", replay)?;
                map.end()
            }
        }
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "tool-call")?;
        map.serialize_entry("callId", &self.call_id)?;
        map.serialize_entry("toolName", &self.tool_name)?;
        match &self.input {
            ToolInput::Json(input) => map.serialize_entry("input", input)?,
            ToolInput::Malformed { text, reason } => {
                map.serialize_entry("inputText", text)?;
                map.serialize_entry("invalid", reason)?;
            }
        }
        optional(&mut map, "replay", self.replay.as_ref())?;
        map.end()
    }
}

impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "tool-result")?;
        map.serialize_entry("callId", &self.call_id)?;
        map.serialize_entry("toolName", &self.tool_name)?;
        map.serialize_entry("content", &self.content)?;
        optional(&mut map, "output", self.output.as_ref())?;
        optional(&mut map, "details", self.details.as_ref())?;
        map.serialize_entry("isError", &self.is_error)?;
        map.end()
    }
}

impl Serialize for File {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.part_type())?;
        map.serialize_entry("mediaType", &self.media_type)?;
        match &self.data {
            FileData::Base64(data) => map.serialize_entry("data", data.as_ref())?,
            FileData::Url(url) => map.serialize_entry("url", url)?,
        }
        optional(&mut map, "name", self.name.as_ref())?;
        map.end()
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "source")?;
        optional(&mut map, "url", self.url.as_ref())?;
        optional(&mut map, "title", self.title.as_ref())?;
        optional(&mut map, "replay", self.replay.as_ref())?;
        map.end()
    }
}

impl Serialize for ModelRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("wire", self.wire.as_ref())?;
        map.serialize_entry("provider", self.provider.as_ref())?;
        map.serialize_entry("id", self.id.as_ref())?;
        map.end()
    }
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        optional(&mut map, "inputTokens", self.input.as_ref())?;
        optional(&mut map, "outputTokens", self.output.as_ref())?;
        optional(&mut map, "cacheReadTokens", self.cache_read.as_ref())?;
        optional(&mut map, "cacheWriteTokens", self.cache_write.as_ref())?;
        optional(&mut map, "reasoningTokens", self.reasoning.as_ref())?;
        optional(&mut map, "cost", self.cost.as_ref())?;
        map.end()
    }
}

fn required<T>(value: Option<T>, member: &'static str, of: &'static str) -> Result<T, MessageError> {
    value.ok_or(MessageError::Member { member, of })
}

fn read_parts<T>(
    parts: Vec<Object<'_>>,
    read: impl Fn(&Object<'_>) -> Result<Option<T>, MessageError>,
) -> Result<Vec<T>, MessageError> {
    parts.iter().filter_map(|part| read(part).transpose()).collect()
}

fn text_part<S: Serializer>(
    serializer: S,
    kind: &str,
    text: &str,
    replay: Option<&RawJson>,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("type", kind)?;
    map.serialize_entry("text", text)?;
    optional(&mut map, "replay", replay)?;
    map.end()
}

/// Writes a member that may be absent.
pub(crate) fn optional<M: SerializeMap, T: Serialize>(
    map: &mut M,
    name: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn raw() -> impl Strategy<Value = RawJson> {
        prop_oneof![
            Just("null"),
            Just(r#"{"b": 1.0, "a":12345678901234567890123}"#),
            Just(r#"[ "\u00e9", {"type":"text"} ]"#),
            Just("-0.0"),
        ]
        .prop_map(|text| RawJson::parse(text).unwrap())
    }

    fn file() -> impl Strategy<Value = File> {
        let data = prop_oneof![
            "[A-Za-z0-9+/]{0,12}".prop_map(|data| FileData::Base64(data.into())),
            ".*".prop_map(FileData::Url),
        ];
        (prop_oneof!["image/png", "audio/wav", "application/pdf", ".*"], data, option::of(".*"))
            .prop_map(|(media_type, data, name)| File { media_type, data, name })
    }

    fn content() -> impl Strategy<Value = Vec<Content>> {
        prop::collection::vec(prop_oneof![".*".prop_map(Content::Text), file().prop_map(Content::File)], 0..4)
    }

    fn tool_call() -> impl Strategy<Value = ToolCall> {
        let input = prop_oneof![
            raw().prop_map(ToolInput::Json),
            (".*", ".*").prop_map(|(text, reason)| ToolInput::Malformed { text, reason }),
        ];
        (".*", ".*", input, option::of(raw())).prop_map(|(call_id, tool_name, input, replay)| ToolCall {
            call_id: CallId::new(call_id),
            tool_name,
            input,
            replay,
        })
    }

    fn tool_result() -> impl Strategy<Value = ToolResult> {
        (".*", ".*", content(), option::of(raw()), option::of(raw()), any::<bool>()).prop_map(
            |(call_id, tool_name, content, output, details, is_error)| ToolResult {
                call_id: CallId::new(call_id),
                tool_name,
                content,
                output,
                details,
                is_error,
            },
        )
    }

    fn part() -> impl Strategy<Value = Part> {
        prop_oneof![
            (".*", option::of(raw())).prop_map(|(text, replay)| Part::Text { text, replay }),
            (".*", option::of(raw())).prop_map(|(text, replay)| Part::Reasoning { text, replay }),
            tool_call().prop_map(Part::ToolCall),
            (option::of(".*"), option::of(".*"), option::of(raw()))
                .prop_map(|(url, title, replay)| Part::Source(Source { url, title, replay })),
            file().prop_map(Part::File),
            (".*", raw()).prop_map(|(kind, replay)| Part::Provider { kind, replay }),
        ]
    }

    fn usage() -> impl Strategy<Value = Usage> {
        let count = || option::of(any::<u64>());
        let cost = option::of(any::<u32>().prop_map(|cents| Dollars::from_cents(cents.into())));
        (count(), count(), count(), count(), count(), cost).prop_map(
            |(input, output, cache_read, cache_write, reasoning, cost)| Usage {
                input,
                output,
                cache_read,
                cache_write,
                reasoning,
                cost,
            },
        )
    }

    fn body() -> impl Strategy<Value = Body> {
        let user = (content(), prop::sample::select(Origin::ALL))
            .prop_map(|(content, origin)| Body::User(UserMessage { content, origin }));
        let model = (".*", ".*", ".*").prop_map(|(wire, provider, id)| ModelRef {
            wire: wire.into(),
            provider: provider.into(),
            id: id.into(),
        });
        let assistant = (prop::collection::vec(part(), 0..4), model, prop::sample::select(StopReason::ALL), usage())
            .prop_map(|(content, model, stop_reason, usage)| {
                Body::Assistant(AssistantMessage { content, model, stop_reason, usage })
            });
        let tool = prop::collection::vec(tool_result(), 0..3).prop_map(|results| Body::Tool(ToolMessage { results }));
        prop_oneof![user, assistant, tool]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_reads_back_the_same(id in ".*", body in body()) {
            let message = Message { id: MessageId::new(id), body };
            let text = serde_json::to_string(&message).unwrap();
            prop_assert_eq!(Message::parse(&text).unwrap(), message);
        }
    }

    #[test]
    fn the_shape_is_the_documented_one() {
        let call = Part::ToolCall(ToolCall {
            call_id: CallId::new("c1"),
            tool_name: "find".into(),
            input: ToolInput::Json(RawJson::parse(r#"{"q": 1}"#).unwrap()),
            replay: None,
        });
        let message = Message {
            id: MessageId::new("m1"),
            body: Body::Assistant(AssistantMessage {
                content: vec![Part::Text { text: "Hm".into(), replay: None }, call],
                model: ModelRef { wire: "anthropic".into(), provider: "anthropic".into(), id: "x".into() },
                stop_reason: StopReason::ToolUse,
                usage: Usage { input: Some(3), output: Some(4), ..Usage::default() },
            }),
        };
        assert_eq!(
            serde_json::to_string(&message).unwrap(),
            concat!(
                r#"{"id":"m1","role":"assistant","content":[{"type":"text","text":"Hm"},"#,
                r#"{"type":"tool-call","callId":"c1","toolName":"find","input":{"q": 1}}],"#,
                r#""model":{"wire":"anthropic","provider":"anthropic","id":"x"},"stopReason":"tool-use","#,
                r#""usage":{"inputTokens":3,"outputTokens":4}}"#
            )
        );
    }

    #[test]
    fn what_is_unknown_is_skipped_and_what_is_missing_is_named() {
        let known =
            r#"{"id":"m","role":"assistant","content":[{"type":"from-the-future"},{"type":"text","text":"a"}]}"#;
        let Body::Assistant(assistant) = Message::parse(known).unwrap().body else { panic!("not an assistant") };
        assert_eq!(assistant.content, [Part::Text { text: "a".into(), replay: None }]);
        let broken = r#"{"id":"m","role":"assistant","content":[{"type":"tool-call","callId":"c","toolName":"t"}]}"#;
        assert_eq!(Message::parse(broken), Err(MessageError::Member { member: "input", of: "tool-call" }));
        assert_eq!(Message::parse(r#"{"id":"m","role":"system"}"#), Err(MessageError::Role("system".into())));
        assert!(matches!(Message::parse("[]"), Err(MessageError::NotAnObject(_))));
    }

    #[test]
    fn an_address_that_holds_the_bytes_is_read_as_bytes() {
        for (url, expected) in [
            ("data:image/png;base64,aGk=", FileData::Base64("aGk=".into())),
            ("https://example.com/a.png", FileData::Url("https://example.com/a.png".into())),
            ("data:text/plain,hi", FileData::Url("data:text/plain,hi".into())),
        ] {
            let part = format!(r#"{{"type":"image","mediaType":"image/png","url":"{url}"}}"#);
            assert_eq!(File::read(&Object::parse(&part).unwrap()).unwrap().data, expected);
        }
    }

    #[test]
    fn a_user_may_write_plain_text() {
        let message = Message::parse(r#"{"id":"m","role":"user","content":"hello"}"#).unwrap();
        assert_eq!(
            message.body,
            Body::User(UserMessage { content: vec![Content::Text("hello".into())], origin: Origin::Prompt })
        );
    }
}
