//! The fetch tool against a real server: where it may go, how much it reads, what it tells.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::{IntoResponse, Response};
use crablet::ErrorKind;
use crablet::agent::Approval;
use crablet::host::tools::BuiltInTool;
use crablet::json::RawJson;
use crablet::native::tools::{FetchOptions, fetch_tool};
use serde_json::json;

use super::{call, call_output, text};

/// A server that answers by path, and the paths it was asked for.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(elsewhere: Option<String>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let answer = move |request: Request| {
            seen.lock().unwrap().push(request.uri().path().to_owned());
            answer(request, elsewhere.clone())
        };
        tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
        Self { url, asked }
    }

    fn at(&self, path: &str) -> serde_json::Value {
        json!({ "url": format!("{}{path}", self.url) })
    }
}

async fn answer(request: Request, elsewhere: Option<String>) -> Response {
    let redirect = |to: String| (axum::http::StatusCode::FOUND, [(LOCATION, to)]).into_response();
    match request.uri().path() {
        "/in" => redirect("/text".to_owned()),
        "/out" => redirect(format!("{}/stolen", elsewhere.unwrap_or_default())),
        "/loop" => redirect("/loop".to_owned()),
        "/long" => ([(CONTENT_TYPE, "text/plain")], "é".repeat(1_000)).into_response(),
        "/data" => ([(CONTENT_TYPE, "image/png")], vec![137, 80, 0, 1]).into_response(),
        "/gone" => (axum::http::StatusCode::NOT_FOUND, "gone").into_response(),
        "/slow" => std::future::pending().await,
        "/echo" => Response::new(Body::new(request.into_body())),
        _ => "hello".into_response(),
    }
}

fn tool(origins: &[&str], change: impl FnOnce(&mut FetchOptions)) -> [BuiltInTool; 1] {
    let mut options = FetchOptions::new(origins.iter().copied());
    options.allow_private = true;
    change(&mut options);
    [fetch_tool(options).unwrap()]
}

#[tokio::test]
async fn a_page_is_told_with_its_status_and_type() {
    let server = Server::start(None).await;
    let tool = tool(&[&server.url], |_| {});
    let told = call(&tool, "fetch", server.at("/text")).await.unwrap();
    assert_eq!(told, "HTTP 200, text/plain; charset=utf-8\n\nhello");
    let gone = call_output(&tool, "fetch", server.at("/gone")).await.unwrap();
    assert!(gone.is_error && text(&gone).starts_with("HTTP 404"));
    let data = call(&tool, "fetch", server.at("/data")).await.unwrap();
    assert!(data.ends_with("[4 bytes that are no text]"), "{data}");
}

#[tokio::test]
async fn a_private_address_is_refused_however_it_is_written() {
    let server = Server::start(None).await;
    let port = server.url.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "127.1", "localhost", "[::ffff:127.0.0.1]", "0x7f000001", "0.0.0.0"] {
        let origin = format!("http://{host}:{port}");
        let tool = tool(&[&origin], |options| options.allow_private = false);
        let told = call(&tool, "fetch", json!({ "url": origin })).await.unwrap_err();
        assert!(told.contains("private network"), "{host}: {told}");
    }
    assert!(server.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_redirect_is_followed_only_to_where_a_request_would_be_allowed() {
    let other = Server::start(None).await;
    let server = Server::start(Some(other.url.clone())).await;
    let tool = tool(&[&server.url], |_| {});
    assert!(call(&tool, "fetch", server.at("/in")).await.unwrap().ends_with("hello"));
    let out = call(&tool, "fetch", server.at("/out")).await.unwrap_err();
    assert!(out.contains(&format!("redirects to {}/stolen, and that is not allowed", other.url)), "{out}");
    let circle = call(&tool, "fetch", server.at("/loop")).await.unwrap_err();
    assert!(circle.contains("one redirect too many"), "{circle}");
    assert!(server.asked.lock().unwrap().len() < 12);
    assert!(other.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    let other = Server::start(None).await;
    let server = Server::start(Some(other.url.clone())).await;
    let name = server.url.replace("127.0.0.1", "localhost");
    // The names are allowed, so that only the block of private addresses stands in the way.
    let tool = tool(&[&name, &other.url], |options| options.allow_private = false);
    let told = call(&tool, "fetch", json!({ "url": format!("{name}/out") })).await.unwrap_err();
    assert!(told.contains("private network"), "{told}");
    assert!(other.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_long_answer_is_cut_and_a_slow_one_given_up() {
    let server = Server::start(None).await;
    let tool = tool(&[&server.url], |options| {
        options.max_bytes = 101;
        options.timeout = Duration::from_millis(200);
    });
    let long = call(&tool, "fetch", server.at("/long")).await.unwrap();
    assert_eq!(long, format!("HTTP 200, text/plain\n\n{}\n[cut after 101 bytes]", "é".repeat(50)));
    let slow = call(&tool, "fetch", server.at("/slow")).await.unwrap_err();
    assert!(slow.contains("did not answer within 0.2 s"), "{slow}");
}

#[tokio::test]
async fn other_methods_are_opted_into_and_ask() {
    let server = Server::start(None).await;
    let reading = tool(&[&server.url], |_| {});
    assert!(!reading[0].0.needs_approval && reading[0].0.repeatable);
    let refused = call(&reading, "fetch", json!({ "url": server.url, "method": "POST" })).await.unwrap_err();
    assert_eq!(refused, "POST is not allowed; allowed are: GET, HEAD");
    let tool = tool(&[&server.url], |options| options.methods = vec!["GET".into(), "post".into()]);
    assert!(tool[0].0.needs_approval && !tool[0].0.repeatable);
    let decide = |input| tool[0].1.decide(&RawJson::from_value(&input).unwrap());
    assert!(matches!(decide(json!({ "url": server.url })), Some(Approval::Allow)));
    assert!(decide(json!({ "url": server.url, "method": "POST" })).is_none());
    let url = format!("{}/echo", server.url);
    let sent = call(&tool, "fetch", json!({ "url": url, "method": "POST", "body": "{}" })).await.unwrap();
    assert!(sent.ends_with("{}"), "{sent}");
    assert!(call(&tool, "fetch", json!({ "url": url, "body": "{}" })).await.is_err());
}

#[tokio::test]
async fn an_error_holds_no_query() {
    let tool = tool(&["http://127.0.0.1:1"], |_| {});
    let told = call(&tool, "fetch", json!({ "url": "http://127.0.0.1:1/?key=secret" })).await.unwrap_err();
    assert!(told.contains("no answer from http://127.0.0.1:1") && !told.contains("secret"), "{told}");
}

#[test]
fn options_are_checked_where_the_tool_is_made() {
    let none: [&str; 0] = [];
    assert_eq!(fetch_tool(FetchOptions::new(none)).err().unwrap().kind(), ErrorKind::InvalidInput);
    let mut options = FetchOptions::new(["https://example.com"]);
    options.headers.push(("bad name".into(), "x".into()));
    assert_eq!(fetch_tool(options).err().unwrap().kind(), ErrorKind::InvalidInput);
}
