//! The first phase of a tool call: is there such a tool, and does the input fit it?

use std::sync::Arc;

use super::definition::ToolDefinition;
use super::tool_set::ToolSet;
use crate::json::{Object, RawJson};
use crate::model::{ToolCall, ToolInput};

/// The tool and the input to go on with, or what is wrong, for the model to read.
pub(super) fn prepare(tools: &ToolSet, call: &ToolCall) -> Result<(Arc<ToolDefinition>, RawJson), String> {
    let Some(tool) = tools.find(&call.tool_name) else {
        return Err(unknown_tool(tools, &call.tool_name));
    };
    let input = match &call.input {
        ToolInput::Json(input) => check(tool, input)?,
        ToolInput::Malformed { reason, .. } => {
            return Err(format!(
                "The arguments of {} could not be read and it was not run: {reason}. Call it again with one complete \
                 JSON object.",
                tool.name
            ));
        }
    };
    Ok((tool.clone(), input))
}

/// The input that fits the tool's JSON Schema, or what is wrong with it.
pub(super) fn check(tool: &ToolDefinition, input: &RawJson) -> Result<RawJson, String> {
    // Some models write `null` for a call without arguments.
    let empty = if input.as_str() == "null" { RawJson::parse("{}").ok() } else { None };
    let input = empty.unwrap_or_else(|| input.clone());
    if Object::parse(input.as_str()).is_err() {
        return Err(format!(
            "The arguments of {} must be one JSON object and it was not run. Call it again with an object.",
            tool.name
        ));
    }
    Ok(input)
}

fn unknown_tool(tools: &ToolSet, name: &str) -> String {
    let mut known: Vec<&str> = tools.names().take(MAX_NAMES_LISTED).collect();
    if known.is_empty() {
        return format!("There is no tool named {name}, and no other tool either. Answer without tools.");
    }
    known.sort_unstable();
    format!("There is no tool named {name}. The tools are: {}.", known.join(", "))
}

/// Enough to show the right name of a slip, and not a page of text for an agent with hundreds of tools.
const MAX_NAMES_LISTED: usize = 50;
