//! Whatever a server answers: no panic, and every operation ends exactly once.

use crablet::mcp::client::{CallOptions, Event, Input, Request};
use crablet::mcp::protocol::EraChoice;
use proptest::prelude::*;
use serde_json::json;

use crate::mcp_support::{Answer, Cut, Then, World, body_of};
use crate::server::{call, options};

/// Bodies that are nearly right, with `$ID` for the id of the request.
const BODIES: &[&str] = &[
    "",
    "null",
    "[]",
    "{",
    r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"x","inputSchema":{}}],"nextCursor":"$ID"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18","2026-07-28"]}}}"#,
    r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"}}"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1}}"#,
    "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}\n\n",
    "id: 1\nretry: 5\ndata:\n\n",
    ": comment\n\ndata: [{\"method\":\"a\"},{\"id\":$ID,\"result\":{\"content\":[]}}]\n\n",
];

fn answer() -> impl Strategy<Value = Answer> {
    let status = prop::sample::select(vec![200_u16, 200, 200, 202, 204, 307, 400, 401, 404, 405, 429, 500]);
    let kind = prop::sample::select(vec!["application/json", "text/event-stream", "text/html", ""]);
    let then =
        prop::sample::select(vec![Then::Close, Then::Close, Then::Hold, Then::Break, Then::Unreachable, Then::Opaque]);
    let session = prop::option::of(prop::sample::select(vec!["s-1", "s-2", "not visible"]));
    (status, kind, prop::sample::select(BODIES), then, session, 0_u64..50).prop_map(
        |(status, kind, body, then, session, delay)| {
            let answer = Answer::new(status).header("content-type", kind).chunk(body).then(then).delayed(delay);
            session.into_iter().fold(answer, |answer, session| answer.header("mcp-session-id", session))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_operation_ends_exactly_once(
        answers in prop::collection::vec(answer(), 1..24),
        era in prop::sample::select(vec![EraChoice::Auto, EraChoice::Handshake, EraChoice::Stateless]),
        cut in prop::sample::select(vec![Cut::AsWritten, Cut::Bytes, Cut::At(7)]),
    ) {
        let mut script = answers.into_iter().cycle();
        let mut left = 200;
        let server = move |request: &crablet::model::HttpRequest| {
            // A server that goes on for ever with new events and cursors is ended here, not by a limit of the client.
            left -= 1;
            if left <= 0 {
                return Answer::new(500);
            }
            let mut answer = script.next().unwrap_or_default();
            let id = body_of(request).get("id").cloned().unwrap_or(json!(1)).to_string();
            for chunk in &mut answer.chunks {
                *chunk = String::from_utf8_lossy(chunk).replace("$ID", &id).into_bytes();
            }
            answer
        };
        let mut world = World::new(options(era), server).cut(cut);
        let limits = CallOptions { idle_timeout: 1_000, maximum: Some(60_000), ..CallOptions::default() };
        let requests = [Request::ListTools, call("x"), call("y")];
        let started: Vec<_> = requests.into_iter().map(|request| world.start(request, limits.clone())).collect();
        world.run_until(|event| matches!(event, Event::Done { operation, .. } if *operation == started[2]).then_some(()));
        world.input(Input::Close);
        world.settle();
        for wanted in started {
            let ended = world.events.iter().filter(|event| matches!(event, Event::Done { operation, .. } if *operation == wanted));
            prop_assert_eq!(ended.count(), 1);
        }
        let closed = world.events.iter().filter(|event| matches!(event, Event::Closed { .. })).count();
        prop_assert_eq!(closed, 1);
        prop_assert_eq!(world.open_exchanges(), 0);
    }
}
