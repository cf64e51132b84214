//! Models that are functions of the caller: a model in the browser, a proxy, a script for a test.

use std::sync::Arc;

use futures_util::{Stream, StreamExt};

use super::{BoxStream, CancelToken, MaybeSend, MaybeSync};
use crate::error::Error;
use crate::model::{ModelEvent, ModelRequest};

/// A model that answers with a stream of events instead of over HTTP.
///
/// The events follow the rules of [`ModelEvent`]: blocks start before they end, and the last event is
/// [`Stop`](ModelEvent::Stop). A stream that ends without it counts as truncated. Implemented by closures that take the
/// request and give a stream.
pub trait FunctionModel: MaybeSend + MaybeSync + 'static {
    /// Answers a request. The stream is dropped when the answer is no longer wanted; the token fires first.
    fn call(&self, request: Arc<ModelRequest>, cancel: CancelToken) -> BoxStream<'static, Result<ModelEvent, Error>>;
}

impl<F, Answer> FunctionModel for F
where
    F: Fn(Arc<ModelRequest>, CancelToken) -> Answer + MaybeSend + MaybeSync + 'static,
    Answer: Stream<Item = Result<ModelEvent, Error>> + MaybeSend + 'static,
{
    fn call(&self, request: Arc<ModelRequest>, cancel: CancelToken) -> BoxStream<'static, Result<ModelEvent, Error>> {
        let answer = self(request, cancel);
        #[cfg(not(target_arch = "wasm32"))]
        return answer.boxed();
        #[cfg(target_arch = "wasm32")]
        return answer.boxed_local();
    }
}
