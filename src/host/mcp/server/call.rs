use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use futures_channel::mpsc;

use super::serving::Report;
use crate::host::CancelToken;
use crate::json::RawJson;
use crate::mcp::protocol::{CallToolResult, ContentBlock, PromptMessage, ResourceBody, ResourceContents};
use crate::mcp::server::{LogLevel, Outcome, PendingCall, Request};

/// A call that a function answers: what is asked, what the client answered before, and ways to tell it something meanwhile.
#[derive(Clone, Debug)]
pub struct ServerCall {
    pending: PendingCall,
    reports: mpsc::Sender<Report>,
    caller: Option<Arc<str>>,
    /// Fires when the client wants no answer any more; the function's future is then dropped.
    pub cancel: CancelToken,
}

impl ServerCall {
    pub(super) fn new(
        pending: PendingCall,
        reports: mpsc::Sender<Report>,
        cancel: CancelToken,
        caller: Option<Arc<str>>,
    ) -> Self {
        Self { pending, reports, caller, cancel }
    }

    /// Who asks, where an HTTP server found that out; see [`HttpCall::caller`](super::HttpCall::caller).
    pub fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// Reports progress, if the client wants to hear of it. A report that finds the way full is left out.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(line) = self.pending.progress(progress, total, message) {
            let _left_out = self.reports.clone().try_send(Report::Line { about: self.pending.id().clone(), line });
        }
    }

    /// Sends a log message, if the client wants to hear of it.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: RawJson) {
        let logger = logger.map(str::to_owned);
        let report = Report::Log { call: Box::new(self.pending.clone()), level, logger, data };
        let _left_out = self.reports.clone().try_send(report);
    }
}

impl Deref for ServerCall {
    type Target = PendingCall;

    fn deref(&self) -> &PendingCall {
        &self.pending
    }
}

/// What a function of a server may give.
pub trait IntoOutcome {
    /// The outcome.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for CallToolResult {
    fn into_outcome(self) -> Outcome {
        Outcome::Tool(self)
    }
}

impl<T: IntoOutcome, E: fmt::Display> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(given) => given.into_outcome(),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }
}

/// Text: of a tool its result, of a resource what it holds, of a prompt one message of the user.
impl IntoOutcome for String {
    fn into_outcome(self) -> Outcome {
        Outcome::Tool(CallToolResult { content: vec![ContentBlock::Text { text: self }], ..CallToolResult::default() })
    }
}

impl IntoOutcome for &str {
    fn into_outcome(self) -> Outcome {
        self.to_owned().into_outcome()
    }
}

/// A value: the structured result of a tool.
impl IntoOutcome for RawJson {
    fn into_outcome(self) -> Outcome {
        Outcome::Tool(CallToolResult { structured_content: Some(self), ..CallToolResult::default() })
    }
}

/// Text that was given for a resource or a prompt, as what that takes.
pub(super) fn fitted(request: &Request, outcome: Outcome) -> Outcome {
    let Outcome::Tool(result) = &outcome else { return outcome };
    match request {
        Request::Resource { uri, .. } => {
            let body = ResourceBody::Text(result.text());
            Outcome::Contents(vec![ResourceContents { uri: uri.clone(), mime_type: None, body }])
        }
        Request::Prompt { .. } => {
            let content = ContentBlock::Text { text: result.text() };
            let messages = vec![PromptMessage { role: "user".to_owned(), content }];
            Outcome::Prompt { description: None, messages }
        }
        _ => outcome,
    }
}
