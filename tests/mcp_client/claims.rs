//! Calls that outlive the client that made them.

use std::sync::Arc;

use crablet::json::RawJson;
use crablet::mcp::client::{CallOptions, Claim, Event, Input, Opening, OperationId, Reply, TimerId};
use crablet::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::pipe::{HANDSHAKE, Pipe, answer};
use crate::server::call;

fn shim(is_resumed: bool) -> Pipe {
    let mut pipe = Pipe::new(Opening {
        initialized: Some(RawJson::parse(HANDSHAKE).unwrap()),
        id_prefix: "2-".to_owned(),
        resume_id: Some("r".to_owned()),
        is_resumed,
        ..Opening::default()
    });
    pipe.events();
    pipe
}

fn start(pipe: &mut Pipe, number: u64, claim: Claim) {
    let options = CallOptions { claim, ..CallOptions::default() };
    pipe.input(Input::Start { operation: OperationId(number), request: call("x"), options });
}

fn offer(key: &str) -> Claim {
    Claim::Offer(Arc::from(key))
}

fn take(key: &str) -> Claim {
    Claim::Take(Arc::from(key))
}

/// What became of each operation, in order.
fn outcomes(pipe: &mut Pipe) -> Vec<(u64, Result<String, ErrorKind>)> {
    let outcome = |outcome: Result<Reply, Error>| match outcome {
        Ok(Reply::ToolResult(result)) => Ok(result.as_str().to_owned()),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.kind()),
    };
    let done = |event| match event {
        Event::Done { operation, outcome: given } => Some((operation.0, outcome(given))),
        _ => None,
    };
    pipe.events().into_iter().filter_map(done).collect()
}

fn result(text: &str) -> Value {
    json!({ "content": [], "structuredContent": { "said": text } })
}

#[test]
fn only_one_call_of_a_connection_that_can_be_resumed_has_the_key_for_its_id() {
    let mut pipe = shim(false);
    for number in 1..=3 {
        start(&mut pipe, number, if number == 3 { Claim::None } else { offer("k") });
    }
    let ids: Vec<Value> = pipe.sent().into_iter().map(|request| request["id"].clone()).collect();
    assert_eq!(ids, ["call-k", "2-1", "2-2"]);

    let initialized = Some(RawJson::parse(HANDSHAKE).unwrap());
    let mut pipe = Pipe::new(Opening { initialized, ..Opening::default() });
    start(&mut pipe, 1, offer("k"));
    assert_eq!(pipe.sent()[0]["id"], 1);
}

#[test]
fn an_answer_is_claimed_whether_it_comes_before_or_after() {
    let mut pipe = shim(true);
    pipe.receive(answer(&json!({ "id": "call-early" }), result("early")));
    assert!(pipe.events().is_empty(), "it is kept without a warning");
    start(&mut pipe, 1, take("early"));
    start(&mut pipe, 2, take("late"));
    assert!(pipe.sent().is_empty(), "nothing is called");
    assert_eq!(outcomes(&mut pipe), [(1, Ok(result("early").to_string()))]);
    let progress = json!({ "progressToken": "call-late", "progress": 1 });
    pipe.receive(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
    assert!(matches!(pipe.events()[..], [Event::Progress { operation: OperationId(2), .. }]));
    pipe.receive(answer(&json!({ "id": "call-late" }), result("late")));
    assert_eq!(outcomes(&mut pipe), [(2, Ok(result("late").to_string()))]);

    start(&mut pipe, 3, take("early"));
    pipe.input(Input::Timer(TimerId::Idle(OperationId(3))));
    assert_eq!(outcomes(&mut pipe), [(3, Err(ErrorKind::Timeout))], "an answer is given once");
}

#[test]
fn nothing_is_claimed_from_a_new_process() {
    let mut pipe = shim(false);
    start(&mut pipe, 1, take("k"));
    assert_eq!(outcomes(&mut pipe), [(1, Err(ErrorKind::ConnectionClosed))]);
    pipe.receive(answer(&json!({ "id": "call-k" }), result("?")));
    assert!(matches!(pipe.events()[..], [Event::Warning(_)]));
}

#[test]
fn a_claim_that_nobody_wants_any_more_is_a_call_that_is_cancelled() {
    let mut pipe = shim(true);
    start(&mut pipe, 1, take("k"));
    pipe.input(Input::Cancel { operation: OperationId(1), reason: "enough".to_owned() });
    assert_eq!(pipe.sent()[0]["params"]["requestId"], "call-k");
}

#[test]
fn a_server_cannot_fill_the_memory_with_answers_that_nobody_claims() {
    let mut pipe = shim(true);
    for number in 0..100 {
        pipe.receive(answer(&json!({ "id": format!("call-{number}") }), result("x")));
    }
    assert_eq!(pipe.events().len(), 36, "each beyond the limit is warned of");
    start(&mut pipe, 1, take("99"));
    assert_eq!(outcomes(&mut pipe).len(), 1);
    start(&mut pipe, 2, take("35"));
    assert!(outcomes(&mut pipe).is_empty());
}
