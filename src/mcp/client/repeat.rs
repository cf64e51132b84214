//! Calls whose answer was lost, and that do no harm a second time.

use super::{Client, OperationId, Request};
use crate::error::{Error, ErrorKind};
use crate::time::Millis;

impl Client {
    /// Whether a call may be sent again that ended so: its answer was lost on the way, and its tool says in the list that it
    /// only reads, or that a second time changes nothing. Once for each call. Every other one may have been done, and is not
    /// sent again.
    pub(super) fn may_repeat(&self, id: OperationId, error: &Error) -> bool {
        let is_lost =
            matches!(error.kind(), ErrorKind::Network | ErrorKind::ConnectionClosed | ErrorKind::StreamTruncated);
        let operation = self.operations.get(&id).filter(|operation| is_lost && !operation.was_repeated);
        let Some(Request::CallTool { name, .. }) = operation.map(|operation| &operation.request) else { return false };
        let annotations = self.tools.get(name).map(|tool| &tool.annotations);
        annotations.is_some_and(|says| says.read_only == Some(true) || says.idempotent == Some(true))
    }

    /// Sends it again.
    pub(super) fn repeat(&mut self, now: Millis, id: OperationId, error: &Error) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.was_repeated = true;
        let message = format!(
            "{} had no answer ({error}); its tool allows a second call, and it is called again",
            operation.request
        );
        self.warn(message);
        self.send_operation(now, id);
    }
}
