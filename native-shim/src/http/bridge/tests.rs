//! The four ways, each against a child whose lines the test writes.

use serde_json::{Value, json};

use super::wire::VERSION_KEY;
use super::*;

/// A machine, with the lines that the child got and the messages that callers got.
struct World {
    bridge: Bridge,
    now: Millis,
    to_child: VecDeque<Value>,
    /// The exchange (0 for none), the message, and whether it is the answer.
    to_callers: VecDeque<(u64, Value, bool)>,
    exchanges: u64,
}

impl World {
    fn new(callers: Callers, child: ServerEra) -> Self {
        let bridge = Bridge::new(callers, child, "nonce");
        let mut world =
            Self { bridge, now: Millis(1_000), to_child: VecDeque::new(), to_callers: VecDeque::new(), exchanges: 0 };
        world.drain();
        world
    }

    /// Stateless callers of a child that has been initialized.
    fn with_handshake_child() -> Self {
        let mut world = Self::new(Callers::Stateless, ServerEra::Handshake);
        let initialize = world.child_got("initialize");
        world.child_says(json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true }, "logging": {} },
            "serverInfo": { "name": "s", "version": "1" }, "instructions": "Be kind."
        } }));
        world.child_got("notifications/initialized");
        world
    }

    /// A session with a stateless child that has been initialized.
    fn with_handshake_caller() -> Self {
        let mut world = Self::new(Callers::Handshake, ServerEra::Stateless);
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "c", "version": "2" }
        });
        world.call("i", "initialize", params);
        let discover = world.child_got("server/discover");
        assert_eq!(
            discover["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
            json!({ "elicitation": {} })
        );
        world.child_says(json!({ "jsonrpc": "2.0", "id": discover["id"], "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true }, "logging": {} },
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } }
        } }));
        let (_, answer) = world.answered();
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(answer["result"]["serverInfo"]["name"], "s");
        world
    }

    fn give(&mut self, input: Input) {
        self.bridge.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.bridge.poll() {
            let read = |message: &RawJson| message.read::<Value>().unwrap();
            match output {
                Output::ToChild(line) => self.to_child.push_back(serde_json::from_str(&line).unwrap()),
                Output::ToCaller { exchange, message } => {
                    self.to_callers.push_back((exchange.map_or(0, |exchange| exchange.0), read(&message), false));
                }
                Output::Answer { exchange, message } => self.to_callers.push_back((exchange.0, read(&message), true)),
                Output::Unanswered(exchange) => self.to_callers.push_back((exchange.0, Value::Null, true)),
            }
        }
    }

    /// A request; gives its exchange.
    fn call(&mut self, id: &str, method: &str, params: Value) -> u64 {
        self.call_with(id, method, params, &[])
    }

    fn call_with(&mut self, id: &str, method: &str, params: Value, headers: &[(&str, &str)]) -> u64 {
        self.exchanges += 1;
        let call = Call {
            exchange: Exchange(self.exchanges),
            id: raw(json!(id)),
            method: method.to_owned(),
            params: Params::from_object(&raw(params)).unwrap(),
            headers: Some(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()),
        };
        self.give(Input::Call(call));
        self.exchanges
    }

    /// A call of a tool of a child that has none with repeated arguments.
    fn tool_call(&mut self, id: &str, params: Value) -> (u64, Value) {
        let exchange = self.call(id, "tools/call", params);
        if self.to_child.front().is_some_and(|message| message["method"] == "tools/list") {
            let list = self.child_got("tools/list");
            self.child_says(json!({ "jsonrpc": "2.0", "id": list["id"], "result": { "tools": [] } }));
        }
        (exchange, self.child_got("tools/call"))
    }

    fn notify(&mut self, message: Value) {
        let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
        let params = Params::from_object(&raw(params)).unwrap();
        let method = message["method"].as_str().unwrap().to_owned();
        self.give(Input::Message(PostedMessage::Notification { method, params, raw: raw(message) }));
    }

    fn respond(&mut self, message: Value) {
        self.give(Input::Message(PostedMessage::Response { id: raw(message["id"].clone()), raw: raw(message) }));
    }

    fn child_says(&mut self, message: Value) {
        self.give(Input::Child(message.to_string()));
    }

    /// The child's next line, which is of this method.
    fn child_got(&mut self, method: &str) -> Value {
        let message = self.to_child.pop_front().unwrap_or_else(|| panic!("the child got no {method}"));
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// The next thing that a caller got, which is an answer.
    fn answered(&mut self) -> (u64, Value) {
        let (exchange, message, is_last) = self.to_callers.pop_front().expect("an answer");
        assert!(is_last, "{message}");
        (exchange, message)
    }

    /// The next thing that a caller got, which is no answer.
    fn told(&mut self) -> (u64, Value) {
        let (exchange, message, is_last) = self.to_callers.pop_front().expect("a message");
        assert!(!is_last, "{message}");
        (exchange, message)
    }

    fn assert_quiet(&self) {
        assert!(self.to_child.is_empty() && self.to_callers.is_empty(), "{:?} {:?}", self.to_child, self.to_callers);
    }

    /// Lets time pass until something is due.
    fn wait(&mut self) {
        self.now = self.bridge.timer().expect("something is waited for");
        self.give(Input::Timer);
    }
}

fn raw(value: Value) -> RawJson {
    RawJson::from_value(&value).unwrap()
}

fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "traceparent": "00-1"
    })
}

fn result(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

#[test]
fn callers_with_the_same_ids_and_tokens_get_what_is_theirs() {
    for child in [ServerEra::Stateless, ServerEra::Handshake] {
        let mut world = match child {
            ServerEra::Stateless => World::new(Callers::Stateless, child),
            ServerEra::Handshake => World::with_handshake_child(),
        };
        let mut meta = meta(json!({}));
        meta["progressToken"] = json!("t");
        let (first, first_sent) = world.tool_call("1", json!({ "name": "a", "_meta": meta }));
        let (second, second_sent) = world.tool_call("1", json!({ "name": "b", "_meta": meta }));
        let token = &second_sent["params"]["_meta"]["progressToken"];
        assert_ne!(first_sent["id"], second_sent["id"]);
        assert_ne!(&first_sent["params"]["_meta"]["progressToken"], token);
        assert_eq!(first_sent["params"]["_meta"]["traceparent"], "00-1");
        let said = first_sent["params"]["_meta"].get(VERSION_KEY).is_some();
        assert_eq!(said, child == ServerEra::Stateless);
        let progress = json!({ "progressToken": token, "progress": 1 });
        world.child_says(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
        let (exchange, progress) = world.told();
        assert_eq!((exchange, &progress["params"]["progressToken"]), (second, &json!("t")));
        world.child_says(result(&first_sent["id"], json!({ "content": [] })));
        let (exchange, answer) = world.answered();
        assert_eq!((exchange, &answer["id"]), (first, &json!("1")));
        // A number that was never given, or has been answered, is nobody's.
        world.child_says(result(&first_sent["id"], json!({})));
        world.child_says(result(&json!(999), json!({})));
        world.child_says(json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "m" } }));
        world.give(Input::Child("no JSON".to_owned()));
        world.give(Input::Left(Exchange(second)));
        assert_eq!(world.child_got("notifications/cancelled")["params"]["requestId"], second_sent["id"]);
        world.child_says(result(&second_sent["id"], json!({})));
        world.assert_quiet();
    }
}

#[test]
fn a_stateless_child_keeps_its_subscriptions_apart() {
    let mut world = World::new(Callers::Stateless, ServerEra::Stateless);
    let listen = |meta: Value| json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    let first = world.call("s", "subscriptions/listen", listen(meta(json!({}))));
    let sent = world.child_got("subscriptions/listen");
    let changed = |id: &Value| {
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                "params": { "_meta": { "io.modelcontextprotocol/subscriptionId": id } } })
    };
    world.child_says(changed(&sent["id"]));
    let (exchange, message) = world.told();
    assert_eq!(exchange, first);
    assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    world.child_says(changed(&json!(77)));
    world.child_says(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    world.assert_quiet();
    let ended = json!({ "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": sent["id"] } });
    world.child_says(result(&sent["id"], ended));
    let (_, answer) = world.answered();
    assert_eq!(answer["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
}

#[test]
fn log_messages_go_to_who_asked_for_them() {
    let mut world = World::with_handshake_child();
    let mut wanted = meta(json!({}));
    wanted["io.modelcontextprotocol/logLevel"] = json!("warning");
    let asks = world.call("1", "prompts/get", json!({ "name": "p", "_meta": wanted }));
    assert_eq!(world.child_got("logging/setLevel")["params"]["level"], "warning");
    world.child_got("prompts/get");
    world.call("2", "prompts/get", json!({ "name": "p", "_meta": meta(json!({})) }));
    world.child_got("prompts/get");
    for level in ["info", "nonsense", "error"] {
        let params = json!({ "level": level, "data": "d" });
        world.child_says(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }));
    }
    let (exchange, message) = world.told();
    assert_eq!((exchange, &message["params"]["level"]), (asks, &json!("error")));
    world.assert_quiet();
}

#[test]
fn a_handshake_child_looks_stateless() {
    let mut world = World::new(Callers::Stateless, ServerEra::Handshake);
    // What comes before the child is ready waits.
    world.call("d", "server/discover", json!({ "_meta": meta(json!({})) }));
    let gone = world.call("x", "tools/list", json!({ "_meta": meta(json!({})) }));
    world.give(Input::Left(Exchange(gone)));
    let initialize = world.child_got("initialize");
    assert!(initialize["params"]["capabilities"].get("sampling").is_some());
    let initialized = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {}, "tasks": {} } });
    world.child_says(result(&initialize["id"], initialized));
    world.child_got("notifications/initialized");
    let (_, answer) = world.answered();
    assert_eq!(answer["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(answer["result"]["capabilities"], json!({ "tools": {} }));
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list"] {
        world.call("m", method, json!({ "_meta": meta(json!({})) }));
        assert_eq!(world.answered().1["error"]["code"], -32601, "{method}");
    }
    world.call("l", "tools/list", json!({ "_meta": meta(json!({})) }));
    let list = world.child_got("tools/list");
    assert!(list["params"].get("_meta").is_some_and(|meta| meta.get("traceparent").is_some()));
    world.child_says(result(&list["id"], json!({ "tools": [] })));
    let (_, answer) = world.answered();
    assert_eq!(answer["result"], json!({ "tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" }));
    world.call("r", "resources/read", json!({ "uri": "u", "_meta": meta(json!({})) }));
    let read = world.child_got("resources/read");
    let error = json!({ "code": -32002, "message": "none", "data": { "uri": "u" } });
    world.child_says(json!({ "jsonrpc": "2.0", "id": read["id"], "error": error }));
    assert_eq!(world.answered().1["error"]["code"], -32602);
    world.child_says(json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
    assert_eq!(world.to_child.pop_front(), Some(result(&json!("p"), json!({}))));
    world.assert_quiet();
}

#[test]
fn a_child_that_refuses_to_be_initialized_serves_nobody() {
    let mut world = World::new(Callers::Stateless, ServerEra::Handshake);
    let initialize = world.child_got("initialize");
    let error = json!({ "code": -32600, "message": "no" });
    world.child_says(json!({ "jsonrpc": "2.0", "id": initialize["id"], "error": error }));
    world.call("l", "tools/list", json!({ "_meta": meta(json!({})) }));
    let (_, answer) = world.answered();
    assert!(answer["error"]["message"].as_str().unwrap().contains("no"), "{answer}");
    world.assert_quiet();
}

#[test]
fn subscriptions_to_a_handshake_child_are_kept_by_the_shim() {
    let mut world = World::with_handshake_child();
    let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a", "b"] });
    let first = world.call("s", "subscriptions/listen", json!({ "notifications": wanted, "_meta": meta(json!({})) }));
    let (_, acknowledged) = world.told();
    let honoured = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a", "b"] });
    assert_eq!(acknowledged["params"]["notifications"], honoured);
    assert_eq!(world.child_got("resources/subscribe")["params"]["uri"], "a");
    assert_eq!(world.child_got("resources/subscribe")["params"]["uri"], "b");
    let wanted = json!({ "resourceSubscriptions": ["b"] });
    let second = world.call("t", "subscriptions/listen", json!({ "notifications": wanted, "_meta": meta(json!({})) }));
    world.told();
    world.child_says(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    assert_eq!(world.told().0, first);
    let updated = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "b" } });
    world.child_says(updated);
    assert_eq!([world.told().0, world.told().0], [first, second]);
    world.give(Input::Left(Exchange(first)));
    assert_eq!(world.child_got("resources/unsubscribe")["params"]["uri"], "a");
    world.assert_quiet();
    world.give(Input::ChildEnded("it is gone".to_owned()));
    assert_eq!(world.answered().0, second);
}

/// A call whose child has asked for a name, and the state and key that its caller got.
fn asked_for_a_name(world: &mut World) -> (Value, String, String) {
    let (exchange, sent) = world.tool_call("1", json!({ "name": "a", "_meta": meta(json!({ "elicitation": {} })) }));
    let question = json!({ "message": "Who?", "requestedSchema": { "type": "object" } });
    world.child_says(json!({ "jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": question }));
    world.wait();
    let (answered, answer) = world.answered();
    assert_eq!((answered, &answer["result"]["resultType"]), (exchange, &json!("input_required")));
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(*request, json!({ "method": "elicitation/create", "params": question }));
    (sent, answer["result"]["requestState"].as_str().unwrap().to_owned(), key.clone())
}

fn answers(state: &str, answers: Value) -> Value {
    json!({ "name": "a", "requestState": state, "inputResponses": answers, "_meta": meta(json!({ "elicitation": {} })) })
}

#[test]
fn a_question_becomes_a_result_and_the_next_request_its_answer() {
    let mut world = World::with_handshake_child();
    let (sent, state, key) = asked_for_a_name(&mut world);
    world.give(Input::Left(Exchange(1)));
    let back = world.call("2", "tools/call", answers(&state, json!({ &key: { "action": "accept" } })));
    assert_eq!(world.to_child.pop_front(), Some(result(&json!(5), json!({ "action": "accept" }))));
    world.child_says(result(&sent["id"], json!({ "content": [] })));
    let (exchange, answer) = world.answered();
    assert_eq!((exchange, &answer["id"]), (back, &json!("2")));
    assert_eq!(answer["result"], json!({ "content": [], "resultType": "complete" }));
    // The state is good once.
    world.call("3", "tools/call", answers(&state, json!({})));
    assert_eq!(world.answered().1["error"]["code"], -32602);
    world.assert_quiet();
}

#[test]
fn what_a_caller_leaves_out_it_is_asked_again() {
    let mut world = World::with_handshake_child();
    let (_, state, key) = asked_for_a_name(&mut world);
    let again = world.call("2", "tools/call", answers(&state, json!({ "other": {} })));
    world.wait();
    let (exchange, answer) = world.answered();
    assert_eq!(exchange, again);
    assert!(answer["result"]["inputRequests"].get(&key).is_some());
    assert_ne!(answer["result"]["requestState"], json!(state));
    world.assert_quiet();
}

#[test]
fn questions_that_come_together_are_asked_together() {
    let mut world = World::with_handshake_child();
    let can = json!({ "elicitation": {}, "roots": {} });
    let (_, sent) = world.tool_call("1", json!({ "name": "a", "_meta": meta(can) }));
    world.child_says(json!({ "jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": {} }));
    world.child_says(json!({ "jsonrpc": "2.0", "id": 6, "method": "roots/list" }));
    world.child_says(json!({ "jsonrpc": "2.0", "id": 7, "method": "roots/list" }));
    // One is taken back at once.
    let cancelled = json!({ "requestId": 7 });
    world.child_says(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }));
    world.assert_quiet();
    world.wait();
    let (_, answer) = world.answered();
    assert_eq!(answer["result"]["inputRequests"].as_object().unwrap().len(), 2);
    // The child goes on without the answers: whoever comes back has its result.
    world.child_says(result(&sent["id"], json!({ "content": [] })));
    world.assert_quiet();
    let state = answer["result"]["requestState"].as_str().unwrap().to_owned();
    world.call("2", "tools/call", answers(&state, json!({})));
    assert_eq!(world.answered().1["result"]["resultType"], "complete");
}

#[test]
fn a_question_that_nobody_can_be_asked_is_refused() {
    let mut world = World::with_handshake_child();
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {} });
    // Nobody waits; whoever waits cannot be asked; or waits for something that asks nothing.
    world.child_says(question.clone());
    let refused = |world: &mut World| {
        let answer = world.to_child.pop_front().unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("q"), &json!(-32601)), "{answer}");
    };
    refused(&mut world);
    world.tool_call("1", json!({ "name": "a", "_meta": meta(json!({ "elicitation": {} })) }));
    world.child_says(question.clone());
    refused(&mut world);
    world.call("2", "tools/list", json!({ "_meta": meta(json!({ "sampling": {} })) }));
    world.child_got("tools/list");
    world.child_says(question);
    refused(&mut world);
    // An address is another thing than a form.
    let address = json!({ "mode": "url", "url": "https://a.example" });
    world.child_says(json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": address }));
    refused(&mut world);
    world.assert_quiet();
}

#[test]
fn a_state_opens_the_request_it_was_given_for_and_no_other() {
    let mut world = World::with_handshake_child();
    let (_, state, _) = asked_for_a_name(&mut world);
    let meta = meta(json!({ "elicitation": {} }));
    for (method, params) in [
        ("tools/call", json!({ "name": "b", "requestState": state, "_meta": meta })),
        ("prompts/get", json!({ "name": "a", "requestState": state, "_meta": meta })),
        ("tools/call", json!({ "name": "a", "requestState": format!("{state}0"), "_meta": meta })),
        ("tools/call", json!({ "name": "a", "requestState": state.replace("nonce", "other"), "_meta": meta })),
        ("tools/call", json!({ "name": "a", "requestState": "", "_meta": meta })),
    ] {
        world.call("2", method, params.clone());
        assert_eq!(world.answered().1["error"]["code"], -32602, "{params}");
    }
    world.assert_quiet();
}

#[test]
fn a_caller_that_does_not_come_back_is_given_up() {
    let mut world = World::with_handshake_child();
    let (sent, state, _) = asked_for_a_name(&mut world);
    world.wait();
    assert_eq!(world.to_child.pop_front().unwrap()["id"], 5);
    assert_eq!(world.child_got("notifications/cancelled")["params"]["requestId"], sent["id"]);
    world.call("2", "tools/call", answers(&state, json!({})));
    assert_eq!(world.answered().1["error"]["code"], -32602);
    assert_eq!(world.bridge.timer(), None);
}

#[test]
fn the_oldest_of_too_many_callers_is_given_up() {
    let mut world = World::with_handshake_child();
    let (oldest, _, _) = asked_for_a_name(&mut world);
    let mut count = 1;
    while world.to_child.is_empty() {
        asked_for_a_name(&mut world);
        count += 1;
        assert!(count <= 100, "there is no limit");
    }
    assert_eq!(world.to_child.pop_front().unwrap()["id"], 5);
    assert_eq!(world.child_got("notifications/cancelled")["params"]["requestId"], oldest["id"]);
}

#[test]
fn a_caller_that_leaves_before_it_is_asked_is_given_up_at_once() {
    let mut world = World::with_handshake_child();
    let (exchange, sent) = world.tool_call("1", json!({ "name": "a", "_meta": meta(json!({ "roots": {} })) }));
    world.child_says(json!({ "jsonrpc": "2.0", "id": 6, "method": "roots/list" }));
    world.give(Input::Left(Exchange(exchange)));
    assert_eq!(world.to_child.pop_front().unwrap()["error"]["code"], -32603);
    assert_eq!(world.child_got("notifications/cancelled")["params"]["requestId"], sent["id"]);
    world.assert_quiet();
}

#[test]
fn a_handshake_caller_of_a_stateless_child_is_asked_what_its_results_ask() {
    let mut world = World::with_handshake_caller();
    let exchange = world.call("1", "tools/call", json!({ "name": "a", "_meta": { "progressToken": 9 } }));
    let sent = world.child_got("tools/call");
    let meta = &sent["params"]["_meta"];
    assert_eq!(meta[VERSION_KEY], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "c");
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "info");
    let asks = json!({
        "resultType": "input_required", "requestState": "s",
        "inputRequests": {
            "name": { "method": "elicitation/create", "params": { "message": "Who?" } },
            "place": { "method": "elicitation/create", "params": { "message": "Where?" } }
        }
    });
    world.child_says(result(&sent["id"], asks));
    let questions = [world.told(), world.told()];
    assert!(questions.iter().all(|(asked, question)| *asked == exchange && question["method"] == "elicitation/create"));
    world.respond(result(&questions[1].1["id"], json!({ "action": "decline" })));
    // A second answer, and one to nothing, are no answers.
    world.respond(result(&questions[1].1["id"], json!({ "action": "accept" })));
    world.respond(result(&json!("shim-99"), json!({})));
    world.assert_quiet();
    world.respond(result(&questions[0].1["id"], json!({ "action": "accept" })));
    let again = world.child_got("tools/call");
    assert_ne!(again["id"], sent["id"]);
    assert_eq!(again["params"]["requestState"], "s");
    let answers = json!({ "name": { "action": "accept" }, "place": { "action": "decline" } });
    assert_eq!(again["params"]["inputResponses"], answers);
    assert_eq!(again["params"]["_meta"]["progressToken"], again["id"]);
    world.child_says(result(&again["id"], json!({ "resultType": "complete", "content": [] })));
    let (answered, answer) = world.answered();
    assert_eq!((answered, &answer["id"], &answer["result"]), (exchange, &json!("1"), &json!({ "content": [] })));
}

#[test]
fn a_handshake_caller_may_refuse_a_question_and_cancel() {
    let asks = json!({ "resultType": "input_required",
        "inputRequests": { "name": { "method": "elicitation/create", "params": {} } } });
    let mut world = World::with_handshake_caller();
    let exchange = world.call("1", "tools/call", json!({ "name": "a" }));
    let sent = world.child_got("tools/call");
    world.child_says(result(&sent["id"], asks.clone()));
    let (_, question) = world.told();
    let error = json!({ "code": -1, "message": "not now" });
    world.respond(json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
    let (answered, answer) = world.answered();
    assert_eq!((answered, &answer["error"]["message"]), (exchange, &json!("not now")));

    let exchange = world.call("2", "tools/call", json!({ "name": "a" }));
    let sent = world.child_got("tools/call");
    world.notify(json!({ "method": "notifications/cancelled", "params": { "requestId": "2" } }));
    assert_eq!(world.child_got("notifications/cancelled")["params"]["requestId"], sent["id"]);
    assert_eq!(world.answered(), (exchange, Value::Null));
    world.child_says(result(&sent["id"], asks));
    world.assert_quiet();
}

#[test]
fn a_child_cannot_ask_a_handshake_caller_without_end() {
    let mut world = World::with_handshake_caller();
    world.call("1", "tools/call", json!({ "name": "a" }));
    for round in 0.. {
        let Some(sent) = world.to_child.pop_front() else { break };
        assert!(round < 100, "it has no end");
        world.child_says(result(&sent["id"], json!({ "resultType": "input_required", "requestState": "s" })));
    }
    assert_eq!(world.answered().1["error"]["code"], -32603);
}

#[test]
fn a_handshake_caller_hears_what_it_follows() {
    let mut world = World::with_handshake_caller();
    world.notify(json!({ "method": "notifications/initialized" }));
    let listen = world.child_got("subscriptions/listen");
    assert_eq!(listen["params"]["notifications"], json!({ "toolsListChanged": true }));
    world.call("1", "resources/subscribe", json!({ "uri": "u" }));
    assert_eq!(world.answered().1["result"], json!({}));
    let wider = world.child_got("subscriptions/listen");
    assert_eq!(wider["params"]["notifications"]["resourceSubscriptions"], json!(["u"]));
    assert_eq!(world.child_got("notifications/cancelled")["params"]["requestId"], listen["id"]);
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": wider["id"] });
    let updated = json!({ "uri": "u", "_meta": meta });
    world.child_says(json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": updated }));
    let (exchange, message) = world.told();
    assert_eq!((exchange, &message["params"]), (0, &json!({ "uri": "u" })));
    for (method, params, expected) in [
        ("ping", json!({}), None),
        ("logging/setLevel", json!({ "level": "error" }), None),
        ("logging/setLevel", json!({ "level": "loud" }), Some(-32602)),
        ("resources/subscribe", json!({}), Some(-32602)),
        ("subscriptions/listen", json!({}), Some(-32601)),
        ("server/discover", json!({}), Some(-32601)),
    ] {
        world.call("2", method, params);
        assert_eq!(world.answered().1["error"]["code"].as_i64(), expected, "{method}");
    }
    world.call("3", "tools/list", json!({}));
    let list = world.child_got("tools/list");
    assert_eq!(list["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "error");
    world.call("3", "tools/list", json!({}));
    assert_eq!(world.answered().1["error"]["code"], -32600);
    let listed = json!({ "resultType": "complete", "tools": [], "ttlMs": 5, "cacheScope": "public" });
    world.child_says(result(&list["id"], listed));
    assert_eq!(world.answered().1["result"], json!({ "tools": [] }));
    world.call("4", "tools/list", json!({}));
    let list = world.child_got("tools/list");
    world.child_says(result(&list["id"], json!({ "resultType": "task" })));
    assert_eq!(world.answered().1["error"]["code"], -32603);
}

#[test]
fn a_handshake_caller_and_child_hear_each_other() {
    let mut world = World::new(Callers::Handshake, ServerEra::Handshake);
    let first = world.call("i", "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
    let initialize = world.child_got("initialize");
    assert_eq!(initialize["id"], "i");
    world.child_says(result(&json!("i"), json!({ "protocolVersion": "2025-11-25" })));
    assert_eq!(world.answered().0, first);
    world.notify(json!({ "method": "notifications/initialized" }));
    world.child_got("notifications/initialized");

    let slow = world.call("1", "tools/call", json!({ "name": "a", "_meta": { "progressToken": "t" } }));
    let newer = world.call("2", "tools/call", json!({ "name": "b" }));
    assert_eq!(world.child_got("tools/call")["params"]["_meta"]["progressToken"], "t");
    world.child_got("tools/call");
    world.call("2", "tools/call", json!({ "name": "b" }));
    assert_eq!(world.answered().1["error"]["code"], -32600);
    let progress = json!({ "progressToken": "t", "progress": 1 });
    world.child_says(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
    assert_eq!(world.told().0, slow);
    world.child_says(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    assert_eq!(world.told().0, 0);
    let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
    world.child_says(question.clone());
    assert_eq!(world.told(), (newer, question));
    world.respond(result(&json!(7), json!({})));
    world.assert_quiet();
    world.respond(result(&json!(1), json!({ "roots": [] })));
    assert_eq!(world.to_child.pop_front().unwrap()["result"], json!({ "roots": [] }));
    world.respond(result(&json!(1), json!({ "roots": [] })));
    world.give(Input::Left(Exchange(newer)));
    world.assert_quiet();
    world.notify(json!({ "method": "notifications/cancelled", "params": { "requestId": "2" } }));
    world.child_got("notifications/cancelled");
    assert_eq!(world.answered(), (newer, Value::Null));
    world.give(Input::ChildEnded("it is gone".to_owned()));
    let (exchange, answer) = world.answered();
    assert_eq!((exchange, &answer["error"]["message"]), (slow, &json!("it is gone")));
}

#[test]
fn everyone_who_waits_hears_of_the_end() {
    for child in [ServerEra::Stateless, ServerEra::Handshake] {
        // One at work, one held for its headers; or both before the child is ready.
        let mut world = World::new(Callers::Stateless, child);
        world.call("1", "tools/list", json!({ "_meta": meta(json!({})) }));
        world.call("2", "tools/call", json!({ "name": "a", "_meta": meta(json!({})) }));
        world.give(Input::ChildEnded("it is gone".to_owned()));
        let mut told = [world.answered(), world.answered()].map(|(exchange, answer)| {
            assert_eq!(answer["error"]["message"], "it is gone");
            exchange
        });
        told.sort_unstable();
        assert_eq!(told, [1, 2]);
    }
    let mut world = World::new(Callers::Handshake, ServerEra::Stateless);
    world.call("i", "initialize", json!({}));
    world.give(Input::ChildEnded("it is gone".to_owned()));
    assert_eq!(world.answered().1["error"]["message"], "it is gone");
    let mut world = World::with_handshake_child();
    world.tool_call("1", json!({ "name": "a", "_meta": meta(json!({ "roots": {} })) }));
    world.child_says(json!({ "jsonrpc": "2.0", "id": 6, "method": "roots/list" }));
    world.give(Input::ChildEnded("it is gone".to_owned()));
    assert_eq!(world.answered().1["error"]["message"], "it is gone");
}

#[test]
fn arguments_in_headers_are_held_to_the_list_of_tools() {
    let tools = json!({ "tools": [{ "name": "a", "inputSchema": {
        "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } } }] });
    for child in [ServerEra::Stateless, ServerEra::Handshake] {
        let mut world = match child {
            ServerEra::Stateless => World::new(Callers::Stateless, child),
            ServerEra::Handshake => World::with_handshake_child(),
        };
        let params = json!({ "name": "a", "arguments": { "region": "eu" }, "_meta": meta(json!({})) });
        world.call_with("1", "tools/call", params.clone(), &[("mcp-param-region", "eu")]);
        let left = world.call("2", "tools/call", params.clone());
        world.call("3", "tools/call", params.clone());
        world.give(Input::Left(Exchange(left)));
        let list = world.child_got("tools/list");
        world.child_says(result(&list["id"], tools.clone()));
        world.child_got("tools/call");
        let (exchange, answer) = world.answered();
        assert_eq!((exchange, &answer["error"]["code"]), (3, &json!(-32020)));
        world.call_with("4", "tools/call", params, &[("mcp-param-region", "eu")]);
        world.child_got("tools/call");
        world.assert_quiet();
    }
}
