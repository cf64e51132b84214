//! What a server says by itself: changed lists and resources, progress, log messages.

use crablet::json::RawJson;
use crablet::mcp::protocol::Revision;
use crablet::mcp::server::{Catalog, LogLevel, Outgoing};
use serde_json::{Value, json};

use super::{catalog, handshake, message, pending, raw, reply, request, server, stateless};

#[test]
fn a_client_of_the_handshake_era_hears_of_changed_lists() {
    let mut quiet = server();
    assert!(quiet.set_catalog(Catalog::new()).is_empty(), "nobody listens");
    let mut server = handshake(Revision::V2025_11_25);
    assert!(server.set_catalog(catalog()).is_empty(), "nothing has changed");
    let notices = server.set_catalog(Catalog::new());
    let methods: Vec<_> = notices.iter().map(|notice| message(&notice.line)["method"].clone()).collect();
    assert_eq!(
        methods,
        [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed"
        ]
    );
    assert!(notices.iter().all(|notice| notice.subscription.is_none()));
}

#[test]
fn a_subscription_is_acknowledged_and_hears_only_of_what_it_wants() {
    let mut server = server();
    let wanted = json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["test://notes"] } });
    let Outgoing::Listening { subscription, line } = server.handle_line(&stateless(9, "subscriptions/listen", wanted))
    else {
        panic!("it stays open")
    };
    assert_eq!(subscription.as_str(), "9");
    let acknowledged = message(&line);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "toolsListChanged": true, "resourceSubscriptions": ["test://notes"] })
    );
    let subscription_id =
        |message: &Value| message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    assert_eq!(subscription_id(&acknowledged), 9);

    let notices = server.set_catalog(Catalog::new());
    assert_eq!(notices.len(), 1, "it did not ask for the other lists");
    assert_eq!(notices[0].subscription, Some(RawJson::parse("9").unwrap()));
    assert_eq!(subscription_id(&message(&notices[0].line)), 9);
    assert_eq!(message(&server.resource_updated("test://notes")[0].line)["params"]["uri"], "test://notes");
    assert!(server.resource_updated("test://other").is_empty());

    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;
    assert_eq!(server.handle_line(cancel), Outgoing::None);
    assert!(server.resource_updated("test://notes").is_empty());
    assert_eq!(server.end_subscription(&subscription), None);
    server.handle_line(&stateless(10, "subscriptions/listen", json!({})));
    let end = message(&server.end_subscription(&RawJson::parse("10").unwrap()).unwrap());
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!(10), &json!("complete")));
}

#[test]
fn a_followed_resource_in_the_handshake_era() {
    let mut server = handshake(Revision::V2025_06_18);
    assert!(server.resource_updated("test://notes").is_empty());
    let follow = json!({ "uri": "test://notes" });
    assert_eq!(reply(server.handle_line(&request(1, "resources/subscribe", follow.clone())))["result"], json!({}));
    assert_eq!(server.resource_updated("test://notes").len(), 1);
    assert_eq!(reply(server.handle_line(&request(2, "resources/unsubscribe", follow)))["result"], json!({}));
    assert!(server.resource_updated("test://notes").is_empty());
    assert_eq!(reply(server.handle_line(&request(3, "resources/subscribe", json!({}))))["error"]["code"], -32602);
}

#[test]
fn progress_goes_to_who_asked_for_it() {
    let mut server = handshake(Revision::V2025_11_25);
    let quiet = pending(server.handle_line(&request(1, "tools/call", json!({ "name": "plain.tool" }))));
    assert_eq!(quiet.progress(1.0, None, None), None);
    for token in [json!("t"), json!(7)] {
        let params = json!({ "name": "plain.tool", "_meta": { "progressToken": token } });
        let id = if token == json!(7) { 2 } else { 3 };
        let call = pending(server.handle_line(&request(id, "tools/call", params)));
        let told = message(&call.progress(0.5, Some(1.0), Some("half")).unwrap());
        assert_eq!(told["method"], "notifications/progress");
        assert_eq!(told["params"], json!({ "progressToken": token, "progress": 0.5, "total": 1.0, "message": "half" }));
    }
}

#[test]
fn log_messages_above_the_level_that_was_asked_for() {
    let mut server = handshake(Revision::V2025_11_25);
    let call = pending(server.handle_line(&request(1, "tools/call", json!({ "name": "plain.tool" }))));
    let data = raw(&json!("disk is full"));
    assert!(server.log(&call, LogLevel::Debug, None, &data).is_none());
    assert!(server.log(&call, LogLevel::Info, None, &data).is_some());
    reply(server.handle_line(&request(2, "logging/setLevel", json!({ "level": "error" }))));
    assert!(server.log(&call, LogLevel::Warning, None, &data).is_none());
    let told = message(&server.log(&call, LogLevel::Critical, Some("disk"), &data).unwrap());
    assert_eq!(told["method"], "notifications/message");
    assert_eq!(told["params"], json!({ "level": "critical", "logger": "disk", "data": "disk is full" }));
    let wrong = reply(server.handle_line(&request(3, "logging/setLevel", json!({ "level": "loud" }))));
    assert_eq!(wrong["error"]["code"], -32602);

    let silent = pending(server.handle_line(&stateless(4, "tools/call", json!({ "name": "plain.tool" }))));
    assert!(server.log(&silent, LogLevel::Emergency, None, &data).is_none(), "a stateless client asks per request");
    let params = json!({ "name": "plain.tool", "_meta": { "io.modelcontextprotocol/logLevel": "info" } });
    let told = pending(server.handle_line(&stateless(5, "tools/call", params)));
    assert!(server.log(&told, LogLevel::Info, None, &data).is_some());
}
