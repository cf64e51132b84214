//! The hooks of the caller, asked through the facade.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use crablet::Error;
use crablet::agent::{ContextEdit, HookQuestion, HookReply, RunId, StepChange};
use crablet::host::{BoxFuture, HookContext, Hooks};
use crablet::json::Object;
use crablet::jsonrpc::Params;
use crablet::model::{Body, Message, MessageId, ModelRequest, Part, RequestOptions};
use js_sys::Function;
use serde::Serialize;
use serde::ser::SerializeMap;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;

use crate::config::{invalid, member, only, read_model, read_tool_choice};
use crate::functions::{Functions, message, resolved, text};
use crate::mcp::{json, settle};
use crate::models::Models;
use crate::tool_output::read_tool_output;

/// The hooks of the caller.
#[derive(Debug)]
pub(crate) struct JsHooks {
    functions: Functions,
    models: Models,
    told: Rc<RefCell<Vec<Told>>>,
}

/// The messages that the facade has of a run. Its copy is fed with what is new, so that a step does not cost the whole
/// history.
#[derive(Debug)]
struct Told {
    run_id: RunId,
    messages: Vec<Weak<Message>>,
}

/// How many runs are remembered: those that one agent has at work at once. For one that is forgotten the whole history is
/// told again.
const MAX_RUNS: usize = 4;

impl JsHooks {
    pub(crate) fn new(functions: Functions, models: Models) -> Self {
        Self { functions, models, told: Rc::default() }
    }
}

impl Hooks for JsHooks {
    fn answer(&self, question: HookQuestion, context: HookContext) -> BoxFuture<'static, Result<HookReply, String>> {
        let (functions, models, told) = (self.functions.clone(), self.models.clone(), self.told.clone());
        Box::pin(async move {
            for _ in 0..2 {
                let asked = written(&question, context.run_id.as_ref(), &told)?;
                let caller = caller(&question, &context, &models);
                let reply = functions.ask(&asked, caller.as_ref().unchecked_ref());
                let reply = text(resolved(reply).await).map_err(|thrown| message(&thrown))?;
                let object = Object::parse(&reply).map_err(|error| error.to_string())?;
                if object.string("action").as_deref() != Some("retell") {
                    return read_reply(&object, &models);
                }
                // The facade has forgotten the run.
                told.borrow_mut().retain(|told| Some(&told.run_id) != context.run_id.as_ref());
            }
            Err("the facade does not keep the messages of the run".to_owned())
        })
    }
}

fn read_reply(object: &Object<'_>, models: &Models) -> Result<HookReply, String> {
    match object.string("action").as_deref() {
        Some(action @ ("change-input" | "change-and-ask")) => {
            let input = object.raw("input").ok_or("the hook changes the input but gives none")?;
            Ok(if action == "change-input" { HookReply::ChangeInput(input) } else { HookReply::ChangeAndAsk(input) })
        }
        Some("deny") => Ok(HookReply::Deny(object.string("reason").unwrap_or_else(|| "denied".to_owned()))),
        Some("ask") => Ok(HookReply::Ask),
        Some("change-result") => {
            let output = object
                .object("output")
                .filter(|output| output.get("content").is_some() || output.get("output").is_some());
            read_tool_output(&output.ok_or("the hook changes the result but gives none")?).map(HookReply::ChangeResult)
        }
        Some("change-step") => {
            read_step_change(object, models).map(HookReply::ChangeStep).map_err(|error| error.to_string())
        }
        Some("edit-context") => {
            object.objects("edits").iter().map(read_edit).collect::<Result<_, _>>().map(HookReply::EditContext)
        }
        Some("change-body") => Ok(object.raw("body").map_or(HookReply::Continue, HookReply::ChangeBody)),
        Some("stop") => Ok(HookReply::Stop),
        None => Ok(HookReply::Continue),
        // A guard must not let anything through by a word that means nothing.
        Some(_) => Err("its answer is none of those that it may give".to_owned()),
    }
}

fn read_step_change(object: &Object<'_>, models: &Models) -> Result<StepChange, Error> {
    only(object.iter().map(|(name, _)| name), "its answer", "action model instructions activeTools toolChoice")?;
    Ok(StepChange {
        model: match object.object("model") {
            Some(model) => Some(models.choose(read_model(&model)?)),
            None => None,
        },
        instructions: object.string("instructions").map(Into::into),
        active_tools: member(object, "activeTools", "a list of names", Object::read)?,
        tool_choice: read_tool_choice(object)?,
    })
}

fn read_edit(edit: &Object<'_>) -> Result<ContextEdit, String> {
    let body = |name: &str| -> Result<Body, String> {
        let message = edit.object(name).ok_or_else(|| {
            format!("an edit has keep, drop, replace or insert, and this one has no message in \"{name}\"")
        })?;
        Message::read(&message).map(|message| message.body).map_err(|error| error.to_string())
    };
    let id = |name: &str| edit.string(name).map(MessageId::new);
    if let Some(keep) = edit.read::<Vec<String>>("keep") {
        return Ok(ContextEdit::Keep(keep.into_iter().map(MessageId::new).collect()));
    }
    match (id("drop"), id("replace")) {
        (Some(dropped), _) => Ok(ContextEdit::Drop(dropped)),
        (None, Some(replaced)) => Ok(ContextEdit::Replace(replaced, body("with")?)),
        (None, None) => Ok(ContextEdit::Insert(id("before"), body("insert")?)),
    }
}

/// The function that calls a model for the hook: `(request, resolve, reject)`, with JSON texts.
fn caller(
    question: &HookQuestion,
    context: &HookContext,
    models: &Models,
) -> Closure<dyn FnMut(String, Function, Function)> {
    let usual = match question {
        HookQuestion::PrepareStep { request, .. } | HookQuestion::PrepareContext { request, .. } => {
            Some(request.clone())
        }
        _ => None,
    };
    let (context, models) = (context.clone(), models.clone());
    Closure::new(move |request: String, resolve: Function, reject: Function| {
        let (usual, context, models) = (usual.clone(), context.clone(), models.clone());
        let cancel = context.cancel.clone();
        settle(
            &cancel,
            resolve,
            reject,
            async move { call_model(&request, usual.as_deref(), &context, &models).await },
        );
    })
}

async fn call_model(
    request: &str,
    usual: Option<&ModelRequest>,
    context: &HookContext,
    models: &Models,
) -> Result<String, Error> {
    let object = Object::parse(request).map_err(|error| invalid(error.to_string()))?;
    let model = match (object.object("model"), usual) {
        (Some(model), _) => models.choose(read_model(&model)?),
        (None, Some(usual)) => usual.model.clone(),
        (None, None) => return Err(invalid("callModel of this hook needs a model")),
    };
    let messages = object.objects("messages");
    let messages = messages.iter().map(|message| Message::read(message).map(Arc::new)).collect::<Result<_, _>>();
    let mut options = RequestOptions::default();
    options.max_tokens = object.integer("maxTokens");
    let answer = context
        .call_model(ModelRequest {
            model,
            instructions: object.string("instructions").map(Into::into),
            messages: messages.map_err(|error| invalid(error.to_string()))?,
            tools: Arc::default(),
            options: Arc::new(options),
        })
        .await?;
    let text = answer.content.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let answered = Params::new()
        .with("text", &text.collect::<String>())
        .with("stopReason", answer.stop_reason.as_str())
        .with("usage", &answer.usage);
    Ok(json(&answered))
}

fn written(question: &HookQuestion, run_id: Option<&RunId>, told: &RefCell<Vec<Told>>) -> Result<String, String> {
    serde_json::to_string(&Question { question, run_id, told }).map_err(|error| error.to_string())
}

/// `Question` of `src/js/hooks.ts`.
struct Question<'question> {
    question: &'question HookQuestion,
    run_id: Option<&'question RunId>,
    told: &'question RefCell<Vec<Told>>,
}

impl Question<'_> {
    /// Writes which of the messages that the facade has stay, and those that come after them.
    fn write_messages<M: SerializeMap>(&self, request: &ModelRequest, map: &mut M) -> Result<(), M::Error> {
        let Some(run_id) = self.run_id else { return Ok(()) };
        let mut told = self.told.borrow_mut();
        let known = told.iter().position(|told| told.run_id == *run_id).map(|index| told.remove(index));
        let known = known.map(|told| told.messages).unwrap_or_default();
        let is_same = |(known, message): &(&Weak<Message>, &Arc<Message>)| known.as_ptr() == Arc::as_ptr(message);
        let keep = known.iter().zip(&request.messages).take_while(is_same).count();
        map.serialize_entry("keep", &keep)?;
        map.serialize_entry("add", request.messages.get(keep..).unwrap_or_default())?;
        let messages = request.messages.iter().map(Arc::downgrade).collect();
        told.push(Told { run_id: run_id.clone(), messages });
        if told.len() > MAX_RUNS {
            told.remove(0);
        }
        Ok(())
    }
}

impl Serialize for Question<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("runId", &self.run_id)?;
        match self.question {
            HookQuestion::BeforeToolCall { call_id, tool, input } => {
                map.serialize_entry("type", "before-tool-call")?;
                map.serialize_entry("callId", call_id)?;
                map.serialize_entry("toolName", &tool.name)?;
                if let Some(server) = &tool.server {
                    map.serialize_entry("server", server)?;
                }
                map.serialize_entry("input", input)?;
            }
            HookQuestion::AfterToolCall { tool, input, result } => {
                map.serialize_entry("type", "after-tool-call")?;
                map.serialize_entry("toolName", &tool.name)?;
                if let Some(server) = &tool.server {
                    map.serialize_entry("server", server)?;
                }
                map.serialize_entry("input", input)?;
                map.serialize_entry("result", result)?;
            }
            HookQuestion::PrepareStep { step, request } => {
                map.serialize_entry("type", "prepare-step")?;
                map.serialize_entry("step", step)?;
                self.write_messages(request, &mut map)?;
            }
            HookQuestion::PrepareContext { step, request } => {
                map.serialize_entry("type", "prepare-context")?;
                map.serialize_entry("step", step)?;
                self.write_messages(request, &mut map)?;
            }
            HookQuestion::StopWhen { step, messages } => {
                map.serialize_entry("type", "stop-when")?;
                map.serialize_entry("step", step)?;
                map.serialize_entry("messages", messages)?;
            }
            HookQuestion::ValidateOutput { output } => {
                map.serialize_entry("type", "validate-output")?;
                map.serialize_entry("output", output)?;
            }
            HookQuestion::FormatRequest { model, body } => {
                map.serialize_entry("type", "format-request")?;
                map.serialize_entry("model", model)?;
                map.serialize_entry("body", body)?;
            }
            _ => map.serialize_entry("type", "unknown")?,
        }
        map.end()
    }
}
