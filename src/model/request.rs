//! What a model is asked, in one form for every wire protocol.

use std::fmt;
use std::sync::Arc;

use super::Wire;
use super::message::{File, Message, ModelRef, Usage};
use super::output::{self, Asking};
use super::prices::{Counting, Dollars, Prices};
use crate::json::RawJson;
use crate::json::schema::Dialect;

/// A model to call: which one, over which wire protocol, at which address. Holds no secret.
#[derive(Clone)]
pub struct Model {
    /// The provider, such as `openai` or `groq`: chooses the wire's profile and names the model in snapshots.
    pub provider: Arc<str>,
    /// The provider's name of the model.
    pub id: Arc<str>,
    /// How it is reached.
    pub access: Access,
    /// The files it can read. In place of others it reads a note that a file was left out.
    pub files: FileKinds,
    /// What it costs, where that is known: then usage has the cost, and runs may have a budget. What OpenRouter or a
    /// function says goes before it.
    pub prices: Option<Prices>,
}

/// Kinds of file, by media type: `image/…`, `audio/…`, and every other one as a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKinds {
    /// Pictures.
    pub images: bool,
    /// Sounds.
    pub audio: bool,
    /// PDF, text, video and everything else.
    pub documents: bool,
}

impl FileKinds {
    /// Every kind that the wire protocol carries.
    pub const ALL: Self = Self { images: true, audio: true, documents: true };

    /// None: the model reads only text.
    pub const NONE: Self = Self { images: false, audio: false, documents: false };

    /// Whether a file is of one of these kinds.
    pub fn contains(self, file: &File) -> bool {
        match file.part_type() {
            "image" => self.images,
            "audio" => self.audio,
            _ => self.documents,
        }
    }
}

/// What the wire protocol carries.
impl Default for FileKinds {
    fn default() -> Self {
        Self::ALL
    }
}

/// How a model is reached.
#[derive(Clone)]
#[non_exhaustive]
pub enum Access {
    /// Over HTTP with one of the wire protocols.
    Http {
        /// The wire protocol.
        wire: &'static dyn Wire,
        /// The address that paths are appended to, without a slash at the end; `None` for the provider's own.
        base_url: Option<Arc<str>>,
        /// Further headers of every request, names in lower case.
        headers: Arc<[(String, String)]>,
    },
    /// By a function of the host, found by this name.
    Function(Arc<str>),
}

/// Header values are left out: they can hold secrets.
impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { wire, .. } => write!(formatter, "Http({})", wire.name()),
            Self::Function(name) => write!(formatter, "Function({name})"),
        }
    }
}

impl Model {
    /// A model that is a function of the host, registered there under this name.
    pub fn function(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        Self {
            provider: "function".into(),
            id: name.clone(),
            access: Access::Function(name),
            files: FileKinds::default(),
            prices: None,
        }
    }

    /// The same model, known to read these files and no others.
    #[must_use]
    pub fn with_files(mut self, files: FileKinds) -> Self {
        self.files = files;
        self
    }

    /// The same model at another address: a proxy, a gateway, a compatible server. Paths are appended to it, so that a call to one
    /// with a query or a fragment fails with `invalid-input`.
    #[must_use]
    pub fn with_base_url(mut self, url: impl Into<Arc<str>>) -> Self {
        if let Access::Http { base_url, .. } = &mut self.access {
            *base_url = Some(url.into());
        }
        self
    }

    /// The same model with a further header in every request. The name is written in lower case; one that is there
    /// already is replaced.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        if let Access::Http { headers, .. } = &mut self.access {
            let name = name.to_ascii_lowercase();
            let kept = headers.iter().filter(|(candidate, _)| *candidate != name).cloned();
            *headers = kept.chain([(name.clone(), value.into())]).collect();
        }
        self
    }

    /// The same model with its prices.
    #[must_use]
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = Some(prices);
        self
    }

    /// What this usage of the model costs, as far as prices and counts are known.
    pub fn cost(&self, usage: &Usage) -> Option<Dollars> {
        usage.cost.or_else(|| self.prices?.cost(usage, self.counting()))
    }

    /// Whether the cost of its answers can be known: by its prices, or because OpenRouter or a function says it.
    pub fn has_cost(&self) -> bool {
        self.prices.is_some() || self.counting().says_cost
    }

    /// How many tokens the model read, those from its cache and those kept there included; `None` when it did not say.
    pub fn input_tokens(&self, usage: &Usage) -> Option<u64> {
        let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
        usage.input.map(|input| if self.counting().cache_apart { input.saturating_add(cached) } else { input })
    }

    pub(super) fn counting(&self) -> Counting {
        match &self.access {
            Access::Http { wire, .. } => wire.counting(&self.provider),
            Access::Function(_) => Counting { says_cost: true, ..Counting::default() },
        }
    }

    /// The address given for it, or `None` for the provider's own.
    pub(super) fn address(&self) -> Option<&Arc<str>> {
        match &self.access {
            Access::Http { base_url, .. } => base_url.as_ref(),
            Access::Function(_) => None,
        }
    }

    /// The stored form of this model's identity.
    pub fn reference(&self) -> ModelRef {
        let wire = match &self.access {
            Access::Http { wire, .. } => wire.name(),
            Access::Function(_) => "function",
        };
        ModelRef { wire: wire.into(), provider: self.provider.clone(), id: self.id.clone() }
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reference().fmt(formatter)
    }
}

/// One request to a model. The messages are shared, so making one costs a pointer a message.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The model.
    pub model: Model,
    /// The system prompt.
    pub instructions: Option<Arc<str>>,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// What the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// Everything else.
    pub options: Arc<RequestOptions>,
}

impl ModelRequest {
    /// A request that says nothing yet: no instructions, messages, tools and options.
    pub fn new(model: Model) -> Self {
        Self { model, instructions: None, messages: Vec::new(), tools: Arc::default(), options: Arc::default() }
    }
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name the tool is registered with; wires that forbid it send a mapped one and map it back.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of the input, as it was given.
    pub input_schema: RawJson,
}

/// Settings of a request. What is `None` or empty is not sent.
///
/// A setting that changes what the model may do or what the call costs is an error of kind `invalid-input` where the
/// protocol cannot carry it. The others are left out there, as each one says; `docs/providers.md` has the table.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RequestOptions {
    /// Whether and what the model must call.
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may make several calls in one answer. `false` is an error with Gemini and Bedrock.
    pub parallel_tool_calls: Option<bool>,
    /// The most tokens to write. Wires that demand a number have a default.
    pub max_tokens: Option<u64>,
    /// Sampling temperature, from 0 to 2; to 1 with Anthropic and Bedrock.
    pub temperature: Option<f64>,
    /// Nucleus sampling, from 0 to 1.
    pub top_p: Option<f64>,
    /// Texts that end the answer. An error with the Responses protocol.
    pub stop: Vec<String>,
    /// Seed for providers that have one; left out for others.
    pub seed: Option<u64>,
    /// How much to reason.
    pub reasoning: Option<Reasoning>,
    /// The object that the answer shall be: each wire asks for it in the best way that its provider has.
    pub output: Option<Arc<OutputSchema>>,
    /// The person the request is made for, as an id that tells nobody who it is, for the provider's watch against abuse.
    /// Left out by Gemini, Vertex, Bedrock and Mistral.
    pub user: Option<String>,
    /// Labels for the provider's own logs and bills: OpenAI, OpenRouter, Vertex and Bedrock; left out by others.
    pub metadata: Vec<(String, String)>,
    /// Which queue the request stands in, in the provider's own word, such as `flex` or `priority`.
    pub service_tier: Option<String>,
    /// Whether the provider may keep the answer, where it asks: OpenAI, Azure and Gemini. `None` is `false`.
    pub store: Option<bool>,
    /// Whether and how long the provider caches what the next request begins with. Many do it unasked.
    pub cache: Option<CacheRetention>,
    /// What requests with a common beginning have in common, to find the cache: OpenAI and Azure; left out by others.
    pub cache_key: Option<String>,
    /// The name of content cached beforehand, with Gemini and Vertex. Instructions and tools are part of it there, so those
    /// of the request are not sent.
    pub cached_content: Option<String>,
    /// Tools that the provider itself runs, each in the protocol's own form, such as `{"type":"web_search"}`. One with the
    /// `name` of another tool takes the place of its declaration: the model is told the provider's, and the tool runs.
    pub provider_tools: Arc<[RawJson]>,
    /// Members merged into the body, for what crablet has no name for. They win over everything else; an object is merged
    /// into the one that is there, member by member.
    pub extra_body: Option<RawJson>,
}

/// The object that an answer shall be.
#[derive(Clone, Debug)]
pub struct OutputSchema {
    /// What the object is, such as `weather_report`; the model reads it. Letters, digits, `_` and `-`, at most 64; other
    /// names are changed to fit.
    pub name: String,
    /// More about it, for the model.
    pub description: Option<String>,
    /// Its JSON Schema, whose root is an object: no provider takes another root.
    pub schema: RawJson,
    /// How it is asked for. Only here, so that a program that asks for no object links nothing of it.
    pub(super) asking: &'static dyn Asking,
}

impl OutputSchema {
    /// An object with this schema.
    pub fn new(name: impl Into<String>, schema: RawJson) -> Self {
        Self { name: name.into(), description: None, schema, asking: output::ASKING }
    }

    /// The schema in the words of a provider, as [`Dialect::lower`] gives it.
    pub(super) fn lowered(&self, dialect: Dialect) -> Option<RawJson> {
        self.asking.lowered(self, dialect)
    }
}

impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.description, &self.schema) == (&other.name, &other.description, &other.schema)
    }
}

/// How long a provider keeps the beginning of a request in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheRetention {
    /// The provider's usual time, some minutes.
    Short,
    /// The longest it offers: an hour with Anthropic, Bedrock and OpenRouter, a day with OpenAI. Writing costs more.
    Long,
}

/// Whether and what the model must call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No call.
    None,
    /// At least one call.
    Required,
    /// This tool, by its registered name.
    Tool(String),
}

/// How much to reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reasoning {
    /// Not at all.
    Off,
    /// By a word.
    Effort(Effort),
    /// By a number of tokens.
    Budget(u64),
}

#[cfg(feature = "wires")]
impl Reasoning {
    /// As a number of tokens, for wires that take one; 0 for none.
    pub(super) const fn tokens(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Budget(tokens) => tokens,
            Self::Effort(Effort::Minimal) => 1024,
            Self::Effort(Effort::Low) => 2048,
            Self::Effort(Effort::Medium) => 8192,
            Self::Effort(Effort::High) => 16_384,
            Self::Effort(Effort::ExtraHigh) => 32_768,
            Self::Effort(Effort::Max) => 65_536,
        }
    }

    /// As a word, for wires that take one; a number falls to the word whose number it reaches.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Off => "none",
            Self::Effort(Effort::Minimal) => "minimal",
            Self::Effort(Effort::Low) | Self::Budget(..4096) => "low",
            Self::Effort(Effort::Medium) | Self::Budget(4096..16_384) => "medium",
            Self::Effort(Effort::High) | Self::Budget(_) => "high",
            Self::Effort(Effort::ExtraHigh) => "xhigh",
            Self::Effort(Effort::Max) => "max",
        }
    }

    /// As a word, for wires that know none above `high`.
    pub(super) const fn plain_word(self) -> &'static str {
        match self {
            Self::Effort(Effort::ExtraHigh | Effort::Max) => "high",
            other => other.word(),
        }
    }
}

/// The words for effort. A provider that does not have one gets the nearest that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// As little as possible.
    Minimal,
    /// Little.
    Low,
    /// The usual.
    Medium,
    /// Much.
    High,
    /// More than much.
    ExtraHigh,
    /// As much as possible.
    Max,
}
