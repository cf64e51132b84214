//! One attempt of a model call, from request to last event.

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::future::select;

use super::effects::no_panic;
use super::origin::origin;
use super::port::Port;
use super::runner::Parts;
use super::{Body, CancelToken, FunctionModel, HookContext, Hooks, Host};
use crate::agent::{HookQuestion, HookReply, Input, ModelCallId};
use crate::error::{Error, ErrorKind};
use crate::json::RawJson;
use crate::model::{Access, Credentials, HttpRequest, ModelEvent, ModelRequest, secrets_of_headers, secrets_of_url};
use crate::planted::{self, Defect};
use crate::redaction::SHORTEST_SECRET;

/// The most events of a function model that are handed over at once, so that a stream that is always ready does not keep
/// its reader waiting.
const MAX_BATCH: usize = 256;

/// How long an answer that is complete may take to end its body, in milliseconds: what follows the last event is at most
/// an end mark, and a server that holds the connection open longer does so for no use of ours.
const DRAIN_TIME: u64 = 1_000;

/// Calls a model over HTTP with its wire protocol.
pub(super) async fn call_http<H: Host>(
    host: H,
    parts: Arc<Parts<H>>,
    call: ModelCallId,
    request: Arc<ModelRequest>,
    cancel: CancelToken,
    port: Port,
) -> Input {
    let mut secrets = Vec::new();
    let mut outcome = answer_over_http(&host, &parts, call, &request, cancel, &port, &mut secrets).await;
    if let Err(error) = &mut outcome {
        error.redact(&secrets);
    }
    Input::ModelEnded { call, outcome }
}

async fn answer_over_http<H: Host>(
    host: &H,
    parts: &Parts<H>,
    call: ModelCallId,
    request: &ModelRequest,
    cancel: CancelToken,
    port: &Port,
    secrets: &mut Vec<String>,
) -> Result<(), Error> {
    let Access::Http { wire, headers, base_url } = &request.model.access else {
        return Err(Error::new(ErrorKind::Internal, "this model is not called over HTTP"));
    };
    check_address(request, base_url.as_deref().unwrap_or_default())?;
    let driver = port.driver().upgrade().ok_or_else(|| Error::new(ErrorKind::Aborted, "the conversation is gone"))?;
    let mut message = driver.with_cache(|cache| wire.encode(request, cache))?;
    drop(driver);
    if parts.formats_requests
        && let Some(hooks) = &parts.hooks
    {
        let context = HookContext { run_id: None, cancel, caller: None };
        format_request(hooks.as_ref(), request, &mut message, context).await?;
    }
    let credentials = match &parts.credentials {
        Some(source) => source.credentials(request.model.clone()).await?,
        None => Credentials::None,
    };
    wire.authorize(&mut message, &credentials, host.now())?;
    *secrets = [secrets_of_headers(headers), secrets_of(credentials), secrets_of_url(&message.url)].concat();
    secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
    let address = origin(&message.url).to_owned();
    let (mut head, mut body) = host.fetch(message).await.map_err(|error| unreachable(request, &address, &error))?;

    // A wait until some moment is read against the clock of the server that names it, or else against that of the host.
    if head.status >= 400 && head.header("date").is_none() {
        head.headers.push(("date".to_owned(), host.now().to_rfc3339()));
    }
    let mut decoder = wire.decoder(request, &head);
    loop {
        let chunk = body.next().await;
        let mut events = Vec::new();
        match &chunk {
            Ok(Some(bytes)) => decoder.push(bytes, &mut events),
            Ok(None) => decoder.finish(&mut events),
            Err(error) => {
                decoder.finish(&mut events);
                // Servers close connections rudely behind a whole answer; and the status of an error tells more than the
                // broken connection does.
                let is_whole = matches!(events.last(), Some(ModelEvent::Stop { .. }));
                if !is_whole && head.status < 400 {
                    return Err(cut(request, &address, error));
                }
            }
        }
        if let Some(ModelEvent::Failed(error)) = events.last_mut() {
            error.redact(secrets);
        }
        // Servers may hold the connection open after the last event; the answer does not wait for them.
        let complete = is_complete(&events) || !matches!(chunk, Ok(Some(_)));
        // A chunk without events is handed over too: it shows that the model is alive.
        hand_over(port, Input::ModelEvents { call, events }, complete).await;
        if complete {
            if planted::is(Defect::KeepsConnections) {
                host.spawn(async move {
                    let _kept = body;
                    std::future::pending().await
                });
            } else if matches!(chunk, Ok(Some(_))) {
                host.spawn(drain(body, host.sleep(DRAIN_TIME)));
            }
            return Ok(());
        }
    }
}

/// Refuses an address to which no path can be appended. It is not shown, since it may hold a key.
fn check_address(request: &ModelRequest, url: &str) -> Result<(), Error> {
    if !url.contains(['?', '#']) {
        return Ok(());
    }
    let message = format!(
        "the address of the model \"{}\" has a query or a fragment, and paths are appended to it: give a key as a key or in a header",
        request.model.id
    );
    Err(Error::new(ErrorKind::InvalidInput, message))
}

/// Lets the hook put another body in the place of the encoded one.
async fn format_request(
    hooks: &dyn Hooks,
    request: &ModelRequest,
    message: &mut HttpRequest,
    context: HookContext,
) -> Result<(), Error> {
    let failed =
        |reason: String| Error::new(ErrorKind::InvalidInput, format!("the hook formatRequest failed: {reason}"));
    let body = String::from_utf8(message.body.clone()).map_err(|error| failed(error.to_string()))?;
    let body = RawJson::parse(body).map_err(|error| failed(error.to_string()))?;
    let question = HookQuestion::FormatRequest { model: request.model.reference(), body };
    match no_panic(async { hooks.answer(question, context).await }).await.and_then(|reply| reply).map_err(failed)? {
        HookReply::ChangeBody(body) => message.body = body.as_str().as_bytes().to_vec(),
        HookReply::Continue => {}
        _ => return Err(failed("its answer does not fit the question".to_owned())),
    }
    Ok(())
}

/// Reads what little is left of an answer: a connection whose answer was read to its end can be used again.
async fn drain(mut body: impl Body, time_is_up: impl Future<Output = ()>) {
    let rest = std::pin::pin!(async { while let Ok(Some(_)) = body.next().await {} });
    select(rest, std::pin::pin!(time_is_up)).await;
}

/// Calls a model that is a function.
pub(super) async fn call_function(
    model: Option<Arc<dyn FunctionModel>>,
    call: ModelCallId,
    request: Arc<ModelRequest>,
    cancel: CancelToken,
    port: Port,
) -> Input {
    let outcome = answer_of_function(model, call, request, cancel, &port).await;
    Input::ModelEnded { call, outcome }
}

async fn answer_of_function(
    model: Option<Arc<dyn FunctionModel>>,
    call: ModelCallId,
    request: Arc<ModelRequest>,
    cancel: CancelToken,
    port: &Port,
) -> Result<(), Error> {
    let Some(model) = model else {
        let message = format!(
            "the model \"{}\" is a function, but none of its name was given to the runner; add it with function_model()",
            request.model.id
        );
        return Err(Error::new(ErrorKind::InvalidInput, message));
    };
    let mut answer = model.call(request, cancel);
    loop {
        let mut events = Vec::new();
        let mut ended = None;
        std::future::poll_fn(|context| {
            while events.len() < MAX_BATCH {
                match answer.poll_next_unpin(context) {
                    Poll::Ready(Some(Ok(event))) => {
                        events.push(event);
                        if is_complete(&events) {
                            ended = Some(Ok(()));
                            break;
                        }
                    }
                    Poll::Ready(Some(Err(error))) => {
                        ended = Some(Err(error));
                        break;
                    }
                    Poll::Ready(None) => {
                        let message = "the model's function ended its answer without a stop event";
                        ended = Some(Err(Error::new(ErrorKind::StreamTruncated, message)));
                        break;
                    }
                    Poll::Pending if events.is_empty() => return Poll::Pending,
                    Poll::Pending => break,
                }
            }
            Poll::Ready(())
        })
        .await;
        if !events.is_empty() {
            hand_over(port, Input::ModelEvents { call, events }, ended.is_some()).await;
        }
        if let Some(outcome) = ended {
            return outcome;
        }
    }
}

/// Hands over events. The last ones come together with the end of the answer, as one batch; for others the reader must want more.
async fn hand_over(port: &Port, events: Input, are_last: bool) {
    if are_last {
        port.finish(events);
    } else {
        port.send(events).await;
    }
}

fn is_complete(events: &[ModelEvent]) -> bool {
    events.last().is_some_and(ModelEvent::is_last)
}

fn secrets_of(credentials: Credentials) -> Vec<String> {
    match credentials {
        Credentials::Key(key) => vec![key.trim().to_owned()],
        Credentials::Headers(headers) => secrets_of_headers(&headers),
        Credentials::Aws(keys) => {
            [Some(keys.access_key_id), Some(keys.secret_access_key), keys.session_token].into_iter().flatten().collect()
        }
        Credentials::None => Vec::new(),
    }
}

fn unreachable(request: &ModelRequest, address: &str, error: &Error) -> Error {
    if error.kind() != ErrorKind::Network {
        return error.clone();
    }
    let (model, cause) = (&request.model.id, error.message());
    // Hosts that know more than that nothing came back say where.
    let authority = address.split("://").last().unwrap_or_default();
    let place = if cause.contains(authority) { String::new() } else { format!(" at {address}") };
    Error::new(ErrorKind::Network, format!("the model \"{model}\"{place} could not be reached: {cause}"))
}

fn cut(request: &ModelRequest, address: &str, error: &Error) -> Error {
    let model = &request.model.id;
    let message = format!("the answer of \"{model}\" at {address} broke off in the middle: {}", error.message());
    Error::new(ErrorKind::StreamTruncated, message)
}
