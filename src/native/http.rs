//! HTTP over reqwest.

use std::error::Error as _;

use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, Method, Response, Url};

use crate::error::{Error, ErrorKind};
use crate::host::Body;
use crate::model::{HttpRequest, ResponseHead};

/// The most redirects of one request: more than any working set-up needs, few enough to end a loop at once.
const MAX_REDIRECTS: usize = 5;

/// The body of an answer that reqwest received.
#[derive(Debug)]
pub struct HttpBody(Response);

impl Body for HttpBody {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match self.0.chunk().await {
            Ok(chunk) => Ok(chunk.map(Vec::from)),
            Err(error) => Err(Error::new(ErrorKind::Network, format!("the connection broke: {}", cause_of(&error)))),
        }
    }
}

pub(super) fn client() -> Result<Client, reqwest::Error> {
    Client::builder().redirect(Policy::custom(follow_within_origin)).build()
}

pub(super) async fn fetch(client: Client, request: HttpRequest) -> Result<(ResponseHead, HttpBody), Error> {
    let invalid = |what: &str| Error::new(ErrorKind::InvalidInput, format!("the request cannot be sent: {what}"));
    let method =
        Method::from_bytes(request.method.as_bytes()).map_err(|_| invalid("its method is not an HTTP method"))?;
    let url = Url::parse(&request.url).map_err(|error| invalid(&format!("its address is not a URL ({error})")))?;
    let mut builder = client.request(method, url);
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    if !request.body.is_empty() {
        builder = builder.body(request.body);
    }
    let request = builder.build().map_err(|error| invalid(&cause_of(&error)))?;
    let authority = request.url().authority().rsplit('@').next().unwrap_or_default().to_owned();

    let response = client.execute(request).await.map_err(|error| {
        let action = if error.is_connect() { "no connection to" } else { "no answer from" };
        Error::new(ErrorKind::Network, format!("{action} {authority}: {}", cause_of(&error)))
    })?;
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    let head = ResponseHead { status: response.status().as_u16(), headers: headers.collect() };
    Ok((head, HttpBody(response)))
}

/// The innermost reason of an error. Addresses are left out: they can hold keys.
pub(super) fn cause_of(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|cause| cause.source()) {
        cause = Some(inner);
    }
    match cause {
        Some(cause) => cause.to_string(),
        None if error.is_timeout() => "it took too long".to_owned(),
        None if error.is_builder() => "a header or the address holds a character that is not allowed".to_owned(),
        None => "the request failed".to_owned(),
    }
}

/// A redirect to another origin would carry the key there, whatever the header it stands in. Such an answer is given back
/// as it is.
fn follow_within_origin(attempt: Attempt<'_>) -> Action {
    let same_origin = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    if same_origin && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
}
