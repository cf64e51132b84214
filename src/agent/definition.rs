//! The definition of an agent: which model, which tools, which limits. Plain data; functions live with the host.

use std::sync::Arc;

use super::compaction::Compaction;
use super::discovery::Discovery;
use super::output::OutputDefinition;
use super::sub_agent::SubAgent;
use crate::json::RawJson;
use crate::model::{Dollars, Model, RequestOptions};

/// What an agent is. Immutable and shared; a session holds a conversation with it.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The model that answers.
    pub model: Model,
    /// Models that answer in this order when the one before has failed: when its attempts are used up, when the provider
    /// asks for a longer wait than [`Policy::retry_cap`], when an account has no credit left, or when the history is too
    /// long for it. A run stays with the model that it fell back to; the next run begins with the first one again.
    pub fallbacks: Vec<Model>,
    /// The system prompt.
    pub instructions: Option<Arc<str>>,
    /// The tools, in the order the model is told of them. Names are unique.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Whether the model is told of all tools at once, `None`, or finds them when it needs them.
    pub discovery: Option<Discovery>,
    /// The object that the last answer of every run shall be; `None` for text.
    pub output: Option<OutputDefinition>,
    /// Settings of every model request.
    pub options: Arc<RequestOptions>,
    /// Limits and retries.
    pub policy: Policy,
    /// Which hooks the host has functions for. A hook that is not registered costs nothing.
    pub hooks: Hooks,
    /// Whether the host keeps checkpoints. Without a store the machine acknowledges its own.
    pub has_store: bool,
}

impl Agent {
    /// An agent with this model and nothing else: no tools, the default policy, no hooks, no store.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            fallbacks: Vec::new(),
            instructions: None,
            tools: Vec::new(),
            discovery: None,
            output: None,
            options: Arc::default(),
            policy: Policy::default(),
            hooks: Hooks::default(),
            has_store: false,
        }
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A tool as the machine knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// The name the model calls it by.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of the input. Its root is an object.
    pub input_schema: RawJson,
    /// The MCP server it comes from.
    pub server: Option<String>,
    /// Whether the host has a validator of its own (a Standard Schema) that is asked after the JSON Schema.
    pub has_validator: bool,
    /// Whether a person is asked before it runs.
    pub needs_approval: bool,
    /// Whether it may run more than once for one call: after a crash it is run again instead of reported as interrupted.
    pub repeatable: bool,
    /// Whether what runs it may outlive the host, as a process behind crablet-shim does: after a crash the result is asked
    /// for with [`Effect::ClaimTool`](super::Effect::ClaimTool) before it counts as interrupted or is run again.
    pub claimable: bool,
    /// Whether it runs alone, in call order, and never beside another call.
    pub sequential: bool,
    /// Whether the caller's own client performs it: the run is suspended until the result is given.
    pub client_side: bool,
    /// How many of its calls may be at work at once; `None` for as many as [`Policy::max_concurrent_tools`] allows.
    pub max_concurrent: Option<u32>,
    /// The most milliseconds it may take; `None` for no limit.
    pub timeout: Option<u64>,
    /// The agent that works on its calls, where it is one: see [`sub_agent`](Self::sub_agent). The host has no function for
    /// it; what counts of `repeatable` and `client_side` are those of the agent's own tools.
    pub agent: Option<SubAgent>,
}

impl ToolDefinition {
    /// A tool with this name and schema that runs at once, at most once, in parallel and without a time limit.
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: RawJson) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema,
            server: None,
            has_validator: false,
            needs_approval: false,
            repeatable: false,
            claimable: false,
            sequential: false,
            client_side: false,
            max_concurrent: None,
            timeout: None,
            agent: None,
        }
    }
}

/// Limits and retries of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The most model calls of one run. Default 20.
    pub max_steps: u32,
    /// After how many steps in a row with the same tool calls and the same results the model is told so; one more such
    /// step ends the run. Default 3; 0 to let it go on.
    pub max_identical_steps: u32,
    /// The most tokens of one run, read and written together as the provider counts them, those of sub-agents included;
    /// `None` for no limit, the default. Looked at between steps, so that the last step may go beyond it.
    pub max_tokens: Option<u64>,
    /// The most that one run may cost, in US dollars; `None` for no limit, the default. Every model that is called must have
    /// [prices](crate::model::Model::prices) then, unless OpenRouter or the function says what an answer costs. Looked at between steps, so that the last step may go beyond it.
    pub max_cost: Option<Dollars>,
    /// When and how a history that has become too long is sent in a shorter form; `None` to let such a call fail.
    pub compaction: Option<Compaction>,
    /// The most attempts of one model call, the first included. Default 4.
    pub max_attempts: u32,
    /// The wait before the second attempt, in milliseconds; doubled for each further one, with jitter. Default 1000.
    pub retry_base: u64,
    /// The longest wait between attempts, in milliseconds. A provider that asks for more ends the run. Default 60 000.
    pub retry_cap: u64,
    /// The most tools at work at once. Default 8.
    pub max_concurrent_tools: u32,
    /// When calls that ask for the end of the run end it. Default [`Terminate::All`].
    pub terminate: Terminate,
    /// The most characters of a text in a tool's result that the model reads: of a longer one it reads the beginning and the
    /// end, and the whole stays in the result's `output`. Default 400 000, about 100 000 tokens; `None` for no limit.
    pub max_result_characters: Option<usize>,
    /// Whether the model is told of a tool, `readResult`, with which it can read what was left out of such a result. Default
    /// false.
    pub result_reader: bool,
    /// The most milliseconds of one run; `None` for no limit, the default.
    pub timeout: Option<u64>,
    /// The most milliseconds a validator or hook may take; `None` for no limit, the default. One before a tool call that
    /// takes longer denies it, one after a call makes its result an error, and one before a model call ends the run.
    pub hook_timeout: Option<u64>,
    /// The most milliseconds that a person may take to decide about a call; `None` for no limit, the default. Then the call is
    /// not run, and the model is told so.
    pub approval_timeout: Option<u64>,
    /// The most milliseconds until the first byte of a model's answer. Default 120 000.
    pub first_byte_timeout: u64,
    /// The most milliseconds between two chunks of a model's answer. Default 120 000.
    pub idle_timeout: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_steps: 20,
            max_identical_steps: 3,
            max_tokens: None,
            max_cost: None,
            compaction: Some(Compaction::default()),
            max_attempts: 4,
            retry_base: 1_000,
            retry_cap: 60_000,
            max_concurrent_tools: 8,
            terminate: Terminate::All,
            max_result_characters: Some(400_000),
            result_reader: false,
            timeout: None,
            hook_timeout: None,
            approval_timeout: None,
            first_byte_timeout: 120_000,
            idle_timeout: 120_000,
        }
    }
}

/// When tools that ask for the end of the run get it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Terminate {
    /// When every call of the batch asks for it.
    #[default]
    All,
    /// When one call of the batch asks for it.
    Any,
}

/// Which hooks the host has functions for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Edits the messages before each model call.
    pub prepare_context: bool,
    /// Edits the body of each model call over HTTP. The host asks it itself, when it has encoded the request.
    pub format_request: bool,
    /// Allows, changes, denies or asks before each tool call.
    pub before_tool_call: bool,
    /// Changes the result of each tool call.
    pub after_tool_call: bool,
    /// Chooses model, tools and tool choice of each step.
    pub prepare_step: bool,
    /// Says after each batch of tool calls whether the run shall end there.
    pub stop_when: bool,
}
