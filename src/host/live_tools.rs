//! Tools that come and go while conversations are at work, such as those of an MCP server.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Tool;
use super::driver::Driver;
use crate::agent::{Agent, Input, ToolDefinition};

/// The tools of one server as they are now. Cloning gives another handle to the same ones.
///
/// Given to [`Runner::live_tools`](super::Runner::live_tools), a replacement reaches every conversation of that runner at its
/// next step.
#[derive(Clone)]
pub struct LiveTools(Arc<Inner>);

struct Inner {
    server: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tools: Vec<(Arc<ToolDefinition>, Arc<dyn Tool>)>,
    followers: Vec<Follower>,
}

/// A conversation, and where all its tools come from.
#[derive(Clone)]
struct Follower {
    driver: Weak<Driver>,
    sources: Weak<Sources>,
    own: Arc<[Arc<ToolDefinition>]>,
}

impl LiveTools {
    /// The tools of the server of this name. Their definitions name it as their server.
    pub fn new(server: impl Into<String>, tools: impl IntoIterator<Item = (ToolDefinition, Arc<dyn Tool>)>) -> Self {
        let live = Self(Arc::new(Inner { server: server.into(), state: Mutex::default() }));
        live.replace(tools);
        live
    }

    /// Takes other tools.
    pub fn replace(&self, tools: impl IntoIterator<Item = (ToolDefinition, Arc<dyn Tool>)>) {
        let tools = tools.into_iter().map(|(definition, tool)| (Arc::new(definition), tool)).collect();
        let followers = {
            let mut state = self.state();
            state.tools = tools;
            state.followers.retain(|follower| follower.driver.strong_count() > 0);
            state.followers.clone()
        };
        // No lock is held while the conversations are told.
        for follower in followers {
            if let (Some(driver), Some(sources)) = (follower.driver.upgrade(), follower.sources.upgrade()) {
                let tools = follower.own.iter().cloned().chain(sources.definitions()).collect();
                // A session takes other tools at any time.
                let _ = driver.input(Input::ToolsChanged(tools));
            }
        }
    }

    /// A handle that does not keep them.
    #[cfg(feature = "mcp")]
    pub(super) fn downgrade(&self) -> WeakLiveTools {
        WeakLiveTools(Arc::downgrade(&self.0))
    }

    pub(super) fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.state().tools.iter().map(|(definition, _)| definition.clone()).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let state = self.state();
        state.tools.iter().find(|(definition, _)| definition.name == name).map(|(_, tool)| tool.clone())
    }

    /// Nothing can panic while the lock is held that would leave half a value behind.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LiveTools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LiveTools").field("server", &self.0.server).finish_non_exhaustive()
    }
}

#[cfg(feature = "mcp")]
pub(super) struct WeakLiveTools(Weak<Inner>);

#[cfg(feature = "mcp")]
impl WeakLiveTools {
    pub(super) fn upgrade(&self) -> Option<LiveTools> {
        self.0.upgrade().map(LiveTools)
    }
}

/// All live tools of a runner.
#[derive(Clone, Default)]
pub(super) struct Sources(Vec<LiveTools>);

impl Sources {
    /// Adds the tools of a server, in the place of earlier ones of the same.
    pub(super) fn add(&mut self, tools: LiveTools) {
        self.0.retain(|other| other.0.server != tools.0.server);
        self.0.push(tools);
    }

    /// The function behind a tool.
    pub(super) fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.0.iter().find_map(|tools| tools.find(name))
    }

    pub(super) fn definitions(&self) -> impl Iterator<Item = Arc<ToolDefinition>> {
        self.0.iter().flat_map(LiveTools::definitions)
    }

    /// Has a conversation follow the tools from now on.
    pub(super) fn follow(self: &Arc<Self>, agent: &Agent, driver: &Arc<Driver>) {
        if self.0.is_empty() {
            return;
        }
        let is_live = |tool: &Arc<ToolDefinition>| {
            self.0.iter().any(|tools| tool.server.as_deref() == Some(tools.0.server.as_str()))
        };
        let own: Arc<[_]> = agent.tools.iter().filter(|tool| !is_live(tool)).cloned().collect();
        let now = own.iter().cloned().chain(self.definitions()).collect();
        let follower = Follower { driver: Arc::downgrade(driver), sources: Arc::downgrade(self), own };
        for tools in &self.0 {
            tools.state().followers.push(follower.clone());
        }
        // What has changed since the agent was defined.
        let _ = driver.input(Input::ToolsChanged(now));
    }
}
