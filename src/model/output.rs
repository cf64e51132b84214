//! The object that an answer shall be, and the four ways to ask for one.
//!
//! Some providers hold a model to a JSON Schema, some only to JSON, some to neither, and some to a schema only where there
//! are no tools. What cannot be held to a schema gets a tool whose input is the object, or is told what to write. A call
//! of that tool is the text of the answer in the events, so that whoever reads them needs not know of it.

use std::borrow::Cow;
use std::fmt::Debug;

use super::Decoder;
use super::event::ModelEvent;
use super::message::StopReason;
use super::request::{ModelRequest, OutputSchema, Reasoning, ToolChoice, ToolSpec};
use crate::json::RawJson;
use crate::json::schema::Dialect;

/// How an object is asked for. Reached by way of the [`OutputSchema`] that asks.
pub(super) trait Asking: Debug + Send + Sync {
    /// The schema in the words of a provider.
    fn lowered(&self, output: &OutputSchema, dialect: Dialect) -> Option<RawJson>;

    /// The request as it is sent in a style other than [`OutputStyle::Schema`].
    fn prepared(&self, output: &OutputSchema, request: &ModelRequest, style: OutputStyle) -> ModelRequest;

    /// The decoder of an answer that is the input of a tool.
    fn decoder(&self, request: &ModelRequest, inner: Box<dyn Decoder>) -> Box<dyn Decoder>;
}

pub(super) const ASKING: &dyn Asking = &Asked;

#[derive(Debug)]
struct Asked;

/// How a model is brought to answer with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputStyle {
    /// The provider holds it to the schema.
    Schema,
    /// The provider holds it to JSON, and the instructions tell the schema.
    Object,
    /// The object is the input of a tool, which the model must call where calls can be demanded.
    Tool {
        /// Whether they can.
        is_demanded: bool,
    },
    /// The instructions tell the schema.
    Told,
}

/// The request as it is sent in this style. [`OutputStyle::Schema`] is left to the wire.
pub(super) fn prepared(request: &ModelRequest, style: OutputStyle) -> Cow<'_, ModelRequest> {
    match &request.options.output {
        Some(output) if style != OutputStyle::Schema => Cow::Owned(output.asking.prepared(output, request, style)),
        _ => Cow::Borrowed(request),
    }
}

/// The decoder of an answer to a request that was sent in this style.
pub(super) fn decoder(request: &ModelRequest, style: OutputStyle, inner: Box<dyn Decoder>) -> Box<dyn Decoder> {
    match &request.options.output {
        Some(output) if matches!(style, OutputStyle::Tool { .. }) => output.asking.decoder(request, inner),
        _ => inner,
    }
}

impl Asking for Asked {
    fn lowered(&self, output: &OutputSchema, dialect: Dialect) -> Option<RawJson> {
        dialect.lower(&output.schema)
    }

    fn prepared(&self, output: &OutputSchema, request: &ModelRequest, style: OutputStyle) -> ModelRequest {
        let mut prepared = request.clone();
        let told = if let OutputStyle::Tool { is_demanded } = style {
            let name = answer_tool(&request.tools);
            let told = format!(
                "When you have what you need, give your final answer by calling the tool {name}, once, and not as text."
            );
            offer_answer_tool(&mut prepared, name, is_demanded);
            told
        } else {
            let schema = output.schema.as_str();
            format!(
                "Give your final answer as one JSON object, without other text. It must fit this JSON Schema:\n{schema}"
            )
        };
        let instructions = match request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
            Some(instructions) => format!("{instructions}\n\n{told}"),
            None => told,
        };
        prepared.instructions = Some(instructions.into());
        prepared
    }

    fn decoder(&self, request: &ModelRequest, inner: Box<dyn Decoder>) -> Box<dyn Decoder> {
        Box::new(AnswerToolDecoder {
            inner,
            name: answer_tool(&request.tools),
            answering: None,
            answered: false,
            called: false,
        })
    }
}

fn offer_answer_tool(request: &mut ModelRequest, name: String, is_demanded: bool) {
    let options = std::sync::Arc::make_mut(&mut request.options);
    let Some(output) = options.output.take() else { return };
    let description = output.description.clone().unwrap_or_else(|| format!("Gives the final answer: {}.", output.name));
    let spec = ToolSpec { name: name.clone(), description, input_schema: output.schema.clone() };
    // Who forbids calls means those of tools.
    let is_alone = request.tools.is_empty() || options.tool_choice == Some(ToolChoice::None);
    request.tools = if is_alone { [spec].into() } else { request.tools.iter().cloned().chain([spec]).collect() };
    // Models refuse to be forced while they reason.
    let reasons = options.reasoning.is_some_and(|reasoning| reasoning != Reasoning::Off);
    options.tool_choice = match options.tool_choice.take() {
        Some(ToolChoice::None) | None if !is_demanded || reasons => None,
        Some(ToolChoice::None) | None if is_alone => Some(ToolChoice::Tool(name)),
        None => Some(ToolChoice::Required),
        chosen => chosen,
    };
}

/// The name of the tool whose input is the answer: one that no tool has.
fn answer_tool(tools: &[ToolSpec]) -> String {
    let mut name = "final_answer".to_owned();
    while tools.iter().any(|tool| tool.name == name) {
        name.push('_');
    }
    name
}

/// Makes text of the call that is the answer.
struct AnswerToolDecoder {
    inner: Box<dyn Decoder>,
    name: String,
    /// The block of the call that is the answer.
    answering: Option<u32>,
    /// Whether there was such a call. A second one is a call like any other.
    answered: bool,
    /// Whether there was another call.
    called: bool,
}

impl AnswerToolDecoder {
    fn convert(&mut self, events: &mut [ModelEvent]) {
        for event in events {
            match event {
                ModelEvent::ToolInputStart { block, name, .. } if *name == self.name && !self.answered => {
                    self.answered = true;
                    self.answering = Some(*block);
                    *event = ModelEvent::TextStart { block: *block };
                }
                ModelEvent::ToolInputStart { .. } => self.called = true,
                ModelEvent::ToolInputDelta { block, json } if self.answering == Some(*block) => {
                    *event = ModelEvent::TextDelta { block: *block, text: std::mem::take(json) };
                }
                ModelEvent::ToolInputEnd { block, .. } if self.answering == Some(*block) => {
                    self.answering = None;
                    *event = ModelEvent::TextEnd { block: *block, replay: None };
                }
                ModelEvent::Stop { reason: reason @ StopReason::ToolUse, .. } if self.answered && !self.called => {
                    *reason = StopReason::Stop;
                }
                _ => {}
            }
        }
    }
}

impl Decoder for AnswerToolDecoder {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) {
        let before = events.len();
        self.inner.push(bytes, events);
        self.convert(events.get_mut(before..).unwrap_or_default());
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        let before = events.len();
        self.inner.finish(events);
        self.convert(events.get_mut(before..).unwrap_or_default());
    }
}
