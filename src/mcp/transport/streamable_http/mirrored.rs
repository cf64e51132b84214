//! The headers that repeat parts of a stateless request over HTTP (revision 2026-07-28, "Streamable HTTP").

use crate::json::{Members, RawJson, Tree, quoted};
use crate::mcp::protocol::Tool;

/// How deep a schema is searched for annotations. Schemas written by people stay far below.
const DEPTH_LIMIT: usize = 64;

/// The annotation of a property whose value is repeated.
const ANNOTATION: &str = "x-mcp-header";

/// What stands around a value that is encoded.
const ENCODED_START: &str = "=?base64?";
const ENCODED_END: &str = "?=";

/// Members of a schema that hold data and no schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// A property whose value is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredParam {
    header: String,
    path: Vec<String>,
}

impl MirroredParam {
    /// The name of the header, in lower case.
    pub fn header_name(&self) -> String {
        format!("mcp-param-{}", self.header.to_ascii_lowercase())
    }

    /// What the header says of these arguments, before it is encoded; `None` for an argument that is absent or `null`.
    pub(crate) fn value(&self, arguments: &Tree) -> Option<String> {
        match self.path.iter().try_fold(arguments, |value, name| value.get(name))? {
            Tree::Text(text) => Some(text.clone()),
            value @ (Tree::Boolean(_) | Tree::Number(_)) => Some(value.to_json()),
            _ => None,
        }
    }
}

/// The `mcp-name` header of a request about something with this name or address.
pub fn name(value: &str) -> (String, String) {
    ("mcp-name".to_owned(), encode(value))
}

/// The headers that repeat annotated arguments of a tool call. Arguments that are absent or `null` have none.
pub fn params(tool: &Tool, arguments: &RawJson) -> Vec<(String, String)> {
    let mirrored = mirrored_params(&tool.input_schema).unwrap_or_default();
    if mirrored.is_empty() {
        return Vec::new();
    }
    let Ok(arguments) = Tree::read(arguments.as_str()) else { return Vec::new() };
    mirrored.iter().filter_map(|param| Some((param.header_name(), encode(&param.value(&arguments)?)))).collect()
}

/// The annotated properties of a tool's schema.
///
/// # Errors
///
/// What is wrong with an annotation. Such a tool must not be offered.
pub fn mirrored_params(schema: &RawJson) -> Result<Vec<MirroredParam>, String> {
    if !schema.as_str().contains(ANNOTATION) {
        return Ok(Vec::new());
    }
    let schema = Tree::read(schema.as_str())?;
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
    fn properties(&mut self, schema: &Tree, depth: usize) -> Result<(), String> {
        let Tree::Object(members) = schema else { return Ok(()) };
        let depth = depth.checked_sub(1).ok_or("the schema is nested too deeply")?;
        for (name, member) in members.iter() {
            match (name.as_str(), member) {
                ("properties", Tree::Object(properties)) => {
                    for (property, schema) in properties.iter() {
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

    fn annotation(&mut self, schema: &Tree) -> Result<(), String> {
        let Some(annotation) = schema.get(ANNOTATION) else { return Ok(()) };
        let Some(header) = annotation.as_text() else { return Err(format!("{ANNOTATION} is not a text")) };
        if header.is_empty() || !header.bytes().all(is_token_byte) {
            return Err(format!("{ANNOTATION} {} is no header name", quoted(header)));
        }
        if !matches!(schema.get("type").and_then(Tree::as_text), Some("string" | "integer" | "boolean")) {
            return Err(format!("{ANNOTATION} {} is on a value that is no text, integer or boolean", quoted(header)));
        }
        if self.found.iter().any(|other| other.header.eq_ignore_ascii_case(header)) {
            return Err(format!("{ANNOTATION} {} is there twice", quoted(header)));
        }
        self.found.push(MirroredParam { header: header.to_owned(), path: self.path.clone() });
        Ok(())
    }
}

/// Below anything but properties no annotation may stand: the value it means would not be definite.
fn no_annotation(schema: &Tree, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or("the schema is nested too deeply")?;
    let is_annotated = |members: &Members| members.get(ANNOTATION).is_some_and(|value| value.as_text().is_some());
    match schema {
        Tree::Object(members) if is_annotated(members) => {
            Err(format!("{ANNOTATION} stands where no single property is meant"))
        }
        Tree::Object(members) => members
            .iter()
            .filter(|(name, _)| !DATA.contains(&name.as_str()))
            .try_for_each(|(_, member)| no_annotation(member, depth)),
        Tree::List(elements) => elements.iter().try_for_each(|element| no_annotation(element, depth)),
        _ => Ok(()),
    }
}

/// The value that a header carries, the other way round: itself, or what stands encoded in `=?base64?…?=`. `None` when that
/// is no standard base64 with its padding, or no UTF-8.
#[cfg(any(feature = "shim", feature = "oauth", feature = "mcp-server"))]
pub fn decode(header: &str) -> Option<String> {
    match header.strip_prefix(ENCODED_START).and_then(|rest| rest.strip_suffix(ENCODED_END)) {
        Some(encoded) => {
            let unpadded = encoded.trim_end_matches('=').replace('+', "-").replace('/', "_");
            let bytes = crate::base64url::decode(&unpadded).filter(|bytes| base64(bytes) == encoded)?;
            String::from_utf8(bytes).ok()
        }
        None => Some(header.to_owned()),
    }
}

/// A value as a header can carry it: itself where that is safe, else `=?base64?…?=`.
fn encode(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value;
    let looks_encoded = value.starts_with(ENCODED_START) && value.ends_with(ENCODED_END);
    if is_plain && !looks_encoded {
        value.to_owned()
    } else {
        [ENCODED_START, &base64(value.as_bytes()), ENCODED_END].concat()
    }
}

/// Standard base64 with padding (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
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
            #[cfg(any(feature = "shim", feature = "oauth", feature = "mcp-server"))]
            assert_eq!(decode(expected).as_deref(), Some(value), "{expected:?}");
        }
    }

    #[cfg(any(feature = "shim", feature = "oauth", feature = "mcp-server"))]
    #[test]
    fn only_what_is_encoded_as_it_should_be_is_decoded() {
        for text in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs!!!bG8=?=",
            "=?base64?_w==?=",
            "=?base64?/w==?=",
            "=?base64?SGVsbG9=?=",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
        for text in ["SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGVsbG8=?="] {
            assert_eq!(decode(text).as_deref(), Some(text));
        }
        assert_eq!(decode("=?base64?SGVsbG8=?=").as_deref(), Some("Hello"));
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
