use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{AbortHandle, Abortable, Either, abortable, select};
use futures_util::stream::{FuturesUnordered, StreamExt};

#[cfg(feature = "oauth")]
use super::auth::OAuth;
use super::network::Network;
use super::timers::Timers;
use super::{Carrier, Delivery};
use crate::error::Error;
use crate::host::{Body, BoxFuture, Host, MaybeSend, MaybeSync};
use crate::mcp::client::Opening;
use crate::mcp::transport::streamable_http::{Effect, ExchangeId, Input, StreamableHttp, StreamableHttpOptions};
use crate::mcp::transport::{Inbound, Outbound};
use crate::model::{HttpRequest, ResponseHead};
use crate::ordered_map::OrderedMap;
use crate::planted::{self, Defect};

/// How often the client is told that a request still waits for tokens, in milliseconds: more often than any of its limits
/// ends.
const ASKING_INTERVAL: u64 = 15_000;

/// An MCP server that is reached over Streamable HTTP.
#[derive(Clone)]
pub struct HttpServer {
    /// Its address, and how to use it.
    pub options: StreamableHttpOptions,
    /// Further headers of every request, such as `authorization`.
    pub headers: Option<Arc<dyn HeaderSource>>,
    /// How tokens are obtained when the server wants some.
    #[cfg(feature = "oauth")]
    pub auth: Option<OAuth>,
}

impl HttpServer {
    /// The server at this address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            options: StreamableHttpOptions::new(url),
            headers: None,
            #[cfg(feature = "oauth")]
            auth: None,
        }
    }

    /// Adds headers to every request.
    #[must_use]
    pub fn headers(mut self, source: impl HeaderSource) -> Self {
        self.headers = Some(Arc::new(source));
        self
    }

    /// Obtains tokens when the server wants some.
    #[cfg(feature = "oauth")]
    #[must_use]
    pub fn auth(mut self, auth: OAuth) -> Self {
        self.auth = Some(auth);
        self
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpServer").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Supplies headers, anew for each request, so that short-lived tokens work. Names are in lower case.
///
/// Implemented by a list of headers that never change, and by closures that give a future of one.
pub trait HeaderSource: MaybeSend + MaybeSync + 'static {
    /// The headers of the next request.
    ///
    /// # Errors
    ///
    /// Whatever kept it from getting them; fails the request.
    fn headers(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, Error>>;
}

impl HeaderSource for Vec<(String, String)> {
    fn headers(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, Error>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

impl<F, Supplying> HeaderSource for F
where
    F: Fn() -> Supplying + MaybeSend + MaybeSync + 'static,
    Supplying: Future<Output = Result<Vec<(String, String)>, Error>> + MaybeSend + 'static,
{
    fn headers(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, Error>> {
        Box::pin(self())
    }
}

/// Carries the messages of one client over HTTP until the connection is over.
pub(super) async fn carry<H: Host>(
    network: Network<H>,
    endpoint: StreamableHttpOptions,
    headers: Option<Arc<dyn HeaderSource>>,
    carrier: Carrier,
) {
    let host = network.host().clone();
    let mut http = Http {
        network,
        machine: StreamableHttp::new(endpoint),
        headers,
        timers: Timers::new(host.clone()),
        host,
        carrier,
        running: OrderedMap::new(),
        work: FuturesUnordered::new(),
    };
    http.run().await;
}

struct Http<H: Host> {
    network: Network<H>,
    host: H,
    machine: StreamableHttp,
    headers: Option<Arc<dyn HeaderSource>>,
    carrier: Carrier,
    timers: Timers<H, ExchangeId>,
    running: OrderedMap<ExchangeId, AbortHandle>,
    work: FuturesUnordered<Abortable<Working<H::Body>>>,
}

type Working<B> = BoxFuture<'static, Progress<B>>;

/// How far an exchange came.
enum Progress<B> {
    /// No head yet; the request is still on its way.
    Waiting(ExchangeId, Working<B>),
    Head(ExchangeId, Result<(ResponseHead, B), Error>),
    Chunk(ExchangeId, B, Result<Option<Vec<u8>>, Error>),
}

/// What the carrier waits for.
enum Step<B> {
    Outbound(Option<Outbound>),
    Progress(Progress<B>),
    Timer(ExchangeId),
}

impl<H: Host> Http<H> {
    async fn run(&mut self) {
        if !self.carrier.deliver(Delivery::Opened(Opening::default())).await {
            return;
        }
        loop {
            match poll_fn(|context| self.poll_step(context)).await {
                Step::Outbound(Some(outbound)) => self.input(Input::Outbound(outbound)),
                // The client is gone: dropping the exchanges aborts them.
                Step::Outbound(None) => return,
                Step::Progress(progress) => self.take_progress(progress),
                Step::Timer(exchange) => self.input(Input::Timer { exchange }),
            }
            while let Some(effect) = self.machine.poll_effect() {
                match effect {
                    Effect::Fetch { exchange, request } => self.fetch(exchange, request),
                    Effect::Abort { exchange } => {
                        if let Some(handle) = self.running.remove(&exchange) {
                            handle.abort();
                        }
                    }
                    Effect::SetTimer { exchange, at } => self.timers.set(exchange, at),
                    Effect::ClearTimer { exchange } => self.timers.clear(exchange),
                    Effect::Deliver(mut inbound) => {
                        self.network.sent().redact_inbound(&mut inbound);
                        let is_last = matches!(inbound, Inbound::Closed { .. });
                        if !self.carrier.deliver(Delivery::Inbound(inbound)).await || is_last {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// What has arrived is taken before timers that are due.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step<H::Body>> {
        if let Poll::Ready(outbound) = self.carrier.outbound.poll_next_unpin(context) {
            return Poll::Ready(Step::Outbound(outbound));
        }
        while let Poll::Ready(Some(ended)) = self.work.poll_next_unpin(context) {
            if let Ok(progress) = ended {
                return Poll::Ready(Step::Progress(progress));
            }
        }
        self.timers.poll_due(context).map(Step::Timer)
    }

    fn input(&mut self, input: Input) {
        self.machine.handle(self.host.now(), input);
    }

    fn fetch(&mut self, exchange: ExchangeId, mut request: HttpRequest) {
        let (network, headers) = (self.network.clone(), self.headers.clone());
        let fetching = Box::pin(async move {
            if let Some(source) = headers {
                match source.headers().await {
                    Ok(headers) => headers.into_iter().for_each(|(name, value)| request.set_header(&name, value)),
                    Err(error) => return Progress::Head(exchange, Err(error)),
                }
            }
            let again = planted::is(Defect::SendsRequestsTwice).then(|| request.clone());
            let mut fetched = network.fetch(request).await;
            if let Some(again) = again.filter(|_| fetched.is_err()) {
                drop(fetched);
                fetched = network.fetch(again).await;
            }
            Progress::Head(exchange, fetched)
        });
        self.wait_for_head(exchange, fetching);
    }

    /// Waits for an answer, and looks from time to time whether it is tokens that it waits for.
    fn wait_for_head(&mut self, exchange: ExchangeId, fetching: Working<H::Body>) {
        if !self.network.may_ask() {
            return self.start(exchange, fetching);
        }
        let sleep = Box::pin(self.host.sleep(ASKING_INTERVAL));
        let waiting = async move {
            match select(fetching, sleep).await {
                Either::Left((progress, _)) => progress,
                Either::Right((_, fetching)) => Progress::Waiting(exchange, fetching),
            }
        };
        self.start(exchange, Box::pin(waiting));
    }

    fn read(&mut self, exchange: ExchangeId, mut body: H::Body) {
        let reading = async move {
            let chunk = body.next().await;
            Progress::Chunk(exchange, body, chunk)
        };
        self.start(exchange, Box::pin(reading));
    }

    fn start(&mut self, exchange: ExchangeId, work: Working<H::Body>) {
        let (work, handle) = abortable(work);
        self.running.insert(exchange, handle);
        self.work.push(work);
    }

    fn take_progress(&mut self, progress: Progress<H::Body>) {
        match progress {
            Progress::Waiting(exchange, fetching) => {
                if self.network.is_asking() {
                    self.input(Input::Authorizing { exchange });
                }
                self.wait_for_head(exchange, fetching);
            }
            Progress::Head(exchange, Ok((head, body))) => {
                self.read(exchange, body);
                self.input(Input::Head { exchange, head });
            }
            Progress::Chunk(exchange, body, Ok(Some(bytes))) => {
                self.read(exchange, body);
                self.input(Input::Bytes { exchange, bytes });
            }
            Progress::Chunk(exchange, _, Ok(None)) => {
                self.running.remove(&exchange);
                self.input(Input::End { exchange });
            }
            Progress::Head(exchange, Err(error)) | Progress::Chunk(exchange, _, Err(error)) => {
                self.running.remove(&exchange);
                self.input(Input::Failed { exchange, error });
            }
        }
    }
}
