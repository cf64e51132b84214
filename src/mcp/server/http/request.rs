use super::head::{check_media, is_stateless, part_of, repeated_arguments};
use super::message::{Posted, read_message};
use super::{Answer, EventId, Headers, Part, PostedMessage, PostedRequest, SESSION};
use crate::json::RawJson;
use crate::jsonrpc::{Params, RpcError, code};

/// What a well-made request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// An answer.
    Request {
        /// What it is part of.
        part: Part,
        /// The request.
        request: PostedRequest,
    },
    /// To hand a message to a session: 202, or [`Answer::no_session`].
    Message {
        /// The session.
        session: String,
        /// The message.
        message: PostedMessage,
    },
    /// A stream of a session.
    Listen {
        /// The session.
        session: String,
        /// The event after which a stream is taken up; `None` for the session's own stream.
        after: Option<EventId>,
    },
    /// The end of a session: 204, or [`Answer::no_session`].
    End {
        /// The session.
        session: String,
    },
}

/// By what rules requests are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether there are sessions for clients of the handshake era. Without them each of their requests stands alone, and they
    /// can be asked nothing. Default: true.
    pub sessions: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { sessions: true }
    }
}

impl Rules {
    /// Checks what can be told before the body is read: method and media types.
    ///
    /// # Errors
    ///
    /// The answer to a request that is not well made. Its body need not be read.
    pub fn check_head(&self, method: &str, headers: &Headers<'_>) -> Result<(), Answer> {
        if !["POST", "GET", "DELETE"].contains(&method) {
            return Err(Answer::not_allowed("POST, GET, DELETE"));
        }
        check_media(method, headers).map_err(Answer::empty)
    }

    /// Reads a request. Checks its head too.
    ///
    /// # Errors
    ///
    /// The answer to a request that is not well made, or to which the server has nothing to say.
    pub fn read(&self, method: &str, headers: &Headers<'_>, body: &[u8]) -> Result<Asked, Answer> {
        self.check_head(method, headers)?;
        if method == "POST" {
            return self.read_post(headers, body);
        }
        let session = match headers.text(SESSION) {
            // The stateless era has neither sessions nor streams of their own.
            Some(session) if self.sessions && !is_stateless(headers) => session.to_owned(),
            _ => return Err(Answer::not_allowed("POST")),
        };
        if method == "DELETE" {
            return Ok(Asked::End { session });
        }
        let after = match headers.once(LAST_EVENT_ID) {
            Ok(None) => None,
            Ok(Some(id)) => Some(EventId::parse(id).ok_or_else(Answer::lost_events)?),
            Err(_) => return Err(Answer::lost_events()),
        };
        Ok(Asked::Listen { session, after })
    }

    fn read_post(&self, headers: &Headers<'_>, body: &[u8]) -> Result<Asked, Answer> {
        let refused = |id: &RawJson, error| Answer::failed(400, Some(id), error);
        match read_message(body).map_err(|(id, error)| refused(&id, error))? {
            Posted::Request(mut request) => {
                let refused = |error| refused(&request.id, error);
                let part = part_of(headers, Some(&request.method), &request.params, self.sessions).map_err(refused)?;
                request.headers = Some(repeated_arguments(headers).map_err(refused)?);
                Ok(Asked::Request { part, request })
            }
            Posted::Message(message) => self.read_message(headers, message),
        }
    }

    fn read_message(&self, headers: &Headers<'_>, message: PostedMessage) -> Result<Asked, Answer> {
        let none = Params::new();
        let (params, is_answer) = match &message {
            PostedMessage::Notification { params, .. } => (params, false),
            PostedMessage::Response { .. } => (&none, true),
        };
        match part_of(headers, None, params, self.sessions) {
            Ok(Part::Session(session)) => Ok(Asked::Message { session, message }),
            Ok(_) if is_answer => {
                let message = "nothing was asked that could be answered in this way";
                Err(Answer::failed(400, None, RpcError::new(code::INVALID_REQUEST, message)))
            }
            // Outside of sessions there are no notifications over HTTP: whoever ends a request closes its stream.
            Ok(_) => Err(Answer::empty(202)),
            Err(error) => Err(Answer::failed(400, None, error)),
        }
    }
}

const LAST_EVENT_ID: &str = "last-event-id";
