//! Messages: what a conversation is made of, in one form for every provider.

use std::fmt;
use std::sync::Arc;

use super::prices::Dollars;
use crate::json::RawJson;

/// The identity of a message within its session. Unique and never reused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(Arc<str>);

/// The identity of a tool call. Unique within its session: a provider's repeated id is replaced by a fresh one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(Arc<str>);

macro_rules! text_id {
    ($name:ident) => {
        impl $name {
            /// The id with this text.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

text_id!(MessageId);
text_id!(CallId);

/// One entry of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Unique within the session.
    pub id: MessageId,
    /// Who speaks, and what.
    pub body: Body,
}

/// The three kinds of message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// The user, or something that speaks in the user's place.
    User(UserMessage),
    /// The model.
    Assistant(AssistantMessage),
    /// The results of the tool calls of the assistant message right before, in the order of the calls.
    Tool(ToolMessage),
}

/// What the user said.
#[derive(Clone, Debug, PartialEq)]
pub struct UserMessage {
    /// Text and files in order.
    pub content: Vec<Content>,
    /// How the message came into the conversation.
    pub origin: Origin,
}

/// How a user message came into the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Given as the prompt of a run.
    #[default]
    Prompt,
    /// Given while a run was working.
    Steered,
    /// Given to be worked on after the run.
    FollowUp,
    /// The summary of older messages.
    Compacted,
    /// Written by the loop itself, such as a nudge out of a repetition.
    Nudge,
}

impl Origin {
    /// Every origin.
    pub const ALL: &'static [Self] = &[Self::Prompt, Self::Steered, Self::FollowUp, Self::Compacted, Self::Nudge];

    /// The kebab-case name used in snapshots.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Steered => "steered",
            Self::FollowUp => "follow-up",
            Self::Compacted => "compacted",
            Self::Nudge => "nudge",
        }
    }

    /// The origin of this name, or `None` for a name from a newer version.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|origin| origin.as_str() == name)
    }
}

/// What the model said.
#[derive(Clone, Debug, PartialEq)]
pub struct AssistantMessage {
    /// Blocks in the order the model produced them.
    pub content: Vec<Part>,
    /// Which model produced it. Decides whether `replay` data may be sent back.
    pub model: ModelRef,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The provider's own count.
    pub usage: Usage,
}

impl AssistantMessage {
    /// The tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The text of all text blocks, without anything between them.
    pub fn text(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.content.iter().filter_map(text).collect()
    }
}

/// A model's identity as it is stored: no address, no key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModelRef {
    /// The name of the wire protocol, such as `anthropic` or `openai-chat`.
    pub wire: Arc<str>,
    /// The provider, such as `openai` or `groq`.
    pub provider: Arc<str>,
    /// The provider's name of the model.
    pub id: Arc<str>,
}

/// Results of tool calls.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolMessage {
    /// One result for each complete call, in the order of the calls.
    pub results: Vec<ToolResult>,
}

/// A block of an assistant message.
///
/// `replay` is data that only the wire protocol that wrote it understands (signatures, item ids, encrypted reasoning).
/// It is sent back unchanged to the same model and to no other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Visible text.
    Text {
        /// The text.
        text: String,
        /// The wire's own data, such as a thought signature.
        replay: Option<RawJson>,
    },
    /// The model's reasoning or a summary of it; empty text when the provider hides it.
    Reasoning {
        /// The visible part.
        text: String,
        /// The wire's own data: signature, redacted or encrypted content.
        replay: Option<RawJson>,
    },
    /// A request to run a tool.
    ToolCall(ToolCall),
    /// A citation or search result.
    Source(Source),
    /// A file the model made.
    File(File),
    /// A block of a tool that the provider ran itself, or one this version does not know. Kept for the replay.
    Provider {
        /// The wire's own name of the block.
        kind: String,
        /// The block as it came.
        replay: RawJson,
    },
}

/// A complete request of the model to run a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Unique within the session.
    pub call_id: CallId,
    /// As the model wrote it, after mapping back to the name the tool was registered with.
    pub tool_name: String,
    /// The arguments.
    pub input: ToolInput,
    /// The wire's own data, such as a thought signature or an item id.
    pub replay: Option<RawJson>,
}

/// The arguments of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolInput {
    /// A valid JSON value, as the model wrote it.
    Json(RawJson),
    /// Something else. Such a call is answered with an error and never run.
    Malformed {
        /// What the model wrote.
        text: String,
        /// What is wrong with it, for the model to read.
        reason: String,
    },
}

/// The result of one tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The call it belongs to.
    pub call_id: CallId,
    /// The tool of the call.
    pub tool_name: String,
    /// What the model reads.
    pub content: Vec<Content>,
    /// The value that the tool returned, where it returned one: for the caller; `content` is its rendering.
    pub output: Option<RawJson>,
    /// Data for a user interface that the model does not see.
    pub details: Option<RawJson>,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// Text or a file, in a user message or a tool result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// An image, a sound or a document.
    File(File),
}

/// A file by value or by address.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// Where the bytes are.
    pub data: FileData,
    /// A name to show.
    pub name: Option<String>,
}

/// Where a file's bytes are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FileData {
    /// The bytes in standard base64.
    Base64(Arc<str>),
    /// An address that the provider fetches itself.
    Url(String),
}

/// Something the answer refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// Address, where it has one.
    pub url: Option<String>,
    /// Title to show.
    pub title: Option<String>,
    /// The provider's own record.
    pub replay: Option<RawJson>,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// It was done, or met a stop sequence.
    #[default]
    Stop,
    /// The output limit was reached.
    Length,
    /// It waits for tool results.
    ToolUse,
    /// It declined.
    Refusal,
    /// A filter cut it off.
    ContentFilter,
    /// The stream failed.
    Error,
    /// The caller stopped it.
    Aborted,
}

impl StopReason {
    /// Every stop reason.
    pub const ALL: &'static [Self] =
        &[Self::Stop, Self::Length, Self::ToolUse, Self::Refusal, Self::ContentFilter, Self::Error, Self::Aborted];

    /// The reason of this name, or `None` for a name from a newer version.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
    }

    /// The kebab-case name used in events and snapshots.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolUse => "tool-use",
            Self::Refusal => "refusal",
            Self::ContentFilter => "content-filter",
            Self::Error => "error",
            Self::Aborted => "aborted",
        }
    }
}

/// Tokens as the provider counted them, and what they cost; `None` where it did not say, or no prices are known.
///
/// Whether `input` holds the cached tokens, and `output` the reasoning, differs by provider and is not recomputed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read.
    pub input: Option<u64>,
    /// Tokens written.
    pub output: Option<u64>,
    /// Tokens read from the provider's cache.
    pub cache_read: Option<u64>,
    /// Tokens written to the provider's cache.
    pub cache_write: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning: Option<u64>,
    /// What they cost, by the prices of the model.
    pub cost: Option<Dollars>,
}

impl Usage {
    /// Tokens read and written together.
    pub fn total(&self) -> u64 {
        self.input.unwrap_or(0).saturating_add(self.output.unwrap_or(0))
    }

    /// The sum of two counts; a count that neither side has stays unknown.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
            match (left, right) {
                (None, None) => None,
                (left, right) => Some(left.unwrap_or(0).saturating_add(right.unwrap_or(0))),
            }
        }
        Self {
            input: sum(self.input, other.input),
            output: sum(self.output, other.output),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_write: sum(self.cache_write, other.cache_write),
            reasoning: sum(self.reasoning, other.reasoning),
            cost: match (self.cost, other.cost) {
                (None, None) => None,
                (left, right) => Some(left.unwrap_or_default().plus(right.unwrap_or_default())),
            },
        }
    }
}
