//! Hearing of changes from a stateless server (revision 2026-07-28, "subscriptions/listen"). A handshake server tells of
//! them by itself.

use super::super::protocol::Era;
use super::super::transport::RequestId;
use super::{Client, Effect, Pending, Phase, TimerId};
use crate::jsonrpc::Params;
use crate::time::Millis;

/// The wait before a stream that ended is opened again, in milliseconds; doubled each time.
const FIRST_WAIT: u64 = 1_000;

/// How often in a row the stream is opened again without a single message on it.
const ATTEMPT_LIMIT: u32 = 4;

/// The open subscription.
#[derive(Debug, Default)]
pub(super) struct Listening {
    request: Option<RequestId>,
    has_timer: bool,
    /// How often it ended since something was heard on it.
    attempts: u32,
}

impl Client {
    /// Subscribes to the changes that the server says it tells of.
    pub(super) fn listen(&mut self) {
        let Phase::Ready { era: Era::Stateless, .. } = self.phase else { return };
        let Some(capabilities) = &self.server.capabilities else { return };
        if !self.options.listen || !capabilities.has_part("tools", "listChanged") {
            return;
        }
        let params = Params::new().with("notifications", &Params::new().with("toolsListChanged", &true));
        let id = self.send_request(Era::Stateless, Pending::Listen, "subscriptions/listen", params);
        self.listening.request = Some(id);
    }

    /// Something came on this request's stream.
    pub(super) fn heard(&mut self, request: Option<&RequestId>) {
        if request.is_some() && self.listening.request.as_ref() == request {
            self.listening.attempts = 0;
        }
    }

    /// The subscription ended, in good order or not. A server that refused it is not asked again.
    pub(super) fn listening_ended(&mut self, now: Millis, is_refused: bool) {
        self.listening.request = None;
        if is_refused || self.listening.attempts >= ATTEMPT_LIMIT {
            return;
        }
        let at = now.after(FIRST_WAIT << self.listening.attempts);
        self.listening.attempts += 1;
        self.listening.has_timer = true;
        self.effects.push_back(Effect::SetTimer { timer: TimerId::Listen, at });
    }

    pub(super) fn listen_again(&mut self) {
        self.listening.has_timer = false;
        self.listen();
    }

    /// Forgets the subscription; its request is cancelled with the connection.
    pub(super) fn stop_listening(&mut self) {
        if std::mem::take(&mut self.listening).has_timer {
            self.effects.push_back(Effect::ClearTimer(TimerId::Listen));
        }
    }
}
