use super::super::protocol::{CallToolResult, Era, PromptMessage, ResourceContents};
use super::ask::InputRequest;
use crate::json::RawJson;
use crate::jsonrpc::{self, Params};

/// A request that somebody outside has to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall {
    /// What is asked.
    pub request: Request,
    /// What the client answered to the input that this call asked for before, by key: each a result such as
    /// `{"action":"accept","content":{…}}`. Empty the first time.
    pub input_responses: Params,
    /// What the call gave to keep when it asked for input. It comes from the client, so check it if it matters.
    pub request_state: Option<String>,
    pub(super) number: CallNumber,
    pub(super) id: RawJson,
    pub(super) era: Era,
    pub(super) progress_token: Option<RawJson>,
    /// What the client of this request wants to hear (2026-07-28).
    pub(super) log_level: Option<LogLevel>,
    pub(super) client_capabilities: Params,
}

/// Names a call for as long as its connection lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub(super) u64);

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request {
    /// Run a tool with these arguments, which are valid against its schema. Answer with [`Outcome::Tool`].
    Tool {
        /// The tool.
        name: String,
        /// The arguments, an object.
        arguments: RawJson,
    },
    /// Read a resource. Answer with [`Outcome::Contents`] or [`Outcome::NotFound`].
    Resource {
        /// Its address.
        uri: String,
        /// What stands in the address in the places of a template's names, as it stands there.
        variables: Vec<(String, String)>,
    },
    /// Give a prompt. Answer with [`Outcome::Prompt`].
    Prompt {
        /// The prompt.
        name: String,
        /// The arguments. The required ones are there.
        arguments: Vec<(String, String)>,
    },
    /// Complete an argument. Answer with [`Outcome::Completion`].
    Completion {
        /// The prompt's name, or the resource's template.
        of: String,
        /// Whether it is of a prompt.
        is_prompt: bool,
        /// The argument.
        argument: String,
        /// What was typed.
        value: String,
        /// The other arguments, as far as they are known.
        known: Vec<(String, String)>,
    },
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// What a tool said. Its value is checked against the tool's schema of results.
    Tool(CallToolResult),
    /// What a resource holds.
    Contents(Vec<ResourceContents>),
    /// The messages of a prompt.
    Prompt {
        /// What it is for.
        description: Option<String>,
        /// The messages.
        messages: Vec<PromptMessage>,
    },
    /// Completions; 100 of them are sent.
    Completion {
        /// The whole values, best first.
        values: Vec<String>,
        /// How many there are in all, where that is known.
        total: Option<u64>,
    },
    /// There is no such resource.
    NotFound,
    /// The client is to be asked first. The call comes again with the answers. For tools, resources and prompts.
    NeedsInput {
        /// What is asked, by keys that the call finds the answers under.
        requests: Vec<(String, InputRequest)>,
        /// Something to keep for the call, of which the client sees the text.
        state: Option<String>,
    },
    /// It failed, and why. Of a tool, the client's model reads that.
    Failed(String),
    /// What the client gave cannot be accepted, and why: a `request_state` that this call has not made, for one. It is an
    /// error of the protocol (-32602), which no model reads.
    Refused(String),
}

/// How much a log message matters (RFC 5424).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// The level of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(level, _)| level)
    }

    /// The name, as it is written in messages.
    pub fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|(level, _)| *level == self).map_or("info", |(_, name)| name)
    }
}

impl PendingCall {
    /// Names the call.
    pub fn number(&self) -> CallNumber {
        self.number
    }

    /// The id of the client's request.
    pub fn id(&self) -> &RawJson {
        &self.id
    }

    /// The line that reports progress; `None` when the client did not ask to hear of it. `progress` grows from report to
    /// report.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) -> Option<String> {
        let mut params = Params::new().with("progressToken", self.progress_token.as_ref()?).with("progress", &progress);
        if let Some(total) = total {
            params.set("total", &total);
        }
        if let Some(message) = message {
            params.set("message", message);
        }
        Some(super::render::line(&jsonrpc::notification("notifications/progress", &params)))
    }

    /// Whether the client can be asked for this.
    pub fn can_ask(&self, request: &InputRequest) -> bool {
        request.is_offered(&self.client_capabilities)
    }
}
