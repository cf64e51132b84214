//! What crablet-shim and its clients have in common: tokens, the handshake proof and the frames of `crablet.v1`.
//!
//! # The connection, from the first byte
//!
//! 1. The client opens `ws://127.0.0.1:6735/servers/<name>` and offers two subprotocols: [`SUBPROTOCOL`] and the
//!    proof `crablet.proof.<key-id>.<nonce>.<ms>.<mac>` ([`ClientProof`]). The token itself never travels.
//! 2. The shim checks peer, path, `Host`, `Origin` and proof in that order, answers with [`SUBPROTOCOL`], and its first
//!    frame is its own proof over the client's nonce. A client sends nothing before it has checked that.
//! 3. The client sends an [`Attach`] frame: a new process, or the one it had before.
//! 4. The shim answers with a [`Hello`] frame, or with a [`FrameKind::Gone`] frame when that process is no more.
//! 5. Both sides exchange numbered [`FrameKind::Message`] frames, each one JSON-RPC message as the other side wrote it.
//!    Every frame names the last number its sender has seen; what was not seen is sent again after a reconnect
//!    ([`Link`]).
//! 6. When the process ends, its [`Exit`] frame follows its last message. [`FrameKind::End`] from the client stops the
//!    process; a socket that merely breaks leaves it alive for the grace that the hello named.
//!
//! # A page that offers tools
//!
//! With a token that allows it, a client opens [`EXPOSING_PATH`] in the same way; its proof names the empty server. It then is
//! the MCP server and the shim the client: the messages that come are requests. The hello names no era and no result of
//! `initialize`. What becomes of the offered tools is told with the notification `notifications/crablet/exposed`. A page that
//! leaves ([`FrameKind::End`], or the close codes 1000 and 1001) has no grace.
//!
//! # How a client gets its token
//!
//! `crablet-shim grant` prints one to copy. Or `crablet-shim pair` shows a [`PairingCode`], which a person types into the
//! page: the client opens [`PAIRING_PATH`] with [`PAIRING_SUBPROTOCOL`], sends a [`PairRequest`], and gets a [`PairAnswer`].
//! Each proves that it knows the code, and both derive the token from it; neither travels.
//!
//! # A frame
//!
//! Every frame is one binary WebSocket message:
//!
//! | bytes | what |
//! |---|---|
//! | 0 | the kind ([`FrameKind`]) |
//! | 1–8 | the frame's number, big-endian; 0 when the frame is not numbered |
//! | 9–16 | the last number that the sender has seen, big-endian |
//! | 17– | the payload, UTF-8 |
//!
//! Numbers start at 1 in each direction and grow by one. A receiver skips frames of a kind it does not know.

//!
//! # Over native messaging
//!
//! A browser that starts the shim for an extension (`crablet-shim native-messaging`) carries the same frames as JSON,
//! each behind its length ([`NativeMessageReader`]). `channel` is a number that the extension gives each connection, and
//! never again to another in the same process:
//!
//! | from | message |
//! |---|---|
//! | the extension | `{"type":"open","channel":1,"server":"<name>","protocols":[…]}`: the subprotocols of step 1 |
//! | the shim | `{"type":"open","channel":1}`, or `{"type":"refused","channel":1,"reason":"…"}` |
//! | both | `{"type":"frame","channel":1,"data":"<base64>"}` |
//! | the shim | with `"more":true`, since a browser takes 1 MiB at a time: the channel's next frame message continues it |
//! | both | `{"type":"close","channel":1}` |
//! | the shim | `{"type":"failed","reason":"…"}`, last: it cannot go on |
//!
//! The browser vouches for the extension, so that the proofs are made with a token that everybody knows
//! ([`NATIVE_MESSAGING_TOKEN`]). The shim ends with its connection to the browser, and all its servers with it: the grace
//! of a hello is 0.

mod frame;
mod hello;
mod link;
mod native_messaging;
mod pairing;
mod proof;
mod token;

pub use frame::{Frame, FrameKind, MAX_FRAME_BYTES, MAX_MESSAGE_BYTES};
pub use hello::{Attach, Exit, Hello, ServerEra};
pub use link::{Link, Receipt, WINDOW_BYTES, WINDOW_FRAMES};
pub use native_messaging::{
    MAX_BROWSER_MESSAGE_BYTES, MAX_HOST_MESSAGE_BYTES, NATIVE_MESSAGING_TOKEN, NativeMessageReader,
    write_native_message,
};
pub use pairing::{PAIRING_PATH, PAIRING_SUBPROTOCOL, PairAnswer, PairContext, PairRequest, PairingCode};
pub use proof::{ClientProof, MAX_PROOF_AGE, ProofContext, server_proof, verify_server_proof};
pub use token::Token;

use crate::percent;

/// The subprotocol that both sides speak after the handshake.
pub const SUBPROTOCOL: &str = "crablet.v1";

/// The TCP port that the shim listens on unless it is told another.
pub const DEFAULT_PORT: u16 = 6735;

/// The path at which a client offers tools of its own to local agents.
pub const EXPOSING_PATH: &str = "/expose";

/// The path of a configured server, percent-encoded: `/servers/<name>`.
pub fn server_path(server: &str) -> String {
    ["/servers/", &percent::encode(server)].concat()
}

/// The path of a configured server for Streamable HTTP, percent-encoded: `/mcp/<name>`.
pub fn http_path(server: &str) -> String {
    ["/mcp/", &percent::encode(server)].concat()
}

#[cfg(test)]
mod tests {
    use super::{http_path, server_path};

    #[test]
    fn names_are_percent_encoded() {
        assert_eq!(server_path("files-2.0_x"), "/servers/files-2.0_x");
        assert_eq!(server_path("a b/\u{e9}"), "/servers/a%20b%2F%C3%A9");
        assert_eq!(http_path("a b"), "/mcp/a%20b");
    }
}
