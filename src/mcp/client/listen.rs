//! Hearing of changes: in the stateless era one request stays open for all of them (revision 2026-07-28,
//! "subscriptions/listen"); a handshake server tells of its lists by itself and is asked for each resource.

use super::super::protocol::{Capabilities, Era};
use super::super::transport::{Outbound, RequestId, STEADY};
use super::{Client, Effect, OperationId, Pending, Phase, Reply, Request, TimerId};
use crate::jsonrpc::Params;
use crate::time::Millis;

/// The wait before a stream that ended is opened again, in milliseconds; doubled each time.
const FIRST_WAIT: u64 = 1_000;

/// How often in a row the stream is opened again when it ends soon: for a little more than four minutes.
const ATTEMPT_LIMIT: u32 = 8;

/// The capability, and the member that asks for changes of its list.
const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// The open subscription.
#[derive(Debug, Default)]
pub(super) struct Listening {
    request: Option<RequestId>,
    has_timer: bool,
    /// When it was asked for.
    since: Millis,
    /// How often in a row it ended soon.
    attempts: u32,
}

impl Client {
    /// Subscribes to what the server says it tells of and to what the caller wants to hear.
    pub(super) fn listen(&mut self, now: Millis) {
        match self.phase {
            Phase::Ready { era: Era::Stateless, .. } => self.open_stream(now),
            Phase::Ready { era, .. } => self.ask_again(era),
            _ => {}
        }
    }

    fn open_stream(&mut self, now: Millis) {
        let told = |capability| {
            let capabilities: Option<&Capabilities> = self.server.capabilities.as_ref();
            capabilities.is_some_and(|capabilities| capabilities.has_part(capability, "listChanged"))
        };
        let mut wanted = Params::new();
        for (capability, member) in LISTS {
            if self.options.listen && told(capability) {
                wanted.set(member, &true);
            }
        }
        let resources = &self.options.standing.resources;
        if !resources.is_empty() {
            wanted.set("resourceSubscriptions", resources);
        }
        if wanted.is_empty() {
            return;
        }
        let params = Params::new().with("notifications", &wanted);
        let id = self.send_request(Era::Stateless, Pending::Listen, "subscriptions/listen", params);
        self.listening.request = Some(id);
        self.listening.since = now;
    }

    /// A new session knows nothing of what an earlier one was asked to keep up.
    fn ask_again(&mut self, era: Era) {
        let standing = self.options.standing.clone();
        if let Some(level) = standing.log_level {
            self.send_request(era, Pending::Aside, "logging/setLevel", Params::new().with("level", &level));
        }
        for uri in &standing.resources {
            self.send_request(era, Pending::Aside, "resources/subscribe", Params::new().with("uri", uri));
        }
    }

    /// Notes what a request asks to be kept up. A stateless server is told with every request, so that the operation is
    /// done at once.
    pub(super) fn keep_up(&mut self, now: Millis, operation: OperationId) {
        let request = self.operations.get(&operation).map(|operation| operation.request.clone());
        let standing = &mut self.options.standing;
        let changes_stream = match request {
            Some(Request::SetLogLevel(level)) => {
                standing.log_level = Some(level);
                false
            }
            Some(Request::Subscribe { uri, wanted }) => {
                let had_it = standing.resources.contains(&uri);
                standing.resources.retain(|other| *other != uri);
                if wanted {
                    standing.resources.push(uri);
                }
                had_it != wanted
            }
            _ => return,
        };
        if matches!(self.phase, Phase::Ready { era: Era::Stateless, .. }) {
            if changes_stream {
                self.close_stream();
                self.open_stream(now);
            }
            self.finish(operation, Ok(Reply::Value(Params::new().to_raw())));
        }
    }

    /// Ends the open stream, where there is one.
    fn close_stream(&mut self) {
        let Some(id) = self.listening.request.take() else { return };
        self.pending.remove(&id);
        self.tell_cancelled(&id, "another subscription takes its place");
        self.effects.push_back(Effect::Send(Outbound::Cancel { id }));
    }

    /// The server takes back that it tells of changes, where no stream ends that would say so.
    pub(super) fn server_stopped_listening(&mut self, now: Millis, id: &RequestId) {
        let ended = self.listening.request.take_if(|open| open.matches(id));
        if let Some(id) = ended {
            self.pending.remove(&id);
            self.effects.push_back(Effect::Send(Outbound::Cancel { id }));
            self.listening_ended(now, false);
        }
    }

    /// The subscription ended, in good order or not. A server that refused it is not asked again.
    pub(super) fn listening_ended(&mut self, now: Millis, is_refused: bool) {
        self.listening.request = None;
        if now.since(self.listening.since) >= STEADY {
            self.listening.attempts = 0;
        }
        if is_refused || self.listening.attempts >= ATTEMPT_LIMIT {
            if !self.options.standing.resources.is_empty() {
                self.warn("the MCP server does not tell of changed resources; read them again when they matter");
            }
            return;
        }
        let at = now.after(FIRST_WAIT << self.listening.attempts);
        self.listening.attempts += 1;
        self.listening.has_timer = true;
        self.effects.push_back(Effect::SetTimer { timer: TimerId::Listen, at });
    }

    pub(super) fn listen_again(&mut self, now: Millis) {
        self.listening.has_timer = false;
        if self.listening.request.is_none() {
            self.listen(now);
        }
    }

    /// Forgets the subscription; its request is cancelled with the connection.
    pub(super) fn stop_listening(&mut self) {
        if std::mem::take(&mut self.listening).has_timer {
            self.effects.push_back(Effect::ClearTimer(TimerId::Listen));
        }
    }
}
