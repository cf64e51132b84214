use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{Either, select};

use super::{Consent, OAuth};
use crate::error::{Error, ErrorKind};
use crate::host::{Body, BoxFuture, Host, SigningKey};
use crate::mcp::client::auth::{DOCUMENT_LIMIT, KeyName, Outcome, PrivateKey, Work};
use crate::model::HttpRequest;

/// The key that tokens are bound to, once there is one.
pub(super) type ProofKey = Arc<Mutex<Option<Arc<dyn SigningKey>>>>;

type Working = BoxFuture<'static, Result<Outcome, Error>>;

/// Does a piece of work within its time.
pub(super) async fn perform<H: Host>(host: H, oauth: Arc<OAuth>, key: ProofKey, work: Work) -> Result<Outcome, Error> {
    let sleep = Box::pin(host.sleep(work.limit()));
    let working = start(&host, &oauth, key, work).unwrap_or_else(|error| Box::pin(std::future::ready(Err(error))));
    match select(working, sleep).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => Err(Error::new(ErrorKind::Timeout, "the authorization took too long; try again")),
    }
}

/// Each kind of work as a future of its own: together in one function they would be several times as large.
fn start<H: Host>(host: &H, oauth: &OAuth, key: ProofKey, work: Work) -> Result<Working, Error> {
    Ok(match work {
        Work::Fetch(request) => Box::pin(fetch(host.clone(), request)),
        Work::Load(name) => {
            let loading = oauth.store.load(name);
            Box::pin(async move { loading.await.map(Outcome::Text) })
        }
        Work::RedirectUri => text(consent(oauth)?.redirect_uri()),
        Work::AskPerson(url) => text(consent(oauth)?.ask(url)),
        Work::Assertion(request) => match &oauth.assertions {
            Some(source) => text(source.assertion(request)),
            None => return Err(missing("this grant needs a function that supplies assertions")),
        },
        Work::PublicKey => make_key(host.signing_key(None), key),
        Work::Sign { key: KeyName::Proof, message } => {
            let key = key.lock().unwrap_or_else(PoisonError::into_inner).clone();
            signature(key.ok_or_else(|| missing("there is no key to sign with"))?.sign(message.into_bytes()))
        }
        Work::Sign { key: KeyName::Client, message } => {
            let private = oauth.options.client.as_ref().and_then(|client| client.key.clone());
            sign_as_client(host, private.ok_or_else(|| missing("the client has no key to sign with"))?, message)
        }
    })
}

fn text(asked: BoxFuture<'static, Result<String, Error>>) -> Working {
    Box::pin(async move { asked.await.map(|text| Outcome::Text(Some(text))) })
}

fn signature(signing: BoxFuture<'static, Result<Vec<u8>, Error>>) -> Working {
    Box::pin(async move { signing.await.map(Outcome::Signature) })
}

fn make_key(making: BoxFuture<'static, Result<Arc<dyn SigningKey>, Error>>, key: ProofKey) -> Working {
    Box::pin(async move {
        let made = making.await?;
        let public_key = made.public_key().to_owned();
        *key.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(Outcome::Text(Some(public_key)))
    })
}

fn sign_as_client<H: Host>(host: &H, private: PrivateKey, message: String) -> Working {
    let reading = host.signing_key(Some(private));
    Box::pin(async move { reading.await?.sign(message.into_bytes()).await.map(Outcome::Signature) })
}

async fn fetch<H: Host>(host: H, request: HttpRequest) -> Result<Outcome, Error> {
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

fn consent(oauth: &OAuth) -> Result<&Arc<dyn Consent>, Error> {
    let consent = oauth.consent.as_ref();
    consent.ok_or_else(|| missing("the MCP server wants a person's consent, and there is no way to ask for it"))
}

fn missing(what: &'static str) -> Error {
    Error::new(ErrorKind::Auth, what)
}
