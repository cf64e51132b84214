//! Lets the model read what was left out of a result that was too long for it.

use std::sync::Arc;

use super::input::ToolOutput;
use crate::json::{Object, RawJson, quoted, read_string};
use crate::model::{Body, Message, ToolCall, ToolInput, ToolResult, ToolSpec};

/// The name of the tool that reads results.
pub(super) const TOOL: &str = "readResult";

/// What the model is told of it.
pub(super) fn spec() -> Option<ToolSpec> {
    Some(ToolSpec {
        name: TOOL.to_owned(),
        description: DESCRIPTION.to_owned(),
        input_schema: RawJson::parse(INPUT_SCHEMA).ok()?,
    })
}

/// Answers a call of it with about this many characters of an earlier result.
///
/// # Errors
///
/// What is wrong with the arguments, for the model to read.
pub(super) fn answer(history: &[Arc<Message>], page: usize, call: &ToolCall) -> Result<ToolOutput, String> {
    let arguments = match &call.input {
        ToolInput::Json(input) => Object::parse(input.as_str()).unwrap_or_default(),
        ToolInput::Malformed { reason, .. } => return Err(format!("The arguments do not fit: {reason}")),
    };
    let call_id = arguments.string("callId").unwrap_or_default();
    let offset: usize = arguments.read("offset").unwrap_or_default();
    let result =
        find(history, &call_id).ok_or_else(|| format!("There is no result of a call {}.", quoted(&call_id)))?;
    let whole = whole_of(result);
    let start = whole.char_indices().nth(offset).map(|(index, _)| index);
    let start = start.ok_or_else(|| format!("That result has {} characters.", whole.chars().count()))?;
    let rest = whole.get(start..).unwrap_or_default();
    let Some((end, _)) = rest.char_indices().nth(page.max(1)) else { return Ok(ToolOutput::text(rest)) };
    let next = offset.saturating_add(page.max(1));
    Ok(ToolOutput::text(format!("{}\n[more from offset {next}]", rest.get(..end).unwrap_or_default())))
}

fn find<'history>(history: &'history [Arc<Message>], call_id: &str) -> Option<&'history ToolResult> {
    history.iter().rev().find_map(|message| match &message.body {
        Body::Tool(tool) => tool.results.iter().find(|result| result.call_id.as_str() == call_id),
        _ => None,
    })
}

/// A text that was kept whole is a JSON string; a value of the tool is read as its JSON.
fn whole_of(result: &ToolResult) -> String {
    match &result.output {
        Some(output) => read_string(output.as_str()).unwrap_or_else(|| output.as_str().to_owned()),
        None => ToolOutput { content: result.content.clone(), ..ToolOutput::default() }.texts(),
    }
}

const DESCRIPTION: &str = "Reads a result of an earlier call of which characters were left out: give its callId, and the offset to read from.";

const INPUT_SCHEMA: &str = r#"{"type":"object","properties":{"callId":{"type":"string"},"offset":{"type":"integer","minimum":0}},"required":["callId"]}"#;
