//! The contract between an MCP client and whatever carries its messages.
//!
//! A transport is not a message pipe: it knows which answer belongs to which request, when a request's stream ended, and
//! why a connection closed. All transports are machines of this contract; the host performs their I/O.

#[cfg(feature = "shim")]
pub mod shim;
#[cfg(feature = "shim")]
pub mod websocket;

pub use crate::jsonrpc::RequestId;
pub use crate::mcp::protocol::{Era, Revision};

pub mod streamable_http;

use crate::error::Error;
use crate::json::RawJson;

/// The code of a `network` error about which the platform tells nothing: a host sets it where the cause may as well be
/// CORS as a server that is down.
pub const OPAQUE_FAILURE: &str = "opaque";

/// How long a listening stream must have stood to count as one that works, in milliseconds. That something came on it is no sign:
/// a server that cannot keep it open acknowledges it first.
pub(super) const STEADY: u64 = 10_000;

/// What a client asks of its transport.
#[derive(Clone, Debug, PartialEq)]
pub enum Outbound {
    /// Send a request and deliver what comes back for it.
    Request {
        /// The request's JSON-RPC id; also names it on this contract.
        id: RequestId,
        /// The whole JSON-RPC message.
        message: RawJson,
        /// The era the message was written for.
        era: Era,
        /// Further headers (`mcp-method`, `mcp-name`, `mcp-param-*`); ignored by transports without headers.
        headers: Vec<(String, String)>,
        /// Whether this is `initialize`: it is sent outside of any session, and its answer may open one.
        opens_session: bool,
    },
    /// Send a notification, or the answer to a request of the server.
    Notify {
        /// The whole JSON-RPC message.
        message: RawJson,
        /// The era the message was written for.
        era: Era,
        /// Further headers.
        headers: Vec<(String, String)>,
    },
    /// The client no longer wants the answer of this request. In the stateless era an HTTP transport aborts the fetch;
    /// elsewhere the client sends the notification and this only frees what is held.
    Cancel {
        /// The request.
        id: RequestId,
    },
    /// End the connection in good order.
    Close,
}

/// What a transport tells its client.
#[derive(Clone, Debug, PartialEq)]
pub enum Inbound {
    /// A message came.
    Message {
        /// The request on whose stream it came, where the transport knows.
        request_id: Option<RequestId>,
        /// The HTTP status it came with, where there was one.
        status: Option<u16>,
        /// The whole JSON-RPC message, or a batch of them.
        message: RawJson,
    },
    /// Something came on a request's own stream that is no message, such as a comment that keeps it open: the server is
    /// at work. Timeouts are the client's affair.
    Activity {
        /// The request.
        request_id: RequestId,
    },
    /// Tokens for this request are being obtained, which may need a person: no answer can come meanwhile.
    Authorizing {
        /// The request.
        request_id: RequestId,
    },
    /// Nothing more will come on this request's own stream. After its answer this is of no interest; before it the
    /// request has failed, unless the client resumes.
    RequestEnded {
        /// The request.
        id: RequestId,
        /// Why.
        reason: Result<(), Error>,
    },
    /// Something that whoever runs this should know, though nothing failed.
    Warning(String),
    /// The connection is over; every open request has failed.
    Closed {
        /// Why.
        reason: Error,
        /// The exit code of the server's process, where there is one.
        exit_code: Option<i32>,
        /// The last lines the process wrote to its error output.
        stderr_tail: Option<String>,
    },
}
