use crate::mcp::transport::shim::{Hello, Token};
use crate::mcp::transport::{Inbound, Outbound};
use crate::time::Millis;

/// Where the server is and what opens the door.
#[derive(Clone, Debug)]
pub struct WebSocketOptions {
    /// The shim's address, `ws://<host>:<port>` with a loopback host.
    pub url: String,
    /// The server's name in the shim's configuration.
    pub server: String,
    /// The token that `crablet-shim grant` printed.
    pub token: Token,
    /// The origin that the platform sends with the handshake (`location.origin`); empty where it sends none.
    pub origin: String,
    /// The resume id of a process of an earlier client; `None` for a new process.
    pub resume: Option<String>,
}

/// What happened outside of the machine. Sockets are told apart by the number that [`Effect::Open`] gave them.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Start: opens the first socket.
    Connect,
    /// The client above wants something.
    Outbound(Outbound),
    /// A socket is open.
    Opened {
        /// Which one.
        socket: u64,
        /// The subprotocol that the peer chose; empty for none.
        subprotocol: String,
    },
    /// A WebSocket message came.
    Frame {
        /// On which socket.
        socket: u64,
        /// The whole message.
        bytes: Vec<u8>,
    },
    /// The handshake of a socket was answered with an HTTP status instead. Browsers do not tell; there it is an
    /// [`Input::Closed`].
    Refused {
        /// Which one.
        socket: u64,
        /// The status.
        status: u16,
    },
    /// A socket closed, broke or could not be opened.
    Closed {
        /// Which one.
        socket: u64,
        /// The close code, where there was a close frame.
        code: Option<u16>,
        /// The reason or the error's text; may be empty.
        reason: String,
    },
    /// The timer that was set last has run down.
    Timer,
}

/// What the host must do. Exhaustive on purpose: every host handles all of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Open a socket.
    Open {
        /// Its number, for the inputs about it.
        socket: u64,
        /// The address.
        url: String,
        /// The subprotocols to offer.
        subprotocols: Vec<String>,
    },
    /// Send a binary message.
    Send {
        /// On which socket.
        socket: u64,
        /// The whole message.
        bytes: Vec<u8>,
    },
    /// Close a socket, after what was sent; inputs about it are no longer of interest.
    Close {
        /// Which one.
        socket: u64,
    },
    /// Give [`Input::Timer`] at this moment. Replaces the timer before.
    SetTimer(Millis),
    /// No timer is wanted.
    ClearTimer,
    /// The shim said hello: after the first connection, and again after each reconnect.
    Attached(Hello),
    /// Something for the client above. After [`Inbound::Closed`] there is no further effect.
    Deliver(Inbound),
}
