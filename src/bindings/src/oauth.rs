//! OAuth for MCP servers, with the caller's parts in it.

use crablet::host::BoxFuture;
use crablet::host::mcp::{Consent, OAuth, TokenStore};
use crablet::json::Object;
use crablet::jsonrpc::Params;
use crablet::mcp::client::auth::{
    AssertionRequest, AuthOptions, Grant, IdentityProvider, PrivateKey, RegisteredClient, Secret, SigningAlgorithm,
};
use crablet::web::error_from_rejection;
use crablet::{Error, ErrorKind};
use wasm_bindgen::JsValue;

use crate::config::invalid;
use crate::functions::answered;
use crate::mcp::ServerFunctions;

/// Reads what `src/js/oauth.ts` makes of `auth`.
pub(crate) fn read_oauth(config: &Object<'_>, functions: ServerFunctions) -> Result<OAuth, Error> {
    let text = |name| config.string(name);
    let provider = config.object("identityProvider").map(|provider| IdentityProvider {
        token_endpoint: provider.string("tokenEndpoint").unwrap_or_default(),
        client_id: provider.string("clientId").unwrap_or_default(),
        client_secret: provider.string("clientSecret").map(Secret::new),
    });
    let options = AuthOptions {
        grant: match (text("grant").as_deref(), provider) {
            (Some("enterprise"), Some(provider)) => Grant::Enterprise(provider),
            (Some("assertion"), _) => Grant::Assertion,
            (Some("client-credentials"), _) => Grant::ClientCredentials,
            _ => Grant::AuthorizationCode,
        },
        client: config.object("client").as_ref().map(read_client).transpose()?,
        client_metadata_url: text("clientMetadataUrl"),
        client_name: text("clientName"),
        scopes: config.read("scopes").unwrap_or_default(),
        dpop: config.boolean("dpop").unwrap_or_default(),
    };
    let mut oauth = OAuth::new(options);
    let caller = Caller(functions);
    if config.boolean("hasConsent") == Some(true) {
        oauth = oauth.consent(caller.clone());
    }
    if config.boolean("hasStore") == Some(true) {
        oauth = oauth.store(caller.clone());
    }
    Ok(oauth.assertions(move |request: AssertionRequest| {
        let mut question = question("assertion")
            .with("issuer", &request.issuer)
            .with("tokenEndpoint", &request.token_endpoint)
            .with("scope", &request.scope);
        if let Some(resource) = &request.resource {
            question.set("resource", resource);
        }
        caller.ask(&question)
    }))
}

fn read_client(client: &Object<'_>) -> Result<RegisteredClient, Error> {
    let key = client.object("privateKey").map(|key| {
        let algorithm = key.string("algorithm").unwrap_or_else(|| "ES256".to_owned());
        let known = SigningAlgorithm::from_name(&algorithm);
        Ok::<_, Error>(PrivateKey {
            pem: Secret::new(key.string("pem").unwrap_or_default()),
            algorithm: known.ok_or_else(|| invalid("a private key signs with ES256, RS256 or EdDSA"))?,
            key_id: key.string("keyId"),
        })
    });
    Ok(RegisteredClient {
        id: client.string("id").unwrap_or_default(),
        secret: client.string("secret").map(Secret::new),
        key: key.transpose()?,
        issuer: client.string("issuer"),
    })
}

fn question(kind: &str) -> Params {
    Params::new().with("type", kind)
}

/// The functions of the caller: all of them behind one of the facade.
#[derive(Clone)]
struct Caller(ServerFunctions);

impl Caller {
    /// The answer to a question of `CoreAuthQuestion`; empty where there is none.
    fn ask(&self, question: &Params) -> BoxFuture<'static, Result<String, Error>> {
        let failed = |thrown: JsValue| error_from_rejection(&thrown, ErrorKind::Auth, "the authorization failed");
        let asked = self.0.auth(question.to_raw().as_str());
        Box::pin(async move {
            let answer = answered(asked).await.map_err(failed)?;
            Ok(answer.unwrap_or_default())
        })
    }
}

impl Consent for Caller {
    fn redirect_uri(&self) -> BoxFuture<'static, Result<String, Error>> {
        self.ask(&question("redirect-url"))
    }

    fn ask(&self, url: String) -> BoxFuture<'static, Result<String, Error>> {
        self.ask(&question("authorize").with("url", &url))
    }
}

impl TokenStore for Caller {
    fn load(&self, key: String) -> BoxFuture<'static, Result<Option<String>, Error>> {
        let asked = self.ask(&question("load").with("key", &key));
        Box::pin(async move { Ok(Some(asked.await?).filter(|value| !value.is_empty())) })
    }

    fn save(&self, key: String, value: Option<String>) -> BoxFuture<'static, Result<(), Error>> {
        let asked = self.ask(&question("save").with("key", &key).with("value", &value));
        Box::pin(async move { asked.await.map(drop) })
    }
}
