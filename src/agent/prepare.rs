//! The first phase of a tool call: is there such a tool, and does the input fit it?

use std::sync::Arc;

use super::definition::ToolDefinition;
use super::tool_set::ToolSet;
use crate::json::{MAX_VALUE_DEPTH, Object, RawJson, is_deeper_than};
use crate::model::{ToolCall, ToolInput, ToolSpec};
use crate::ordered_map::sorted_by_key;

/// The tool and the input to go on with, or what is wrong, for the model to read.
pub(super) fn prepare(
    tools: &mut ToolSet,
    active: Option<&[String]>,
    call: &ToolCall,
) -> Result<(Arc<ToolDefinition>, RawJson), String> {
    let Some(tool) = tools.find_offered(&call.tool_name, active).cloned() else {
        return Err(unknown_tool(&tools.specs(active), &call.tool_name));
    };
    match &call.input {
        ToolInput::Json(input) => check(tools, &tool, input).map(|input| (tool, input)),
        ToolInput::Malformed { reason, .. } => Err(unfit(&tool, reason)),
    }
}

/// The input that fits the tool's JSON Schema, repaired where models often slip, or what is wrong with it.
pub(super) fn check(tools: &mut ToolSet, tool: &ToolDefinition, input: &RawJson) -> Result<RawJson, String> {
    // Also for a tool whose schema cannot be used: what no schema checks must not bring down who reads it.
    if is_deeper_than(input.as_str(), MAX_VALUE_DEPTH) {
        return Err(unfit(tool, &format!("they have more than {MAX_VALUE_DEPTH} levels of arrays and objects")));
    }
    let repaired = match tools.schema(tool) {
        Some(schema) => schema.check(input).map_err(|reason| unfit(tool, &reason))?,
        None => None,
    };
    let mut input = repaired.unwrap_or_else(|| input.clone());
    if input.as_str() == "null"
        && let Ok(empty) = RawJson::parse("{}")
    {
        // Some models write `null` for a call without arguments.
        input = empty;
    }
    // A schema may forget to say so, but a call's arguments are an object on every wire.
    if Object::parse(input.as_str()).is_err() {
        return Err(unfit(tool, "they must be one JSON object"));
    }
    Ok(input)
}

/// What the model reads of arguments that do not fit.
pub(super) fn unfit(tool: &ToolDefinition, reason: &str) -> String {
    format!("{} was not run, because its arguments do not fit: {reason}", tool.name)
}

fn unknown_tool(tools: &[ToolSpec], name: &str) -> String {
    let names = tools.iter().take(MAX_NAMES_LISTED).map(|tool| tool.name.as_str());
    let known = sorted_by_key(names, |name| *name);
    if known.is_empty() {
        return format!("There is no tool named {name}, and no other tool either. Answer without tools.");
    }
    format!("There is no tool named {name}. The tools are: {}.", known.join(", "))
}

/// Enough to show the right name of a slip, and not a page of text for an agent with hundreds of tools.
const MAX_NAMES_LISTED: usize = 50;
