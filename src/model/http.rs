//! HTTP messages as plain data: what a machine asks the host to send, and what came back.

use std::fmt;

use crate::error::Error;
#[cfg(feature = "host")]
use crate::{base64url, percent};

/// A request for the host to send. Holds no secret until it is authorized.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// Absolute address.
    pub url: String,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// Sets a header, replacing one of the same name. The name must be in lower case.
    pub fn set_header(&mut self, name: &str, value: impl Into<String>) {
        self.headers.retain(|(candidate, _)| candidate != name);
        self.headers.push((name.to_owned(), value.into()));
    }

    /// The value of a header; the name must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// Header values and the body are left out: both can hold secrets.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("headers", &names)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish_non_exhaustive()
    }
}

/// The head of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// Header names in lower case. Browsers show only those that the server exposes.
    pub headers: Vec<(String, String)>,
}

impl ResponseHead {
    /// The value of a header; the name must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

fn header<'headers>(headers: &'headers [(String, String)], name: &str) -> Option<&'headers str> {
    headers.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
}

/// Headers that are told to anybody: what they say is no secret. Those of MCP are known by their prefix.
#[cfg(feature = "host")]
const PLAIN_HEADERS: &[&str] = &[
    "accept",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "content-type",
    "dpop",
    "http-referer",
    "last-event-id",
    "openai-organization",
    "openai-project",
    "user-agent",
    "x-title",
];

/// Whether a header, its name in lower case, may hold a key: gateways have names of their own for it, so every name
/// counts that is not known to hold none.
#[cfg(feature = "host")]
pub(crate) fn may_hold_key(name: &str) -> bool {
    !PLAIN_HEADERS.contains(&name) && !name.starts_with("mcp-")
}

/// What must not be shown of these headers: each word, so of `Bearer TOKEN` the token; of `name=value` the value too, and of `Basic` what
/// it encodes.
#[cfg(feature = "host")]
pub(crate) fn secrets_of_headers(headers: &[(String, String)]) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in headers {
        if !may_hold_key(name) {
            continue;
        }
        for word in value.split([' ', '\t', ';', ',']) {
            secrets.push(word.to_owned());
            if let Some((_, value)) = word.split_once('=') {
                secrets.push(value.to_owned());
            }
        }
        secrets.extend(basic_password(value));
    }
    secrets
}

/// The password of `Basic` credentials (RFC 7617).
#[cfg(feature = "host")]
fn basic_password(value: &str) -> Option<String> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let encoded = encoded.trim().trim_end_matches('=').replace('+', "-").replace('/', "_");
    let decoded = String::from_utf8(base64url::decode(&encoded)?).ok()?;
    Some(decoded.split_once(':')?.1.to_owned())
}

/// What must not be shown of an address: its user and password, and the values of its query.
#[cfg(feature = "host")]
pub(crate) fn secrets_of_url(url: &str) -> Vec<String> {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let mut parts = Vec::new();
    // No browser and no `fetch` takes an address with a user.
    if cfg!(not(target_arch = "wasm32")) {
        let authority =
            address.split_once("://").map_or("", |(_, rest)| rest).split(['/', '#']).next().unwrap_or_default();
        parts.extend(authority.rsplit_once('@').map_or("", |(user, _)| user).split(':'));
    }
    for pair in query.split(['&', '#']) {
        if let Some((name, value)) = pair.split_once('=')
            && !PLAIN_PARAMETERS.contains(&name)
        {
            parts.push(value);
            // What is appended to an address that ends in a query stands behind the value.
            parts.extend(value.split('/'));
        }
    }
    let mut secrets = Vec::new();
    for part in parts {
        secrets.push(part.to_owned());
        secrets.push(percent::decode(part));
    }
    secrets
}

/// Parameters of addresses that hold no key.
#[cfg(feature = "host")]
const PLAIN_PARAMETERS: &[&str] = &["alt", "api-version"];

/// What a caller supplies to authorize a request. Never stored, never printed.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credentials {
    /// None: a local server, or a proxy that adds its own.
    #[default]
    None,
    /// One key or token, sent as the wire protocol wants it.
    Key(String),
    /// Keys of an AWS account, which sign each attempt.
    Aws(AwsKeys),
    /// Headers as they are to be sent, for gateways with a scheme of their own. Names in lower case.
    Headers(Vec<(String, String)>),
}

/// Keys of an AWS account.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AwsKeys {
    /// The id of the key.
    pub access_key_id: String,
    /// The secret.
    pub secret_access_key: String,
    /// The token of temporary keys.
    pub session_token: Option<String>,
    /// The region to sign for; `None` for the one in the address.
    pub region: Option<String>,
}

/// Only the id is printed.
impl fmt::Debug for AwsKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AwsKeys").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

impl Credentials {
    /// The key.
    ///
    /// # Errors
    ///
    /// `auth` when the key is empty, or holds characters that no header can carry, which is what a key with a line break
    /// pasted along with it looks like.
    pub fn key(&self) -> Result<Option<&str>, Error> {
        let Self::Key(key) = self else { return Ok(None) };
        let key = key.trim();
        let problem = if key.is_empty() {
            "the API key is empty; give none to a server that needs none"
        } else if key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Some(key));
        } else {
            "the API key holds spaces, line breaks or non-ASCII characters; copy it again without them"
        };
        Err(Error::new(crate::ErrorKind::Auth, problem))
    }
}

#[cfg(feature = "wires")]
impl Credentials {
    /// Sets the headers of a request; a key goes into the one that the wire names.
    pub(super) fn apply(
        &self,
        request: &mut HttpRequest,
        header: impl FnOnce(&str) -> (&'static str, String),
    ) -> Result<(), Error> {
        if let Self::Headers(headers) = self {
            for (name, value) in headers {
                request.set_header(name, value.clone());
            }
        }
        if let Some(key) = self.key()? {
            let (name, value) = header(key);
            request.set_header(name, value);
        }
        Ok(())
    }
}

/// Only the kind is printed.
impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "None",
            Self::Key(_) => "Key(..)",
            Self::Aws(_) => "Aws(..)",
            Self::Headers(_) => "Headers(..)",
        })
    }
}
