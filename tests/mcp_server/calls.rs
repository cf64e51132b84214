//! Calls: arguments before availability, results as promised, cancellation.

use crablet::mcp::protocol::{CallToolResult, ContentBlock, PromptMessage, ResourceBody, ResourceContents, Revision};
use crablet::mcp::server::{Availability, Outcome, Outgoing, Request};
use serde_json::json;

use super::{complete, handshake, message, pending, raw, reply, request, said, server, stateless};

#[test]
fn invalid_arguments_are_an_error_up_to_2025_06_18_and_a_failed_result_after() {
    let bad = json!({ "name": "add_one", "arguments": { "a": "x" } });
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18] {
        let answer = reply(handshake(revision).handle_line(&request(1, "tools/call", bad.clone())));
        assert_eq!(answer["error"]["code"], -32602, "{revision:?}");
    }
    let answers = [
        reply(handshake(Revision::V2025_11_25).handle_line(&request(1, "tools/call", bad.clone()))),
        reply(server().handle_line(&stateless(1, "tools/call", bad))),
    ];
    for answer in answers {
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("arguments of add_one"));
    }
}

#[test]
fn a_tool_that_is_not_there_is_an_error_in_every_revision() {
    for params in [json!({ "name": "nothing" }), json!({}), json!({ "name": 7 })] {
        let answer = reply(handshake(Revision::V2025_11_25).handle_line(&request(1, "tools/call", params.clone())));
        assert_eq!(answer["error"]["code"], -32602);
        assert_eq!(reply(server().handle_line(&stateless(1, "tools/call", params)))["error"]["code"], -32602);
    }
}

#[test]
fn arguments_are_checked_before_availability() {
    let mut server = handshake(Revision::V2025_11_25);
    let closed = Availability { closed: Some("the page is closed".into()), ..Availability::default() };
    server.set_availability(closed);
    let bad = json!({ "name": "add_one", "arguments": {} });
    let answer = reply(server.handle_line(&request(1, "tools/call", bad)));
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("not valid"), "{answer}");
    assert!(reply(server.handle_line(&request(2, "tools/list", json!({}))))["result"]["tools"][1].is_object());
}

#[test]
fn a_blocked_call_is_answered_in_the_words_of_the_moment_or_run() {
    let mut server = handshake(Revision::V2025_11_25);
    let blocked =
        |reason: &str| Availability { closed: None, blocked: vec![("plain.tool".to_owned(), reason.to_owned())] };
    server.set_availability(blocked("first reason"));
    let call = json!({ "name": "plain.tool" });
    let Outgoing::Blocked(pending) = server.handle_line(&request(1, "tools/call", call.clone())) else {
        panic!("it is blocked")
    };
    server.set_availability(blocked("second reason"));
    let answer = message(&server.gate_reply(&pending).unwrap());
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["content"][0]["text"], "second reason");
    assert_eq!(server.gate_reply(&pending), None, "a call is answered once");
    assert!(server.complete(pending, Outcome::Tool(said("late"))).is_empty());

    let Outgoing::Blocked(pending) = server.handle_line(&request(2, "tools/call", call)) else {
        panic!("it is blocked")
    };
    server.set_availability(Availability::default());
    let answer = complete(&mut server, pending, Outcome::Tool(said("ran")));
    assert_eq!(answer["result"]["content"][0]["text"], "ran");
}

#[test]
fn a_structured_result_is_checked_and_told_as_text_too() {
    let mut server = handshake(Revision::V2025_11_25);
    let add = |id: u64| request(id, "tools/call", json!({ "name": "add_one", "arguments": { "a": 1 } }));
    let value = |value| CallToolResult { structured_content: Some(raw(&value)), ..CallToolResult::default() };
    let call = pending(server.handle_line(&add(1)));
    let answer = complete(&mut server, call, Outcome::Tool(value(json!({ "sum": 2 }))));
    assert_eq!(answer["result"]["structuredContent"], json!({ "sum": 2 }));
    assert_eq!(answer["result"]["content"], json!([{ "type": "text", "text": "{\"sum\":2}" }]));
    for (id, result) in [(2, value(json!({ "sum": "x" }))), (3, said("no value"))] {
        let call = pending(server.handle_line(&add(id)));
        let answer = complete(&mut server, call, Outcome::Tool(result));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    let call = pending(server.handle_line(&add(4)));
    let failed = CallToolResult { is_error: true, ..said("it failed") };
    let answer = complete(&mut server, call, Outcome::Tool(failed));
    assert_eq!(answer["result"]["content"][0]["text"], "it failed", "a failure has no value to check");
    let mut old = handshake(Revision::V2024_11_05);
    let call = pending(old.handle_line(&add(1)));
    let answer = complete(&mut old, call, Outcome::Tool(value(json!({ "sum": 2 }))));
    assert_eq!(answer["result"]["structuredContent"], json!(null));
    assert_eq!(answer["result"]["content"][0]["text"], "{\"sum\":2}");
}

#[test]
fn blocks_that_a_revision_does_not_know_become_text() {
    let blocks = vec![
        ContentBlock::Audio { data: "AA==".into(), mime_type: "audio/wav".into() },
        ContentBlock::ResourceLink { uri: "x://y".into(), name: None, title: None, description: None, mime_type: None },
    ];
    let kinds = |revision| {
        let mut server = handshake(revision);
        let call = pending(server.handle_line(&request(1, "tools/call", json!({ "name": "plain.tool" }))));
        let result = CallToolResult { content: blocks.clone(), ..CallToolResult::default() };
        let answer = complete(&mut server, call, Outcome::Tool(result));
        let kind = |at: usize| answer["result"]["content"][at]["type"].as_str().unwrap().to_owned();
        [kind(0), kind(1)]
    };
    assert_eq!(kinds(Revision::V2024_11_05), ["text", "text"]);
    assert_eq!(kinds(Revision::V2025_03_26), ["audio", "text"]);
    assert_eq!(kinds(Revision::V2025_06_18), ["audio", "resource_link"]);
}

#[test]
fn many_calls_are_at_work_at_once_and_one_is_cancelled() {
    let mut server = handshake(Revision::V2025_11_25);
    let mut start = |id: u64| {
        let line = request(id, "tools/call", json!({ "name": "plain.tool" }));
        pending(server.handle_line(&line))
    };
    let calls = [start(1), start(2), start(3)];
    let twice = reply(server.handle_line(&request(2, "tools/call", json!({ "name": "plain.tool" }))));
    assert_eq!((&twice["error"]["code"], &twice["id"]), (&json!(-32600), &json!(null)));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    assert_eq!(server.handle_line(cancel), Outgoing::Cancelled(calls[1].number()));
    assert_eq!(server.handle_line(cancel), Outgoing::None);
    let [one, two, three] = calls;
    assert!(server.complete(two, Outcome::Tool(said("late"))).is_empty(), "a cancelled call gets no answer");
    assert_eq!(complete(&mut server, three, Outcome::Tool(said("c")))["id"], 3);
    assert_eq!(complete(&mut server, one, Outcome::Tool(said("a")))["id"], 1);
}

#[test]
fn resources_are_read_by_address_and_by_template() {
    let mut server = handshake(Revision::V2025_11_25);
    let call = pending(server.handle_line(&request(1, "resources/read", json!({ "uri": "test://notes/7" }))));
    let expected = Request::Resource { uri: "test://notes/7".into(), variables: vec![("id".into(), "7".into())] };
    assert_eq!(call.request, expected);
    let contents = vec![ResourceContents {
        uri: "test://notes/7".into(),
        mime_type: Some("text/plain".into()),
        body: ResourceBody::Text("seven".into()),
    }];
    let answer = complete(&mut server, call, Outcome::Contents(contents));
    let expected = json!([{ "uri": "test://notes/7", "mimeType": "text/plain", "text": "seven" }]);
    assert_eq!(answer["result"], json!({ "contents": expected }));

    let missing = json!({ "uri": "test://other" });
    let answer = reply(server.handle_line(&request(2, "resources/read", missing.clone())));
    assert_eq!(answer["error"]["code"], -32002);
    assert_eq!(answer["error"]["data"], missing);
    assert_eq!(reply(server.handle_line(&stateless(3, "resources/read", missing)))["error"]["code"], -32602);
    let call = pending(server.handle_line(&request(4, "resources/read", json!({ "uri": "test://notes/8" }))));
    assert_eq!(complete(&mut server, call, Outcome::NotFound)["error"]["code"], -32002);
}

#[test]
fn prompts_need_their_arguments() {
    let mut server = handshake(Revision::V2025_11_25);
    let get = |id: u64, params| request(id, "prompts/get", params);
    for params in [
        json!({ "name": "weather" }),
        json!({ "name": "weather", "arguments": { "city": 7 } }),
        json!({ "name": "nothing" }),
        json!({}),
    ] {
        assert_eq!(reply(server.handle_line(&get(1, params.clone())))["error"]["code"], -32602, "{params}");
    }
    let call = pending(server.handle_line(&get(2, json!({ "name": "weather", "arguments": { "city": "Oslo" } }))));
    let content = ContentBlock::Text { text: "Rain?".into() };
    let messages = vec![PromptMessage { role: "user".into(), content }];
    let answer = complete(&mut server, call, Outcome::Prompt { description: None, messages });
    let expected = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "Rain?" } }] });
    assert_eq!(answer["result"], expected);
}

#[test]
fn completions_are_at_most_a_hundred() {
    let mut server = handshake(Revision::V2025_11_25);
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "weather" },
        "argument": { "name": "city", "value": "O" },
        "context": { "arguments": { "country": "NO" } },
    });
    let call = pending(server.handle_line(&request(1, "completion/complete", params)));
    let Request::Completion { of, is_prompt, argument, value, known } = &call.request else { panic!("a completion") };
    assert_eq!((of.as_str(), *is_prompt, argument.as_str(), value.as_str()), ("weather", true, "city", "O"));
    assert_eq!(known, &[("country".to_owned(), "NO".to_owned())]);
    let values = (0..150).map(|number| number.to_string()).collect();
    let answer = complete(&mut server, call, Outcome::Completion { values, total: None });
    let completion = &answer["result"]["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(150), &json!(true)));
    let answer = reply(server.handle_line(&request(2, "completion/complete", json!({ "ref": { "type": "x" } }))));
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn a_function_that_fails_or_answers_something_else() {
    let mut server = handshake(Revision::V2025_11_25);
    let call = pending(server.handle_line(&request(1, "tools/call", json!({ "name": "plain.tool" }))));
    let answer = complete(&mut server, call, Outcome::Failed("no disk".into()));
    assert_eq!(answer["result"]["content"][0]["text"], "no disk");
    let call = pending(server.handle_line(&request(2, "resources/read", json!({ "uri": "test://notes" }))));
    assert_eq!(complete(&mut server, call, Outcome::Failed("no disk".into()))["error"]["code"], -32603);
    let call = pending(server.handle_line(&request(3, "resources/read", json!({ "uri": "test://notes" }))));
    assert_eq!(complete(&mut server, call, Outcome::Tool(said("x")))["error"]["code"], -32603);
}
