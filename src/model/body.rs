//! The body of a request, written as a join of JSON texts.

use std::borrow::Cow;
use std::sync::Arc;

use super::http::HttpRequest;
use super::names::wire_tool_name;
use super::request::{Access, ModelRequest, ToolSpec};
use super::tool_schema;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson, add_member, filled, quoted};

/// The members of the body in order. The messages and tools are shared with the cache and copied once, into the body.
#[derive(Debug, Default)]
pub(super) struct RequestBody {
    members: Vec<(String, Member)>,
}

#[derive(Debug)]
enum Member {
    Json(String),
    /// Elements of one array; each is a comma-separated list of elements, or empty.
    List(Vec<Arc<str>>),
}

impl RequestBody {
    /// Sets a member to JSON.
    pub(super) fn set(&mut self, name: &str, json: String) {
        self.put(name, Member::Json(json));
    }

    pub(super) fn set_text(&mut self, name: &str, text: &str) {
        self.set(name, quoted(text));
    }

    /// Sets the settings that all protocols have, by this one's names for them. Those that are not set are left out.
    pub(super) fn set_all(&mut self, members: impl IntoIterator<Item = (&'static str, Option<String>)>) {
        for (name, json) in members {
            self.set_optional(name, json);
        }
    }

    pub(super) fn set_optional(&mut self, name: &str, json: Option<String>) {
        if let Some(json) = json {
            self.set(name, json);
        }
    }

    /// Sets an object of texts.
    pub(super) fn set_map(&mut self, name: &str, members: &[(String, String)]) {
        let mut map = "{}".to_owned();
        for (name, value) in members {
            add_member(&mut map, name, &quoted(value));
        }
        self.set(name, map);
    }

    pub(super) fn set_list(&mut self, name: &str, elements: Vec<Arc<str>>) {
        self.put(name, Member::List(elements));
    }

    /// Puts the caller's own members over the others. An object goes into the one that is there.
    pub(super) fn merge(&mut self, extra: Option<&RawJson>) -> Result<(), Error> {
        let Some(extra) = extra else { return Ok(()) };
        let object = Object::parse(extra.as_str())
            .map_err(|error| invalid(format!("the extra body of the request must be a JSON object: {error}")))?;
        for (name, value) in object.iter() {
            self.add(name, value.get().to_owned());
        }
        Ok(())
    }

    /// Sets a member, or merges an object into the one that is there.
    pub(super) fn add(&mut self, name: &str, value: String) {
        let known = self.members.iter().find(|(candidate, _)| candidate == name);
        let merged = match known {
            Some((_, Member::Json(known))) => merged(known, &value),
            _ => None,
        };
        self.put(name, Member::Json(merged.unwrap_or(value)));
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
            body.push_str(&quoted(name));
            body.push(':');
            match member {
                Member::Json(json) => body.push_str(json),
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
            Self::List(elements) => elements.iter().map(|element| element.len() + 1).sum::<usize>() + 2,
        }
    }
}

/// Separates the content of one message from that of the next in an encoded group. JSON text holds no such character.
#[cfg(any(feature = "gemini", feature = "bedrock"))]
const SEPARATOR: char = '\u{1e}';

/// A group for [`joined`]: the content of each message, with a letter before it for who speaks. Empty contents are left out.
#[cfg(any(feature = "gemini", feature = "bedrock"))]
pub(super) fn separated(messages: &[(char, Vec<String>)]) -> String {
    let mut group = String::new();
    for (speaker, content) in messages.iter().filter(|(_, content)| !content.is_empty()) {
        if !group.is_empty() {
            group.push(SEPARATOR);
        }
        group.push(*speaker);
        group.push_str(&content.join(","));
    }
    group
}

/// The messages of these groups, in which neighbours of one speaker have become one message, since the speakers must
/// alternate. The wire writes each from the speaker's letter and the content.
#[cfg(any(feature = "gemini", feature = "bedrock"))]
pub(super) fn joined(groups: &[Arc<str>], write: &dyn Fn(char, &str) -> String) -> Vec<Arc<str>> {
    let mut messages: Vec<(char, Vec<&str>)> = Vec::new();
    for piece in groups.iter().flat_map(|group| group.split(SEPARATOR)) {
        let mut content = piece.chars();
        let Some(speaker) = content.next() else { continue };
        match messages.last_mut() {
            Some((last, contents)) if *last == speaker => contents.push(content.as_str()),
            _ => messages.push((speaker, vec![content.as_str()])),
        }
    }
    messages.into_iter().map(|(speaker, contents)| write(speaker, &contents.join(",")).into()).collect()
}

/// Members of an object, with their JSON.
#[cfg(any(feature = "anthropic", feature = "bedrock"))]
pub(super) type Members = Vec<(&'static str, String)>;

/// An object of the members that are there, unless none is.
#[cfg(any(feature = "gemini", feature = "bedrock"))]
pub(super) fn object(members: impl IntoIterator<Item = (&'static str, Option<String>)>) -> Option<String> {
    let mut object = "{}".to_owned();
    for (name, json) in members {
        if let Some(json) = json {
            add_member(&mut object, name, &json);
        }
    }
    (object != "{}").then_some(object)
}

/// A number as JSON.
pub(super) fn number(number: f64) -> String {
    serde_json::to_string(&number).unwrap_or_default()
}

/// What the caller asked for and the wire cannot carry.
pub(super) fn invalid(told: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidInput, told)
}

/// Two objects as one, in which the members of the second win; `None` when one of them is none.
fn merged(first: &str, second: &str) -> Option<String> {
    let (first, second) = (Object::parse(first).ok()?, Object::parse(second).ok()?);
    let kept = first.iter().filter(|(name, _)| second.get(name).is_none());
    let mut object = "{}".to_owned();
    for (name, value) in kept.chain(second.iter()) {
        add_member(&mut object, name, value.get());
    }
    Some(object)
}

/// The tools, separated by commas. The wire writes each from the members `name` and `description`, with a comma behind
/// them, and the schema. An empty description is left out, since some services refuse one.
pub(super) fn tool_list(
    tools: &mut dyn Iterator<Item = &ToolSpec>,
    write: &dyn Fn(&str, &str) -> String,
) -> Result<String, Error> {
    let mut list = Vec::new();
    for tool in tools {
        let members = described(&tool.name, Some(tool.description.as_str()).filter(|text| !text.is_empty()));
        list.push(write(&members, &tool_schema::lowered(&tool.input_schema)?));
    }
    Ok(list.join(","))
}

/// The members `name` and `description`, with a comma behind each.
pub(super) fn described(name: &str, description: Option<&str>) -> String {
    let name = filled(r#""name":$,"#, &[&wire_tool_name(name)]);
    let description = description.map(|text| filled(r#""description":$,"#, &[text]));
    name + &description.unwrap_or_default()
}
