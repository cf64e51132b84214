//! An MCP client over Streamable HTTP before a server that answers anything in any order: no panic, no endless loop, each
//! operation ends once, and nothing is left when it is closed.
#![no_main]

mod pieces;

use std::collections::{BTreeMap, HashMap, VecDeque};

use crablet::json::RawJson;
use crablet::mcp::client::{self, CallOptions, Client, ClientOptions, Event, Opening, OperationId, Request, TransportKind};
use crablet::mcp::protocol::EraChoice;
use crablet::mcp::transport::streamable_http::{self, ExchangeId, StreamableHttp, StreamableHttpOptions};
use crablet::model::ResponseHead;
use crablet::{Error, ErrorKind, Millis};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// What bodies are put together from; `$ID` is the id of the last request.
const PIECES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}],"nextCursor":"c"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"x","inputSchema":{},"outputSchema":{"type":"object"}}],"ttlMs":9}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}},"requestState":"s"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"task","taskId":"t","status":"working","pollIntervalMs":1}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18","2026-07-28"]}}}"#,
    r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"}}"#,
    r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#,
    "data: ",
    "\n\n",
    "event: endpoint\ndata: /messages\n\n",
    "id: 1\nretry: 5\ndata:\n\n",
    "[",
    "]",
    ",",
];

#[derive(Arbitrary, Debug)]
struct Script {
    era: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    List,
    Call,
    Ask,
    Cancel(u8),
    /// The head of the answer to an open exchange.
    Head(u8, u8, bool, u8),
    Body(u8, Vec<u8>),
    End(u8),
    Fail(u8),
    Timer(u8),
    ClientTimer(u8),
    Answer(u8, bool),
    Close,
}

libfuzzer_sys::fuzz_target!(|script: Script| {
    let mut options = ClientOptions::new(TransportKind::Http);
    options.era = [EraChoice::Auto, EraChoice::Handshake, EraChoice::Stateless][usize::from(script.era) % 3];
    options.capabilities = options.capabilities.with("elicitation", &crablet::jsonrpc::Params::new());
    let mut world = World {
        client: Client::new(options),
        http: StreamableHttp::new(StreamableHttpOptions::new("https://server.invalid/mcp")),
        now: 1_000,
        last_id: "1".to_owned(),
        exchanges: Vec::new(),
        timers: BTreeMap::new(),
        client_timers: BTreeMap::new(),
        questions: Vec::new(),
        open: HashMap::new(),
        next: 0,
        is_closed: false,
    };
    world.client_input(client::Input::Connect(Opening::default()));
    for step in script.steps {
        world.step(step);
    }
    world.client_input(client::Input::Close);
    // What closing waits for is given up in time.
    while let Some((&exchange, _)) = world.timers.iter().next() {
        world.timers.remove(&exchange);
        world.http_input(streamable_http::Input::Timer { exchange });
    }
    assert!(world.open.is_empty(), "operations without an end: {:?}", world.open);
});

struct World {
    client: Client,
    http: StreamableHttp,
    now: u64,
    last_id: String,
    exchanges: Vec<ExchangeId>,
    timers: BTreeMap<ExchangeId, Millis>,
    client_timers: BTreeMap<client::TimerId, Millis>,
    questions: Vec<client::QuestionId>,
    open: HashMap<OperationId, ()>,
    next: u64,
    is_closed: bool,
}

enum Given {
    Client(client::Input),
    Http(streamable_http::Input),
}

impl World {
    fn step(&mut self, step: Step) {
        let pick = |which: u8, some: &[ExchangeId]| some.get(usize::from(which) % some.len().max(1)).copied();
        match step {
            Step::List => self.start(Request::ListTools),
            Step::Call => self.start(Request::CallTool {
                name: "x".to_owned(),
                arguments: RawJson::parse(r#"{"a":1}"#).unwrap(),
            }),
            Step::Ask => self.start(Request::SetLogLevel("info".to_owned())),
            Step::Cancel(which) => {
                let operation = OperationId(u64::from(which) % self.next.max(1));
                self.client_input(client::Input::Cancel { operation, reason: "unwanted".to_owned() });
            }
            Step::Head(which, status, is_stream, session) => {
                let Some(exchange) = pick(which, &self.exchanges) else { return };
                let status = [200, 200, 200, 202, 204, 400, 401, 404, 405, 429, 500][usize::from(status) % 11];
                let kind = if is_stream { "text/event-stream" } else { "application/json" };
                let mut headers = vec![("content-type".to_owned(), kind.to_owned())];
                if session < 64 {
                    headers.push(("mcp-session-id".to_owned(), format!("s{}", session % 3)));
                }
                self.http_input(streamable_http::Input::Head { exchange, head: ResponseHead { status, headers } });
            }
            Step::Body(which, bytes) => {
                let Some(exchange) = pick(which, &self.exchanges) else { return };
                let text = pieces::text(&bytes, PIECES).replace("$ID", &self.last_id);
                self.http_input(streamable_http::Input::Bytes { exchange, bytes: text.into_bytes() });
            }
            Step::End(which) => {
                let Some(exchange) = pick(which, &self.exchanges) else { return };
                self.exchanges.retain(|open| *open != exchange);
                self.http_input(streamable_http::Input::End { exchange });
            }
            Step::Fail(which) => {
                let Some(exchange) = pick(which, &self.exchanges) else { return };
                self.exchanges.retain(|open| *open != exchange);
                let error = Error::new(ErrorKind::Network, "broke");
                self.http_input(streamable_http::Input::Failed { exchange, error });
            }
            Step::Timer(which) => {
                let timers: Vec<_> = self.timers.keys().copied().collect();
                let Some(exchange) = pick(which, &timers) else { return };
                let at = self.timers.remove(&exchange).map_or(0, |at| at.0);
                self.now = self.now.max(at);
                self.http_input(streamable_http::Input::Timer { exchange });
            }
            Step::ClientTimer(which) => {
                let timers: Vec<_> = self.client_timers.keys().copied().collect();
                let Some(timer) = timers.get(usize::from(which) % timers.len().max(1)).copied() else { return };
                let at = self.client_timers.remove(&timer).map_or(0, |at| at.0);
                self.now = self.now.max(at);
                self.client_input(client::Input::Timer(timer));
            }
            Step::Answer(which, is_good) => {
                if self.questions.is_empty() {
                    return;
                }
                let question = self.questions.remove(usize::from(which) % self.questions.len());
                let outcome = match is_good {
                    true => Ok(RawJson::parse(r#"{"action":"decline"}"#).unwrap()),
                    false => Err(crablet::jsonrpc::RpcError::new(-1, "no")),
                };
                self.client_input(client::Input::Answer { question, outcome });
            }
            Step::Close => self.client_input(client::Input::Close),
        }
    }

    fn start(&mut self, request: Request) {
        let operation = OperationId(self.next);
        self.next += 1;
        self.open.insert(operation, ());
        let input = client::Input::Start { operation, request, options: CallOptions::default() };
        if self.client.handle(Millis(self.now), input).is_err() {
            self.open.remove(&operation);
        }
        self.settle(VecDeque::new());
    }

    fn client_input(&mut self, input: client::Input) {
        self.settle(VecDeque::from([Given::Client(input)]));
    }

    fn http_input(&mut self, input: streamable_http::Input) {
        self.settle(VecDeque::from([Given::Http(input)]));
    }

    /// Carries what both machines say to each other until they are silent.
    fn settle(&mut self, mut given: VecDeque<Given>) {
        /// Far above what one input can bring about.
        const LIMIT: usize = 100_000;
        for _ in 0..LIMIT {
            match given.pop_front() {
                Some(Given::Client(input)) => {
                    self.client.handle(Millis(self.now), input).expect("only a start is refused");
                }
                Some(Given::Http(input)) => self.http.handle(Millis(self.now), input),
                None => {
                    if !self.take(&mut given) {
                        return;
                    }
                }
            }
        }
        panic!("the machines talk without an end");
    }

    /// Takes what the machines ask for. False when that is nothing.
    fn take(&mut self, given: &mut VecDeque<Given>) -> bool {
        let mut any = false;
        while let Some(effect) = self.client.poll_effect() {
            any = true;
            match effect {
                client::Effect::Send(outbound) => given.push_back(Given::Http(streamable_http::Input::Outbound(outbound))),
                client::Effect::Ask { question, .. } => self.questions.push(question),
                client::Effect::Withdraw(question) => self.questions.retain(|open| *open != question),
                client::Effect::SetTimer { timer, at } => drop(self.client_timers.insert(timer, at)),
                client::Effect::ClearTimer(timer) => drop(self.client_timers.remove(&timer)),
            }
        }
        while let Some(effect) = self.http.poll_effect() {
            any = true;
            match effect {
                streamable_http::Effect::Fetch { exchange, request } => {
                    self.exchanges.push(exchange);
                    let id = serde_json::from_slice::<serde_json::Value>(&request.body).ok();
                    if let Some(id) = id.and_then(|body| body.get("id").cloned()) {
                        self.last_id = id.to_string();
                    }
                }
                streamable_http::Effect::Abort { exchange } => self.exchanges.retain(|open| *open != exchange),
                streamable_http::Effect::SetTimer { exchange, at } => drop(self.timers.insert(exchange, at)),
                streamable_http::Effect::ClearTimer { exchange } => drop(self.timers.remove(&exchange)),
                streamable_http::Effect::Deliver(inbound) => given.push_back(Given::Client(client::Input::Inbound(inbound))),
            }
        }
        while let Some(event) = self.client.poll_event() {
            any = true;
            match event {
                Event::Done { operation, .. } => {
                    assert!(self.open.remove(&operation).is_some(), "{operation:?} ends twice");
                }
                Event::Closed { .. } => {
                    assert!(!self.is_closed, "it is closed twice");
                    self.is_closed = true;
                }
                _ => {}
            }
        }
        any
    }
}
