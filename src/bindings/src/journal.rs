//! Where a conversation's checkpoints go: a function of the facade.

use crablet::agent::Save;
use crablet::host::{BoxFuture, Journal};
use crablet::web::error_from_rejection;
use crablet::{Error, ErrorKind};
use js_sys::Function;
use wasm_bindgen::{JsCast, JsValue};

use crate::functions::resolved;

/// The function that keeps a conversation's checkpoints.
#[derive(Debug)]
pub(crate) struct JsJournal(pub(crate) Function);

impl Journal for JsJournal {
    fn write(&self, save: Save) -> BoxFuture<'static, Result<(), Error>> {
        let called = self.0.call1(&JsValue::UNDEFINED, &JsValue::from_str(save.text()));
        Box::pin(async move {
            let saved = resolved(called.map(JsCast::unchecked_into)).await;
            saved.map(drop).map_err(|thrown| error_from_rejection(&thrown, ErrorKind::Storage, "the store failed"))
        })
    }
}
