//! A model's answer while it arrives: its events shown, its parts assembled, its calls given ids.

use super::context::Context;
use super::event::{BlockId, EventKind};
use crate::error::{Error, ErrorKind};
use crate::model::{Assembler, CallId, Model, ModelEvent, Part, StopReason, Usage};

/// What has come of an answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Who answers; `None` for an answer whose process is gone.
    model: Option<Model>,
    assembler: Assembler,
    open: Vec<OpenBlock>,
    call_ids: Vec<CallId>,
    usage: Usage,
    stop: Option<StopReason>,
    failure: Option<Error>,
}

/// A block that has begun and not ended.
#[derive(Debug)]
struct OpenBlock {
    block: u32,
    id: BlockId,
    kind: BlockKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Reasoning,
    ToolInput,
}

impl Answer {
    /// Takes the next event. `blocks` counts the run's blocks.
    #[cfg_attr(crablet_small, optimize(speed))]
    pub(super) fn take(&mut self, event: ModelEvent, blocks: &mut u32, context: &mut Context<'_>) {
        if self.stop.is_some() || self.failure.is_some() {
            return;
        }
        match event {
            ModelEvent::TextStart { block } => {
                let id = self.begin(block, BlockKind::Text, blocks);
                context.emit(EventKind::TextStart(id));
                self.assembler.push(&event);
            }
            ModelEvent::ReasoningStart { block } => {
                let id = self.begin(block, BlockKind::Reasoning, blocks);
                context.emit(EventKind::ReasoningStart(id));
                self.assembler.push(&event);
            }
            ModelEvent::ToolInputStart { block, id, name } => {
                let call_id = self.unused_call_id(id, context);
                let tool_name = name.clone();
                // From here on the call has its lasting id, in the assembled message too.
                self.assembler.push(&ModelEvent::ToolInputStart { block, id: call_id.to_string(), name });
                let block = self.begin(block, BlockKind::ToolInput, blocks);
                context.emit(EventKind::ToolInputStart { block, call_id, tool_name });
            }
            ModelEvent::TextEnd { block, .. }
            | ModelEvent::ReasoningEnd { block, .. }
            | ModelEvent::ToolInputEnd { block, .. } => {
                self.assembler.push(&event);
                if let Some(index) = self.open.iter().rposition(|open| open.block == block) {
                    context.emit(self.open.remove(index).end());
                }
            }
            ModelEvent::TextDelta { block, .. }
            | ModelEvent::ReasoningDelta { block, .. }
            | ModelEvent::ToolInputDelta { block, .. } => {
                self.assembler.push(&event);
                if let Some(open) = self.open.iter().rfind(|open| open.block == block)
                    && let Some(kind) = open.delta(event)
                {
                    context.emit(kind);
                }
            }
            ModelEvent::Source(ref source) => {
                context.emit(EventKind::Source(source.clone()));
                self.assembler.push(&event);
            }
            ModelEvent::File(ref file) => {
                context.emit(EventKind::File(file.clone()));
                self.assembler.push(&event);
            }
            ModelEvent::Usage(usage) => self.usage = usage,
            ModelEvent::Stop { reason, .. } => {
                self.assembler.push(&event);
                self.stop = Some(reason);
            }
            ModelEvent::Failed(error) => self.failure = Some(error),
            ModelEvent::Started { .. } | ModelEvent::Provider { .. } => self.assembler.push(&event),
        }
    }

    /// What the provider counted of the request, that of its cache included; `None` when it counted nothing.
    pub(super) fn sent_tokens(&self) -> Option<u64> {
        let model = self.model.as_ref()?;
        model.input_tokens(&self.usage)
    }

    /// An answer of this model.
    pub(super) fn of(model: Model) -> Self {
        Self { model: Some(model), ..Self::default() }
    }

    /// The provider's count so far, and what it costs.
    pub(super) fn usage(&self) -> Usage {
        let cost = self.model.as_ref().map_or(self.usage.cost, |model| model.cost(&self.usage));
        Usage { cost, ..self.usage }
    }

    /// How the answer ended, now that the host says that no more comes.
    ///
    /// # Errors
    ///
    /// The failure, where it did not end as it should: an answer without its end marker is never taken for a whole one.
    pub(super) fn outcome(&mut self, ended: Result<(), Error>) -> Result<StopReason, Error> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        if let Some(reason) = self.stop {
            return Ok(reason);
        }
        ended?;
        Err(Error::new(ErrorKind::StreamTruncated, "the model's answer stopped before its end marker; try again"))
    }

    /// Shows the end of every block that is still open.
    pub(super) fn close_blocks(&mut self, context: &mut Context<'_>) {
        for open in std::mem::take(&mut self.open) {
            context.emit(open.end());
        }
    }

    /// The parts that came whole. A call whose input was still on its way is not among them.
    pub(super) fn into_parts(self) -> Vec<Part> {
        self.assembler.finish().content
    }

    fn begin(&mut self, block: u32, kind: BlockKind, blocks: &mut u32) -> BlockId {
        let id = BlockId(*blocks);
        *blocks = blocks.saturating_add(1);
        self.open.push(OpenBlock { block, id, kind });
        id
    }

    /// The provider's id if the session has not seen it yet, else a fresh one: local models number from 0 in each turn.
    /// Always a fresh one in the session of a sub-agent, so that it is unique in the whole tree of sessions.
    fn unused_call_id(&mut self, provided: String, context: &mut Context<'_>) -> CallId {
        let mut call_id = CallId::new(provided.as_str());
        while call_id.as_str().is_empty()
            || (context.conversation.is_nested && call_id.as_str() == provided)
            || self.call_ids.contains(&call_id)
            || context.conversation.call_ids.contains(&call_id)
        {
            call_id = context.conversation.ids.call();
        }
        self.call_ids.push(call_id.clone());
        call_id
    }
}

impl OpenBlock {
    /// The event for more of this block; none for a delta of another kind.
    fn delta(&self, event: ModelEvent) -> Option<EventKind> {
        match (self.kind, event) {
            (BlockKind::Text, ModelEvent::TextDelta { text, .. }) => Some(EventKind::TextDelta(self.id, text)),
            (BlockKind::Reasoning, ModelEvent::ReasoningDelta { text, .. }) => {
                Some(EventKind::ReasoningDelta(self.id, text))
            }
            (BlockKind::ToolInput, ModelEvent::ToolInputDelta { json, .. }) => {
                Some(EventKind::ToolInputDelta(self.id, json))
            }
            _ => None,
        }
    }

    fn end(&self) -> EventKind {
        match self.kind {
            BlockKind::Text => EventKind::TextEnd(self.id),
            BlockKind::Reasoning => EventKind::ReasoningEnd(self.id),
            BlockKind::ToolInput => EventKind::ToolInputEnd(self.id),
        }
    }
}
