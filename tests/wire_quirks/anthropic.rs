use crablet::model::anthropic;
use serde_json::{Value, json};

use crate::{check, head, stream};

#[track_caller]
fn anthropic(payloads: &[&str], expected: Value) {
    check(&anthropic::model("m"), &head(200, &[]), stream(payloads).as_bytes(), expected);
}

const START: &str = r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":3,"cache_read_input_tokens":2,"cache_creation_input_tokens":1,"output_tokens":1}}}"#;
const END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

#[test]
fn text_and_thinking_that_were_not_announced_are_kept() {
    anthropic(
        &[
            START,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}}"#,
            r#"{"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
            END,
            STOP,
        ],
        json!({
            "text": "Hi", "thinking": "Hm", "toolCalls": [], "signatures": 1, "stopReason": "stop",
            "usage": {"input": 3, "output": 5, "cacheRead": 2, "cacheWrite": 1},
        }),
    );
}

#[test]
fn a_message_may_be_announced_twice_but_not_begin_twice() {
    let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
    anthropic(&[START, START, text, END, STOP], json!({"text": "Hi", "stopReason": "stop"}));
    anthropic(&[START, text, START, END, STOP], json!({"stopReason": "error", "error": {"kind": "malformed_stream"}}));
}

#[test]
fn a_count_of_0_takes_nothing_back() {
    // envoyproxy/ai-gateway#1631: the last count speaks of the output only, and says 0 for the rest.
    let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":5}}"#;
    let whole = json!({"input": 3, "output": 5, "cacheRead": 2, "cacheWrite": 1});
    anthropic(&[START, text, end, STOP], json!({"text": "Hi", "stopReason": "stop", "usage": whole}));
    // LiteLLM and SGLang: the other way round. A 0 that is never corrected is one.
    let start = r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}"#;
    let end =
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":11,"output_tokens":5}}"#;
    let whole = json!({"input": 11, "output": 5, "cacheRead": 0, "cacheWrite": null});
    anthropic(&[start, text, end, STOP], json!({"text": "Hi", "stopReason": "stop", "usage": whole}));
}

#[test]
fn an_index_that_is_used_again_is_another_block() {
    let start = |name: &str| {
        format!(
            r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"{name}","name":"{name}","input":{{}}}}}}"#
        )
    };
    anthropic(
        &[
            START,
            &start("a"),
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"k\":1}"}}"#,
            &start("b"),
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"k\":2}"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
            STOP,
        ],
        json!({
            "toolCalls": [{"id": "a", "name": "a", "arguments": {"k": 1}}, {"id": "b", "name": "b", "arguments": {"k": 2}}],
            "stopReason": "tool_use",
        }),
    );
}

#[test]
fn failures_within_an_answer_are_told_by_kind() {
    for (word, kind) in [
        ("overloaded_error", "overloaded"),
        ("rate_limit_error", "rate_limit"),
        ("api_error", "server"),
        ("timeout_error", "server"),
        ("billing_error", "quota"),
        ("invalid_request_error", "bad_request"),
        ("authentication_error", "auth"),
        ("permission_error", "auth"),
        ("request_too_large", "context_overflow"),
    ] {
        let error = format!(r#"{{"type":"error","error":{{"type":"{word}","message":"m"}},"request_id":"r"}}"#);
        anthropic(&[START, &error], json!({"stopReason": "error", "error": {"kind": kind}}));
    }
}
