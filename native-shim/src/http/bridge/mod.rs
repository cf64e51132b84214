//! One child and those who call it over HTTP, as a machine: messages of callers and lines of the child go in, lines for
//! the child and messages for callers come out.
//!
//! A child speaks one era and a caller the other or the same, which makes four ways ([`Bridge::new`]):
//!
//! | | stateless child | handshake child |
//! |---|---|---|
//! | stateless callers | [`stateless_relay`] | [`handshake_child`] |
//! | a handshake caller | [`handshake_caller`] | [`handshake_relay`] |

mod handshake_caller;
mod handshake_child;
mod handshake_relay;
mod listeners;
mod open_calls;
mod stateless_relay;
mod suspended;
#[cfg(test)]
mod tests;
mod tool_headers;
mod wire;

use std::collections::VecDeque;
use std::fmt;

use crablet::Millis;
use crablet::json::RawJson;
use crablet::jsonrpc::Params;
use crablet::mcp::server::http::{Exchange, PostedMessage};
use crablet::mcp::transport::shim::ServerEra;

use self::handshake_caller::HandshakeCaller;
use self::handshake_child::HandshakeChild;
use self::handshake_relay::HandshakeRelay;
use self::stateless_relay::StatelessRelay;
pub(crate) use self::wire::failure;
#[cfg(feature = "nats")]
pub(crate) use self::wire::{CAPABILITIES_KEY, VERSION_KEY, null};

/// A request of a caller. Its parameters have been checked as far as they concern the transport.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) exchange: Exchange,
    pub(crate) id: RawJson,
    pub(crate) method: String,
    pub(crate) params: Params,
    /// The `mcp-param-*` headers, in lower case; `None` where messages have none that could disagree with them.
    pub(crate) headers: Option<Vec<(String, String)>>,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    Call(Call),
    /// A notification, or the answer of a caller to a request of the child.
    Message(PostedMessage),
    /// A stateless caller closed the stream of its request, which cancels it.
    Left(Exchange),
    /// The child wrote a line.
    Child(String),
    /// The child has ended; a sentence that says how.
    ChildEnded(String),
    /// The time of [`Bridge::timer`] has come.
    Timer,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    /// A line for the child.
    ToChild(String),
    /// A message that does not end a request; without an exchange it belongs to none.
    ToCaller { exchange: Option<Exchange>, message: RawJson },
    /// The answer to a request.
    Answer { exchange: Exchange, message: RawJson },
    /// The caller wants no answer any more.
    Unanswered(Exchange),
}

/// Whose messages these are: everyone's with a token, or one session's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    Stateless,
    Handshake,
}

/// The machine.
pub(crate) struct Bridge {
    translation: Box<dyn Translation>,
    outputs: Outputs,
}

impl Bridge {
    /// A machine for a child that has just been started. The nonce makes what callers keep for it unlike what they kept
    /// for an earlier child.
    pub(crate) fn new(callers: Callers, child: ServerEra, nonce: &str) -> Self {
        let mut outputs = Outputs::default();
        let translation: Box<dyn Translation> = match (callers, child) {
            (Callers::Stateless, ServerEra::Stateless) => Box::new(StatelessRelay::default()),
            (Callers::Stateless, ServerEra::Handshake) => Box::new(HandshakeChild::new(nonce, &mut outputs)),
            (Callers::Handshake, ServerEra::Stateless) => Box::new(HandshakeCaller::default()),
            (Callers::Handshake, ServerEra::Handshake) => Box::new(HandshakeRelay::default()),
        };
        Self { translation, outputs }
    }

    /// Takes what happened.
    pub(crate) fn handle(&mut self, now: Millis, input: Input) {
        self.translation.handle(now, input, &mut self.outputs);
    }

    /// The next thing to do.
    pub(crate) fn poll(&mut self) -> Option<Output> {
        self.outputs.0.pop_front()
    }

    /// When [`Input::Timer`] is due, if it is.
    pub(crate) fn timer(&self) -> Option<Millis> {
        self.translation.timer()
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Bridge").finish_non_exhaustive()
    }
}

/// One of the four ways.
trait Translation: Send {
    fn handle(&mut self, now: Millis, input: Input, outputs: &mut Outputs);

    fn timer(&self) -> Option<Millis> {
        None
    }
}

/// What is to be done, in order.
#[derive(Debug, Default)]
struct Outputs(VecDeque<Output>);

impl Outputs {
    fn child(&mut self, message: &RawJson) {
        self.0.push_back(Output::ToChild(message.as_str().to_owned()));
    }

    fn caller(&mut self, exchange: Option<Exchange>, message: RawJson) {
        self.0.push_back(Output::ToCaller { exchange, message });
    }

    fn answer(&mut self, exchange: Exchange, message: RawJson) {
        self.0.push_back(Output::Answer { exchange, message });
    }

    fn unanswered(&mut self, exchange: Exchange) {
        self.0.push_back(Output::Unanswered(exchange));
    }
}
