//! The bodies that are sent, against golden ones written from the vendors' documents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod wire;

use std::sync::Arc;

use crablet::model::openai_chat::{self, Profile};
use crablet::model::{
    Access, Content, Credentials, Effort, EncodedCache, File, FileData, Model, ModelRequest, Reasoning, RequestOptions,
    ToolChoice, anthropic, azure, bedrock, gemini, openai_responses, vertex,
};
use crablet::{ErrorKind, Millis};
use serde_json::{Value, json};
use wire::intent::{conversation, image, raw, result, results, text, tool, user};
use wire::replay::{body, encoded};

fn options(change: impl FnOnce(&mut RequestOptions)) -> Arc<RequestOptions> {
    let mut options = RequestOptions::default();
    change(&mut options);
    Arc::new(options)
}

fn simple(model: Model) -> ModelRequest {
    ModelRequest {
        model,
        instructions: None,
        messages: vec![user("1", vec![text("Hi")])],
        tools: Vec::new().into(),
        options: Arc::default(),
    }
}

fn with_options(model: Model, change: impl FnOnce(&mut RequestOptions)) -> Value {
    let mut request = simple(model);
    request.tools = vec![tool("find", r#"{"type":"object","properties":{}}"#)].into();
    request.options = options(change);
    body(&request)
}

/// Anthropic, API reference "Messages" and guide "Tool use", 2026-07.
#[test]
fn anthropic_gets_a_whole_conversation() {
    let request = conversation(&anthropic::model("claude-sonnet-4-5"), r#"{"signature":"c2ln"}"#);
    assert_eq!(
        body(&request),
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 32000,
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
                ]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "call_1", "name": "find", "input": {"q": "a"}},
                    {"type": "tool_use", "id": "call_2", "name": "find", "input": {"q": "b"}}
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "A."}]},
                    {"type": "tool_result", "tool_use_id": "call_2", "is_error": true,
                     "content": [{"type": "text", "text": "No such thing."}]}
                ]},
                {"role": "user", "content": [{"type": "text", "text": "And now?"}]}
            ],
            "tools": [{"name": "find", "description": "Finds things.", "input_schema":
                {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}],
            "stream": true
        })
    );
}

/// OpenAI, API reference "Create chat completion", 2026-07.
#[test]
fn openai_gets_a_whole_conversation() {
    let request = conversation(&openai_chat::model(Profile::OpenAi, "gpt-5.2"), r#"{"reasoning_details":[]}"#);
    assert_eq!(
        body(&request),
        json!({
            "model": "gpt-5.2",
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
                ]},
                {"role": "assistant", "content": "I look.", "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "{\"q\": \"a\"}"}},
                    {"id": "call_2", "type": "function", "function": {"name": "find", "arguments": "{\"q\": \"b\"}"}}
                ]},
                {"role": "tool", "tool_call_id": "call_1", "content": "A."},
                {"role": "tool", "tool_call_id": "call_2", "content": "No such thing."},
                {"role": "user", "content": "And now?"}
            ],
            "tools": [{"type": "function", "function": {"name": "find", "description": "Finds things.", "parameters":
                {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}}],
            "store": false,
            "stream": true,
            "stream_options": {"include_usage": true}
        })
    );
}

/// OpenAI, API reference "Create a model response" and guide "Reasoning models", 2026-07.
#[test]
fn openai_responses_get_a_whole_conversation() {
    let reasoning = r#"{"id":"rs_1","type":"reasoning","summary":[],"content":[],"encrypted_content":"RU5D"}"#;
    let request = conversation(&openai_responses::model("gpt-5.2"), reasoning);
    assert_eq!(
        body(&request),
        json!({
            "model": "gpt-5.2",
            "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
                ]},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "RU5D"},
                {"type": "message", "role": "assistant", "content": "I look."},
                {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": "{\"q\": \"a\"}"},
                {"type": "function_call", "call_id": "call_2", "name": "find", "arguments": "{\"q\": \"b\"}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "A."},
                {"type": "function_call_output", "call_id": "call_2", "output": "No such thing."},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And now?"}]}
            ],
            "tools": [{"type": "function", "name": "find", "description": "Finds things.", "strict": false, "parameters":
                {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}],
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "stream": true
        })
    );
    let plain = with_options(openai_responses::model("gpt-4o"), |options| {
        options.tool_choice = Some(ToolChoice::Tool("find".into()));
        options.max_tokens = Some(9);
        options.reasoning = Some(Reasoning::Effort(Effort::Low));
    });
    assert_eq!(plain.get("include"), None, "models that do not reason refuse it");
    assert_eq!(plain["tool_choice"], json!({"type": "function", "name": "find"}));
    assert_eq!((&plain["max_output_tokens"], &plain["reasoning"]["effort"]), (&json!(9), &json!("low")));
}

/// Google, API reference "Generating content" and guides "Function calling", "Thinking" and "Thought signatures", 2026-07.
#[test]
fn gemini_gets_a_whole_conversation() {
    let request = conversation(&gemini::model("gemini-3-flash-preview"), r#"{"thoughtSignature":"c2ln"}"#);
    assert_eq!(
        body(&request),
        json!({
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [
                    {"text": "What is this?"},
                    {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
                ]},
                {"role": "model", "parts": [
                    {"text": "Hm.", "thought": true, "thoughtSignature": "c2ln"},
                    {"text": "I look."},
                    {"functionCall": {"name": "find", "args": {"q": "a"}},
                     "thoughtSignature": "skip_thought_signature_validator"},
                    {"functionCall": {"name": "find", "args": {"q": "b"}}}
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "find", "response": {"output": "A."}}},
                    {"functionResponse": {"name": "find", "response": {"error": "No such thing."}}}
                ]},
                {"role": "user", "parts": [{"text": "And now?"}]}
            ],
            "store": false,
            "tools": [{"functionDeclarations": [{"name": "find", "description": "Finds things.", "parametersJsonSchema":
                {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}]}]
        })
    );
    let http = encoded(&request);
    assert_eq!(
        http.url,
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse"
    );
    assert_eq!(http.header("x-goog-api-key"), Some("key-1"));
    let sent = with_options(gemini::model("gemini-2.5-flash"), |options| {
        options.tool_choice = Some(ToolChoice::Tool("find".into()));
        options.reasoning = Some(Reasoning::Budget(1024));
        options.max_tokens = Some(9);
        options.stop = vec!["END".into()];
    });
    let config = json!({"mode": "ANY", "allowedFunctionNames": ["find"]});
    assert_eq!(sent["toolConfig"]["functionCallingConfig"], config);
    assert_eq!(sent["generationConfig"]["thinkingConfig"], json!({"thinkingBudget": 1024, "includeThoughts": true}));
    assert_eq!(sent["generationConfig"]["maxOutputTokens"], 9);
    let level = with_options(gemini::model("gemini-3-pro"), |options| {
        options.reasoning = Some(Reasoning::Effort(Effort::Low));
    });
    assert_eq!(level["generationConfig"]["thinkingConfig"]["thinkingLevel"], "low");
}

/// Amazon, API reference "ConverseStream" and guide "Tool use", 2026-07.
#[test]
fn bedrock_gets_a_whole_conversation() {
    let model = bedrock::model("us-east-1", "us.anthropic.claude-sonnet-4-5-v1:0");
    let request = conversation(&model, r#"{"signature":"c2ln"}"#);
    assert_eq!(
        body(&request),
        json!({
            "system": [{"text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [
                    {"text": "What is this?"},
                    {"image": {"format": "png", "source": {"bytes": "aGk="}}}
                ]},
                {"role": "assistant", "content": [
                    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
                    {"text": "I look."},
                    {"toolUse": {"toolUseId": "call_1", "name": "find", "input": {"q": "a"}}},
                    {"toolUse": {"toolUseId": "call_2", "name": "find", "input": {"q": "b"}}}
                ]},
                {"role": "user", "content": [
                    {"toolResult": {"toolUseId": "call_1", "content": [{"text": "A."}], "status": "success"}},
                    {"toolResult": {"toolUseId": "call_2", "content": [{"text": "No such thing."}], "status": "error"}},
                    {"text": "And now?"}
                ]}
            ],
            "toolConfig": {"tools": [{"toolSpec": {"name": "find", "description": "Finds things.", "inputSchema": {"json":
                {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}}}]}
        })
    );
    let http = encoded(&request);
    let address = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-v1%3A0";
    assert_eq!(http.url, format!("{address}/converse-stream"));
    assert_eq!(http.header("authorization"), Some("Bearer key-1"));
    let sent = with_options(model, |options| {
        options.tool_choice = Some(ToolChoice::Auto);
        options.max_tokens = Some(2048);
        options.reasoning = Some(Reasoning::Budget(1024));
    });
    assert_eq!(sent["toolConfig"]["toolChoice"], json!({"auto": {}}));
    assert_eq!(sent["inferenceConfig"], json!({"maxTokens": 2048}));
    assert_eq!(sent["additionalModelRequestFields"]["thinking"]["budget_tokens"], 1024);
}

/// The references of the two protocols, sections on tool choice and sampling.
#[test]
fn options_have_the_names_of_each_server() {
    let all = |options: &mut RequestOptions| {
        options.tool_choice = Some(ToolChoice::Required);
        options.parallel_tool_calls = Some(false);
        options.max_tokens = Some(100);
        options.temperature = Some(0.5);
        options.top_p = Some(0.9);
        options.stop = vec!["END".into()];
        options.seed = Some(7);
    };
    let anthropic = with_options(anthropic::model("claude-sonnet-4-5"), all);
    assert_eq!(anthropic["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
    assert_eq!(anthropic["max_tokens"], 100);
    assert_eq!(anthropic["stop_sequences"], json!(["END"]));
    assert_eq!((&anthropic["temperature"], &anthropic["top_p"]), (&json!(0.5), &json!(0.9)));

    let openai = with_options(openai_chat::model(Profile::OpenAi, "gpt-5.2"), all);
    assert_eq!(openai["tool_choice"], "required");
    assert_eq!(openai["parallel_tool_calls"], false);
    assert_eq!(openai["max_completion_tokens"], 100);
    assert_eq!((&openai["stop"], &openai["seed"]), (&json!(["END"]), &json!(7)));

    let mistral = with_options(openai_chat::model(Profile::Mistral, "mistral-small-latest"), all);
    assert_eq!((&mistral["tool_choice"], &mistral["random_seed"]), (&json!("any"), &json!(7)));
    assert_eq!((&mistral["max_tokens"], &mistral["stream_options"]), (&json!(100), &Value::Null));

    let one = |options: &mut RequestOptions| options.tool_choice = Some(ToolChoice::Tool("find".into()));
    let openai = with_options(openai_chat::model(Profile::OpenAi, "gpt-5.2"), one);
    assert_eq!(openai["tool_choice"], json!({"type": "function", "function": {"name": "find"}}));
    let anthropic = with_options(anthropic::model("claude-sonnet-4-5"), one);
    assert_eq!(anthropic["tool_choice"], json!({"type": "tool", "name": "find"}));
}

/// Anthropic "Extended thinking" and "Effort"; OpenRouter "Reasoning tokens"; DeepSeek "Thinking mode"; Alibaba "Deep
/// thinking"; 2026-07.
#[test]
fn reasoning_is_asked_for_in_the_words_of_each_server() {
    let ask = |model: Model, reasoning: Reasoning| with_options(model, |options| options.reasoning = Some(reasoning));
    let high = Reasoning::Effort(Effort::High);
    let old = ask(anthropic::model("claude-sonnet-4-5-20250929"), high);
    assert_eq!(old["thinking"], json!({"type": "enabled", "budget_tokens": 16384}));
    assert!(old["max_tokens"].as_u64() > Some(16384));
    let new = ask(anthropic::model("claude-opus-4-8"), high);
    assert_eq!(new["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(new["output_config"], json!({"effort": "high"}));
    let chat = |profile, reasoning| ask(openai_chat::model(profile, "m"), reasoning);
    assert_eq!(chat(Profile::OpenAi, high)["reasoning_effort"], "high");
    assert_eq!(chat(Profile::OpenRouter, Reasoning::Budget(1024))["reasoning"], json!({"max_tokens": 1024}));
    assert_eq!(chat(Profile::DeepSeek, Reasoning::Off)["thinking"], json!({"type": "disabled"}));
    let qwen = chat(Profile::Qwen, Reasoning::Budget(500));
    assert_eq!((&qwen["enable_thinking"], &qwen["thinking_budget"]), (&json!(true), &json!(500)));
}

/// OpenRouter "Preserving reasoning"; DeepSeek "Thinking mode", multi-turn with tool calls.
#[test]
fn reasoning_goes_back_only_to_the_model_it_came_from() {
    let details = r#"{"reasoning_details":[{"type":"reasoning.text","text":"Hm.","signature":"c2ln","index":0}]}"#;
    let router = openai_chat::model(Profile::OpenRouter, "anthropic/claude-sonnet-4.5");
    let request = conversation(&router, details);
    let sent = body(&request)["messages"][2].clone();
    assert_eq!(sent["reasoning_details"], raw(details).read::<Value>().unwrap()["reasoning_details"]);
    let deepseek = conversation(&openai_chat::model(Profile::DeepSeek, "deepseek-chat"), "{}");
    assert_eq!(body(&deepseek)["messages"][2]["reasoning_content"], "Hm.");
    for other in [anthropic::model("claude-sonnet-4-5"), openai_chat::model(Profile::OpenRouter, "other")] {
        let switched = ModelRequest { model: other, ..request.clone() };
        let text = body(&switched).to_string();
        assert!(!text.contains("c2ln") && !text.contains("Hm."), "{text}");
    }
}

#[test]
fn schemas_get_what_the_services_demand() {
    let mut request = simple(anthropic::model("claude-sonnet-4-5"));
    request.tools = vec![tool("find/it", r#"{"description":"x"}"#)].into();
    let sent = &body(&request)["tools"][0];
    assert_eq!(sent["input_schema"], json!({"type": "object", "properties": {}, "description": "x"}));
    assert!(
        sent["name"].as_str().unwrap().chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    );
}

#[test]
fn files_in_results_are_seen_by_the_model() {
    let model = openai_chat::model(Profile::OpenAi, "gpt-5.2");
    let mut request = conversation(&model, "{}");
    request.messages[2] = results("3", vec![result("call_1", "find", vec![text("A picture:"), image()], false)]);
    let messages = body(&request)["messages"].clone();
    assert_eq!(messages[3]["role"], "tool");
    assert_eq!(messages[4]["content"], "The call was interrupted; it has no result.");
    assert_eq!(messages[5]["role"], "user");
    assert_eq!(messages[5]["content"][1]["type"], "image_url");
    request.model = anthropic::model("claude-sonnet-4-5");
    let blocks = &body(&request)["messages"][2]["content"];
    assert_eq!(blocks[0]["content"][1]["type"], "image");
    assert_eq!((&blocks[1]["tool_use_id"], &blocks[1]["is_error"]), (&json!("call_2"), &json!(true)));
    // DeepSeek refuses everything but text.
    request.model = openai_chat::model(Profile::DeepSeek, "deepseek-chat");
    assert!(!body(&request).to_string().contains("image_url"));
}

#[test]
fn what_a_protocol_cannot_carry_is_told_before_it_is_sent() {
    let file = |media_type: &str, data| Content::File(File { media_type: media_type.into(), data, name: None });
    let refused = |model: Model, content: Content| {
        let mut request = simple(model);
        request.messages = vec![user("1", vec![content])];
        wire::replay::wire(&request.model).encode(&request, &mut EncodedCache::default()).unwrap_err()
    };
    let sound = file("audio/wav", FileData::Base64("aGk=".into()));
    let error = refused(anthropic::model("claude-sonnet-4-5"), sound);
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.message().contains("audio/wav"), "{error}");
    let linked = file("application/pdf", FileData::Url("https://example.com/a.pdf".into()));
    assert_eq!(refused(openai_chat::model(Profile::OpenAi, "m"), linked).kind(), ErrorKind::InvalidInput);
}

#[test]
fn the_callers_members_win() {
    let extra = |options: &mut RequestOptions| options.extra_body = Some(raw(r#"{"stream_options":null,"user":"u"}"#));
    let sent = with_options(openai_chat::model(Profile::Groq, "m"), extra);
    assert_eq!((&sent["stream_options"], &sent["user"]), (&Value::Null, &json!("u")));
    let mut request = simple(anthropic::model("m"));
    request.options = options(|options| options.extra_body = Some(raw("[1]")));
    let refused = wire::replay::wire(&request.model).encode(&request, &mut EncodedCache::default());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn addresses_and_keys_go_where_each_server_wants_them() {
    let http = encoded(&simple(anthropic::model("claude-sonnet-4-5")));
    assert_eq!(http.url, "https://api.anthropic.com/v1/messages");
    assert_eq!(http.header("x-api-key"), Some("key-1"));
    assert_eq!(http.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(http.header("authorization"), None);
    let http = encoded(&simple(anthropic::model("m").with_base_url("https://proxy.example/v1/")));
    assert_eq!(http.url, "https://proxy.example/v1/messages");
    let http = encoded(&simple(openai_chat::compatible("http://localhost:11434/v1/", "llama3")));
    assert_eq!(http.url, "http://localhost:11434/v1/chat/completions");
    assert_eq!(http.header("authorization"), Some("Bearer key-1"));
}

#[test]
fn clouds_have_addresses_and_credentials_of_their_own() {
    let http = encoded(&simple(azure::model("https://name.openai.azure.com/", "my-deployment")));
    assert_eq!(http.url, "https://name.openai.azure.com/openai/v1/responses");
    assert_eq!((http.header("api-key"), http.header("authorization")), (Some("key-1"), None));
    let request = simple(azure::chat_model("https://name.openai.azure.com/openai/v1", "my-deployment"));
    assert_eq!(encoded(&request).url, "https://name.openai.azure.com/openai/v1/chat/completions");
    assert_eq!(body(&request)["model"], "my-deployment");
    let http = encoded(&simple(vertex::model("p", "europe-west4", "gemini-2.5-flash")));
    let host = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4";
    assert_eq!(http.url, format!("{host}/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse"));
    assert_eq!(http.header("authorization"), Some("Bearer key-1"));
}

#[test]
fn a_browser_may_call_anthropic_directly_only_when_asked_for() {
    const HEADER: &str = "anthropic-dangerous-direct-browser-access";
    let model = anthropic::model("claude-sonnet-4-5");
    assert_eq!(encoded(&simple(model.clone())).header(HEADER), None);
    let http = encoded(&simple(anthropic::with_direct_browser_access(model)));
    assert_eq!(http.header(HEADER), Some("true"));
    let mut names: Vec<_> = http.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, [HEADER, "anthropic-version", "content-type", "x-api-key"], "others fail the preflight");
}

#[test]
fn keys_are_checked_and_never_printed() {
    let request = simple(openai_chat::model(Profile::OpenAi, "m").with_header("X-Team", "secret-team"));
    let Access::Http { wire, .. } = &request.model.access else { panic!("no wire") };
    let mut http = wire.encode(&request, &mut EncodedCache::default()).unwrap();
    let broken = Credentials::Key("sk-abc\ndef".into());
    assert_eq!(wire.authorize(&mut http, &broken, Millis(0)).unwrap_err().kind(), ErrorKind::Auth);
    wire.authorize(&mut http, &Credentials::Headers(vec![("x-gateway".into(), "g-1".into())]), Millis(0)).unwrap();
    assert_eq!((http.header("x-gateway"), http.header("x-team")), (Some("g-1"), Some("secret-team")));
    let printed = format!("{http:?} {:?} {broken:?}", request.model);
    assert!(!printed.contains("g-1") && !printed.contains("secret-team") && !printed.contains("sk-abc"), "{printed}");
}
