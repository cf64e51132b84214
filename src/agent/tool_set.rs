//! The tools of a step, found by name, their form for the model, and their schemas ready to check inputs.

use std::sync::Arc;

use super::definition::ToolDefinition;
use super::discovery::Discovery;
use super::input::ToolOutput;
use super::result_reader;
use crate::json::Schema;
use crate::model::{ToolCall, ToolSpec};
use crate::ordered_map::OrderedMap;

/// Tools with unique names.
#[derive(Debug)]
pub(super) struct ToolSet {
    tools: Vec<Arc<ToolDefinition>>,
    positions: OrderedMap<String, usize>,
    specs: Arc<[ToolSpec]>,
    /// Compiled when first called for: most tools of a large set are never called. `None` for a schema that is none.
    schemas: OrderedMap<String, Option<Schema>>,
    /// Tools whose schemas have keywords that nobody checks, and which; what was not told yet.
    unchecked: Vec<(String, Vec<String>)>,
    /// When it is there, the model is told of the tools only once they were found.
    discovery: Option<Discovery>,
    found: Vec<String>,
    /// When it is there, the model may read results that were too long for it, so many characters at once.
    reads_results: Option<usize>,
}

impl ToolSet {
    pub(super) fn new(tools: Vec<Arc<ToolDefinition>>, discovery: Option<Discovery>) -> Self {
        let mut set = Self {
            tools: Vec::new(),
            positions: OrderedMap::new(),
            specs: Arc::default(),
            schemas: OrderedMap::new(),
            unchecked: Vec::new(),
            discovery,
            found: Vec::new(),
            reads_results: None,
        };
        set.replace(tools);
        set
    }

    /// Lets the model read results that were too long for it, so many characters at once.
    pub(super) fn let_results_be_read(&mut self, page: usize) {
        self.reads_results = Some(page);
    }

    /// How many characters of a result that was too long the model may read at once; `None` when it may not.
    pub(super) fn reads_results(&self) -> Option<usize> {
        self.reads_results
    }

    /// Takes other tools. What was found stays found.
    pub(super) fn replace(&mut self, tools: Vec<Arc<ToolDefinition>>) {
        self.positions = tools.iter().enumerate().map(|(position, tool)| (tool.name.clone(), position)).collect();
        self.specs = tools.iter().map(|tool| spec(tool)).collect();
        self.schemas = OrderedMap::new();
        self.tools = tools;
    }

    /// The tools that were found, in the order in which they were.
    pub(super) fn found(&self) -> &[String] {
        &self.found
    }

    /// Adds tools to those that were found. The order stays, so that the provider's cache holds.
    pub(super) fn add_found(&mut self, names: Vec<String>) {
        for name in names {
            if !self.found.contains(&name) {
                self.found.push(name);
            }
        }
    }

    /// Answers a call of the tool that lists the others. `None` when it is a call of another.
    ///
    /// # Errors
    ///
    /// What is wrong with the arguments, for the model to read.
    pub(super) fn discover(&mut self, call: &ToolCall) -> Option<Result<ToolOutput, String>> {
        let discovery = self.discovery.as_ref().filter(|discovery| discovery.tool_name == call.tool_name)?;
        let answer = discovery.answer(&self.tools, call);
        Some(answer.map(|(output, found)| {
            self.add_found(found);
            output
        }))
    }

    /// The tool of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.tools.get(*self.positions.get(name)?)
    }

    /// The tool of this name, if the model was told of it.
    pub(super) fn find_offered(&self, name: &str, active: Option<&[String]>) -> Option<&Arc<ToolDefinition>> {
        let is_active = active.is_none_or(|active| active.iter().any(|active| active == name));
        let is_found = self.discovery.is_none() || self.found.iter().any(|found| found == name);
        self.find(name).filter(|_| is_active && is_found)
    }

    /// The schema of this tool's input. `None` when it cannot be used: a server's faulty schema must not take its tool away.
    pub(super) fn schema(&mut self, tool: &ToolDefinition) -> Option<&Schema> {
        if !self.schemas.contains_key(&tool.name) {
            let schema = Schema::compile(&tool.input_schema).ok();
            let unsupported = schema.as_ref().map(Schema::unsupported).unwrap_or_default();
            if !unsupported.is_empty() && !tool.has_validator {
                self.unchecked.push((tool.name.clone(), unsupported.to_vec()));
            }
            self.schemas.insert(tool.name.clone(), schema);
        }
        self.schemas.get(&tool.name)?.as_ref()
    }

    /// Takes what was found of schemas with keywords that nobody checks.
    pub(super) fn take_unchecked(&mut self) -> Vec<(String, Vec<String>)> {
        std::mem::take(&mut self.unchecked)
    }

    /// What the model is told of the tools, or of the active ones where not all are.
    pub(super) fn specs(&self, active: Option<&[String]>) -> Arc<[ToolSpec]> {
        let specs = self.specs_of_tools(active);
        match self.reads_results.and_then(|_| result_reader::spec()) {
            Some(reader) => specs.iter().cloned().chain([reader]).collect(),
            None => specs,
        }
    }

    fn specs_of_tools(&self, active: Option<&[String]>) -> Arc<[ToolSpec]> {
        if let Some(discovery) = &self.discovery {
            let found = self.found.iter().filter_map(|name| self.find_offered(name, active)).map(|tool| spec(tool));
            return discovery.spec().into_iter().chain(found).collect();
        }
        match active {
            None => self.specs.clone(),
            Some(active) => self.specs.iter().filter(|spec| active.contains(&spec.name)).cloned().collect(),
        }
    }
}

fn spec(tool: &ToolDefinition) -> ToolSpec {
    ToolSpec { name: tool.name.clone(), description: tool.description.clone(), input_schema: tool.input_schema.clone() }
}
