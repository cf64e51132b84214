//! What a session is told by its host.

use std::sync::Arc;

use super::approval::InputHash;
use super::definition::ToolDefinition;
use super::effect::{HookId, ModelCallId, TimerId};
use super::plan::{ContextEdit, StepChange};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::model::{CallId, Content, MessageId, ModelEvent, Usage};

/// Something that happened outside the machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input {
    /// Start a run with this prompt.
    Prompt(Vec<Content>),
    /// Add a user message to the active run, delivered between steps or between sequential calls.
    Steer(Vec<Content>),
    /// Work on this message when the active run would otherwise end.
    FollowUp(Vec<Content>),
    /// Put other content in the place of a message that waits in one of the queues.
    EditQueued {
        /// The message.
        id: MessageId,
        /// What it says instead.
        content: Vec<Content>,
    },
    /// Take a message out of its queue. Of a steered one, `steer-dropped` is shown.
    Unqueue {
        /// The message.
        id: MessageId,
    },
    /// Stop the active run.
    Abort {
        /// Why, for the error of the run.
        reason: Option<String>,
    },
    /// Events of a model's answer, in order.
    ModelEvents {
        /// The attempt.
        call: ModelCallId,
        /// The events of one network chunk.
        events: Vec<ModelEvent>,
    },
    /// A model call is over. An `Ok` after a last event of `Stop`; an error where the host has one, such as `network`.
    ModelEnded {
        /// The attempt.
        call: ModelCallId,
        /// How.
        outcome: Result<(), Error>,
    },
    /// The host's validator answered.
    InputValidated {
        /// The call.
        call_id: CallId,
        /// The input to run with (`None`: as it was), or what is wrong, for the model to read.
        outcome: Result<Option<RawJson>, String>,
    },
    /// A running tool reports.
    ToolProgress {
        /// The call.
        call_id: CallId,
        /// Anything.
        data: RawJson,
    },
    /// A tool is done.
    ToolEnded {
        /// The call.
        call_id: CallId,
        /// What it gave.
        output: ToolOutput,
    },
    /// The result of a tool cannot be claimed: nobody knows of the call any more, or it gave none.
    ToolNotClaimed {
        /// The call.
        call_id: CallId,
    },
    /// A hook answered, or failed.
    HookReplied {
        /// The question.
        hook: HookId,
        /// The answer; the message of what it threw otherwise.
        reply: Result<HookReply, String>,
    },
    /// A hook that is asked has called a model, which took this much.
    HookSpent {
        /// The question.
        hook: HookId,
        /// Tokens of the call.
        usage: Usage,
    },
    /// A person decided.
    Approval {
        /// The call.
        call_id: CallId,
        /// The decision.
        decision: Approval,
        /// What was decided about, as the request named it. With another input than that, the decision is refused.
        input_hash: Option<InputHash>,
    },
    /// A timer is due.
    Timer {
        /// The timer.
        timer: TimerId,
    },
    /// The agent's tools are now these. Takes effect at the next step.
    ToolsChanged(Vec<Arc<ToolDefinition>>),
    /// The checkpoint is safe.
    CheckpointSaved {
        /// Which.
        seq: u64,
    },
    /// The checkpoint could not be saved. Ends the run.
    CheckpointFailed {
        /// Which.
        seq: u64,
        /// Why; its kind becomes `storage` unless it is `conflict`.
        error: Error,
    },
}

/// What a tool gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Vec<Content>,
    /// The value the tool returned, for the caller.
    pub output: Option<RawJson>,
    /// Data for a user interface that the model does not see.
    pub details: Option<RawJson>,
    /// Whether it failed.
    pub is_error: bool,
    /// Whether the run shall end after this batch of calls.
    pub terminate: bool,
}

impl ToolOutput {
    /// A result of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], ..Self::default() }
    }

    /// The texts that the model reads, a line each.
    pub(super) fn texts(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            Content::Text(text) => Some(text.as_str()),
            Content::File(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// A failure, told to the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }
}

/// A hook's answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "a hook answers once a step, and a box would be one more thing to write")]
pub enum HookReply {
    /// Nothing to change; before a tool call: allowed.
    Continue,
    /// Run with this input instead; it is validated again.
    ChangeInput(RawJson),
    /// Ask a person about this input instead, once it is validated.
    ChangeAndAsk(RawJson),
    /// Do not run; the text is the error the model reads.
    Deny(String),
    /// Ask a person.
    Ask,
    /// Take this result instead.
    ChangeResult(ToolOutput),
    /// For `prepareStep`: make the step with this.
    ChangeStep(StepChange),
    /// For `prepareContext`: send the messages with these changes, made one after the other.
    EditContext(Vec<ContextEdit>),
    /// For `formatRequest`: send this body.
    ChangeBody(RawJson),
    /// For `stopWhen`: make no further step.
    Stop,
}

/// A person's decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// Run it.
    Allow,
    /// Do not run it; the reason is told to the model.
    Deny {
        /// Why.
        reason: Option<String>,
    },
}

/// Why an input was refused. The session is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// A prompt while a run is active.
    #[error("a run is already active on this session: wait for it, abort it, or use steer() or followUp()")]
    Busy,
    /// A steer or follow-up while no run is active, or one whose end is only being saved.
    #[error("no run is active on this session: start one with a prompt")]
    Idle,
    /// A prompt without content.
    #[error("the prompt is empty: give it text or a file")]
    EmptyPrompt,
    /// A prompt to an agent whose output has a schema that cannot be used.
    #[error("the schema of the output cannot be used: {0}")]
    InvalidOutput(String),
    /// More messages than a queue holds.
    #[error("the queue is full: {MAX_QUEUED} messages wait already; wait until some are delivered")]
    QueueFull,
    /// A decision about another input than the one that waits.
    #[error("the input of this call is not the one that was decided about: ask about the input that it has now")]
    OtherInput,
    /// An answer to something that was not asked or is answered already.
    #[error("nothing with this id is waiting for an answer: it was answered already, or never asked")]
    Unexpected,
}

impl InputError {
    /// The kind of error this is for the user of the session.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Busy => ErrorKind::Busy,
            Self::QueueFull => ErrorKind::Limit,
            Self::Idle | Self::EmptyPrompt | Self::InvalidOutput(_) | Self::Unexpected | Self::OtherInput => {
                ErrorKind::InvalidInput
            }
        }
    }
}

/// The most messages that wait in the queue of steered messages, and as many in that of follow-ups. Far more than a person
/// types while a run is at work; a program that gets here does not wait for its answers.
pub(super) const MAX_QUEUED: usize = 64;
