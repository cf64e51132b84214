//! One attempt of a model call, from request to last event.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::select;

use super::origin::origin;
use super::port::Port;
use super::runner::Parts;
use super::{Body, CancelToken, Host};
use crate::agent::{Input, ModelCallId};
use crate::error::{Error, ErrorKind};
use crate::model::{Access, Credentials, ModelEvent, ModelRequest, secrets_of_headers, secrets_of_url};
use crate::planted::{self, Defect};
use crate::redaction::SHORTEST_SECRET;

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
        message = hooks.format_request(request.model.reference(), message, cancel).await?;
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

/// Reads what little is left of an answer: a connection whose answer was read to its end can be used again.
async fn drain(mut body: impl Body, time_is_up: impl Future<Output = ()>) {
    let rest = std::pin::pin!(async { while let Ok(Some(_)) = body.next().await {} });
    select(rest, std::pin::pin!(time_is_up)).await;
}

/// Hands over events. The last ones come together with the end of the answer, as one batch; for others the reader must want more.
pub(super) async fn hand_over(port: &Port, events: Input, are_last: bool) {
    if are_last {
        port.finish(events);
    } else {
        port.send(events).await;
    }
}

pub(super) fn is_complete(events: &[ModelEvent]) -> bool {
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
