//! The functions of the caller: tools, hooks, keys and models, called through the facade.
//!
//! None of them is called while a borrow is held, and everything they throw or reject with becomes an error.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use crablet::agent::ToolOutput;
use crablet::host::{BoxFuture, CancelGuard, CancelToken, FunctionModel, Host, Tool, ToolContext};
use crablet::json::{Object, RawJson};
use crablet::model::{Access, AwsKeys, Credentials, ModelEvent, ModelRequest};
use crablet::web::{WebHost, error_from_rejection};
use crablet::{Error, ErrorKind};
use futures_util::stream::{self, LocalBoxStream, StreamExt};
use js_sys::{Function, Promise};
use serde::Serialize;
use wasm_bindgen::prelude::{Closure, wasm_bindgen};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::function_events::read_event;
use crate::models::number_of_function;
use crate::tool_output::read_tool_output;

#[wasm_bindgen]
extern "C" {
    /// `CoreFunctions` of `src/js/core.ts`.
    #[derive(Clone, Debug)]
    pub type Functions;

    #[wasm_bindgen(method, getter, structural)]
    pub(crate) fn fetch(this: &Functions) -> Option<Function>;

    #[wasm_bindgen(method, structural, catch)]
    fn credentials(this: &Functions, model: usize) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, structural, catch)]
    fn execute(
        this: &Functions,
        name: &str,
        call_id: &str,
        input: &str,
        progress: &Function,
    ) -> Result<Execution, JsValue>;

    #[wasm_bindgen(method, structural, catch)]
    fn validate(this: &Functions, name: &str, input: &str) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, structural, catch)]
    pub(crate) fn ask(this: &Functions, question: &str, call_model: &Function) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, structural, catch)]
    fn model(this: &Functions, model: usize, request: &str) -> Result<Answer, JsValue>;

    /// `CoreExecution` of `src/js/core.ts`.
    #[derive(Clone, Debug)]
    pub(crate) type Execution;

    #[wasm_bindgen(method, getter, structural)]
    pub(crate) fn result(this: &Execution) -> Promise;

    #[wasm_bindgen(method, structural, catch)]
    pub(crate) fn cancel(this: &Execution) -> Result<(), JsValue>;

    /// `ModelAnswer` of `src/js/function-model.ts`.
    #[derive(Clone, Debug)]
    type Answer;

    #[wasm_bindgen(method, structural, catch)]
    fn next(this: &Answer) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, structural, catch, js_name = cancel)]
    fn cancel_answer(this: &Answer) -> Result<(), JsValue>;
}

/// A tool of the caller.
#[derive(Debug)]
pub(crate) struct JsTool {
    pub(crate) name: String,
    pub(crate) functions: Functions,
}

impl Tool for JsTool {
    fn execute(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>> {
        let (name, functions) = (self.name.clone(), self.functions.clone());
        Box::pin(async move {
            let call_id = context.call_id.clone();
            let cancel = context.cancel.clone();
            let progress = Closure::<dyn FnMut(String)>::new(move |data: String| {
                if let Ok(data) = RawJson::parse(data) {
                    context.progress(data);
                }
            });
            let execution = functions
                .execute(&name, call_id.as_str(), input.as_str(), progress.as_ref().unchecked_ref())
                .map_err(|thrown| message(&thrown))?;
            let _cancelling = cancel_with(&cancel, execution.clone());
            let output = text(resolved(Ok(execution.result())).await).map_err(|thrown| message(&thrown))?;
            let object = Object::parse(&output).map_err(|error| error.to_string())?;
            read_tool_output(&object)
        })
    }

    fn validate(&self, input: RawJson) -> BoxFuture<'static, Result<Option<RawJson>, String>> {
        let asked = self.functions.validate(&self.name, input.as_str());
        Box::pin(async move {
            let answer = text(resolved(asked).await).map_err(|thrown| message(&thrown))?;
            if answer.is_empty() {
                return Ok(None);
            }
            RawJson::parse(answer).map(Some).map_err(|error| error.to_string())
        })
    }
}

impl Functions {
    /// What the caller's function supplies for the model of this number.
    pub(crate) fn supplied_credentials(&self, model: usize) -> BoxFuture<'static, Result<Credentials, Error>> {
        let asked = self.credentials(model);
        Box::pin(async move {
            let given = text(resolved(asked).await).map_err(|thrown| {
                error_from_rejection(
                    &thrown,
                    ErrorKind::Auth,
                    "the function that supplies the model's credentials failed",
                )
            })?;
            Object::parse(&given).ok().as_ref().and_then(read_credentials).ok_or_else(|| {
                Error::new(ErrorKind::Auth, "the function that supplies the model's credentials gave none")
            })
        })
    }
}

/// The models of the caller, each by its number.
#[derive(Debug)]
pub(crate) struct JsModel(pub(crate) Functions);

impl FunctionModel for JsModel {
    fn call(
        &self,
        request: Arc<ModelRequest>,
        cancel: CancelToken,
    ) -> LocalBoxStream<'static, Result<ModelEvent, Error>> {
        let number = match &request.model.access {
            Access::Function(name) => number_of_function(name),
            _ => 0,
        };
        let answer = match self.0.model(number, &request_json(&request)) {
            Ok(answer) => answer,
            Err(thrown) => {
                let error = Error::new(ErrorKind::InvalidInput, message(&thrown));
                return stream::once(std::future::ready(Err(error))).boxed_local();
            }
        };
        let cancelling = {
            let answer = answer.clone();
            cancel.on_cancel(move || {
                // The facade's function; what it calls of the caller's is guarded there.
                let _ = answer.cancel_answer();
            })
        };
        stream::unfold(Answering { answer, waiting: VecDeque::new(), _cancelling: cancelling }, Answering::next)
            .boxed_local()
    }
}

struct Answering {
    answer: Answer,
    waiting: VecDeque<ModelEvent>,
    _cancelling: CancelGuard,
}

impl Answering {
    async fn next(mut self) -> Option<(Result<ModelEvent, Error>, Self)> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some((Ok(event), self));
            }
            match resolved(self.answer.next()).await {
                Ok(events) => match events.as_string() {
                    Some(events) => match read_events(&events) {
                        Some(events) => self.waiting.extend(events),
                        None => {
                            let message = "the model function yielded something that is no piece of an answer";
                            return Some((Err(Error::new(ErrorKind::BadRequest, message)), self));
                        }
                    },
                    None => return None,
                },
                Err(thrown) => {
                    // Trying a function of the caller's again is for the caller to ask, by an error of such a kind.
                    let error = error_from_rejection(&thrown, ErrorKind::BadRequest, "the model function failed");
                    return Some((Err(error), self));
                }
            }
        }
    }
}

/// The events of a function; `None` where one cannot be read, since a part of the answer would be missing.
fn read_events(text: &str) -> Option<Vec<ModelEvent>> {
    let events = Object::parse_all(text)?;
    events.iter().map(read_event).collect()
}

/// Reads `CoreCredentials` of `src/js/model.ts`.
fn read_credentials(object: &Object<'_>) -> Option<Credentials> {
    if let Some(key) = object.string("key") {
        return Some(Credentials::Key(key));
    }
    if let Some(headers) = object.read("headers") {
        return Some(Credentials::Headers(headers));
    }
    let aws = object.object("aws")?;
    Some(Credentials::Aws(AwsKeys {
        access_key_id: aws.string("accessKeyId")?,
        secret_access_key: aws.string("secretAccessKey")?,
        session_token: aws.string("sessionToken"),
        region: aws.string("region"),
    }))
}

fn request_json(request: &ModelRequest) -> String {
    #[derive(Serialize)]
    struct Asked<'request, Message: Serialize> {
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'request str>,
        messages: Vec<&'request Message>,
        tools: Vec<AskedTool<'request>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<AskedOutput<'request>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct AskedOutput<'request> {
        name: &'request str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'request str>,
        json_schema: &'request RawJson,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct AskedTool<'request> {
        name: &'request str,
        description: &'request str,
        input_schema: &'request RawJson,
    }
    let tools = request.tools.iter();
    let asked = Asked {
        instructions: request.instructions.as_deref(),
        messages: request.messages.iter().map(AsRef::as_ref).collect(),
        output: request.options.output.as_deref().map(|output| AskedOutput {
            name: &output.name,
            description: output.description.as_deref(),
            json_schema: &output.schema,
        }),
        tools: tools
            .map(|tool| AskedTool {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.input_schema,
            })
            .collect(),
    };
    serde_json::to_string(&asked).unwrap_or_default()
}

/// Cancels a piece of the caller's work at once when the token fires.
pub(crate) fn cancel_with(cancel: &CancelToken, execution: Execution) -> CancelGuard {
    cancel.on_cancel(move || {
        // The listeners of an abort signal report what they throw themselves.
        let _ = execution.cancel();
    })
}

/// What a promise of the caller's gives. In a box, so that waiting for one is in the module once.
pub(crate) fn resolved(asked: Result<Promise, JsValue>) -> BoxFuture<'static, Result<JsValue, JsValue>> {
    Box::pin(async move { JsFuture::from(asked?).await })
}

/// What a piece of the caller's work gives, which is told when nobody waits for it any more; `None` where it is no text.
pub(crate) fn answered(asked: Result<Execution, JsValue>) -> BoxFuture<'static, Result<Option<String>, JsValue>> {
    Box::pin(async move {
        let working = CancelOnDrop(asked?);
        Ok(resolved(Ok(working.0.result())).await?.as_string())
    })
}

/// After the answer it says nothing.
struct CancelOnDrop(Execution);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // The listeners of an abort signal report what they throw themselves.
        let _ = self.0.cancel();
    }
}

/// Runs a piece of work in the background.
pub(crate) fn spawn(work: impl Future<Output = ()> + 'static) {
    WebHost::new().spawn(work);
}

/// The text of a value; empty for `undefined`.
pub(crate) fn text(answer: Result<JsValue, JsValue>) -> Result<String, JsValue> {
    answer.map(|value| value.as_string().unwrap_or_default())
}

/// The sentence of what was thrown.
pub(crate) fn message(thrown: &JsValue) -> String {
    crablet::web::message_of_rejection(thrown)
}
