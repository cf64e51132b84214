//! Runs on tokio: spawned as a task, inside a web handler, and many at once.
#![cfg(all(feature = "native", feature = "openai-chat"))]
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use crablet::Error;
use crablet::agent::{Agent, EventKind, ToolDefinition};
use crablet::host::{Host, Runner};
use crablet::json::RawJson;
use crablet::model::{HttpRequest, Model, ModelEvent, StopReason, openai_chat};
use crablet::native::NativeHost;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// An agent that calls its tool once and then repeats what the tool said.
fn runner() -> Runner<NativeHost> {
    let echo = ToolDefinition::new("echo", "Repeats", RawJson::parse(r#"{"type":"object"}"#).unwrap());
    Runner::new(NativeHost::new().unwrap(), Agent::new(Model::function("parrot")))
        .function_model("parrot", |request: std::sync::Arc<crablet::model::ModelRequest>, _| {
            let events = if request.messages.len() == 1 {
                vec![
                    ModelEvent::ToolInputStart { block: 0, id: "c1".to_owned(), name: "echo".to_owned() },
                    ModelEvent::ToolInputDelta { block: 0, json: r#"{"say":"polly"}"#.to_owned() },
                    ModelEvent::ToolInputEnd { block: 0, replay: None },
                    ModelEvent::Stop { reason: StopReason::ToolUse, raw: None },
                ]
            } else {
                vec![
                    ModelEvent::TextStart { block: 0 },
                    ModelEvent::TextDelta { block: 0, text: "polly".to_owned() },
                    ModelEvent::TextEnd { block: 0, replay: None },
                    ModelEvent::Stop { reason: StopReason::Stop, raw: None },
                ]
            };
            stream::iter(events.into_iter().map(Ok::<_, Error>))
        })
        .tool(echo, async |input: Value, _| {
            tokio::task::yield_now().await;
            input.to_string()
        })
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_spawned_and_work_side_by_side() {
    let runner = runner();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let runner = runner.clone();
            tokio::spawn(async move { runner.run("say something").await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().text, "polly");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_handler_streams_a_run_to_its_client() {
    async fn handler(State(runner): State<Runner<NativeHost>>) -> Body {
        let run = runner.conversation().unwrap().send("say something").unwrap();
        let text = run.map(|events| {
            let deltas = events.into_iter().filter_map(|event| match event.kind {
                EventKind::TextDelta(_, delta) => Some(delta),
                _ => None,
            });
            Ok::<_, Error>(deltas.collect::<String>())
        });
        Body::from_stream(text)
    }

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(handler)).with_state(runner());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });

    let request = HttpRequest { method: "GET", url: format!("http://{address}/"), headers: vec![], body: vec![] };
    let (_, mut body) = NativeHost::new().unwrap().fetch(request).await.unwrap();
    let mut text = Vec::new();
    while let Some(chunk) = crablet::host::Body::next(&mut body).await.unwrap() {
        text.extend(chunk);
    }
    assert_eq!(text, b"polly");
}

/// A model server that never stops talking; `closed` is told when its connection closes.
async fn talkative_server(closed: Arc<Notify>) -> SocketAddr {
    struct OnDrop(Arc<Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let talk = async move || {
        let guard = OnDrop(closed);
        let endless = stream::unfold(guard, |guard| async {
            tokio::task::yield_now().await;
            let chunk = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"and \"}}]}\n\n";
            Some((Ok::<_, Error>(chunk), guard))
        });
        ([("content-type", "text/event-stream")], Body::from_stream(endless))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/v1/chat/completions", post(talk));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_server_sees_the_connection_close_when_a_run_is_aborted_or_dropped() {
    let closed = Arc::new(Notify::new());
    let address = talkative_server(closed.clone()).await;
    let model = openai_chat::compatible(&format!("http://{address}/v1"), "talker");
    let runner = Runner::new(NativeHost::new().unwrap(), Agent::new(model));

    let mut aborted = runner.conversation().unwrap().send("talk").unwrap();
    while !aborted.next().await.unwrap().iter().any(|event| matches!(event.kind, EventKind::TextDelta(..))) {}
    aborted.control().abort(None);
    closed.notified().await;

    let mut dropped = runner.conversation().unwrap().send("talk").unwrap();
    while !dropped.next().await.unwrap().iter().any(|event| matches!(event.kind, EventKind::TextDelta(..))) {}
    drop(dropped);
    closed.notified().await;
}

#[tokio::test]
async fn a_run_is_read_in_one_task_and_stopped_from_another() {
    let runner = runner().function_model("parrot", |_, _| stream::pending::<Result<ModelEvent, Error>>());
    let run = runner.conversation().unwrap().send("say something").unwrap();
    let control = run.control();
    let reading = tokio::spawn(run.answer());
    tokio::task::yield_now().await;
    control.abort(Some("enough"));
    let error = reading.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), crablet::ErrorKind::Aborted);
}
