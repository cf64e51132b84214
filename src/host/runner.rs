//! An agent bound to a platform: its definition and the functions behind it.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;

use super::hook_asking::{AskHooks, Asked};
use super::journal::{JournalRecorder, Recorder, StoredJournal};
use super::live_tools::{LiveTools, Sources};
use super::model_function::{CallFunction, Called};
use super::{
    Answer, Approver, Conversation, CredentialSource, FunctionModel, FunctionTool, Hooks, Host, IntoToolResult,
    Journal, MaybeSend, MaybeSync, Prompt, Store, Tool, ToolContext,
};
use crate::agent::{
    self, Agent, Event, EventKind, OutputDefinition, RestoreError, RunId, Session, Skill, Span, ToolDefinition, Trace,
    TraceOptions,
};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::model::{MessageId, OutputSchema};
use crate::ordered_map::OrderedMap;

/// An agent that can work: a definition, the functions behind it, and the platform they run on.
///
/// Cheap to clone; a clone can be changed without changing the original. Holds no conversation of its own:
/// [`conversation`](Self::conversation) starts one, and any number of them can be at work at once.
pub struct Runner<H> {
    host: H,
    agent: Arc<Agent>,
    parts: Arc<Parts<H>>,
}

impl<H: Host> Runner<H> {
    /// The agent of this definition, without functions yet.
    pub fn new(host: H, agent: Agent) -> Self {
        Self { host, agent: Arc::new(agent), parts: Arc::default() }
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<Arc<str>>) -> Self {
        Arc::make_mut(&mut self.agent).instructions = Some(instructions.into());
        self
    }

    /// Sets the object that the last answer of every run shall be.
    #[must_use]
    pub fn output(mut self, schema: OutputSchema) -> Self {
        Arc::make_mut(&mut self.agent).output = Some(OutputDefinition::new(schema));
        self
    }

    /// Sets where the keys of model calls come from. Without it, requests carry none.
    #[must_use]
    pub fn credentials(mut self, source: impl CredentialSource) -> Self {
        Arc::make_mut(&mut self.parts).credentials = Some(Arc::new(source));
        self
    }

    /// Adds a tool that is a function of its input, read into any type that serde reads. What it returns is told to the
    /// model: text, JSON or a [`ToolOutput`](crate::agent::ToolOutput), or a `Result` of one of them, whose error becomes
    /// a failed result.
    #[must_use]
    pub fn tool<F, I, Running>(self, definition: ToolDefinition, function: F) -> Self
    where
        F: Fn(I, ToolContext) -> Running + MaybeSend + MaybeSync + 'static,
        I: DeserializeOwned + 'static,
        Running: Future<Output: IntoToolResult> + MaybeSend + 'static,
    {
        self.tools([(definition, Arc::new(FunctionTool::new(function)) as Arc<dyn Tool>)])
    }

    /// Adds tools that are objects, such as those of MCP servers. A tool replaces an earlier one of the same name.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = (ToolDefinition, Arc<dyn Tool>)>) -> Self {
        let definitions = &mut Arc::make_mut(&mut self.agent).tools;
        let functions = &mut Arc::make_mut(&mut self.parts).tools;
        for (definition, tool) in tools {
            definitions.retain(|earlier| earlier.name != definition.name);
            functions.insert(definition.name.clone(), tool);
            definitions.push(Arc::new(definition));
        }
        self
    }

    /// Adds skills: the model is told of them in the instructions, so set those first, and reads one with a tool named
    /// `readSkill`.
    #[must_use]
    pub fn skills(mut self, skills: impl IntoIterator<Item = Skill>) -> Self {
        let skills: Arc<[Skill]> = skills.into_iter().collect();
        Skill::announce(&skills, Arc::make_mut(&mut self.agent));
        self.tool(Skill::tool(), move |input: RawJson, _| std::future::ready(Skill::read(&skills, &input)))
    }

    /// Adds a tool that is an agent: each call is worked on by a conversation of that agent, with its model, its tools, its
    /// keys and its hooks, which is saved and restored with the conversation around it. Of tools that come and go it has those
    /// that are there now.
    ///
    /// What it shows comes as `sub-agent-event`; its tokens count in the budget of the run; its approvals are asked of its own
    /// approver, else of this agent's, else they suspend the run.
    #[must_use]
    pub fn sub_agent(mut self, name: impl Into<String>, description: impl Into<String>, agent: Self) -> Self {
        let mut defined = Agent::clone(&agent.agent);
        defined.tools.extend(agent.parts.sources.definitions());
        let definition = ToolDefinition::sub_agent(name, description, Arc::new(defined));
        let definitions = &mut Arc::make_mut(&mut self.agent).tools;
        definitions.retain(|earlier| earlier.name != definition.name);
        let own = AgentParts { host: agent.host, parts: agent.parts };
        Arc::make_mut(&mut self.parts).agents.insert(definition.name.clone(), own);
        definitions.push(Arc::new(definition));
        self
    }

    /// Adds the function behind a model whose access is [`Access::Function`](crate::model::Access::Function) of this name.
    #[must_use]
    pub fn function_model(mut self, name: impl Into<String>, model: impl FunctionModel) -> Self {
        Arc::make_mut(&mut self.parts).models.insert(name.into(), Arc::new(Called(Arc::new(model))));
        self
    }

    /// Adds the function behind all models with [`Access::Function`](crate::model::Access::Function) whose name has none of
    /// its own: for callers that learn of their models as they go.
    #[must_use]
    pub fn any_function_model(mut self, model: impl FunctionModel) -> Self {
        Arc::make_mut(&mut self.parts).any_model = Some(Arc::new(Called(Arc::new(model))));
        self
    }

    /// Sets the function that is shown each event of each run, before its reader is. It only looks: nobody waits for it, and
    /// a panic of it is caught and forgotten.
    #[must_use]
    pub fn on_event(mut self, observer: impl Fn(&Event) + MaybeSend + MaybeSync + 'static) -> Self {
        Arc::make_mut(&mut self.parts).observer = Some(Arc::new(observer));
        self
    }

    /// Gives what the runs do as spans, each once it is over. Replaces an observer of [`on_event`](Self::on_event).
    #[must_use]
    pub fn trace(self, options: TraceOptions, sink: impl Fn(Span) + MaybeSend + MaybeSync + 'static) -> Self {
        let (host, traces) = (self.host.clone(), Mutex::new(HashMap::<RunId, Trace>::new()));
        self.on_event(move |event| {
            let now = host.now();
            let mut open = traces.lock().unwrap_or_else(PoisonError::into_inner);
            if open.len() > MAX_TRACED_RUNS {
                open.clear();
            }
            let trace = open.entry(event.run_id.clone()).or_insert_with(|| Trace::new(options.clone()));
            let spans = trace.event(now, event);
            if matches!(event.kind, EventKind::RunEnd(_)) {
                open.remove(&event.run_id);
            }
            // The sink is the caller's, so it is called when the lock is released.
            drop(open);
            spans.into_iter().for_each(&sink);
        })
    }

    /// Sets the function that answers hooks, and which hooks it is asked for.
    #[must_use]
    pub fn hooks(mut self, registered: agent::Hooks, hooks: impl Hooks) -> Self {
        Arc::make_mut(&mut self.agent).hooks = registered;
        let parts = Arc::make_mut(&mut self.parts);
        parts.hooks = Some(Arc::new(Asked(Arc::new(hooks))));
        parts.formats_requests = registered.format_request;
        self
    }

    /// Sets the function that decides about tools that need an approval.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver) -> Self {
        Arc::make_mut(&mut self.parts).approver = Some(Arc::new(approver));
        self
    }

    /// Sets where the checkpoints of one conversation go: give each conversation a clone of the runner with its own. For
    /// conversations that are kept in a [`Store`], [`open`](Self::open) does it.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal) -> Self {
        Arc::make_mut(&mut self.agent).has_store = true;
        Arc::make_mut(&mut self.parts).recorder = Some(Arc::new(JournalRecorder(Arc::new(journal))));
        self
    }

    /// The definition, to read or change.
    pub fn agent_mut(&mut self) -> &mut Agent {
        Arc::make_mut(&mut self.agent)
    }

    /// The definition.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// Adds tools that may be replaced while conversations are at work. See [`LiveTools`].
    #[must_use]
    pub fn live_tools(mut self, tools: LiveTools) -> Self {
        let definitions = &mut Arc::make_mut(&mut self.agent).tools;
        for definition in tools.definitions() {
            definitions.retain(|earlier| earlier.name != definition.name);
            definitions.push(definition);
        }
        Arc::make_mut(&mut Arc::make_mut(&mut self.parts).sources).add(tools);
        self
    }

    /// A conversation of this session, which hears of changes of the tools.
    fn begin(&self, session: Session) -> Conversation<H> {
        let conversation = Conversation::new(self.host.clone(), self.parts.clone(), session);
        self.parts.sources.follow(&self.agent, conversation.driver());
        conversation
    }

    /// A run whose end was saved is over, whether or not somebody was shown the end before the process died.
    fn take_up(&self, restored: Result<Session, RestoreError>) -> Result<Conversation<H>, Error> {
        let mut session = restored.map_err(unreadable)?;
        session.close_ended();
        Ok(self.begin(session))
    }

    /// Starts an empty conversation.
    ///
    /// # Errors
    ///
    /// `internal` when the platform has no source of randomness.
    pub fn conversation(&self) -> Result<Conversation<H>, Error> {
        let seed = self.seed()?;
        let session = Session::new(self.agent.clone(), seed);
        Ok(self.begin(session))
    }

    /// Takes up the conversation of a snapshot. What was open when it was saved goes on with
    /// [`Conversation::resume`]; a run whose end was saved is over, and its end is not shown again.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the text is not a snapshot, is damaged, or was written by a newer version.
    pub fn restore(&self, snapshot: &str) -> Result<Conversation<H>, Error> {
        self.take_up(Session::restore(snapshot, self.agent.clone(), self.host.now()))
    }

    /// As [`restore`](Self::restore), for a text that is what the journal holds: checkpoints add to it. After `restore` the
    /// first one writes everything.
    ///
    /// # Errors
    ///
    /// As for `restore`.
    pub fn restore_stored(&self, stored: &str) -> Result<Conversation<H>, Error> {
        self.take_up(Session::restore_stored(stored, self.agent.clone(), self.host.now()))
    }

    /// Takes up the conversation that a store keeps under an id, or begins it there. From now on it is saved before anything
    /// happens that a restore must know of. What was open when it was saved goes on with [`Conversation::resume`].
    ///
    /// # Errors
    ///
    /// `storage` when the store cannot be read; `invalid-input` when what it keeps is no conversation or was written by a
    /// newer version.
    pub async fn open(&self, store: Arc<dyn Store>, id: &str) -> Result<Conversation<H>, Error> {
        let stored = store.read(id).await?;
        let version = Arc::new(AtomicU64::new(stored.as_ref().map_or(0, |stored| stored.version)));
        let runner = self.clone().journal(StoredJournal { store, id: id.to_owned(), version });
        match stored {
            Some(stored) => runner.restore_stored(&stored.text),
            None => runner.conversation(),
        }
    }

    /// Starts a conversation that begins with the history of another one up to a message, that one included, and goes its
    /// own way: to try another prompt, or to answer one again. It is a conversation of this runner, so give it a clone with
    /// a journal of its own where the first one has one.
    ///
    /// # Errors
    ///
    /// `invalid-input` when there is no such message, or when it is an answer with tool calls: no conversation goes on
    /// between a call and its result. `internal` when the platform has no source of randomness.
    pub fn fork(&self, conversation: &Conversation<H>, last: &MessageId) -> Result<Conversation<H>, Error> {
        let fork = conversation.fork(last, self.seed()?)?;
        self.restore(&fork)
    }

    /// Answers one prompt in a conversation of its own.
    ///
    /// # Errors
    ///
    /// Whatever ended the run, or kept it from starting.
    pub async fn run(&self, prompt: impl Into<Prompt> + MaybeSend) -> Result<Answer, Error> {
        self.conversation()?.send(prompt)?.answer().await
    }

    /// The lower half of random bytes.
    fn seed(&self) -> Result<u64, Error> {
        Ok(u128::from_le_bytes(self.host.random()?) as u64)
    }
}

impl<H: Clone> Clone for Runner<H> {
    fn clone(&self) -> Self {
        Self { host: self.host.clone(), agent: self.agent.clone(), parts: self.parts.clone() }
    }
}

impl<H> fmt::Debug for Runner<H> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Runner").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// The most runs that are followed at once: beyond that, runs that were suspended and forgotten fill the map.
const MAX_TRACED_RUNS: usize = 1024;

/// Is shown the events of runs.
pub(super) trait Observer: MaybeSend + MaybeSync + 'static {
    fn see(&self, event: &Event);
}

impl<F: Fn(&Event) + MaybeSend + MaybeSync + 'static> Observer for F {
    fn see(&self, event: &Event) {
        self(event);
    }
}

/// The platform and the functions of a sub-agent.
#[derive(Clone)]
pub(super) struct AgentParts<H> {
    pub(super) host: H,
    pub(super) parts: Arc<Parts<H>>,
}

fn unreadable(error: RestoreError) -> Error {
    Error::new(ErrorKind::InvalidInput, error.to_string())
}

/// The functions of an agent.
#[derive(Clone)]
pub(super) struct Parts<H> {
    pub(super) agents: OrderedMap<String, AgentParts<H>>,
    pub(super) credentials: Option<Arc<dyn CredentialSource>>,
    pub(super) tools: OrderedMap<String, Arc<dyn Tool>>,
    pub(super) sources: Arc<Sources>,
    pub(super) models: OrderedMap<String, Arc<dyn CallFunction>>,
    pub(super) any_model: Option<Arc<dyn CallFunction>>,
    pub(super) hooks: Option<Arc<dyn AskHooks<H>>>,
    /// Whether the hooks are asked about the body of each model call.
    pub(super) formats_requests: bool,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) recorder: Option<Arc<dyn Recorder>>,
}

impl<H> Parts<H> {
    /// The function behind a tool.
    pub(super) fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).cloned().or_else(|| self.sources.find(name))
    }
}

impl<H> Default for Parts<H> {
    fn default() -> Self {
        Self {
            agents: OrderedMap::new(),
            credentials: None,
            tools: OrderedMap::new(),
            sources: Arc::default(),
            models: OrderedMap::new(),
            any_model: None,
            hooks: None,
            formats_requests: false,
            observer: None,
            approver: None,
            recorder: None,
        }
    }
}
