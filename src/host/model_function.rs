//! How a model that is a function is called. A runner holds it with the function and not otherwise, so that a program whose models are
//! all called over HTTP links nothing of it.

use std::sync::Arc;
use std::task::Poll;

use futures_util::StreamExt;

use super::effects::Work;
use super::model_call::{hand_over, is_complete};
use super::port::Port;
use super::{CancelToken, FunctionModel, MaybeSend, MaybeSync};
use crate::agent::{Input, ModelCallId};
use crate::error::{Error, ErrorKind};
use crate::model::ModelRequest;

/// The most events of a function model that are handed over at once, so that a stream that is always ready does not keep
/// its reader waiting.
const MAX_BATCH: usize = 256;

/// Calls the function of a model.
pub(super) trait CallFunction: MaybeSend + MaybeSync + 'static {
    fn call(&self, call: ModelCallId, request: Arc<ModelRequest>, cancel: CancelToken, port: Port) -> Work;
}

/// A function that is called.
pub(super) struct Called(pub(super) Arc<dyn FunctionModel>);

impl CallFunction for Called {
    fn call(&self, call: ModelCallId, request: Arc<ModelRequest>, cancel: CancelToken, port: Port) -> Work {
        let model = self.0.clone();
        Box::pin(async move {
            let outcome = answer_of_function(&*model, call, request, cancel, &port).await;
            Input::ModelEnded { call, outcome }
        })
    }
}

async fn answer_of_function(
    model: &dyn FunctionModel,
    call: ModelCallId,
    request: Arc<ModelRequest>,
    cancel: CancelToken,
    port: &Port,
) -> Result<(), Error> {
    let mut answer = model.call(request, cancel);
    loop {
        let mut events = Vec::new();
        let mut ended = None;
        std::future::poll_fn(|context| {
            while events.len() < MAX_BATCH {
                match answer.poll_next_unpin(context) {
                    Poll::Ready(Some(Ok(event))) => {
                        events.push(event);
                        if is_complete(&events) {
                            ended = Some(Ok(()));
                            break;
                        }
                    }
                    Poll::Ready(Some(Err(error))) => {
                        ended = Some(Err(error));
                        break;
                    }
                    Poll::Ready(None) => {
                        let message = "the model's function ended its answer without a stop event";
                        ended = Some(Err(Error::new(ErrorKind::StreamTruncated, message)));
                        break;
                    }
                    Poll::Pending if events.is_empty() => return Poll::Pending,
                    Poll::Pending => break,
                }
            }
            Poll::Ready(())
        })
        .await;
        if !events.is_empty() {
            hand_over(port, Input::ModelEvents { call, events }, ended.is_some()).await;
        }
        if let Some(outcome) = ended {
            return outcome;
        }
    }
}
