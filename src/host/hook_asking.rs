//! How hooks are asked. A runner holds it with its hooks and not otherwise, so that a program without hooks links nothing of it.

use std::sync::Arc;

use super::effects::{HookCaller, Work, no_panic};
use super::hooks::ModelCaller;
use super::{BoxFuture, CancelToken, HookContext, Hooks, Host, MaybeSend, MaybeSync};
use crate::agent::{HookQuestion, HookReply, Input, RunId};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::model::{HttpRequest, ModelRef};

/// Asks the hooks of a runner.
pub(super) trait AskHooks<H>: MaybeSend + MaybeSync + 'static {
    /// A question of the session.
    fn ask(&self, caller: HookCaller<H>, run_id: RunId, question: HookQuestion, cancel: CancelToken) -> Work;

    /// Lets the hook put another body in the place of the encoded one.
    fn format_request(
        &self,
        model: ModelRef,
        message: HttpRequest,
        cancel: CancelToken,
    ) -> BoxFuture<'static, Result<HttpRequest, Error>>;
}

/// Hooks that are asked.
pub(super) struct Asked(pub(super) Arc<dyn Hooks>);

impl<H: Host> AskHooks<H> for Asked {
    fn ask(&self, caller: HookCaller<H>, run_id: RunId, question: HookQuestion, cancel: CancelToken) -> Work {
        let (hooks, hook) = (self.0.clone(), caller.hook);
        let caller = question.may_call_models().then(|| Arc::new(caller) as Arc<dyn ModelCaller>);
        let context = HookContext { run_id: Some(run_id), cancel, caller };
        Box::pin(async move { Input::HookReplied { hook, reply: hooks.answer(question, context).await } })
    }

    fn format_request(
        &self,
        model: ModelRef,
        message: HttpRequest,
        cancel: CancelToken,
    ) -> BoxFuture<'static, Result<HttpRequest, Error>> {
        let (hooks, context) = (self.0.clone(), HookContext { run_id: None, cancel, caller: None });
        Box::pin(async move {
            let body = String::from_utf8(message.body).map_err(|error| failed(error.to_string()))?;
            let body = RawJson::parse(body).map_err(|error| failed(error.to_string()))?;
            let question = HookQuestion::FormatRequest { model, body: body.clone() };
            let reply = no_panic(async { hooks.answer(question, context).await }).await.and_then(|reply| reply);
            let body = match reply.map_err(failed)? {
                HookReply::ChangeBody(changed) => changed,
                HookReply::Continue => body,
                _ => return Err(failed("its answer does not fit the question".to_owned())),
            };
            Ok(HttpRequest { body: body.as_str().as_bytes().to_vec(), ..message })
        })
    }
}

fn failed(reason: String) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("the hook formatRequest failed: {reason}"))
}
