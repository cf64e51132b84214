use std::collections::VecDeque;

use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::mcp::transport::RequestId;
use crate::mcp::transport::shim::{MAX_MESSAGE_BYTES, WINDOW_BYTES, WINDOW_FRAMES};

/// Messages that could not be sent yet: there is no connection at the moment, or the server takes no more. No more wait
/// than can be under way.
#[derive(Debug, Default)]
pub(super) struct WaitingMessages {
    messages: VecDeque<(Option<RequestId>, RawJson)>,
    bytes: usize,
}

impl WaitingMessages {
    /// Adds a message, of this request if it is one.
    ///
    /// # Errors
    ///
    /// `limit` when the message is too long or too many wait.
    pub(super) fn push(&mut self, id: Option<RequestId>, message: RawJson) -> Result<(), Error> {
        let bytes = message.as_str().len();
        if bytes > MAX_MESSAGE_BYTES {
            let message =
                format!("the message has {bytes} bytes; the longest that the shim takes is {MAX_MESSAGE_BYTES}");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        if self.messages.len() >= WINDOW_FRAMES || self.bytes + bytes > WINDOW_BYTES {
            let message = format!(
                "{} messages wait for a server that takes no more; wait for answers before sending further ones",
                self.messages.len()
            );
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.bytes += bytes;
        self.messages.push_back((id, message));
        Ok(())
    }

    /// Takes the oldest message out, if one of its length fits.
    pub(super) fn pop_if(&mut self, fits: impl FnOnce(usize) -> bool) -> Option<RawJson> {
        let bytes = self.messages.front()?.1.as_str().len();
        if !fits(bytes) {
            return None;
        }
        self.bytes -= bytes;
        self.messages.pop_front().map(|(_, message)| message)
    }

    /// Forgets a request that nobody waits for any more.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        self.messages.retain(|(waiting, _)| waiting.as_ref() != Some(id));
        self.bytes = self.messages.iter().map(|(_, message)| message.as_str().len()).sum();
    }
}
