use crablet::model::openai_chat::{self, Profile};
use serde_json::{Value, json};

use crate::{check, head, stream};

#[track_caller]
fn chat(payloads: &[&str], expected: Value) {
    check(&openai_chat::model(Profile::Custom, "m"), &head(200, &[]), stream(payloads).as_bytes(), expected);
}

const TEXT: &str = r#"{"id":"c","choices":[{"index":0,"delta":{"content":"Hi"}}]}"#;

#[test]
fn the_whole_message_at_the_end_of_a_stream_is_not_said_twice() {
    // platform.minimax.io/docs, "ChatCompletion v2": the last chunk is a `chat.completion` with the message.
    let last = r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1},"base_resp":{"status_code":0,"status_msg":""}}"#;
    chat(&[TEXT, last], json!({"text": "Hi", "stopReason": "stop", "usage": {"input": 3, "output": 1}}));
    chat(&[last], json!({"text": "Hi", "stopReason": "stop"}));
}

#[test]
fn two_events_without_the_empty_line_between_them_are_two() {
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let body = format!("data: {TEXT}\ndata: {finish}\ndata: [DONE]\n\n");
    let model = openai_chat::model(Profile::Custom, "m");
    check(&model, &head(200, &[]), body.as_bytes(), json!({"text": "Hi", "stopReason": "stop"}));
}

#[test]
fn words_for_the_end_are_read_in_any_case_and_unknown_ones_are_no_success() {
    for (word, reason) in [
        ("STOP", "stop"),
        ("COMPLETE", "stop"),
        ("MAX_TOKENS", "length"),
        ("model_context_window_exceeded", "length"),
        ("SAFETY", "content_filter"),
        ("refusal", "refusal"),
    ] {
        let last = format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#);
        chat(&[TEXT, &last], json!({"text": "Hi", "stopReason": reason, "stopReasonRaw": word}));
    }
    for (word, kind) in [
        // Google's own compatible address, and vLLM's request that was given up.
        ("function_call_filter: MALFORMED_FUNCTION_CALL", "malformed_tool_call"),
        ("abort", "server"),
        ("insufficient_system_resource", "overloaded"),
        ("network_error", "network"),
        ("what_is_this", "protocol"),
    ] {
        let last = format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#);
        chat(&[TEXT, &last], json!({"stopReason": "error", "error": {"kind": kind}}));
    }
}

#[test]
fn reasoning_comes_under_many_names() {
    let last = r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    for delta in [
        r#"{"reasoning_content":"Hm"}"#,
        r#"{"reasoning":"Hm"}"#,
        // GitHub Copilot
        r#"{"reasoning_text":"Hm","content":null}"#,
        // OpenRouter, MiniMax with `reasoning_split`
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"Hm","index":0}]}"#,
        // Mistral
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}"#,
        // Gemini at its compatible address
        r#"{"content":"Hm","extra_content":{"google":{"thought":true}}}"#,
    ] {
        let first = format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{delta}}}]}}"#);
        let opening = r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant"}}]}"#;
        chat(&[opening, &first, last], json!({"text": "Hi", "reasoning": "Hm", "stopReason": "stop"}));
    }
}

#[test]
fn input_of_tools_comes_in_many_forms() {
    let last = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
    for (arguments, expected) in [
        (r#""{\"a\":1}""#, json!({"a": 1})),
        (r#"{"a":1}"#, json!({"a": 1})),
        // A string of JSON within the string of JSON.
        (r#""\"{\\\"a\\\":1}\"""#, json!({"a": 1})),
        (r#""null""#, json!({})),
        ("null", json!({})),
        (r#""""#, json!({})),
        (r#""  ""#, json!({})),
    ] {
        let call = format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"t","arguments":{arguments}}}}}]}}}}]}}"#
        );
        chat(
            &[&call, last],
            json!({"toolCalls": [{"id": "a", "name": "t", "arguments": expected}], "stopReason": "tool_use"}),
        );
    }
}

#[test]
fn an_input_that_is_cut_at_the_limit_is_not_run_though_it_looks_whole() {
    for arguments in ["", "null", "12", r#"\"{\\\"a\\\":"#] {
        let call = format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"t","arguments":"{arguments}"}}}}]}},"finish_reason":"length"}}]}}"#
        );
        chat(
            &[&call],
            json!({"toolCalls": [{"name": "t", "arguments": null, "invalid": true}], "stopReason": "length"}),
        );
    }
}

#[test]
fn the_chunk_about_the_prompt_does_not_name_the_answer() {
    use crablet::model::ModelEvent;
    let chunks = [r#"{"id":"","model":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#, TEXT];
    let model = openai_chat::model(Profile::Custom, "m");
    let events = crate::replay::events(&model, &head(200, &[]), [stream(&chunks).as_bytes()]);
    assert!(
        matches!(&events[0], ModelEvent::Started { response_id: Some(id), .. } if id == "c"),
        "{:?}",
        events.first()
    );
}

#[test]
fn a_payload_that_only_tells_something_is_skipped() {
    let last = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    for told in [
        r#"{"type":"info","message":"the model is being loaded"}"#,
        r#"{"status":200,"message":"ok"}"#,
        r#"{"x":1}"#,
        "[]",
        "1",
    ] {
        chat(&[told, TEXT, told, last], json!({"text": "Hi", "stopReason": "stop"}));
    }
}

#[test]
fn failures_within_an_answer_are_told_by_kind() {
    for (payload, kind) in [
        // Groq, in an event named `error` and without a name
        (
            r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"x"}}"#,
            "malformed_tool_call",
        ),
        // OpenRouter
        (
            r#"{"id":"c","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
            "server",
        ),
        (
            r#"{"choices":[{"index":0,"delta":{},"error":{"code":429,"message":"slow down"},"finish_reason":"error"}]}"#,
            "rate_limit",
        ),
        // Mistral, doubleword, Cerebras
        (
            r#"{"object":"error","message":"Service unavailable","type":"service_unavailable","code":"3050"}"#,
            "overloaded",
        ),
        (r#"{"message":"Rate limit exceeded","type":"rate_limit_error","code":"rate_limited"}"#, "rate_limit"),
        // MiniMax
        (r#"{"choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit exceeded(RPM)"}}"#, "rate_limit"),
        (r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#, "quota"),
        (r#"{"base_resp":{"status_code":1027,"status_msg":"output new_sensitive"}}"#, "content_filter"),
        (r#"{"base_resp":{"status_code":1000,"status_msg":"unknown error"}}"#, "server"),
        // Hugging Face
        (r#"{"error":"Request failed during generation: Server error: CUDA","error_type":"generation"}"#, "server"),
    ] {
        chat(&[TEXT, payload], json!({"stopReason": "error", "error": {"kind": kind}}));
    }
}

#[test]
fn a_failed_choice_ends_the_answer_after_what_its_chunk_used() {
    // openrouter.ai/docs/api-reference/errors: the error stands within the choice, and the last chunk counts.
    let failed = r#"{"id":"c","choices":[{"index":0,"delta":{},"error":{"code":502,"message":"Provider disconnected"},"finish_reason":"error"}],"usage":{"prompt_tokens":3,"completion_tokens":1},"citations":["https://example.com"]}"#;
    let usage = json!({"input": 3, "output": 1});
    for payloads in [&[TEXT, failed] as &[&str], &[TEXT, failed, TEXT]] {
        chat(payloads, json!({"stopReason": "error", "error": {"kind": "server"}, "usage": usage}));
    }
    check(
        &openai_chat::model(Profile::Custom, "m"),
        &head(200, &[]),
        failed.as_bytes(),
        json!({"stopReason": "error", "error": {"kind": "server"}, "usage": usage}),
    );
}

#[test]
fn more_calls_than_are_allowed_in_one_chunk_end_the_answer_once() {
    let call = |index: usize| json!({"index": index, "id": format!("call-{index}"), "function": {"name": "read", "arguments": "{}"}});
    let calls: Vec<Value> = (0..1030).map(call).collect();
    let chunk =
        json!({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": calls}}], "usage": {"prompt_tokens": 3}});
    chat(&[&chunk.to_string()], json!({"stopReason": "error", "error": {"kind": "limit"}}));
}
