//! The functions that the loop asks on its way.

use std::future::Future;

use super::{BoxFuture, CancelToken, MaybeSend, MaybeSync};
use crate::agent::{Approval, HookQuestion, HookReply, ToolDefinition};
use crate::json::RawJson;
use crate::model::CallId;

use std::sync::Arc;

/// Answers the hooks that the agent's definition registers.
///
/// Which questions are asked is said by [`agent::Hooks`](crate::agent::Hooks); a question that is not registered costs
/// nothing. An `Err` before a tool call denies the call; after one it makes the result an error.
pub trait Hooks: MaybeSend + MaybeSync + 'static {
    /// Answers one question. The token fires, and the future is dropped, when the run is aborted.
    fn answer(&self, question: HookQuestion, cancel: CancelToken) -> BoxFuture<'static, Result<HookReply, String>>;
}

impl<F, Answering> Hooks for F
where
    F: Fn(HookQuestion, CancelToken) -> Answering + MaybeSend + MaybeSync + 'static,
    Answering: Future<Output = Result<HookReply, String>> + MaybeSend + 'static,
{
    fn answer(&self, question: HookQuestion, cancel: CancelToken) -> BoxFuture<'static, Result<HookReply, String>> {
        Box::pin(self(question, cancel))
    }
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
