//! Everything that a request can ask for, one feature at a time, and the providers that are asked.

use std::sync::Arc;

use crablet::model::openai_chat::{self, Profile};
use crablet::model::{
    CacheRetention, Content, Effort, File, FileData, Model, ModelRequest, OutputSchema, Part, Reasoning,
    RequestOptions, ToolChoice, anthropic, azure, bedrock, gemini, openai_responses, vertex,
};

use super::intent::{assistant, call, conversation, image, raw, result, results, text, tool, user};

/// A provider, by the folder of its golden bodies.
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    pub(crate) model: Model,
}

/// All protocols, and the models of a provider that are asked in another way.
pub(crate) fn providers() -> Vec<Provider> {
    let resource = "https://name.openai.azure.com";
    let provider = |name, model| Provider { name, model };
    vec![
        provider("anthropic", anthropic::model("claude-opus-4-8")),
        provider("anthropic-4-5", anthropic::model("claude-sonnet-4-5")),
        provider("openai-chat", openai_chat::model(Profile::OpenAi, "gpt-5.2")),
        provider("openai-responses", openai_responses::model("gpt-5.2")),
        provider("azure-chat", azure::chat_model(resource, "my-deployment")),
        provider("azure-responses", azure::model(resource, "my-deployment")),
        provider("gemini", gemini::model("gemini-3-flash-preview")),
        provider("gemini-2-5", gemini::model("gemini-2.5-flash")),
        provider("vertex", vertex::model("my-project", "global", "gemini-3-flash-preview")),
        provider("bedrock", bedrock::model("us-east-1", "us.anthropic.claude-sonnet-4-5-v1:0")),
        provider("bedrock-nova", bedrock::model("us-east-1", "us.amazon.nova-2-lite-v1:0")),
    ]
}

/// The servers that speak Chat Completions, OpenAI's own aside.
pub(crate) fn servers() -> Vec<Provider> {
    let profiles = [
        Profile::Xai,
        Profile::Groq,
        Profile::Cerebras,
        Profile::OpenRouter,
        Profile::Mistral,
        Profile::DeepSeek,
        Profile::MiniMax,
        Profile::Zai,
        Profile::Qwen,
        Profile::Ollama,
        Profile::LlamaCpp,
        Profile::Vllm,
        Profile::LmStudio,
        Profile::Custom,
    ];
    let server = |profile: &Profile| Provider { name: profile.name(), model: openai_chat::model(*profile, "m") };
    profiles.iter().map(server).collect()
}

/// Something that a request can ask for.
pub(crate) struct Feature {
    /// The name of the golden bodies.
    pub(crate) name: &'static str,
    /// The row of the documentation's table: what it is, in Rust and in JavaScript. Empty for none.
    pub(crate) row: &'static str,
    pub(crate) request: fn(&Model) -> ModelRequest,
    /// The same request without the feature.
    pub(crate) base: fn(&Model) -> ModelRequest,
}

fn plain(model: &Model) -> ModelRequest {
    ModelRequest {
        model: model.clone(),
        instructions: Some("Be brief.".into()),
        messages: vec![user("1", vec![text("Hi")])],
        tools: Vec::new().into(),
        options: Arc::default(),
    }
}

fn with_tool(model: &Model) -> ModelRequest {
    let find = tool("find", r#"{"type":"object","properties":{"q":{"type":"string"}}}"#);
    ModelRequest { tools: vec![find].into(), ..plain(model) }
}

fn changed(mut request: ModelRequest, change: impl FnOnce(&mut RequestOptions)) -> ModelRequest {
    change(Arc::make_mut(&mut request.options));
    request
}

fn with(model: &Model, change: impl FnOnce(&mut RequestOptions)) -> ModelRequest {
    changed(plain(model), change)
}

fn choosing(model: &Model, choice: ToolChoice) -> ModelRequest {
    changed(with_tool(model), |options| options.tool_choice = Some(choice))
}

fn prompt(model: &Model, media_type: &str, data: FileData, name: Option<&str>) -> ModelRequest {
    let file = File { media_type: media_type.into(), data, name: name.map(str::to_owned) };
    let mut request = plain(model);
    request.messages = vec![user("1", vec![text("Look."), Content::File(file)])];
    request
}

fn bytes() -> FileData {
    FileData::Base64("aGk=".into())
}

fn url(path: &str) -> FileData {
    FileData::Url(format!("https://example.com/{path}"))
}

/// What a wire keeps of the reasoning of its own model.
fn reasoning_of(model: &Model) -> &'static str {
    match &*model.reference().wire {
        "anthropic" | "bedrock" => r#"{"signature":"c2ln"}"#,
        "gemini" | "vertex" => r#"{"thoughtSignature":"c2ln"}"#,
        "openai-responses" | "azure-responses" => {
            r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"RU5D"}"#
        }
        _ => {
            r#"{"member":"reasoning_content","reasoning_details":[{"type":"reasoning.text","text":"Hm.","signature":"c2ln","index":0}]}"#
        }
    }
}

fn turn(model: &Model, reasoning: Option<&str>) -> ModelRequest {
    let reasoning = reasoning.map(|reasoning| Part::Reasoning { text: "Hm.".into(), replay: Some(raw(reasoning)) });
    let spoken = reasoning.into_iter().chain([call("call_1", "find", r#"{"q":"a"}"#)]).collect();
    let mut request = with_tool(model);
    request
        .messages
        .extend([assistant("2", model, spoken), results("3", vec![result("call_1", "find", vec![text("A.")], false)])]);
    request
}

/// A tool of the provider in the form of each protocol.
fn provider_tool(model: &Model) -> &'static str {
    match &*model.reference().wire {
        "anthropic" => r#"{"type":"web_search_20250305","name":"web_search","max_uses":3}"#,
        "gemini" | "vertex" => r#"{"googleSearch":{}}"#,
        "bedrock" => r#"{"systemTool":{"name":"nova_grounding"}}"#,
        _ => r#"{"type":"web_search"}"#,
    }
}

/// What the provider's tool did, as the decoder of each wire keeps it.
fn provider_blocks(model: &Model) -> Vec<Part> {
    let blocks = match &*model.reference().wire {
        "anthropic" => vec![
            ("server_tool_use", r#"{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"a"}}"#),
            ("web_search_tool_result", r#"{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}"#),
        ],
        "openai-responses" | "azure-responses" => {
            vec![("web_search_call", r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#)]
        }
        "gemini" | "vertex" => {
            vec![("executableCode", r#"{"executableCode":{"language":"PYTHON","code":"print(1)"}}"#)]
        }
        "bedrock" => vec![
            (
                "toolUse",
                r#"{"toolUse":{"toolUseId":"srv_1","name":"nova_grounding","type":"server_tool_use","input":{"query":"a"}}}"#,
            ),
            (
                "toolResult",
                r#"{"toolResult":{"toolUseId":"srv_1","type":"nova_grounding_result","status":"success","content":[{"text":"A."}]}}"#,
            ),
        ],
        _ => Vec::new(),
    };
    blocks.into_iter().map(|(kind, block)| Part::Provider { kind: kind.into(), replay: raw(block) }).collect()
}

fn answered(model: &Model, blocks: Vec<Part>) -> ModelRequest {
    let words = Part::Text { text: "Found.".into(), replay: None };
    let mut request = plain(model);
    let spoken = assistant("2", model, blocks.into_iter().chain([words]).collect());
    request.messages.extend([spoken, user("3", vec![text("And now?")])]);
    request
}

/// The features in which the servers of Chat Completions differ.
pub(crate) fn features_of_servers() -> Vec<Feature> {
    const DIFFERENT: &[&str] = &[
        "plain",
        "conversation",
        "tool-choice-required",
        "max-tokens",
        "seed",
        "reasoning",
        "image",
        "document",
        "audio",
        "video",
        "cache-long",
        "user",
        "metadata",
        "output",
    ];
    let is_different = |feature: &Feature| DIFFERENT.iter().any(|prefix| feature.name.starts_with(prefix));
    features().into_iter().filter(is_different).collect()
}

/// All of them, in the order of the documentation's table.
pub(crate) fn features() -> Vec<Feature> {
    let feature = |name, row, request| Feature { name, row, request, base: plain };
    let tool_feature = |name, row, request| Feature { name, row, request, base: with_tool };
    vec![
        feature("plain", "", plain),
        feature("conversation", "", |model| conversation(model, reasoning_of(model))),
        tool_feature("tools", "", with_tool),
        tool_feature("tool-choice-auto", "", |model| choosing(model, ToolChoice::Auto)),
        tool_feature("tool-choice-none", "no tool: `ToolChoice::None`, `toolChoice: \"none\"`", |model| {
            choosing(model, ToolChoice::None)
        }),
        tool_feature("tool-choice-required", "some tool: `ToolChoice::Required`, `\"required\"`", |model| {
            choosing(model, ToolChoice::Required)
        }),
        tool_feature("tool-choice-one", "this tool: `ToolChoice::Tool`, `{ tool }`", |model| {
            choosing(model, ToolChoice::Tool("find".into()))
        }),
        tool_feature(
            "single-calls",
            "one call at a time: `parallel_tool_calls`, `parallelToolCalls: false`",
            |model| changed(with_tool(model), |options| options.parallel_tool_calls = Some(false)),
        ),
        feature("max-tokens", "`max_tokens`, `maxTokens`", |model| {
            with(model, |options| options.max_tokens = Some(100))
        }),
        feature("temperature", "`temperature`", |model| with(model, |options| options.temperature = Some(0.5))),
        feature("top-p", "`top_p`, `topP`", |model| with(model, |options| options.top_p = Some(0.9))),
        feature("stop", "`stop`", |model| with(model, |options| options.stop = vec!["END".into()])),
        feature("seed", "`seed`", |model| with(model, |options| options.seed = Some(7))),
        feature("reasoning-effort", "reasoning by a word: `Reasoning::Effort`, `reasoning: \"high\"`", |model| {
            with(model, |options| options.reasoning = Some(Reasoning::Effort(Effort::High)))
        }),
        feature("reasoning-max", "", |model| {
            with(model, |options| options.reasoning = Some(Reasoning::Effort(Effort::Max)))
        }),
        feature("reasoning-budget", "reasoning by tokens: `Reasoning::Budget`, `reasoning: 2048`", |model| {
            with(model, |options| options.reasoning = Some(Reasoning::Budget(2048)))
        }),
        feature("reasoning-off", "no reasoning: `Reasoning::Off`, `\"off\"`", |model| {
            with(model, |options| options.reasoning = Some(Reasoning::Off))
        }),
        Feature {
            name: "reasoning-replay",
            row: "its own reasoning sent back, signed or encrypted",
            request: |model| turn(model, Some(reasoning_of(model))),
            base: |model| turn(model, None),
        },
        feature("image-bytes", "images by value", |model| prompt(model, "image/png", bytes(), None)),
        feature("image-url", "images by address", |model| prompt(model, "image/png", url("a.png"), None)),
        feature("document-bytes", "PDF by value", |model| prompt(model, "application/pdf", bytes(), Some("a.pdf"))),
        feature("document-url", "PDF by address", |model| {
            prompt(model, "application/pdf", url("a.pdf"), Some("a.pdf"))
        }),
        feature("text-file", "text files", |model| prompt(model, "text/plain", bytes(), Some("a.txt"))),
        feature("audio", "audio", |model| prompt(model, "audio/wav", bytes(), None)),
        feature("video", "video", |model| prompt(model, "video/mp4", bytes(), None)),
        feature("result-image", "images in results of tools", |model| {
            let mut request = turn(model, None);
            request.messages[2] = results("3", vec![result("call_1", "find", vec![text("A."), image()], false)]);
            request
        }),
        feature("provider-tools", "tools of the provider: `provider_tools`, `providerTools`", |model| {
            with(model, |options| options.provider_tools = vec![raw(provider_tool(model))].into())
        }),
        tool_feature("provider-tools-and-others", "", |model| {
            changed(with_tool(model), |options| options.provider_tools = vec![raw(provider_tool(model))].into())
        }),
        tool_feature("provider-tool-of-a-name", "", |model| {
            let bash = raw(r#"{"type":"bash_20250124","name":"find"}"#);
            changed(with_tool(model), |options| options.provider_tools = vec![bash].into())
        }),
        Feature {
            name: "provider-tools-replay",
            row: "what they did, kept and sent back",
            request: |model| answered(model, provider_blocks(model)),
            base: |model| answered(model, Vec::new()),
        },
        feature("cache-short", "`cache`: `CacheRetention::Short`, `\"short\"`", |model| {
            with(model, |options| options.cache = Some(CacheRetention::Short))
        }),
        feature("cache-long", "`cache`: `CacheRetention::Long`, `\"long\"`", |model| {
            with(model, |options| options.cache = Some(CacheRetention::Long))
        }),
        feature("cache-key", "`cache_key`, `cacheKey`", |model| {
            with(model, |options| options.cache_key = Some("team-1".into()))
        }),
        feature("cached-content", "`cached_content`, `cachedContent`", |model| {
            with(model, |options| options.cached_content = Some("cachedContents/abc".into()))
        }),
        feature("user", "`user`", |model| with(model, |options| options.user = Some("user-1".into()))),
        feature("metadata", "`metadata`", |model| {
            with(model, |options| options.metadata = vec![("team".into(), "blue".into())])
        }),
        feature("service-tier", "`service_tier`, `serviceTier`", |model| {
            with(model, |options| options.service_tier = Some("flex".into()))
        }),
        feature("store", "`store: true`", |model| with(model, |options| options.store = Some(true))),
        feature("metadata-stored", "", |model| {
            with(model, |options| {
                options.store = Some(true);
                options.metadata = vec![("team".into(), "blue".into())];
            })
        }),
        feature("output", "an object as the answer: `output`", |model| {
            let schema = r#"{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}"#;
            with(model, |options| options.output = Some(Arc::new(OutputSchema::new("verdict", raw(schema)))))
        }),
        feature("extra-body", "`extra_body`, `extraBody`", |model| {
            with(model, |options| options.extra_body = Some(raw(r#"{"top_k":4}"#)))
        }),
        feature("extra-headers", "", |model| plain(&model.clone().with_header("X-Team", "blue"))),
    ]
}
