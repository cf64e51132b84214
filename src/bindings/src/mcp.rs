//! Connections to MCP servers, as JavaScript holds them.
//!
//! What takes time is told to two functions of the facade, `resolve` and `reject`, for the reason that
//! [`RunHandle::next`](crate::run::RunHandle::next) gives.

use std::future::Future;

use crablet::host::mcp::{ConnectOptions, Connection, HttpServer, OnProgress, RequestFunction};
use crablet::host::{BoxFuture, CancelToken, Cancelled};
use crablet::json::{Object, RawJson};
use crablet::mcp::client::{CallOptions, Progress};
use crablet::mcp::protocol::Tool;
use crablet::mcp::tools::output;
use crablet::mcp::transport::shim::Token;
use crablet::mcp::transport::websocket::WebSocketOptions;
use crablet::model::Content;
use crablet::web::{WebHost, error_from_rejection, page_origin};
use crablet::{Error, ErrorKind};
use futures_util::future::{Either, select};
use js_sys::Function;
use serde::Serialize;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use crate::config::{invalid, read_headers};
use crate::functions::Execution;
use crate::thrown::thrown;

#[wasm_bindgen]
extern "C" {
    /// `CoreServerFunctions` of `src/js/core.ts`.
    #[derive(Clone, Debug)]
    pub type ServerFunctions;

    #[wasm_bindgen(method, getter, structural)]
    fn fetch(this: &ServerFunctions) -> Option<Function>;

    #[wasm_bindgen(method, getter, structural, js_name = WebSocket)]
    fn web_socket(this: &ServerFunctions) -> Option<Function>;

    #[wasm_bindgen(method, structural, catch)]
    fn request(this: &ServerFunctions, message: &str) -> Result<Execution, JsValue>;
}

/// Cancels a call of a connection.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct CancelHandle(pub(crate) CancelToken);

#[wasm_bindgen]
impl CancelHandle {
    /// A handle that is not cancelled.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels what was started with this handle.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// A connection to an MCP server. Freeing the last handle closes it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct McpHandle(pub(crate) Connection);

#[wasm_bindgen]
impl McpHandle {
    /// Begins to connect to the server that `src/js/mcp.ts` describes.
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str, functions: ServerFunctions) -> Result<Self, JsValue> {
        connect(config, functions).map(Self).map_err(thrown)
    }

    /// Resolves when the connection stands.
    pub fn ready(&self, cancel: &CancelHandle, resolve: Function, reject: Function) {
        let connection = self.0.clone();
        settle(&cancel.0, resolve, reject, async move { connection.ready().await.map(|_| String::new()) });
    }

    /// Resolves with the JSON text of a list of all tools.
    pub fn tools(&self, cancel: &CancelHandle, resolve: Function, reject: Function) {
        let connection = self.0.clone();
        settle(&cancel.0, resolve, reject, async move {
            let tools = connection.tools().await?;
            written(&tools.iter().map(|tool| OfferedTool::new(tool)).collect::<Vec<_>>())
        });
    }

    /// Resolves with the JSON text of the result.
    #[wasm_bindgen(js_name = callTool)]
    pub fn call_tool(
        &self,
        name: String,
        input: String,
        progress: Option<Function>,
        cancel: &CancelHandle,
        resolve: Function,
        reject: Function,
    ) {
        let connection = self.0.clone();
        settle(&cancel.0, resolve, reject, async move {
            let arguments = RawJson::parse(input).map_err(|error| invalid(error.to_string()))?;
            let on_progress = progress.map(|report| Box::new(Report(report)) as Box<dyn OnProgress>);
            let result = connection.call_tool(name, arguments, CallOptions::default(), on_progress).await?;
            let output = output(result);
            written(&CallResult {
                content: &output.content,
                structured_content: output.output.as_ref(),
                is_error: output.is_error,
            })
        });
    }

    /// Resolves when the connection is closed.
    pub fn close(&self, cancel: &CancelHandle, resolve: Function, reject: Function) {
        let connection = self.0.clone();
        settle(&cancel.0, resolve, reject, async move {
            connection.close().await;
            Ok(String::new())
        });
    }
}

/// Runs a piece of work in the background and tells its end, unless it is cancelled before.
pub(crate) fn settle(
    cancel: &CancelToken,
    resolve: Function,
    reject: Function,
    work: impl Future<Output = Result<String, Error>> + 'static,
) {
    // Boxed, so that the rest is in the module once and not for each kind of work.
    settle_boxed(cancel.cancelled(), resolve, reject, Box::pin(work));
}

fn settle_boxed(
    cancelled: Cancelled,
    resolve: Function,
    reject: Function,
    work: BoxFuture<'static, Result<String, Error>>,
) {
    spawn_local(async move {
        let outcome = match select(work, cancelled).await {
            Either::Left((outcome, _)) => outcome,
            // Dropping the work stops it.
            Either::Right(_) => Err(Error::new(ErrorKind::Aborted, "the call was cancelled")),
        };
        // Both functions settle a promise of the facade and do not throw.
        let _ = match outcome {
            Ok(value) => resolve.call1(&JsValue::UNDEFINED, &JsValue::from_str(&value)),
            Err(error) => reject.call1(&JsValue::UNDEFINED, &thrown(error)),
        };
    });
}

fn connect(config: &str, functions: ServerFunctions) -> Result<Connection, Error> {
    let config = Object::parse(config).map_err(|error| invalid(format!("the MCP server is not JSON: {error}")))?;
    let text = |name| config.string(name).unwrap_or_default();
    let options = ConnectOptions::default();
    match text("type").as_str() {
        "http" => {
            let host = functions.fetch().map_or_else(WebHost::new, WebHost::with_fetch);
            let server = HttpServer::new(text("url")).headers(read_headers(&config));
            Ok(Connection::http(&host, text("name"), server, options))
        }
        "shim" => {
            let server = WebSocketOptions {
                url: text("url"),
                server: text("server"),
                token: Token::parse(&text("token"))?,
                origin: page_origin(),
                resume: None,
            };
            let host = functions.web_socket().map_or_else(WebHost::new, WebHost::with_web_socket);
            Connection::shim(&host, text("name"), server, options)
        }
        "custom" => Ok(Connection::function(&WebHost::new(), text("name"), JsServer(functions), options)),
        other => Err(invalid(format!("there is no kind of MCP server called {other:?}"))),
    }
}

/// A server that is a function of the caller.
struct JsServer(ServerFunctions);

impl RequestFunction for JsServer {
    fn request(&self, message: RawJson) -> BoxFuture<'static, Result<Option<RawJson>, Error>> {
        let failed = |thrown: JsValue| {
            error_from_rejection(&thrown, ErrorKind::ConnectionClosed, "the request function of the MCP server failed")
        };
        let asked = self.0.request(message.as_str());
        Box::pin(async move {
            let working = CancelOnDrop(asked.map_err(failed)?);
            let answer = JsFuture::from(working.0.result()).await.map_err(failed)?;
            let Some(answer) = answer.as_string() else { return Ok(None) };
            RawJson::parse(answer).map(Some).map_err(|error| invalid(error.to_string()))
        })
    }
}

/// Tells the caller's function when nobody waits for its answer any more. After the answer that says nothing.
struct CancelOnDrop(Execution);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // The listeners of an abort signal report what they throw themselves.
        let _ = self.0.cancel();
    }
}

struct Report(Function);

impl OnProgress for Report {
    fn progress(&mut self, progress: Progress) {
        let Progress { progress, total, message } = &progress;
        let reported = written(&Reported { progress: *progress, total: *total, message: message.as_deref() });
        if let Ok(text) = reported {
            // The facade reports what the caller's function throws.
            let _ = self.0.call1(&JsValue::UNDEFINED, &JsValue::from_str(&text));
        }
    }
}

#[derive(Serialize)]
struct Reported<'progress> {
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'progress str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfferedTool<'tool> {
    name: &'tool str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'tool str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'tool str>,
    input_schema: &'tool RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'tool RawJson>,
}

impl<'tool> OfferedTool<'tool> {
    fn new(tool: &'tool Tool) -> Self {
        Self {
            name: &tool.name,
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            input_schema: &tool.input_schema,
            output_schema: tool.output_schema.as_ref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'result> {
    content: &'result [Content],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'result RawJson>,
    is_error: bool,
}

fn written(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))
}
