//! The tools of a step, found by name, their form for the model, and their schemas ready to check inputs.

use std::collections::HashMap;
use std::sync::Arc;

use super::definition::ToolDefinition;
use crate::json::Schema;
use crate::model::ToolSpec;

/// Tools with unique names.
#[derive(Debug)]
pub(super) struct ToolSet {
    tools: Vec<Arc<ToolDefinition>>,
    positions: HashMap<String, usize>,
    specs: Arc<[ToolSpec]>,
    /// Compiled when first called for: most tools of a large set are never called. `None` for a schema that is none.
    schemas: HashMap<String, Option<Schema>>,
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
        Self { tools, positions, specs, schemas: HashMap::new() }
    }

    /// The tool of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.tools.get(*self.positions.get(name)?)
    }

    /// The schema of this tool's input. `None` when it cannot be used: a server's faulty schema must not take its tool away.
    pub(super) fn schema(&mut self, tool: &ToolDefinition) -> Option<&Schema> {
        if !self.schemas.contains_key(&tool.name) {
            self.schemas.insert(tool.name.clone(), Schema::compile(&tool.input_schema).ok());
        }
        self.schemas.get(&tool.name)?.as_ref()
    }

    /// What the model is told of the tools, or of the active ones where not all are.
    pub(super) fn specs(&self, active: Option<&[String]>) -> Arc<[ToolSpec]> {
        match active {
            None => self.specs.clone(),
            Some(active) => self.specs.iter().filter(|spec| active.contains(&spec.name)).cloned().collect(),
        }
    }
}
