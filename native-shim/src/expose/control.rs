//! The agents' side of the running shim: each `crablet-shim expose` that connects is served what pages offer, as an MCP
//! client over lines.

use std::collections::BTreeMap;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crablet::host::mcp::{McpServer, ServerCall};
use crablet::mcp::client::CallOptions;
use crablet::mcp::server::{CatalogError, Outcome};
use futures_channel::mpsc;
use futures_util::{SinkExt, StreamExt};
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_util::codec::{Framed, LinesCodec};

use super::endpoint::Listening;
use super::page::shim_info;
use super::pages::{MAX_CALLS, Offer, PageId, Pages};
use super::relay::{SharedLogs, relay};
use crate::log::note;

/// The longest line between the shim and `expose`: a result of the largest size, which may be there twice, as a value and as
/// text, and its envelope.
pub(super) const MAX_LINE_BYTES: usize = 2 * crablet::mcp::transport::shim::MAX_MESSAGE_BYTES + 1024 * 1024;

/// Serves agents for ever.
pub(crate) async fn serve_agents(listening: Listening, pages: Arc<Pages>) {
    let agents = Arc::new(Semaphore::new(MAX_AGENTS));
    loop {
        match listening.accept().await {
            Ok(stream) => match Arc::clone(&agents).try_acquire_owned() {
                Ok(permit) => {
                    let pages = Arc::clone(&pages);
                    tokio::spawn(async move {
                        // An agent that is gone needs no answer.
                        drop(serve_agent(stream, &pages).await);
                        drop(permit);
                    });
                }
                Err(_) => note(format!("an agent was turned away: {MAX_AGENTS} are connected already")),
            },
            // Out of file descriptors, mostly: some will be closed.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_agent(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, pages: &Pages) -> io::Result<()> {
    let (mut sink, lines) = Framed::new(stream, LinesCodec::new_with_max_length(MAX_LINE_BYTES)).split();
    // A line that is too long ends the connection.
    let lines = lines.scan((), |(), line| ready(line.ok()));
    let (out, mut going) = mpsc::channel::<String>(0);
    let mut offered = pages.offered();
    let mut logs = BTreeMap::new();
    let server = server_of(&offered.borrow_and_update(), &mut logs);
    let (serving, control) = server.unwrap_or_else(|_| empty_server()).serve(Box::pin(lines), out);
    let write = async {
        while let Some(line) = going.next().await {
            if sink.send(line).await.is_err() {
                return;
            }
        }
    };
    let follow = async {
        while offered.changed().await.is_ok() {
            match server_of(&offered.borrow_and_update(), &mut logs) {
                Ok(server) => control.replace(server),
                Err(error) => pages.note(&format!("the tools of pages cannot be offered: {error}")),
            }
        }
    };
    tokio::select! {
        () = serving => {}
        () = write => {}
        () = follow => {}
    }
    Ok(())
}

/// The server that agents get, with nothing to serve yet.
pub(super) fn empty_server() -> McpServer {
    let info = shim_info();
    McpServer::new(info.name, info.version).awaits_tools().logging()
}

/// What one agent gets. The logs of pages are kept from one list of tools to the next.
fn server_of(offers: &[Offer], logs: &mut BTreeMap<PageId, SharedLogs>) -> Result<McpServer, CatalogError> {
    logs.retain(|page, _| offers.iter().any(|offer| offer.page == *page));
    offers.iter().try_fold(empty_server(), |server, offer| {
        let logs = logs.entry(offer.page).or_insert_with(|| SharedLogs::of(&offer.link.logs)).clone();
        let served = offer.tool.to_server_tool(offer.name.clone(), &offer.owner);
        let offer = Arc::new(offer.clone());
        server.tool(served, move |_: IgnoredAny, call: ServerCall| {
            let (offer, logs) = (Arc::clone(&offer), logs.clone());
            async move { call_page(&offer, call, &logs).await }
        })
    })
}

async fn call_page(Offer { owner, tool, link, calls, .. }: &Offer, call: ServerCall, logs: &SharedLogs) -> Outcome {
    let Ok(_at_work) = calls.try_acquire() else {
        return Outcome::Failed(format!("{MAX_CALLS} calls are at work in {owner} already; wait for some"));
    };
    let limits = CallOptions { maximum: Some(LONGEST_CALL), ..CallOptions::default() };
    match relay(&link.connection, &tool.name, call, limits, logs).await {
        Outcome::Failed(reason) => Outcome::Failed(format!("no answer of the page {owner}: {reason}")),
        answered => answered,
    }
}

/// The longest that a call may take, in milliseconds, however often it reports progress; without a report it has two minutes.
const LONGEST_CALL: u64 = 60 * 60 * 1_000;

/// Agents that a person runs at once.
const MAX_AGENTS: usize = 32;

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
