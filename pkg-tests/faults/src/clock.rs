//! A host whose long waits are short: who waits in vain for a minute learns it after a second and a half.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crablet::host::{Host, MaybeSend};
use crablet::model::{HttpRequest, ResponseHead};
use crablet::native::{HttpBody, NativeHost, WebSocket};
use crablet::{Error, Millis};

/// Waits from here on are short, in milliseconds.
const LONG: u64 = 2_000;

/// So many times as short.
const HURRY: u64 = 40;

/// The native host, with real sockets and real HTTP, and a clock that jumps ahead when a long wait is over.
#[derive(Clone, Debug)]
pub(crate) struct HurriedHost {
    inner: NativeHost,
    /// How far the clock is ahead.
    ahead: Arc<AtomicU64>,
    /// How many futures run in the background.
    pub(crate) tasks: Arc<AtomicUsize>,
    /// Where WebSockets really go.
    sockets: Option<(SocketAddr, u64)>,
}

impl HurriedHost {
    pub(crate) fn new(inner: NativeHost, tasks: Arc<AtomicUsize>) -> Self {
        Self { inner, ahead: Arc::default(), tasks, sockets: None }
    }

    /// The same connections and tasks, with a clock of its own, and WebSockets that take the way of a script.
    pub(crate) fn of_script(&self, proxy: SocketAddr, seed: u64) -> Self {
        Self { ahead: Arc::default(), sockets: Some((proxy, seed)), ..self.clone() }
    }
}

impl Host for HurriedHost {
    type Body = HttpBody;
    type Socket = WebSocket;

    fn fetch(
        &self,
        request: HttpRequest,
    ) -> impl Future<Output = Result<(ResponseHead, HttpBody), Error>> + MaybeSend + 'static {
        self.inner.fetch(request)
    }

    fn connect(
        &self,
        url: String,
        protocols: Vec<String>,
    ) -> impl Future<Output = Result<WebSocket, Error>> + MaybeSend + 'static {
        let url = self.sockets.map_or(url, |(proxy, seed)| format!("ws://{proxy}/shim/{seed}"));
        self.inner.connect(url, protocols)
    }

    fn sleep(&self, milliseconds: u64) -> impl Future<Output = ()> + MaybeSend + 'static {
        let (inner, ahead) = (self.inner.clone(), self.ahead.clone());
        async move {
            if milliseconds < LONG {
                return inner.sleep(milliseconds).await;
            }
            let until = inner.now().0 + ahead.load(Ordering::Relaxed) + milliseconds;
            inner.sleep(milliseconds / HURRY).await;
            ahead.fetch_max(until.saturating_sub(inner.now().0), Ordering::Relaxed);
        }
    }

    fn now(&self) -> Millis {
        Millis(self.inner.now().0 + self.ahead.load(Ordering::Relaxed))
    }

    fn random(&self) -> Result<[u8; 16], Error> {
        self.inner.random()
    }

    fn spawn(&self, future: impl Future<Output = ()> + MaybeSend + 'static) {
        let counted = Counted::new(self.tasks.clone());
        self.inner.spawn(async move {
            let _counted = counted;
            future.await;
        });
    }
}

/// Counts a task until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(tasks: Arc<AtomicUsize>) -> Self {
        tasks.fetch_add(1, Ordering::Relaxed);
        Self(tasks)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
