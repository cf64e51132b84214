//! A session of the handshake era: a machine, and the streams that its client has open.

use std::sync::{Arc, Mutex};

use futures_channel::mpsc;
use futures_util::future::{AbortHandle, Either, abortable, select};
use futures_util::stream::StreamExt;

use super::super::serving::Said;
use super::{Framing, HttpResponse, LaneSender, OpenExchange, Sleep, lock};
use crate::host::mcp::{McpServer, ServerControl, send};
use crate::host::{Host, MaybeSend};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{self, Params, RequestId, RpcError, code};
use crate::mcp::protocol::Revision;
use crate::mcp::server::http::{Answer, EventId, Exchange, PostedMessage, PostedRequest, Streams};
use crate::ordered_map::OrderedMap;

/// A handle to a session, which ends with the last one.
#[derive(Clone)]
pub(super) struct Session(Arc<Inner>);

struct Inner {
    caller: Option<String>,
    lines: mpsc::Sender<String>,
    left: mpsc::UnboundedSender<Exchange>,
    control: ServerControl,
    state: Arc<Mutex<State>>,
    task: AbortHandle,
}

struct State {
    streams: Streams<LaneSender>,
    /// The requests at work, by the text of their id.
    exchanges: OrderedMap<String, Exchange>,
    /// When it was used last, counted in uses of all sessions.
    used: u64,
    /// How often something happened.
    happened: u64,
    is_initialized: bool,
}

impl Session {
    /// Begins one. It ends when nobody used it for `idle` milliseconds, or up to twice as long, and is then forgotten.
    pub(super) fn start<H: Host>(
        host: &H,
        server: &McpServer,
        caller: Option<&str>,
        (used, idle): (u64, u64),
        forget: impl FnOnce() + MaybeSend + 'static,
    ) -> Self {
        let (lines, arriving) = mpsc::channel(0);
        let (left, leaving) = mpsc::unbounded();
        let (out, speaking) = mpsc::channel(0);
        let (serving, control) = server.serve_said(arriving, out, caller);
        let state = Arc::new(Mutex::new(State {
            streams: Streams::of_session(),
            exchanges: OrderedMap::new(),
            used,
            happened: 0,
            is_initialized: false,
        }));
        let route = carry(Arc::clone(&state), speaking, leaving);
        let idling = wait_for_idleness(host.clone(), Arc::clone(&state), idle);
        let (working, task) = abortable(async move {
            let work = futures_util::future::join(serving, Box::pin(route));
            select(work, Box::pin(idling)).await;
            forget();
        });
        host.spawn(async move {
            let _is_ended = working.await;
        });
        Self(Arc::new(Inner { caller: caller.map(str::to_owned), lines, left, control, state, task }))
    }

    pub(super) fn is_of(&self, caller: Option<&str>) -> bool {
        self.0.caller.as_deref() == caller
    }

    pub(super) fn is_initialized(&self) -> bool {
        self.state().is_initialized
    }

    pub(super) fn is_used(&self, used: u64) {
        let mut state = self.state();
        state.used = used;
        state.happened += 1;
    }

    /// When it was used last; `None` while somebody waits for it.
    pub(super) fn unused_since(&self) -> Option<u64> {
        let state = self.state();
        (!state.streams.are_used()).then_some(state.used)
    }

    pub(super) fn control(&self) -> &ServerControl {
        &self.0.control
    }

    pub(super) async fn ask(&self, exchange: Exchange, request: PostedRequest, sleep: &Sleep) -> HttpResponse {
        let refused = |message: &str| {
            let error = RpcError::new(code::INVALID_REQUEST, message);
            HttpResponse::from(Answer::failed(400, Some(&request.id), error))
        };
        let (lane, open) = OpenExchange::new(exchange, self.0.left.clone());
        {
            let mut state = self.state();
            let id = request.id.as_str().to_owned();
            if state.exchanges.contains_key(&id) {
                return refused("a request of this id is at work already");
            }
            if !state.streams.open(exchange, lane) {
                state.streams.end(exchange);
                return refused("this session has too many open requests and streams; wait for answers");
            }
            state.exchanges.insert(id, exchange);
        }
        if !self.receive(request.raw.as_str()).await {
            return Answer::no_session().into();
        }
        HttpResponse::of_request(open, Framing::Session, sleep).await
    }

    /// Takes what has no answer; `false` when the session has just ended.
    pub(super) async fn tell(&self, message: PostedMessage) -> bool {
        let raw = match message {
            PostedMessage::Response { raw, .. } => raw,
            PostedMessage::Notification { method, params, raw } => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.member("requestId")
                {
                    let mut state = self.state();
                    if let Some(exchange) = state.exchanges.remove(id.as_str()) {
                        state.streams.end(exchange);
                    }
                }
                raw
            }
        };
        self.receive(raw.as_str()).await
    }

    /// Opens the session's own stream, or takes up one after an event; `None` when that is no longer possible.
    pub(super) fn listen(&self, exchange: Exchange, after: Option<EventId>) -> Option<OpenExchange> {
        let (lane, mut open) = OpenExchange::new(exchange, self.0.left.clone());
        open.exchange = self.state().streams.listen(exchange, lane, after)?;
        Some(open)
    }

    async fn receive(&self, line: &str) -> bool {
        send(&mut self.0.lines.clone(), line.to_owned()).await
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
        // Those who wait are told that nothing follows.
        lock(&self.state).streams = Streams::of_session();
    }
}

/// Carries what the server says to the streams, and hears of clients that are gone.
async fn carry(state: Arc<Mutex<State>>, speaking: mpsc::Receiver<Said>, leaving: mpsc::UnboundedReceiver<Exchange>) {
    let mut both = futures_util::stream::select(speaking.map(Either::Left), leaving.map(Either::Right));
    while let Some(next) = both.next().await {
        let mut state = lock(&state);
        state.happened += 1;
        match next {
            Either::Left(line) => state.take(&line),
            Either::Right(exchange) => {
                let _goes_on = state.streams.left(exchange);
            }
        }
    }
}

impl State {
    fn take(&mut self, Said { about, line }: &Said) {
        let Some((is_answer, id, message)) = said(line) else { return };
        if is_answer {
            self.is_initialized |= Object::parse(line).is_ok_and(|line| line.get("result").is_some());
            if let Some(exchange) = id.and_then(|id| self.exchanges.remove(id.as_str())) {
                self.streams.answer(exchange, message);
            }
            return;
        }
        let exchange = about.as_ref().and_then(|id| self.exchanges.get(id.as_str())).copied();
        self.streams.tell(exchange, message);
    }
}

/// Reads a line of the machine: whether it is an answer, its id, and the message.
pub(super) fn said(line: &str) -> Option<(bool, Option<RawJson>, RawJson)> {
    let message = Object::parse(line).ok()?;
    let (is_answer, id) = (message.get("method").is_none(), message.raw("id"));
    Some((is_answer, id, RawJson::parse(line).ok()?))
}

/// The greeting of a client that can be asked nothing.
pub(super) fn initialize_line(revision: Revision) -> String {
    let params = Params::new().with("protocolVersion", revision.as_str()).with("capabilities", &Params::new());
    jsonrpc::request(&RequestId::Text("initialize".to_owned()), "initialize", &params).as_str().to_owned()
}

async fn wait_for_idleness<H: Host>(host: H, state: Arc<Mutex<State>>, idle: u64) {
    loop {
        let before = lock(&state).happened;
        host.sleep(idle.max(1)).await;
        let state = lock(&state);
        if !state.streams.are_used() && state.happened == before {
            return;
        }
    }
}
