//! How the servers that speak the protocol differ.

use super::super::names::IdRule;
use super::super::openai::style_of_openai;
use super::super::output::OutputStyle;
use super::super::request::{Access, Model, ModelRequest, Reasoning};

/// A server that speaks the Chat Completions protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// api.openai.com
    OpenAi,
    /// api.x.ai
    Xai,
    /// api.groq.com
    Groq,
    /// api.cerebras.ai
    Cerebras,
    /// openrouter.ai
    OpenRouter,
    /// api.mistral.ai
    Mistral,
    /// api.deepseek.com
    DeepSeek,
    /// api.minimax.io
    MiniMax,
    /// api.z.ai
    Zai,
    /// DashScope, in compatible mode
    Qwen,
    /// A local Ollama
    Ollama,
    /// A local llama.cpp server
    LlamaCpp,
    /// A vLLM server
    Vllm,
    /// A local LM Studio
    LmStudio,
    /// Any other: only what every server takes is sent.
    Custom,
}

impl Profile {
    /// The provider's name, as it stands in snapshots.
    pub const fn name(self) -> &'static str {
        self.traits().name
    }

    /// The profile of this name; [`Custom`](Self::Custom) for any other.
    pub fn from_name(name: &str) -> Self {
        ALL.iter().copied().find(|profile| profile.name() == name).unwrap_or(Self::Custom)
    }

    /// The profile of a model: by its provider, or for a provider that is not known by its address.
    pub(super) fn of_model(model: &Model) -> Self {
        match (Self::from_name(&model.provider), &model.access) {
            // Azure serves OpenAI's models.
            (Self::Custom, _) if &*model.provider == "azure" => Self::OpenAi,
            (Self::Custom, Access::Http { base_url: Some(url), .. }) => Self::of_base_url(url),
            (profile, _) => profile,
        }
    }

    /// The profile of the server at this address; [`Custom`](Self::Custom) for one that is not known.
    pub fn of_base_url(url: &str) -> Self {
        let behind_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
        let host = behind_scheme.split('/').next().unwrap_or_default().to_ascii_lowercase();
        let is_at = |known: &str| {
            let is_local_port = known.starts_with(':') && host.ends_with(known);
            is_local_port || host == known || host.strip_suffix(known).is_some_and(|rest| rest.ends_with('.'))
        };
        let fits = |profile: &Self| profile.traits().hosts.iter().any(|known| is_at(known));
        ALL.iter().copied().find(fits).unwrap_or(Self::Custom)
    }

    pub(super) const fn traits(self) -> &'static Traits {
        match self {
            Self::OpenAi => &OPEN_AI,
            Self::Xai => &XAI,
            Self::Groq => &GROQ,
            Self::Cerebras => &CEREBRAS,
            Self::OpenRouter => &OPEN_ROUTER,
            Self::Mistral => &MISTRAL,
            Self::DeepSeek => &DEEP_SEEK,
            Self::MiniMax => &MINI_MAX,
            Self::Zai => &ZAI,
            Self::Qwen => &QWEN,
            Self::Ollama => &OLLAMA,
            Self::LlamaCpp => &LLAMA_CPP,
            Self::Vllm => &VLLM,
            Self::LmStudio => &LM_STUDIO,
            Self::Custom => &CUSTOM,
        }
    }
}

const ALL: &[Profile] = &[
    Profile::OpenAi,
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

/// What a server takes and how it calls it.
#[derive(Debug)]
pub(super) struct Traits {
    pub(super) name: &'static str,
    pub(super) base_url: &'static str,
    /// Hosts, or `:port` for the usual port of a local server.
    hosts: &'static [&'static str],
    pub(super) system_role: &'static str,
    pub(super) max_tokens: &'static str,
    pub(super) seed: &'static str,
    /// The word for a call that is demanded.
    pub(super) required: &'static str,
    pub(super) ids: IdRule,
    /// Whether usage in the stream must be asked for. Some that send it anyway refuse the question.
    pub(super) asks_for_usage: bool,
    /// Whether `store` is sent, as `false`: nothing is kept at the provider unless the caller says so.
    pub(super) has_store: bool,
    /// Whether an assistant message with calls must have content too.
    pub(super) needs_content: bool,
    pub(super) takes_images: bool,
    pub(super) takes_video: bool,
    pub(super) audio: Audio,
    pub(super) documents: Documents,
    /// Whether a conversation that ends with the model's words is refused.
    pub(super) ends_with_user: bool,
    /// Whether the templates of some of its models refuse two messages of the user in a row.
    pub(super) merges_user: bool,
    /// The member for the id of the person the request is made for.
    pub(super) user: Option<&'static str>,
    /// Whether there are labels for the provider's own logs.
    pub(super) has_metadata: bool,
    pub(super) cache: Cache,
    pub(super) reasoning: ReasoningStyle,
    /// Whether it is told to keep its reasoning out of the text, where it stands between `<think>` tags else.
    pub(super) splits_reasoning: bool,
    pub(super) replay: ReasoningReplay,
    /// How an answer that shall be an object is asked for.
    pub(super) output: Output,
}

impl Traits {
    /// How the object that this request asks for is asked for.
    pub(super) fn output_style(&self, request: &ModelRequest) -> OutputStyle {
        let is_alone = request.tools.is_empty();
        let reasons = request.options.reasoning.is_some_and(|reasoning| reasoning != Reasoning::Off);
        match self.output {
            Output::OpenAi => style_of_openai(&request.model.id),
            Output::Schema => OutputStyle::Schema,
            Output::SchemaAlone if is_alone => OutputStyle::Schema,
            Output::ObjectAlone if is_alone => OutputStyle::Object,
            Output::ObjectUnreasoned if is_alone && !reasons => OutputStyle::Object,
            Output::SchemaAlone | Output::Tool => OutputStyle::Tool { is_demanded: true },
            Output::ObjectAlone | Output::ObjectUnreasoned => OutputStyle::Tool { is_demanded: false },
            Output::Told => OutputStyle::Told,
        }
    }
}

/// What a server has for an answer that shall be an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// `json_schema`, but for its oldest models.
    OpenAi,
    /// `json_schema`
    Schema,
    /// `json_schema` where there are no tools: with them it keeps the model from calling any.
    SchemaAlone,
    /// `json_object` where there are no tools, and no way to demand a call.
    ObjectAlone,
    /// The same, but not while the model reasons.
    ObjectUnreasoned,
    /// Only tools.
    Tool,
    /// Nothing that is known of.
    Told,
}

impl Traits {
    /// Whether this model must have said something between results and the user. The templates of Mistral's models refuse it
    /// else where others serve them (`Unexpected role 'user' after role 'tool'`), and at Mistral those of Devstral.
    pub(super) fn waits_for_model(&self, id: &str) -> bool {
        const NAMES: &[&str] = &["mistral", "ministral", "magistral", "codestral", "mixtral", "pixtral"];
        let id = id.to_ascii_lowercase();
        let has_templates = self.merges_user || self.name == CUSTOM.name;
        id.contains("devstral") || (has_templates && NAMES.iter().any(|name| id.contains(name)))
    }

    pub(super) fn reads_files(&self) -> bool {
        self.takes_images || self.audio != Audio::None || self.documents != Documents::None
    }
}

/// How a server is told how much to reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningStyle {
    /// `reasoning_effort`
    Effort,
    /// `reasoning_effort`, which is `high` or `none`
    EffortOrNone,
    /// `reasoning: {effort | max_tokens | enabled}`
    Object,
    /// `thinking: {type}`
    Switch,
    /// `thinking: {type}` and `reasoning_effort`
    SwitchAndEffort,
    /// `enable_thinking` and `thinking_budget`
    Enable,
}

/// How a server takes sounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audio {
    /// Not at all.
    None,
    /// As `input_audio: {data, format}`.
    Described,
    /// As `input_audio: data`.
    Bare,
}

/// How a server takes documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Documents {
    /// Not at all.
    None,
    /// As `file: {filename, file_data}`, by value.
    File,
    /// The same, by value or by address.
    FileOrAddress,
    /// As `document_url`, by value or by address.
    DocumentUrl,
}

/// How a server is told to cache. Many do so unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cache {
    /// Not at all.
    Unasked,
    /// By `prompt_cache_key` and `prompt_cache_retention`.
    Key,
    /// By `cache_control`, for those of its models that want to be asked.
    Marker,
}

/// How a server gets the reasoning of its own model back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningReplay {
    /// Not at all.
    Never,
    /// In the member that it came in, for local servers, and for those that are not known if it is `reasoning_content`: one that
    /// writes it wants or ignores it.
    AsItCame,
    /// As `reasoning_content` of messages with calls, without which it refuses the request or reasons anew.
    Content,
    /// As `reasoning_content` of every message, while it reasons also of those that were not reasoned about, without which
    /// it refuses the request.
    Always,
    /// As `reasoning_details`, unchanged.
    Details,
}

/// What every server takes; the others say where they differ.
const CUSTOM: Traits = Traits {
    name: "custom",
    base_url: "http://localhost:8000/v1",
    hosts: &[],
    system_role: "system",
    max_tokens: "max_tokens",
    seed: "seed",
    required: "required",
    ids: IdRule::Short,
    asks_for_usage: true,
    has_store: false,
    needs_content: false,
    takes_images: true,
    takes_video: false,
    audio: Audio::Described,
    documents: Documents::File,
    ends_with_user: false,
    merges_user: false,
    user: Some("user"),
    has_metadata: false,
    cache: Cache::Unasked,
    reasoning: ReasoningStyle::Effort,
    splits_reasoning: false,
    replay: ReasoningReplay::AsItCame,
    output: Output::Told,
};

/// <https://platform.openai.com/docs/api-reference/chat>
const OPEN_AI: Traits = Traits {
    name: "openai",
    base_url: "https://api.openai.com/v1",
    hosts: &["api.openai.com"],
    system_role: "developer",
    max_tokens: "max_completion_tokens",
    has_store: true,
    output: Output::OpenAi,
    user: Some("safety_identifier"),
    has_metadata: true,
    cache: Cache::Key,
    replay: ReasoningReplay::Never,
    ..CUSTOM
};

/// <https://docs.x.ai/docs/api-reference>
const XAI: Traits = Traits {
    name: "xai",
    base_url: "https://api.x.ai/v1",
    hosts: &["api.x.ai"],
    audio: Audio::None,
    documents: Documents::None,
    replay: ReasoningReplay::Never,
    output: Output::Schema,
    ..CUSTOM
};

/// <https://console.groq.com/docs/api-reference>; schemas are held to neither in streams nor with tools.
const GROQ: Traits = Traits {
    name: "groq",
    base_url: "https://api.groq.com/openai/v1",
    hosts: &["api.groq.com"],
    max_tokens: "max_completion_tokens",
    replay: ReasoningReplay::Never,
    output: Output::Tool,
    audio: Audio::None,
    documents: Documents::None,
    ..CUSTOM
};

/// <https://inference-docs.cerebras.ai/api-reference/chat-completions>
const CEREBRAS: Traits = Traits {
    name: "cerebras",
    base_url: "https://api.cerebras.ai/v1",
    hosts: &["api.cerebras.ai"],
    max_tokens: "max_completion_tokens",
    replay: ReasoningReplay::Never,
    output: Output::SchemaAlone,
    audio: Audio::None,
    documents: Documents::None,
    ..CUSTOM
};

/// <https://openrouter.ai/docs/api-reference>
const OPEN_ROUTER: Traits = Traits {
    name: "openrouter",
    base_url: "https://openrouter.ai/api/v1",
    hosts: &["openrouter.ai"],
    takes_video: true,
    documents: Documents::FileOrAddress,
    has_metadata: true,
    cache: Cache::Marker,
    reasoning: ReasoningStyle::Object,
    replay: ReasoningReplay::Details,
    output: Output::Schema,
    ..CUSTOM
};

/// <https://docs.mistral.ai/api>; unknown members are refused there.
const MISTRAL: Traits = Traits {
    name: "mistral",
    base_url: "https://api.mistral.ai/v1",
    hosts: &["api.mistral.ai"],
    seed: "random_seed",
    required: "any",
    ids: IdRule::Nine,
    asks_for_usage: false,
    needs_content: true,
    output: Output::Schema,
    audio: Audio::Bare,
    documents: Documents::DocumentUrl,
    ends_with_user: true,
    user: None,
    reasoning: ReasoningStyle::EffortOrNone,
    replay: ReasoningReplay::Never,
    ..CUSTOM
};

/// <https://api-docs.deepseek.com/api/create-chat-completion>
const DEEP_SEEK: Traits = Traits {
    name: "deepseek",
    base_url: "https://api.deepseek.com",
    hosts: &["api.deepseek.com"],
    needs_content: true,
    takes_images: false,
    audio: Audio::None,
    documents: Documents::None,
    reasoning: ReasoningStyle::SwitchAndEffort,
    replay: ReasoningReplay::Always,
    output: Output::ObjectAlone,
    ..CUSTOM
};

/// <https://platform.minimax.io/docs>
const MINI_MAX: Traits = Traits {
    name: "minimax",
    base_url: "https://api.minimax.io/v1",
    hosts: &["api.minimax.io", "api.minimaxi.com"],
    audio: Audio::None,
    documents: Documents::None,
    splits_reasoning: true,
    replay: ReasoningReplay::Details,
    output: Output::Tool,
    ..CUSTOM
};

/// <https://docs.z.ai/api-reference>
const ZAI: Traits = Traits {
    name: "zai",
    base_url: "https://api.z.ai/api/paas/v4",
    hosts: &["api.z.ai", "open.bigmodel.cn"],
    takes_video: true,
    audio: Audio::None,
    documents: Documents::None,
    user: Some("user_id"),
    reasoning: ReasoningStyle::Switch,
    replay: ReasoningReplay::Content,
    output: Output::ObjectAlone,
    ..CUSTOM
};

/// <https://www.alibabacloud.com/help/en/model-studio/use-qwen-by-calling-api>
const QWEN: Traits = Traits {
    name: "qwen",
    base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    hosts: &["dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com", "dashscope.aliyuncs.com"],
    needs_content: true,
    takes_video: true,
    documents: Documents::None,
    reasoning: ReasoningStyle::Enable,
    replay: ReasoningReplay::Content,
    output: Output::ObjectUnreasoned,
    ..CUSTOM
};

/// <https://docs.ollama.com/api/openai-compatibility>
const OLLAMA: Traits = Traits {
    name: "ollama",
    base_url: "http://localhost:11434/v1",
    hosts: &[":11434"],
    merges_user: true,
    output: Output::SchemaAlone,
    audio: Audio::None,
    documents: Documents::None,
    ..CUSTOM
};

/// <https://github.com/ggml-org/llama.cpp/tree/master/tools/server>
const LLAMA_CPP: Traits = Traits {
    name: "llamacpp",
    base_url: "http://localhost:8080/v1",
    hosts: &[":8080"],
    merges_user: true,
    documents: Documents::None,
    replay: ReasoningReplay::Content,
    output: Output::SchemaAlone,
    ..CUSTOM
};

/// <https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html>
const VLLM: Traits = Traits {
    name: "vllm",
    base_url: "http://localhost:8000/v1",
    hosts: &[":8000"],
    merges_user: true,
    takes_video: true,
    output: Output::SchemaAlone,
    documents: Documents::None,
    ..CUSTOM
};

/// <https://lmstudio.ai/docs/app/api/endpoints/openai>
const LM_STUDIO: Traits = Traits {
    name: "lmstudio",
    base_url: "http://localhost:1234/v1",
    hosts: &[":1234"],
    merges_user: true,
    output: Output::SchemaAlone,
    audio: Audio::None,
    documents: Documents::None,
    ..CUSTOM
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_their_address() {
        for (url, expected) in [
            ("https://api.openai.com/v1", Profile::OpenAi),
            ("https://openrouter.ai/api/v1", Profile::OpenRouter),
            ("https://dashscope.aliyuncs.com/compatible-mode/v1", Profile::Qwen),
            ("http://127.0.0.1:11434/v1", Profile::Ollama),
            ("http://localhost:1234/v1/", Profile::LmStudio),
            ("https://api.openai.com.example.com/v1", Profile::Custom),
            ("https://example.com/api.openai.com", Profile::Custom),
            ("https://notopenrouter.ai", Profile::Custom),
            ("", Profile::Custom),
        ] {
            assert_eq!(Profile::of_base_url(url), expected, "{url}");
        }
    }

    #[test]
    fn every_profile_is_found_by_its_name_and_its_own_address() {
        for profile in ALL {
            assert_eq!(Profile::from_name(profile.name()), *profile);
            if *profile != Profile::Custom {
                assert_eq!(Profile::of_base_url(profile.traits().base_url), *profile);
            }
        }
    }
}
