use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_channel::mpsc;
use futures_util::future::{AbortHandle, Aborted, abortable};
use futures_util::stream::{FuturesUnordered, Stream, StreamExt};

use super::call::fitted;
use super::{Functions, McpServer, ServerCall};
use crate::host::effects::no_panic;
use crate::host::mcp::{PipeEnd, send};
use crate::host::{BoxFuture, CancelToken, MaybeSend};
use crate::json::RawJson;
use crate::mcp::server::{CallNumber, LogLevel, Notice, Outcome, Outgoing, PendingCall, Server};
use crate::ordered_map::OrderedMap;

/// What goes to the client beside answers. It is written as fast as the client reads; beyond, reports are left out.
const REPORT_LIMIT: usize = 256;

/// What a function tells the client while it works.
#[derive(Debug)]
pub(super) enum Report {
    Line { about: RawJson, line: String },
    Log { call: Box<PendingCall>, level: LogLevel, logger: Option<String>, data: RawJson },
}

/// A message to the client.
#[derive(Debug)]
pub(super) struct Said {
    /// The request that it is about, if it is about one: it may be the answer to it.
    pub(super) about: Option<RawJson>,
    pub(super) line: String,
}

/// Serves one connection while it is polled, until the client's lines end and its calls are over.
pub struct Serving(BoxFuture<'static, ()>);

impl Future for Serving {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Serving").finish_non_exhaustive()
    }
}

/// Changes what a connection serves, from anywhere.
#[derive(Clone, Debug)]
pub struct ServerControl(mpsc::UnboundedSender<Command>);

enum Command {
    Replace(Box<McpServer>),
    Updated(String),
}

impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Command")
    }
}

impl ServerControl {
    /// Serves something else from now on, and tells the client which lists changed. Calls at work go on.
    pub fn replace(&self, server: McpServer) {
        let _is_over = self.0.unbounded_send(Command::Replace(Box::new(server)));
    }

    /// Tells the client that a resource changed, if it follows it.
    pub fn resource_updated(&self, uri: impl Into<String>) {
        let _is_over = self.0.unbounded_send(Command::Updated(uri.into()));
    }
}

impl McpServer {
    /// Serves one connection: lines of the client come in, lines to it go out, one message each. The lines are asked for
    /// only while those that go out are taken.
    pub fn serve<L>(&self, lines: L, out: mpsc::Sender<String>) -> (Serving, ServerControl)
    where
        L: Stream<Item = String> + MaybeSend + Unpin + 'static,
    {
        self.serve_until(lines, Out { sender: out, wrap: |said| said.line }, Ending::AfterCalls, None)
    }

    /// Serves one connection, whose messages are told apart by what they are about.
    pub(super) fn serve_said<L>(
        &self,
        lines: L,
        out: mpsc::Sender<Said>,
        caller: Option<&str>,
    ) -> (Serving, ServerControl)
    where
        L: Stream<Item = String> + MaybeSend + Unpin + 'static,
    {
        self.serve_until(lines, Out { sender: out, wrap: |said| said }, Ending::AtOnce, caller)
    }

    fn serve_until<L, T>(&self, lines: L, out: Out<T>, ending: Ending, caller: Option<&str>) -> (Serving, ServerControl)
    where
        L: Stream<Item = String> + MaybeSend + Unpin + 'static,
        T: MaybeSend + 'static,
    {
        let (commands, controls) = mpsc::unbounded();
        let (reports, reported) = mpsc::channel(REPORT_LIMIT);
        let work = Work {
            machine: self.machine(),
            functions: self.functions.clone(),
            lines,
            out,
            ending,
            caller: caller.map(Arc::from),
            reports,
            reported,
            controls,
            running: OrderedMap::new(),
            calls: FuturesUnordered::new(),
        };
        (Serving(Box::pin(work.run())), ServerControl(commands))
    }

    /// Serves the client at the other end of a pipe, in the same program.
    pub fn serve_pipe(&self, end: PipeEnd) -> (Serving, ServerControl) {
        let PipeEnd { mut sender, receiver } = end;
        let (out, mut lines) = mpsc::channel::<String>(1);
        let messages = receiver.map(|message| message.as_str().to_owned());
        let out = Out { sender: out, wrap: |said| said.line };
        let (serving, control) = self.serve_until(messages, out, Ending::AtOnce, None);
        let forward = async move {
            while let Some(line) = lines.next().await {
                let Ok(message) = RawJson::parse(line) else { continue };
                if !send(&mut sender, message).await {
                    return;
                }
            }
        };
        let both = async move {
            futures_util::future::join(serving, forward).await;
        };
        (Serving(Box::pin(both)), control)
    }
}

/// Where messages to the client go, and in which form.
struct Out<T> {
    sender: mpsc::Sender<T>,
    wrap: fn(Said) -> T,
}

/// One connection.
struct Work<L, T> {
    machine: Server,
    functions: Arc<Functions>,
    lines: L,
    out: Out<T>,
    ending: Ending,
    caller: Option<Arc<str>>,
    reports: mpsc::Sender<Report>,
    reported: mpsc::Receiver<Report>,
    controls: mpsc::UnboundedReceiver<Command>,
    running: OrderedMap<CallNumber, (CancelToken, AbortHandle)>,
    calls: FuturesUnordered<BoxFuture<'static, Result<(PendingCall, Outcome), Aborted>>>,
}

/// What the end of the client's lines means for calls at work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The client may still read: they are answered.
    AfterCalls,
    /// Nobody hears the answers.
    AtOnce,
}

/// What is next.
enum Step {
    Ended(Box<(PendingCall, Outcome)>),
    Aborted,
    Report(Report),
    Command(Command),
    Line(Option<String>),
}

impl<L: Stream<Item = String> + MaybeSend + Unpin, T> Work<L, T> {
    async fn run(mut self) {
        let mut is_open = true;
        while is_open || !self.calls.is_empty() {
            let lines = match poll_fn(|context| self.poll_step(is_open, context)).await {
                Step::Line(Some(line)) => self.take(&line),
                Step::Line(None) if self.ending == Ending::AtOnce => return,
                Step::Line(None) => {
                    is_open = false;
                    Vec::new()
                }
                Step::Ended(ended) => {
                    let (call, outcome) = *ended;
                    self.running.remove(&call.number());
                    let outcome = fitted(&call.request, outcome);
                    let about = call.id().clone();
                    about_request(&about, self.machine.complete(call, outcome))
                }
                Step::Aborted => Vec::new(),
                Step::Report(Report::Line { about, line }) => vec![Said { about: Some(about), line }],
                Step::Report(Report::Log { call, level, logger, data }) => {
                    about_request(call.id(), self.machine.log(&call, level, logger.as_deref(), &data))
                }
                Step::Command(Command::Updated(uri)) => sent(self.machine.resource_updated(&uri)),
                Step::Command(Command::Replace(server)) => {
                    self.functions = server.functions;
                    sent(self.machine.set_catalog(server.catalog))
                }
            };
            for said in lines {
                if !send(&mut self.out.sender, (self.out.wrap)(said)).await {
                    return;
                }
            }
        }
    }

    /// Reports come before the answer that ends their call, and answers before new calls.
    fn poll_step(&mut self, is_open: bool, context: &mut Context<'_>) -> Poll<Step> {
        if let Poll::Ready(Some(report)) = self.reported.poll_next_unpin(context) {
            return Poll::Ready(Step::Report(report));
        }
        if let Poll::Ready(Some(ended)) = self.calls.poll_next_unpin(context) {
            let Ok((call, outcome)) = ended else { return Poll::Ready(Step::Aborted) };
            // What it told last is told before its end.
            return match self.reported.try_recv() {
                Ok(report) => {
                    self.calls.push(Box::pin(std::future::ready(Ok((call, outcome)))));
                    Poll::Ready(Step::Report(report))
                }
                Err(_) => Poll::Ready(Step::Ended(Box::new((call, outcome)))),
            };
        }
        if let Poll::Ready(Some(command)) = self.controls.poll_next_unpin(context) {
            return Poll::Ready(Step::Command(command));
        }
        if !is_open {
            return Poll::Pending;
        }
        self.lines.poll_next_unpin(context).map(Step::Line)
    }

    fn take(&mut self, line: &str) -> Vec<Said> {
        self.look_at_availability();
        match self.machine.handle_line(line) {
            Outgoing::Reply(line) => vec![Said { about: None, line }],
            Outgoing::Listening { subscription, line } => about_request(&subscription, [line]),
            Outgoing::Call(call) => self.start(call),
            Outgoing::Blocked(call) => {
                self.look_at_availability();
                about_request(call.id(), self.machine.gate_reply(&call))
            }
            Outgoing::Cancelled(number) => {
                if let Some((cancel, abort)) = self.running.remove(&number) {
                    cancel.cancel();
                    abort.abort();
                }
                Vec::new()
            }
            Outgoing::None => Vec::new(),
        }
    }

    fn start(&mut self, call: PendingCall) -> Vec<Said> {
        let Some(function) = self.functions.for_request(self.machine.catalog(), &call.request) else {
            let about = call.id().clone();
            let outcome = Outcome::Failed("there is no function for this".to_owned());
            return about_request(&about, self.machine.complete(call, outcome));
        };
        let cancel = CancelToken::new();
        let served = ServerCall::new(call.clone(), self.reports.clone(), cancel.clone(), self.caller.clone());
        let number = call.number();
        let (running, abort) = abortable(async move {
            let outcome = no_panic(async move { function.call(served).await }).await;
            // What the panic says is for whoever runs the server, and the panic hook has told it: it may show anything.
            (call, outcome.unwrap_or_else(|_panic| Outcome::Failed("the server failed inside".to_owned())))
        });
        self.running.insert(number, (cancel, abort));
        self.calls.push(Box::pin(running));
        Vec::new()
    }

    fn look_at_availability(&mut self) {
        if let Some(source) = &self.functions.availability {
            self.machine.set_availability(source.now());
        }
    }
}

/// Nobody hears the end of calls whose connection is gone: their functions are told.
impl<L, T> Drop for Work<L, T> {
    fn drop(&mut self) {
        for (cancel, _) in self.running.values() {
            cancel.cancel();
        }
    }
}

fn sent(notices: Vec<Notice>) -> Vec<Said> {
    notices.into_iter().map(|Notice { subscription, line }| Said { about: subscription, line }).collect()
}

fn about_request(id: &RawJson, lines: impl IntoIterator<Item = String>) -> Vec<Said> {
    lines.into_iter().map(|line| Said { about: Some(id.clone()), line }).collect()
}
