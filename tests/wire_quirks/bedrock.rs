use crablet::model::bedrock;
use serde_json::{Value, json};

use crate::wire::frames::{frame, frame_with};
use crate::{check, head, sources};

fn body(events: &[(&str, &str)]) -> Vec<u8> {
    events.iter().flat_map(|(name, payload)| frame(name, payload)).collect()
}

#[track_caller]
fn converse(events: &[(&str, &str)], expected: Value) {
    check(&bedrock::model("us-east-1", "m"), &head(200, &[]), &body(events), expected);
}

const TEXT: (&str, &str) = ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Hi"}}"#);
const END: (&str, &str) = ("messageStop", r#"{"stopReason":"end_turn"}"#);

#[test]
fn tools_that_ran_at_the_provider_are_kept_and_not_run() {
    // docs.aws.amazon.com/bedrock, API_runtime_ToolUseBlockStart and API_runtime_ToolResultBlockStart
    converse(
        &[
            (
                "contentBlockStart",
                r#"{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"nova_grounding","type":"server_tool_use"}}}"#,
            ),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"q\":1}"}}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
            (
                "contentBlockStart",
                r#"{"contentBlockIndex":1,"start":{"toolResult":{"toolUseId":"a","type":"nova_grounding_result","status":"success"}}}"#,
            ),
            ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"toolResult":[{"text":"found"}]}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"text":"Hi"}}"#),
            END,
        ],
        json!({"text": "Hi", "toolCalls": [], "stopReason": "stop", "blocks": ["toolUse", "toolResult", "text"]}),
    );
}

#[test]
fn hidden_reasoning_in_pieces_is_one_whole() {
    // anomalyco/opencode#46283: each piece is Base64 of its own.
    use crablet::model::Part;
    let pieces = |pieces: &[&str]| -> Vec<u8> {
        let deltas = pieces.iter().map(|piece| {
            format!(r#"{{"contentBlockIndex":0,"delta":{{"reasoningContent":{{"redactedContent":"{piece}"}}}}}}"#)
        });
        let deltas = deltas.flat_map(|delta| frame("contentBlockDelta", &delta));
        deltas.chain(body(&[END])).collect()
    };
    for (given, whole) in
        [(vec!["YQ==", "Yg==", "Yw=="], "YWJj"), (vec!["YWJj", "ZA=="], "YWJjZA=="), (vec!["YWI="], "YWI=")]
    {
        let events =
            crate::replay::events(&bedrock::model("us-east-1", "m"), &head(200, &[]), [pieces(&given).as_slice()]);
        let content = crate::replay::assemble(&events).content;
        let [Part::Reasoning { replay: Some(replay), .. }] = content.as_slice() else { panic!("{content:?}") };
        assert_eq!(replay.read::<Value>().unwrap(), json!({"redacted": whole}));
    }
}

#[test]
fn citations_are_sources() {
    let cited = |location: &str| {
        format!(r#"{{"contentBlockIndex":0,"delta":{{"citation":{{"title":"T","location":{location}}}}}}}"#)
    };
    let (web, document) =
        (cited(r#"{"web":{"url":"https://a.example"}}"#), cited(r#"{"documentPage":{"start":1,"end":2}}"#));
    let whole = body(&[TEXT, ("contentBlockDelta", &web), ("contentBlockDelta", &document), END]);
    let found = sources(&bedrock::model("us-east-1", "m"), &whole);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].url.as_deref(), found[1].title.as_deref()), (Some("https://a.example"), Some("T")));

    let document = br#"{"output":{"message":{"content":[{"citationsContent":{"content":[{"text":"Hi"}],"citations":[{"title":"T"}]}}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheWriteInputTokens":4}}"#;
    check(
        &bedrock::model("us-east-1", "m"),
        &head(200, &[]),
        document,
        json!({"text": "Hi", "citations": 1, "stopReason": "stop", "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}}),
    );
}

#[test]
fn exceptions_within_an_answer_are_told_by_kind() {
    // docs.aws.amazon.com/bedrock, API_runtime_ConverseStreamOutput
    for (word, message, kind) in [
        ("throttlingException", "Too many requests", "rate_limit"),
        ("serviceUnavailableException", "m", "overloaded"),
        ("internalServerException", "m", "server"),
        ("modelStreamErrorException", "m", "server"),
        ("modelTimeoutException", "m", "server"),
        ("validationException", "Input is too long for requested model.", "context_overflow"),
        ("validationException", "m", "bad_request"),
        ("accessDeniedException", "m", "auth"),
    ] {
        let exception = frame_with(
            &[(":exception-type", word), (":content-type", "application/json"), (":message-type", "exception")],
            &format!(r#"{{"message":"{message}","originalStatusCode":500}}"#),
        );
        check(
            &bedrock::model("us-east-1", "m"),
            &head(200, &[]),
            &[body(&[TEXT]), exception].concat(),
            json!({"text": "Hi", "stopReason": "error", "error": {"kind": kind, "message_contains": message}}),
        );
    }
}

#[test]
fn every_documented_reason_has_a_meaning() {
    for (word, reason) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
    ] {
        let stop = format!(r#"{{"stopReason":"{word}"}}"#);
        converse(&[TEXT, ("messageStop", &stop)], json!({"text": "Hi", "stopReason": reason, "stopReasonRaw": word}));
    }
    for (word, kind) in [
        ("malformed_model_output", "malformed_tool_call"),
        ("malformed_tool_use", "malformed_tool_call"),
        ("of_the_future", "protocol"),
    ] {
        let stop = format!(r#"{{"stopReason":"{word}"}}"#);
        converse(&[TEXT, ("messageStop", &stop)], json!({"stopReason": "error", "error": {"kind": kind}}));
    }
}
