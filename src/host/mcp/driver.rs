use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_channel::{mpsc, oneshot};
use futures_util::future::{AbortHandle, Abortable, abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::lasting::Lasting;
use super::timers::Timers;
use super::{Answerer, Delivery, Observer, OnProgress};
use crate::error::Error;
use crate::host::{BoxFuture, Host};
use crate::json::RawJson;
use crate::jsonrpc::{Params, RpcError, code};
use crate::mcp::client::{
    CallOptions, Client, ClientOptions, Effect, Event, Input, OperationId, QuestionId, Reply, Request, TimerId,
};
use crate::mcp::protocol::ServerInfo;
use crate::mcp::transport::Outbound;
use crate::ordered_map::OrderedMap;

/// What a handle asks of the driver.
pub(super) enum Command {
    Start {
        operation: OperationId,
        request: Request,
        options: CallOptions,
        done: Done,
        on_progress: Option<Box<dyn OnProgress>>,
    },
    Cancel(OperationId),
    Notify {
        method: String,
        params: Params,
    },
    Ready(oneshot::Sender<ServerInfo>),
    Close(oneshot::Sender<()>),
}

type Done = oneshot::Sender<Result<Reply, Error>>;

/// Whom the driver tells and asks.
#[derive(Default)]
pub(super) struct Listeners {
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) answerer: Option<Arc<dyn Answerer>>,
    pub(super) lasting: Lasting,
}

/// What handles can still see when the driver is gone.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) closed: OnceLock<Error>,
}

/// Runs one client: takes commands, hands its messages to the carrier, and its results to their callers.
pub(super) struct Driver<H> {
    host: H,
    client: Client,
    observer: Option<Arc<dyn Observer>>,
    answerer: Option<Arc<dyn Answerer>>,
    lasting: Lasting,
    asked: OrderedMap<QuestionId, AbortHandle>,
    answering: FuturesUnordered<Abortable<BoxFuture<'static, Answered>>>,
    commands: mpsc::UnboundedReceiver<Command>,
    outbound: mpsc::UnboundedSender<Outbound>,
    deliveries: mpsc::Receiver<Delivery>,
    timers: Timers<H, TimerId>,
    callers: OrderedMap<OperationId, Caller>,
    server: Option<ServerInfo>,
    waiting: Vec<oneshot::Sender<ServerInfo>>,
    closers: Vec<oneshot::Sender<()>>,
    has_handles: bool,
    shared: Arc<Shared>,
}

/// A question and its answer.
type Answered = (QuestionId, Result<RawJson, RpcError>);

struct Caller {
    done: Done,
    on_progress: Option<Box<dyn OnProgress>>,
}

/// What the driver waits for.
enum Step {
    Command(Option<Command>),
    Delivery(Option<Delivery>),
    Answered(Answered),
    Timer(TimerId),
}

impl<H: Host> Driver<H> {
    pub(super) fn new(
        host: H,
        options: ClientOptions,
        listeners: Listeners,
        commands: mpsc::UnboundedReceiver<Command>,
        outbound: mpsc::UnboundedSender<Outbound>,
        deliveries: mpsc::Receiver<Delivery>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            timers: Timers::new(host.clone()),
            host,
            client: Client::new(options),
            observer: listeners.observer,
            answerer: listeners.answerer,
            lasting: listeners.lasting,
            asked: OrderedMap::new(),
            answering: FuturesUnordered::new(),
            commands,
            outbound,
            deliveries,
            callers: OrderedMap::new(),
            server: None,
            waiting: Vec::new(),
            closers: Vec::new(),
            has_handles: true,
            shared,
        }
    }

    /// Runs until the connection is over.
    pub(super) async fn run(mut self) {
        loop {
            match poll_fn(|context| self.poll_step(context)).await {
                Step::Command(Some(command)) => self.take_command(command),
                Step::Command(None) => {
                    self.has_handles = false;
                    self.input(Input::Close);
                }
                Step::Delivery(Some(Delivery::Opened(opening))) => self.input(Input::Connect(opening)),
                Step::Delivery(Some(Delivery::Inbound(inbound))) => self.input(Input::Inbound(inbound)),
                // The carrier's last delivery is its end, which ends the client as well.
                Step::Delivery(None) => return,
                Step::Answered((question, outcome)) => {
                    self.asked.remove(&question);
                    self.input(Input::Answer { question, outcome });
                }
                Step::Timer(timer) => self.input(Input::Timer(timer)),
            }
            self.perform_effects();
            if self.tell_events() {
                return;
            }
        }
    }

    /// What has arrived is taken before timers that are due.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        if let Poll::Ready(delivery) = self.deliveries.poll_next_unpin(context) {
            return Poll::Ready(Step::Delivery(delivery));
        }
        if self.has_handles
            && let Poll::Ready(command) = self.commands.poll_next_unpin(context)
        {
            return Poll::Ready(Step::Command(command));
        }
        while let Poll::Ready(Some(ended)) = self.answering.poll_next_unpin(context) {
            if let Ok(answered) = ended {
                return Poll::Ready(Step::Answered(answered));
            }
        }
        self.timers.poll_due(context).map(Step::Timer)
    }

    fn take_command(&mut self, command: Command) {
        match command {
            Command::Start { operation, request, options, done, on_progress } => {
                match self.client.handle(self.host.now(), Input::Start { operation, request, options }) {
                    Ok(()) => drop(self.callers.insert(operation, Caller { done, on_progress })),
                    // A caller that is gone needs no answer.
                    Err(error) => drop(done.send(Err(error))),
                }
            }
            Command::Cancel(operation) => {
                self.callers.remove(&operation);
                self.input(Input::Cancel { operation, reason: "the caller no longer waits".to_owned() });
            }
            Command::Notify { method, params } => self.input(Input::Notify { method, params }),
            Command::Ready(sender) => match &self.server {
                Some(server) => drop(sender.send(server.clone())),
                None => self.waiting.push(sender),
            },
            Command::Close(sender) => {
                self.closers.push(sender);
                self.input(Input::Close);
            }
        }
    }

    /// Only starting an operation can be refused, and that is not done here.
    fn input(&mut self, input: Input) {
        let _ = self.client.handle(self.host.now(), input);
    }

    fn perform_effects(&mut self) {
        while let Some(effect) = self.client.poll_effect() {
            match effect {
                // A carrier that is gone has said so, or will.
                Effect::Send(outbound) => drop(self.outbound.unbounded_send(outbound)),
                Effect::Ask { question, method, params } => self.ask(question, &method, params),
                Effect::Withdraw(question) => {
                    if let Some(handle) = self.asked.remove(&question) {
                        handle.abort();
                    }
                }
                Effect::SetTimer { timer, at } => self.timers.set(timer, at),
                Effect::ClearTimer(timer) => self.timers.clear(timer),
            }
        }
    }

    fn ask(&mut self, question: QuestionId, method: &str, params: RawJson) {
        let Some(answerer) = &self.answerer else {
            let error = RpcError::new(code::METHOD_NOT_FOUND, format!("nobody answers {method}"));
            return self.input(Input::Answer { question, outcome: Err(error) });
        };
        let answering = answerer.answer(method, params);
        let answering: BoxFuture<'static, Answered> = Box::pin(async move { (question, answering.await) });
        let (answering, handle) = abortable(answering);
        self.asked.insert(question, handle);
        self.answering.push(answering);
    }

    /// Tells what happened to whom it concerns; whether the connection is over.
    fn tell_events(&mut self) -> bool {
        let mut is_over = false;
        while let Some(event) = self.client.poll_event() {
            match &event {
                Event::Done { operation, .. } => {
                    let caller = self.callers.remove(operation);
                    if let (Some(caller), Event::Done { outcome, .. }) = (caller, event) {
                        drop(caller.done.send(outcome));
                    }
                    continue;
                }
                Event::Progress { operation, progress } => {
                    let caller = self.callers.get_mut(operation);
                    if let Some(on_progress) = caller.and_then(|caller| caller.on_progress.as_mut()) {
                        on_progress.progress(progress.clone());
                    }
                    continue;
                }
                Event::Connected { server, record, resume_id } => {
                    self.lasting.keep_record(*record);
                    self.lasting.keep_resume_id(resume_id.clone());
                    self.server = Some(server.clone());
                    for sender in self.waiting.drain(..) {
                        drop(sender.send(server.clone()));
                    }
                }
                Event::ToolsChanged => self.lasting.changes.tell(),
                Event::Closed { reason, .. } => {
                    self.lasting.keep_standing(self.client.standing());
                    // Set before callers see their channels close.
                    let _ = self.shared.closed.set(reason.clone());
                    is_over = true;
                }
                _ => {}
            }
            if let Some(observer) = &self.observer {
                observer.observe(&event);
            }
        }
        is_over
    }
}
