//! An agent, as JavaScript holds it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crablet::agent::Hooks;
use crablet::host::mcp::live_tools;
use crablet::host::{Runner, Tool};
use crablet::model::Access;
use crablet::web::WebHost;
use js_sys::Function;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::config::AgentConfig;
use crate::functions::{Functions, JsHooks, JsModel, JsTool};
use crate::journal::JsJournal;
use crate::mcp::{CancelHandle, McpHandle, settle};
use crate::models::JsCredentials;
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
        let mut runner = Runner::new(host, agent);
        for (number, keyed) in models.iter().enumerate() {
            if let Access::Function(name) = &keyed.model.access {
                runner = runner.function_model(name.to_string(), JsModel { number, functions: functions.clone() });
            }
        }
        runner = runner.credentials(JsCredentials { functions: functions.clone(), models });
        if has_hooks {
            runner = runner.hooks(hooks, JsHooks(functions.clone()));
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
