//! What a page says of a tool, as data of a stranger: bounded, cleaned, and told from its next version by a digest.

use crablet::json::RawJson;
use crablet::mcp::protocol::{Tool, ToolAnnotations};
use crablet::mcp::server::{Catalog, ServerTool};
use serde_json::Value;

use super::text::{clean, clean_line, digest, has_hidden};

/// A tool that can be offered, if the user agrees.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    /// What the page calls it.
    pub(crate) name: String,
    /// Changes with everything that the page says of it.
    pub(crate) digest: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) input_schema: RawJson,
    pub(crate) output_schema: Option<RawJson>,
    pub(crate) annotations: ToolAnnotations,
    /// Why it is not offered unless the user names it.
    pub(crate) risk: Option<Risk>,
}

/// What a tool says, or does not say, of what it can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Risk {
    Destructive,
    /// It does not say that it changes nothing, or destroys nothing.
    Unannotated,
}

impl Definition {
    /// Reads what a page says. The error says why such a tool is never offered.
    pub(crate) fn read(tool: &Tool) -> Result<Self, String> {
        let raw = tool.raw.as_str();
        if raw.len() > MAX_DEFINITION_BYTES {
            return Err(format!("its definition has {} bytes; {MAX_DEFINITION_BYTES} are allowed", raw.len()));
        }
        if !tool.is_for_models {
            return Err("it is for user interfaces only".to_owned());
        }
        if tool.needs_task {
            return Err("it runs as a task only, which is not relayed".to_owned());
        }
        if tool.name.len() > MAX_NAME_BYTES || has_hidden(&tool.name) {
            return Err(format!("its name is longer than {MAX_NAME_BYTES} bytes or has characters that are not seen"));
        }
        let input_schema = tidy_schema(&tool.input_schema)?;
        let output_schema = tool.output_schema.as_ref().map(tidy_schema).transpose()?;
        let definition = Self {
            name: tool.name.clone(),
            digest: digest_of(tool)?,
            title: clean_line(tool.display_name(), MAX_TITLE),
            description: clean(tool.description.as_deref().unwrap_or_default(), MAX_DESCRIPTION),
            input_schema,
            output_schema,
            annotations: ToolAnnotations { title: None, ..tool.annotations.clone() },
            risk: risk_of(&tool.annotations),
        };
        // Whether its schemas can be used shows when they are.
        let trial = Catalog::new().tool(definition.to_server_tool("trial".to_owned(), ""));
        trial.map_err(|error| clean_line(&error.to_string(), MAX_TITLE))?;
        Ok(definition)
    }

    /// The tool as agents get it.
    pub(crate) fn to_server_tool(&self, name: String, owner: &str) -> ServerTool {
        let description = format!("Tool of the page {owner}. {}", self.description);
        ServerTool {
            title: Some(format!("{owner}: {}", self.title)),
            output_schema: self.output_schema.clone(),
            annotations: self.annotations.clone(),
            ..ServerTool::new(name, description, self.input_schema.clone())
        }
    }
}

/// What a tool must say to be offered without a word of the user: that it changes nothing, or destroys nothing.
fn risk_of(annotations: &ToolAnnotations) -> Option<Risk> {
    match (annotations.destructive, annotations.read_only) {
        (Some(true), _) => Some(Risk::Destructive),
        (Some(false), _) | (None, Some(true)) => None,
        (None, _) => Some(Risk::Unannotated),
    }
}

/// The digest of everything that a model or a client sees of a tool, in whatever order the page wrote it.
fn digest_of(tool: &Tool) -> Result<String, String> {
    let value: Value = tool.raw.read().map_err(|_| "its definition cannot be read".to_owned())?;
    let parts: Vec<String> = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"]
        .map(|member| value.get(member).map(ToString::to_string).unwrap_or_default())
        .into();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(digest(&parts).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A schema whose notes are cleaned. One with hidden characters elsewhere, where they mean something, is refused.
fn tidy_schema(schema: &RawJson) -> Result<RawJson, String> {
    let mut value: Value = schema.read().map_err(|_| "its schema cannot be read".to_owned())?;
    tidy(&mut value)?;
    RawJson::from_value(&value).map_err(|_| "its schema cannot be read".to_owned())
}

fn tidy(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                refuse_hidden(name)?;
                match member {
                    Value::String(note) if NOTES.contains(&name.as_str()) => *note = clean(note, MAX_NOTE),
                    member => tidy(member)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(tidy),
        Value::String(text) => refuse_hidden(text),
        _ => Ok(()),
    }
}

fn refuse_hidden(text: &str) -> Result<(), String> {
    if has_hidden(text) { Err("its schema has characters that are not seen".to_owned()) } else { Ok(()) }
}

/// The members of a schema that are for readers.
const NOTES: [&str; 3] = ["title", "description", "$comment"];

/// Some times the largest definitions of real servers.
const MAX_DEFINITION_BYTES: usize = 32 * 1024;

/// As the protocol has it.
const MAX_NAME_BYTES: usize = 128;
const MAX_TITLE: usize = 120;

/// As much as a person reads who is asked for consent.
const MAX_DESCRIPTION: usize = 4_096;
const MAX_NOTE: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Definition, String> {
        Definition::read(&Tool::read(&RawJson::parse(text).unwrap()).unwrap())
    }

    fn with(member: &str) -> String {
        format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},{member}}}"#)
    }

    #[test]
    fn only_what_says_that_it_is_harmless_is_harmless() {
        for (annotations, risk) in [
            (r#"{"readOnlyHint":true}"#, None),
            (r#"{"destructiveHint":false}"#, None),
            (r#"{"readOnlyHint":false,"destructiveHint":false}"#, None),
            (r#"{"destructiveHint":true}"#, Some(Risk::Destructive)),
            (r#"{"readOnlyHint":true,"destructiveHint":true}"#, Some(Risk::Destructive)),
            (r#"{"readOnlyHint":false}"#, Some(Risk::Unannotated)),
            (r#"{"idempotentHint":true}"#, Some(Risk::Unannotated)),
            (r#"{"readOnlyHint":"yes"}"#, Some(Risk::Unannotated)),
            ("{}", Some(Risk::Unannotated)),
            ("null", Some(Risk::Unannotated)),
        ] {
            assert_eq!(read(&with(&format!(r#""annotations":{annotations}"#))).unwrap().risk, risk, "{annotations}");
        }
    }

    #[test]
    fn everything_that_is_said_counts_and_its_order_does_not() {
        let digest = |text: &str| read(text).unwrap().digest;
        let first = digest(r#"{"name":"t","description":"a","inputSchema":{"type":"object","title":"x"}}"#);
        assert_eq!(first, digest(r#"{"inputSchema":{"type":"object","title":"x"},"description":"a","name":"t"}"#));
        for changed in [
            r#"{"name":"t","description":"b","inputSchema":{"type":"object","title":"x"}}"#,
            r#"{"name":"t","description":"a\u200b","inputSchema":{"type":"object","title":"x"}}"#,
            r#"{"name":"t","description":"a","inputSchema":{"type":"object","title":"y"}}"#,
            r#"{"name":"t","description":"a","inputSchema":{"type":"object","title":"x"},"title":"z"}"#,
            r#"{"name":"t","description":"a","inputSchema":{"type":"object","title":"x"},"outputSchema":{}}"#,
            r#"{"name":"t","description":"a","inputSchema":{"type":"object","title":"x"},"annotations":{}}"#,
        ] {
            assert_ne!(first, digest(changed), "{changed}");
        }
    }

    #[test]
    fn texts_are_cleaned_and_hidden_characters_elsewhere_refused() {
        let tool = read(
            r#"{"name":"t","title":"a\nb\u202e","description":"one\u001b[31m\ntwo","inputSchema":
            {"type":"object","properties":{"q":{"type":"string","description":"x\u2066y"}}}}"#,
        )
        .unwrap();
        assert_eq!((tool.title.as_str(), tool.description.as_str()), ("a b", "one[31m\ntwo"));
        assert!(tool.input_schema.as_str().contains(r#""xy""#));
        for schema in [
            r#"{"type":"object","properties":{"a\u202e":{}}}"#,
            r#"{"type":"object","properties":{"a":{"enum":["\u0007"]}}}"#,
            r#"{"type":"string"}"#,
            r##"{"type":"object","$ref":"#/nowhere"}"##,
        ] {
            assert!(read(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#)).is_err(), "{schema}");
        }
        assert!(read(r#"{"name":"t\u202e","inputSchema":{"type":"object"}}"#).is_err());
        let long = format!(r#""description":"{}""#, "x".repeat(MAX_DEFINITION_BYTES));
        assert!(read(&with(&long)).is_err());
    }
}
