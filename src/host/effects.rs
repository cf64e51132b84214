//! Starts what a session asks for.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::checkpoints::Saver;
use super::driver::{Driver, TaskKey};
use super::hooks::ModelCaller;
use super::port::Port;
use super::runner::Parts;
use super::{
    ApprovalRequest, Approver, BoxFuture, CancelToken, HookContext, Hooks, Host, Tool, ToolContext, model_call,
};
use crate::agent::{Approval, Effect, HookId, HookQuestion, Input, InputHash, ModelCallId, ToolDefinition, ToolOutput};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::model::{Access, Answer, CallId, ModelRequest, Usage};

/// Starts one effect as a task of the driver.
pub(super) fn start<H: Host>(host: &H, parts: &Arc<Parts<H>>, driver: &Arc<Driver>, effect: Effect) {
    let cancel = CancelToken::new();
    let port = Port::new(driver);
    match effect {
        Effect::CallModel { call, request } => {
            let task = call_model(host.clone(), parts.clone(), call, request, cancel.clone(), port);
            driver.start(TaskKey::Model(call), cancel, task);
        }
        Effect::ValidateInput { call_id, tool, input } => {
            let task = validate(parts.tool(&tool.name), call_id.clone(), input, port);
            driver.start(TaskKey::Validation(call_id), cancel, Box::pin(task));
        }
        Effect::CallTool { call_id, tool, input, claim_key } => {
            // The caller's own client performs it and answers through the run's controls.
            if !tool.client_side {
                let function = parts.tool(&tool.name);
                let context = ToolContext::new(call_id.clone(), cancel.clone(), port.driver()).claimed_by(claim_key);
                let task = call_tool(function, tool, input, context, port);
                driver.start(TaskKey::Tool(call_id), cancel, Box::pin(task));
            }
        }
        Effect::ClaimTool { call_id, tool, input, claim_key } => {
            let context = ToolContext::new(call_id.clone(), cancel.clone(), port.driver()).claimed_by(Some(claim_key));
            let task = claim_tool(parts.tool(&tool.name), input, context, port);
            driver.start(TaskKey::Tool(call_id), cancel, Box::pin(task));
        }
        Effect::AskHook { hook, run_id, question } => {
            let caller = HookCaller { host: host.clone(), parts: parts.clone(), hook, port: port.clone() };
            let context = HookContext {
                run_id: Some(run_id),
                cancel: cancel.clone(),
                caller: question.may_call_models().then(|| Arc::new(caller) as Arc<dyn ModelCaller>),
            };
            let task = ask_hook(parts.hooks.clone(), hook, question, context, port);
            driver.start(TaskKey::Hook(hook), cancel, Box::pin(task));
        }
        Effect::AskApproval { call_id, tool, input } => {
            if let Some(decision) = decision_of_tool(parts, &tool, &input) {
                let (key, input_hash) = (TaskKey::Approval(call_id.clone()), Some(InputHash::of(&input)));
                let task = async move { port.finish(Input::Approval { call_id, decision, input_hash }) };
                driver.start(key, cancel, Box::pin(task));
            // Without an approver a person answers through the run's controls.
            } else if let Some(approver) = parts.approver.clone() {
                let request = ApprovalRequest { call_id: call_id.clone(), tool, input };
                let task = ask_approval(approver, request, cancel.clone(), port);
                driver.start(TaskKey::Approval(call_id), cancel, Box::pin(task));
            }
        }
        Effect::Checkpoint { .. } => {
            // In the background: the last checkpoint of an aborted run is saved after the run is over.
            if let Some(saver) = Saver::claim(driver) {
                host.spawn(saver.save_all(parts.journal.clone()));
            }
        }
        Effect::OfSubAgent { tool, effect } => {
            let asks_outside = |own: &Parts<H>| match &*effect {
                Effect::AskApproval { tool, input, .. } => {
                    own.approver.is_none() && decision_of_tool(own, tool, input).is_none()
                }
                _ => false,
            };
            match parts.agents.get(&tool.name) {
                // One without an approver of its own asks that of the agent that called it.
                Some(own) if !asks_outside(&own.parts) => {
                    start(&own.host, &own.parts, driver, *effect);
                }
                _ => start(host, parts, driver, *effect),
            }
        }
        // The driver performs these itself, at once.
        Effect::CancelModel { .. }
        | Effect::CancelTool { .. }
        | Effect::SetTimer { .. }
        | Effect::ClearTimer { .. } => {}
    }
}

fn call_model<H: Host>(
    host: H,
    parts: Arc<Parts<H>>,
    call: ModelCallId,
    request: Arc<ModelRequest>,
    cancel: CancelToken,
    port: Port,
) -> BoxFuture<'static, ()> {
    match &request.model.access {
        Access::Function(name) => {
            let model = parts.models.get(&**name).or(parts.any_model.as_ref()).cloned();
            let calling = model_call::call_function(model, call, request, cancel, port.clone());
            Box::pin(async move {
                if let Err(panic) = no_panic(calling).await {
                    let error = Error::new(ErrorKind::Internal, format!("the model's function failed inside: {panic}"));
                    port.finish(Input::ModelEnded { call, outcome: Err(error) });
                }
            })
        }
        Access::Http { .. } => Box::pin(model_call::call_http(host, parts, call, request, cancel, port)),
    }
}

/// Calls models for a hook, with what the agent calls its own with.
struct HookCaller<H> {
    host: H,
    parts: Arc<Parts<H>>,
    hook: HookId,
    port: Port,
}

impl<H: Host> ModelCaller for HookCaller<H> {
    fn call(&self, request: Arc<ModelRequest>, cancel: CancelToken) -> BoxFuture<'static, Result<Answer, Error>> {
        let (answer, port) = self.port.collecting();
        let model = request.model.clone();
        // No call of the session has this number, and none of its events reach the session.
        let call = ModelCallId(0);
        let calling = call_model(self.host.clone(), self.parts.clone(), call, request, cancel, port);
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

fn decision_of_tool<H>(parts: &Parts<H>, tool: &ToolDefinition, input: &RawJson) -> Option<Approval> {
    parts.tool(&tool.name)?.decide(input)
}

async fn call_tool(
    function: Option<Arc<dyn Tool>>,
    tool: Arc<ToolDefinition>,
    input: RawJson,
    context: ToolContext,
    port: Port,
) {
    let call_id = context.call_id.clone();
    let output = match function {
        Some(function) => match no_panic(async move { function.execute(input, context).await }).await {
            Ok(Ok(output)) => output,
            Ok(Err(message)) => ToolOutput::error(message),
            Err(panic) => ToolOutput::error(format!("the tool failed inside: {panic}")),
        },
        None => ToolOutput::error(format!("the tool \"{}\" has no function here, so it cannot run", tool.name)),
    };
    port.finish(Input::ToolEnded { call_id, output });
}

async fn claim_tool(function: Option<Arc<dyn Tool>>, input: RawJson, context: ToolContext, port: Port) {
    let call_id = context.call_id.clone();
    let claimed = match function {
        Some(function) => no_panic(async move { function.claim(input, context).await }).await.ok().flatten(),
        None => None,
    };
    port.finish(match claimed {
        Some(output) => Input::ToolEnded { call_id, output },
        None => Input::ToolNotClaimed { call_id },
    });
}

async fn validate(function: Option<Arc<dyn Tool>>, call_id: CallId, input: RawJson, port: Port) {
    let outcome = match function {
        Some(function) => match no_panic(async move { function.validate(input).await }).await {
            Ok(outcome) => outcome,
            Err(panic) => Err(format!("the input could not be checked: {panic}")),
        },
        None => Ok(None),
    };
    port.finish(Input::InputValidated { call_id, outcome });
}

async fn ask_hook(
    hooks: Option<Arc<dyn Hooks>>,
    hook: HookId,
    question: HookQuestion,
    context: HookContext,
    port: Port,
) {
    let reply = match hooks {
        Some(hooks) => match no_panic(async { hooks.answer(question, context).await }).await {
            Ok(reply) => reply,
            Err(panic) => Err(panic),
        },
        None => Err("the agent registers hooks, but none was given to the runner".to_owned()),
    };
    port.finish(Input::HookReplied { hook, reply });
}

async fn ask_approval(approver: Arc<dyn Approver>, request: ApprovalRequest, cancel: CancelToken, port: Port) {
    let call_id = request.call_id.clone();
    let input_hash = Some(InputHash::of(&request.input));
    let decision = match no_panic(async { approver.decide(request, cancel).await }).await {
        Ok(decision) => decision,
        Err(panic) => Approval::Deny { reason: Some(panic) },
    };
    port.finish(Input::Approval { call_id, decision, input_hash });
}

/// Turns a panic of the caller's code into its message, where panics unwind.
pub(super) async fn no_panic<T>(future: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|payload| {
        let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        message.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
    })
}
