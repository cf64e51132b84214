//! MCP servers of one's own: the machine of [`crate::mcp::server`] with the functions that it calls.

mod call;
mod exposed;
mod http;
mod serving;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::de::DeserializeOwned;

pub use call::{IntoOutcome, ServerCall};
pub use http::{
    EventStream, Framing, HttpBody, HttpCall, HttpHandler, HttpOptions, HttpResponse, LaneSender, OpenExchange, Sleep,
};
pub use serving::{ServerControl, Serving};

use crate::agent::ToolDefinition;
use crate::host::{BoxFuture, MaybeSend, MaybeSync, Tool};
use crate::mcp::protocol::{Implementation, Resource};
use crate::mcp::server::{
    Availability, Catalog, CatalogError, Outcome, Request, Server, ServerOptions, ServerPrompt, ServerTool,
};
use crate::ordered_map::OrderedMap;

/// What is served, with the functions behind it. Cheap to clone: one may serve many connections, each with
/// [`serve`](Self::serve).
///
#[cfg_attr(all(feature = "native", feature = "mcp-server"), doc = "```no_run")]
#[cfg_attr(not(all(feature = "native", feature = "mcp-server")), doc = "```ignore")]
/// use crablet::host::mcp::{McpServer, ServerCall};
/// use crablet::json::RawJson;
/// use crablet::mcp::server::ServerTool;
///
/// #[derive(serde::Deserialize)]
/// struct Place {
///     city: String,
/// }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let schema = r#"{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}"#;
///     let weather = ServerTool::new("weather", "The weather in a city", RawJson::parse(schema)?);
///     let server = McpServer::new("weather", "1.0.0")
///         .tool(weather, async |place: Place, _call: ServerCall| format!("It rains in {}.", place.city))?;
///     crablet::native::serve_stdio(&server).await?;
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct McpServer {
    info: Implementation,
    options: ServerOptions,
    catalog: Catalog,
    functions: Arc<Functions>,
}

/// The functions behind a catalogue.
#[derive(Clone, Default)]
struct Functions {
    tools: OrderedMap<String, Arc<dyn Function>>,
    /// By address, or by template.
    resources: Vec<(String, Arc<dyn Function>)>,
    prompts: OrderedMap<String, Arc<dyn Function>>,
    completion: Option<Arc<dyn Function>>,
    availability: Option<Arc<dyn AvailabilitySource>>,
}

/// Something that answers calls.
trait Function: MaybeSend + MaybeSync + 'static {
    fn call(&self, call: ServerCall) -> BoxFuture<'static, Outcome>;
}

impl<F, Answering> Function for F
where
    F: Fn(ServerCall) -> Answering + MaybeSend + MaybeSync + 'static,
    Answering: Future<Output: IntoOutcome> + MaybeSend + 'static,
{
    fn call(&self, call: ServerCall) -> BoxFuture<'static, Outcome> {
        let answering = self(call);
        Box::pin(async { answering.await.into_outcome() })
    }
}

trait AvailabilitySource: MaybeSend + MaybeSync + 'static {
    fn now(&self) -> Availability;
}

impl<F: Fn() -> Availability + MaybeSend + MaybeSync + 'static> AvailabilitySource for F {
    fn now(&self) -> Availability {
        self()
    }
}

impl McpServer {
    /// A server of nothing.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            info: Implementation { name: name.into(), title: None, version: version.into() },
            options: ServerOptions::default(),
            catalog: Catalog::new(),
            functions: Arc::default(),
        }
    }

    /// Sets how the server behaves.
    #[must_use]
    pub fn options(mut self, options: ServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Adds a tool that is a function of its arguments, read into any type that serde reads. What it gives becomes the
    /// result; an `Err`, and a panic, a failed one.
    ///
    /// # Errors
    ///
    /// When the tool cannot be served; see [`Catalog::tool`].
    pub fn tool<F, I, Answering>(self, tool: ServerTool, function: F) -> Result<Self, CatalogError>
    where
        F: Fn(I, ServerCall) -> Answering + MaybeSend + MaybeSync + 'static,
        I: DeserializeOwned + 'static,
        Answering: Future<Output: IntoOutcome> + MaybeSend + 'static,
    {
        let read = move |call: ServerCall| {
            let input = match &call.request {
                Request::Tool { arguments, .. } => arguments.read::<I>().map_err(|error| error.to_string()),
                _ => Err("this is not a call of a tool".to_owned()),
            };
            let answering = input.map(|input| function(input, call));
            async move {
                match answering {
                    Ok(answering) => answering.await.into_outcome(),
                    Err(error) => {
                        Outcome::Failed(format!("the arguments do not have the shape this tool takes: {error}"))
                    }
                }
            }
        };
        self.add_tool(tool, Arc::new(read))
    }

    /// Adds tools of an agent, such as the built-in ones. Those that need an approval run only where they decide for
    /// themselves that nobody has to be asked: there is nobody here to ask.
    ///
    /// # Errors
    ///
    /// When a tool cannot be served; see [`Catalog::tool`].
    pub fn expose(
        self,
        tools: impl IntoIterator<Item = (ToolDefinition, Arc<dyn Tool>)>,
    ) -> Result<Self, CatalogError> {
        tools.into_iter().try_fold(self, |server, (definition, tool)| {
            let exposed = exposed::server_tool(&definition);
            server.add_tool(exposed, Arc::new(move |call| exposed::run(definition.clone(), tool.clone(), call)))
        })
    }

    /// Says that tools may come later; see [`Catalog::awaits_tools`].
    #[must_use]
    pub fn awaits_tools(mut self) -> Self {
        self.catalog = self.catalog.awaits_tools();
        self
    }

    /// Remembers a tool that is gone; see [`Catalog::former_tool`].
    #[must_use]
    pub fn former_tool(mut self, name: impl Into<String>, reason: impl Into<String>) -> Self {
        self.catalog = self.catalog.former_tool(name, reason);
        self
    }

    /// Adds a resource. The function gives an [`Outcome`] of contents, or text.
    ///
    /// # Errors
    ///
    /// When there is one of that address.
    pub fn resource<F, Answering>(mut self, resource: Resource, function: F) -> Result<Self, CatalogError>
    where
        F: Fn(ServerCall) -> Answering + MaybeSend + MaybeSync + 'static,
        Answering: Future<Output: IntoOutcome> + MaybeSend + 'static,
    {
        Arc::make_mut(&mut self.functions).resources.push((resource.uri.clone(), Arc::new(function)));
        self.catalog = self.catalog.resource(resource)?;
        Ok(self)
    }

    /// Adds a family of resources, whose address is a template; see [`Catalog::resource_template`].
    ///
    /// # Errors
    ///
    /// When the template is not understood.
    pub fn resource_template<F, Answering>(mut self, template: Resource, function: F) -> Result<Self, CatalogError>
    where
        F: Fn(ServerCall) -> Answering + MaybeSend + MaybeSync + 'static,
        Answering: Future<Output: IntoOutcome> + MaybeSend + 'static,
    {
        Arc::make_mut(&mut self.functions).resources.push((template.uri.clone(), Arc::new(function)));
        self.catalog = self.catalog.resource_template(template)?;
        Ok(self)
    }

    /// Adds a prompt. The function gives [`Outcome::Prompt`], or the text of one message of the user.
    ///
    /// # Errors
    ///
    /// When there is one of that name.
    pub fn prompt<F, Answering>(mut self, prompt: ServerPrompt, function: F) -> Result<Self, CatalogError>
    where
        F: Fn(ServerCall) -> Answering + MaybeSend + MaybeSync + 'static,
        Answering: Future<Output: IntoOutcome> + MaybeSend + 'static,
    {
        Arc::make_mut(&mut self.functions).prompts.insert(prompt.name.clone(), Arc::new(function));
        self.catalog = self.catalog.prompt(prompt)?;
        Ok(self)
    }

    /// Sets the function that completes arguments; it gives [`Outcome::Completion`].
    #[must_use]
    pub fn completions<F, Answering>(mut self, function: F) -> Self
    where
        F: Fn(ServerCall) -> Answering + MaybeSend + MaybeSync + 'static,
        Answering: Future<Output: IntoOutcome> + MaybeSend + 'static,
    {
        Arc::make_mut(&mut self.functions).completion = Some(Arc::new(function));
        self.catalog = self.catalog.completions();
        self
    }

    /// Says that log messages are sent; see [`ServerCall::log`].
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.catalog = self.catalog.logging();
        self
    }

    /// Sets the function that is asked before each call which tools may be called.
    #[must_use]
    pub fn availability(mut self, source: impl Fn() -> Availability + MaybeSend + MaybeSync + 'static) -> Self {
        Arc::make_mut(&mut self.functions).availability = Some(Arc::new(source));
        self
    }

    /// What is served.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn add_tool(mut self, tool: ServerTool, function: Arc<dyn Function>) -> Result<Self, CatalogError> {
        let name = tool.name.clone();
        self.catalog = self.catalog.tool(tool)?;
        Arc::make_mut(&mut self.functions).tools.insert(name, function);
        Ok(self)
    }

    fn machine(&self) -> Server {
        Server::with_options(self.catalog.clone(), self.info.clone(), self.options.clone())
    }
}

impl Functions {
    fn for_request(&self, catalog: &Catalog, request: &Request) -> Option<Arc<dyn Function>> {
        match request {
            Request::Tool { name, .. } => self.tools.get(name.as_str()).cloned(),
            Request::Prompt { name, .. } => self.prompts.get(name.as_str()).cloned(),
            Request::Completion { .. } => self.completion.clone(),
            Request::Resource { uri, .. } => {
                let place = catalog.place_of(uri)?;
                self.resources.iter().find(|(address, _)| address == place).map(|(_, function)| function.clone())
            }
        }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("McpServer").field("info", &self.info).finish_non_exhaustive()
    }
}
