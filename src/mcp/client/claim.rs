//! Answers to calls that an earlier client of the same server process made: what was asked by a client that is gone can
//! be claimed by the next one, since both make the same request id of the same key.

use super::super::transport::RequestId;
use super::{Client, OperationId, Pending};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::jsonrpc::RpcError;
use crate::time::Millis;

/// The most answers that are kept for claims. A client had at most as many calls under way as its agents had tools at work.
const UNCLAIMED_LIMIT: usize = 64;

/// The most bytes that they have together.
const UNCLAIMED_BYTES: usize = 16 * 1024 * 1024;

/// Before the key, so that no number of a client is like it.
const ID_PREFIX: &str = "call-";

/// The request id of the call that has this key.
pub(super) fn request_id(key: &str) -> RequestId {
    RequestId::Text(format!("{ID_PREFIX}{key}"))
}

/// What came for calls of an earlier client.
#[derive(Debug, Default)]
pub(super) struct Unclaimed {
    /// Whether there was one.
    pub(super) is_resumed: bool,
    /// The oldest first.
    answers: Vec<(RequestId, Answer)>,
    bytes: usize,
}

type Answer = Result<RawJson, RpcError>;

impl Unclaimed {
    /// Whether this may be the answer to a call that is claimed later.
    pub(super) fn is_expected(&self, id: &RequestId) -> bool {
        self.is_resumed && matches!(id, RequestId::Text(text) if text.starts_with(ID_PREFIX))
    }

    /// Keeps an answer. Whether all that came before are kept too; otherwise the oldest are gone.
    pub(super) fn keep(&mut self, id: RequestId, answer: Answer) -> bool {
        self.bytes = self.bytes.saturating_add(size(&answer));
        self.answers.push((id, answer));
        let kept = self.answers.len();
        while self.answers.len() > UNCLAIMED_LIMIT || self.bytes > UNCLAIMED_BYTES {
            let (_, oldest) = self.answers.remove(0);
            self.bytes = self.bytes.saturating_sub(size(&oldest));
        }
        self.answers.len() == kept
    }

    pub(super) fn take(&mut self, id: &RequestId) -> Option<Answer> {
        let index = self.answers.iter().position(|(kept, _)| kept == id)?;
        let (_, answer) = self.answers.remove(index);
        self.bytes = self.bytes.saturating_sub(size(&answer));
        Some(answer)
    }
}

fn size(answer: &Answer) -> usize {
    answer.as_ref().map_or_else(|error| error.message.len(), |result| result.as_str().len())
}

impl Client {
    /// Waits for the answer to a call that an earlier client sent.
    pub(super) fn claim(&mut self, now: Millis, id: OperationId, key: &str) {
        let wire = request_id(key);
        if !self.unclaimed.is_resumed || self.pending.contains_key(&wire) {
            let message = "the process that the MCP server ran in at the time of the call is gone";
            return self.finish(id, Err(Error::new(ErrorKind::ConnectionClosed, message)));
        }
        self.sent(now, id, wire.clone());
        match self.unclaimed.take(&wire) {
            Some(answer) => self.answer(now, id, None, answer),
            None => drop(self.pending.insert(wire, Pending::Operation(id))),
        }
    }
}
