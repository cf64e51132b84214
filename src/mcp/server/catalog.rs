use std::sync::Arc;

use thiserror::Error;

use super::super::protocol::{PromptArgument, Resource, ToolAnnotations};
use super::uri_template::UriTemplate;
use crate::json::RawJson;
use crate::json::schema::{Schema, SchemaError};

/// What a server serves: tools, resources, families of resources, prompts, and whether it completes arguments. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub(super) tools: Vec<Arc<CompiledTool>>,
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) templates: Vec<Arc<(Resource, UriTemplate)>>,
    pub(super) prompts: Vec<Arc<ServerPrompt>>,
    /// Whether tools may come while there are none.
    pub(super) awaits_tools: bool,
    /// Tools that are gone, and what their callers are told.
    pub(super) former_tools: Vec<(String, String)>,
    pub(super) completes: bool,
    pub(super) logs: bool,
}

/// A tool to serve.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTool {
    /// The name it is called by: 1 to 128 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The name to show.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub input_schema: RawJson,
    /// The JSON Schema of its structured result, which is checked.
    pub output_schema: Option<RawJson>,
    /// What it does to the world.
    pub annotations: ToolAnnotations,
    /// Further data, such as what an extension of the protocol defines.
    pub meta: Option<RawJson>,
}

impl ServerTool {
    /// A tool without annotations, which clients take for one that may destroy something.
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: RawJson) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema,
            output_schema: None,
            annotations: ToolAnnotations::default(),
            meta: None,
        }
    }
}

/// A prompt to serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPrompt {
    /// The name it is asked for by.
    pub name: String,
    /// The name to show.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
}

/// Why something cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// A tool's name is empty, too long, or holds another character.
    #[error("{0:?} is no name of a tool: it takes 1 to 128 letters, digits, \"_\", \"-\" and \".\"")]
    ToolName(String),
    /// Two things have one name.
    #[error("there are two of the name {0:?}")]
    Duplicate(String),
    /// A schema cannot be used.
    #[error("the schema of the tool {tool:?} cannot be used: {error}")]
    Schema {
        /// The tool.
        tool: String,
        /// Why.
        error: SchemaError,
    },
    /// The schema of a tool's arguments is not one of an object.
    #[error("the schema of the arguments of {0:?} has to say \"type\": \"object\"")]
    NoObject(String),
    /// A template that is not understood.
    #[error("{0:?} is not a URI template this server understands: it takes literals, {{name}} and {{+name}}")]
    Template(String),
}

#[derive(Debug)]
pub(super) struct CompiledTool {
    pub(super) tool: ServerTool,
    pub(super) input: Schema,
    pub(super) output: Option<Schema>,
}

impl Catalog {
    /// A catalogue of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    ///
    /// When its name or a schema cannot be used, or there is one of that name.
    pub fn tool(mut self, tool: ServerTool) -> Result<Self, CatalogError> {
        let takes = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
        if tool.name.is_empty() || tool.name.len() > MAX_TOOL_NAME || !tool.name.chars().all(takes) {
            return Err(CatalogError::ToolName(tool.name));
        }
        if self.find_tool(&tool.name).is_some() {
            return Err(CatalogError::Duplicate(tool.name));
        }
        let compiled = |schema: &RawJson| {
            let failed = |error| CatalogError::Schema { tool: tool.name.clone(), error };
            Schema::compile(schema).map_err(failed)
        };
        let input = compiled(&tool.input_schema)?;
        let is_object = crate::json::Object::parse(tool.input_schema.as_str())
            .is_ok_and(|schema| schema.string("type").as_deref() == Some("object"));
        if !is_object {
            return Err(CatalogError::NoObject(tool.name));
        }
        let output = tool.output_schema.as_ref().map(compiled).transpose()?;
        self.tools.push(Arc::new(CompiledTool { tool, input, output }));
        Ok(self)
    }

    /// Says that tools may come later, so that clients ask for them even though there are none yet.
    #[must_use]
    pub fn awaits_tools(mut self) -> Self {
        self.awaits_tools = true;
        self
    }

    /// Remembers a tool that is gone. It is not listed; who calls it all the same, by an older list, gets a failed result with
    /// this reason, which a model can read, instead of an error of the protocol.
    #[must_use]
    pub fn former_tool(mut self, name: impl Into<String>, reason: impl Into<String>) -> Self {
        self.former_tools.push((name.into(), reason.into()));
        self
    }

    /// Adds a resource.
    ///
    /// # Errors
    ///
    /// When there is one of that address.
    pub fn resource(mut self, resource: Resource) -> Result<Self, CatalogError> {
        if self.resources.iter().any(|other| other.uri == resource.uri) {
            return Err(CatalogError::Duplicate(resource.uri));
        }
        self.resources.push(Arc::new(resource));
        Ok(self)
    }

    /// Adds a family of resources, whose address is a template: literals, `{name}` for a part without a slash, and
    /// `{+name}` for any part.
    ///
    /// # Errors
    ///
    /// When the template is not understood.
    pub fn resource_template(mut self, template: Resource) -> Result<Self, CatalogError> {
        let parsed = UriTemplate::parse(&template.uri).ok_or_else(|| CatalogError::Template(template.uri.clone()))?;
        self.templates.push(Arc::new((template, parsed)));
        Ok(self)
    }

    /// Adds a prompt.
    ///
    /// # Errors
    ///
    /// When there is one of that name.
    pub fn prompt(mut self, prompt: ServerPrompt) -> Result<Self, CatalogError> {
        if self.find_prompt(&prompt.name).is_some() {
            return Err(CatalogError::Duplicate(prompt.name));
        }
        self.prompts.push(Arc::new(prompt));
        Ok(self)
    }

    /// Says that arguments of prompts and templates are completed.
    #[must_use]
    pub fn completions(mut self) -> Self {
        self.completes = true;
        self
    }

    /// Says that log messages are sent.
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.logs = true;
        self
    }

    /// The names of the tools, in order.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.tool.name.as_str())
    }

    pub(super) fn find_tool(&self, name: &str) -> Option<&Arc<CompiledTool>> {
        self.tools.iter().find(|tool| tool.tool.name == name)
    }

    /// Why a tool that was there is gone.
    #[cfg_attr(not(feature = "host"), allow(dead_code, reason = "only a host repeats arguments in headers"))]
    pub(crate) fn input_schema(&self, name: &str) -> Option<RawJson> {
        self.find_tool(name).map(|tool| tool.tool.input_schema.clone())
    }

    pub(super) fn former_reason(&self, name: &str) -> Option<&str> {
        self.former_tools.iter().find(|(former, _)| former == name).map(|(_, reason)| reason.as_str())
    }

    pub(super) fn find_prompt(&self, name: &str) -> Option<&Arc<ServerPrompt>> {
        self.prompts.iter().find(|prompt| prompt.name == name)
    }

    /// Whether there is a resource of this address, and what a template says of it.
    pub(super) fn find_resource(&self, uri: &str) -> Option<Vec<(String, String)>> {
        if self.resources.iter().any(|resource| resource.uri == uri) {
            return Some(Vec::new());
        }
        self.templates.iter().find_map(|template| template.1.variables(uri))
    }

    /// The address or template under which a resource of this address is served.
    #[cfg(feature = "host")]
    pub(crate) fn place_of(&self, uri: &str) -> Option<&str> {
        let exact = self.resources.iter().find(|resource| resource.uri == uri).map(|resource| &resource.uri);
        let family = || self.templates.iter().find(|template| template.1.variables(uri).is_some());
        exact.or_else(|| family().map(|template| &template.0.uri)).map(String::as_str)
    }

    pub(super) fn has_resources(&self) -> bool {
        !self.resources.is_empty() || !self.templates.is_empty()
    }
}

/// The longest name of a tool (2025-11-25, "Tool Names").
const MAX_TOOL_NAME: usize = 128;
