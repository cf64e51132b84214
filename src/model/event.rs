//! What a decoder makes of a provider's bytes: one vocabulary for every wire protocol.

#[cfg(feature = "wires")]
use super::message::FileData;
use super::message::{File, Source, StopReason, Usage};
use crate::error::Error;
use crate::json::RawJson;

/// One thing that happened in a model's answer.
///
/// `block` numbers the content blocks of the answer from 0 in the order in which they began; deltas of different blocks
/// may interleave. A started block is ended unless the stream fails. The last event is [`Stop`](Self::Stop) or
/// [`Failed`](Self::Failed), never both and never neither.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The provider's id of the answer and the model that really answered. At most once, before any block.
    Started {
        /// The provider's id of this answer.
        response_id: Option<String>,
        /// The model that answered, as the provider names it.
        model: Option<String>,
    },
    /// A text block began.
    TextStart {
        /// The block.
        block: u32,
    },
    /// More text of a block.
    TextDelta {
        /// The block.
        block: u32,
        /// The text, never empty.
        text: String,
    },
    /// A text block is complete.
    TextEnd {
        /// The block.
        block: u32,
        /// The wire's own data to keep with the block.
        replay: Option<RawJson>,
    },
    /// A reasoning block began.
    ReasoningStart {
        /// The block.
        block: u32,
    },
    /// More reasoning of a block.
    ReasoningDelta {
        /// The block.
        block: u32,
        /// The text, never empty.
        text: String,
    },
    /// A reasoning block is complete.
    ReasoningEnd {
        /// The block.
        block: u32,
        /// The wire's own data to keep with the block: signature, redacted or encrypted content.
        replay: Option<RawJson>,
    },
    /// A tool call began. Its id and name are known.
    ToolInputStart {
        /// The block.
        block: u32,
        /// The provider's id, or a generated one where the wire has none. Not yet unique within the session.
        id: String,
        /// The name as the provider was told it.
        name: String,
    },
    /// More of the arguments' JSON text.
    ToolInputDelta {
        /// The block.
        block: u32,
        /// A piece of JSON text, never empty.
        json: String,
    },
    /// The tool call is complete.
    ToolInputEnd {
        /// The block.
        block: u32,
        /// The wire's own data to keep with the call.
        replay: Option<RawJson>,
    },
    /// A citation or search result.
    Source(Source),
    /// A file the model made.
    File(File),
    /// A whole block that only its wire understands, kept for the replay.
    Provider {
        /// The block.
        block: u32,
        /// The wire's own name of the block.
        kind: String,
        /// The block as it came.
        replay: RawJson,
    },
    /// The provider's count so far; a later one replaces an earlier one.
    Usage(Usage),
    /// The answer is complete.
    Stop {
        /// Why.
        reason: StopReason,
        /// The provider's own word.
        raw: Option<String>,
    },
    /// The answer failed: an error status, an error in the stream, a truncated or malformed stream.
    Failed(Error),
}

impl ModelEvent {
    /// Whether an answer is over with this event: [`Self::Stop`] or [`Self::Failed`]. Each answer has one, and nothing after it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Stop { .. } | Self::Failed(_))
    }
}

#[cfg(feature = "wires")]
impl ModelEvent {
    /// About how many bytes are kept of this event.
    pub(super) fn size(&self) -> usize {
        const ANY: usize = 16;
        ANY + match self {
            Self::TextDelta { text, .. } | Self::ReasoningDelta { text, .. } => text.len(),
            Self::ToolInputDelta { json, .. } => json.len(),
            Self::TextEnd { replay, .. } | Self::ReasoningEnd { replay, .. } | Self::ToolInputEnd { replay, .. } => {
                replay.as_ref().map_or(0, |replay| replay.as_str().len())
            }
            Self::Provider { replay, .. } => replay.as_str().len(),
            Self::File(File { data: FileData::Base64(data), .. }) => data.len(),
            _ => 0,
        }
    }
}
