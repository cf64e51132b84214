//! What is sent in cases that are more than a feature: `wire_golden` has the body of each feature for each provider.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests may panic")]

mod wire;

use std::sync::Arc;

use crablet::model::openai_chat::{self, Profile};
use crablet::model::{
    Access, Content, Credentials, Effort, EncodedCache, File, FileData, FileKinds, Model, ModelRequest, Part,
    Reasoning, RequestOptions, ResponseHead, ToolChoice, anthropic, azure, bedrock, gemini, openai_responses, vertex,
};
use crablet::{ErrorKind, Millis};
use serde_json::{Value, json};
use wire::intent::{assistant, conversation, image, raw, result, results, text, tool, user};
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

/// api-docs.deepseek.com, "Thinking Mode": after a call, all that was reasoned goes back, or the request is refused; so is a message
/// without any (earendil-works/pi#3835), and one with an empty text (NousResearch/hermes-agent#18263).
#[test]
fn deepseek_gets_reasoning_with_every_message() {
    let model = openai_chat::model(Profile::DeepSeek, "deepseek-v4-pro");
    let other = openai_chat::model(Profile::Custom, "other");
    let mut request = conversation(&model, "{}");
    let said = |text: &str| Part::Text { text: text.into(), replay: None };
    request.messages.extend([
        assistant("5", &model, vec![Part::Reasoning { text: "So.".into(), replay: None }, said("It is A.")]),
        user("6", vec![text("Sure?")]),
        assistant("7", &other, vec![Part::Reasoning { text: "Well.".into(), replay: None }, said("Yes.")]),
        user("8", vec![text("Thanks.")]),
    ]);
    // One cache for both, since what was encoded for the one must not be sent with the other.
    let mut cache = EncodedCache::default();
    let mut reasoning = |request: &ModelRequest| -> Vec<Value> {
        let sent = wire::replay::wire(&request.model).encode(request, &mut cache).unwrap().body;
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        let messages = sent["messages"].as_array().unwrap().iter();
        let spoken = messages.filter(|message| message["role"] == "assistant");
        spoken.map(|message| message["reasoning_content"].clone()).collect()
    };
    assert_eq!(reasoning(&request), ["Hm.", "So.", " "]);
    request.options = options(|options| options.reasoning = Some(Reasoning::Off));
    assert_eq!(reasoning(&request), [json!("Hm."), json!("So."), Value::Null]);
}

/// A server that is not known gets reasoning back as it wrote it: Kimi's and DeepSeek's models refuse a call without it, wherever
/// they are served (mastra-ai/mastra#12592, charmbracelet/crush#2754).
#[test]
fn an_unknown_server_gets_reasoning_back_in_the_member_that_it_came_in() {
    let gateway = || openai_chat::compatible("https://gateway.example/v1", "kimi-k2.6");
    let local = || openai_chat::model(Profile::Vllm, "kimi-k2.6");
    for (model, member, expected) in [
        (gateway(), "reasoning_content", json!("Hm")),
        // Groq can be behind it (karthink/gptel#774).
        (gateway(), "reasoning", Value::Null),
        (local(), "reasoning_content", json!("Hm")),
        (local(), "reasoning", json!("Hm")),
        (local(), "reasoning_text", json!("Hm")),
    ] {
        let delta =
            |delta: String| format!("data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
        let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"find","arguments":"{}"}}]}"#;
        let stream = [
            delta(r#"{"role":"assistant"}"#.to_owned()),
            delta(format!(r#"{{"{member}":"H"}}"#)),
            delta(format!(r#"{{"content":"","{member}":"m"}}"#)),
            delta(call.to_owned()),
            "data: [DONE]\n\n".to_owned(),
        ];
        let head = ResponseHead { status: 200, headers: Vec::new() };
        for pieces in wire::bytes::cuttings(stream.concat().as_bytes()).into_iter().take(40) {
            let answer = wire::replay::assemble(&wire::replay::events(&model, &head, pieces));
            let mut request = simple(model.clone());
            request.messages.push(assistant("2", &model, answer.content));
            let sent = body(&request)["messages"][1].clone();
            assert_eq!((&sent[member], &sent["tool_calls"][0]["id"]), (&expected, &json!("a")), "{member}");
            let members = sent.as_object().unwrap().keys().filter(|name| name.starts_with("reasoning"));
            assert!(members.count() <= 1, "{sent}");
        }
    }
}

/// platform.openai.com, API reference "Responses": models from gpt-5.3-codex on are told again what was on the way and what the answer.
#[test]
fn the_phase_of_what_was_said_goes_back() {
    let model = openai_responses::model("gpt-5.4");
    let item = |index: u8, phase: &str, text: &str| {
        format!(
            r#"data: {{"type":"response.output_item.done","output_index":{index},"item":{{"type":"message","role":"assistant",{phase}"content":[{{"type":"output_text","text":"{text}"}}]}}}}"#
        )
    };
    let stream = [
        item(0, r#""phase":"commentary","#, "I look."),
        item(1, r#""phase":"final_answer","#, "It is A."),
        item(2, "", "Bye."),
        r#"data: {"type":"response.completed","response":{"status":"completed","output":[]}}"#.to_owned(),
    ];
    let head = ResponseHead { status: 200, headers: Vec::new() };
    let stream = format!("{}\n\n", stream.join("\n\n"));
    let answer = wire::replay::assemble(&wire::replay::events(&model, &head, [stream.as_bytes()]));
    let mut request = simple(model.clone());
    request.messages.push(assistant("2", &model, answer.content));
    let phases: Vec<_> = body(&request)["input"].as_array().unwrap().iter().map(|item| item["phase"].clone()).collect();
    assert_eq!(phases, [Value::Null, json!("commentary"), json!("final_answer"), Value::Null]);
    request.model = openai_responses::model("other");
    assert!(!body(&request).to_string().contains("phase"));
}

/// bytedance/trae-agent#230 and vellum-ai/vellum-assistant#18387, both answers of Anthropic: what is marked as failed must hold something,
/// and only text.
#[test]
fn a_failed_call_is_told_as_claude_takes_it() {
    let mut request = conversation(&anthropic::model("claude-sonnet-4-5"), "{}");
    let failed = |content| {
        results("3", vec![result("call_1", "find", content, true), result("call_2", "find", vec![text(" ")], true)])
    };
    request.messages[2] = failed(vec![text("Lost."), image()]);
    let sent = body(&request)["messages"][2]["content"].clone();
    let told: Vec<_> = sent[0]["content"].as_array().unwrap().iter().map(|block| block["text"].clone()).collect();
    assert_eq!(told, [json!("The call failed."), json!("Lost."), Value::Null]);
    assert_eq!((&sent[0]["content"][2]["type"], sent[0].get("is_error")), (&json!("image"), None));
    assert_eq!(
        sent[1],
        json!({"type": "tool_result", "tool_use_id": "call_2", "is_error": true, "content": [{"type": "text", "text": "(no output)"}]})
    );
    request.model = bedrock::model("us-east-1", "us.anthropic.claude-sonnet-4-5-v1:0");
    let sent = body(&request)["messages"][2]["content"].clone();
    assert_eq!(
        (&sent[0]["toolResult"]["status"], &sent[1]["toolResult"]["status"]),
        (&json!("success"), &json!("error"))
    );
    assert_eq!(sent[0]["toolResult"]["content"][0], json!({"text": "The call failed."}));
    request.messages[2] = failed(vec![text("Lost.")]);
    request.model = anthropic::model("claude-sonnet-4-5");
    let sent = body(&request)["messages"][2]["content"][0].clone();
    assert_eq!((&sent["is_error"], sent["content"].as_array().unwrap().len()), (&json!(true), 1));
}

/// agno-agi/agno#8687: `code_execution_tool_result.citations: Extra inputs are not permitted`; platform.claude.com, API reference
/// "Messages": citations of answers have a `file_id`, those of requests do not.
#[test]
fn what_only_claudes_answers_have_is_not_sent_back() {
    let model = anthropic::model("claude-sonnet-4-5");
    let mut request = simple(model.clone());
    let ran =
        r#"{"type":"code_execution_tool_result","tool_use_id":"srv_1","citations":null,"content":{"stdout":null}}"#;
    let call = r#"{"type":"server_tool_use","id":"srv_1","name":"code_execution","input":{"code":"1"}}"#;
    let cited = r#"{"citations":[{"type":"char_location","cited_text":"A","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null}]}"#;
    let block = |kind: &str, json| Part::Provider { kind: kind.into(), replay: raw(json) };
    let content = vec![
        block("server_tool_use", call),
        block("code_execution_tool_result", ran),
        Part::Text { text: "A.".into(), replay: Some(raw(cited)) },
    ];
    request.messages.extend([assistant("2", &model, content), user("3", vec![text("And?")])]);
    let sent = body(&request)["messages"][1]["content"].clone();
    assert_eq!(sent[0], raw(call).read::<Value>().unwrap());
    assert_eq!(
        sent[1],
        json!({"type": "code_execution_tool_result", "tool_use_id": "srv_1", "content": {"stdout": null}})
    );
    let citation = &sent[2]["citations"][0];
    assert_eq!(
        (citation.get("file_id"), &citation["document_title"], &citation["cited_text"]),
        (None, &Value::Null, &json!("A"))
    );
}

/// onyx-dot-app/onyx#6458, aliou/pi-neuralwatt#12: `Unexpected role 'user' after role 'tool'`; earendil-works/pi#3311: Z.ai, MiniMax and
/// ByteDance refuse a message without content.
#[test]
fn models_of_mistral_say_something_between_results_and_the_user() {
    let told = |model: Model, content: Vec<Content>| -> Vec<(String, Value)> {
        let mut request = conversation(&model, "{}");
        request.messages[2] = results("3", vec![result("call_1", "find", content, false)]);
        let messages = body(&request)["messages"].clone();
        let role = |message: &Value| message["role"].as_str().unwrap().to_owned();
        messages.as_array().unwrap().iter().skip(3).map(|message| (role(message), message["content"].clone())).collect()
    };
    let roles = |told: &[(String, Value)]| told.iter().map(|(role, _)| role.clone()).collect::<Vec<_>>().join(" ");
    let mistral = openai_chat::compatible("https://gateway.example/v1", "mistralai/Mistral-Small-3.2");
    for model in [openai_chat::model(Profile::Mistral, "devstral-2512"), mistral] {
        let of_text = told(model.clone(), vec![]);
        assert_eq!(roles(&of_text), "tool tool assistant user");
        assert_eq!((&of_text[0].1, &of_text[2].1), (&json!("(no output)"), &json!("OK.")));
        assert_eq!(roles(&told(model, vec![image()])), "tool tool assistant user user");
    }
    let other = openai_chat::compatible("https://gateway.example/v1", "m");
    for model in [other, openai_chat::model(Profile::Mistral, "mistral-small-latest")] {
        assert_eq!(roles(&told(model, vec![text(r#"{"role":"tool","#)])), "tool tool user");
    }
}

/// Servers of other models that speak Anthropic's protocol sign no thinking and refuse a turn without it
/// (NousResearch/hermes-agent#16748); Anthropic refuses thinking without a signature.
#[test]
fn unsigned_thinking_goes_back_only_to_those_who_sign_none() {
    let sent = |model: Model| body(&conversation(&model, "{}"))["messages"][1]["content"][0].clone();
    let unsigned = json!({"type": "thinking", "thinking": "Hm.", "signature": ""});
    let deepseek = anthropic::model("deepseek-v4-pro").with_base_url("https://api.deepseek.com/anthropic");
    assert_eq!(sent(deepseek), unsigned);
    let claude = || anthropic::model("claude-sonnet-4-5");
    assert_eq!(sent(claude())["type"], "text");
    assert_eq!(sent(claude().with_base_url("https://api.anthropic.com/v1"))["type"], "text");
}

/// agentscope-ai/agentscope-java#1270: DashScope demands content beside calls; platform.minimax.io, "Compatible OpenAI API": reasoning
/// stands in the text unless it is told to split.
#[test]
fn servers_get_what_they_miss_else() {
    let mut qwen = conversation(&openai_chat::model(Profile::Qwen, "qwen3-max"), "{}");
    let model = qwen.model.clone();
    qwen.messages.push(assistant("5", &model, vec![wire::intent::call("call_3", "find", "{}")]));
    let messages = body(&qwen)["messages"].clone();
    let last = messages.as_array().unwrap().iter().rfind(|message| message["role"] == "assistant").unwrap();
    assert_eq!(last["content"], "");
    assert_eq!(body(&simple(openai_chat::model(Profile::MiniMax, "MiniMax-M3")))["reasoning_split"], true);
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

/// Both services refuse the whole request for a property with another name (anthropics/claude-code#79418).
#[test]
fn claude_is_told_of_properties_whose_names_it_cannot_have() {
    let schema = r#"{"type":"object","properties":{"$top":{"type":"integer"},"q":{}}}"#;
    let sent = |model: Model| {
        let mut request = simple(model);
        request.tools = vec![tool("list", schema)].into();
        body(&request)
    };
    let claude = sent(anthropic::model("claude-sonnet-4-5"))["tools"][0]["input_schema"].clone();
    let bedrock = sent(bedrock::model("us-east-1", "us.anthropic.claude-sonnet-4-5-v1:0"));
    assert_eq!(bedrock["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"], claude);
    assert_eq!(claude["properties"], json!({"q": {}}));
    assert!(claude["description"].as_str().unwrap().contains(r#"{"$top":{"type":"integer"}}"#), "{claude}");
    let openai = sent(openai_chat::model(Profile::OpenAi, "gpt-5.2"));
    assert_eq!(openai["tools"][0]["function"]["parameters"], serde_json::from_str::<Value>(schema).unwrap());
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
fn what_a_provider_would_refuse_is_not_sent() {
    let refused = |model: Model, change: fn(&mut RequestOptions)| {
        let mut request = simple(model);
        request.tools = vec![tool("find", "{}")].into();
        request.options = options(change);
        let error = wire::replay::wire(&request.model).encode(&request, &mut EncodedCache::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.message().to_owned()
    };
    let deepseek = || openai_chat::model(Profile::DeepSeek, "deepseek-chat");
    for model in
        [anthropic::model("claude-opus-4-8"), bedrock::model("us-east-1", "anthropic.claude-sonnet-4-5"), deepseek()]
    {
        let told = refused(model, |options| {
            options.reasoning = Some(Reasoning::Effort(Effort::Low));
            options.tool_choice = Some(ToolChoice::Required);
        });
        assert!(told.contains("while it reasons"), "{told}");
    }
    let claude = || anthropic::model("claude-sonnet-4-5");
    let told = refused(claude(), |options| options.tool_choice = Some(ToolChoice::Tool("gone".into())));
    assert!(told.contains("\"gone\""), "{told}");
    let told = refused(claude(), |options| options.reasoning = Some(Reasoning::Budget(100)));
    assert!(told.contains("1024"), "{told}");
    for temperature in [f64::NAN, -1.0, f64::INFINITY, 1.5] {
        let mut request = simple(claude());
        request.options = options(|options| options.temperature = Some(temperature));
        assert!(wire::replay::wire(&request.model).encode(&request, &mut EncodedCache::default()).is_err());
    }
    let told = refused(claude(), |options| options.provider_tools = vec![raw("[]")].into());
    assert!(told.contains("JSON object"), "{told}");
    let told = refused(bedrock::model("us-east-1", "meta.llama"), |options| {
        options.reasoning = Some(Reasoning::Effort(Effort::Low));
    });
    assert!(told.contains("additionalModelRequestFields"), "{told}");
}

/// Chat templates of some models raise an error for two messages of the user in a row.
#[test]
fn local_servers_get_neighbours_of_the_user_as_one_message() {
    let ask = |profile| {
        let mut request = simple(openai_chat::model(profile, "gemma"));
        request.messages.push(user("2", vec![text("Anybody?")]));
        body(&request)["messages"].clone()
    };
    let one = json!([{"type": "text", "text": "Hi"}, {"type": "text", "text": "Anybody?"}]);
    assert_eq!(ask(Profile::Ollama), json!([{"role": "user", "content": one}]));
    assert_eq!(ask(Profile::OpenAi).as_array().unwrap().len(), 2);
}

/// OpenAI, guide "Computer use": a call without its output is refused, and so is reasoning without what it led to.
#[test]
fn what_the_client_cannot_answer_is_not_sent_back() {
    let model = openai_responses::model("computer-use-preview");
    let mut request = simple(model.clone());
    let reasoning = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"RU5D"}"#;
    let click = r#"{"type":"computer_call","id":"cu_1","call_id":"c","action":{"type":"screenshot"}}"#;
    let parts = vec![
        Part::Text { text: "I look.".into(), replay: None },
        Part::Reasoning { text: String::new(), replay: Some(raw(reasoning)) },
        Part::Provider { kind: "computer_call".into(), replay: raw(click) },
    ];
    request.messages.extend([assistant("2", &model, parts), user("3", vec![text("And?")])]);
    let items = body(&request)["input"].as_array().unwrap().clone();
    let kinds: Vec<_> = items.iter().map(|item| item["role"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "user"]);
}

#[test]
fn models_that_do_not_reason_are_not_asked_for_encrypted_reasoning() {
    assert_eq!(body(&simple(openai_responses::model("gpt-4o"))).get("include"), None);
}

#[test]
fn what_is_cached_beforehand_holds_instructions_and_tools() {
    let mut request = simple(gemini::model("gemini-2.5-flash"));
    request.instructions = Some("Be brief.".into());
    request.tools = vec![tool("find", "{}")].into();
    request.options = options(|options| {
        options.cached_content = Some("cachedContents/a".into());
        options.tool_choice = Some(ToolChoice::Required);
    });
    let sent = body(&request);
    assert_eq!(sent["cachedContent"], "cachedContents/a");
    assert!(["systemInstruction", "tools", "toolConfig"].iter().all(|member| sent.get(*member).is_none()), "{sent}");
}

#[test]
fn a_model_that_reads_only_text_is_told_of_files() {
    let mut request = simple(anthropic::model("claude-sonnet-4-5").with_files(FileKinds::NONE));
    request.messages = vec![user("1", vec![text("Look."), image()])];
    let sent = body(&request);
    assert_eq!(sent["messages"][0]["content"][1]["text"], "[image/png left out: this model cannot read it]");
    request.model.files = FileKinds { images: true, ..FileKinds::NONE };
    assert_eq!(body(&request)["messages"][0]["content"][1]["type"], "image");
}

/// Converse refuses a history with calls and no tools, and a document without a text.
#[test]
fn bedrock_gets_the_tools_that_were_called_and_words_beside_a_document() {
    let mut request = conversation(&bedrock::model("us-east-1", "amazon.nova-pro-v1:0"), "{}");
    request.tools = Vec::new().into();
    let tools = body(&request)["toolConfig"]["tools"].clone();
    assert_eq!((tools.as_array().unwrap().len(), &tools[0]["toolSpec"]["name"]), (1, &json!("find")));
    let data = FileData::Base64("aGk=".into());
    let paper = File { media_type: "application/pdf".into(), data, name: Some("größe.pdf".into()) };
    request.messages = vec![user("1", vec![Content::File(paper)])];
    let content = body(&request)["messages"][0]["content"].clone();
    assert!(content[0]["document"]["name"].as_str().unwrap().starts_with("gr--e-pdf-"), "{content}");
    assert_eq!(content[1], json!({"text": "See above."}));
    assert_eq!(body(&request).get("toolConfig"), None);
}

/// Anthropic, guide "Server tools", `pause_turn`: the answer so far is sent as it is, and the model goes on.
#[test]
fn a_paused_turn_goes_on() {
    let model = anthropic::model("claude-opus-4-8");
    let search = r#"{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}"#;
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}"#;
    let block = |kind: &str, block: &str| Part::Provider { kind: kind.into(), replay: raw(block) };
    let mut request = simple(model.clone());
    request.messages.push(assistant("2", &model, vec![block("server_tool_use", search)]));
    let blocks = |request: &ModelRequest| {
        let messages = body(request)["messages"].as_array().unwrap().clone();
        messages.iter().map(|message| message["content"].as_array().unwrap().len()).collect::<Vec<_>>()
    };
    assert_eq!(blocks(&request), [1, 1], "nothing is added");
    request.messages.push(assistant("3", &model, vec![block("web_search_tool_result", found)]));
    assert_eq!(blocks(&request), [1, 2], "one turn");
    request.messages.pop();
    request.messages.push(user("4", vec![text("Never mind.")]));
    assert_eq!(blocks(&request), [1, 1], "what was not answered is left out");
}

#[test]
fn an_extra_object_goes_into_the_one_that_is_there() {
    let sent = with_options(gemini::model("gemini-2.5-flash"), |options| {
        options.temperature = Some(0.5);
        options.extra_body = Some(raw(r#"{"generationConfig":{"topK":4,"temperature":1},"safetySettings":[]}"#));
    });
    assert_eq!(sent["generationConfig"], json!({"temperature": 1, "topK": 4}));
    assert_eq!(sent["safetySettings"], json!([]));
}

/// Servers of others need not know the member, and Vertex does not.
#[test]
fn gemini_stores_nothing_unless_told_to() {
    let store = |model: Model| body(&simple(model)).get("store").cloned();
    assert_eq!(store(gemini::model("m")), Some(json!(false)));
    assert_eq!(store(gemini::model("m").with_base_url("https://proxy.example")), None);
    assert_eq!(store(vertex::model("p", "global", "m")), None);
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
    assert_eq!(encoded(&simple(gemini::model("m"))).header("x-goog-api-key"), Some("key-1"));
    assert_eq!(encoded(&simple(bedrock::model("eu-west-1", "m"))).header("authorization"), Some("Bearer key-1"));
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
