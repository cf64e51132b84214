//! The names of subjects and streams, the same for the npm package.

use crate::base64url;
use crate::error::{Error, ErrorKind};

/// A stream and a subject in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) stream: String,
    pub(super) subject: String,
}

/// The names of the streams and subjects of one agent.
#[derive(Clone, Debug)]
pub(super) struct Names {
    prefix: String,
    name: String,
}

impl Names {
    /// # Errors
    ///
    /// `invalid-input` when one of the two cannot be part of a subject.
    pub(super) fn new(prefix: &str, name: &str) -> Result<Self, Error> {
        for (what, value) in [("name", name), ("prefix", prefix)] {
            if !is_plain(value) || value.len() > MAX_NAME {
                let message = format!(
                    "the {what} of an agent service is 1 to {MAX_NAME} of letters, digits, \"-\" and \"_\": {value:?} is not"
                );
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
        Ok(Self { prefix: prefix.to_owned(), name: name.to_owned() })
    }

    pub(super) fn input_stream(&self) -> String {
        self.bucket("input")
    }

    pub(super) fn input_subjects(&self) -> String {
        format!("{}.{}.input.*", self.prefix, self.name)
    }

    pub(super) fn event_stream(&self) -> String {
        self.bucket("events")
    }

    pub(super) fn event_subjects(&self) -> String {
        format!("{}.{}.events.*", self.prefix, self.name)
    }

    pub(super) fn sessions(&self) -> String {
        self.bucket("sessions")
    }

    pub(super) fn claims(&self) -> String {
        self.bucket("claims")
    }

    pub(super) fn workers(&self) -> String {
        self.bucket("workers")
    }

    pub(super) fn input(&self, session: &str) -> Result<Place, Error> {
        let subject = format!("{}.{}.input.{}", self.prefix, self.name, token_of(session)?);
        Ok(Place { stream: self.input_stream(), subject })
    }

    pub(super) fn events(&self, session: &str) -> Result<Place, Error> {
        let subject = format!("{}.{}.events.{}", self.prefix, self.name, token_of(session)?);
        Ok(Place { stream: self.event_stream(), subject })
    }

    pub(super) fn claim(&self, session: &str) -> Result<Place, Error> {
        Ok(key_of(&self.claims(), &token_of(session)?))
    }

    pub(super) fn worker(&self, worker: &str) -> Place {
        key_of(&self.workers(), worker)
    }

    fn bucket(&self, kind: &str) -> String {
        format!("{}_{}_{kind}", self.prefix, self.name)
    }
}

/// The stream and subject that a key of a bucket is.
pub(super) fn key_of(bucket: &str, key: &str) -> Place {
    Place { stream: format!("KV_{bucket}"), subject: format!("$KV.{bucket}.{key}") }
}

/// The id of a session as a token of a subject: itself when it is of letters, digits, `-` and `_`, else `=` and the base64url
/// of its UTF-8.
pub(super) fn token_of(session: &str) -> Result<String, Error> {
    let token =
        if is_plain(session) { session.to_owned() } else { format!("={}", base64url::encode(session.as_bytes())) };
    if session.is_empty() || token.len() > MAX_TOKEN {
        let message = format!("the id of a session has 1 to {MAX_TOKEN} letters as a token of a subject");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(token)
}

/// The id that [`token_of`] was given; `None` when it was none.
pub(super) fn session_of(token: &str) -> Option<String> {
    match token.strip_prefix('=') {
        Some(encoded) => String::from_utf8(base64url::decode(encoded)?).ok(),
        None => is_plain(token).then(|| token.to_owned()),
    }
}

pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// The most letters of a token: subjects are matched by the server for each message.
const MAX_TOKEN: usize = 256;
const MAX_NAME: usize = 64;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    #[test]
    fn ids_travel_as_tokens_of_subjects() {
        for (id, token) in
            [("user-7", "user-7"), ("user:7/чат", "=dXNlcjo3L9GH0LDRgg"), ("=x", "=PXg"), ("a.b", "=YS5i")]
        {
            assert_eq!(token_of(id).unwrap(), token);
            assert_eq!(session_of(token).unwrap(), id);
        }
        assert_eq!(token_of("").unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(token_of(&"é".repeat(200)).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(session_of("a.b"), None);
    }

    #[test]
    fn streams_and_subjects_have_the_names_of_the_npm_package() {
        let names = Names::new("crablet", "clerk").unwrap();
        let place = |stream: &str, subject: &str| Place { stream: stream.to_owned(), subject: subject.to_owned() };
        assert_eq!(names.input("a.b").unwrap(), place("crablet_clerk_input", "crablet.clerk.input.=YS5i"));
        assert_eq!(names.events("a").unwrap(), place("crablet_clerk_events", "crablet.clerk.events.a"));
        assert_eq!(names.claim("a").unwrap(), place("KV_crablet_clerk_claims", "$KV.crablet_clerk_claims.a"));
        assert_eq!(names.worker("w"), place("KV_crablet_clerk_workers", "$KV.crablet_clerk_workers.w"));
        for name in ["", "a.b", "é", &"a".repeat(65)] {
            assert_eq!(Names::new("crablet", name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        }
    }
}
