//! The body of a request, written as a join of JSON texts.

use std::sync::Arc;

use serde::Serialize;

use super::http::HttpRequest;
use super::names::wire_tool_name;
use super::request::{Access, ModelRequest, ToolSpec};
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};

/// The members of the body in order. The messages and tools are shared with the cache and copied once, into the body.
#[derive(Debug, Default)]
pub(super) struct RequestBody {
    members: Vec<(String, Member)>,
}

#[derive(Debug)]
enum Member {
    Json(String),
    Shared(Arc<str>),
    /// Elements of one array; each is a comma-separated list of elements, or empty.
    List(Vec<Arc<str>>),
}

impl RequestBody {
    pub(super) fn set<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        let json = json(value)?;
        self.put(name, Member::Json(json));
        Ok(())
    }

    pub(super) fn set_optional<T: Serialize>(&mut self, name: &str, value: Option<&T>) -> Result<(), Error> {
        value.map_or(Ok(()), |value| self.set(name, value))
    }

    pub(super) fn set_shared(&mut self, name: &str, json: Arc<str>) {
        self.put(name, Member::Shared(json));
    }

    pub(super) fn set_list(&mut self, name: &str, elements: Vec<Arc<str>>) {
        self.put(name, Member::List(elements));
    }

    /// Puts the caller's own members over the others.
    pub(super) fn merge(&mut self, extra: Option<&RawJson>) -> Result<(), Error> {
        let Some(extra) = extra else { return Ok(()) };
        let object = Object::parse(extra.as_str()).map_err(|error| {
            Error::new(ErrorKind::InvalidInput, format!("the extra body of the request must be a JSON object: {error}"))
        })?;
        for (name, value) in object.iter() {
            self.put(name, Member::Json(value.get().to_owned()));
        }
        Ok(())
    }

    /// The request that carries this body to a path under the model's address.
    pub(super) fn into_request(self, request: &ModelRequest, base_url: &str, path: &str) -> HttpRequest {
        let (own_address, headers) = match &request.model.access {
            Access::Http { base_url, headers, .. } => (base_url.as_deref(), headers.to_vec()),
            Access::Function(_) => (None, Vec::new()),
        };
        let base = own_address.unwrap_or(base_url).trim_end_matches('/');
        let mut http =
            HttpRequest { method: "POST", url: format!("{base}{path}"), headers: Vec::new(), body: self.into_bytes() };
        http.set_header("content-type", "application/json");
        for (name, value) in headers {
            http.set_header(&name, value);
        }
        http
    }

    fn put(&mut self, name: &str, member: Member) {
        match self.members.iter_mut().find(|(candidate, _)| candidate == name) {
            Some((_, place)) => *place = member,
            None => self.members.push((name.to_owned(), member)),
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        let mut body =
            String::with_capacity(self.members.iter().map(|(name, member)| name.len() + member.len() + 4).sum());
        for (name, member) in &self.members {
            body.push(if body.is_empty() { '{' } else { ',' });
            body.push_str(&serde_json::Value::from(name.as_str()).to_string());
            body.push(':');
            match member {
                Member::Json(json) => body.push_str(json),
                Member::Shared(json) => body.push_str(json),
                Member::List(elements) => {
                    body.push('[');
                    let mut is_first = true;
                    for element in elements.iter().filter(|element| !element.is_empty()) {
                        if !std::mem::take(&mut is_first) {
                            body.push(',');
                        }
                        body.push_str(element);
                    }
                    body.push(']');
                }
            }
        }
        body.push('}');
        body.into_bytes()
    }
}

impl Member {
    fn len(&self) -> usize {
        match self {
            Self::Json(json) => json.len(),
            Self::Shared(json) => json.len(),
            Self::List(elements) => elements.iter().map(|element| element.len() + 1).sum::<usize>() + 2,
        }
    }
}

/// The JSON text of a value that is sent.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::Internal, format!("the request could not be written: {error}")))
}

/// The list of tools. The wire writes each from the members `name` and `description`, with a comma behind them, and the
/// schema. An empty description is left out, since some services refuse one.
pub(super) fn tool_list(tools: &[ToolSpec], write: impl Fn(&str, &str) -> String) -> Result<String, Error> {
    let mut list = Vec::with_capacity(tools.len());
    for tool in tools {
        let mut members = format!("\"name\":{},", json(wire_tool_name(&tool.name).as_ref())?);
        if !tool.description.is_empty() {
            members.push_str(&format!("\"description\":{},", json(&tool.description)?));
        }
        list.push(write(&members, &object_schema(&tool.input_schema)?));
    }
    Ok(format!("[{}]", list.join(",")))
}

/// A tool's schema as providers demand it: an object with `type` and `properties`, also where the author left them out.
fn object_schema(schema: &RawJson) -> Result<String, Error> {
    let object = Object::parse(schema.as_str()).map_err(|error| {
        Error::new(ErrorKind::InvalidInput, format!("the input schema of a tool must be a JSON object: {error}"))
    })?;
    let missing = [("type", r#""type":"object""#), ("properties", r#""properties":{}"#)];
    let added: Vec<_> =
        missing.into_iter().filter(|(name, _)| object.get(name).is_none()).map(|(_, text)| text).collect();
    if added.is_empty() {
        return Ok(schema.as_str().to_owned());
    }
    let members = object.iter().map(|(name, value)| Ok(format!("{}:{}", json(name)?, value.get())));
    let members: Vec<_> =
        added.into_iter().map(|text| Ok(text.to_owned())).chain(members).collect::<Result<_, Error>>()?;
    Ok(format!("{{{}}}", members.join(",")))
}
