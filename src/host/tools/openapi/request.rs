use std::sync::Arc;

use futures_util::future::{Either, select};
use serde_json::{Map, Value};

use super::operation::{OperationPlan, names_in};
use super::parameter::{Parameter, Place};
use super::server::Address;
use super::{ApiOperation, Authorization, OpenApiOptions};
use crate::agent::ToolOutput;
use crate::host::tools::{add_chunk, response_output};
use crate::host::{Body, BoxFuture, Host, Tool, ToolContext};
use crate::json::RawJson;
use crate::model::HttpRequest;
use crate::percent;

/// An operation as a tool.
pub(super) struct OperationTool<H> {
    pub(super) host: H,
    pub(super) operation: Arc<ApiOperation>,
    pub(super) plan: Arc<OperationPlan>,
    pub(super) server: Address,
    pub(super) options: Arc<OpenApiOptions>,
}

impl<H: Host> Tool for OperationTool<H> {
    fn execute(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>> {
        let (host, operation, plan) = (self.host.clone(), self.operation.clone(), self.plan.clone());
        let (server, options) = (self.server.clone(), self.options.clone());
        Box::pin(async move {
            let input: Map<String, Value> = input.read().map_err(|error| error.to_string())?;
            // What is wrong with the input is told before anyone is asked for a key.
            let address = address(&operation, &plan, &server, &input)?;
            let headers = headers(&plan, &input)?;
            let authorization = match &options.authorize {
                Some(authorizer) => authorizer.authorize(&operation).await?,
                None => Authorization::default(),
            };
            let request = request(&operation, &plan, &input, address, headers, authorization);
            let limit = options.timeout.unwrap_or(60_000);
            let sending = Box::pin(send(&host, request, &server, options.max_bytes.unwrap_or(200_000)));
            let given_up = select(host.sleep(limit).boxed_up(), context.cancel.cancelled());
            match select(sending, given_up).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right((Either::Left(_), _)) => {
                    Err(format!("{} did not answer within {} s", server.origin(), limit / 1000))
                }
                Either::Right((Either::Right(_), _)) => Err("the call was cancelled".to_owned()),
            }
        })
    }
}

/// A future that can be moved.
trait BoxedUp: Sized {
    fn boxed_up(self) -> std::pin::Pin<Box<Self>> {
        Box::pin(self)
    }
}

impl<F: Future> BoxedUp for F {}

fn request(
    operation: &ApiOperation,
    plan: &OperationPlan,
    input: &Map<String, Value>,
    address: String,
    mut headers: Vec<(String, String)>,
    authorization: Authorization,
) -> HttpRequest {
    let mut url = address;
    for (name, value) in &authorization.query {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&format!("{}={}", percent::encode(name), percent::encode(value)));
    }
    // What the supplier gives wins over what a model wrote.
    for (name, value) in authorization.headers {
        headers.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
        headers.push((name, value));
    }
    let body = plan.body.as_ref().and_then(|(property, _)| input.get(property));
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    HttpRequest { method: operation.method, url, headers, body }
}

async fn send<H: Host>(
    host: &H,
    request: HttpRequest,
    server: &Address,
    max_bytes: usize,
) -> Result<ToolOutput, String> {
    // What a host says of a failure may name the whole address.
    let no_answer = |_| format!("no answer from {}: it cannot be reached, or the connection broke", server.origin());
    let (head, mut body) = host.fetch(request).await.map_err(no_answer)?;
    let header = |wanted: &str| {
        head.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.clone())
    };
    if (300..400).contains(&head.status) && header("location").is_some() {
        return Err(format!("{} redirects to another address, and that is not followed", server.origin()));
    }
    let (mut content, mut is_cut) = (Vec::new(), false);
    while let Some(chunk) = body.next().await.map_err(no_answer)? {
        if !add_chunk(&mut content, &chunk, max_bytes) {
            is_cut = true;
            break;
        }
    }
    Ok(response_output(head.status, &header("content-type").unwrap_or_default(), &content, is_cut))
}

/// The address of a request; a message for the model when a value would change its path.
fn address(
    operation: &ApiOperation,
    plan: &OperationPlan,
    server: &Address,
    input: &Map<String, Value>,
) -> Result<String, String> {
    let mut path = operation.path.clone();
    for name in names_in(&operation.path) {
        let found =
            plan.parameters.iter().find(|(_, parameter)| parameter.place == Place::Path && parameter.name == name);
        let Some(((property, parameter), value)) = found.and_then(|found| Some((found, input.get(&found.0)?))) else {
            return Err(format!("{name} is missing"));
        };
        let written = parameter.segment(value);
        if written.is_empty() {
            return Err(format!("{property} is empty, and is part of the address"));
        }
        path = path.replace(&format!("{{{name}}}"), &written);
    }
    let path: String = format!("{}{path}", server.path).replace('?', "%3F").replace('#', "%23").replace(' ', "%20");
    // An address drops such names, and becomes another one.
    let is_dots = |name: &str| matches!(name.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if path.split('/').any(is_dots) || path.contains('\\') {
        return Err("a value would lead to another address: \".\" and \"..\" are not allowed in it".to_owned());
    }
    let query: Vec<String> =
        present(plan, Place::Query, input).flat_map(|(parameter, value)| parameter.pairs(value)).collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    Ok(format!("{}{path}{query}", server.origin()))
}

fn headers(plan: &OperationPlan, input: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let mut headers = vec![("accept".to_owned(), "application/json, text/*;q=0.9, */*;q=0.5".to_owned())];
    for (parameter, value) in present(plan, Place::Header, input) {
        let written = parameter.segment(value);
        if written.contains(|character: char| character.is_control() || !character.is_ascii()) {
            return Err(format!(
                "{} goes into a header, and holds a character that cannot stand there",
                parameter.name
            ));
        }
        headers.push((parameter.name.clone(), written));
    }
    let cookies: Vec<String> =
        present(plan, Place::Cookie, input).flat_map(|(parameter, value)| parameter.pairs(value)).collect();
    if !cookies.is_empty() {
        headers.push(("cookie".to_owned(), cookies.join("; ")));
    }
    if let Some((property, media_type)) = &plan.body
        && input.contains_key(property)
    {
        headers.push(("content-type".to_owned(), media_type.clone()));
    }
    Ok(headers)
}

/// The parameters of a place that have a value, with it.
fn present<'a>(
    plan: &'a OperationPlan,
    place: Place,
    input: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a Parameter, &'a Value)> {
    let of_place = plan.parameters.iter().filter(move |(_, parameter)| parameter.place == place);
    of_place.filter_map(|(property, parameter)| Some((parameter, input.get(property)?)))
}
