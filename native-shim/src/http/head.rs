//! The headers of the protocol: which era a message is of, and whether the headers say what the body says.

use crablet::json::{Object, RawJson};
use crablet::jsonrpc::{Params, RpcError, code};
use crablet::mcp::protocol::{Revision, STATELESS_VERSION};
use crablet::mcp::transport::streamable_http::mirrored::decode;
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName};
use hyper::{Method, StatusCode};

use super::answer::SESSION;
use super::bridge::{CAPABILITIES_KEY, HEADER_MISMATCH, UNSUPPORTED_VERSION, VERSION_KEY};

/// What a message is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It stands alone, and its headers fit.
    Stateless,
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
pub(crate) fn check_media(method: &Method, headers: &HeaderMap) -> Result<(), StatusCode> {
    let accepts = |wanted: &str| {
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let family = wanted.split_once('/').map_or(wanted, |(family, _)| family);
        values.flat_map(|value| value.split(',')).map(media_type).any(|offered| {
            offered == wanted || offered == "*/*" || offered.strip_suffix("/*").is_some_and(|offered| offered == family)
        })
    };
    if *method == Method::POST {
        let is_json = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(media_type);
        if is_json.as_deref() != Some("application/json") || headers.contains_key(CONTENT_ENCODING) {
            return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
    }
    let is_fine = accepts("text/event-stream") && (*method != Method::POST || accepts("application/json"));
    if is_fine || *method == Method::DELETE { Ok(()) } else { Err(StatusCode::NOT_ACCEPTABLE) }
}

/// Tells what a message is part of.
///
/// # Errors
///
/// What is wrong, which is answered with 400.
pub(crate) fn part_of(headers: &HeaderMap, method: Option<&str>, params: &Params) -> Result<Part, RpcError> {
    let version = protocol_header(headers, &VERSION)?;
    let session = protocol_header(headers, &SESSION)?;
    let meta = params.member("_meta").map(object).unwrap_or_default();
    let is_stateless = meta.member(VERSION_KEY).is_some() || version == Some(STATELESS_VERSION);
    let is_known = |version: &str| Revision::from_name(version).is_some();
    match (session, version) {
        _ if is_stateless => {}
        (Some(_), Some(version)) if !is_known(version) => return Err(unsupported(version)),
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
    headers: &HeaderMap,
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
    let mismatch = |header: &HeaderName, said: Option<&str>, meant: &str| {
        let said = said.map_or("is missing".to_owned(), |said| format!("says {said:?}"));
        RpcError::new(HEADER_MISMATCH, format!("the header {header} {said}, and the body {meant:?}"))
    };
    if version != Some(&named) {
        return Err(mismatch(&VERSION, version, &named));
    }
    if named != STATELESS_VERSION {
        return Err(unsupported(&named));
    }
    let said = protocol_header(headers, &METHOD)?;
    if said != Some(method) {
        return Err(mismatch(&METHOD, said, method));
    }
    let subject = match method {
        "tools/call" | "prompts/get" => text(params, "name"),
        "resources/read" => text(params, "uri"),
        _ => None,
    };
    // What is without a name is refused by the child.
    let Some(subject) = subject else { return Ok(()) };
    let said = protocol_header(headers, &NAME)?;
    if said.and_then(decode).as_ref() == Some(&subject) { Ok(()) } else { Err(mismatch(&NAME, said, &subject)) }
}

/// The headers that repeat arguments of a tool.
///
/// # Errors
///
/// When one is there twice or is no ASCII.
pub(crate) fn repeated_arguments(headers: &HeaderMap) -> Result<Vec<(String, String)>, RpcError> {
    let mut found = Vec::new();
    for name in headers.keys().filter(|name| name.as_str().starts_with("mcp-param-")) {
        if let Some(value) = protocol_header(headers, name)? {
            found.push((name.as_str().to_owned(), value.to_owned()));
        }
    }
    Ok(found)
}

/// The version that a request without a body names.
pub(crate) fn is_stateless(headers: &HeaderMap) -> bool {
    headers.get(&VERSION).is_some_and(|version| version == STATELESS_VERSION)
}

/// The session that a request without a body is for.
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    protocol_header(headers, &SESSION).ok().flatten()
}

/// A header of the protocol, which comes once and is ASCII. White space around a value is not part of it.
fn protocol_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value.trim())),
        _ => Err(RpcError::new(HEADER_MISMATCH, format!("the header {name} is there twice, or holds more than ASCII"))),
    }
}

/// The refusal of a revision, with those that are spoken.
pub(crate) fn unsupported(version: &str) -> RpcError {
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
    // Half a surrogate pair is read as U+FFFD, as a child would.
    Object::parse(params.to_raw().as_str()).ok()?.string(name)
}

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
