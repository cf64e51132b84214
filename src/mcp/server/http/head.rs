//! The headers of the protocol: which era a message is of, and whether the headers say what the body says.

use super::super::dispatch::{CAPABILITIES_KEY, UNSUPPORTED_VERSION, VERSION_KEY};
use super::{HEADER_MISMATCH, Headers, METHOD, NAME, SESSION, VERSION};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{Params, RpcError, code};
use crate::mcp::protocol::{Revision, STATELESS_VERSION};
use crate::mcp::transport::streamable_http::mirrored::decode;

/// What a message is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// It stands alone, and its headers fit.
    Stateless,
    /// It is of the handshake era and of no session, where there are none. Gives the revision that it names.
    Unbound(Revision),
    /// The start of a session.
    Opening,
    /// The session of this id.
    Session(String),
}

/// Whether the media types of a request are what its method needs.
///
/// # Errors
///
/// The status that says what is wrong.
pub(super) fn check_media(method: &str, headers: &Headers<'_>) -> Result<(), u16> {
    let accepts = |wanted: &str| {
        let family = wanted.split_once('/').map_or(wanted, |(family, _)| family);
        headers.texts("accept").flat_map(|value| value.split(',')).map(media_type).any(|offered| {
            offered == wanted || offered == "*/*" || offered.strip_suffix("/*").is_some_and(|offered| offered == family)
        })
    };
    if method == "POST" {
        let is_json = headers.texts("content-type").next().map(media_type);
        if is_json.as_deref() != Some("application/json") || headers.has("content-encoding") {
            return Err(415);
        }
    }
    let is_fine = accepts("text/event-stream") && (method != "POST" || accepts("application/json"));
    if is_fine || method == "DELETE" { Ok(()) } else { Err(406) }
}

/// Tells what a message is part of.
///
/// # Errors
///
/// What is wrong, which is answered with 400.
pub(super) fn part_of(
    headers: &Headers<'_>,
    method: Option<&str>,
    params: &Params,
    has_sessions: bool,
) -> Result<Part, RpcError> {
    let version = headers.once(VERSION)?;
    let session = headers.once(SESSION)?.filter(|_| has_sessions);
    let meta = params.member("_meta").map(object).unwrap_or_default();
    let is_stateless = meta.member(VERSION_KEY).is_some() || version == Some(STATELESS_VERSION);
    let is_known = |version: &str| Revision::from_name(version).is_some();
    match (session, version) {
        _ if is_stateless => {}
        (_, Some(version)) if !is_known(version) && (session.is_some() || !has_sessions) => {
            return Err(unsupported_version(version));
        }
        // Who names no revision is of the last one that did not have to (2025-11-25, "Protocol Version Header").
        _ if !has_sessions => {
            return Ok(Part::Unbound(version.and_then(Revision::from_name).unwrap_or(Revision::V2025_03_26)));
        }
        (Some(_), _) if method == Some("initialize") => {
            return Err(invalid("the session is initialized already; send initialize without its id for another"));
        }
        (Some(session), _) => return Ok(Part::Session(session.to_owned())),
        (None, _) if method == Some("initialize") => return Ok(Part::Opening),
        (None, Some(version)) if !is_known(version) => {}
        (None, _) => {
            return Err(invalid(
                "the request belongs to no session: send initialize first, or say in _meta and in the headers that it \
                 is of the revision 2026-07-28",
            ));
        }
    }
    if let Some(method) = method {
        check_stateless(headers, version, method, params, &meta)?;
    }
    Ok(Part::Stateless)
}

/// Whether a stateless request says all that it has to, and its headers the same.
fn check_stateless(
    headers: &Headers<'_>,
    version: Option<&str>,
    method: &str,
    params: &Params,
    meta: &Params,
) -> Result<(), RpcError> {
    let missing =
        |key: &str, what: &str| RpcError::new(code::INVALID_PARAMS, format!("_meta lacks {key}, which is {what}"));
    let named = text(meta, VERSION_KEY).ok_or_else(|| missing(VERSION_KEY, "the protocol's version"))?;
    let capabilities = meta.member(CAPABILITIES_KEY).filter(|value| value.as_str().starts_with('{'));
    capabilities.ok_or_else(|| missing(CAPABILITIES_KEY, "an object, if an empty one"))?;
    let mismatch = |header: &str, said: Option<&str>, meant: &str| {
        let said = said.map_or("is missing".to_owned(), |said| format!("says {said:?}"));
        RpcError::new(HEADER_MISMATCH, format!("the header {header} {said}, and the body {meant:?}"))
    };
    if version != Some(&named) {
        return Err(mismatch(VERSION, version, &named));
    }
    if named != STATELESS_VERSION {
        return Err(unsupported_version(&named));
    }
    let said = headers.once(METHOD)?;
    if said != Some(method) {
        return Err(mismatch(METHOD, said, method));
    }
    let subject = match method {
        "tools/call" | "prompts/get" => text(params, "name"),
        "resources/read" => text(params, "uri"),
        _ => None,
    };
    // What is without a name is refused by the server.
    let Some(subject) = subject else { return Ok(()) };
    let said = headers.once(NAME)?;
    if said.and_then(decode).as_ref() == Some(&subject) { Ok(()) } else { Err(mismatch(NAME, said, &subject)) }
}

/// The headers that repeat arguments of a tool.
///
/// # Errors
///
/// When one is there twice or is no ASCII.
pub(super) fn repeated_arguments(headers: &Headers<'_>) -> Result<Vec<(String, String)>, RpcError> {
    let mut found = Vec::new();
    for name in headers.names("mcp-param-") {
        if let Some(value) = headers.once(&name)? {
            found.push((name, value.to_owned()));
        }
    }
    Ok(found)
}

/// Whether a request without a body is of the stateless era.
pub(super) fn is_stateless(headers: &Headers<'_>) -> bool {
    headers.text(VERSION) == Some(STATELESS_VERSION)
}

/// The refusal of a revision, with those that are spoken.
pub fn unsupported_version(version: &str) -> RpcError {
    let supported = [STATELESS_VERSION];
    let data = Params::new().with("supported", &supported).with("requested", version).to_raw();
    let message = format!("the protocol version {version:?} is not spoken here");
    RpcError { code: UNSUPPORTED_VERSION, message, data: Some(data) }
}

fn invalid(message: &str) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, message)
}

fn media_type(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn object(raw: &RawJson) -> Params {
    Params::from_object(raw).unwrap_or_default()
}

fn text(params: &Params, name: &str) -> Option<String> {
    // Half a surrogate pair is read as U+FFFD, as the server would.
    Object::parse(params.to_raw().as_str()).ok()?.string(name)
}
