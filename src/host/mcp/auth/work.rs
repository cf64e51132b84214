use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{Either, select};

use super::OAuth;
use crate::error::{Error, ErrorKind};
use crate::host::{Body, Host, SigningKey};
use crate::mcp::client::auth::{DOCUMENT_LIMIT, KeyName, Outcome, Work};
use crate::model::HttpRequest;

/// The key that tokens are bound to, once there is one.
pub(super) type ProofKey = Arc<Mutex<Option<Arc<dyn SigningKey>>>>;

/// Does a piece of work within its time.
pub(super) async fn perform<H: Host>(host: H, oauth: OAuth, key: ProofKey, work: Work) -> Result<Outcome, Error> {
    let sleep = Box::pin(host.sleep(work.limit()));
    match select(Box::pin(perform_anyhow(host, oauth, key, work)), sleep).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => Err(Error::new(ErrorKind::Timeout, "the authorization took too long; try again")),
    }
}

async fn perform_anyhow<H: Host>(host: H, oauth: OAuth, key: ProofKey, work: Work) -> Result<Outcome, Error> {
    Ok(match work {
        Work::Fetch(request) => fetch(&host, request).await?,
        Work::Load(name) => Outcome::Text(oauth.store.load(name).await?),
        Work::RedirectUri => Outcome::Text(Some(consent(&oauth)?.redirect_uri().await?)),
        Work::AskPerson(url) => Outcome::Text(Some(consent(&oauth)?.ask(url).await?)),
        Work::Assertion(request) => {
            let source =
                oauth.assertions.ok_or_else(|| missing("this grant needs a function that supplies assertions"))?;
            Outcome::Text(Some(source.assertion(request).await?))
        }
        Work::PublicKey => {
            let made = host.signing_key(None).await?;
            let public_key = made.public_key().to_owned();
            *key.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            Outcome::Text(Some(public_key))
        }
        Work::Sign { key: name, message } => {
            let key = match name {
                KeyName::Proof => key.lock().unwrap_or_else(PoisonError::into_inner).clone(),
                KeyName::Client => match oauth.options.client.and_then(|client| client.key) {
                    Some(private) => Some(host.signing_key(Some(private)).await?),
                    None => None,
                },
            };
            let key = key.ok_or_else(|| missing("there is no key to sign with"))?;
            Outcome::Signature(key.sign(message.into_bytes()).await?)
        }
    })
}

async fn fetch<H: Host>(host: &H, request: HttpRequest) -> Result<Outcome, Error> {
    let (head, mut stream) = host.fetch(request).await?;
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await? {
        if body.len() + chunk.len() > DOCUMENT_LIMIT {
            let message = "an answer about authorization is larger than any should be";
            return Err(Error::new(ErrorKind::Limit, message));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Outcome::Answer { head, body })
}

fn consent(oauth: &OAuth) -> Result<&Arc<dyn super::Consent>, Error> {
    oauth
        .consent
        .as_ref()
        .ok_or_else(|| missing("the MCP server wants a person's consent, and there is no way to ask for it"))
}

fn missing(what: &str) -> Error {
    Error::new(ErrorKind::Auth, what)
}
