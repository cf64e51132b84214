//! The tools of a step, found by name, and their form for the model.

use std::collections::HashMap;
use std::sync::Arc;

use super::definition::ToolDefinition;
use crate::model::ToolSpec;

/// Tools with unique names.
#[derive(Clone, Debug)]
pub(super) struct ToolSet {
    tools: Vec<Arc<ToolDefinition>>,
    positions: HashMap<String, usize>,
    specs: Arc<[ToolSpec]>,
}

impl ToolSet {
    pub(super) fn new(tools: Vec<Arc<ToolDefinition>>) -> Self {
        let positions = tools.iter().enumerate().map(|(position, tool)| (tool.name.clone(), position)).collect();
        let specs = tools
            .iter()
            .map(|tool| ToolSpec {
                name: tool.name.clone(),
                description: tool.description.clone(),
                input_schema: tool.input_schema.clone(),
            })
            .collect();
        Self { tools, positions, specs }
    }

    /// The tool of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.tools.get(*self.positions.get(name)?)
    }

    /// What the model is told of the tools.
    pub(super) fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// The names, in the order the model is told of them.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }
}
