use super::super::{Inbound, Outbound};
use crate::error::Error;
use crate::model::{HttpRequest, ResponseHead};
use crate::time::Millis;

/// Where the server is.
#[derive(Clone, Debug)]
pub struct StreamableHttpOptions {
    /// The address of the MCP endpoint.
    pub url: String,
    /// Whether to open the GET stream on which a handshake server sends what belongs to no request, such as changes of
    /// its tools. Default yes; it costs one connection.
    pub listen: bool,
}

impl StreamableHttpOptions {
    /// The endpoint at this address, with a listening stream.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), listen: true }
    }
}

/// Names one HTTP request and its answer. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub u64);

/// What happened outside of the machine. Inputs about an exchange that is over are ignored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// The client above wants something.
    Outbound(Outbound),
    /// The head of an answer came.
    Head {
        /// Which exchange.
        exchange: ExchangeId,
        /// Status and headers.
        head: ResponseHead,
    },
    /// Bytes of a body came.
    Bytes {
        /// Which exchange.
        exchange: ExchangeId,
        /// However the network cut them.
        bytes: Vec<u8>,
    },
    /// A body is at its end.
    End {
        /// Which exchange.
        exchange: ExchangeId,
    },
    /// There was no answer, or it broke off.
    Failed {
        /// Which exchange.
        exchange: ExchangeId,
        /// Why; of kind `network`, with the code [`OPAQUE_FAILURE`](super::super::OPAQUE_FAILURE) where the platform does not tell.
        error: Error,
    },
    /// An exchange is not sent yet, since tokens for it are being obtained.
    Authorizing {
        /// Which exchange.
        exchange: ExchangeId,
    },
    /// The timer of an exchange is due.
    Timer {
        /// Which exchange.
        exchange: ExchangeId,
    },
}

/// What the host must do. Exhaustive on purpose: every host handles all of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a request; answered by `Head`, any number of `Bytes` and `End`, or by `Failed`.
    Fetch {
        /// Names the exchange.
        exchange: ExchangeId,
        /// What to send. Holds no credentials of the caller; the host adds them.
        request: HttpRequest,
    },
    /// Stop an exchange at once. Not answered.
    Abort {
        /// Which exchange.
        exchange: ExchangeId,
    },
    /// Give [`Input::Timer`] at this moment. Each exchange has at most one timer.
    SetTimer {
        /// Which exchange.
        exchange: ExchangeId,
        /// When.
        at: Millis,
    },
    /// Forget the timer of an exchange.
    ClearTimer {
        /// Which exchange.
        exchange: ExchangeId,
    },
    /// Something for the client above. After [`Inbound::Closed`] there is no further effect.
    Deliver(Inbound),
}
