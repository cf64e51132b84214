//! The task of one child behind the HTTP front: the process on one side, HTTP exchanges on the other, the machine between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crablet::host::mcp::{LaneSender, OpenExchange};
use crablet::jsonrpc::{RpcError, code};
use crablet::mcp::server::http::{EventId, Exchange, Lane, Piece, PostedRequest};
use crablet::mcp::transport::shim::ServerEra;
use crablet::native::now;
use crablet::native::process::{ExitReport, ProcessEvent, ServerProcess};
use futures_channel::mpsc as unbounded;
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::bridge::{Bridge, Call, Callers, Input, failure};
use super::grants::HttpGrant;
use super::streams::Streams;
use crate::grants::{GrantFile, Kept};
use crate::limits::Limits;
use crate::log::{Flood, show_server_line};
use crate::sessions::Place;

/// The way to a child's task. It ends with the task.
#[derive(Clone, Debug)]
pub(crate) struct ChildHandle {
    commands: mpsc::Sender<Command>,
    left: unbounded::UnboundedSender<Exchange>,
    next_exchange: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Command {
    Call(Call, LaneSender),
    Input(Input),
    /// Opens the stream for what belongs to no request, or takes up a stream after an event; that stream, or nothing when
    /// it cannot be taken up.
    Listen(Exchange, LaneSender, Option<EventId>, oneshot::Sender<Option<Exchange>>),
    End,
}

impl ChildHandle {
    pub(crate) fn is_over(&self) -> bool {
        self.commands.is_closed()
    }

    /// Waits until the child is over.
    #[cfg(feature = "nats")]
    pub(crate) async fn over(&self) {
        self.commands.closed().await;
    }

    /// Sends a request; `None` when the child has just ended.
    pub(crate) async fn call(&self, asked: PostedRequest) -> Option<OpenExchange> {
        let (sender, open) = self.open();
        let PostedRequest { id, method, params, headers, .. } = asked;
        let call = Call { exchange: open.exchange, id, method, params, headers };
        self.commands.send(Command::Call(call, sender)).await.ok()?;
        Some(open)
    }

    /// Sends what has no answer; `false` when the child has just ended.
    pub(crate) async fn tell(&self, input: Input) -> bool {
        self.commands.send(Command::Input(input)).await.is_ok()
    }

    /// Opens the session's own stream, or takes up one after an event; `None` when that is no longer possible.
    pub(crate) async fn listen(&self, after: Option<EventId>) -> Option<OpenExchange> {
        let (sender, mut open) = self.open();
        let (outcome, found) = oneshot::channel();
        self.commands.send(Command::Listen(open.exchange, sender, after, outcome)).await.ok()?;
        open.exchange = found.await.ok()??;
        Some(open)
    }

    /// Ends the child. It takes nothing more when this returns, though its process may still be there.
    pub(crate) async fn end(&self) {
        // It may just have ended.
        let _ = self.commands.send(Command::End).await;
        self.commands.closed().await;
    }

    fn open(&self) -> (LaneSender, OpenExchange) {
        let exchange = Exchange(self.next_exchange.fetch_add(1, Ordering::Relaxed));
        OpenExchange::new(exchange, self.left.clone())
    }
}

/// What a child is made of beside its process.
#[derive(Debug)]
pub(crate) struct ChildOptions {
    pub(crate) server: String,
    pub(crate) key_id: String,
    /// Where the token is looked for; `None` where there is no token, over NATS.
    pub(crate) grants: Option<GrantFile<HttpGrant>>,
    pub(crate) limits: Limits,
    pub(crate) callers: Callers,
    pub(crate) era: ServerEra,
    /// How long it lives without anyone who waits for it.
    pub(crate) idle: Duration,
    pub(crate) nonce: String,
}

/// The child's task, and the way to it.
pub(crate) fn child(
    options: ChildOptions,
    process: ServerProcess,
    place: Place,
    shutdown: watch::Receiver<bool>,
) -> (ChildHandle, impl Future<Output = ()>) {
    let (commands, orders) = mpsc::channel(COMMAND_QUEUE);
    let (left, leaving) = unbounded::unbounded();
    let handle = ChildHandle { commands, left, next_exchange: Arc::new(AtomicU64::new(1)) };
    (handle, run(options, process, place, (orders, leaving, shutdown)))
}

type Ways = (mpsc::Receiver<Command>, unbounded::UnboundedReceiver<Exchange>, watch::Receiver<bool>);

async fn run(
    options: ChildOptions,
    process: ServerProcess,
    place: Place,
    (mut orders, mut leaving, mut shutdown): Ways,
) {
    let ServerProcess { input, mut output, mut log } = process;
    let mut bridge = Bridge::new(options.callers, options.era, &options.nonce);
    let mut streams = Streams::new(options.callers);
    let mut flood = Flood::new();
    let mut look = interval(LOOK_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (started, mut moved, mut used) = (Instant::now(), Instant::now(), Instant::now());
    let mut exited: Option<ExitReport> = None;
    let ended = |reason: &str| format!("the server {:?} was ended: {reason}", options.server);
    let ending = loop {
        while let Some(output) = bridge.poll() {
            streams.take(output);
        }
        if let Some(report) = &exited {
            break report.describe(&options.server);
        }
        if streams.are_used() {
            used = Instant::now();
        }
        let due = bridge.timer();
        tokio::select! {
            Some(order) = orders.recv() => {
                used = Instant::now();
                match order {
                    Command::Call(call, lane) => {
                        if let Some(call) = streams.open(call, lane) {
                            bridge.handle(now(), Input::Call(call));
                        }
                    }
                    Command::Input(input) => bridge.handle(now(), input),
                    Command::Listen(stream, lane, after, outcome) => {
                        // A client that is gone again leaves below.
                        let _ = outcome.send(streams.listen(stream, lane, after));
                    }
                    Command::End => break ended("the session was ended"),
                }
            },
            Some(exchange) = leaving.next() => {
                used = Instant::now();
                if streams.left(exchange) {
                    bridge.handle(now(), Input::Left(exchange));
                }
            },
            ready = input.ready(), if streams.has_lines() => match ready {
                Ok(place) => {
                    moved = Instant::now();
                    if let Some(line) = streams.next_line() {
                        place.send(line);
                    }
                }
                // Its exit is about to be told.
                Err(_) => streams.forget_lines(),
            },
            Some(event) = output.next() => match event {
                ProcessEvent::Message(line) => {
                    moved = Instant::now();
                    bridge.handle(now(), Input::Child(line));
                }
                ProcessEvent::Exited(report) => {
                    bridge.handle(now(), Input::ChildEnded(report.describe(&options.server)));
                    exited = Some(report);
                }
            },
            Some(line) = log.recv() => show_server_line(&options.server, &line, &mut flood),
            () = wait_until(due) => bridge.handle(now(), Input::Timer),
            _ = look.tick() => {
                if is_revoked(&options) {
                    break ended("the token was revoked");
                }
            },
            () = sleep_until(used + options.idle), if !streams.are_used() => break ended("nobody used the process"),
            () = end_of(moved, options.limits.idle) => break ended("the process was idle for too long"),
            () = end_of(started, options.limits.lifetime) => break ended("the process has reached its greatest age"),
            _ = shutdown.changed() => break ended("crablet-shim was stopped"),
        }
    };
    if exited.is_none() {
        bridge.handle(now(), Input::ChildEnded(ending.clone()));
        while let Some(output) = bridge.poll() {
            streams.take(output);
        }
    }
    if let Some(report) = &exited {
        place.ended_by_itself(report);
    }
    // What was on its way here is answered like what was at work.
    orders.close();
    while let Some(order) = orders.recv().await {
        if let Command::Call(call, lane) = order {
            let message = failure(&call.id, RpcError::new(code::INTERNAL_ERROR, ending.clone()));
            lane.give(Piece { id: None, message, is_last: true });
        }
    }
    // Whoever comes now is told that it is too late.
    drop((orders, leaving, streams, input));
    while exited.is_none() && !matches!(output.next().await, Some(ProcessEvent::Exited(_)) | None) {}
    // Its last words are in the log, however quickly its callers were gone.
    while let Ok(line) = log.try_recv() {
        show_server_line(&options.server, &line, &mut flood);
    }
}

fn is_revoked(options: &ChildOptions) -> bool {
    let Some(grants) = &options.grants else { return false };
    grants.read().is_ok_and(|grants| !grants.iter().any(|grant| grant.key_id() == options.key_id))
}

async fn wait_until(due: Option<crablet::Millis>) {
    match due {
        Some(due) => sleep(Duration::from_millis(due.since(now()))).await,
        None => std::future::pending().await,
    }
}

/// When so much time has passed since a moment; never without a limit.
async fn end_of(since: Instant, limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep_until(since + limit).await,
        None => std::future::pending().await,
    }
}

/// Orders between HTTP and a child's task, which takes them at once.
const COMMAND_QUEUE: usize = 16;

/// How often a child looks whether its token is still good.
const LOOK_INTERVAL: Duration = Duration::from_secs(20);

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
