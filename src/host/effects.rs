//! Starts what a session asks for.

use std::future::{Future, ready};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::driver::{Driver, TaskKey};
use super::hooks::ModelCaller;
use super::port::Port;
use super::runner::Parts;
use super::{ApprovalRequest, Approver, BoxFuture, CancelToken, Host, Tool, ToolContext, model_call};
use crate::agent::{Approval, Effect, HookId, Input, InputHash, ModelCallId, ToolDefinition, ToolOutput};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::model::{Access, Answer, CallId, ModelRequest, Usage};

/// Starts one effect as a task of the driver.
pub(super) fn start<H: Host>(host: &H, parts: &Arc<Parts<H>>, driver: &Arc<Driver>, effect: Effect) {
    let cancel = CancelToken::new();
    let port = Port::new(driver);
    let (key, work): (TaskKey, Work) = match effect {
        Effect::CallModel { call, request } => {
            let work = call_model(host.clone(), parts.clone(), call, request, cancel.clone(), port.clone());
            (TaskKey::Model(call), work)
        }
        Effect::ValidateInput { call_id, tool, input } => {
            (TaskKey::Validation(call_id.clone()), validate(parts.tool(&tool.name), call_id, input))
        }
        // The caller's own client performs it and answers through the run's controls.
        Effect::CallTool { tool, .. } if tool.client_side => return,
        Effect::CallTool { call_id, tool, input, claim_key } => {
            let context = ToolContext::new(call_id.clone(), cancel.clone(), port.driver()).claimed_by(claim_key);
            (TaskKey::Tool(call_id), call_tool(parts.tool(&tool.name), tool, input, context))
        }
        Effect::ClaimTool { call_id, tool, input, claim_key } => {
            let context = ToolContext::new(call_id.clone(), cancel.clone(), port.driver()).claimed_by(Some(claim_key));
            (TaskKey::Tool(call_id), claim_tool(parts.tool(&tool.name), input, context))
        }
        Effect::AskHook { hook, run_id, question } => {
            let work = match &parts.hooks {
                Some(hooks) => {
                    let caller = HookCaller { host: host.clone(), parts: parts.clone(), hook, port: port.clone() };
                    hooks.ask(caller, run_id, question, cancel.clone())
                }
                None => {
                    let message = "the agent registers hooks, but none was given to the runner";
                    Box::pin(ready(Input::HookReplied { hook, reply: Err(message.to_owned()) }))
                }
            };
            (TaskKey::Hook(hook), work)
        }
        Effect::AskApproval { call_id, tool, input } => {
            let key = TaskKey::Approval(call_id.clone());
            if let Some(decision) = decision_of_tool(parts, &tool, &input) {
                let input_hash = Some(InputHash::of(&input));
                (key, Box::pin(ready(Input::Approval { call_id, decision, input_hash })))
            } else if let Some(approver) = parts.approver.clone() {
                (key, ask_approval(approver, ApprovalRequest { call_id, tool, input }, cancel.clone()))
            } else {
                // A person answers through the run's controls.
                return;
            }
        }
        Effect::Checkpoint { seq, .. } => {
            // In the background: the last checkpoint of an aborted run is saved after the run is over.
            if let Some(recorder) = &parts.recorder {
                if let Some(saving) = recorder.save(driver) {
                    host.spawn(saving);
                }
            } else {
                let message = "the agent says it has a store, but the runner was given no journal";
                driver.post(Input::CheckpointFailed { seq, error: Error::new(ErrorKind::Storage, message) });
            }
            return;
        }
        Effect::OfSubAgent { tool, effect } => {
            let asks_outside = |own: &Parts<H>| match &*effect {
                Effect::AskApproval { tool, input, .. } => {
                    own.approver.is_none() && decision_of_tool(own, tool, input).is_none()
                }
                _ => false,
            };
            return match parts.agents.get(&tool.name) {
                // One without an approver of its own asks that of the agent that called it.
                Some(own) if !asks_outside(&own.parts) => start(&own.host, &own.parts, driver, *effect),
                _ => start(host, parts, driver, *effect),
            };
        }
        // The driver performs these itself, at once.
        Effect::CancelModel { .. }
        | Effect::CancelTool { .. }
        | Effect::SetTimer { .. }
        | Effect::ClearTimer { .. } => return,
    };
    driver.start(key.clone(), cancel, Box::pin(perform(key, work, port)));
}

/// What a task does: it ends with what the session is told.
pub(super) type Work = BoxFuture<'static, Input>;

/// Does a task's work. A panic of the caller's code is a failure that the session is told of.
pub(super) async fn perform(key: TaskKey, work: Work, port: Port) {
    let end = no_panic(work).await;
    port.finish(end.unwrap_or_else(|panic| match key {
        TaskKey::Model(call) => {
            let error = Error::new(ErrorKind::Internal, format!("the model's function failed inside: {panic}"));
            Input::ModelEnded { call, outcome: Err(error) }
        }
        TaskKey::Tool(call_id) => {
            Input::ToolEnded { call_id, output: ToolOutput::error(format!("the tool failed inside: {panic}")) }
        }
        TaskKey::Validation(call_id) => {
            Input::InputValidated { call_id, outcome: Err(format!("the input could not be checked: {panic}")) }
        }
        TaskKey::Hook(hook) => Input::HookReplied { hook, reply: Err(panic) },
        TaskKey::Approval(call_id) => {
            Input::Approval { call_id, decision: Approval::Deny { reason: Some(panic) }, input_hash: None }
        }
    }));
}

pub(super) fn call_model<H: Host>(
    host: H,
    parts: Arc<Parts<H>>,
    call: ModelCallId,
    request: Arc<ModelRequest>,
    cancel: CancelToken,
    port: Port,
) -> Work {
    match &request.model.access {
        Access::Function(name) => match parts.models.get(&**name).or(parts.any_model.as_ref()) {
            Some(model) => model.call(call, request, cancel, port),
            None => Box::pin(ready(Input::ModelEnded { call, outcome: Err(no_function(&request)) })),
        },
        Access::Http { .. } => Box::pin(model_call::call_http(host, parts, call, request, cancel, port)),
    }
}

/// Calls models for a hook, with what the agent calls its own with.
pub(super) struct HookCaller<H> {
    host: H,
    parts: Arc<Parts<H>>,
    pub(super) hook: HookId,
    port: Port,
}

impl<H: Host> ModelCaller for HookCaller<H> {
    fn call(&self, request: Arc<ModelRequest>, cancel: CancelToken) -> BoxFuture<'static, Result<Answer, Error>> {
        let (answer, port) = self.port.collecting();
        let model = request.model.clone();
        // No call of the session has this number, and none of its events reach the session.
        let call = ModelCallId(0);
        let calling = call_model(self.host.clone(), self.parts.clone(), call, request, cancel, port.clone());
        let calling = perform(TaskKey::Model(call), calling, port);
        let (hook, port) = (self.hook, self.port.clone());
        Box::pin(async move {
            calling.await;
            let answer = answer.take()?;
            let cost = answer.usage.cost.or(model.cost(&answer.usage));
            port.finish(Input::HookSpent { hook, usage: Usage { cost, ..answer.usage } });
            match answer.error {
                Some(error) => Err(error),
                None => Ok(answer),
            }
        })
    }
}

fn no_function(request: &ModelRequest) -> Error {
    let message = format!(
        "the model \"{}\" is a function, but none of its name was given to the runner; add it with function_model()",
        request.model.id
    );
    Error::new(ErrorKind::InvalidInput, message)
}

fn decision_of_tool<H>(parts: &Parts<H>, tool: &ToolDefinition, input: &RawJson) -> Option<Approval> {
    parts.tool(&tool.name)?.decide(input)
}

fn call_tool(function: Option<Arc<dyn Tool>>, tool: Arc<ToolDefinition>, input: RawJson, context: ToolContext) -> Work {
    Box::pin(async move {
        let call_id = context.call_id.clone();
        let output = match function {
            Some(function) => function.execute(input, context).await,
            None => Err(format!("the tool \"{}\" has no function here, so it cannot run", tool.name)),
        };
        Input::ToolEnded { call_id, output: output.unwrap_or_else(ToolOutput::error) }
    })
}

fn claim_tool(function: Option<Arc<dyn Tool>>, input: RawJson, context: ToolContext) -> Work {
    Box::pin(async move {
        let call_id = context.call_id.clone();
        let claimed = match function {
            Some(function) => no_panic(async move { function.claim(input, context).await }).await.ok().flatten(),
            None => None,
        };
        match claimed {
            Some(output) => Input::ToolEnded { call_id, output },
            None => Input::ToolNotClaimed { call_id },
        }
    })
}

fn validate(function: Option<Arc<dyn Tool>>, call_id: CallId, input: RawJson) -> Work {
    Box::pin(async move {
        let outcome = match function {
            Some(function) => function.validate(input).await,
            None => Ok(None),
        };
        Input::InputValidated { call_id, outcome }
    })
}

fn ask_approval(approver: Arc<dyn Approver>, request: ApprovalRequest, cancel: CancelToken) -> Work {
    Box::pin(async move {
        let call_id = request.call_id.clone();
        let input_hash = Some(InputHash::of(&request.input));
        let decision = approver.decide(request, cancel).await;
        Input::Approval { call_id, decision, input_hash }
    })
}

/// Turns a panic of the caller's code into its message, where panics unwind.
pub(super) async fn no_panic<T>(future: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|payload| {
        let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        message.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
    })
}
