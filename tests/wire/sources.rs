//! Where it stands what each provider takes: the vendor's document, its address and when it was read.

/// The document that says how this provider is asked for this feature.
pub(crate) fn source(provider: &str, feature: &str) -> [&'static str; 3] {
    let of_feature = SOURCES.iter().find(|(providers, features, _)| {
        providers.contains(&provider) && features.iter().any(|prefix| feature.starts_with(prefix))
    });
    of_feature.map(|(_, _, source)| *source).unwrap_or_else(|| panic!("no source for {provider} {feature}"))
}

const ANTHROPIC: &[&str] = &["anthropic", "anthropic-4-5"];
const OPENAI: &[&str] = &["openai-chat", "openai-responses"];
const AZURE: &[&str] = &["azure-chat", "azure-responses"];
const GEMINI: &[&str] = &["gemini", "gemini-2-5"];
const GOOGLE: &[&str] = &["gemini", "gemini-2-5", "vertex"];
const BEDROCK: &[&str] = &["bedrock", "bedrock-nova"];
const ANY: &[&str] = &[""];
const FILES: &[&str] = &["image", "document", "text-file", "audio", "video"];

/// The first one that fits counts.
const SOURCES: &[(&[&str], &[&str], [&str; 3])] = &[
    (
        ANTHROPIC,
        &["cache"],
        ["Prompt caching", "https://platform.claude.com/docs/en/build-with-claude/prompt-caching", "2026-11"],
    ),
    (
        &["anthropic"],
        &["reasoning"],
        ["Adaptive thinking", "https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking", "2026-11"],
    ),
    (
        &["anthropic-4-5"],
        &["reasoning"],
        ["Extended thinking", "https://platform.claude.com/docs/en/build-with-claude/extended-thinking", "2026-07"],
    ),
    (
        ANTHROPIC,
        &["provider-tools"],
        ["Web search tool", "https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool", "2026-07"],
    ),
    (
        ANTHROPIC,
        FILES,
        ["Vision, and PDF support", "https://platform.claude.com/docs/en/build-with-claude/vision", "2026-07"],
    ),
    (
        ANTHROPIC,
        &["output"],
        ["Structured outputs", "https://platform.claude.com/docs/en/build-with-claude/structured-outputs", "2026-06"],
    ),
    (ANTHROPIC, ANY, ["API reference, Messages", "https://platform.claude.com/docs/en/api/messages", "2026-07"]),
    (OPENAI, &["cache"], ["Prompt caching", "https://platform.openai.com/docs/guides/prompt-caching", "2026-11"]),
    (
        OPENAI,
        &["output"],
        ["Structured Outputs", "https://platform.openai.com/docs/guides/structured-outputs", "2026-02"],
    ),
    (
        &["openai-chat"],
        ANY,
        [
            "API reference, Create chat completion",
            "https://platform.openai.com/docs/api-reference/chat/create",
            "2026-07",
        ],
    ),
    (
        &["openai-responses"],
        &["reasoning"],
        ["Reasoning models", "https://platform.openai.com/docs/guides/reasoning", "2026-07"],
    ),
    (
        &["openai-responses"],
        ANY,
        [
            "API reference, Create a model response",
            "https://platform.openai.com/docs/api-reference/responses/create",
            "2026-07",
        ],
    ),
    (AZURE, ANY, ["Azure OpenAI v1 API", "https://learn.microsoft.com/azure/ai-foundry/openai/latest", "2026-07"]),
    (
        GOOGLE,
        &["reasoning"],
        ["Thinking, and Thought signatures", "https://ai.google.dev/gemini-api/docs/thinking", "2026-07"],
    ),
    (
        GOOGLE,
        &["provider-tools"],
        ["Tool combination", "https://ai.google.dev/gemini-api/docs/tool-combination", "2026-11"],
    ),
    (
        GOOGLE,
        &["tool-choice", "single-calls", "result-image", "conversation"],
        ["Function calling", "https://ai.google.dev/gemini-api/docs/function-calling", "2026-07"],
    ),
    (GEMINI, ANY, ["API reference, generateContent", "https://ai.google.dev/api/generate-content", "2026-11"]),
    (
        &["vertex"],
        ANY,
        [
            "Generate content with the Gemini API in Vertex AI",
            "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
            "2026-07",
        ],
    ),
    (
        BEDROCK,
        &["cache"],
        [
            "API reference, CachePointBlock",
            "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CachePointBlock.html",
            "2026-11",
        ],
    ),
    (
        BEDROCK,
        &["output"],
        ["Structured output", "https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html", "2026-06"],
    ),
    (
        BEDROCK,
        ANY,
        [
            "API reference, ConverseStream",
            "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html",
            "2026-11",
        ],
    ),
    (&["xai"], ANY, ["API reference, Chat completions", "https://docs.x.ai/docs/api-reference", "2026-07"]),
    (
        &["groq"],
        ANY,
        ["API reference, Create chat completion", "https://console.groq.com/docs/api-reference", "2026-07"],
    ),
    (
        &["cerebras"],
        ANY,
        ["Chat Completions", "https://inference-docs.cerebras.ai/api-reference/chat-completions", "2026-07"],
    ),
    (
        &["openrouter"],
        &["reasoning"],
        ["Reasoning tokens", "https://openrouter.ai/docs/use-cases/reasoning-tokens", "2026-07"],
    ),
    (&["openrouter"], &["cache"], ["Prompt caching", "https://openrouter.ai/docs/features/prompt-caching", "2026-11"]),
    (&["openrouter"], ANY, ["API reference", "https://openrouter.ai/docs/api-reference/overview", "2026-07"]),
    (&["mistral"], ANY, ["API reference, Chat completion", "https://docs.mistral.ai/api", "2026-07"]),
    (&["deepseek"], &["reasoning"], ["Thinking mode", "https://api-docs.deepseek.com/guides/thinking_mode", "2026-07"]),
    (
        &["deepseek"],
        ANY,
        ["Create chat completion", "https://api-docs.deepseek.com/api/create-chat-completion", "2026-07"],
    ),
    (&["minimax"], ANY, ["Compatible OpenAI API", "https://platform.minimax.io/docs", "2026-07"]),
    (&["zai"], ANY, ["Chat completion", "https://docs.z.ai/api-reference/llm/chat-completion", "2026-07"]),
    (
        &["qwen"],
        ANY,
        [
            "OpenAI compatible API",
            "https://www.alibabacloud.com/help/en/model-studio/use-qwen-by-calling-api",
            "2026-07",
        ],
    ),
    (&["ollama"], ANY, ["OpenAI compatibility", "https://docs.ollama.com/api/openai-compatibility", "2026-07"]),
    (
        &["llamacpp"],
        ANY,
        ["llama.cpp HTTP server", "https://github.com/ggml-org/llama.cpp/tree/master/tools/server", "2026-07"],
    ),
    (
        &["vllm"],
        ANY,
        ["OpenAI-compatible server", "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html", "2026-07"],
    ),
    (&["lmstudio"], ANY, ["OpenAI compatibility", "https://lmstudio.ai/docs/app/api/endpoints/openai", "2026-07"]),
    (
        &["custom"],
        ANY,
        [
            "API reference, Create chat completion",
            "https://platform.openai.com/docs/api-reference/chat/create",
            "2026-07",
        ],
    ),
];
