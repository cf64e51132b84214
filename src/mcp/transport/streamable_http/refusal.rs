//! What an answer with another status than 2xx means.

use super::super::OPAQUE_FAILURE;
use crate::error::{Error, ErrorKind};
use crate::json::quoted;
use crate::jsonrpc::{Message, RpcError, code};

/// The JSON-RPC error in the body of a refusal.
pub(super) fn rpc_error(body: &str) -> Option<RpcError> {
    let messages = Message::parse(body).ok()?;
    messages.into_iter().find_map(|message| match message {
        Message::Response { outcome: Err(error), .. } => Some(error),
        _ => None,
    })
}

/// Whether the server means that it does not know the session.
///
/// 404 is what the specification says, unless it is the stateless answer for an unknown method; 400 with a word about
/// the session is what many servers send, not all of them as JSON-RPC.
pub(super) fn is_about_session(status: u16, error: Option<&RpcError>, body: &str) -> bool {
    match status {
        404 => error.is_none_or(|error| error.code != code::METHOD_NOT_FOUND),
        // A parameter can be a session too.
        400 if error.is_some_and(|error| error.code == code::INVALID_PARAMS) => false,
        400 => {
            let said = error.map_or(body, |error| error.message.as_str()).to_ascii_lowercase();
            said.contains("session") || said.contains("not initialized")
        }
        _ => false,
    }
}

/// The error for a status without a JSON-RPC body.
pub(super) fn from_status(status: u16, retry_after: Option<u64>) -> Error {
    let (kind, what) = match status {
        401 => (
            ErrorKind::Auth,
            "the MCP server wants a token, or did not accept the one given; give one in the headers, or the option auth",
        ),
        403 => (ErrorKind::Auth, "the MCP server does not allow this, or not from this origin"),
        404 => (ErrorKind::BadRequest, "there is no MCP server at this address; check its path"),
        405 => (ErrorKind::BadRequest, "the address takes no MCP requests over Streamable HTTP; check its path"),
        408 | 504 => (ErrorKind::Timeout, "the MCP server, or a proxy before it, ran out of time"),
        413 => (ErrorKind::Limit, "the message is larger than the MCP server takes"),
        429 => (ErrorKind::RateLimit, "the MCP server is asked too often"),
        503 => (ErrorKind::Overloaded, "the MCP server has no capacity at the moment"),
        300..=399 => (ErrorKind::BadRequest, "the MCP server is at another address, which was not followed"),
        500.. => (ErrorKind::Server, "the MCP server failed"),
        _ => (ErrorKind::BadRequest, "the MCP server refused the request"),
    };
    let error = Error::new(kind, format!("{what} (HTTP {status})")).with_status(status);
    match retry_after {
        Some(milliseconds) => error.with_retry_after(milliseconds),
        None => error,
    }
}

/// A redirect to another origin, or one that would turn the request into another. It names the address to use, without what may
/// be secret in it: behind proxies that end TLS, servers often lead from `/mcp` to `http://…/mcp/`.
pub(super) fn elsewhere(status: u16, location: &str) -> Error {
    let address = location.split(['?', '#']).next().unwrap_or_default();
    let message = format!(
        "the MCP server is at another address, {}, which was not followed; use that one, with https (HTTP {status})",
        quoted(address)
    );
    Error::new(ErrorKind::BadRequest, message).with_status(status)
}

/// The session that the request was sent in is gone.
pub(super) fn session_expired(status: u16) -> Error {
    let message = format!("the MCP server no longer knows the session (HTTP {status})");
    Error::new(ErrorKind::SessionExpired, message).with_status(status)
}

/// A request of a session whose id this side never saw.
pub(super) fn session_unseen(status: u16, said: &str) -> Error {
    let message = format!(
        "the MCP server wants a session id, and its answer to initialize showed none (HTTP {status}: {said}). In a browser \
         {CORS_RULES}"
    );
    Error::new(ErrorKind::BadRequest, message).with_status(status)
}

/// What a page needs of a server with sessions.
const CORS_RULES: &str = "the server must list Mcp-Session-Id in Access-Control-Expose-Headers, and content-type, \
    mcp-session-id, mcp-protocol-version and last-event-id in Access-Control-Allow-Headers";

/// A request after `initialize` failed, and the platform does not tell why.
pub(super) fn opaque(error: &Error) -> Error {
    let message =
        format!("{error}. The server did answer initialize, so its CORS rules may be the reason: {CORS_RULES}");
    Error::new(error.kind(), message).with_code(OPAQUE_FAILURE)
}

/// The answer's stream broke, and asking for the rest of it brought something else.
pub(super) fn not_resumed(status: u16) -> Error {
    let message = format!("the answer's stream broke and the server did not resume it (HTTP {status})");
    Error::new(ErrorKind::ConnectionClosed, message).with_status(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_lost_by_404_and_by_400_that_says_so() {
        let error = |code, message: &str| Some(RpcError::new(code, message));
        assert!(is_about_session(404, None, ""));
        assert!(is_about_session(404, error(-32001, "Session not found").as_ref(), ""));
        assert!(!is_about_session(404, error(code::METHOD_NOT_FOUND, "Method not found").as_ref(), ""));
        assert!(is_about_session(400, error(-32000, "Bad Request: No valid session ID provided").as_ref(), ""));
        assert!(is_about_session(400, error(-32000, "Bad Request: Server not initialized").as_ref(), ""));
        assert!(is_about_session(400, None, "Invalid or missing session ID"));
        assert!(!is_about_session(400, error(-32602, "Invalid arguments: no session_id").as_ref(), ""));
        assert!(!is_about_session(400, None, "") && !is_about_session(500, None, ""));
    }
}
