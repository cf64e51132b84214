//! One page that is connected: an MCP server at the other end of its session, of which this side is the client.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crablet::host::mcp::{ConnectOptions, Connection, PipeEnd, pipe};
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::client::{CallOptions, Event};
use crablet::mcp::protocol::{EraChoice, Implementation};
use crablet::native::process::{ProcessEvent, QueueReceiver, QueueSender, ServerProcess};
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::{sleep, timeout};

use super::host::LocalHost;
use super::pages::{PageId, Pages};
use super::relay::{LOG_QUEUE, LogMessage};

/// The ways to a page.
#[derive(Clone, Debug)]
pub(crate) struct PageLink {
    pub(crate) connection: Connection,
    pub(crate) logs: broadcast::Sender<LogMessage>,
    /// What the page is told of its tools: the parameters of `notifications/crablet/exposed`.
    pub(crate) state: watch::Sender<RawJson>,
}

/// The two ends of a page's session that are not the socket's.
pub(crate) struct PageEnds {
    from_page: QueueReceiver<String>,
    to_page: QueueSender<ProcessEvent>,
    pipe: PipeEnd,
    changed: Arc<Notify>,
    told: watch::Receiver<RawJson>,
}

/// A page that is about to be connected, as a process for its session and as a link for those who call its tools.
pub(crate) fn connect_page(label: &str) -> (ServerProcess, PageLink, PageEnds) {
    let (process, from_page, to_page) = ServerProcess::within();
    let (client_end, pipe) = pipe();
    let (logs, _) = broadcast::channel(LOG_QUEUE);
    let (state, told) = watch::channel(Params::new().to_raw());
    let changed = Arc::new(Notify::new());
    let (noticed, messages) = (Arc::clone(&changed), logs.clone());
    let observer = move |event: &Event| match event {
        Event::ToolsChanged => noticed.notify_one(),
        event => {
            // Without a call at work nobody hears it.
            let _ = LogMessage::read(event).map(|message| messages.send(message));
        }
    };
    let options = ConnectOptions {
        era: EraChoice::Handshake,
        client: Some(shim_info()),
        observer: Some(Arc::new(observer)),
        ..ConnectOptions::default()
    };
    let connection = Connection::pipe(&LocalHost, label, client_end, options);
    (process, PageLink { connection, logs, state }, PageEnds { from_page, to_page, pipe, changed, told })
}

/// Runs a page until its session is over, and forgets it then.
pub(crate) async fn run_page(pages: Weak<Pages>, id: PageId, connection: Connection, ends: PageEnds) {
    let PageEnds { from_page, to_page, pipe: PipeEnd { mut sender, mut receiver }, changed, told } = ends;
    let receive = async {
        let mut from_page = from_page;
        while let Some(message) = from_page.recv().await {
            // What is no JSON is a page's own fault, and answers nothing.
            let Ok(message) = RawJson::parse(message) else { continue };
            if futures_util::SinkExt::send(&mut sender, message).await.is_err() {
                return;
            }
        }
    };
    let send = async {
        while let Some(message) = futures_util::StreamExt::next(&mut receiver).await {
            if !to_page.send(ProcessEvent::Message(message.as_str().to_owned())).await {
                return;
            }
        }
    };
    tokio::select! {
        () = receive => {}
        () = send => {}
        () = follow_tools(&pages, id, &connection, &changed) => {}
        () = tell(told, &to_page) => {}
    }
    if let Some(pages) = pages.upgrade() {
        pages.remove(id);
    }
    connection.close().await;
}

/// Lists the tools now and whenever they change.
async fn follow_tools(pages: &Weak<Pages>, id: PageId, connection: &Connection, changed: &Notify) {
    loop {
        let listed =
            timeout(LIST_LIMIT, connection.tools_with(CallOptions { refresh: true, ..CallOptions::default() }));
        let Some(pages) = pages.upgrade() else { return };
        match listed.await {
            Ok(Ok(tools)) => pages.replace_tools(id, &tools),
            Ok(Err(error)) => pages.note(&format!("a page does not list its tools: {}", error.message())),
            Err(_) => pages.note("a page does not list its tools in time"),
        }
        drop(pages);
        changed.notified().await;
        // Several changes at once are one.
        sleep(SETTLING).await;
    }
}

/// Tells the page what became of its tools.
async fn tell(mut told: watch::Receiver<RawJson>, to_page: &QueueSender<ProcessEvent>) {
    while told.changed().await.is_ok() {
        let params = told.borrow_and_update().clone();
        let message = format!(r#"{{"jsonrpc":"2.0","method":"{EXPOSED}","params":{}}}"#, params.as_str());
        if !to_page.send(ProcessEvent::Message(message)).await {
            return;
        }
    }
    std::future::pending().await
}

/// What the shim calls itself to pages and agents.
pub(crate) fn shim_info() -> Implementation {
    Implementation {
        name: env!("CARGO_BIN_NAME").to_owned(),
        title: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The notification of `crablet.v1` that tells a page which of its tools are offered.
const EXPOSED: &str = "notifications/crablet/exposed";

/// How long a page may take to list its tools.
const LIST_LIMIT: Duration = Duration::from_secs(30);

/// How long further changes are waited for.
const SETTLING: Duration = Duration::from_millis(50);
