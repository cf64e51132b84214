use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Method, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::origins::Origins;
use super::private_address::{PublicResolver, names_private};
use crate::agent::{Approval, ToolDefinition, ToolOutput};
use crate::error::{Error, ErrorKind};
use crate::host::tools::{BuiltInTool, add_chunk, response_output};
use crate::host::{BoxFuture, Tool, ToolContext};
use crate::json::RawJson;
use crate::native::http::cause_of;

/// What a fetch tool may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchOptions {
    /// Where requests may go: `https://example.com`, or `https://*.example.com` for every host below it.
    pub origins: Vec<String>,
    /// The methods allowed. Default: GET and HEAD. For others a person is asked.
    pub methods: Vec<String>,
    /// Sent with each request, such as a `user-agent`; not for keys, which the addresses a model chooses would receive.
    pub headers: Vec<(String, String)>,
    /// The most bytes of an answer that are read; of a longer one the model gets the beginning. Default 500 000.
    pub max_bytes: usize,
    /// How long one request may take, redirects and body included. Default 30 s.
    pub timeout: Duration,
    /// Whether addresses of this machine and of private networks may be reached. Default: no.
    pub allow_private: bool,
}

impl FetchOptions {
    /// GET and HEAD to these origins, with the default limits.
    pub fn new(origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            origins: origins.into_iter().map(Into::into).collect(),
            methods: vec!["GET".to_owned(), "HEAD".to_owned()],
            headers: Vec::new(),
            max_bytes: 500_000,
            timeout: Duration::from_secs(30),
            allow_private: false,
        }
    }
}

/// The tool `fetch`, which gets pages and data from the origins that you allow. It sends no cookies and no other
/// credentials, uses no proxy, follows redirects only to where a request would have been allowed too, and connects to no
/// private address, whatever a name resolves to.
///
/// # Errors
///
/// `invalid-input` when there is no origin, or an origin, method or header is not valid.
pub fn fetch_tool(options: FetchOptions) -> Result<BuiltInTool, Error> {
    let origins = Origins::parse(&options.origins)?;
    let methods = options.methods.iter().map(|method| parse_method(method)).collect::<Result<Vec<_>, _>>()?;
    let first = methods.first().ok_or_else(|| invalid("a fetch tool needs a method"))?;
    let schema = RawJson::from_value(&input_schema(&methods, first)).map_err(|error| invalid(error.to_string()))?;
    let description = format!("Fetch a page or data from the web. Only from: {}", origins.told());
    let mut definition = ToolDefinition::new("fetch", description, schema);
    definition.repeatable = methods.iter().all(Method::is_safe);
    definition.needs_approval = !definition.repeatable;
    let client = client(&options, &origins)?;
    Ok((definition, Arc::new(Fetch { client, origins, methods, options })))
}

struct Fetch {
    client: Client,
    origins: Origins,
    methods: Vec<Method>,
    options: FetchOptions,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    url: String,
    method: Option<String>,
    body: Option<String>,
    content_type: Option<String>,
}

impl Tool for Fetch {
    fn execute(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>> {
        let request = self.request(&input);
        let (client, limit, max_bytes) = (self.client.clone(), self.options.timeout, self.options.max_bytes);
        Box::pin(async move {
            let request = request?;
            let origin = request.url().origin().ascii_serialization();
            let fetching = timeout(limit, fetch(client, request, max_bytes));
            tokio::select! {
                outcome = fetching => {
                    outcome.unwrap_or_else(|_| Err(format!("{origin} did not answer within {} s", limit.as_secs_f32())))
                }
                () = context.cancel.cancelled() => Err("the call was cancelled".to_owned()),
            }
        })
    }

    fn decide(&self, input: &RawJson) -> Option<Approval> {
        let request: Request = input.read().ok()?;
        self.method(&request).ok()?.is_safe().then_some(Approval::Allow)
    }
}

impl Fetch {
    fn request(&self, input: &RawJson) -> Result<reqwest::Request, String> {
        let request: Request = input.read().map_err(|error| error.to_string())?;
        let url = self.origins.check(&request.url)?;
        if !self.options.allow_private && names_private(&url) {
            let origin = url.origin().ascii_serialization();
            return Err(format!("{origin} is an address of a private network, which is not allowed"));
        }
        let method = self.method(&request)?;
        let mut builder = self.client.request(method.clone(), url);
        if let Some(body) = request.body {
            if method.is_safe() {
                return Err(format!("a {method} request has no body"));
            }
            let content_type = request.content_type.unwrap_or_else(|| "application/json".to_owned());
            builder = builder.header(CONTENT_TYPE, content_type).body(body);
        }
        builder.build().map_err(|error| format!("the request cannot be sent: {}", cause_of(&error)))
    }

    fn method(&self, request: &Request) -> Result<Method, String> {
        let told = || self.methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        let Some(wanted) = &request.method else { return self.methods.first().cloned().ok_or_else(told) };
        let found = self.methods.iter().find(|method| method.as_str().eq_ignore_ascii_case(wanted));
        found.cloned().ok_or_else(|| format!("{wanted} is not allowed; allowed are: {}", told()))
    }
}

async fn fetch(client: Client, request: reqwest::Request, max_bytes: usize) -> Result<ToolOutput, String> {
    let origin = request.url().origin().ascii_serialization();
    let no_answer = |error: reqwest::Error| format!("no answer from {origin}: {}", cause_of(&error));
    let mut response = client.execute(request).await.map_err(no_answer)?;
    if let Some(error) = refused_redirect(&response) {
        return Err(error);
    }
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(chunk) = response.chunk().await.map_err(no_answer)? {
        if !add_chunk(&mut body, &chunk, max_bytes) {
            is_cut = true;
            break;
        }
    }
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Ok(response_output(response.status().as_u16(), content_type, &body, is_cut))
}

/// A redirect that was followed no further.
fn refused_redirect(response: &Response) -> Option<String> {
    let location = response.headers().get("location").filter(|_| response.status().is_redirection())?;
    let from = response.url().origin().ascii_serialization();
    Some(match location.to_str().ok().and_then(|location| response.url().join(location).ok()) {
        Some(to) => format!(
            "{from} redirects to {}{}, and that is not allowed, or is one redirect too many",
            to.origin().ascii_serialization(),
            to.path()
        ),
        None => format!("{from} redirects to something that is not an address"),
    })
}

fn client(options: &FetchOptions, origins: &Origins) -> Result<Client, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in &options.headers {
        let name = HeaderName::try_from(name).map_err(|_| invalid("a header's name is not valid"))?;
        let value = HeaderValue::try_from(value).map_err(|_| invalid("a header's value is not valid"))?;
        headers.insert(name, value);
    }
    let (allowed, allow_private) = (origins.clone(), options.allow_private);
    let follow = move |attempt: Attempt<'_>| {
        let may = attempt.previous().len() <= MAX_REDIRECTS
            && allowed.allow(attempt.url())
            && (allow_private || !names_private(attempt.url()));
        if may { attempt.follow() } else { attempt.stop() }
    };
    // A proxy would resolve names itself.
    let mut builder =
        Client::builder().redirect(Policy::custom(follow)).default_headers(headers).no_proxy().referer(false);
    if !allow_private {
        builder = builder.dns_resolver(Arc::new(PublicResolver));
    }
    builder.build().map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the HTTP client cannot be set up: {}", cause_of(&error)))
    })
}

fn input_schema(methods: &[Method], first: &Method) -> Value {
    let mut properties = json!({ "url": { "type": "string", "description": "The whole address, with https://" } });
    if !methods.iter().all(Method::is_safe)
        && let Some(properties) = properties.as_object_mut()
    {
        let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        let method = json!({ "type": "string", "enum": names, "description": format!("Default: {first}") });
        properties.insert("method".to_owned(), method);
        properties.insert("body".to_owned(), json!({ "type": "string", "description": "The body of the request" }));
        let content_type = json!({ "type": "string", "description": "Of the body. Default: application/json" });
        properties.insert("contentType".to_owned(), content_type);
    }
    json!({ "type": "object", "properties": properties, "required": ["url"], "additionalProperties": false })
}

fn parse_method(method: &str) -> Result<Method, Error> {
    let method = method.to_ascii_uppercase();
    Method::from_bytes(method.as_bytes()).map_err(|_| invalid(format!("{method:?} is not an HTTP method")))
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}

/// The most redirects of one request.
const MAX_REDIRECTS: usize = 5;
