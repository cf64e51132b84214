//! A call that asks the client first, written once for both eras.

use crablet::mcp::protocol::Revision;
use crablet::mcp::server::{InputRequest, Outcome, Outgoing};
use serde_json::{Value, json};

use super::{complete, handshake, handshake_with, message, pending, raw, request, said, server, stateless_with};

fn name_form() -> InputRequest {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    InputRequest::elicit("Who are you?", &raw(&schema))
}

fn ask(requests: &[(&str, InputRequest)]) -> Outcome {
    let requests = requests.iter().map(|(key, request)| ((*key).to_owned(), request.clone())).collect();
    Outcome::NeedsInput { requests, state: Some("kept".into()) }
}

fn call() -> Value {
    json!({ "name": "plain.tool" })
}

#[test]
fn in_the_stateless_era_the_client_calls_again_with_the_answers() {
    let mut server = server();
    let capabilities = json!({ "elicitation": {}, "roots": {} });
    let first = pending(server.handle_line(&stateless_with(1, "tools/call", call(), capabilities.clone())));
    assert!(first.input_responses.is_empty() && first.request_state.is_none());
    let answer = complete(&mut server, first, ask(&[("who", name_form()), ("where", InputRequest::roots())]));
    let result = &answer["result"];
    assert_eq!((&result["resultType"], &result["requestState"]), (&json!("input_required"), &json!("kept")));
    assert_eq!(result["inputRequests"]["who"]["method"], "elicitation/create");
    assert_eq!(result["inputRequests"]["who"]["params"]["message"], "Who are you?");
    assert_eq!(result["inputRequests"]["where"], json!({ "method": "roots/list", "params": {} }));

    let mut again = call();
    again["inputResponses"] = json!({ "who": { "action": "accept", "content": { "name": "Ada" } } });
    again["requestState"] = json!("kept");
    let second = pending(server.handle_line(&stateless_with(2, "tools/call", again, capabilities)));
    assert_eq!(second.request_state.as_deref(), Some("kept"));
    let who: Value = second.input_responses.member("who").unwrap().read().unwrap();
    assert_eq!(who["content"]["name"], "Ada");
    assert_eq!(complete(&mut server, second, Outcome::Tool(said("Hello Ada")))["id"], 2);
}

#[test]
fn in_the_handshake_era_the_client_is_asked_and_the_call_comes_again() {
    let mut server = handshake_with(Revision::V2025_11_25, json!({ "elicitation": {}, "sampling": {} }));
    let first = pending(server.handle_line(&request(1, "tools/call", call())));
    let sampling = InputRequest::sample(raw(&json!({ "messages": [], "maxTokens": 5 })));
    let lines = server.complete(first, ask(&[("who", name_form()), ("what", sampling)]));
    let asked: Vec<Value> = lines.iter().map(|line| message(line)).collect();
    assert_eq!(asked[0]["method"], "elicitation/create");
    assert_eq!(asked[1]["method"], "sampling/createMessage");
    assert_eq!(asked[1]["params"]["maxTokens"], 5);

    let answer =
        |asked: &Value, result: Value| json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string();
    let named = answer(&asked[0], json!({ "action": "accept", "content": { "name": "Ada" } }));
    assert_eq!(server.handle_line(&named), Outgoing::None, "one answer is open");
    assert_eq!(server.handle_line(&named), Outgoing::None, "an answer counts once");
    let second = pending(server.handle_line(&answer(&asked[1], json!({ "role": "assistant" }))));
    assert_eq!(second.request_state.as_deref(), Some("kept"));
    assert!(second.input_responses.member("who").is_some() && second.input_responses.member("what").is_some());
    assert_eq!(complete(&mut server, second, Outcome::Tool(said("Hello Ada")))["id"], 1);
}

#[test]
fn a_client_that_cannot_be_asked_is_told() {
    let mut old = handshake(Revision::V2025_11_25);
    let first = pending(old.handle_line(&request(1, "tools/call", call())));
    assert!(!first.can_ask(&name_form()));
    let answer = complete(&mut old, first, ask(&[("who", name_form())]));
    assert_eq!(answer["result"]["isError"], true);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("elicitation"));

    let mut modern = server();
    let capabilities = json!({ "elicitation": { "form": {} } });
    let first = pending(modern.handle_line(&stateless_with(1, "tools/call", call(), capabilities.clone())));
    let sampling = InputRequest::sample(raw(&json!({})));
    let answer = complete(&mut modern, first, ask(&[("what", sampling)]));
    assert_eq!(answer["error"]["code"], -32021);
    assert_eq!(answer["error"]["data"], json!({ "requiredCapabilities": { "sampling": {} } }));
    let first = pending(modern.handle_line(&stateless_with(2, "tools/call", call(), capabilities)));
    assert!(first.can_ask(&name_form()) && !first.can_ask(&InputRequest::elicit_url("Pay", "https://a.test", "1")));
}

#[test]
fn a_question_that_is_refused_fails_the_call_and_a_cancelled_call_forgets_its_questions() {
    let mut server = handshake_with(Revision::V2025_11_25, json!({ "elicitation": {} }));
    let mut asked = |id: u64| {
        let first = pending(server.handle_line(&request(id, "tools/call", call())));
        let lines = server.complete(first, ask(&[("who", name_form())]));
        message(&lines[0])["id"].clone()
    };
    let (one, two) = (asked(1), asked(2));
    let refused = json!({ "jsonrpc": "2.0", "id": one, "error": { "code": -1, "message": "not now" } });
    let Outgoing::Reply(line) = server.handle_line(&refused.to_string()) else { panic!("the call is over") };
    assert_eq!(message(&line)["id"], 1);
    assert!(line.contains("not now"));
    let cancel = json!({ "method": "notifications/cancelled", "params": { "requestId": 2 } });
    assert!(matches!(server.handle_line(&cancel.to_string()), Outgoing::Cancelled(_)));
    let late = json!({ "jsonrpc": "2.0", "id": two, "result": { "action": "accept" } });
    assert_eq!(server.handle_line(&late.to_string()), Outgoing::None);
}
