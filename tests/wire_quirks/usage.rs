//! Tokens and sources, for each wire as its vendor documents them.

use crablet::model::openai_chat::{self, Profile};
use crablet::model::{ModelEvent, anthropic, gemini, openai_responses};
use serde_json::json;

use crate::{check, head, replay, sources, stream};

#[test]
fn every_number_of_the_provider_is_read() {
    let whole = json!({"input": 100, "output": 20, "cacheRead": 30, "cacheWrite": 40, "reasoning": 5});
    let chat = |usage: &str| {
        format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{{"content":"Hi"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        )
    };
    for usage in [
        // OpenAI, OpenRouter
        r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":40},"completion_tokens_details":{"reasoning_tokens":5}}"#,
        // DeepSeek; servers of Claude's models
        r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_cache_hit_tokens":30,"cache_creation_input_tokens":40,"completion_tokens_details":{"reasoning_tokens":5}}"#,
        // Moonshot; numbers with a point
        r#"{"prompt_tokens":100.0,"completion_tokens":20,"cached_tokens":30,"cache_creation_input_tokens":40,"reasoning_tokens":5}"#,
    ] {
        let model = openai_chat::model(Profile::Custom, "m");
        check(&model, &head(200, &[]), stream(&[&chat(usage)]).as_bytes(), json!({"usage": whole}));
    }
    let responses = r#"{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":30,"cache_write_tokens":40},"output_tokens_details":{"reasoning_tokens":5}}}}"#;
    check(&openai_responses::model("m"), &head(200, &[]), stream(&[responses]).as_bytes(), json!({"usage": whole}));
    let claude = [
        r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":0,"cache_read_input_tokens":30,"cache_creation_input_tokens":40,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":100,"output_tokens":20,"output_tokens_details":{"thinking_tokens":5}}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    check(&anthropic::model("m"), &head(200, &[]), stream(&claude).as_bytes(), json!({"usage": whole}));
    let google = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":20,"cachedContentTokenCount":30,"thoughtsTokenCount":5,"toolUsePromptTokenCount":7}}"#;
    let without_writes = json!({"input": 100, "output": 20, "cacheRead": 30, "reasoning": 5});
    check(&gemini::model("m"), &head(200, &[]), stream(&[google]).as_bytes(), json!({"usage": without_writes}));
}

/// OpenRouter, "Usage Accounting"; with a key of the caller's own, `cost` is only the fee.
#[test]
fn what_the_provider_took_is_read_where_it_is_in_dollars() {
    for (profile, usage, expected) in [
        (
            Profile::OpenRouter,
            r#"{"cost":0.95,"is_byok":false,"cost_details":{"upstream_inference_cost":0.95}}"#,
            "0.95",
        ),
        (Profile::OpenRouter, r#"{"cost":0.05,"is_byok":true,"cost_details":{"upstream_inference_cost":0.9}}"#, "0.95"),
        (Profile::OpenRouter, r#"{"cost":1.5e-7,"cost_details":{"upstream_inference_cost":null}}"#, "0.00000015"),
        (Profile::OpenRouter, r#"{"cost":{"total":1}}"#, ""),
        (Profile::OpenRouter, r#"{"prompt_tokens":1}"#, ""),
        (Profile::Custom, r#"{"cost":0.95}"#, ""),
    ] {
        let chunk = format!(
            r#"{{"id":"c","choices":[{{"index":0,"delta":{{"content":"Hi"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        let body = stream(&[&chunk]);
        let events = replay::events(&openai_chat::model(profile, "m"), &head(200, &[]), vec![body.as_bytes()]);
        let cost = events.iter().rev().find_map(|event| match event {
            ModelEvent::Usage(usage) => usage.cost,
            _ => None,
        });
        assert_eq!(cost.map(|cost| cost.to_string()).unwrap_or_default(), expected, "{usage}");
    }
}

#[test]
fn what_an_answer_refers_to_is_told() {
    let chat = [
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":"Hi","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example","title":"A"}}]}}],"citations":["https://b.example","https://a.example"],"search_results":[{"url":"https://c.example","title":"C"}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"citations":["https://b.example"]}"#,
    ];
    let claude = [
        r#"{"type":"message_start","message":{"id":"m","content":[]}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.example","title":"A"}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"page_location","document_title":"D"}}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let responses = [
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"Hi","annotations":[{"type":"url_citation","url":"https://a.example","title":"A"},{"type":"file_citation","filename":"f.txt"}]}]}}"#,
        r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#,
    ];
    let urls = |found: Vec<crablet::model::Source>| -> Vec<String> {
        found.into_iter().filter_map(|source| source.url.or(source.title)).collect()
    };
    let model = openai_chat::model(Profile::Custom, "m");
    let found = urls(sources(&model, stream(&chat).as_bytes()));
    assert_eq!(found, ["https://a.example", "https://c.example", "https://b.example"]);
    assert_eq!(urls(sources(&anthropic::model("m"), stream(&claude).as_bytes())), ["https://a.example", "D"]);
    assert_eq!(
        urls(sources(&openai_responses::model("m"), stream(&responses).as_bytes())),
        ["https://a.example", "f.txt"]
    );
}
