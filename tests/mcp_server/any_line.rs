//! No line panics, and every line that comes out is one message.

use crablet::mcp::protocol::Revision;
use crablet::mcp::server::{InputRequest, Outcome, Outgoing, Server};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{handshake_with, message, raw, said, server};

/// JSON that is near enough to a message to come far.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..30).prop_map(Value::from),
        prop_oneof![
            Just("add_one"),
            Just("plain.tool"),
            Just("test://notes/1"),
            Just("weather"),
            Just("2026-07-28"),
            Just("2025-06-18"),
            Just("info"),
            Just("ref/prompt"),
            Just("a\nb\u{2028}\u{7f}é😀"),
            Just("server-0"),
            Just("")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = prop_oneof![
            Just("name"),
            Just("arguments"),
            Just("a"),
            Just("uri"),
            Just("_meta"),
            Just("cursor"),
            Just("level"),
            Just("requestId"),
            Just("progressToken"),
            Just("ref"),
            Just("argument"),
            Just("context"),
            Just("value"),
            Just("type"),
            Just("protocolVersion"),
            Just("capabilities"),
            Just("notifications"),
            Just("inputResponses"),
            Just("requestState"),
            Just("city"),
            Just("io.modelcontextprotocol/protocolVersion"),
            Just("io.modelcontextprotocol/clientCapabilities"),
            Just("elicitation"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..5).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

fn near_message() -> impl Strategy<Value = String> {
    let method = prop_oneof![
        Just("initialize"),
        Just("ping"),
        Just("tools/list"),
        Just("tools/call"),
        Just("resources/list"),
        Just("resources/read"),
        Just("resources/subscribe"),
        Just("resources/unsubscribe"),
        Just("prompts/get"),
        Just("prompts/list"),
        Just("completion/complete"),
        Just("logging/setLevel"),
        Just("server/discover"),
        Just("subscriptions/listen"),
        Just("notifications/cancelled"),
        Just("resources/templates/list"),
    ];
    let member = |strategy: BoxedStrategy<Value>| prop::option::weighted(0.9, strategy);
    let stateless = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let params = prop_oneof![
        value(),
        value().prop_map(move |mut params| {
            if params.is_object() {
                params["_meta"] = stateless.clone();
            }
            params
        }),
    ];
    let method = prop_oneof![9 => method.prop_map(Value::from), 1 => value()];
    (member(value().boxed()), member(method.boxed()), member(params.boxed()), member(value().boxed())).prop_map(
        |(id, method, params, result)| {
            let mut message = json!({ "jsonrpc": "2.0" });
            for (name, value) in [("id", id), ("method", method), ("params", params)] {
                if let Some(value) = value {
                    message[name] = value;
                }
            }
            if let (true, Some(result)) = (message.get("method").is_none(), result) {
                message["result"] = result;
            }
            message.to_string()
        },
    )
}

/// Handles a line, and ends the calls that it leads to in one of several ways.
fn drive(server: &mut Server, line: &str, choice: usize) {
    let mut outgoing = server.handle_line(line);
    loop {
        let call = match outgoing {
            Outgoing::Call(call) => call,
            Outgoing::Blocked(call) => {
                server.gate_reply(&call).iter().for_each(|line| drop(message(line)));
                return;
            }
            Outgoing::Reply(line) | Outgoing::Listening { line, .. } => {
                message(&line);
                return;
            }
            _ => return,
        };
        if choice == 0 {
            return;
        }
        call.progress(1.0, None, None).iter().for_each(|line| drop(message(line)));
        let form = InputRequest::elicit("a\nb", &raw(&json!({})));
        let outcome = match choice {
            1 => Outcome::Tool(said("a\nb")),
            2 => Outcome::NeedsInput { requests: vec![("k".into(), form)], state: Some("s\n".into()) },
            _ => Outcome::Failed("a\nb".into()),
        };
        server.complete(call, outcome).iter().for_each(|line| drop(message(line)));
        outgoing = Outgoing::None;
    }
}

proptest! {
    #[test]
    fn any_text_is_answered_or_ignored(line in any::<String>()) {
        drive(&mut server(), &line, 1);
    }

    #[test]
    fn any_messages_in_any_order(lines in prop::collection::vec((near_message(), 0_usize..4), 1..12), is_new in any::<bool>()) {
        let mut server = match is_new {
            true => server(),
            false => handshake_with(Revision::V2025_11_25, json!({ "elicitation": {} })),
        };
        for (line, choice) in lines {
            drive(&mut server, &line, choice);
        }
    }

    #[test]
    fn a_request_with_an_id_is_answered_once(line in near_message()) {
        let read: Value = serde_json::from_str(&line).unwrap();
        let has_id = read["id"].is_string() || read["id"].is_number();
        let outgoing = server().handle_line(&line);
        if has_id && read["method"].is_string() {
            prop_assert_ne!(outgoing, Outgoing::None);
        } else if read.get("id").is_none() {
            prop_assert_eq!(outgoing, Outgoing::None);
        }
    }
}
