//! The functions that the loop asks on its way.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::{BoxFuture, CancelToken, MaybeSend, MaybeSync};
use crate::agent::{Approval, HookQuestion, HookReply, RunId, ToolDefinition};
use crate::error::Error;
use crate::json::RawJson;
use crate::model::{Answer, CallId, ModelRequest};

/// Answers the hooks that the agent's definition registers.
///
/// Which questions are asked is said by [`agent::Hooks`](crate::agent::Hooks); a question that is not registered costs
/// nothing. An `Err` before a tool call denies the call; after one it makes the result an error; before a model call and
/// after a step it ends the run.
pub trait Hooks: MaybeSend + MaybeSync + 'static {
    /// Answers one question. The token of the context fires, and the future is dropped, when the run is aborted.
    fn answer(&self, question: HookQuestion, context: HookContext) -> BoxFuture<'static, Result<HookReply, String>>;
}

impl<F, Answering> Hooks for F
where
    F: Fn(HookQuestion, HookContext) -> Answering + MaybeSend + MaybeSync + 'static,
    Answering: Future<Output = Result<HookReply, String>> + MaybeSend + 'static,
{
    fn answer(&self, question: HookQuestion, context: HookContext) -> BoxFuture<'static, Result<HookReply, String>> {
        Box::pin(self(question, context))
    }
}

/// What a hook may use while it is asked.
#[derive(Clone)]
pub struct HookContext {
    /// The run that asks; `None` where the host asks about a request.
    pub run_id: Option<RunId>,
    /// Fires when the run is aborted.
    pub cancel: CancelToken,
    pub(super) caller: Option<Arc<dyn ModelCaller>>,
}

impl HookContext {
    /// Calls a model, such as one that writes a summary, with the keys of the agent. One attempt, which ends with the run;
    /// its tokens count in the budgets of the run.
    ///
    /// Only for questions before a model call and after a step.
    ///
    /// # Errors
    ///
    /// What failed; `invalid-input` for a question about something else.
    pub async fn call_model(&self, request: ModelRequest) -> Result<Answer, Error> {
        match &self.caller {
            Some(caller) => caller.call(Arc::new(request), self.cancel.clone()).await,
            None => {
                let message = "this hook cannot call a model: prepareStep, prepareContext and stopWhen can";
                Err(Error::new(crate::ErrorKind::InvalidInput, message))
            }
        }
    }
}

impl fmt::Debug for HookContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HookContext").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

/// Calls a model for a hook.
pub(super) trait ModelCaller: MaybeSend + MaybeSync + 'static {
    fn call(&self, request: Arc<ModelRequest>, cancel: CancelToken) -> BoxFuture<'static, Result<Answer, Error>>;
}

/// Decides about calls of tools that need an approval.
///
/// Without one, the run waits for [`RunControl::approve`](super::RunControl::approve).
pub trait Approver: MaybeSend + MaybeSync + 'static {
    /// Decides about one call.
    fn decide(&self, request: ApprovalRequest, cancel: CancelToken) -> BoxFuture<'static, Approval>;
}

/// A call that waits for a decision.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// The call.
    pub call_id: CallId,
    /// Its tool.
    pub tool: Arc<ToolDefinition>,
    /// The input that would run.
    pub input: RawJson,
}

impl<F, Deciding> Approver for F
where
    F: Fn(ApprovalRequest, CancelToken) -> Deciding + MaybeSend + MaybeSync + 'static,
    Deciding: Future<Output = Approval> + MaybeSend + 'static,
{
    fn decide(&self, request: ApprovalRequest, cancel: CancelToken) -> BoxFuture<'static, Approval> {
        Box::pin(self(request, cancel))
    }
}
