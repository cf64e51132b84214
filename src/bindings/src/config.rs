//! The definition of an agent, read from the facade's JSON.

use std::borrow::Cow;
use std::sync::Arc;

use crablet::agent::{
    Agent, Compaction, Discovery, Hooks, OutputDefinition, Policy, Summarizer, Terminate, ToolDefinition,
};
use crablet::json::{Object, RawJson};
use crablet::model::{
    Access, CacheRetention, Dollars, Effort, FileKinds, Model, OutputSchema, Prices, Reasoning, RequestOptions,
    ToolChoice, Wire,
};
use crablet::{Error, ErrorKind};

use crate::models::{KeyedModel, function_name};

/// What `configOf` in `src/js/config.ts` writes.
#[derive(Debug)]
pub(crate) struct AgentConfig {
    pub(crate) agent: Agent,
    /// The agent's model and those that answer when it fails, in this order.
    pub(crate) models: Vec<KeyedModel>,
}

impl AgentConfig {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let object = Object::parse(text).map_err(|error| invalid(format!("the agent is not JSON: {error}")))?;
        let names: Vec<String> = object.read("names").unwrap_or_default();
        only(names.iter().map(String::as_str), "the agent", AGENT)?;
        let models = object.objects("models").iter().map(read_model).collect::<Result<Vec<_>, _>>()?;
        let mut others = models.iter().map(|keyed| keyed.model.clone());
        let mut agent = Agent::new(others.next().ok_or_else(|| invalid("the agent has no model"))?);
        agent.fallbacks = others.collect();
        agent.output = object.object("output").map(|output| read_output(&output)).transpose()?;
        agent.instructions = object.string("instructions").map(Into::into);
        agent.tools = object.objects("tools").iter().map(read_tool).collect::<Result<_, _>>()?;
        agent.options =
            Arc::new(object.object("options").map(|options| read_options(&options)).transpose()?.unwrap_or_default());
        agent.policy = object.object("policy").map(|policy| read_policy(&policy)).transpose()?.unwrap_or_default();
        agent.hooks = object.object("hooks").map(|hooks| read_hooks(&hooks)).unwrap_or_default();
        agent.discovery = object.object("discovery").map(|discovery| read_discovery(&discovery)).transpose()?;
        Ok(Self { agent, models })
    }
}

/// The options of an agent, as `src/js/options.ts` has them.
const AGENT: &str = "model fallbackModels instructions tools mcpServers skills discovery modelOptions compaction retry approve \
    onEvent maxSteps maxTokens maxCost timeoutMs firstByteTimeoutMs idleTimeoutMs hookTimeoutMs approvalTimeoutMs \
    maxConcurrentTools maxIdenticalSteps maxResultCharacters resultReader terminate prepareStep prepareContext \
    formatRequest beforeToolCall afterToolCall stopWhen";
const MODEL_OPTIONS: &str = "temperature topP maxTokens stop seed toolChoice parallelToolCalls reasoning user metadata \
    serviceTier store cache cacheKey cachedContent providerTools extraBody";

/// An error for a name that is none of an option: what was meant by it would be missing without a word.
pub(crate) fn only<'name>(mut given: impl Iterator<Item = &'name str>, of: &str, names: &str) -> Result<(), Error> {
    match given.find(|name| !names.split(' ').any(|known| known == *name)) {
        Some(name) => Err(invalid(format!("{of}: there is no option \"{name}\""))),
        None => Ok(()),
    }
}

fn read_output(object: &Object<'_>) -> Result<OutputDefinition, Error> {
    let schema = object.raw("schema").ok_or_else(|| invalid("the output has no schema"))?;
    let mut schema = OutputSchema::new(object.string("name").unwrap_or_default(), schema);
    schema.description = object.string("description");
    let has_validator = object.boolean("hasValidator").unwrap_or(false);
    let mut output = OutputDefinition::new(schema);
    output.has_validator = has_validator;
    Ok(output)
}

/// Reads a model, which JavaScript knows by its number.
pub(crate) fn read_model(object: &Object<'_>) -> Result<KeyedModel, Error> {
    let number = object.read("number").unwrap_or_default();
    let text = |name: &str| object.string(name).unwrap_or_default();
    let wire = text("wire");
    let access = if wire == "function" {
        Access::Function(function_name(number).into())
    } else {
        Access::Http {
            wire: wire_named(&wire)?,
            base_url: object.string("baseUrl").map(Into::into),
            headers: read_headers(object).into(),
        }
    };
    let prices = object.object("prices").and_then(|prices| Prices::read(&prices));
    let accepts: Option<Vec<String>> =
        member(object, "accepts", "a list of \"image\", \"audio\" and \"file\"", Object::read)?;
    let files = accepts.map_or(FileKinds::ALL, |kinds| {
        let has = |kind: &str| kinds.iter().any(|given| given == kind);
        FileKinds { images: has("image"), audio: has("audio"), documents: has("file") }
    });
    Ok(KeyedModel {
        number,
        model: Model { provider: text("provider").into(), id: text("id").into(), access, files, prices },
        key: object.string("key"),
        asks_for_credentials: object.boolean("asksForCredentials").unwrap_or(false),
    })
}

fn wire_named(name: &str) -> Result<&'static dyn Wire, Error> {
    crablet::model::wire_named(name)
        .ok_or_else(|| invalid(format!("this build of crablet has no wire protocol \"{name}\"")))
}

/// Reads `headers: [[name, value]…]`.
pub(crate) fn read_headers(object: &Object<'_>) -> Vec<(String, String)> {
    object.read("headers").unwrap_or_default()
}

fn read_tool(object: &Object<'_>) -> Result<Arc<ToolDefinition>, Error> {
    let name = object.string("name").ok_or_else(|| invalid("a tool has no name"))?;
    let schema =
        object.raw("inputSchema").ok_or_else(|| invalid(format!("the tool \"{name}\" has no input schema")))?;
    let flag = |name| Ok::<_, Error>(member(object, name, "true or false", Object::boolean)?.unwrap_or(false));
    let mut tool = ToolDefinition::new(name, object.string("description").unwrap_or_default(), schema);
    tool.has_validator = flag("hasValidator")?;
    tool.needs_approval = flag("needsApproval")?;
    tool.sequential = flag("sequential")?;
    tool.repeatable = flag("repeatable")?;
    tool.client_side = flag("clientSide")?;
    tool.max_concurrent = small_count(object, "maxConcurrent")?;
    tool.timeout = count(object, "timeoutMs")?;
    Ok(Arc::new(tool))
}

/// Reads `modelOptions`.
fn read_options(object: &Object<'_>) -> Result<RequestOptions, Error> {
    only(object.iter().map(|(name, _)| name), "modelOptions", MODEL_OPTIONS)?;
    let mut options = RequestOptions::default();
    options.tool_choice = read_tool_choice(object)?;
    options.parallel_tool_calls = member(object, "parallelToolCalls", "true or false", Object::boolean)?;
    options.max_tokens = count(object, "maxTokens")?;
    options.temperature = member(object, "temperature", "a number", Object::read)?;
    options.top_p = member(object, "topP", "a number", Object::read)?;
    options.stop = member(object, "stop", "a list of texts", Object::read)?.unwrap_or_default();
    options.seed = count(object, "seed")?;
    options.reasoning = match object.string("reasoning").as_deref() {
        Some("off") => Some(Reasoning::Off),
        Some("minimal") => Some(Reasoning::Effort(Effort::Minimal)),
        Some("low") => Some(Reasoning::Effort(Effort::Low)),
        Some("medium") => Some(Reasoning::Effort(Effort::Medium)),
        Some("high") => Some(Reasoning::Effort(Effort::High)),
        Some("xhigh") => Some(Reasoning::Effort(Effort::ExtraHigh)),
        Some("max") => Some(Reasoning::Effort(Effort::Max)),
        _ => member(object, "reasoning", "a word for effort or a number of tokens", Object::integer)?
            .map(Reasoning::Budget),
    };
    options.user = text(object, "user")?;
    options.metadata = match object.object("metadata") {
        Some(metadata) => {
            let label = |(name, _): (&str, _)| Ok((name.to_owned(), text(&metadata, name)?.unwrap_or_default()));
            metadata.iter().map(label).collect::<Result<_, Error>>()?
        }
        None => {
            no_member(object, "metadata", "an object of texts")?;
            options.metadata
        }
    };
    options.service_tier = text(object, "serviceTier")?;
    options.store = member(object, "store", "true or false", Object::boolean)?;
    options.cache = match object.string("cache").as_deref() {
        Some("short") => Some(CacheRetention::Short),
        Some("long") => Some(CacheRetention::Long),
        _ => {
            no_member(object, "cache", "\"short\" or \"long\"")?;
            None
        }
    };
    options.cache_key = text(object, "cacheKey")?;
    options.cached_content = text(object, "cachedContent")?;
    let tools: Option<Vec<RawJson>> = member(object, "providerTools", "a list of objects", Object::read)?;
    options.provider_tools = tools.unwrap_or_default().into();
    options.extra_body = object.raw("extraBody");
    Ok(options)
}

fn text(object: &Object<'_>, name: &str) -> Result<Option<String>, Error> {
    member(object, name, "a text", Object::string)
}

fn count(object: &Object<'_>, name: &str) -> Result<Option<u64>, Error> {
    member(object, name, COUNT, Object::integer)
}

fn small_count(object: &Object<'_>, name: &str) -> Result<Option<u32>, Error> {
    Ok(count(object, name)?.map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
}

const COUNT: &str = "a whole number from 0 up";

/// A member as it is wanted. One that is there and something else is an error, where reading it tolerantly would lose it.
pub(crate) fn member<'text, T>(
    object: &Object<'text>,
    name: &str,
    wanted: &str,
    read: impl Fn(&Object<'text>, &str) -> Option<T>,
) -> Result<Option<T>, Error> {
    let value = read(object, name);
    if value.is_none() {
        no_member(object, name, wanted)?;
    }
    Ok(value)
}

/// An error when the member is there all the same.
fn no_member(object: &Object<'_>, name: &str, wanted: &str) -> Result<(), Error> {
    match object.get(name).map(|value| value.get()) {
        None | Some("null") => Ok(()),
        Some(given) => {
            let given: String = given.chars().take(40).collect();
            Err(invalid(format!("{name} must be {wanted}, and is {given}")))
        }
    }
}

/// Reads `toolChoice`.
pub(crate) fn read_tool_choice(object: &Object<'_>) -> Result<Option<ToolChoice>, Error> {
    Ok(match object.string("toolChoice").as_deref() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Required),
        _ => match object.object("toolChoice") {
            Some(choice) => text(&choice, "tool")?.map(ToolChoice::Tool),
            None => {
                no_member(object, "toolChoice", "\"auto\", \"none\", \"required\" or { tool }")?;
                None
            }
        },
    })
}

/// Reads the limits of a run. One that is not understood is an error: without it a run would have no such limit.
fn read_policy(object: &Object<'_>) -> Result<Policy, Error> {
    let default = Policy::default();
    let small = |name, default| Ok::<_, Error>(small_count(object, name)?.unwrap_or(default));
    let wait = |name, default| Ok::<_, Error>(count(object, name)?.unwrap_or(default));
    Ok(Policy {
        max_steps: small("maxSteps", default.max_steps)?,
        max_tokens: count(object, "maxTokens")?,
        max_cost: member(object, "maxCost", "a number of dollars", Dollars::read)?,
        compaction: match (object.boolean("compaction"), object.object("compaction")) {
            (Some(false), _) => None,
            (_, Some(compaction)) => Some(read_compaction(&compaction)?),
            _ => default.compaction,
        },
        max_attempts: small("maxAttempts", default.max_attempts)?,
        retry_base: wait("retryBaseMs", default.retry_base)?,
        timeout: count(object, "timeoutMs")?,
        approval_timeout: count(object, "approvalTimeoutMs")?,
        max_identical_steps: small("maxIdenticalSteps", default.max_identical_steps)?,
        max_concurrent_tools: small("maxConcurrentTools", default.max_concurrent_tools)?,
        retry_cap: wait("retryCapMs", default.retry_cap)?,
        terminate: match object.string("terminate").as_deref() {
            Some("any") => Terminate::Any,
            Some("all") => Terminate::All,
            _ => {
                no_member(object, "terminate", "\"all\" or \"any\"")?;
                default.terminate
            }
        },
        max_result_characters: match object.boolean("maxResultCharacters") {
            Some(false) => None,
            _ => member(object, "maxResultCharacters", COUNT, Object::read)?.or(default.max_result_characters),
        },
        result_reader: object.boolean("resultReader").unwrap_or(default.result_reader),
        hook_timeout: count(object, "hookTimeoutMs")?,
        first_byte_timeout: wait("firstByteTimeoutMs", default.first_byte_timeout)?,
        idle_timeout: wait("idleTimeoutMs", default.idle_timeout)?,
    })
}

fn read_discovery(object: &Object<'_>) -> Result<Discovery, Error> {
    let mut discovery = Discovery::default();
    discovery.tool_name = text(object, "toolName")?.unwrap_or(discovery.tool_name);
    discovery.page_size = member(object, "pageSize", COUNT, Object::read)?.unwrap_or(discovery.page_size);
    Ok(discovery)
}

fn read_compaction(object: &Object<'_>) -> Result<Compaction, Error> {
    Ok(Compaction {
        threshold: count(object, "thresholdTokens")?,
        keep: count(object, "keepTokens")?.unwrap_or_else(|| Compaction::default().keep),
        summarizer: match object.string("by").as_deref() {
            Some("model") => Summarizer::MODEL,
            _ => Summarizer::LINES,
        },
    })
}

fn read_hooks(object: &Object<'_>) -> Hooks {
    let flag = |name| object.boolean(name).unwrap_or(false);
    Hooks {
        prepare_context: flag("prepareContext"),
        format_request: flag("formatRequest"),
        before_tool_call: flag("beforeToolCall"),
        after_tool_call: flag("afterToolCall"),
        prepare_step: flag("prepareStep"),
        stop_when: flag("stopWhen"),
    }
}

pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
