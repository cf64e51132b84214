//! The operations of an OpenAPI 3.0 or 3.1 document as tools.

mod document;
mod operation;
mod parameter;
mod request;
mod schema;
mod server;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use self::document::Document;
use self::operation::{FoundOperation, operations, plan, unique_name};
use self::request::OperationTool;
use self::server::Servers;
use super::BuiltInTool;
use crate::agent::ToolDefinition;
use crate::host::{BoxFuture, Host, MaybeSend, MaybeSync, Tool};
use crate::json::RawJson;

pub use operation::ApiOperation;

/// How an API becomes tools.
#[derive(Clone, Default)]
pub struct OpenApiOptions {
    /// The address in front of every path, in the place of the document's servers.
    pub server: Option<String>,
    /// Where requests may go, for the servers of the document: `https://api.example.com`, `https://*.example.com`.
    pub origins: Vec<String>,
    /// Only operations with one of these tags; all when empty.
    pub tags: Vec<String>,
    /// Only these operations, by `operationId`; all when empty.
    pub operations: Vec<String>,
    /// Put before each tool's name.
    pub prefix: String,
    /// Gives what authorises a request, before each one. Neither the model nor an event ever sees it.
    pub authorize: Option<Arc<dyn Authorizer>>,
    /// Whether a person is asked before calls of other methods than GET and HEAD. Default: yes.
    pub without_approval: bool,
    /// The most bytes of an answer that are read; of a longer one the model gets the beginning. 200 000 when `None`.
    pub max_bytes: Option<usize>,
    /// The most milliseconds of one request. 60 000 when `None`.
    pub timeout: Option<u64>,
}

/// Supplies what authorises the requests of an API. Implemented by closures.
pub trait Authorizer: MaybeSend + MaybeSync + 'static {
    /// What to add to the request of this operation.
    ///
    /// # Errors
    ///
    /// Why there is nothing; the model is told, so it must hold no secret.
    fn authorize(&self, operation: &ApiOperation) -> BoxFuture<'static, Result<Authorization, String>>;
}

impl<F, Authorizing> Authorizer for F
where
    F: Fn(&ApiOperation) -> Authorizing + MaybeSend + MaybeSync + 'static,
    Authorizing: Future<Output = Result<Authorization, String>> + MaybeSend + 'static,
{
    fn authorize(&self, operation: &ApiOperation) -> BoxFuture<'static, Result<Authorization, String>> {
        Box::pin(self(operation))
    }
}

/// What is added to a request. `Debug` shows names only.
#[derive(Clone, Default)]
pub struct Authorization {
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Parts of the query.
    pub query: Vec<(String, String)>,
}

/// What a document became.
pub struct OpenApiTools {
    /// The tools, for [`Runner::tools`](crate::host::Runner::tools).
    pub tools: Vec<BuiltInTool>,
    /// The operations that could not become tools, and why.
    pub skipped: Vec<(String, OpenApiError)>,
}

/// What is wrong with a document, or with one of its operations.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenApiError {
    /// It is no object.
    #[error("an OpenAPI document is a JSON object")]
    NotADocument,
    /// It is of another version.
    #[error("the document says OpenAPI version {0:?}, and only 3.0 and 3.1 are read: convert it first")]
    Version(String),
    /// Neither a server nor origins were given.
    #[error("it has to be known where requests may go: give a server, or origins")]
    NoOrigins,
    /// Something is no origin or no address of a server.
    #[error("{0:?} is no http or https address without a user name")]
    Address(String),
    /// A server that is not among the origins.
    #[error("requests to its server {0} are not allowed: add it to the origins")]
    NotAllowed(String),
    /// A reference that leads out of the document.
    #[error("the reference {0} leads out of the document: bundle it first")]
    Outside(String),
    /// A reference that leads nowhere.
    #[error("the reference {0} leads to nothing")]
    Nowhere(String),
    /// References that lead to each other.
    #[error("the reference {0} leads in a circle")]
    Circle(String),
    /// Schemas that no model reads.
    #[error("its schemas are too large: more than {0} with their references")]
    TooLarge(usize),
    /// A name in the path that no parameter has.
    #[error("its path has {{{0}}}, and there is no such parameter")]
    Path(String),
    /// A body that is not JSON.
    #[error("its body is {0}, and only JSON can be sent")]
    Body(String),
    /// More operations than one agent has tools.
    #[error("the document has more than {0} operations: choose some with tags or operations")]
    TooMany(usize),
}

/// Makes a tool of each operation of an OpenAPI 3.0 or 3.1 document.
///
/// Parameters of all places and the JSON body become one input object. References are followed within the document; one that
/// refers to itself takes anything from there on. What a tool gives is the status and the body as text; a status of 400 and
/// more is a failed result, and so is a redirect to another origin. GET and HEAD run at once and may run twice after a crash;
/// other methods ask a person.
///
/// # Errors
///
/// When it is no such document, when neither a server nor origins are given, or when it has more than 1000 operations that
/// the options leave.
pub fn open_api_tools<H: Host>(
    host: &H,
    document: &RawJson,
    options: OpenApiOptions,
) -> Result<OpenApiTools, OpenApiError> {
    let root: Value = document.read().map_err(|_| OpenApiError::NotADocument)?;
    let document = Document::new(root)?;
    let servers = Servers::new(options.server.as_deref(), &options.origins)?;
    let options = Arc::new(options);
    let (found, mut skipped) = operations(&document);
    let (mut tools, mut names) = (Vec::new(), BTreeSet::new());
    for found in found.into_iter().filter(|found| is_wanted(&found.operation, &options)) {
        if tools.len() >= MAX_TOOLS {
            return Err(OpenApiError::TooMany(MAX_TOOLS));
        }
        let id = found.operation.id.clone();
        match operation_tool(host, &document, &servers, found, &options) {
            Ok((mut definition, tool)) => {
                definition.name = unique_name(&format!("{}{id}", options.prefix), &mut names);
                tools.push((definition, tool));
            }
            Err(error) => skipped.push((id, error)),
        }
    }
    Ok(OpenApiTools { tools, skipped })
}

fn operation_tool<H: Host>(
    host: &H,
    document: &Document,
    servers: &Servers,
    found: FoundOperation<'_>,
    options: &Arc<OpenApiOptions>,
) -> Result<BuiltInTool, OpenApiError> {
    let server = servers.of(&[found.given, found.path_item, document.root()])?;
    let plan = plan(document, &found)?;
    let schema = RawJson::from_value(&plan.input_schema).map_err(|_| OpenApiError::NotADocument)?;
    let operation = found.operation;
    let mut definition = ToolDefinition::new(operation.id.clone(), operation.describe(), schema);
    definition.repeatable = matches!(operation.method, "GET" | "HEAD");
    definition.needs_approval = !definition.repeatable && !options.without_approval;
    let tool = OperationTool {
        host: host.clone(),
        operation: Arc::new(operation),
        plan: Arc::new(plan),
        server,
        options: options.clone(),
    };
    Ok((definition, Arc::new(tool) as Arc<dyn Tool>))
}

fn is_wanted(operation: &ApiOperation, options: &OpenApiOptions) -> bool {
    let has_tag = options.tags.is_empty() || operation.tags.iter().any(|tag| options.tags.contains(tag));
    has_tag && (options.operations.is_empty() || options.operations.contains(&operation.id))
}

impl fmt::Debug for OpenApiOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OpenApiOptions").field("server", &self.server).finish_non_exhaustive()
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.headers.iter().chain(&self.query).map(|(name, _)| name);
        formatter.debug_list().entries(names).finish()
    }
}

impl fmt::Debug for OpenApiTools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.tools.iter().map(|(definition, _)| &definition.name);
        formatter.debug_list().entries(names).finish()
    }
}

/// The most tools of one document.
const MAX_TOOLS: usize = 1_000;
