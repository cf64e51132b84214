use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_channel::oneshot;
use futures_util::future::{AbortHandle, abortable, select};

use super::super::sent::Sent;
use super::super::under_way::UnderWay;
use super::OAuth;
use super::work::{ProofKey, perform};
use crate::error::{Error, ErrorKind};
use crate::host::Host;
use crate::mcp::client::auth::{Authorizer, Effect, Input, TaskId, Ticket, Work};
use crate::model::{HttpRequest, ResponseHead};
use crate::ordered_map::OrderedMap;

/// How long keeping one value may take before requests go on without it, in milliseconds.
const SAVE_LIMIT: u64 = 10_000;

/// Sends requests with tokens. Clones share the tokens and the authorization under way, which ends with the last of them.
pub(in super::super) struct Authorized<H: Host> {
    inner: Arc<Inner<H>>,
}

impl<H: Host> Clone for Authorized<H> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<H: Host> {
    host: H,
    oauth: Arc<OAuth>,
    key: ProofKey,
    state: Mutex<State>,
}

struct State {
    machine: Authorizer,
    next_ticket: u64,
    /// Requests that wait for what is done with them.
    waiting: OrderedMap<Ticket, oneshot::Sender<Verdict>>,
    working: OrderedMap<TaskId, AbortHandle>,
    /// What is still to be kept, in order.
    unsaved: VecDeque<(String, Option<String>)>,
    saving: UnderWay,
}

/// What is done with a request, or about its refusal.
enum Verdict {
    Send(HttpRequest),
    Pass,
    Fail(Error),
}

impl<H: Host> Authorized<H> {
    /// For the server at this address.
    ///
    /// # Errors
    ///
    /// `invalid-input` when tokens must not be sent there, `internal` when the platform has no source of randomness.
    pub(in super::super) fn new(host: H, url: &str, oauth: OAuth) -> Result<Self, Error> {
        let mut seed = [0; 32];
        for half in seed.chunks_mut(16) {
            half.copy_from_slice(&host.random()?);
        }
        let machine = Authorizer::new(url, oauth.options.clone(), seed)?;
        let state = State {
            machine,
            next_ticket: 0,
            waiting: OrderedMap::new(),
            working: OrderedMap::new(),
            unsaved: VecDeque::new(),
            saving: UnderWay::default(),
        };
        let inner = Inner { host, oauth: Arc::new(oauth), key: ProofKey::default(), state: Mutex::new(state) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Whether tokens are being obtained, so that requests may wait for a person.
    pub(in super::super) fn is_asking(&self) -> bool {
        let state = self.inner.state();
        state.saving.is_begun() || !state.working.is_empty()
    }

    /// Sends a request with a token, and once more with a new one where the server refuses it for that. The tokens are
    /// among what was sent.
    ///
    /// # Errors
    ///
    /// As for [`Host::fetch`], and why there is no token: mostly of kind `auth`.
    pub(in super::super) async fn fetch(
        &self,
        request: HttpRequest,
        sent: &Sent,
    ) -> Result<(ResponseHead, H::Body), Error> {
        let ticket = self.inner.next_ticket();
        let pending = Pending { ticket, inner: &self.inner };
        let mut verdict = pending.ask(Input::Request { ticket, request });
        loop {
            // Without a verdict the connection is over.
            let request = match verdict.await {
                Ok(Verdict::Send(request)) => request,
                Ok(Verdict::Fail(error)) => return Err(error),
                Ok(Verdict::Pass) | Err(_) => return Err(over()),
            };
            self.inner.saved().await;
            sent.remember(&request);
            let (head, body) = self.inner.host.fetch(request).await?;
            let is_refusal = matches!(head.status, 401 | 403);
            verdict = pending.ask(Input::Answered { ticket, head: head.clone() });
            if !is_refusal || matches!(verdict.try_recv(), Ok(Some(Verdict::Pass))) {
                return Ok((head, body));
            }
        }
    }
}

fn over() -> Error {
    Error::new(ErrorKind::ConnectionClosed, "the connection to the MCP server was closed")
}

/// Forgets a request whose future is dropped.
struct Pending<'authorized, H: Host> {
    ticket: Ticket,
    inner: &'authorized Arc<Inner<H>>,
}

impl<H: Host> Pending<'_, H> {
    fn ask(&self, input: Input) -> oneshot::Receiver<Verdict> {
        let (sender, receiver) = oneshot::channel();
        self.inner.state().waiting.insert(self.ticket, sender);
        self.inner.handle(input);
        receiver
    }
}

impl<H: Host> Drop for Pending<'_, H> {
    fn drop(&mut self) {
        self.inner.state().waiting.remove(&self.ticket);
        self.inner.handle(Input::Dropped { ticket: self.ticket });
    }
}

impl<H: Host> Inner<H> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_ticket(&self) -> Ticket {
        let mut state = self.state();
        state.next_ticket += 1;
        Ticket(state.next_ticket)
    }

    fn handle(self: &Arc<Self>, input: Input) {
        let now = self.host.now();
        self.state().machine.handle(now, input);
        loop {
            let Some(effect) = self.state().machine.poll_effect() else { return };
            let (ticket, verdict) = match effect {
                Effect::Send { ticket, request } => (ticket, Verdict::Send(request)),
                Effect::Pass { ticket } => (ticket, Verdict::Pass),
                Effect::Fail { ticket, error } => (ticket, Verdict::Fail(error)),
                Effect::Perform { task, work } => {
                    self.start(task, work);
                    continue;
                }
                Effect::Save { key, value } => {
                    self.save(key, value.map(|value| value.expose().to_owned()));
                    continue;
                }
            };
            if let Some(sender) = self.state().waiting.remove(&ticket) {
                // Whoever asked may be gone.
                let _ = sender.send(verdict);
            }
        }
    }

    /// Keeps a value after those before it: stores may take longer for one than for the next.
    fn save(self: &Arc<Self>, key: String, value: Option<String>) {
        let mut state = self.state();
        state.unsaved.push_back((key, value));
        if state.saving.begin() {
            // What is not kept would have to be obtained anew, so that it also goes on when the connection is over.
            self.host.spawn(self.clone().save_all());
        }
    }

    async fn save_all(self: Arc<Self>) {
        loop {
            let Some((key, value)) = self.next_unsaved() else { return };
            let sleep = Box::pin(self.host.sleep(SAVE_LIMIT));
            // What a store fails at is obtained anew.
            drop(select(self.oauth.store.save(key, value), sleep).await);
        }
    }

    fn next_unsaved(&self) -> Option<(String, Option<String>)> {
        let mut state = self.state();
        let next = state.unsaved.pop_front();
        if next.is_none() {
            state.saving.end();
        }
        next
    }

    /// Resolves once all is kept: a refresh token that was replaced and is lost could not be used again.
    async fn saved(&self) {
        let end = self.state().saving.wait();
        if let Some(end) = end {
            let _ = end.await;
        }
    }

    /// Starts a piece of work, which does not keep the connection alive.
    fn start(self: &Arc<Self>, task: TaskId, work: Work) {
        let work = perform(self.host.clone(), self.oauth.clone(), self.key.clone(), work);
        let (work, handle) = abortable(work);
        self.state().working.insert(task, handle);
        let inner: Weak<Self> = Arc::downgrade(self);
        self.host.spawn(async move {
            if let (Ok(outcome), Some(inner)) = (work.await, inner.upgrade()) {
                inner.state().working.remove(&task);
                inner.handle(Input::Done { task, outcome });
            }
        });
    }
}

impl<H: Host> Drop for Inner<H> {
    fn drop(&mut self) {
        for handle in std::mem::take(&mut self.state().working).into_values() {
            handle.abort();
        }
    }
}
