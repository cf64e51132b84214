//! What happens over time: questions, clients that leave and come back, limits.

use std::sync::Arc;
use std::time::Duration;

use crablet::host::mcp::{HttpBody, HttpOptions, HttpResponse, ServerCall};
use crablet::json::RawJson;
use crablet::mcp::server::LogLevel;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Client, call, events, fixture, hello, read, request, stateless, tool};

/// Reads the events of a stream until one is like this; gives all of them.
async fn until(body: &mut HttpBody, wanted: &str) -> Vec<(Option<String>, Value)> {
    let HttpBody::Events(stream) = body else { panic!("a stream") };
    let mut text = String::new();
    while !text.contains(wanted) {
        text.push_str(&stream.next().await.expect("more events"));
    }
    events(&text)
}

fn strs<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[tokio::test]
async fn a_question_goes_on_the_stream_of_its_call_and_the_answer_comes_by_another_request() {
    let client = Client::in_session(&fixture(), HttpOptions::default(), json!({ "elicitation": {} })).await;
    let mut answer = client.post(&[], &call(json!(2), "ask")).await;
    let question = until(&mut answer.body, "elicitation/create").await.pop().unwrap().1;
    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    assert_eq!(read(client.post(&[], &reply).await).await.status, 202);
    let (_, last) = until(&mut answer.body, "\"id\":2").await.pop().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "Hello Ada kept");
}

#[tokio::test]
async fn a_subscription_hears_of_changes_until_the_handler_is_closed() {
    let client = Client::new(&fixture(), HttpOptions::default());
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let (headers, body) = stateless(json!("s"), "subscriptions/listen", wanted);
    let mut answer = client.post(&strs(&headers), &body).await;
    until(&mut answer.body, "acknowledged").await;
    let more = fixture().tool(tool("more", &json!({ "type": "object" })), async |_: Value, _| "more").unwrap();
    client.handler.replace(more);
    let (_, told) = until(&mut answer.body, "list_changed").await.pop().unwrap();
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    client.handler.close();
    let HttpBody::Events(mut rest) = answer.body else { panic!("a stream") };
    assert_eq!(rest.next().await, None);
}

#[tokio::test]
async fn the_own_stream_of_a_session_hears_of_changes_even_of_those_before_it() {
    let client = Client::in_session(&fixture(), HttpOptions::default(), json!({})).await;
    let more = fixture().tool(tool("more", &json!({ "type": "object" })), async |_: Value, _| "more").unwrap();
    client.handler.replace(more);
    let mut own = client.send("GET", &[], b"").await;
    until(&mut own.body, "list_changed").await;
}

#[tokio::test]
async fn who_leaves_a_stream_of_a_session_finds_the_rest_of_it() {
    let release = Arc::new(Notify::new());
    let waiting = release.clone();
    let slow = async move |_: Value, call: ServerCall| {
        call.log(LogLevel::Info, None, RawJson::from_value("begun").unwrap());
        waiting.notified().await;
        "released"
    };
    let slow = Arc::new(slow);
    let server = fixture()
        .tool(tool("slow", &json!({ "type": "object" })), move |input: Value, call| {
            let slow = slow.clone();
            async move { slow(input, call).await }
        })
        .unwrap();
    let client = Client::in_session(&server, HttpOptions::default(), json!({})).await;
    let mut answer = client.post(&[], &call(json!(2), "slow")).await;
    let last = until(&mut answer.body, "begun").await.pop().unwrap().0.unwrap();
    drop(answer);
    release.notify_one();
    let mut rest = client.send("GET", &[("last-event-id", &last)], b"").await;
    let (_, end) = until(&mut rest.body, "released").await.pop().unwrap();
    assert_eq!(end["id"], 2);
}

/// Tells when it is dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn who_leaves_a_stateless_request_ends_its_call() {
    let (started, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (starting, ending) = (started.clone(), ended.clone());
    let server = fixture()
        .tool(tool("hang", &json!({ "type": "object" })), move |_: Value, _| {
            let (starting, guard) = (starting.clone(), OnDrop(ending.clone()));
            async move {
                starting.notify_one();
                std::future::pending::<()>().await;
                drop(guard);
                "never"
            }
        })
        .unwrap();
    let client = Client::new(&server, HttpOptions { max_requests: 1, ..HttpOptions::default() });
    let (headers, body) = stateless(json!(1), "tools/call", json!({ "name": "hang", "arguments": {} }));
    let headers = strs(&headers);
    {
        let asking = client.post(&headers, &body);
        tokio::pin!(asking);
        tokio::select! {
            _ = &mut asking => panic!("it hangs"),
            () = started.notified() => {}
        }
        let refused = read(client.post(&headers, &body).await).await;
        assert_eq!((refused.status, refused.message()["id"].clone()), (503, json!(1)));
    }
    ended.notified().await;
    // Its place is free as soon as it has ended.
    let (headers, body) = stateless(json!(2), "tools/list", json!({}));
    while read(client.post(&strs(&headers), &body).await).await.status == 503 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_request_that_was_cancelled_gets_no_answer_and_an_id_at_work_is_not_used_twice() {
    let started = Arc::new(Notify::new());
    let starting = started.clone();
    let server = fixture()
        .tool(tool("hang", &json!({ "type": "object" })), move |_: Value, _| {
            let starting = starting.clone();
            async move {
                starting.notify_one();
                std::future::pending::<&str>().await
            }
        })
        .unwrap();
    let client = Client::in_session(&server, HttpOptions::default(), json!({})).await;
    let hang = call(json!("h"), "hang");
    let asking = client.post(&[], &hang);
    let cancelling = async {
        started.notified().await;
        assert_eq!(read(client.post(&[], &hang).await).await.status, 400);
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "h" } });
        assert_eq!(read(client.post(&[], &cancelled).await).await.status, 202);
    };
    let (answer, ()) = tokio::join!(asking, cancelling);
    assert_eq!(answer.status, 202);
    assert_eq!(read(client.post(&[], &call(json!("h"), "tell")).await).await.status, 200);
}

#[tokio::test]
async fn a_session_in_use_keeps_its_place() {
    let client = Client::in_session(&fixture(), HttpOptions { max_sessions: 1, ..Default::default() }, json!({})).await;
    let own = client.send("GET", &[], b"").await;
    let begin = async || -> HttpResponse { client.post(&[("mcp-session-id", "")], &hello(json!({}))).await };
    assert_eq!(begin().await.status, 503);
    drop(own);
    while begin().await.status == 503 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.post(&[], &request(json!(2), "ping", json!({}))).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_uses_ends_and_a_stream_keeps_it() {
    let client =
        Client::in_session(&fixture(), HttpOptions { session_idle: 1_000, ..Default::default() }, json!({})).await;
    let mut own = client.send("GET", &[], b"").await;
    let HttpBody::Events(stream) = &mut own.body else { panic!("a stream") };
    // It begins with something to resume after, and says from time to time that it is there.
    assert!(stream.next().await.unwrap().starts_with("id: "));
    assert_eq!(stream.next().await.as_deref(), Some(":\n\n"));
    assert_eq!(client.post(&[], &request(json!(2), "ping", json!({}))).await.status, 200);
    drop(own);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(client.post(&[], &request(json!(3), "ping", json!({}))).await.status, 404);
}
