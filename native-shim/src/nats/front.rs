//! The services, and what all their calls share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use async_nats::service::endpoint::Endpoint;
use async_nats::service::{Service, ServiceExt};
use futures_util::StreamExt;
use hyper::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::absences::Absences;
use super::call::{Place, refuse, serve_call};
use super::options::{NatsArguments, NatsError};
use super::reply::Reply;
use crate::config::Server;
use crate::http::children::Children;
use crate::listener::Shim;
use crate::log::note;

/// The way in over NATS, from its start to [`drain`](Self::drain).
pub(crate) struct NatsFront {
    calls: Arc<Calls>,
    services: Vec<Service>,
    takers: JoinSet<()>,
}

/// What calls have in common.
pub(super) struct Calls {
    pub(super) client: Client,
    pub(super) shim: Arc<Shim>,
    pub(super) children: Children,
    pub(super) absences: Absences,
    pub(super) leaving: CancellationToken,
    pub(super) prefix: String,
    sessions_only: Vec<String>,
    places: Arc<Semaphore>,
    /// By the reply subjects, which the callers know.
    open: Mutex<HashMap<String, CancellationToken>>,
}

/// A call that can be cancelled, until this is dropped.
pub(super) struct Cancellable {
    calls: Arc<Calls>,
    subject: String,
    pub(super) cancelled: CancellationToken,
}

impl NatsFront {
    /// Serves what the flags name; `None` when they name no NATS server.
    pub(crate) async fn start(arguments: &NatsArguments, shim: Arc<Shim>) -> Result<Option<Self>, NatsError> {
        let Some(url) = &arguments.nats else { return Ok(None) };
        arguments.check_names(&shim.config())?;
        let client = arguments.connect(url).await?;
        let calls = Arc::new(Calls {
            absences: Absences::listen(&client).await?,
            client,
            shim,
            children: Children::new(None),
            leaving: CancellationToken::new(),
            prefix: arguments.nats_prefix.clone(),
            sessions_only: arguments.nats_stateful.clone(),
            places: Arc::new(Semaphore::new(MAX_CALLS)),
            open: Mutex::default(),
        });
        let mut front = Self { calls, services: Vec::new(), takers: JoinSet::new() };
        for name in &arguments.nats_servers {
            let refused = |error| NatsError::Serve { server: name.clone(), error };
            front.serve(name, &arguments.nats_queue).await.map_err(refused)?;
            note(format!(
                "serves {name:?} over NATS at {}.{name}, in the queue group {}: whoever may publish there may use it",
                arguments.nats_prefix, arguments.nats_queue
            ));
        }
        front
            .calls
            .client
            .flush()
            .await
            .map_err(|error| NatsError::Serve { server: arguments.nats_servers.join(", "), error: error.into() })?;
        Ok(Some(front))
    }

    async fn serve(&mut self, name: &str, queue: &str) -> Result<(), async_nats::Error> {
        let calls = &self.calls;
        let subject = format!("{}.{name}", calls.prefix);
        let service = calls
            .client
            .service_builder()
            .description(format!("The MCP server {name}, by crablet-shim"))
            .queue_group(queue)
            .start(name, env!("CARGO_PKG_VERSION"))
            .await?;
        let plain = service.endpoint_builder().name(name).add(&subject).await?;
        let stream = service.endpoint_builder().name(format!("{name}-stream")).add(format!("{subject}.stream")).await?;
        for (endpoint, is_stream) in [(plain, false), (stream, true)] {
            self.takers.spawn(take_calls(Arc::clone(calls), name.into(), endpoint, is_stream));
        }
        // Not in the queue group: only the caller knows the call, and no shim but its own.
        let mut cancellations = calls.client.subscribe(format!("{subject}.cancel")).await?;
        let known = Arc::clone(calls);
        tokio::spawn(async move {
            while let Some(message) = cancellations.next().await {
                if let Ok(subject) = std::str::from_utf8(&message.payload)
                    && let Some(cancelled) = known.open().get(subject)
                {
                    cancelled.cancel();
                }
            }
        });
        self.services.push(service);
        Ok(())
    }

    /// Leaves the queue group, and waits for the calls that are at work, though not for ever.
    pub(crate) async fn drain(mut self) {
        self.calls.leaving.cancel();
        while self.takers.join_next().await.is_some() {}
        let all = u32::try_from(MAX_CALLS).unwrap_or(u32::MAX);
        if timeout(DRAIN_LIMIT, self.calls.places.acquire_many(all)).await.is_err() {
            note("calls over NATS were still at work when the time to finish them was over");
        }
        // Without a connection there is nowhere to send the last answers to.
        if self.calls.client.connection_state() == State::Connected {
            let _ = timeout(FLUSH_LIMIT, self.calls.client.flush()).await;
        }
    }
}

impl Calls {
    /// Takes a call, or answers that there are too many.
    pub(super) fn take(self: &Arc<Self>, place: Place, payload: Bytes, reply: Reply) {
        let permit = Arc::clone(&self.places).try_acquire_owned();
        let calls = Arc::clone(self);
        tokio::spawn(async move {
            match permit {
                _ if calls.leaving.is_cancelled() && place.is_session() => {
                    refuse(&payload, reply, place.leaving()).await
                }
                Ok(permit) => calls.work(place, payload, reply, permit).await,
                Err(_) => {
                    let sentence = format!("the shim works on {MAX_CALLS} calls already, and has not begun this one");
                    refuse(&payload, reply, (crablet::jsonrpc::code::INTERNAL_ERROR, sentence)).await;
                }
            }
        });
    }

    async fn work(
        self: &Arc<Self>,
        place: Place,
        payload: Bytes,
        reply: Reply,
        _place_among_calls: OwnedSemaphorePermit,
    ) {
        serve_call(self, place, &payload, reply).await;
    }

    /// How a server is configured now.
    pub(super) fn server(&self, name: &str) -> Option<Server> {
        self.shim.config().servers.get(name).cloned()
    }

    pub(super) fn is_sessions_only(&self, name: &str) -> bool {
        self.sessions_only.iter().any(|other| other == name)
    }

    /// Lets a call be cancelled by its reply subject.
    pub(super) fn cancellable(self: &Arc<Self>, subject: &str) -> Cancellable {
        let cancelled = CancellationToken::new();
        self.open().insert(subject.to_owned(), cancelled.clone());
        Cancellable { calls: Arc::clone(self), subject: subject.to_owned(), cancelled }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        self.calls.open().remove(&self.subject);
    }
}

/// Takes the calls of one endpoint until the shim leaves.
async fn take_calls(calls: Arc<Calls>, name: Arc<str>, mut endpoint: Endpoint, is_stream: bool) {
    let leaving = calls.leaving.clone();
    let mut is_leaving = false;
    loop {
        let request = tokio::select! {
            request = endpoint.next() => request,
            () = leaving.cancelled(), if !is_leaving => {
                is_leaving = true;
                // What has come already is still given; a connection that is gone gives nothing more.
                let _ = endpoint.stop().await;
                continue;
            }
        };
        let Some(request) = request else { return };
        let payload = request.message.payload.clone();
        // What can be answered nowhere is not begun.
        if let Some(reply) = Reply::of(&calls.client, request, is_stream) {
            calls.take(Place::Server(Arc::clone(&name)), payload, reply);
        }
    }
}

/// The most calls over NATS that one shim works on. Each child has its own limit too.
const MAX_CALLS: usize = 1_024;

/// How long a shim that is told to end waits for calls.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// How long the last answers may take to the NATS server.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);
