use std::fmt;

use super::options::Secret;
use crate::error::Error;
use crate::model::{HttpRequest, ResponseHead};

/// The most bytes of an answer of an authorization server that are read: several times the largest metadata.
pub const DOCUMENT_LIMIT: usize = 256 * 1024;

/// Names a request of the transport from its first sending to its answer. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Names a piece of work. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// What happened outside of the machine. Inputs about what is over are ignored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input {
    /// A request wants to be sent. Answered by `Send` or `Fail`.
    Request {
        /// Names it.
        ticket: Ticket,
        /// The request, without credentials.
        request: HttpRequest,
    },
    /// The head of the answer to what was sent. With 401 or 403 it is answered by `Send`, `Pass` or `Fail`; with any other
    /// status the request is over.
    Answered {
        /// Which request.
        ticket: Ticket,
        /// Status and headers.
        head: ResponseHead,
    },
    /// Nobody waits for this request any more.
    Dropped {
        /// Which request.
        ticket: Ticket,
    },
    /// A piece of work is done.
    Done {
        /// Which.
        task: TaskId,
        /// What it gave.
        outcome: Result<Outcome, Error>,
    },
}

/// What the host must do. Exhaustive on purpose.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Send this request, which holds a token, and tell its answer.
    Send {
        /// Which request.
        ticket: Ticket,
        /// With its credentials.
        request: HttpRequest,
    },
    /// Give the refusal that came to whoever asked: authorization cannot help.
    Pass {
        /// Which request.
        ticket: Ticket,
    },
    /// There is no token to send the request with.
    Fail {
        /// Which request.
        ticket: Ticket,
        /// Why.
        error: Error,
    },
    /// Do a piece of work, and tell its outcome with `Done`: an error of kind `timeout` when it took longer than
    /// [`Work::limit`].
    Perform {
        /// Names it.
        task: TaskId,
        /// The work.
        work: Work,
    },
    /// Keep this value, or forget the one that was kept. Not answered: what cannot be kept is obtained anew.
    Save {
        /// Under this name.
        key: String,
        /// JSON text that holds tokens or the secret of a client.
        value: Option<Secret>,
    },
}

/// Work that the machine cannot do by itself.
#[derive(Clone)]
#[non_exhaustive]
pub enum Work {
    /// Send a request that is no MCP message; gives [`Outcome::Answer`]. Redirects to another origin must not be followed.
    Fetch(HttpRequest),
    /// What was saved under this name; gives [`Outcome::Text`].
    Load(String),
    /// The address that the person is sent back to; gives [`Outcome::Text`].
    RedirectUri,
    /// Show this page to the person, and give the address that they came back to as [`Outcome::Text`].
    AskPerson(String),
    /// Ask the caller for a token that vouches for whom the client acts for; gives [`Outcome::Text`].
    Assertion(AssertionRequest),
    /// Make the key that tokens are bound to, unless there is one; gives its public half, a JSON Web Key, as
    /// [`Outcome::Text`].
    PublicKey,
    /// Sign this text; gives [`Outcome::Signature`].
    Sign {
        /// With which key.
        key: KeyName,
        /// What to sign.
        message: String,
    },
}

/// What a token is asked for, so that its supplier can name the right audience.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssertionRequest {
    /// The authorization server.
    pub issuer: String,
    /// Where the token is sent: of the authorization server, or of the identity provider.
    pub token_endpoint: String,
    /// The MCP server.
    pub resource: Option<String>,
    /// The scopes, separated by spaces; empty for none.
    pub scope: String,
}

/// The keys that sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyName {
    /// The client's own, of its options.
    Client,
    /// The one of [`Work::PublicKey`], which signs with ES256.
    Proof,
}

/// What a piece of work gave.
#[derive(Clone)]
pub enum Outcome {
    /// An answer of at most [`DOCUMENT_LIMIT`] bytes.
    Answer {
        /// Status and headers.
        head: ResponseHead,
        /// The body.
        body: Vec<u8>,
    },
    /// A text, or that there is none.
    Text(Option<String>),
    /// A signature in the form of JSON Web Signatures.
    Signature(Vec<u8>),
}

impl Work {
    /// How long it may take, in milliseconds: a person has to find a password, a server does not.
    pub const fn limit(&self) -> u64 {
        match self {
            // What vouches for a person may need the person too.
            Self::AskPerson(_) | Self::Assertion(_) => 600_000,
            _ => 30_000,
        }
    }
}

/// Addresses, bodies and texts are left out: they can hold secrets.
impl fmt::Debug for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Fetch(_) => "Fetch(..)",
            Self::Load(_) => "Load(..)",
            Self::RedirectUri => "RedirectUri",
            Self::AskPerson(_) => "AskPerson(..)",
            Self::Assertion(_) => "Assertion(..)",
            Self::PublicKey => "PublicKey",
            Self::Sign { .. } => "Sign(..)",
        })
    }
}

/// What it holds is left out: it can be secret.
impl fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Answer { .. } => "Answer(..)",
            Self::Text(_) => "Text(..)",
            Self::Signature(_) => "Signature(..)",
        })
    }
}
