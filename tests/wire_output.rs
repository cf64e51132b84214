//! Answers that shall be objects: how each provider is asked for one, and what comes back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod wire;

use std::sync::Arc;

use crablet::json::RawJson;
use crablet::json::schema::Dialect;
use crablet::model::openai_chat::{self, Profile};
use crablet::model::{
    Assembler, Effort, Model, ModelRequest, OutputSchema, Part, Reasoning, RequestOptions, ResponseHead, StopReason,
    ToolChoice, anthropic, azure, bedrock, gemini, openai_responses, vertex,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::intent::{raw, text, tool, user};
use wire::replay::{body, encoded};

/// Members in an order that is not that of the alphabet, one that may be left out, and a limit.
const SCHEMA: &str = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
    "reason":{"type":"string","description":"Why.","minLength":1},
    "answer":{"type":"integer","minimum":0,"maximum":9},
    "note":{"type":"string"}},"required":["reason","answer"]}"#;

fn request(model: Model, has_tools: bool) -> ModelRequest {
    let mut options = RequestOptions::default();
    let mut output = OutputSchema::new("verdict", raw(SCHEMA));
    output.description = Some("What is thought of it.".into());
    options.output = Some(Arc::new(output));
    let tools = if has_tools { vec![tool("find", r#"{"type":"object","properties":{}}"#)] } else { Vec::new() };
    ModelRequest {
        model,
        instructions: Some("Be brief.".into()),
        messages: vec![user("1", vec![text("Hi")])],
        tools: tools.into(),
        options: options.into(),
    }
}

fn sent(model: Model, has_tools: bool) -> Value {
    body(&request(model, has_tools))
}

fn strict() -> Value {
    json!({
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "Why. (minLength: 1)"},
            "answer": {"type": "integer", "minimum": 0, "maximum": 9},
            "note": {"type": ["string", "null"]}
        },
        "required": ["reason", "answer", "note"],
        "additionalProperties": false
    })
}

fn closed() -> Value {
    json!({
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "Why. (minLength: 1)"},
            "answer": {"type": "integer", "description": "minimum: 0, maximum: 9"},
            "note": {"type": "string"}
        },
        "required": ["reason", "answer"],
        "additionalProperties": false
    })
}

/// OpenAI, guide "Structured Outputs", 2026-02; xAI, Mistral and OpenRouter, the sections of that name, 2026-07.
#[test]
fn chat_completions_have_a_response_format() {
    let format = json!({"type": "json_schema", "json_schema": {
        "name": "verdict", "description": "What is thought of it.", "schema": strict(), "strict": true,
    }});
    for profile in [Profile::OpenAi, Profile::Xai, Profile::Mistral, Profile::OpenRouter] {
        for has_tools in [false, true] {
            let sent = sent(openai_chat::model(profile, "m"), has_tools);
            assert_eq!(sent["response_format"], format, "{profile:?}");
            assert_eq!(sent["messages"][0]["content"], "Be brief.");
            assert_eq!(sent.get("tools").is_some(), has_tools);
        }
    }
    let azure = sent(azure::chat_model("https://name.openai.azure.com", "my-deployment"), true);
    assert_eq!(azure["response_format"], format);
}

/// The order in which a model writes the members is the order of the schema.
#[test]
fn the_order_of_members_stays() {
    for model in [
        openai_chat::model(Profile::OpenAi, "m"),
        openai_responses::model("m"),
        anthropic::model("claude-sonnet-4-5"),
        anthropic::model("claude-3-5-haiku"),
        gemini::model("gemini-3-flash"),
    ] {
        let bytes = encoded(&request(model, false)).body;
        let written = String::from_utf8(bytes).unwrap();
        let at = |name: &str| written.find(&format!("\"{name}\":")).unwrap();
        assert!(at("reason") < at("answer") && at("answer") < at("note"), "{written}");
    }
}

/// Cerebras "Structured outputs"; llama.cpp server README; Ollama and LM Studio "Structured outputs"; vLLM "Structured
/// outputs"; 2026-07. With tools a grammar would keep the model from calling any.
#[test]
fn some_servers_hold_to_a_schema_only_where_there_are_no_tools() {
    for profile in [Profile::Cerebras, Profile::LlamaCpp, Profile::Ollama, Profile::LmStudio, Profile::Vllm] {
        let alone = sent(openai_chat::model(profile, "m"), false);
        assert_eq!(alone["response_format"]["json_schema"]["schema"], strict());
        let with_tools = sent(openai_chat::model(profile, "m"), true);
        assert_eq!(with_tools.get("response_format"), None);
        assert_eq!(with_tools["tools"][1]["function"]["name"], "final_answer");
        assert_eq!(with_tools["tool_choice"], "required");
    }
}

/// DeepSeek "JSON Output"; Z.ai "Structured output"; Alibaba "Structured output"; 2026-07: the word JSON must be there.
#[test]
fn some_servers_hold_only_to_json() {
    for profile in [Profile::DeepSeek, Profile::Zai, Profile::Qwen] {
        let alone = sent(openai_chat::model(profile, "m"), false);
        assert_eq!(alone["response_format"], json!({"type": "json_object"}));
        let told = alone["messages"][0]["content"].as_str().unwrap();
        assert!(
            told.starts_with("Be brief.\n\n") && told.contains("JSON") && told.contains("\"minLength\":1"),
            "{told}"
        );
        let with_tools = sent(openai_chat::model(profile, "m"), true);
        assert_eq!((with_tools.get("response_format"), with_tools.get("tool_choice")), (None, None));
        assert_eq!(with_tools["tools"][1]["function"]["name"], "final_answer");
    }
    let mut reasoning = request(openai_chat::model(Profile::Qwen, "m"), false);
    Arc::make_mut(&mut reasoning.options).reasoning = Some(Reasoning::Effort(Effort::Low));
    let sent_reasoning = body(&reasoning);
    assert_eq!((sent_reasoning.get("response_format"), sent_reasoning.get("tool_choice")), (None, None));
    let custom = sent(openai_chat::compatible("https://example.com/v1", "m"), true);
    assert_eq!((custom.get("response_format"), custom["tools"].as_array().unwrap().len()), (None, 1));
    assert!(custom["messages"][0]["content"].as_str().unwrap().contains("JSON Schema"));
}

/// Groq "Structured Outputs" (no streaming, no tools), 2026-07: a tool is what works with both.
#[test]
fn a_tool_whose_input_is_the_answer_stands_in() {
    let sent = sent(openai_chat::model(Profile::Groq, "m"), false);
    let function = &sent["tools"][0]["function"];
    assert_eq!(
        (&function["name"], &function["description"]),
        (&json!("final_answer"), &json!("What is thought of it."))
    );
    assert_eq!(function["parameters"], raw(SCHEMA).read::<Value>().unwrap());
    assert_eq!(sent["tool_choice"], json!({"type": "function", "function": {"name": "final_answer"}}));
    let mut request = request(openai_chat::model(Profile::Groq, "m"), false);
    request.tools = vec![tool("final_answer", "{}")].into();
    Arc::make_mut(&mut request.options).tool_choice = Some(ToolChoice::Auto);
    let sent = body(&request);
    assert_eq!(
        (&sent["tools"][1]["function"]["name"], &sent["tool_choice"]),
        (&json!("final_answer_"), &json!("auto"))
    );
    Arc::make_mut(&mut request.options).tool_choice = Some(ToolChoice::None);
    assert_eq!(body(&request)["tools"].as_array().unwrap().len(), 1, "who forbids calls still wants an answer");
}

/// OpenAI, API reference "Create a model response", `text.format`, 2026-07; Azure, API version v1.
#[test]
fn responses_have_a_text_format() {
    let format = json!({"format": {
        "type": "json_schema", "name": "verdict", "description": "What is thought of it.", "schema": strict(),
        "strict": true,
    }});
    assert_eq!(sent(openai_responses::model("gpt-5.2"), true)["text"], format);
    assert_eq!(sent(azure::model("https://name.openai.azure.com", "my-deployment"), false)["text"], format);
    assert_eq!(sent(openai_responses::model("gpt-4-turbo"), false)["tool_choice"]["name"], "final_answer");
}

/// Anthropic, guide "Structured outputs", 2026-06: `output_config.format`; without a beta header since 2026-01.
#[test]
fn anthropic_has_an_output_config() {
    let format = json!({"type": "json_schema", "schema": closed()});
    let sent_now = sent(anthropic::model("claude-sonnet-4-5"), true);
    assert_eq!(sent_now["output_config"], json!({"format": format}));
    assert_eq!((sent_now["tools"].as_array().unwrap().len(), sent_now.get("tool_choice")), (1, None));
    let mut with_effort = request(anthropic::model("claude-opus-4-8"), false);
    Arc::make_mut(&mut with_effort.options).reasoning = Some(Reasoning::Effort(Effort::High));
    assert_eq!(body(&with_effort)["output_config"], json!({"effort": "high", "format": format}));
    let older = sent(anthropic::model("claude-sonnet-4-20250514"), true);
    assert_eq!((older.get("output_config"), &older["tool_choice"]), (None, &json!({"type": "any"})));
    let system = older["system"][0]["text"].as_str().unwrap();
    assert!(system.starts_with("Be brief.\n\n") && system.contains("final_answer"), "{system}");
    // A model that reasons refuses to be forced.
    let mut reasoning = request(anthropic::model("claude-3-7-sonnet-latest"), false);
    Arc::make_mut(&mut reasoning.options).reasoning = Some(Reasoning::Budget(2048));
    let sent = body(&reasoning);
    assert_eq!((sent["tools"][0]["name"].as_str(), sent.get("tool_choice")), (Some("final_answer"), None));
}

/// Google, API reference `GenerationConfig` and guide "Structured output", 2026-06.
#[test]
fn gemini_has_a_response_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "Why. (minLength: 1)"},
            "answer": {"type": "integer", "minimum": 0, "maximum": 9},
            "note": {"type": "string"}
        },
        "required": ["reason", "answer"]
    });
    let config = json!({"responseMimeType": "application/json", "responseJsonSchema": schema});
    assert_eq!(sent(gemini::model("gemini-3-flash"), true)["generationConfig"], config);
    assert_eq!(sent(gemini::model("gemini-2.5-flash"), false)["generationConfig"], config);
    assert_eq!(sent(vertex::model("p", "global", "gemini-2.5-flash"), false)["generationConfig"], config);
    let old = sent(gemini::model("gemini-2.5-flash"), true);
    assert_eq!(old.get("generationConfig"), None, "JSON is refused beside tools");
    assert_eq!(old["toolConfig"]["functionCallingConfig"], json!({"mode": "ANY"}));
    assert_eq!(old["tools"][0]["functionDeclarations"][1]["name"], "final_answer");
}

/// Amazon, API reference `OutputConfig` and guide "Structured output", 2026-06.
#[test]
fn bedrock_has_an_output_config() {
    let sent_now = sent(bedrock::model("us-east-1", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"), true);
    let definition = &sent_now["outputConfig"]["textFormat"]["structure"]["jsonSchema"];
    assert_eq!(sent_now["outputConfig"]["textFormat"]["type"], "json_schema");
    assert_eq!(
        (&definition["name"], &definition["description"]),
        (&json!("verdict"), &json!("What is thought of it."))
    );
    assert_eq!(serde_json::from_str::<Value>(definition["schema"].as_str().unwrap()).unwrap(), closed());
    let nova = sent(bedrock::model("us-east-1", "us.amazon.nova-pro-v1:0"), true);
    assert_eq!(nova["toolConfig"]["toolChoice"], json!({"any": {}}));
    let llama = sent(bedrock::model("us-east-1", "us.meta.llama4-scout-17b-instruct-v1:0"), true);
    assert_eq!((nova.get("outputConfig"), llama["toolConfig"].get("toolChoice")), (None, None));
}

fn answered(chunks: &[&str]) -> (String, Vec<String>, StopReason) {
    let request = request(openai_chat::model(Profile::Groq, "m"), true);
    let head = ResponseHead { status: 200, ..ResponseHead::default() };
    let mut decoder = wire::replay::wire(&request.model).decoder(&request, &head);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk.as_bytes(), &mut events);
    }
    decoder.finish(&mut events);
    let mut assembler = Assembler::new();
    events.iter().for_each(|event| assembler.push(event));
    let answer = assembler.finish();
    let mut said = String::new();
    let mut calls = Vec::new();
    for part in answer.content {
        match part {
            Part::Text { text, .. } => said.push_str(&text),
            Part::ToolCall(call) => calls.push(call.tool_name),
            other => panic!("{other:?}"),
        }
    }
    (said, calls, answer.stop_reason)
}

fn call(index: u32, name: &str, arguments: &str) -> String {
    let call = json!({"index": index, "id": format!("c{index}"), "function": {"name": name, "arguments": arguments}});
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
}

const END: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";

#[test]
fn the_call_that_is_the_answer_is_text() {
    let object = r#"{"reason":"so","answer":1}"#;
    let whole = [call(0, "final_answer", object), END.to_owned()].concat();
    let expected = (object.to_owned(), Vec::new(), StopReason::Stop);
    assert_eq!(answered(&[&whole]), expected);
    for at in 1..whole.len() {
        assert_eq!(answered(&[&whole[..at], &whole[at..]]), expected, "{at}");
    }
}

#[test]
fn other_calls_stay_calls_and_a_second_answer_is_one_of_them() {
    let stream = [call(0, "find", "{}"), call(1, "final_answer", "{\"a\":1}"), END.to_owned()].concat();
    assert_eq!(answered(&[&stream]), ("{\"a\":1}".to_owned(), vec!["find".to_owned()], StopReason::ToolUse));
    let stream = [call(0, "final_answer", "{}"), call(1, "final_answer", "{}"), END.to_owned()].concat();
    assert_eq!(answered(&[&stream]), ("{}".to_owned(), vec!["final_answer".to_owned()], StopReason::ToolUse));
}

#[test]
fn what_a_dialect_has_no_words_for_is_said_so() {
    for (dialect, schema, expected) in [
        (Dialect::OpenAi, r#"{"type":"object","additionalProperties":{"type":"string"}}"#, None),
        (Dialect::OpenAi, r#"{"type":"object"}"#, None),
        (
            Dialect::Anthropic,
            r##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}}}"##,
            None,
        ),
        (Dialect::Anthropic, r##"{"type":"object","properties":{"n":{"$ref":"other.json"}}}"##, None),
        (
            Dialect::OpenAi,
            r##"{"type":"object","properties":{"n":{"$ref":"#"},"k":{"const":1},"u":{"oneOf":[{"type":"string"},{"type":"null"}]}}}"##,
            Some(
                r##"{"type":"object","properties":{"n":{"anyOf":[{"$ref":"#"},{"type":"null"}]},"k":{"anyOf":[{"const":1},{"type":"null"}]},"u":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["n","k","u"],"additionalProperties":false}"##,
            ),
        ),
        (
            Dialect::Anthropic,
            r##"{"properties":{"a":{"type":"string","format":"uri","pattern":"^(?!x)"},"b":{"allOf":[{"$ref":"#/$defs/b"}]}},"$defs":{"b":{"enum":["x"]}}}"##,
            Some(
                r##"{"type":"object","properties":{"a":{"type":"string","description":"pattern: \"^(?!x)\""},"b":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":["x"]}},"additionalProperties":false}"##,
            ),
        ),
        (
            Dialect::Gemini,
            r#"{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"string","nullable":true}},"additionalProperties":{"type":"number"},"if":{},"$schema":"x"}"#,
            Some(
                r#"{"type":"object","properties":{"k":{"enum":["a"]},"n":{"type":["string","null"]}},"additionalProperties":{"type":"number"}}"#,
            ),
        ),
    ] {
        let lowered = dialect.lower(&raw(schema));
        assert_eq!(lowered.as_ref().map(RawJson::as_str), expected, "{schema}");
    }
}

#[test]
fn definitions_that_refer_to_each_other_are_looked_through_once() {
    let definitions: Vec<_> = (0..60)
        .map(|number| {
            format!(r##""d{number}":{{"anyOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##, number + 1)
        })
        .chain([r#""d60":{"type":"string"}"#.to_owned()])
        .collect();
    let schema = format!(
        r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{}}}}}"##,
        definitions.join(",")
    );
    assert!(Dialect::Anthropic.lower(&raw(&schema)).is_some());
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": ["integer", "null"]})),
        Just(json!({"enum": ["a", "b"]})),
        Just(json!({"type": "number", "minimum": 1, "multipleOf": 2})),
        Just(json!({"const": true})),
    ];
    leaf.prop_recursive(3, 20, 3, |inner| {
        prop_oneof![
            (prop::collection::btree_map("[a-c]", inner.clone(), 1..4), any::<bool>()).prop_map(
                |(members, required)| {
                    let names: Vec<_> = if required { members.keys().cloned().collect() } else { Vec::new() };
                    json!({"type": "object", "properties": members, "required": names})
                }
            ),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            prop::collection::vec(inner, 1..3).prop_map(|any| json!({"anyOf": any})),
        ]
    })
}

/// Whether every object of a lowered schema is closed and, for OpenAI, demands all its members.
fn is_strict(schema: &Value, demands_all: bool) -> bool {
    match schema {
        Value::Object(members) => {
            let properties = members.get("properties").and_then(Value::as_object);
            let is_closed = properties.is_none_or(|properties| {
                let all = !demands_all || members["required"].as_array().unwrap().len() == properties.len();
                all && members["additionalProperties"] == json!(false)
            });
            is_closed && members.values().all(|inner| is_strict(inner, demands_all))
        }
        Value::Array(elements) => elements.iter().all(|inner| is_strict(inner, demands_all)),
        _ => true,
    }
}

proptest! {
    #[test]
    fn lowered_schemas_are_strict_and_lowering_again_changes_nothing(schema in schema()) {
        let given = raw(&schema.to_string());
        for (dialect, demands_all) in [(Dialect::OpenAi, true), (Dialect::Anthropic, false)] {
            let lowered = dialect.lower(&given).unwrap();
            prop_assert!(is_strict(&lowered.read().unwrap(), demands_all), "{}", lowered.as_str());
            let again = dialect.lower(&lowered).unwrap();
            prop_assert_eq!(again.read::<Value>().unwrap(), lowered.read::<Value>().unwrap());
        }
        prop_assert!(Dialect::Gemini.lower(&given).is_some());
    }

    #[test]
    fn no_schema_panics(text in r#"[\[\]{}",:$ref#/defs0-9a-ftypeanyOf ]{0,60}"#) {
        if let Ok(schema) = RawJson::parse(text) {
            for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini] {
                dialect.lower(&schema);
            }
        }
    }
}
