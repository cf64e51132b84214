//! An agent, as JavaScript holds it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crablet::agent::{Hooks, ToolDefinition};
use crablet::host::mcp::live_tools;
use crablet::host::{Runner, Tool};
use crablet::web::WebHost;
use js_sys::Function;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::config::AgentConfig;
use crate::functions::{Functions, JsModel, JsTool};
use crate::hooks::JsHooks;
use crate::journal::JsJournal;
use crate::mcp::{CancelHandle, McpHandle, settle};
use crate::models::{JsCredentials, Models};
use crate::run::ConversationHandle;
use crate::thrown::thrown;

/// An agent bound to the web platform and to the caller's functions.
#[wasm_bindgen]
#[derive(Debug)]
pub struct AgentHandle(Rc<RefCell<Runner<WebHost>>>);

#[wasm_bindgen]
impl AgentHandle {
    /// The agent of this definition, in the JSON that `src/js/agent.ts` writes.
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str, functions: Functions) -> Result<Self, JsValue> {
        let AgentConfig { mut agent, models } = AgentConfig::parse(config).map_err(thrown)?;
        let tools = std::mem::take(&mut agent.tools);
        let hooks = agent.hooks;
        let has_hooks = hooks != Hooks::default() || agent.output.as_ref().is_some_and(|output| output.has_validator);
        let host = functions.fetch().map_or_else(WebHost::new, WebHost::with_fetch);
        let models = Models::new(models);
        let mut runner = Runner::new(host, agent)
            .any_function_model(JsModel(functions.clone()))
            .credentials(JsCredentials { functions: functions.clone(), models: models.clone() });
        if has_hooks {
            runner = runner.hooks(hooks, JsHooks::new(functions.clone(), models));
        }
        let runner = runner.tools(tools.into_iter().map(|definition| {
            let tool = JsTool { name: definition.name.clone(), functions: functions.clone() };
            (Arc::unwrap_or_clone(definition), Arc::new(tool) as Arc<dyn Tool>)
        }));
        Ok(Self(Rc::new(RefCell::new(runner))))
    }

    /// Adds the tools of a connected server, and follows their changes. Resolves when they are there.
    #[wasm_bindgen(js_name = addServer)]
    pub fn add_server(&self, server: &McpHandle, cancel: &CancelHandle, resolve: Function, reject: Function) {
        let (runner, connection) = (Rc::clone(&self.0), server.connection.clone());
        settle(&cancel.0, resolve, reject, async move {
            let tools = live_tools(&WebHost::new(), &connection).await?;
            let with_tools = runner.borrow().clone().live_tools(tools);
            *runner.borrow_mut() = with_tools;
            Ok(String::new())
        });
    }

    /// Adds another agent as a tool. A tool of the definition with this name says how it is called; it is replaced.
    #[wasm_bindgen(js_name = addAgent)]
    pub fn add_agent(&self, name: &str, agent: &Self) {
        let agent = agent.0.borrow().clone();
        let mut runner = self.0.borrow().clone();
        let written = runner.agent().tool(name).cloned();
        runner = runner.sub_agent(name, "", agent);
        let tools = &mut runner.agent_mut().tools;
        if let (Some(written), Some(added)) = (written, tools.iter_mut().find(|tool| tool.name == name)) {
            let agent = added.agent.clone();
            *added = Arc::new(ToolDefinition { agent, ..Arc::unwrap_or_clone(written) });
        }
        *self.0.borrow_mut() = runner;
    }

    /// A new conversation, or the one of a saved text. `journal(lines)` is called with what is to be added to that text and
    /// gives a promise; without it the caller asks for `changes` itself.
    pub fn conversation(
        &self,
        stored: Option<String>,
        journal: Option<Function>,
    ) -> Result<ConversationHandle, JsValue> {
        let mut runner = self.0.borrow().clone();
        if let Some(journal) = journal {
            runner = runner.journal(JsJournal(journal));
        }
        let conversation = match stored {
            Some(stored) => runner.restore_stored(&stored),
            None => runner.conversation(),
        };
        conversation.map(ConversationHandle).map_err(thrown)
    }
}
