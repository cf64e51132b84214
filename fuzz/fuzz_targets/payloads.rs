//! Streams of every wire put together from pieces of their payloads: the same events however they are cut, blocks that begin
//! and end in order, one last event, no panic.
#![no_main]

#[path = "../../tests/wire/blocks.rs"]
mod blocks;
#[allow(dead_code, reason = "the streams of this target all succeed")]
mod decoder;
#[path = "../../tests/wire/frames.rs"]
mod frames;
mod pieces;

use crablet::model::openai_chat::{self, Profile};
use crablet::model::{Model, anthropic, bedrock, gemini, openai_responses};

/// What streams are put together from. A line is a payload.
const PIECES: &[&str] = &[
    "\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "null",
    "0",
    "1",
    "[DONE]\n",
    // Anthropic
    r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"t","input":{}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"a","name":"t"}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"h"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"url":"u"}}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
    r#"{"type":"message_stop"}"#,
    // Chat Completions
    r#"{"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}"#,
    r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"content":"a"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":"h","reasoning_details":[{"text":"h"}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":"{\"k\":"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","function":{"name":"t","arguments":"{\"k\":1}"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"arguments":"1}"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"u","arguments":{}}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"refusal":"no","content":[{"type":"thinking","thinking":[{"text":"h"}]}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":1},"citations":["u"]}"#,
    r#"{"choices":[{"index":0,"delta":{"function_call":{"name":"t","arguments":"{}"}},"finish_reason":"stop"}]}"#,
    r#"{"base_resp":{"status_code":1,"status_msg":"m"}}"#,
    // Responses
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"t"}}"#,
    r#"{"type":"response.output_item.added","item":{"type":"reasoning"}}"#,
    r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"a"}"#,
    r#"{"type":"response.refusal.delta","delta":"no"}"#,
    r#"{"type":"response.reasoning_text.delta","output_index":1,"delta":"h"}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"t","arguments":"{}"}}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"text":"a","annotations":[{"url":"u"}]}]}}"#,
    r#"{"type":"response.output_item.done","item":{"type":"custom_tool_call","name":"t","input":"x"}}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"image_generation_call","result":"aGk="}}"#,
    r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"text":"a"}]}]}}"#,
    // Gemini
    r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"h","thought":true}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"s"}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","args":{}}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","willContinue":true}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[1]","stringValue":"x"}],"willContinue":true}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="},"thoughtSignature":"s"}]}}]}"#,
    r#"{"candidates":[{"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}]}}]}"#,
    r#"{"candidates":[{"finishReason":"MAX_TOKENS"}],"promptFeedback":{"blockReason":"SAFETY"}}"#,
    // Bedrock, whose events are named by what their payload holds
    r#"{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"t"}}}"#,
    r#"{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"t","type":"server_tool_use"}}}"#,
    r#"{"contentBlockIndex":1,"start":{"toolResult":{"toolUseId":"a"}}}"#,
    r#"{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{}"}}}"#,
    r#"{"contentBlockIndex":1,"delta":{"toolResult":[{"text":"r"}]}}"#,
    r#"{"contentBlockIndex":0,"delta":{"text":"a"}}"#,
    r#"{"contentBlockIndex":1,"delta":{"reasoningContent":{"text":"h","signature":"s"}}}"#,
    r#"{"contentBlockIndex":0}"#,
    r#"{"stopReason":"tool_use"}"#,
    // All
    r#"{"error":{"message":"m","code":429}}"#,
    r#"{"type":"error","message":"m"}"#,
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = pieces::text(bytes, PIECES);
    let lines = || text.split('\n').filter(|line| !line.is_empty());
    let stream: String = lines().map(|line| format!("data: {line}\n\n")).collect();
    for model in [
        anthropic::model("m"),
        openai_chat::model(Profile::Custom, "m"),
        openai_responses::model("m"),
        gemini::model("m"),
    ] {
        check(&model, stream.as_bytes());
    }
    let frames: Vec<u8> = lines().flat_map(|line| frames::frame(event_name(line), line)).collect();
    check(&bedrock::model("r", "m"), &frames);
});

fn check(model: &Model, bytes: &[u8]) {
    let whole = decoder::events(model, 200, bytes.chunks(bytes.len().max(1)));
    assert_eq!(whole, decoder::events(model, 200, bytes.chunks(1)));
    assert_eq!(blocks::disorder(&whole), None, "{whole:#?}");
}

fn event_name(payload: &str) -> &'static str {
    let names = [("\"start\"", "contentBlockStart"), ("\"delta\"", "contentBlockDelta"), ("stopReason", "messageStop")];
    names.into_iter().find(|(mark, _)| payload.contains(mark)).map_or("contentBlockStop", |(_, name)| name)
}
