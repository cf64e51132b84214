//! Pages that a user must have visited before a server answers: error -32042 of revision 2025-11-25, "URL mode elicitation".

use super::super::protocol::Era;
use super::question::Asker;
use super::{Client, OperationId, Phase, Request};
use crate::error::Error;
use crate::json::{Object, RawJson};
use crate::jsonrpc::RpcError;
use crate::time::Millis;

/// The number of the error.
pub(super) const URL_ELICITATION_REQUIRED: i64 = -32042;

/// The pages that one operation waits for.
#[derive(Debug)]
pub(super) struct Pages {
    /// Those of which the server has not told yet that the user is done there.
    awaited: Vec<String>,
    /// What the operation ends with when the user does not want to.
    refusal: RpcError,
}

impl Client {
    /// Whether this refusal asks for pages that the client may show.
    pub(super) fn asks_for_pages(&self, id: OperationId, error: &RpcError) -> bool {
        let is_call = matches!(
            self.operations.get(&id).map(|operation| &operation.request),
            Some(Request::CallTool { .. } | Request::Other { .. })
        );
        error.code == URL_ELICITATION_REQUIRED
            && is_call
            && matches!(self.phase, Phase::Ready { era: Era::Handshake(_), .. })
            && self.offers_pages()
            && !pages_in(error).is_empty()
    }

    /// Puts the pages to the user. The request is sent again once the server says that the user is done with all of them.
    pub(super) fn ask_for_pages(&mut self, id: OperationId, error: RpcError) {
        let pages = pages_in(&error);
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let awaited = pages.iter().filter_map(|(elicitation, _)| elicitation.clone()).collect();
        if !operation.rounds.begin(pages.len()) {
            return self.finish(id, Err(error.into()));
        }
        operation.pages = Some(Pages { awaited, refusal: error });
        for (key, (_, params)) in pages.into_iter().enumerate() {
            let asker = Asker::Operation { operation: id, key: key.to_string() };
            self.ask(asker, "elicitation/create".to_owned(), Some(params));
        }
    }

    /// What the user decided about a page. `None` when the operation waits for none.
    pub(super) fn take_page_decision(&mut self, now: Millis, id: OperationId, answer: &RawJson) -> Option<()> {
        let pages = self.operations.get(&id)?.pages.as_ref()?;
        let action = Object::parse(answer.as_str()).ok().and_then(|answer| answer.string("action"));
        if action.as_deref() != Some("accept") {
            let refusal = Error::from(pages.refusal.clone());
            self.finish(id, Err(refusal));
            return Some(());
        }
        self.go_on_after_pages(now, id);
        Some(())
    }

    /// The server says that the user is done with a page.
    pub(super) fn page_completed(&mut self, now: Millis, params: Option<&RawJson>) {
        let object = params.and_then(|params| Object::parse(params.as_str()).ok());
        let Some(elicitation) = object.and_then(|object| object.string("elicitationId")) else { return };
        for id in self.operations.keys().copied().collect::<Vec<_>>() {
            let pages = self.operations.get_mut(&id).and_then(|operation| operation.pages.as_mut());
            if let Some(pages) = pages {
                pages.awaited.retain(|other| *other != elicitation);
                self.go_on_after_pages(now, id);
            }
        }
    }

    /// Whether an operation waits for a person who is on a page.
    pub(super) fn waits_for_page(&self, id: OperationId) -> bool {
        self.operations.get(&id).is_some_and(|operation| operation.pages.is_some())
    }

    /// Sends the request again when all was decided and all pages are done.
    fn go_on_after_pages(&mut self, now: Millis, id: OperationId) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let is_done = operation.pages.as_ref().is_some_and(|pages| pages.awaited.is_empty());
        if is_done && operation.rounds.is_answered() {
            operation.pages = None;
            operation.rounds.clear_answers();
            self.send_operation(now, id);
        }
    }
}

/// The id, where it has one, and the question of each page in the data of the error.
fn pages_in(error: &RpcError) -> Vec<(Option<String>, RawJson)> {
    let data = error.data.as_ref().and_then(|data| Object::parse(data.as_str()).ok());
    let pages = data.as_ref().and_then(|data| data.array("elicitations")).unwrap_or_default();
    let read = |page: &serde_json::value::RawValue| {
        let object = Object::parse(page.get()).ok()?;
        object.string("url")?;
        Some((object.string("elicitationId"), RawJson::from(page)))
    };
    pages.into_iter().filter_map(read).collect()
}
