use std::sync::Arc;

use futures_util::future::{Either, select};

use super::{Connection, OnProgress};
use crate::agent::{ToolDefinition, ToolOutput};
use crate::error::Error;
use crate::host::{BoxFuture, Tool, ToolContext};
use crate::json::RawJson;
use crate::jsonrpc::Params;
use crate::mcp::client::{CallOptions, Progress};
use crate::mcp::tools as mapping;

/// The tools of a connected server for [`Runner::tools`](crate::host::Runner::tools).
///
/// A tool is called `<server>__<tool>`; see [`agent_name`](mapping::agent_name).
///
/// # Errors
///
/// As for [`Connection::tools`].
pub async fn tools(connection: &Connection) -> Result<Vec<(ToolDefinition, Arc<dyn Tool>)>, Error> {
    let offered = connection.tools().await?;
    let tool = |tool: Arc<crate::mcp::protocol::Tool>| {
        let definition = mapping::definition(connection.name(), &tool);
        let function = RemoteTool { connection: connection.clone(), name: tool.name.clone() };
        (definition, Arc::new(function) as Arc<dyn Tool>)
    };
    Ok(offered.into_iter().map(tool).collect())
}

/// A tool that a server runs.
struct RemoteTool {
    connection: Connection,
    name: String,
}

impl Tool for RemoteTool {
    fn execute(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>> {
        let (connection, name) = (self.connection.clone(), self.name.clone());
        Box::pin(async move {
            let cancelled = context.cancel.cancelled();
            let on_progress: Box<dyn OnProgress> = Box::new(move |progress| context.progress(progress_data(&progress)));
            let call = connection.call_tool(name, input, CallOptions::default(), Some(on_progress));
            match select(Box::pin(call), cancelled).await {
                Either::Left((Ok(result), _)) => Ok(mapping::output(result)),
                Either::Left((Err(error), _)) => Err(format!("the MCP server {} failed: {error}", connection.name())),
                // Dropping the call tells the server.
                Either::Right(_) => Err("the call was cancelled".to_owned()),
            }
        })
    }
}

/// `{progress, total?, message?}`, as in the protocol.
fn progress_data(progress: &Progress) -> RawJson {
    let mut data = Params::new().with("progress", &progress.progress);
    if let Some(total) = progress.total {
        data.set("total", &total);
    }
    if let Some(message) = &progress.message {
        data.set("message", message);
    }
    data.to_raw()
}
