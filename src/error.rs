//! The one error type of the crate, and the closed vocabulary of kinds that every layer uses.

use std::borrow::Cow;
use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::json::Object;
#[cfg(any(feature = "host", feature = "oauth"))]
use crate::redaction::redacted;

/// What went wrong, why, and whether trying again can help.
///
/// The message is written for the person who reads it: what happened, why, and what to do. It never holds a key or a
/// token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Told>);

/// What an error tells, in a box: a result with an error is as small as without, where it is passed on with `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    kind: ErrorKind,
    message: Cow<'static, str>,
    status: Option<u16>,
    code: Option<String>,
    retry_after: Option<u64>,
}

impl Error {
    /// An error of this kind, told in a sentence.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self::told(kind, message.into())
    }

    /// Adds the HTTP status that the peer answered with.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Adds the peer's own word or number for the error, such as `invalid_api_key` or `-32602`.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.0.code = Some(code.into());
        self
    }

    /// Adds how long the peer asked to be left alone, in milliseconds.
    #[must_use]
    pub fn with_retry_after(mut self, milliseconds: u64) -> Self {
        self.0.retry_after = Some(milliseconds);
        self
    }

    /// Reads the form that errors are written in. A kind from a newer version reads as `internal`.
    pub(crate) fn read(object: &Object<'_>) -> Self {
        let kind = object.string("kind").and_then(|kind| ErrorKind::from_name(&kind)).unwrap_or(ErrorKind::Internal);
        let mut read = Self::new(kind, object.string("message").unwrap_or_default());
        if let Some(status) = object.read("status") {
            read = read.with_status(status);
        }
        if let Some(code) = object.string("code") {
            read = read.with_code(code);
        }
        if let Some(milliseconds) = object.integer("retryAfterMs") {
            read = read.with_retry_after(milliseconds);
        }
        read
    }

    /// Takes these secrets out of the texts: peers repeat the key that they refuse.
    #[cfg(any(feature = "host", feature = "oauth"))]
    pub(crate) fn redact(&mut self, secrets: &[String]) {
        let Told { message, code, .. } = &mut *self.0;
        if let Some(clean) = redacted(message, secrets) {
            *message = clean.into();
        }
        if let Some(clean) = code.as_deref().and_then(|code| redacted(code, secrets)) {
            *code = Some(clean);
        }
    }

    #[inline(never)]
    fn told(kind: ErrorKind, message: Cow<'static, str>) -> Self {
        Self(Box::new(Told { kind, message, status: None, code: None, retry_after: None }))
    }

    /// Which of the project's kinds this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence for the reader.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The HTTP status of the answer, where there was one.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The peer's own word or number for the error.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// How long the peer asked to be left alone, in milliseconds.
    pub fn retry_after(&self) -> Option<u64> {
        self.0.retry_after
    }

    /// Whether the same request may succeed later, unchanged.
    pub fn is_retryable(&self) -> bool {
        self.0.kind.is_retryable()
    }
}

/// Written as `{kind, message, retryable, status?, code?, retryAfterMs?}`, the shape of `ErrorInfo` in the npm package.
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Error", 6)?;
        fields.serialize_field("kind", self.0.kind.as_str())?;
        fields.serialize_field("message", &self.0.message)?;
        fields.serialize_field("retryable", &self.is_retryable())?;
        if let Some(status) = self.0.status {
            fields.serialize_field("status", &status)?;
        }
        if let Some(code) = &self.0.code {
            fields.serialize_field("code", code)?;
        }
        if let Some(milliseconds) = self.0.retry_after {
            fields.serialize_field("retryAfterMs", &milliseconds)?;
        }
        fields.end()
    }
}

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, retryable: $retryable:literal;)*) => {
        /// The kinds of error of the whole project. The names are stable; kinds may be added.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorKind {
            /// Every kind, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The kebab-case name used in events, snapshots and JavaScript.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The kind of this name, or `None` for a name from a newer version.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Whether the same request may succeed later, unchanged.
            pub const fn is_retryable(self) -> bool {
                match self {
                    $(Self::$variant => $retryable,)*
                }
            }
        }
    };
}

error_kinds! {
    /// The key or token was missing, wrong or not allowed to do this.
    Auth = "auth", retryable: false;
    /// Too many requests or tokens for now.
    RateLimit = "rate-limit", retryable: true;
    /// The provider has no capacity at the moment.
    Overloaded = "overloaded", retryable: true;
    /// The account's credit or plan is used up; waiting does not help.
    Quota = "quota", retryable: false;
    /// The input is longer than the model's context window.
    ContextOverflow = "context-overflow", retryable: false;
    /// The request was refused as wrong, unknown models included.
    BadRequest = "bad-request", retryable: false;
    /// A safety filter stopped the input or the output.
    ContentFilter = "content-filter", retryable: false;
    /// The peer failed inside.
    Server = "server", retryable: true;
    /// No connection, or it broke before an answer.
    Network = "network", retryable: true;
    /// Nothing came in time.
    Timeout = "timeout", retryable: true;
    /// The stream ended before its end marker.
    StreamTruncated = "stream-truncated", retryable: true;
    /// The stream's bytes were not what the protocol says.
    MalformedStream = "malformed-stream", retryable: true;
    /// A tool call's input was cut off or is not what the tool takes.
    MalformedToolCall = "malformed-tool-call", retryable: true;
    /// The caller stopped it.
    Aborted = "aborted", retryable: false;
    /// The connection to an MCP server or its process ended.
    ConnectionClosed = "connection-closed", retryable: false;
    /// The MCP server no longer knows the session.
    SessionExpired = "session-expired", retryable: true;
    /// The MCP server answered with a JSON-RPC error.
    Rpc = "rpc", retryable: false;
    /// The peer broke its protocol.
    Protocol = "protocol", retryable: false;
    /// No protocol revision in common.
    UnsupportedVersion = "unsupported-version", retryable: false;
    /// The caller's own input is wrong.
    InvalidInput = "invalid-input", retryable: false;
    /// The session is already running something.
    Busy = "busy", retryable: false;
    /// A limit of steps, tokens, cost, time or size was reached.
    Limit = "limit", retryable: false;
    /// The store could not save or load.
    Storage = "storage", retryable: false;
    /// Somebody else wrote the same session.
    Conflict = "conflict", retryable: false;
    /// A defect in crablet itself.
    Internal = "internal", retryable: false;
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::from_name(kind.as_str()), Some(*kind));
        }
        assert_eq!(ErrorKind::from_name("from-the-future"), None);
    }

    #[test]
    fn absent_fields_are_not_written() {
        let error = Error::new(ErrorKind::RateLimit, "slow down").with_status(429).with_retry_after(1500);
        assert_eq!(
            serde_json::to_string(&error).unwrap(),
            r#"{"kind":"rate-limit","message":"slow down","retryable":true,"status":429,"retryAfterMs":1500}"#
        );
    }
}
