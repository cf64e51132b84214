//! The client over a transport on which all messages share one stream.

use crablet::json::{MAX_MESSAGE_DEPTH, RawJson};
use crablet::mcp::client::{
    CallOptions, Client, ClientOptions, Effect, Event, Input, Opening, OperationId, TimerId, TransportKind,
};
use crablet::mcp::protocol::Era;
use crablet::mcp::transport::{Inbound, Outbound};
use crablet::{Error, ErrorKind, Millis};
use serde_json::{Value, json};

use crate::server::call;

pub(crate) struct Pipe {
    client: Client,
    now: Millis,
}

impl Pipe {
    pub(crate) fn new(opening: Opening) -> Self {
        let mut pipe = Self { client: Client::new(ClientOptions::new(TransportKind::Pipe)), now: Millis(0) };
        pipe.input(Input::Connect(opening));
        pipe
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.client.handle(self.now, input).unwrap();
    }

    pub(crate) fn receive(&mut self, message: Value) {
        let message = RawJson::parse(message.to_string()).unwrap();
        self.input(Input::Inbound(Inbound::Message { request_id: None, status: None, message }));
    }

    /// The messages that the client sent.
    pub(crate) fn sent(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.client.poll_effect())
            .filter_map(|effect| match effect {
                Effect::Send(Outbound::Request { message, .. } | Outbound::Notify { message, .. }) => {
                    Some(serde_json::from_str(message.as_str()).unwrap())
                }
                _ => None,
            })
            .collect()
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }

    fn era(&mut self) -> Option<Era> {
        self.events().into_iter().find_map(|event| match event {
            Event::Connected { record, .. } => Some(record.era),
            _ => None,
        })
    }
}

pub(crate) fn answer(request: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

fn refusal(request: &Value, code: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": "no" } })
}

pub(crate) const HANDSHAKE: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#;

fn handshake() -> Value {
    serde_json::from_str(HANDSHAKE).unwrap()
}

#[test]
fn any_refusal_of_the_probe_leads_to_initialize() {
    for code in [-32601, -32602, -32000, 5] {
        let mut pipe = Pipe::new(Opening::default());
        let discover = pipe.sent().remove(0);
        pipe.receive(refusal(&discover, code));
        let initialize = pipe.sent().remove(0);
        assert_eq!(initialize["method"], "initialize");
        pipe.receive(answer(&initialize, handshake()));
        assert_eq!(pipe.sent()[0]["method"], "notifications/initialized");
        assert!(matches!(pipe.era(), Some(Era::Handshake(_))), "{code}");
    }
}

#[test]
fn a_server_that_ignores_the_probe_gets_initialize_too_and_the_first_answer_decides() {
    let probe_ignored = || {
        let mut pipe = Pipe::new(Opening::default());
        let discover = pipe.sent().remove(0);
        pipe.input(Input::Timer(TimerId::Probe));
        let initialize = pipe.sent().remove(0);
        (pipe, discover, initialize)
    };
    let found = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} });

    let (mut pipe, discover, initialize) = probe_ignored();
    pipe.receive(answer(&initialize, handshake()));
    pipe.receive(answer(&discover, found.clone()));
    assert!(matches!(pipe.era(), Some(Era::Handshake(_))));

    let (mut pipe, discover, initialize) = probe_ignored();
    pipe.receive(answer(&discover, found));
    pipe.receive(answer(&initialize, handshake()));
    assert_eq!(pipe.era(), Some(Era::Stateless));
    assert!(pipe.sent().is_empty(), "a late initialize is not followed up");

    let (mut pipe, discover, _) = probe_ignored();
    pipe.receive(refusal(&discover, -32601));
    assert!(pipe.sent().is_empty(), "initialize is not sent twice");
    pipe.input(Input::Timer(TimerId::Startup));
    let closed = pipe.events().into_iter().find_map(|event| match event {
        Event::Closed { reason, .. } => Some(reason.kind()),
        _ => None,
    });
    assert_eq!(closed, Some(ErrorKind::Timeout));
}

#[test]
fn a_connection_that_was_initialized_before_is_not_initialized_again() {
    let opening = Opening {
        initialized: Some(RawJson::parse(HANDSHAKE).unwrap()),
        id_prefix: "7-".to_owned(),
        ..Opening::default()
    };
    let mut pipe = Pipe::new(opening);
    assert!(matches!(pipe.era(), Some(Era::Handshake(_))));
    pipe.input(Input::Start { operation: OperationId(1), request: call("x"), options: CallOptions::default() });
    let sent = pipe.sent();
    assert_eq!((&sent[0]["method"], &sent[0]["id"]), (&json!("tools/call"), &json!("7-1")));
    assert_eq!(sent.len(), 1);
    pipe.receive(answer(&sent[0], json!({ "content": [] })));
    assert!(matches!(pipe.events()[..], [Event::Done { outcome: Ok(_), .. }]));
}

#[test]
fn a_call_is_cancelled_by_a_notification_in_both_eras() {
    let mut pipe = Pipe::new(Opening::default());
    let discover = pipe.sent().remove(0);
    pipe.receive(answer(&discover, json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} })));
    let operation = OperationId(1);
    pipe.input(Input::Start { operation, request: call("x"), options: CallOptions::default() });
    let sent = pipe.sent().remove(0);
    pipe.input(Input::Cancel { operation, reason: "enough".to_owned() });
    let cancelled = pipe.sent().remove(0);
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], sent["id"]);
}

#[test]
fn the_end_of_the_process_ends_every_call_with_its_last_words() {
    let mut pipe = Pipe::new(Opening { initialized: Some(RawJson::parse(HANDSHAKE).unwrap()), ..Opening::default() });
    pipe.events();
    for number in 0..2 {
        let operation = OperationId(number);
        pipe.input(Input::Start { operation, request: call("x"), options: CallOptions::default() });
    }
    let reason = Error::new(ErrorKind::ConnectionClosed, "the process ended");
    let stderr_tail = Some("boom".to_owned());
    pipe.input(Input::Inbound(Inbound::Closed { reason, exit_code: Some(3), stderr_tail }));
    let events = pipe.events();
    let failed = |event: &&Event| matches!(event, Event::Done { outcome: Err(error), .. } if error.kind() == ErrorKind::ConnectionClosed);
    assert_eq!(events.iter().filter(failed).count(), 2);
    assert!(
        matches!(events.last(), Some(Event::Closed { exit_code: Some(3), stderr_tail: Some(tail), .. }) if tail == "boom")
    );
}

#[test]
fn a_clock_that_jumps_back_neither_loses_nor_repeats_a_time_limit() {
    let mut pipe = Pipe::new(Opening { initialized: Some(RawJson::parse(HANDSHAKE).unwrap()), ..Opening::default() });
    pipe.now = Millis(1_000_000);
    let operation = OperationId(1);
    pipe.input(Input::Start { operation, request: call("x"), options: CallOptions::default() });
    pipe.events();
    pipe.now = Millis(5);
    pipe.input(Input::Timer(TimerId::Idle(operation)));
    assert!(
        matches!(&pipe.events()[..], [Event::Done { outcome: Err(error), .. }] if error.kind() == ErrorKind::Timeout)
    );
}

#[test]
fn what_is_nested_without_end_fails_its_request_and_nothing_else() {
    let bomb = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let opening = Opening { initialized: Some(RawJson::parse(HANDSHAKE).unwrap()), ..Opening::default() };
    let mut pipe = Pipe::new(opening);
    for number in 1..=3 {
        let operation = OperationId(number);
        pipe.input(Input::Start { operation, request: call("x"), options: CallOptions::default() });
    }
    let ids: Vec<_> = pipe.sent().into_iter().map(|request| request["id"].to_string()).collect();
    let _connected = pipe.events();
    let mut take = |text: String| {
        let message = RawJson::parse(text).unwrap();
        pipe.input(Input::Inbound(Inbound::Message { request_id: None, status: None, message }));
        pipe.events()
    };
    let result = |id: &str, depth: usize| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{}}}}}"#, bomb(depth))
    };
    // The message and its result are two levels more.
    let events = take(result(&ids[0], MAX_MESSAGE_DEPTH - 2));
    assert!(matches!(events[..], [Event::Done { outcome: Ok(_), .. }]), "{events:?}");
    let events = take(result(&ids[1], 1_000_000));
    let [Event::Done { outcome: Err(error), .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.message().contains("more than 512 levels"), "{error}");
    let notification =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"a":{}}}}}"#, bomb(100_000));
    assert!(matches!(take(notification)[..], [Event::Warning(_)]));
    let events = take(result(&ids[2], 1));
    assert!(matches!(events[..], [Event::Done { outcome: Ok(_), .. }]), "{events:?}");
}

#[test]
fn an_answer_without_a_result_fails_its_call_at_once() {
    for (answer, kind) in [
        (json!({ "jsonrpc": "2.0" }), ErrorKind::Protocol),
        (json!({ "jsonrpc": "2.0", "error": "boom" }), ErrorKind::Rpc),
        (json!({ "jsonrpc": "2.0", "error": null }), ErrorKind::Protocol),
    ] {
        let mut pipe = initialized();
        let id = start_call(&mut pipe);
        for id in [id.clone(), json!(id.to_string()), json!(id.as_f64())] {
            let mut answer = answer.clone();
            answer["id"] = id;
            pipe.receive(answer);
        }
        let outcomes: Vec<_> = pipe.events().into_iter().filter_map(outcome).collect();
        assert_eq!(outcomes, [Some(kind)], "{answer}");
    }
}

#[test]
fn an_id_that_came_back_as_a_fraction_is_known_again() {
    let mut pipe = initialized();
    let id = start_call(&mut pipe);
    pipe.receive(json!({ "jsonrpc": "2.0", "id": id.as_f64(), "result": { "content": [] } }));
    assert_eq!(pipe.events().into_iter().filter_map(outcome).collect::<Vec<_>>(), [None]);
}

#[test]
fn a_server_may_end_the_subscription() {
    let mut pipe = Pipe::new(Opening::default());
    let probe = pipe.sent().remove(0);
    let capabilities = json!({ "tools": { "listChanged": true } });
    pipe.receive(answer(&probe, json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities })));
    let listen = pipe.sent().remove(0);
    assert_eq!(listen["method"], "subscriptions/listen");
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": listen["id"] } });
    pipe.receive(cancelled);
    pipe.input(Input::Timer(TimerId::Listen));
    assert_eq!(pipe.sent()[0]["method"], "subscriptions/listen");
}

fn initialized() -> Pipe {
    let initialized = Some(RawJson::parse(HANDSHAKE).unwrap());
    Pipe::new(Opening { initialized, ..Opening::default() })
}

/// Starts a call; gives the id of its request.
fn start_call(pipe: &mut Pipe) -> Value {
    pipe.input(Input::Start { operation: OperationId(1), request: call("x"), options: CallOptions::default() });
    pipe.sent().last().unwrap()["id"].clone()
}

/// The kind of the error that an operation ended with.
fn outcome(event: Event) -> Option<Option<ErrorKind>> {
    match event {
        Event::Done { outcome, .. } => Some(outcome.err().map(|error| error.kind())),
        _ => None,
    }
}
