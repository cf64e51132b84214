//! Payloads put together from pieces of deltas: scanned and walked, they are the same answer.
#![no_main]

#[allow(dead_code, reason = "the answer that is decoded here is the one of this target")]
mod decoder;
mod pieces;
#[path = "../../tests/wire/scanned.rs"]
mod scanned;

use crablet::model::anthropic;
use crablet::model::openai_chat::{self, Profile};

/// What streams are put together from.
const PIECES: &[&str] = &[
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":""#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""#,
    r#"{"choices":[{"index":0,"delta":{"content":""#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":""#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":""#,
    "\"}}\n",
    "\"}}]}\n",
    "\"}}]}}]}\n",
    r#"\""#,
    r"\n",
    r"\ud83e\udd80",
    r"\ud83e",
    r"\u00e9",
    "é🦀",
    r#"","text":""#,
    r#"","content":null,"refusal":""#,
    r#""},"finish_reason":null,"usage":null,"x":""#,
    r#""},"finish_reason":"stop","index":0,"x":{"a":""#,
    r#""},"error":{"message":""#,
    r#""},"index":1,"x":{"object":""#,
    "null",
    "\"delta\":",
    "\"choices\":",
    "\"arguments\":",
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = pieces::text(bytes, PIECES);
    let payloads = text.split(['\n', '\r']);
    let streams = scanned::streams(scanned::BEGINNING.iter().copied().chain(payloads));
    for model in [anthropic::model("m"), openai_chat::model(Profile::Custom, "m")] {
        let [scanned, walked] = streams.each_ref().map(|stream| decoder::events(&model, 200, [stream.as_bytes()]));
        assert!(scanned::is_same(&scanned, &walked), "scanned: {scanned:#?}\nwalked: {walked:#?}");
    }
});
