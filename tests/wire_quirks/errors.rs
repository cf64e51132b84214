use crablet::model::openai_chat::{self, Profile};
use crablet::model::{Access, Model, ModelEvent, ModelRequest, anthropic, gemini};
use serde_json::{Value, json};

use crate::{check, head};

fn chat() -> Model {
    openai_chat::model(Profile::Custom, "m")
}

#[track_caller]
fn error(status: u16, headers: &[(&str, &str)], body: &str, expected: Value) {
    check(&chat(), &head(status, headers), body.as_bytes(), json!({"stopReason": "error", "error": expected}));
}

#[test]
fn success_in_the_status_and_failure_in_the_body() {
    for (body, kind) in [
        // Z.ai's gateway
        (r#"{"code":500,"msg":"404 NOT_FOUND","success":false}"#, "server"),
        (r#"{"code":401,"msg":"token expired","success":false}"#, "auth"),
        // MiniMax
        (r#"{"base_resp":{"status_code":1004,"status_msg":"login fail"}}"#, "auth"),
        (r#"{"id":"","choices":null,"base_resp":{"status_code":2013,"status_msg":"invalid params"}}"#, "bad_request"),
        (r#"{"detail":"Unauthorized: invalid token"}"#, "auth"),
        (r#"{"hello":"world"}"#, "malformed_stream"),
    ] {
        error(200, &[("content-type", "application/json")], body, json!({"kind": kind}));
    }
}

#[test]
fn what_the_provider_behind_a_gateway_said_counts() {
    // OpenRouter (reVrost/go-openrouter#21, open-webui/computer#293): its own sentence says nothing.
    let wrapped = |code: u16, raw: &str| {
        json!({"error": {"message": "Provider returned error", "code": code, "metadata": {"raw": raw, "provider_name": "P"}}})
            .to_string()
    };
    for (code, raw, kind, told) in [
        (
            400,
            r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum","type":"invalid_request_error"}}"#,
            "context_overflow",
            "Provider returned error: prompt is too long",
        ),
        (400, r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#, "context_overflow", ": m"),
        (
            400,
            r#"[{"error":{"code":400,"message":"no such field","status":"INVALID_ARGUMENT"}}]"#,
            "bad_request",
            "no such field",
        ),
        (400, r#"{"detail":"no such model"}"#, "bad_request", "no such model"),
        (429, "m is temporarily rate-limited upstream. Please retry shortly", "rate_limit", "rate-limited upstream"),
        (502, "", "server", "Provider returned error"),
    ] {
        let body = wrapped(code, raw);
        error(code, &[], &body, json!({"kind": kind, "message_contains": told}));
        error(200, &[], &format!("data: {body}\n\n"), json!({"kind": kind, "message_contains": told}));
    }
    // Others put the provider's whole error where the sentence is.
    let inner = r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    let body = json!({"error": {"message": inner}}).to_string();
    error(
        200,
        &[],
        &format!("data: {body}\n\n"),
        json!({"kind": "overloaded", "message_contains": ": The model is overloaded."}),
    );
}

#[test]
fn a_status_that_is_a_text_is_one() {
    // LiteLLM, within a stream
    for (code, kind) in
        [("429", "rate_limit"), ("401", "auth"), ("400", "bad_request"), ("503", "overloaded"), ("500", "server")]
    {
        let body = format!(
            "data: {{\"error\": {{\"message\": \"litellm.APIError: m\", \"type\": \"None\", \"param\": \"None\", \"code\": \"{code}\"}}}}\n\n"
        );
        error(200, &[], &body, json!({"kind": kind, "message_contains": "litellm.APIError: m"}));
    }
}

#[test]
fn the_numbers_of_zai_are_known() {
    // docs.z.ai, "Errors"; within a stream no status tells them apart (MadAppGang/claudish#138).
    for (code, kind) in [
        ("1113", "quota"),
        ("1261", "context_overflow"),
        ("1301", "content_filter"),
        ("1302", "rate_limit"),
        ("1305", "overloaded"),
        ("1308", "quota"),
        ("1234", "server"),
    ] {
        let payload = format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#);
        error(200, &[], &format!("data: {payload}\n\n"), json!({"kind": kind, "code": code}));
    }
    error(429, &[], r#"{"error":{"code":"1113","message":"m"}}"#, json!({"kind": "quota", "retryable": false}));
}

#[test]
fn a_sentence_is_found_however_deep_it_is() {
    for body in [
        // What FastAPI makes of an exception with an object, as in LiteLLM's proxy
        r#"{"detail":{"error":"no such model"}}"#,
        r#"{"detail":{"message":"no such model","code":"x"}}"#,
        r#"{"error":{"error":{"message":"no such model"}}}"#,
        r#"{"error":{"message":{"detail":[{"msg":"no such model"}]}}}"#,
        r#"{"errors":["no such model"]}"#,
        r#"{"error":[{"message":"no such model"}]}"#,
    ] {
        error(400, &[], body, json!({"kind": "bad_request", "message_contains": "no such model"}));
        error(200, &[], body, json!({"message_contains": "no such model"}));
    }
    error(500, &[], r#"{"detail":{"message":"m","type":"insufficient_quota"}}"#, json!({"kind": "quota"}));
}

#[test]
fn an_error_in_an_event_of_an_answer_that_failed() {
    let body = "event: error\ndata: {\"error\":{\"message\":\"slow down\",\"type\":\"rate_limit_error\"}}\n\n";
    error(
        429,
        &[("retry-after", "3")],
        body,
        json!({"kind": "rate_limit", "status": 429, "message_contains": "slow down", "retry_after_s": 3}),
    );
    check(
        &anthropic::model("m"),
        &head(529, &[]),
        b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        json!({"stopReason": "error", "error": {"kind": "overloaded", "status": 529}}),
    );
}

#[test]
fn an_error_that_is_a_field_of_its_own() {
    // Older servers of llama.cpp
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\nerror: {\"code\":500,\"message\":\"slot is gone\",\"type\":\"server_error\"}\n\n";
    error(200, &[], body, json!({"kind": "server", "message_contains": "slot is gone"}));
    // Cloudflare
    let body =
        r#"{"result":null,"success":false,"errors":[{"code":10000,"message":"Authentication error"}],"messages":[]}"#;
    error(401, &[], body, json!({"kind": "auth", "message_contains": "Authentication error"}));
    error(200, &[], body, json!({"message_contains": "Authentication error"}));
}

#[test]
fn a_full_context_window_is_known_by_the_words_of_each_server() {
    for message in [
        // vLLM, SGLang, LM Studio, llama.cpp, Ollama
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "The input (33000 tokens) is longer than the model's context length (32768 tokens).",
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        "prompt too long; exceeded max context length by 40 tokens",
        // Z.ai, Qwen, Copilot, Mistral, Hugging Face
        "Prompt exceeds max length",
        "Range of input length should be [1, 30720]",
        "prompt token count of 130000 exceeds the limit of 128000",
        "Prompt contains 66000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        "Input validation error: `inputs tokens + max_new_tokens must be <= 4096`",
        // Bedrock, Vertex, LM Studio, LiteLLM
        "ValidationException: Input exceeds the max input token limit",
        "Unable to submit request because the input token count is 32825 but model only supports up to 32768.",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        "the context length is only 4096 tokens",
        "litellm.BadRequestError: ContextWindowExceededError: m",
    ] {
        let body = json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
        error(400, &[], &body, json!({"kind": "context_overflow"}));
    }
}

#[test]
fn waits_are_read_from_headers_bodies_and_sentences() {
    let date = ("date", "Thu, 01 Jan 2026 00:00:00 GMT");
    let body = r#"{"error":{"message":"m"}}"#;
    for (headers, body, seconds) in [
        (vec![("retry-after", "7")], body, 7.0),
        (vec![("retry-after-ms", "1500"), ("retry-after", "2")], body, 1.5),
        (vec![date, ("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT")], body, 30.0),
        (vec![("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "1m2.5s")], body, 62.5),
        (
            vec![
                date,
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:09Z"),
            ],
            body,
            9.0,
        ),
        (vec![date, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1767225605000")], body, 5.0),
        (vec![], r#"{"error":{"message":"Please retry after 6 seconds.","code":"429"}}"#, 6.0),
        (vec![], r#"{"error":{"message":"Please try again in 7.66s. Visit"}}"#, 7.66),
    ] {
        error(429, &headers, body, json!({"kind": "rate_limit", "retry_after_s": seconds}));
    }
    check(
        &gemini::model("m"),
        &head(429, &[]),
        br#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}]"#,
        json!({"stopReason": "error", "error": {"kind": "rate_limit", "retry_after_s": 34.4}}),
    );
}

#[test]
fn a_wait_is_only_told_where_waiting_helps() {
    error(
        400,
        &[("retry-after", "7")],
        r#"{"error":{"message":"no such field"}}"#,
        json!({"kind": "bad_request", "retryable": false}),
    );
}

/// What has no end, whoever reads it would wait for for ever.
#[test]
fn an_error_without_an_end_is_over_with_its_beginning() {
    let Access::Http { wire, .. } = chat().access else { panic!("a model over HTTP") };
    let mut decoder = wire.decoder(&ModelRequest::new(chat()), &head(400, &[]));
    let mut events = Vec::new();
    let mut pushed = 0;
    while events.is_empty() && pushed < 1024 * 1024 {
        decoder.push(b"{\"error\":{\"message\":\"and so on ", &mut events);
        pushed += 1;
    }
    let [ModelEvent::Failed(failed)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((failed.kind(), failed.status()), (crablet::ErrorKind::BadRequest, Some(400)));
    decoder.push(b"more", &mut events);
    decoder.finish(&mut events);
    assert_eq!(events.len(), 1, "one end");
}
