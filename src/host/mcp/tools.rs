use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{Either, select};

use super::under_way::UnderWay;
use super::{Connection, OnProgress};
use crate::agent::{ToolDefinition, ToolOutput};
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, Host, LiveTools, Tool, ToolContext};
use crate::json::RawJson;
use crate::mcp::client::{CallOptions, Claim, Progress};
use crate::mcp::tools as mapping;

/// How long a list of changed tools may take, in milliseconds. The call that changed them waits for it, so that the model
/// is told of them at its next step.
const LISTING_LIMIT: u64 = 10_000;

/// The tools of a connected server for [`Runner::tools`](crate::host::Runner::tools).
///
/// A tool is called `<server>__<tool>`; see [`agent_name`](mapping::agent_name).
///
/// # Errors
///
/// As for [`Connection::tools`].
pub async fn tools(connection: &Connection) -> Result<Vec<(ToolDefinition, Arc<dyn Tool>)>, Error> {
    listed(connection, &Arc::default(), CallOptions::default()).await
}

/// The tools of a connected server for [`Runner::live_tools`](crate::host::Runner::live_tools): when the server says that
/// they changed they are listed again, and conversations at work have them at their next step.
///
/// # Errors
///
/// As for [`Connection::tools`].
pub async fn live_tools<H: Host>(host: &H, connection: &Connection) -> Result<LiveTools, Error> {
    let listing = Arc::new(Listing::default());
    let live = LiveTools::new(connection.name(), listed(connection, &listing, CallOptions::default()).await?);
    // Neither the tools nor the connection are kept by what follows them.
    let (weak_tools, weak_connection) = (live.downgrade(), connection.downgrade());
    let host = host.clone();
    connection.on_tools_changed(move || {
        let (Some(tools), Some(connection)) = (weak_tools.upgrade(), weak_connection.upgrade()) else { return false };
        if listing.begin() {
            host.spawn(list_again(listing.clone(), tools, connection));
        }
        true
    });
    Ok(live)
}

async fn listed(
    connection: &Connection,
    listing: &Arc<Listing>,
    options: CallOptions,
) -> Result<Vec<(ToolDefinition, Arc<dyn Tool>)>, Error> {
    let offered = connection.tools_with(options).await?;
    let tool = |tool: Arc<crate::mcp::protocol::Tool>| {
        let mut definition = mapping::definition(connection.name(), &tool);
        definition.claimable = connection.resume_id().is_some();
        let function = RemoteTool { connection: connection.clone(), name: tool.name.clone(), listing: listing.clone() };
        (definition, Arc::new(function) as Arc<dyn Tool>)
    };
    Ok(offered.into_iter().filter(|tool| tool.is_for_models).map(tool).collect())
}

async fn list_again(listing: Arc<Listing>, live: LiveTools, connection: Connection) {
    while listing.goes_on() {
        let options = CallOptions { maximum: Some(LISTING_LIMIT), ..CallOptions::default() };
        // A server that cannot be asked keeps its tools; their calls say what is wrong.
        if let Ok(tools) = listed(&connection, &listing, options).await {
            live.replace(tools);
        }
    }
}

/// Whether changed tools are being listed. A server that says five times that they changed is asked twice at most.
#[derive(Default)]
struct Listing(Mutex<ListingState>);

#[derive(Default)]
struct ListingState {
    work: UnderWay,
    /// Whether they have changed since the list was asked for.
    is_stale: bool,
}

impl Listing {
    /// The tools have changed; whether nobody is at work on it.
    fn begin(&self) -> bool {
        let mut state = self.state();
        state.is_stale = true;
        state.work.begin()
    }

    /// Whether there is more to do. If not, those who wait are told.
    fn goes_on(&self) -> bool {
        let mut state = self.state();
        let goes_on = std::mem::take(&mut state.is_stale);
        if !goes_on {
            state.work.end();
        }
        goes_on
    }

    /// Resolves once the list is up to date.
    async fn settled(&self) {
        let end = self.state().work.wait();
        if let Some(end) = end {
            let _ = end.await;
        }
    }

    /// Nothing can panic while the lock is held that would leave half a value behind.
    fn state(&self) -> MutexGuard<'_, ListingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tool that a server runs.
struct RemoteTool {
    connection: Connection,
    name: String,
    listing: Arc<Listing>,
}

impl RemoteTool {
    /// The output of a call, or why there is none.
    fn call(
        &self,
        input: RawJson,
        context: ToolContext,
        claim: Claim,
    ) -> BoxFuture<'static, Result<ToolOutput, Error>> {
        let (connection, name, listing) = (self.connection.clone(), self.name.clone(), self.listing.clone());
        let options = CallOptions { claim, ..CallOptions::default() };
        Box::pin(async move {
            let cancelled = context.cancel.cancelled();
            let on_progress: Box<dyn OnProgress> =
                Box::new(move |progress: Progress| context.progress(progress.to_raw()));
            let call = async {
                let result = connection.call_tool(name, input, options, Some(on_progress)).await;
                listing.settled().await;
                result
            };
            match select(Box::pin(call), cancelled).await {
                Either::Left((result, _)) => result.map(mapping::output),
                // Dropping the call tells the server.
                Either::Right(_) => Err(Error::new(ErrorKind::Aborted, "the call was cancelled")),
            }
        })
    }
}

impl Tool for RemoteTool {
    fn execute(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>> {
        let claim = context.claim_key.clone().map_or(Claim::None, Claim::Offer);
        let (call, server) = (self.call(input, context, claim), self.connection.clone());
        Box::pin(async move { call.await.map_err(|error| failure(&server, &error)) })
    }

    fn claim(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Option<ToolOutput>> {
        let Some(key) = context.claim_key.clone() else { return Box::pin(ready(None)) };
        let (call, server) = (self.call(input, context, Claim::Take(key)), self.connection.clone());
        Box::pin(async move {
            match call.await {
                Ok(output) => Some(output),
                // What the server answered is the result, also when it is none that a model can use.
                Err(error) if matches!(error.kind(), ErrorKind::Rpc | ErrorKind::Protocol) => {
                    Some(ToolOutput::error(failure(&server, &error)))
                }
                Err(_) => None,
            }
        })
    }
}

fn failure(server: &Connection, error: &Error) -> String {
    match error.kind() {
        ErrorKind::Aborted => error.message().to_owned(),
        _ => format!("the MCP server {} failed: {error}", server.name()),
    }
}
