//! Tools as functions: what runs when the model calls one.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use serde::de::DeserializeOwned;

use super::driver::Driver;
use super::{BoxFuture, CancelToken, MaybeSend, MaybeSync};
use crate::agent::{Approval, Input, ToolOutput};
use crate::json::RawJson;
use crate::model::CallId;

/// The function behind a [`ToolDefinition`](crate::agent::ToolDefinition).
///
/// Most tools are closures given to [`Runner::tool`](super::Runner::tool); implement the trait for tools that are found
/// at run time or that validate their input themselves.
pub trait Tool: MaybeSend + MaybeSync + 'static {
    /// Runs the tool with a validated input.
    ///
    /// An `Err` is told to the model as a failed result, like an output with `is_error`. When the call is cancelled the
    /// token of the context fires; the future is dropped when the run ends, whether or not it obeyed.
    fn execute(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>>;

    /// Gives the result of a call that an earlier host started, without running anything; `None`, the default, when it cannot
    /// be had. Asked only for tools whose definition says `claimable`, after a restore; the context has the call's
    /// [`claim_key`](ToolContext::claim_key).
    fn claim(&self, _input: RawJson, _context: ToolContext) -> BoxFuture<'static, Option<ToolOutput>> {
        Box::pin(std::future::ready(None))
    }

    /// Checks an input that is valid against the JSON Schema: `Ok(None)` takes it as it is, `Ok(Some(..))` runs the tool
    /// with another one, `Err` is told to the model. Asked only for tools whose definition says `has_validator`.
    fn validate(&self, _input: RawJson) -> BoxFuture<'static, Result<Option<RawJson>, String>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Decides about a call that needs an approval before anyone is asked: `None`, the default, leaves it to the approver
    /// or the person. Asked only for tools whose definition says `needs_approval`. Must not panic.
    fn decide(&self, _input: &RawJson) -> Option<Approval> {
        None
    }
}

/// What a running tool knows of its call.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The call.
    pub call_id: CallId,
    /// Fires when the run is aborted or the tool's time is up.
    pub cancel: CancelToken,
    /// By what a later host may claim the result, where the tool's definition says `claimable`. The same text after a
    /// restore, and another one for any other call.
    pub claim_key: Option<Arc<str>>,
    driver: Weak<Driver>,
}

impl ToolContext {
    pub(super) fn new(call_id: CallId, cancel: CancelToken, driver: Weak<Driver>) -> Self {
        Self { call_id, cancel, claim_key: None, driver }
    }

    /// A context outside any run, for calling a tool by hand. What it reports goes nowhere.
    pub fn detached(call_id: CallId, cancel: CancelToken) -> Self {
        Self::new(call_id, cancel, Weak::new())
    }

    pub(super) fn claimed_by(self, claim_key: Option<Arc<str>>) -> Self {
        Self { claim_key, ..self }
    }

    /// Reports progress: becomes a `tool-progress` event. Ignored after the end of the call.
    pub fn progress(&self, data: RawJson) {
        if let Some(driver) = self.driver.upgrade() {
            driver.post(Input::ToolProgress { call_id: self.call_id.clone(), data });
        }
    }
}

/// A closure as a tool. Its input is read into `I`, so take [`RawJson`] for the bare text.
pub struct FunctionTool<F, I> {
    function: F,
    input: PhantomData<fn(I)>,
}

impl<F, I> FunctionTool<F, I> {
    /// The tool that calls this function.
    pub fn new(function: F) -> Self {
        Self { function, input: PhantomData }
    }
}

impl<F, I> fmt::Debug for FunctionTool<F, I> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FunctionTool").finish_non_exhaustive()
    }
}

impl<F, I, Running> Tool for FunctionTool<F, I>
where
    F: Fn(I, ToolContext) -> Running + MaybeSend + MaybeSync + 'static,
    I: DeserializeOwned + 'static,
    Running: Future<Output: IntoToolResult> + MaybeSend + 'static,
{
    fn execute(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>> {
        match input.read() {
            Ok(input) => {
                let running = (self.function)(input, context);
                Box::pin(async { running.await.into_tool_result() })
            }
            Err(error) => {
                let message = format!("the input does not have the shape this tool takes: {error}");
                Box::pin(std::future::ready(Err(message)))
            }
        }
    }
}

/// What a tool's closure may return: something that is a [`ToolOutput`], or a `Result` of it whose error can be printed.
pub trait IntoToolResult {
    /// The output, or the message that the model reads of the failure.
    ///
    /// # Errors
    ///
    /// When the tool failed.
    fn into_tool_result(self) -> Result<ToolOutput, String>;
}

impl<Output: Into<ToolOutput>, Failure: fmt::Display> IntoToolResult for Result<Output, Failure> {
    fn into_tool_result(self) -> Result<ToolOutput, String> {
        self.map(Into::into).map_err(|failure| failure.to_string())
    }
}

macro_rules! never_fails {
    ($($output:ty),*) => {
        $(
            impl IntoToolResult for $output {
                fn into_tool_result(self) -> Result<ToolOutput, String> {
                    Ok(self.into())
                }
            }
        )*
    };
}

never_fails!(ToolOutput, String, &str, RawJson);

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// The value for the caller, and its JSON text for the model.
impl From<RawJson> for ToolOutput {
    fn from(value: RawJson) -> Self {
        Self { output: Some(value.clone()), ..Self::text(value.as_str()) }
    }
}
