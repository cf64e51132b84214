//! What an authorization server knows the client as.

use super::form::Form;
use super::metadata::{ServerMetadata, is_same_issuer};
use super::options::{AuthOptions, PrivateKey, Secret};
use super::refused;
use crate::error::Error;
use crate::json::Object;
use crate::jsonrpc::Params;
use crate::mcp::transport::streamable_http::mirrored::base64;
use crate::model::HttpRequest;
use crate::percent;
use crate::time::Millis;

/// A client of one authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) id: String,
    secret: Option<Secret>,
    pub(super) key: Option<PrivateKey>,
    /// How the server wants it to prove itself, where the server said so when it registered the client.
    method: Option<String>,
    /// When its secret ends.
    expires_at: Option<Millis>,
    /// Where people are sent back to, for a client that the server registered by itself.
    pub(super) redirect_uri: Option<String>,
}

impl Client {
    /// The client that the options name, for this server.
    ///
    /// # Errors
    ///
    /// When another server knows it.
    pub(super) fn from_options(
        options: &AuthOptions,
        issuer: &str,
        metadata: &ServerMetadata,
    ) -> Result<Option<Self>, Error> {
        if let Some(registered) = &options.client {
            if let Some(other) = registered.issuer.as_deref().filter(|other| !is_same_issuer(other, issuer)) {
                let what = "the MCP server uses the authorization server ";
                return Err(refused(&[what, issuer, ", and the client is registered with ", other]));
            }
            return Ok(Some(Self {
                id: registered.id.clone(),
                secret: registered.secret.clone(),
                key: registered.key.clone(),
                ..Self::default()
            }));
        }
        let document = options.client_metadata_url.as_ref().filter(|_| metadata.takes_metadata_documents);
        Ok(document.map(|url| Self { id: url.clone(), ..Self::default() }))
    }

    /// The answer to a registration (RFC 7591, section 3.2.1).
    pub(super) fn read(object: &Object<'_>, redirect_uri: String) -> Option<Self> {
        let seconds = object.integer("client_secret_expires_at").filter(|seconds| *seconds > 0);
        Some(Self {
            id: object.string("client_id")?,
            secret: object.string("client_secret").map(Secret::new),
            key: None,
            method: object.string("token_endpoint_auth_method"),
            expires_at: seconds.map(|seconds| Millis(seconds.saturating_mul(1_000))),
            redirect_uri: Some(redirect_uri),
        })
    }

    /// As it is kept in a store: the members of the registration that are used.
    pub(super) fn to_record(&self) -> Secret {
        let mut record = Params::new().with("client_id", &self.id);
        let texts = [
            ("client_secret", self.secret.as_ref().map(Secret::expose)),
            ("token_endpoint_auth_method", self.method.as_deref()),
            ("redirect_uri", self.redirect_uri.as_deref()),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                record.set(name, value);
            }
        }
        if let Some(at) = self.expires_at {
            record.set("client_secret_expires_at", &(at.0 / 1_000));
        }
        Secret::new(record.to_raw().as_str())
    }

    /// A client that was kept, unless its secret has ended.
    pub(super) fn from_record(now: Millis, record: &str) -> Option<Self> {
        let object = Object::parse(record).ok()?;
        let client = Self::read(&object, object.string("redirect_uri")?)?;
        client.expires_at.is_none_or(|at| at > now).then_some(client)
    }

    /// Adds to a token request what proves that it is this client's (RFC 6749, section 2.3.1). A client with a key adds an
    /// assertion besides.
    pub(super) fn authenticate(&self, form: Form, token_endpoint: &str, metadata: &ServerMetadata) -> HttpRequest {
        let supports = |wanted: &str| {
            metadata.auth_methods.as_ref().is_some_and(|methods| methods.iter().any(|method| method == wanted))
        };
        let secret = self.secret.as_ref().filter(|_| self.key.is_none());
        let method = self.method.as_deref().unwrap_or_else(|| match &metadata.auth_methods {
            Some(_) if supports("client_secret_basic") => "client_secret_basic",
            Some(_) if supports("client_secret_post") => "client_secret_post",
            Some(_) if supports("none") => "none",
            // What a server means that says nothing (RFC 8414, section 2).
            _ => "client_secret_basic",
        });
        match (secret, method) {
            (Some(secret), "client_secret_post") => {
                form.with("client_id", &self.id).with("client_secret", secret.expose()).post(token_endpoint)
            }
            (None, _) | (_, "none") => form.with("client_id", &self.id).post(token_endpoint),
            (Some(secret), _) => {
                let mut request = form.post(token_endpoint);
                request.set_header("authorization", ["Basic ", &self.basic(secret)].concat());
                request
            }
        }
    }

    /// The credentials of the scheme `Basic`, without its name (RFC 6749, section 2.3.1).
    fn basic(&self, secret: &Secret) -> String {
        base64([&percent::encode(&self.id), ":", &percent::encode(secret.expose())].concat().as_bytes())
    }

    /// The values that an answer must not repeat to anybody.
    pub(super) fn secrets(&self) -> Vec<String> {
        self.secret.iter().flat_map(|secret| [secret.expose().to_owned(), self.basic(secret)]).collect()
    }
}

/// The request that registers a client which people authorize (RFC 7591, section 3.1).
pub(super) fn registration(
    endpoint: &str,
    redirect_uri: &str,
    scope: &str,
    options: &AuthOptions,
    metadata: &ServerMetadata,
) -> HttpRequest {
    let is_native = !redirect_uri.starts_with("https://");
    let mut body = Params::new()
        .with("client_name", options.client_name.as_deref().unwrap_or("crablet"))
        .with("redirect_uris", &[redirect_uri][..])
        .with("grant_types", &["authorization_code", "refresh_token"][..])
        .with("response_types", &["code"][..])
        .with("application_type", if is_native { "native" } else { "web" });
    // A client that runs where its user is keeps no secret, if it may choose.
    let known = ["none", "client_secret_basic", "client_secret_post"];
    let method = metadata
        .auth_methods
        .as_ref()
        .and_then(|methods| known.into_iter().find(|known| methods.iter().any(|method| method == known)));
    if let Some(method) = method {
        body.set("token_endpoint_auth_method", method);
    }
    if !scope.is_empty() {
        body.set("scope", scope);
    }
    let body = body.to_raw().as_str().as_bytes().to_vec();
    let mut request = HttpRequest { method: "POST", url: endpoint.to_owned(), headers: Vec::new(), body };
    request.set_header("content-type", "application/json");
    request.set_header("accept", "application/json");
    request
}
