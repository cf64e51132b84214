use crablet::model::openai_responses;
use serde_json::{Value, json};

use crate::{check, head, stream};

#[track_caller]
fn responses(payloads: &[&str], expected: Value) {
    check(&openai_responses::model("m"), &head(200, &[]), stream(payloads).as_bytes(), expected);
}

const DONE: &str = r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":2}}}"#;

#[test]
fn items_without_a_number_are_told_apart_by_their_order() {
    responses(
        &[
            r#"{"type":"response.output_item.added","item":{"type":"message","content":[]}}"#,
            r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
            r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#,
            r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"a","name":"t","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","delta":"{\"k\":1}"}"#,
            r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","name":"t","arguments":"{\"k\":1}"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"b","name":"t","arguments":"{}"}}"#,
            DONE,
        ],
        json!({
            "text": "Hi",
            "toolCalls": [{"id": "a", "name": "t", "arguments": {"k": 1}}, {"id": "b", "name": "t", "arguments": {}}],
            "stopReason": "tool_use",
        }),
    );
}

#[test]
fn items_that_were_numbered_from_one_are_not_read_again_from_the_final_response() {
    responses(
        &[
            r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Hi"}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#,
            r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}"#,
        ],
        json!({"text": "Hi", "stopReason": "stop"}),
    );
}

#[test]
fn what_no_event_told_is_read_from_the_final_response() {
    responses(
        &[
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"H"}"#,
            r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]},{"type":"function_call","call_id":"a","name":"t","arguments":"{}"}]}}"#,
        ],
        json!({"text": "H", "toolCalls": [{"id": "a", "name": "t", "arguments": {}}], "stopReason": "tool_use"}),
    );
}

#[test]
fn what_came_without_deltas_is_read_where_it_is_complete() {
    // LM Studio (earendil-works/pi#917): the arguments come once, and the item at its end has lost them.
    responses(
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"a","name":"t","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc_1","arguments":"{\"k\":1}"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"a","name":"t","arguments":"{}"}}"#,
            DONE,
        ],
        json!({"toolCalls": [{"id": "a", "name": "t", "arguments": {"k": 1}}], "stopReason": "tool_use"}),
    );
    // The same for texts, of servers that end no item.
    responses(
        &[
            r#"{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"Hi"}"#,
            r#"{"type":"response.refusal.done","output_index":2,"content_index":0,"refusal":"No."}"#,
            DONE,
        ],
        json!({"text": "Hi", "refusal": "No.", "stopReason": "refusal"}),
    );
    // Where deltas came, nothing is said twice.
    responses(
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"t","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"k\":1}"}"#,
            r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"k\":1}"}"#,
            r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Hi"}"#,
            r#"{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"Hi"}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":2,"summary_index":0,"delta":"H"}"#,
            r#"{"type":"response.reasoning_summary_text.done","output_index":2,"summary_index":0,"text":"H"}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":2,"summary_index":1,"delta":"m"}"#,
            r#"{"type":"response.reasoning_summary_text.done","output_index":2,"summary_index":1,"text":"m"}"#,
            DONE,
        ],
        json!({
            "text": "Hi", "thinking": "Hm",
            "toolCalls": [{"id": "a", "name": "t", "arguments": {"k": 1}}], "stopReason": "tool_use",
        }),
    );
}

#[test]
fn what_a_server_did_not_stream_of_an_input_is_added() {
    // vllm-project/vllm#44348: what the parser held back comes only with the whole.
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"t","arguments":""}}"#;
    let delta = r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"k\":"}"#;
    let whole = r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"k\":1}"}"#;
    let item = |arguments: &str| {
        format!(
            r#"{{"type":"response.output_item.done","output_index":0,"item":{{"type":"function_call","call_id":"a","name":"t","arguments":{arguments}}}}}"#
        )
    };
    let expected = json!({"toolCalls": [{"id": "a", "name": "t", "arguments": {"k": 1}}], "stopReason": "tool_use"});
    responses(&[added, delta, whole, &item(r#""{\"k\":1}""#), DONE], expected.clone());
    responses(&[added, delta, &item(r#""{\"k\":1}""#), DONE], expected.clone());
    responses(&[added, delta, whole, &item(r#""{}""#), DONE], expected);
}

#[test]
fn a_tool_that_takes_free_text_is_called_with_it() {
    // platform.openai.com/docs/guides/function-calling, "Custom tools"
    responses(
        &[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"ctc_1","type":"custom_tool_call","status":"in_progress","call_id":"a","name":"shell","input":""}}"#,
            r#"{"type":"response.custom_tool_call_input.delta","output_index":0,"item_id":"ctc_1","delta":"ls \"x\""}"#,
            r#"{"type":"response.custom_tool_call_input.done","output_index":0,"item_id":"ctc_1","input":"ls \"x\""}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"a","name":"shell","input":"ls \"x\""}}"#,
            DONE,
        ],
        json!({"toolCalls": [{"id": "a", "name": "shell", "customInput": "ls \"x\""}], "stopReason": "tool_use"}),
    );
}

#[test]
fn a_tool_with_free_text_that_ran_at_the_provider_is_not_run_again() {
    // docs.x.ai, "Server-side tool calls": the model goes on after its own tools.
    responses(
        &[
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"a","name":"x_keyword_search","input":"{}"}}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#,
            DONE,
        ],
        json!({"text": "Hi", "toolCalls": [], "stopReason": "stop", "blocks": ["custom_tool_call", "text"]}),
    );
}

#[test]
fn a_refusal_is_one_though_no_item_tells_it_again() {
    responses(
        &[r#"{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No."}"#, DONE],
        json!({"text": "", "refusal": "No.", "stopReason": "refusal"}),
    );
}

#[test]
fn tools_that_ran_at_the_provider_are_kept_and_not_run() {
    let kinds = [
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "computer_call",
        "local_shell_call",
        "compaction",
        "of_the_future",
    ];
    for kind in kinds {
        let item = format!(
            r#"{{"type":"response.output_item.done","output_index":0,"item":{{"id":"i","type":"{kind}","status":"completed"}}}}"#
        );
        responses(&[&item, DONE], json!({"toolCalls": [], "stopReason": "stop", "blocks": [kind]}));
    }
}

#[test]
fn an_answer_that_is_not_over_is_no_success() {
    for (last, kind) in [
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"m"}}}"#,
            "rate_limit",
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"m"}}}"#,
            "bad_request",
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"image_content_policy_violation","message":"m"}}}"#,
            "content_filter",
        ),
        (r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#, "server"),
        (r#"{"type":"error","code":"server_error","message":"m","param":null,"sequence_number":3}"#, "server"),
        (
            r#"{"type":"error","error":{"type":"too_many_requests","code":"too_many_requests","message":"m"},"sequence_number":3}"#,
            "rate_limit",
        ),
        (r#"{"type":"response.completed","response":{"status":"in_progress","output":[]}}"#, "stream_truncated"),
        (r#"{"type":"response.completed"}"#, "malformed_stream"),
    ] {
        let text = r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hi"}"#;
        responses(&[text, last], json!({"text": "Hi", "stopReason": "error", "error": {"kind": kind}}));
    }
    let cut = r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}}"#;
    responses(&[cut], json!({"stopReason": "content_filter", "stopReasonRaw": "incomplete:content_filter"}));
}
