use serde_json::{Map, Value};

use super::OpenApiError;
use super::document::{Document, Fields, list, text};
use crate::percent;

/// A parameter of an operation.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) required: bool,
    pub(super) description: Option<String>,
    /// Whether the value is sent as JSON.
    is_json: bool,
    style: String,
    explode: bool,
    allow_reserved: bool,
}

/// Where a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

impl Place {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }

    fn read(name: &str) -> Option<Self> {
        [Self::Path, Self::Query, Self::Header, Self::Cookie].into_iter().find(|place| place.as_str() == name)
    }
}

/// The parameters of an operation, each with its schema: those of its path, with its own in the place of those of the same
/// name and place.
pub(super) fn parameters<'a>(
    document: &'a Document,
    path: &'a Fields,
    operation: &'a Fields,
) -> Result<Vec<(Parameter, Option<&'a Value>)>, OpenApiError> {
    let mut found: Vec<(Parameter, Option<&Value>)> = Vec::new();
    for given in list(path, "parameters").iter().chain(list(operation, "parameters")) {
        let Some((parameter, schema)) = document.resolve(Some(given))?.and_then(read) else { continue };
        let same = |(other, _): &&mut (Parameter, Option<&Value>)| {
            other.name == parameter.name && other.place == parameter.place
        };
        match found.iter_mut().find(same) {
            Some(earlier) => *earlier = (parameter, schema),
            None => found.push((parameter, schema)),
        }
    }
    Ok(found)
}

fn read(given: &Fields) -> Option<(Parameter, Option<&Value>)> {
    let (name, place) = (text(given, "name")?, Place::read(text(given, "in")?)?);
    if place == Place::Header && NOT_PARAMETERS.contains(&name.to_ascii_lowercase().as_str()) {
        return None;
    }
    let content = given.get("content").and_then(Value::as_object).and_then(|content| content.values().next());
    let default_style = if matches!(place, Place::Path | Place::Header) { "simple" } else { "form" };
    let style = text(given, "style").unwrap_or(default_style);
    let is_true = |name: &str| given.get(name) == Some(&Value::Bool(true));
    let parameter = Parameter {
        name: name.to_owned(),
        place,
        required: place == Place::Path || is_true("required"),
        description: text(given, "description").map(str::to_owned),
        is_json: content.is_some(),
        style: style.to_owned(),
        explode: given.get("explode").and_then(Value::as_bool).unwrap_or(style == "form"),
        allow_reserved: is_true("allowReserved"),
    };
    let schema = content.and_then(|content| content.get("schema")).or_else(|| given.get("schema"));
    Some((parameter, schema))
}

impl Parameter {
    /// The parts of a query or a cookie that a value becomes, each `name=value`.
    pub(super) fn pairs(&self, value: &Value) -> Vec<String> {
        let encode = |text: &str| encoded_but(text, if self.allow_reserved { RESERVED } else { "" });
        let name = encode(&self.name);
        let item = |value: &Value| encode(&plain(value));
        if self.is_json {
            return vec![format!("{name}={}", encode(&value.to_string()))];
        }
        match value {
            Value::Array(items) if self.explode && self.style != "deepObject" => {
                items.iter().map(|value| format!("{name}={}", item(value))).collect()
            }
            Value::Array(items) => {
                let separator = match self.style.as_str() {
                    "spaceDelimited" => "%20",
                    "pipeDelimited" => "%7C",
                    _ => ",",
                };
                vec![format!("{name}={}", items.iter().map(item).collect::<Vec<_>>().join(separator))]
            }
            Value::Object(members) if self.style == "deepObject" => deep_pairs(&name, members, &encode, 0),
            Value::Object(members) if self.explode => {
                members.iter().map(|(key, value)| format!("{}={}", encode(key), item(value))).collect()
            }
            Value::Object(members) => vec![format!("{name}={}", flat(members, &encode, ",").join(","))],
            value => vec![format!("{name}={}", item(value))],
        }
    }

    /// What a value becomes in a path, with the sign that its style puts first, or in a header, which is not encoded.
    pub(super) fn segment(&self, value: &Value) -> String {
        let is_path = self.place == Place::Path;
        let encode = |text: &str| if is_path { percent::encode(text) } else { text.to_owned() };
        if self.is_json {
            return encode(&value.to_string());
        }
        if self.style == "matrix" {
            return self.matrix(value, &encode);
        }
        let (start, separator) = match (self.style.as_str(), self.explode) {
            ("label", true) => (".", "."),
            ("label", false) => (".", ","),
            _ => ("", ","),
        };
        let items = match value {
            Value::Array(items) => items.iter().map(|item| encode(&plain(item))).collect(),
            Value::Object(members) => flat(members, &encode, if self.explode { "=" } else { "," }),
            value => vec![encode(&plain(value))],
        };
        format!("{start}{}", items.join(separator))
    }

    fn matrix(&self, value: &Value, encode: &dyn Fn(&str) -> String) -> String {
        let name = encode(&self.name);
        let item = |value: &Value| encode(&plain(value));
        match value {
            Value::Array(items) if self.explode => {
                items.iter().map(|value| format!(";{name}={}", item(value))).collect()
            }
            Value::Array(items) => format!(";{name}={}", items.iter().map(item).collect::<Vec<_>>().join(",")),
            Value::Object(members) if self.explode => {
                flat(members, encode, "=").into_iter().map(|pair| format!(";{pair}")).collect()
            }
            Value::Object(members) => format!(";{name}={}", flat(members, encode, ",").join(",")),
            value => format!(";{name}={}", item(value)),
        }
    }
}

fn deep_pairs(name: &str, members: &Map<String, Value>, encode: &dyn Fn(&str) -> String, depth: usize) -> Vec<String> {
    let pairs = members.iter().flat_map(|(key, value)| {
        let below = format!("{name}[{}]", encode(key));
        match value {
            Value::Object(members) if depth < MAX_DEEP_OBJECT => deep_pairs(&below, members, encode, depth + 1),
            Value::Array(items) => items.iter().map(|item| format!("{below}={}", encode(&plain(item)))).collect(),
            value => vec![format!("{below}={}", encode(&plain(value)))],
        }
    });
    pairs.collect()
}

fn flat(members: &Map<String, Value>, encode: &dyn Fn(&str) -> String, separator: &str) -> Vec<String> {
    members.iter().map(|(key, value)| format!("{}{separator}{}", encode(key), encode(&plain(value)))).collect()
}

/// A value as text: what is neither text nor number is told as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Encodes all but what is unreserved and what is named.
fn encoded_but(text: &str, kept: &str) -> String {
    let encoded = |character: char| match kept.contains(character) {
        true => character.to_string(),
        false => percent::encode(character.encode_utf8(&mut [0; 4])),
    };
    text.chars().map(encoded).collect()
}

/// What `allowReserved` leaves as it is; not what would end or part the query.
const RESERVED: &str = ":/?[]@!$'()*,;=";

/// The headers that are not parameters, whatever a document says: they belong to the body, the answer and the supplier.
const NOT_PARAMETERS: [&str; 6] = ["accept", "authorization", "content-length", "content-type", "cookie", "host"];

/// The deepest object that a query takes.
const MAX_DEEP_OBJECT: usize = 8;
