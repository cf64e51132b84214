//! Model calls over HTTP: what goes out, and what the caller is told of everything that can come back.

use crablet::agent::Agent;
use crablet::host::{Host, Runner};
use crablet::model::{Credentials, Model, openai_chat};
use crablet::{Error, ErrorKind};
use serde_json::Value;

use super::support::{Exchange, ScriptedHost};
use super::{definition, events, types};

fn runner(host: &ScriptedHost) -> Runner<ScriptedHost> {
    let mut agent = Agent::new(openai_chat::compatible("https://models.example/v1", "some-model"));
    agent.policy.max_attempts = 1;
    Runner::new(host.clone(), agent).credentials(Credentials::Key("sk-secret".to_owned()))
}

/// A chunk of the stream with this delta.
fn delta(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")
}

fn text(text: &str) -> String {
    delta(&format!("{{\"content\":{}}}", Value::from(text)))
}

/// The end of a stream.
fn end(reason: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n")
}

fn answer(words: &str) -> Exchange {
    Exchange::stream().chunk(text(words)).chunk(end("stop"))
}

/// A prompt that fails with this exchange, and the one after it, which must work.
fn failure(exchange: Exchange) -> Error {
    let host = ScriptedHost::new().then(exchange).then(answer("All is well."));
    let conversation = runner(&host).conversation().unwrap();
    let error = host.block_on(conversation.send("Hello?").unwrap().answer()).unwrap_err();
    assert!(!error.message().contains("sk-secret"), "{error}");
    let next = host.block_on(conversation.send("And now?").unwrap().answer()).unwrap();
    assert_eq!(next.text, "All is well.");
    assert_eq!(host.sleepers(), 0);
    error
}

#[test]
fn a_request_carries_the_key_of_that_moment_and_the_answer_streams() {
    let host = ScriptedHost::new()
        .then(Exchange::stream().chunk(text("Hel")).wait(5).chunk(text("lo")).wait(5).chunk(end("stop")));
    let runner = runner(&host).credentials(async |model: Model| Ok(Credentials::Key(format!("key-of-{}", model.id))));
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(events(conversation.send("Hi").unwrap()));
    assert_eq!(events.last().unwrap()["text"], "Hello");
    let request = &host.requests()[0];
    assert_eq!(request.url, "https://models.example/v1/chat/completions");
    assert_eq!(request.header("authorization"), Some("Bearer key-of-some-model"));
    assert!(!conversation.snapshot().contains("key-of"), "keys are in no snapshot");
}

#[test]
fn an_answer_does_not_wait_for_the_server_to_close() {
    let host = ScriptedHost::new().then(Exchange::stream().chunk(text("Done.")).chunk(end("stop")).hang());
    assert_eq!(host.block_on(runner(&host).run("Hi")).unwrap().text, "Done.");
    assert_eq!(host.elapsed(), 0);
    assert_eq!(
        host.aborted(),
        0,
        "the server has a moment to end its answer, so that the connection can be used again"
    );
    host.block_on(host.pause(2_000));
    assert_eq!(host.aborted(), 1, "then the connection is closed from this side");
}

#[test]
fn an_abort_closes_the_connection_before_it_returns() {
    let host = ScriptedHost::new().then(Exchange::stream().chunk(text("I will")).hang()).then(answer("Here."));
    let conversation = runner(&host).conversation().unwrap();
    let mut run = conversation.send("Hi").unwrap();
    host.block_on(async {
        run.next().await.unwrap();
        run.next().await.unwrap();
    });
    assert_eq!(host.aborted(), 0);
    run.control().abort(None);
    assert_eq!(host.aborted(), 1, "nobody has read the run since");
    assert_eq!(types(&host.block_on(events(run))), "text-end run-end");
    host.block_on(conversation.send("Again").unwrap().answer()).unwrap();
}

#[test]
fn a_reader_that_stops_closes_the_connection() {
    let host = ScriptedHost::new().then(Exchange::stream().chunk(text("I will")).hang());
    let conversation = runner(&host).conversation().unwrap();
    let mut run = conversation.send("Hi").unwrap();
    host.block_on(async {
        run.next().await.unwrap();
        run.next().await.unwrap();
    });
    drop(run);
    assert_eq!(host.aborted(), 1);
}

#[test]
fn nothing_more_is_read_from_the_network_than_is_asked_for() {
    let mut exchange = Exchange::stream();
    for _ in 0..100 {
        exchange = exchange.chunk(text("word "));
    }
    let host = ScriptedHost::new().then(exchange.chunk(end("stop")));
    let conversation = runner(&host).conversation().unwrap();
    let mut run = conversation.send("Talk").unwrap();
    host.block_on(async {
        for _ in 0..5 {
            run.next().await.unwrap();
        }
    });
    assert!(host.chunks_read() <= 5, "{} chunks were read for 5 batches", host.chunks_read());
}

#[test]
fn an_unreachable_model_is_named_with_its_address() {
    let error = failure(Exchange::unreachable());
    assert_eq!(error.kind(), ErrorKind::Network);
    for part in ["some-model", "https://models.example", "connection refused"] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn a_wrong_key_is_an_auth_error_with_the_servers_words() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-secret","code":"invalid_api_key"}}"#;
    let error = failure(Exchange::new(401, "application/json").chunk(body));
    assert_eq!((error.kind(), error.status()), (ErrorKind::Auth, Some(401)));
    assert!(error.message().contains("Incorrect API key"), "{error}");
}

#[test]
fn an_error_with_status_200_is_an_error() {
    let body = r#"{"error":{"message":"The model is not loaded","code":500}}"#;
    let error = failure(Exchange::new(200, "application/json").chunk(body));
    assert_eq!(error.kind(), ErrorKind::Server);
    assert!(error.message().contains("The model is not loaded"), "{error}");
}

#[test]
fn a_stream_that_is_cut_or_ends_too_early_is_truncated() {
    let cut = failure(Exchange::stream().chunk(text("Hel")).cut());
    assert_eq!(cut.kind(), ErrorKind::StreamTruncated);
    assert!(cut.message().contains("connection reset"), "{cut}");
    let early = failure(Exchange::stream().chunk(text("Hel")));
    assert_eq!(early.kind(), ErrorKind::StreamTruncated);
}

#[test]
fn a_connection_that_breaks_behind_a_whole_answer_does_no_harm() {
    let finish = delta("{}").replace("}]}", ",\"finish_reason\":\"stop\"}]}");
    let host = ScriptedHost::new().then(Exchange::stream().chunk(text("Hello")).chunk(finish).cut());
    let conversation = runner(&host).conversation().unwrap();
    let answer = host.block_on(conversation.send("Hi").unwrap().answer()).unwrap();
    assert_eq!(answer.text, "Hello");
}

#[test]
fn the_status_of_an_answer_counts_more_than_its_broken_body() {
    let error = failure(Exchange::new(401, "application/json").chunk(r#"{"error":{"#).cut());
    assert_eq!(error.kind(), ErrorKind::Auth);
}

#[test]
fn a_model_that_never_answers_times_out() {
    let error = failure(Exchange::stream().hang());
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let error = failure(Exchange::stream().chunk(text("Hel")).hang());
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[test]
fn a_credential_source_that_fails_ends_the_run_with_its_own_error() {
    let host = ScriptedHost::new();
    let runner = runner(&host)
        .credentials(async |_: Model| Err(Error::new(ErrorKind::Auth, "sign in again: the session is over")));
    let error = host.block_on(runner.run("Hi")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.message().contains("sign in again"), "{error}");
    assert!(host.requests().is_empty());
}

#[test]
fn a_key_that_no_header_can_carry_is_refused_before_anything_is_sent() {
    let host = ScriptedHost::new();
    let runner = runner(&host).credentials(Credentials::Key("sk-secret\nsk-other".to_owned()));
    let error = host.block_on(runner.run("Hi")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(!error.message().contains("sk-"), "{error}");
    assert!(host.requests().is_empty());
}

/// An answer of status 429 with these headers and this sentence.
fn busy(headers: &[(&str, &str)], message: &str) -> Exchange {
    let exchange = Exchange::new(429, "application/json");
    let exchange = headers.iter().fold(exchange, |exchange, (name, value)| exchange.header(name, value));
    exchange.chunk(serde_json::json!({"error": {"message": message}}).to_string())
}

#[test]
fn an_overloaded_model_is_asked_again_after_the_time_it_names() {
    let date = ("date", "Thu, 01 Jan 2026 00:00:00 GMT");
    for (headers, message, wait) in [
        (vec![("retry-after", "7")], "Rate limit reached", 7_000),
        (vec![("retry-after-ms", "350")], "Rate limit reached", 350),
        (vec![date, ("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT")], "Rate limit reached", 30_000),
        (
            vec![("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "1.5s")],
            "Rate limit reached",
            1_500,
        ),
        (
            vec![
                date,
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:20Z"),
            ],
            "Rate limit reached",
            20_000,
        ),
        (vec![], "Please retry after 6 seconds.", 6_000),
    ] {
        let host = ScriptedHost::new().then(busy(&headers, message)).then(answer("At last."));
        let mut runner = runner(&host);
        runner.agent_mut().policy.max_attempts = 2;
        let started = host.elapsed();
        assert_eq!(host.block_on(runner.run("Hi")).unwrap().text, "At last.");
        assert_eq!(host.elapsed() - started, wait, "{headers:?} {message}");
    }
}

#[test]
fn a_moment_is_read_against_the_clock_of_the_host_where_the_server_names_none() {
    let host = ScriptedHost::new();
    let now = host.now().0 / 1000;
    let reset = (now + 9).to_string();
    let headers = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset.as_str())];
    let host = host.then(busy(&headers, "Rate limit reached")).then(answer("At last."));
    let mut runner = runner(&host);
    runner.agent_mut().policy.max_attempts = 2;
    let started = host.elapsed();
    assert_eq!(host.block_on(runner.run("Hi")).unwrap().text, "At last.");
    assert_eq!(host.elapsed() - started, 9_000);
}

#[test]
fn a_wait_beyond_the_cap_is_an_error_at_once() {
    let host =
        ScriptedHost::new().then(busy(&[("retry-after", "61")], "Rate limit reached")).then(answer("Too early."));
    let mut runner = runner(&host);
    (runner.agent_mut().policy.max_attempts, runner.agent_mut().policy.retry_cap) = (2, 60_000);
    let started = host.elapsed();
    let error = host.block_on(runner.run("Hi")).unwrap_err();
    assert_eq!((error.kind(), error.retry_after()), (ErrorKind::RateLimit, Some(61_000)));
    assert_eq!((host.elapsed() - started, host.requests().len()), (0, 1));
}

#[test]
fn a_malformed_call_in_a_stream_is_answered_and_not_run() {
    let call = |id: &str, name: &str, arguments: &str| {
        let call = format!(
            r#"{{"index":0,"id":"{id}","type":"function","function":{{"name":"{name}","arguments":{}}}}}"#,
            Value::from(arguments)
        );
        Exchange::stream().chunk(delta(&format!(r#"{{"tool_calls":[{call}]}}"#))).chunk(end("tool_calls"))
    };
    let host = ScriptedHost::new()
        .then(call("c1", "delete", r#"{"path":"#))
        .then(call("c2", "nothing", "{}"))
        .then(answer("Sorry."));
    let runner = runner(&host).tool(definition("delete"), async |_: Value, _| -> String { panic!("it ran") });
    let conversation = runner.conversation().unwrap();
    let events = host.block_on(events(conversation.send("Delete it").unwrap()));
    let results: Vec<_> = events.iter().filter(|event| event["type"] == "tool-result").collect();
    assert_eq!(results.len(), 2);
    for result in results {
        assert_eq!(result["isError"], true);
    }
    assert_eq!(events.last().unwrap()["text"], "Sorry.");
}
