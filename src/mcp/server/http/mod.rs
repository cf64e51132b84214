//! Streamable HTTP from the side of a server, without I/O: what a request asks for, what its answer is, and what the streams
//! of a session carry (2025-11-25 and 2026-07-28, "Streamable HTTP").
//!
//! A host first lets a request in ([`Gate`]), then reads it ([`Rules::read`]), and either sends the [`Answer`] that is ready
//! or hands what is [`Asked`] to the server. Messages of the server go through the [`Streams`] of their session to the
//! responses that wait for them. `host::mcp::HttpHandler` does all of this for a server of one's own, and the HTTP front
//! of crablet-shim for its children.
//!
//! ```
//! use crablet::mcp::server::http::{Asked, Headers, Part, Rules};
//!
//! let headers = Headers::from_iter([
//!     ("content-type", &b"application/json"[..]),
//!     ("accept", b"application/json, text/event-stream"),
//! ]);
//! let body = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
//! let Ok(Asked::Request { part, .. }) = Rules::default().read("POST", &headers, body) else { panic!("a request") };
//! assert_eq!(part, Part::Opening);
//!
//! let refused = Rules::default().read("POST", &headers, b"[]").unwrap_err();
//! assert_eq!(refused.status, 400);
//! ```

mod answer;
mod event_log;
mod gate;
mod head;
mod headers;
mod message;
mod origin;
mod repeated;
mod request;
mod streams;

pub use answer::{Answer, event, opening_event, status_of};
pub use event_log::{EventId, Exchange};
pub use gate::{Gate, Hosts, preflight, readable_by};
pub use head::{Part, unsupported_version};
pub use headers::Headers;
pub use message::{Posted, PostedMessage, PostedRequest, read_message};
pub use origin::{NotAnOrigin, Origin};
pub use repeated::fits_arguments;
pub use request::{Asked, Rules};
pub use streams::{Lane, Piece, Streams};

/// A header says something else than the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32_020;

/// The header that names a session.
pub const SESSION: &str = "mcp-session-id";

/// As the official servers answer for a session that has ended.
const SESSION_NOT_FOUND: i64 = -32_001;

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
