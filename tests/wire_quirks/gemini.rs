use crablet::model::gemini;
use serde_json::{Value, json};

use crate::{check, head, sources, stream};

#[track_caller]
fn gemini(payloads: &[&str], expected: Value) {
    check(&gemini::model("m"), &head(200, &[]), stream(payloads).as_bytes(), expected);
}

#[test]
fn every_documented_reason_has_a_meaning() {
    // ai.google.dev/api/generate-content, "FinishReason"
    let last = |word: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"Hi"}}]}},"finishReason":"{word}"}}]}}"#)
    };
    for (word, reason) in [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("LANGUAGE", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("MODEL_ARMOR", "content_filter"),
    ] {
        gemini(&[&last(word)], json!({"text": "Hi", "stopReason": reason, "stopReasonRaw": word}));
    }
    for (word, kind) in [
        ("MALFORMED_FUNCTION_CALL", "malformed_tool_call"),
        ("UNEXPECTED_TOOL_CALL", "malformed_tool_call"),
        ("TOO_MANY_TOOL_CALLS", "malformed_tool_call"),
        ("OTHER", "server"),
        ("MALFORMED_RESPONSE", "server"),
        ("NO_IMAGE", "server"),
        ("MISSING_THOUGHT_SIGNATURE", "bad_request"),
        ("FINISH_REASON_UNSPECIFIED", "stream_truncated"),
        ("OF_THE_FUTURE", "protocol"),
    ] {
        gemini(&[&last(word)], json!({"text": "Hi", "stopReason": "error", "error": {"kind": kind}}));
    }
}

#[test]
fn an_error_that_is_in_no_event_is_seen() {
    let text = stream(&[r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}"#]);
    for error in [
        "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"The model is overloaded.\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n",
        "[{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"The model is overloaded.\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n]",
        "{\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}",
    ] {
        let expected = json!({"text": "Hi", "stopReason": "error", "error": {"kind": "overloaded", "message_contains": "overloaded."}});
        check(&gemini::model("m"), &head(200, &[]), format!("{text}{error}").as_bytes(), expected);
    }
}

#[test]
fn each_source_is_told_once() {
    let chunk = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a.example","title":"A"}},{"retrievedContext":{"uri":"gs://b","title":"B"}},{"maps":{"uri":"https://c.example","title":"C"}}]},"citationMetadata":{"citationSources":[{"startIndex":0,"endIndex":2,"uri":"https://d.example"}]}}]}"#;
    let body = stream(&[chunk, chunk, r#"{"candidates":[{"finishReason":"STOP"}]}"#]);
    let urls: Vec<_> =
        sources(&gemini::model("m"), body.as_bytes()).into_iter().filter_map(|source| source.url).collect();
    assert_eq!(urls, ["https://a.example", "gs://b", "https://c.example", "https://d.example"]);
}

#[test]
fn a_picture_keeps_its_signature() {
    gemini(
        &[
            r#"{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="},"thoughtSignature":"U0lH"}]},"finishReason":"STOP"}]}"#,
        ],
        json!({"stopReason": "stop", "signatures": 1, "blocks": ["inlineData"]}),
    );
}

#[test]
fn a_prompt_that_is_blocked_is_no_empty_answer() {
    gemini(
        &[r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}"#],
        json!({"stopReason": "error", "error": {"kind": "content_filter", "message_contains": "PROHIBITED_CONTENT"}, "usage": {"input": 3}}),
    );
}

#[test]
fn more_calls_than_are_allowed_in_one_payload_end_the_answer_once() {
    let parts = vec![json!({"functionCall": {"name": "read", "args": {}}}); 1030];
    let payload = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    gemini(&[&payload.to_string()], json!({"stopReason": "error", "error": {"kind": "limit"}}));
}
