//! The headers that repeat parts of a stateless request over HTTP (revision 2026-07-28, "Streamable HTTP").

use serde_json::{Map, Value};

use super::super::protocol::Tool;
use crate::json::RawJson;

/// How deep a schema is searched for annotations. Schemas written by people stay far below.
const DEPTH_LIMIT: usize = 64;

/// The annotation of a property whose value is repeated.
const ANNOTATION: &str = "x-mcp-header";

/// Members of a schema that hold data and no schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// A property whose value is repeated in a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MirroredParam {
    header: String,
    path: Vec<String>,
}

/// The `mcp-name` header of a request about something with this name or address.
pub(super) fn name(value: &str) -> (String, String) {
    ("mcp-name".to_owned(), encode(value))
}

/// The headers that repeat annotated arguments of a tool call. Arguments that are absent or `null` have none.
pub(super) fn params(tool: &Tool, arguments: &RawJson) -> Vec<(String, String)> {
    let mirrored = mirrored_params(&tool.input_schema).unwrap_or_default();
    if mirrored.is_empty() {
        return Vec::new();
    }
    let arguments: Value = arguments.read().unwrap_or_default();
    let header = |param: &MirroredParam| {
        let value = param.path.iter().try_fold(&arguments, |value, name| value.get(name))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            _ => return None,
        };
        Some((format!("mcp-param-{}", param.header.to_ascii_lowercase()), encode(&text)))
    };
    mirrored.iter().filter_map(header).collect()
}

/// The annotated properties of a tool's schema.
///
/// # Errors
///
/// What is wrong with an annotation. Such a tool must not be offered.
pub(super) fn mirrored_params(schema: &RawJson) -> Result<Vec<MirroredParam>, String> {
    if !schema.as_str().contains(ANNOTATION) {
        return Ok(Vec::new());
    }
    let schema: Value = schema.read().map_err(|error| error.to_string())?;
    let mut search = Search::default();
    search.properties(&schema, DEPTH_LIMIT)?;
    Ok(search.found)
}

#[derive(Default)]
struct Search {
    path: Vec<String>,
    found: Vec<MirroredParam>,
}

impl Search {
    /// Searches a schema that is reached through properties only, where annotations of its properties count.
    fn properties(&mut self, schema: &Value, depth: usize) -> Result<(), String> {
        let Value::Object(members) = schema else { return Ok(()) };
        let depth = depth.checked_sub(1).ok_or("the schema is nested too deeply")?;
        for (name, member) in members {
            match (name.as_str(), member) {
                ("properties", Value::Object(properties)) => {
                    for (property, schema) in properties {
                        self.path.push(property.clone());
                        self.annotation(schema)?;
                        self.properties(schema, depth)?;
                        self.path.pop();
                    }
                }
                (ANNOTATION, _) => {}
                (name, _) if DATA.contains(&name) => {}
                (_, member) => no_annotation(member, depth)?,
            }
        }
        Ok(())
    }

    fn annotation(&mut self, schema: &Value) -> Result<(), String> {
        let Some(annotation) = schema.get(ANNOTATION) else { return Ok(()) };
        let Some(header) = annotation.as_str() else { return Err(format!("{ANNOTATION} is not a text")) };
        if header.is_empty() || !header.bytes().all(is_token_byte) {
            return Err(format!("{ANNOTATION} {header:?} is no header name"));
        }
        if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(format!("{ANNOTATION} {header:?} is on a value that is no text, integer or boolean"));
        }
        if self.found.iter().any(|other| other.header.eq_ignore_ascii_case(header)) {
            return Err(format!("{ANNOTATION} {header:?} is there twice"));
        }
        self.found.push(MirroredParam { header: header.to_owned(), path: self.path.clone() });
        Ok(())
    }
}

/// Below anything but properties no annotation may stand: the value it means would not be definite.
fn no_annotation(schema: &Value, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or("the schema is nested too deeply")?;
    let is_annotated = |members: &Map<String, Value>| members.get(ANNOTATION).is_some_and(Value::is_string);
    match schema {
        Value::Object(members) if is_annotated(members) => {
            Err(format!("{ANNOTATION} stands where no single property is meant"))
        }
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !DATA.contains(&name.as_str()))
            .try_for_each(|(_, member)| no_annotation(member, depth)),
        Value::Array(elements) => elements.iter().try_for_each(|element| no_annotation(element, depth)),
        _ => Ok(()),
    }
}

/// A value as a header can carry it: itself where that is safe, else `=?base64?…?=`.
fn encode(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value;
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain && !looks_encoded { value.to_owned() } else { format!("=?base64?{}?=", base64(value.as_bytes())) }
}

/// Standard base64 with padding (RFC 4648, section 4).
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        for position in 0..4 {
            let digit = ALPHABET.get(bits >> (18 - 6 * position) & 63).filter(|_| position <= group.len());
            text.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    text
}

/// RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> RawJson {
        RawJson::parse(text).unwrap()
    }

    fn tool(input_schema: &str) -> Tool {
        let text = format!(r#"{{"name":"t","inputSchema":{input_schema}}}"#);
        Tool::read(&schema(&text)).unwrap()
    }

    #[test]
    fn values_that_headers_cannot_carry_are_encoded() {
        for (value, expected) in [
            ("us-west 1", "us-west 1"),
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("a\tb", "=?base64?YQli?="),
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(encode(value), expected, "{value:?}");
        }
    }

    #[test]
    fn annotated_arguments_are_repeated_wherever_properties_lead() {
        let tool = tool(
            r#"{"type":"object","properties":{
                "region":{"type":"string","x-mcp-header":"Region"},
                "n":{"type":"integer","x-mcp-header":"N"},
                "deep":{"type":"object","properties":{"flag":{"type":"boolean","x-mcp-header":"Flag"}}},
                "x-mcp-header":{"type":"string"},
                "query":{"type":"string"}}}"#,
        );
        let arguments = schema(r#"{"region":"eu","n":42,"deep":{"flag":false},"query":"q"}"#);
        let mut headers = params(&tool, &arguments);
        headers.sort();
        let expected = [("mcp-param-flag", "false"), ("mcp-param-n", "42"), ("mcp-param-region", "eu")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(params(&tool, &schema(r#"{"region":null}"#)), []);
    }

    #[test]
    fn annotations_that_cannot_be_obeyed_are_told() {
        let property = |annotated: &str| format!(r#"{{"properties":{{"a":{annotated}}}}}"#);
        for text in [
            property(r#"{"type":"string","x-mcp-header":""}"#),
            property(r#"{"type":"string","x-mcp-header":"a b"}"#),
            property(r#"{"type":"string","x-mcp-header":"é"}"#),
            property(r#"{"type":"string","x-mcp-header":7}"#),
            property(r#"{"type":"number","x-mcp-header":"a"}"#),
            property(r#"{"x-mcp-header":"a"}"#),
            property(r#"{"type":"array","items":{"type":"string","x-mcp-header":"a"}}"#),
            r#"{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"a"}}}]}"#.to_owned(),
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#
                .to_owned(),
        ] {
            assert!(mirrored_params(&schema(&text)).is_err(), "{text}");
        }
        assert_eq!(mirrored_params(&schema(r#"{"default":{"x-mcp-header":"a"}}"#)), Ok(Vec::new()));
    }
}
