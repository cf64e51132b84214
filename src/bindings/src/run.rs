//! A conversation and a run, as JavaScript holds them.

use std::cell::RefCell;
use std::rc::Rc;

use crablet::agent::{Approval, InputHash};
use crablet::host::{Conversation, Prompt, Run, RunControl};
use crablet::json::Object;
use crablet::jsonrpc::Params;
use crablet::model::{CallId, MessageId};
use crablet::web::WebHost;
use crablet::{Error, ErrorKind};
use js_sys::{Function, Uint32Array};
use serde_json::value::RawValue;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::batch::Batch;
use crate::config::invalid;
use crate::functions::spawn;
use crate::mcp::json;
use crate::thrown::thrown;
use crate::tool_output::{read_content, read_tool_output};

/// A conversation.
#[wasm_bindgen]
#[derive(Debug)]
pub struct ConversationHandle(pub(crate) Conversation<WebHost>);

#[wasm_bindgen]
impl ConversationHandle {
    /// Starts a run with this prompt, the JSON text of a list of parts.
    pub fn send(&self, content: &str) -> Result<RunHandle, JsValue> {
        let prompt = read_prompt(content).map_err(thrown)?;
        self.0.send(prompt).map(RunHandle::new).map_err(thrown)
    }

    /// Goes on with the run that was active when the conversation was saved.
    pub fn resume(&self) -> Option<RunHandle> {
        self.0.resume().map(RunHandle::new)
    }

    /// The messages that wait, as the JSON text of `{steers, followUps}`, each a list of `{id, content}`.
    pub fn queued(&self) -> String {
        json(&Params::new().with("steers", &self.0.steers()).with("followUps", &self.0.follow_ups()))
    }

    /// Puts other content in the place of a message that waits.
    #[wasm_bindgen(js_name = editQueued)]
    pub fn edit_queued(&self, id: &str, content: &str) -> Result<(), JsValue> {
        read_prompt(content).and_then(|prompt| self.0.edit_queued(&MessageId::new(id), prompt)).map_err(thrown)
    }

    /// Takes a message out of its queue.
    pub fn unqueue(&self, id: &str) -> Result<(), JsValue> {
        self.0.unqueue(&MessageId::new(id)).map_err(thrown)
    }

    /// The conversation as JSON Lines.
    pub fn snapshot(&self) -> String {
        self.0.snapshot()
    }

    /// The lines that are new since the last time. Those that begin with a header are the whole.
    pub fn changes(&self) -> String {
        self.0.changes().into_text()
    }
}

/// A run. Freeing it aborts it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RunHandle {
    /// Empty while a batch is waited for, so that no borrow is held meanwhile.
    run: Rc<RefCell<Option<Run<WebHost>>>>,
    control: RunControl,
}

impl RunHandle {
    fn new(run: Run<WebHost>) -> Self {
        Self { control: run.control(), run: Rc::new(RefCell::new(Some(run))) }
    }
}

#[wasm_bindgen]
impl RunHandle {
    /// Delivers the next batch by one call, `deliver(text, table, others)`; `deliver()` at the end.
    ///
    /// Not a promise: Node 20 crashes when it deoptimises a call of an export that returns a JavaScript value.
    pub fn next(&self, deliver: Function) {
        let slot = Rc::clone(&self.run);
        spawn(async move {
            let taken = slot.borrow_mut().take();
            let events = match taken {
                Some(mut run) => {
                    let events = run.next().await;
                    *slot.borrow_mut() = Some(run);
                    events
                }
                None => None,
            };
            // The facade's own function, which settles a promise and does not throw.
            let _ = match events.map(|events| Batch::encode(&events)) {
                Some(Batch { text, table, others }) => deliver.call3(
                    &JsValue::UNDEFINED,
                    &JsValue::from_str(&text),
                    &Uint32Array::from(table.as_slice()),
                    &others.as_deref().map_or(JsValue::UNDEFINED, JsValue::from_str),
                ),
                None => deliver.call0(&JsValue::UNDEFINED),
            };
        });
    }

    /// Stops the run.
    pub fn abort(&self, reason: Option<String>) {
        self.control.abort(reason.as_deref());
    }

    /// Adds a user message between steps; gives its id.
    pub fn steer(&self, content: &str) -> Result<String, JsValue> {
        let steered = read_prompt(content).and_then(|prompt| self.control.steer(prompt)).map_err(thrown)?;
        Ok(steered.id().to_string())
    }

    /// Adds a user message at the end; gives its id.
    #[wasm_bindgen(js_name = followUp)]
    pub fn follow_up(&self, content: &str) -> Result<String, JsValue> {
        let id = read_prompt(content).and_then(|prompt| self.control.follow_up(prompt)).map_err(thrown)?;
        Ok(id.to_string())
    }

    /// Decides about a call.
    pub fn approve(
        &self,
        call_id: &str,
        allow: bool,
        reason: Option<String>,
        input_hash: Option<String>,
    ) -> Result<(), JsValue> {
        let decision = if allow { Approval::Allow } else { Approval::Deny { reason } };
        let call_id = CallId::new(call_id);
        match input_hash {
            None => self.control.approve(call_id, decision),
            Some(text) => match InputHash::parse(&text) {
                Some(input_hash) => self.control.approve_input(call_id, decision, input_hash),
                None => Err(invalid("this is not the inputHash of an approval request")),
            },
        }
        .map_err(thrown)
    }

    /// Gives the result of a call of a client-side tool.
    #[wasm_bindgen(js_name = toolResult)]
    pub fn tool_result(&self, call_id: &str, output: &str) -> Result<(), JsValue> {
        let invalid = |message: String| thrown(Error::new(ErrorKind::InvalidInput, message));
        let object = Object::parse(output).map_err(|error| invalid(error.to_string()))?;
        let output = read_tool_output(&object).map_err(invalid)?;
        self.control.tool_result(CallId::new(call_id), output).map_err(thrown)
    }

    /// Lets go of the run without aborting it.
    pub fn detach(&self) {
        let run = self.run.borrow_mut().take();
        if let Some(run) = run {
            run.detach();
        }
    }
}

fn read_prompt(content: &str) -> Result<Prompt, Error> {
    let invalid =
        |message: String| Error::new(ErrorKind::InvalidInput, format!("the message cannot be read: {message}"));
    let content: &RawValue = serde_json::from_str(content).map_err(|error| invalid(error.to_string()))?;
    read_content(content).map(Prompt).map_err(invalid)
}
