//! Answers cut, broken and made up: any chunking gives the same events, nothing panics, and what is not over is neither a
//! success nor a call that could run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod wire;

use std::fs;
use std::path::Path;

use crablet::model::openai_chat::{self, Profile};
use crablet::model::{Model, ModelEvent, ModelRequest, ResponseHead, anthropic, bedrock, gemini, openai_responses};
use proptest::prelude::*;
use serde_json::Value;
use wire::{blocks, bytes, replay};

fn models() -> [Model; 5] {
    [
        anthropic::model("m"),
        openai_chat::model(Profile::Custom, "m"),
        openai_responses::model("m"),
        gemini::model("m"),
        bedrock::model("us-east-1", "m"),
    ]
}

fn head(status: u16) -> ResponseHead {
    ResponseHead { status, headers: vec![("content-type".into(), "text/event-stream".into())] }
}

/// The streams of the cases: documented ones and broken ones.
fn streams() -> Vec<(Model, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut streams = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let Ok(case) = serde_json::from_str::<Value>(&fs::read_to_string(entry.path()).unwrap()) else { continue };
        let model = case["area"].as_str().and_then(|area| replay::model(area, "custom"));
        if let (Some(model), Some(chunks)) = (model, case["input"]["chunks"].as_array()) {
            streams.push((model, chunks.iter().flat_map(|chunk| bytes::chunk(chunk).unwrap()).collect()));
        }
    }
    assert!(streams.len() > 20);
    streams
}

#[test]
fn a_connection_that_drops_is_no_success() {
    for (model, whole) in streams() {
        let full = replay::assemble(&replay::events(&model, &head(200), [whole.as_slice()]));
        let known = replay::observed(&full)["toolCalls"].as_array().cloned().unwrap();
        for end in 0..whole.len() {
            let events = replay::events(&model, &head(200), [&whole[..end]]);
            assert!(replay::ends_once(&events));
            let answer = replay::assemble(&events);
            if matches!(events.last(), Some(ModelEvent::Stop { .. })) {
                assert_eq!(answer.stop_reason, full.stop_reason, "cut at {end}");
            }
            for call in replay::observed(&answer)["toolCalls"].as_array().unwrap() {
                assert!(call.get("invalid").is_some() || known.contains(call), "cut at {end}: {call}");
            }
        }
    }
}

#[test]
fn an_endless_answer_does_not_fill_the_memory() {
    let line = [b"data: ".as_slice(), &vec![b'x'; 1024 * 1024]].concat();
    for model in models() {
        for first in [b"{\"a\":\"".as_slice(), b"data: \""] {
            let mut decoder = replay::wire(&model).decoder(&ModelRequest::new(model.clone()), &head(200));
            let mut events = Vec::new();
            decoder.push(first, &mut events);
            for _ in 0..40 {
                decoder.push(&line, &mut events);
            }
            assert!(matches!(events.as_slice(), [ModelEvent::Failed(_)]), "{}", events.len());
            decoder.push(b"data: {}\n\n", &mut events);
            decoder.finish(&mut events);
            assert_eq!(events.len(), 1, "nothing comes after the last event");
        }
    }
}

#[test]
fn errors_of_the_provider_hold_no_key() {
    let body = br#"{"error":{"message":"Incorrect API key provided: sk-proj-0123456789abcdef. See x","code":"invalid_api_key"}}"#;
    for model in models() {
        let events = replay::events(&model, &head(401), [body.as_slice()]);
        let [ModelEvent::Failed(error)] = events.as_slice() else { panic!("{events:?}") };
        assert!(!format!("{error:?}").contains("0123456789"), "{error:?}");
        assert_eq!(error.status(), Some(401));
    }
}

/// Pieces of streams, put together in ways that no server would.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("data: ".to_owned()),
        Just("\n\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("event: error\n".to_owned()),
        Just("data: [DONE]\n\n".to_owned()),
        Just("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é🦀\"}}]}\n\n".to_owned()),
        Just("data: {\"choices\":[{\"delta\":{\"reasoning\":\"r\",\"reasoning_details\":[{\"text\":\"r\"},3]}}]}\n\n".to_owned()),
        (0u8..3, "[a-c]?", "[ab]?", "[{}:\"1]{0,3}").prop_map(|(index, id, name, arguments)| {
            let arguments = Value::from(arguments);
            format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"{id}\",\"function\":{{\"name\":\"{name}\",\"arguments\":{arguments}}}}}]}}}}]}}\n\n")
        }),
        Just("data: {\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1}}\n\n".to_owned()),
        Just("data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n".to_owned()),
        (0u8..3, prop_oneof!["text", "thinking", "tool_use", "server_tool_use", "future"]).prop_map(|(index, kind)| {
            format!("data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{\"type\":\"{kind}\",\"id\":\"i\",\"name\":\"n\",\"input\":{{}}}}}}\n\n")
        }),
        (0u8..3, prop_oneof!["text_delta", "thinking_delta", "input_json_delta", "signature_delta", "future_delta"]).prop_map(
            |(index, kind)| format!("data: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"{kind}\",\"text\":\"t\",\"thinking\":\"h\",\"partial_json\":\"{{\",\"signature\":\"s\"}}}}\n\n")
        ),
        (0u8..3).prop_map(|index| format!("data: {{\"type\":\"content_block_stop\",\"index\":{index}}}\n\n")),
        Just("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n".to_owned()),
        Just("data: {\"type\":\"message_stop\"}\n\n".to_owned()),
        prop_oneof![
            r#"\{"text":"t","thought":(true|false)\}"#,
            r#"\{"text":"","thoughtSignature":"s"\}"#,
            r#"\{"functionCall":\{("name":"n",)?"willContinue":(true|false)\}\}"#,
            r#"\{"functionCall":\{"partialArgs":\[\{"jsonPath":"\$\.a","stringValue":"v"\}\],"willContinue":true\}\}"#,
            r#"\{"executableCode":\{"code":"1"\}\}"#,
        ]
        .prop_map(|part| format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}]}}}}]}}\n\n")),
        Just("data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n".to_owned()),
        (0u8..3, prop_oneof!["added", "done"], prop_oneof!["message", "reasoning", "function_call", "future"]).prop_map(
            |(index, action, kind)| format!("data: {{\"type\":\"response.output_item.{action}\",\"output_index\":{index},\"item\":{{\"type\":\"{kind}\",\"name\":\"n\",\"arguments\":\"{{}}\",\"content\":[{{\"text\":\"w\"}}]}}}}\n\n")
        ),
        (0u8..3, prop_oneof!["output_text", "refusal", "reasoning_text", "function_call_arguments"]).prop_map(
            |(index, kind)| format!("data: {{\"type\":\"response.{kind}.delta\",\"output_index\":{index},\"delta\":\"d\"}}\n\n")
        ),
        Just("data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"type\":\"message\"}]}}\n\n".to_owned()),
        Just("data: {\"error\":{\"message\":\"m\",\"code\":429}}\n\n".to_owned()),
        Just("{\"type\":\"message\",\"content\":[]}".to_owned()),
        ".{0,12}",
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events(text in soup(), status in prop_oneof![4 => Just(200u16), 1 => 400u16..600], seed in any::<u64>()) {
        for model in models() {
            let whole = replay::events(&model, &head(status), [text.as_bytes()]);
            prop_assert!(replay::ends_once(&whole), "{whole:?}");
            let cut = replay::events(&model, &head(status), bytes::random(text.as_bytes(), seed));
            prop_assert_eq!(&whole, &cut);
            let single = replay::events(&model, &head(status), text.as_bytes().chunks(1));
            prop_assert_eq!(&whole, &single);
            prop_assert_eq!(blocks::disorder(&whole), None, "{:#?}", whole);
            replay::assemble(&whole);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), status in any::<u16>()) {
        for model in models() {
            let events = replay::events(&model, &head(status), [bytes.as_slice()]);
            prop_assert!(replay::ends_once(&events));
        }
    }
}

/// The body in which each provider says that a request failed.
fn failure_body(provider: &str, error: &Value) -> Value {
    let message = &error["m"];
    match provider {
        "anthropic" => {
            serde_json::json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
        }
        "gemini" => {
            serde_json::json!({"error": {"code": error["status"], "message": message, "status": "INVALID_ARGUMENT"}})
        }
        "bedrock" => serde_json::json!({"message": message}),
        _ => serde_json::json!({"error": {"message": message, "code": error["code"], "type": error["type"]}}),
    }
}

#[test]
fn case_167_context_overflow_table() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/167-context-overflow-table.json"));
    let case: Value = serde_json::from_str(&text.unwrap()).unwrap();
    let errors = case["input"]["errors"].as_array().unwrap();
    let expected = case["expected"]["is_overflow"].as_array().unwrap();
    assert!(!errors.is_empty() && errors.len() == expected.len());
    for (error, expected) in errors.iter().zip(expected) {
        let provider = error["p"].as_str().unwrap();
        let model =
            replay::model(provider, "custom").unwrap_or_else(|| openai_chat::model(Profile::from_name(provider), "m"));
        let body = failure_body(provider, error).to_string();
        let status = u16::try_from(error["status"].as_u64().unwrap()).unwrap();
        let events = replay::events(&model, &head(status), [body.as_bytes()]);
        let [ModelEvent::Failed(failure)] = &events[..] else { panic!("{events:?}") };
        let is_overflow = failure.kind() == crablet::ErrorKind::ContextOverflow;
        assert_eq!(is_overflow, expected.as_bool().unwrap(), "{error}: {failure:?}");
    }
}
