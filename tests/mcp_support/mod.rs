//! The MCP client and Streamable HTTP, joined with a scripted server by a fake network under a virtual clock.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;

use crablet::json::RawJson;
use crablet::mcp::client::{
    self, CallOptions, Client, ClientOptions, Event, Opening, OperationId, QuestionId, Reply, Request, TimerId,
};
use crablet::mcp::transport::streamable_http::{self, ExchangeId, StreamableHttp, StreamableHttpOptions};
use crablet::mcp::transport::{Inbound, OPAQUE_FAILURE};
use crablet::model::{HttpRequest, ResponseHead};
use crablet::{Error, ErrorKind, Millis};

/// Far above what any script takes.
const STEP_LIMIT: u64 = 1_000_000;

/// What the scripted server does with a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) then: Then,
    /// Milliseconds before the head, and between the chunks.
    pub(crate) delay: u64,
    pub(crate) pause: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    #[default]
    Close,
    Hold,
    Break,
    /// There is no answer at all; the platform says why, or does not.
    Unreachable,
    Opaque,
}

impl Answer {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub(crate) fn json(status: u16, body: impl ToString) -> Self {
        Self::new(status).header("content-type", "application/json").chunk(body)
    }

    pub(crate) fn stream() -> Self {
        Self::new(200).header("content-type", "text/event-stream")
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn chunk(mut self, bytes: impl ToString) -> Self {
        self.chunks.push(bytes.to_string().into_bytes());
        self
    }

    pub(crate) fn message(self, message: impl ToString) -> Self {
        self.chunk(format!("data: {}\n\n", message.to_string()))
    }

    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }

    pub(crate) fn pausing(mut self, milliseconds: u64) -> Self {
        self.pause = milliseconds;
        self
    }

    pub(crate) fn delayed(mut self, milliseconds: u64) -> Self {
        self.delay = milliseconds;
        self
    }
}

/// How bodies are cut into chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    AsWritten,
    Bytes,
    At(usize),
}

impl Cut {
    fn apply(self, chunks: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        match self {
            Self::AsWritten => chunks,
            Self::Bytes => chunks.concat().into_iter().map(|byte| vec![byte]).collect(),
            Self::At(position) => {
                let whole = chunks.concat();
                let (start, end) = whole.split_at(position.min(whole.len()));
                vec![start.to_vec(), end.to_vec()]
            }
        }
    }
}

/// The scripted server: one answer per request.
pub(crate) type Server<'script> = Box<dyn FnMut(&HttpRequest) -> Answer + 'script>;

/// Both machines, the network between them and the server, and the clock.
pub(crate) struct World<'script> {
    pub(crate) client: Client,
    pub(crate) http: StreamableHttp,
    pub(crate) now: Millis,
    pub(crate) requests: Vec<HttpRequest>,
    pub(crate) aborted: Vec<ExchangeId>,
    pub(crate) events: Vec<Event>,
    /// The open questions of the server.
    pub(crate) asked: Vec<(QuestionId, String, RawJson)>,
    server: Server<'script>,
    cut: Cut,
    arriving: BTreeMap<(Millis, u64), (ExchangeId, streamable_http::Input)>,
    sent: u64,
    client_timers: BTreeMap<TimerId, Millis>,
    http_timers: BTreeMap<ExchangeId, Millis>,
    next_operation: u64,
    steps: u64,
    open: std::collections::BTreeSet<ExchangeId>,
}

impl<'script> World<'script> {
    pub(crate) fn new(options: ClientOptions, server: impl FnMut(&HttpRequest) -> Answer + 'script) -> Self {
        let mut world = Self {
            client: Client::new(options),
            http: StreamableHttp::new(StreamableHttpOptions::new("https://mcp.example/mcp")),
            now: Millis(1_700_000_000_000),
            requests: Vec::new(),
            aborted: Vec::new(),
            events: Vec::new(),
            asked: Vec::new(),
            server: Box::new(server),
            cut: Cut::AsWritten,
            arriving: BTreeMap::new(),
            sent: 0,
            client_timers: BTreeMap::new(),
            http_timers: BTreeMap::new(),
            next_operation: 0,
            steps: 0,
            open: std::collections::BTreeSet::new(),
        };
        world.input(client::Input::Connect(Opening::default()));
        world
    }

    pub(crate) fn cut(mut self, cut: Cut) -> Self {
        self.cut = cut;
        self
    }

    pub(crate) fn input(&mut self, input: client::Input) {
        self.client.handle(self.now, input).unwrap();
    }

    pub(crate) fn start(&mut self, request: Request, options: CallOptions) -> OperationId {
        let operation = OperationId(self.next_operation);
        self.next_operation += 1;
        self.input(client::Input::Start { operation, request, options });
        operation
    }

    /// Runs until the connection stands or is refused.
    pub(crate) fn connected(&mut self) -> Result<(), Error> {
        self.run_until(|event| match event {
            Event::Connected { .. } => Some(Ok(())),
            Event::Closed { reason, .. } => Some(Err(reason.clone())),
            _ => None,
        })
        .expect("connecting neither succeeded nor failed")
    }

    /// Runs until an operation is over.
    pub(crate) fn finish(&mut self, wanted: OperationId) -> Result<Reply, Error> {
        self.run_until(|event| match event {
            Event::Done { operation, outcome } if *operation == wanted => Some(outcome.clone()),
            _ => None,
        })
        .expect("the operation never ended")
    }

    /// Runs one operation from start to end.
    pub(crate) fn perform(&mut self, request: Request) -> Result<Reply, Error> {
        let operation = self.start(request, CallOptions::default());
        self.finish(operation)
    }

    /// Runs until an event is the wanted one; events that came before count too.
    pub(crate) fn run_until<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> Option<T> {
        let mut seen = 0;
        loop {
            self.perform_effects();
            while let Some(event) = self.client.poll_event() {
                self.events.push(event);
            }
            if let Some(found) = self.events[seen..].iter().find_map(&wanted) {
                return Some(found);
            }
            seen = self.events.len();
            if !self.step() {
                return None;
            }
        }
    }

    /// Lets the next thing happen, and everything that follows from it at once.
    pub(crate) fn advance(&mut self) {
        assert!(self.step(), "nothing more happens");
        self.perform_effects();
    }

    /// Runs until the server has asked something.
    pub(crate) fn until_asked(&mut self) {
        while self.asked.is_empty() {
            self.run_until(|_| Some(()));
            if self.asked.is_empty() {
                self.advance();
            }
        }
    }

    /// Runs until nothing more happens.
    pub(crate) fn settle(&mut self) {
        self.run_until(|_| None::<()>);
    }

    /// Exchanges whose bodies were neither read to the end nor aborted.
    pub(crate) fn open_exchanges(&self) -> usize {
        self.open.len()
    }

    /// The methods of the messages that were posted.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.requests.iter().map(method_of).collect()
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        let mut warnings = Vec::new();
        for event in &self.events {
            if let Event::Warning(message) = event {
                warnings.push(message.as_str());
            }
        }
        warnings
    }

    /// Lets the next thing happen. What arrives comes before timers of the same moment.
    fn step(&mut self) -> bool {
        self.steps += 1;
        assert!(self.steps < STEP_LIMIT, "the machines go on for ever");
        let arrival = self.arriving.keys().next().copied();
        let client_timer = self.client_timers.iter().map(|(timer, at)| (*at, *timer)).min();
        let http_timer = self.http_timers.iter().map(|(exchange, at)| (*at, *exchange)).min();
        let earliest = [arrival.map(|(at, _)| at), client_timer.map(|(at, _)| at), http_timer.map(|(at, _)| at)];
        let Some(at) = earliest.into_iter().flatten().min() else { return false };
        self.now = self.now.max(at);
        if let Some(key) = arrival.filter(|(time, _)| *time == at) {
            let (exchange, input) = self.arriving.remove(&key).unwrap();
            if matches!(input, streamable_http::Input::End { .. } | streamable_http::Input::Failed { .. }) {
                self.open.remove(&exchange);
            }
            self.http.handle(self.now, input);
        } else if let Some((_, exchange)) = http_timer.filter(|(time, _)| *time == at) {
            self.http_timers.remove(&exchange);
            self.http.handle(self.now, streamable_http::Input::Timer { exchange });
        } else if let Some((_, timer)) = client_timer {
            self.client_timers.remove(&timer);
            self.input(client::Input::Timer(timer));
        }
        true
    }

    fn perform_effects(&mut self) {
        loop {
            if let Some(effect) = self.client.poll_effect() {
                match effect {
                    client::Effect::Send(outbound) => {
                        self.http.handle(self.now, streamable_http::Input::Outbound(outbound));
                    }
                    client::Effect::Ask { question, method, params } => self.asked.push((question, method, params)),
                    client::Effect::Withdraw(question) => self.asked.retain(|(open, ..)| *open != question),
                    client::Effect::SetTimer { timer, at } => drop(self.client_timers.insert(timer, at)),
                    client::Effect::ClearTimer(timer) => drop(self.client_timers.remove(&timer)),
                }
            } else if let Some(effect) = self.http.poll_effect() {
                match effect {
                    streamable_http::Effect::Fetch { exchange, request } => self.fetch(exchange, request),
                    streamable_http::Effect::Abort { exchange } => {
                        self.arriving.retain(|_, (candidate, _)| *candidate != exchange);
                        self.open.remove(&exchange);
                        self.aborted.push(exchange);
                    }
                    streamable_http::Effect::SetTimer { exchange, at } => drop(self.http_timers.insert(exchange, at)),
                    streamable_http::Effect::ClearTimer { exchange } => drop(self.http_timers.remove(&exchange)),
                    streamable_http::Effect::Deliver(inbound) => self.deliver(inbound),
                }
            } else {
                return;
            }
        }
    }

    fn deliver(&mut self, inbound: Inbound) {
        self.input(client::Input::Inbound(inbound));
    }

    fn fetch(&mut self, exchange: ExchangeId, request: HttpRequest) {
        let answer = (self.server)(&request);
        self.requests.push(request);
        self.open.insert(exchange);
        let mut at = self.now.after(answer.delay);
        let failure = |message: &'static str| Error::new(ErrorKind::Network, message);
        let failed = |error| streamable_http::Input::Failed { exchange, error };
        match answer.then {
            Then::Unreachable => return self.arrive(at, exchange, failed(failure("connection refused"))),
            Then::Opaque => {
                let error = failure("Failed to fetch").with_code(OPAQUE_FAILURE);
                return self.arrive(at, exchange, failed(error));
            }
            Then::Close | Then::Hold | Then::Break => {}
        }
        let head = ResponseHead { status: answer.status, headers: answer.headers };
        self.arrive(at, exchange, streamable_http::Input::Head { exchange, head });
        for bytes in self.cut.apply(answer.chunks) {
            at = at.after(answer.pause);
            self.arrive(at, exchange, streamable_http::Input::Bytes { exchange, bytes });
        }
        match answer.then {
            Then::Close => self.arrive(at, exchange, streamable_http::Input::End { exchange }),
            Then::Break => self.arrive(at, exchange, failed(failure("connection reset"))),
            _ => {}
        }
    }

    fn arrive(&mut self, at: Millis, exchange: ExchangeId, input: streamable_http::Input) {
        self.arriving.insert((at, self.sent), (exchange, input));
        self.sent += 1;
    }
}

/// The JSON-RPC method of a request, `(response)` for an answer, else the HTTP method.
pub(crate) fn method_of(request: &HttpRequest) -> String {
    let Ok(body) = serde_json::from_slice::<serde_json::Value>(&request.body) else {
        return request.method.to_owned();
    };
    body["method"].as_str().unwrap_or("(response)").to_owned()
}

/// The message of a request.
pub(crate) fn body_of(request: &HttpRequest) -> serde_json::Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}
