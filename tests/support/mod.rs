//! A host whose time, network and randomness are scripted, so that whole runs are tested without waiting and always end
//! the same way.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests may panic")]

mod exchange;
mod executor;
mod model;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex};

use crablet::host::{Host, MaybeSend, Socket};
use crablet::model::{HttpRequest, ResponseHead};
use crablet::{Error, ErrorKind, Millis};

pub(crate) use exchange::{Exchange, ScriptedBody};
pub(crate) use executor::VirtualTime;
pub(crate) use model::ScriptedModel;

/// A host that answers each request with the next exchange of its script, in virtual time.
#[derive(Clone, Default)]
pub(crate) struct ScriptedHost {
    time: VirtualTime,
    network: Arc<Mutex<Network>>,
}

#[derive(Default)]
struct Network {
    script: VecDeque<Exchange>,
    requests: Vec<HttpRequest>,
    aborted: usize,
    chunks_read: usize,
}

impl ScriptedHost {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the answer to a further request.
    pub(crate) fn then(self, exchange: Exchange) -> Self {
        self.network.lock().unwrap().script.push_back(exchange);
        self
    }

    /// Runs a future to its end; panics when nothing can happen any more.
    pub(crate) fn drop_spawned(&self) {
        self.time.drop_spawned();
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.time.block_on(future)
    }

    /// How many chunks were taken from the network.
    pub(crate) fn chunks_read(&self) -> usize {
        self.network.lock().unwrap().chunks_read
    }

    /// Waits in virtual time.
    pub(crate) async fn pause(&self, milliseconds: u64) {
        self.time.sleep(milliseconds).await;
    }

    /// A model that answers from a script in this host's time.
    pub(crate) fn model(&self) -> ScriptedModel {
        ScriptedModel::new(self.time.clone())
    }

    /// How many milliseconds have passed, whatever the wall clock says.
    pub(crate) fn elapsed(&self) -> u64 {
        self.time.elapsed()
    }

    /// Sets the wall clock back.
    pub(crate) fn set_back(&self, milliseconds: u64) {
        self.time.set_back(milliseconds);
    }

    /// Sets the wall clock forward.
    pub(crate) fn set_forward(&self, milliseconds: u64) {
        self.time.set_forward(milliseconds);
    }

    /// How many sleeps are pending.
    pub(crate) fn sleepers(&self) -> usize {
        self.time.sleepers()
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<HttpRequest> {
        self.network.lock().unwrap().requests.clone()
    }

    /// How many requests were closed by this side before their answer was complete.
    pub(crate) fn aborted(&self) -> usize {
        self.network.lock().unwrap().aborted
    }
}

/// Sees what becomes of an exchange.
pub(crate) struct Observer(Arc<Mutex<Network>>);

impl Observer {
    fn aborted(&self) {
        self.0.lock().unwrap().aborted += 1;
    }

    fn chunk_read(&self) {
        self.0.lock().unwrap().chunks_read += 1;
    }
}

impl Host for ScriptedHost {
    type Body = ScriptedBody;
    type Socket = NoSocket;

    fn fetch(
        &self,
        request: HttpRequest,
    ) -> impl Future<Output = Result<(ResponseHead, ScriptedBody), Error>> + MaybeSend + 'static {
        let exchange = {
            let mut network = self.network.lock().unwrap();
            network.requests.push(request);
            network.script.pop_front().expect("a request that the script does not have")
        };
        exchange.perform(self.time.clone(), Observer(self.network.clone()))
    }

    fn connect(
        &self,
        _url: String,
        _protocols: Vec<String>,
    ) -> impl Future<Output = Result<NoSocket, Error>> + MaybeSend + 'static {
        std::future::ready(Err(Error::new(ErrorKind::Network, "the script has no sockets")))
    }

    fn sleep(&self, milliseconds: u64) -> impl Future<Output = ()> + MaybeSend + 'static {
        self.time.sleep(milliseconds)
    }

    fn now(&self) -> Millis {
        self.time.now()
    }

    fn random(&self) -> Result<[u8; 16], Error> {
        Ok([7; 16])
    }

    fn spawn(&self, future: impl Future<Output = ()> + MaybeSend + 'static) {
        self.time.spawn(Box::pin(future));
    }
}

/// A socket that cannot be made.
pub(crate) enum NoSocket {}

impl Socket for NoSocket {
    fn protocol(&self) -> &str {
        match *self {}
    }

    async fn send(&mut self, _frame: Vec<u8>) -> Result<(), Error> {
        match *self {}
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match *self {}
    }

    fn close_reason(&self) -> Option<(u16, String)> {
        match *self {}
    }
}
