//! Skills: texts that say how something is done, which the model reads when it needs them.

#[cfg(feature = "host")]
use std::sync::Arc;

#[cfg(feature = "host")]
use super::definition::{Agent, ToolDefinition};
#[cfg(feature = "host")]
use super::input::ToolOutput;
use crate::error::{Error, ErrorKind};
#[cfg(feature = "host")]
use crate::json::{Object, RawJson};

/// A text that says how something is done. The model is told its name and description, and reads the text with a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// What the model asks for it by.
    pub name: String,
    /// When to read it, for the model.
    pub description: String,
    /// The text.
    pub content: String,
    /// Further texts that it refers to, by the names it refers to them by.
    pub files: Vec<(String, String)>,
}

impl Skill {
    /// The skill of the text of a `SKILL.md`, which begins with `name:` and `description:` between lines of `---`.
    ///
    /// # Errors
    ///
    /// `invalid-input` when the text has no name or no description.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let missing = || {
            let message = "a skill begins with a line of ---, a name: and a description:, and another line of ---";
            Error::new(ErrorKind::InvalidInput, message)
        };
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let (front, content) = text
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n").or_else(|| Some((rest.strip_suffix("\n---")?, ""))))
            .ok_or_else(missing)?;
        let field = |name: &str| field(front, name).filter(|value| !value.is_empty()).ok_or_else(missing);
        let (name, description) = (field("name")?, field("description")?);
        Ok(Self { name, description, content: content.trim().to_owned(), files: Vec::new() })
    }
}

/// What the hosts make of skills.
#[cfg(feature = "host")]
impl Skill {
    /// The definition of the tool that reads skills.
    pub(crate) fn tool() -> ToolDefinition {
        let schema = RawJson::parse(INPUT_SCHEMA).unwrap_or_else(|_| serde_json::value::RawValue::TRUE.into());
        let mut tool = ToolDefinition::new(TOOL, "Reads one of the skills, or a file that a skill refers to.", schema);
        tool.repeatable = true;
        tool
    }

    /// Tells the model of the skills in the agent's instructions.
    pub(crate) fn announce(skills: &[Self], agent: &mut Agent) {
        let mut told = agent.instructions.as_deref().map(|text| format!("{text}\n\n")).unwrap_or_default();
        told.push_str("You have skills. When a task fits one, read it with readSkill before you begin:");
        for skill in skills {
            let description: Vec<&str> = skill.description.split_whitespace().collect();
            told.push_str(&format!("\n- {}: {}", skill.name, description.join(" ")));
        }
        agent.instructions = Some(Arc::from(told));
    }

    /// Answers a call of the tool.
    ///
    /// # Errors
    ///
    /// When there is no such skill or file, for the model to read.
    pub(crate) fn read(skills: &[Self], input: &RawJson) -> Result<ToolOutput, String> {
        let input = Object::parse(input.as_str()).unwrap_or_default();
        let (name, file) = (input.string("name").unwrap_or_default(), input.string("file"));
        let skill = skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
            let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
            format!("there is no skill \"{name}\": they are {}", names.join(", "))
        })?;
        let Some(file) = file else { return Ok(ToolOutput::text(&*skill.content)) };
        let found = skill.files.iter().find(|(known, _)| *known == file);
        found.map(|(_, text)| ToolOutput::text(&**text)).ok_or_else(|| {
            let names: Vec<&str> = skill.files.iter().map(|(name, _)| name.as_str()).collect();
            let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("the skill \"{name}\" has no file \"{file}\": it has {has}")
        })
    }
}

/// A member of a front matter that is text. Texts of several lines (`>` and `|`) are read as their lines joined.
fn field(front: &str, name: &str) -> Option<String> {
    let mut lines = front.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim();
    if !value.is_empty() && !matches!(value.trim_end_matches(['+', '-']), ">" | "|") {
        let quoted = |quote: char| value.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote));
        return Some(quoted('"').or_else(|| quoted('\'')).unwrap_or(value).to_owned());
    }
    let block: Vec<&str> = lines.take_while(|line| line.starts_with([' ', '\t'])).map(str::trim).collect();
    Some(block.join(" "))
}

#[cfg(feature = "host")]
const TOOL: &str = "readSkill";

#[cfg(feature = "host")]
const INPUT_SCHEMA: &str =
    r#"{"type":"object","properties":{"name":{"type":"string"},"file":{"type":"string"}},"required":["name"]}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_read_of_its_text() {
        let text = "\u{feff}---\r\nname: \"review\"\r\ndescription: >\r\n  How code is\r\n  reviewed.\r\nlicense: MIT\r\n---\r\n# Review\r\n\r\nTwice.\r\n";
        let skill = Skill::parse(text).unwrap();
        assert_eq!((skill.name.as_str(), skill.description.as_str()), ("review", "How code is reviewed."));
        assert_eq!(skill.content, "# Review\n\nTwice.");
        for broken in ["", "# Review", "---\nname: x\n---\ntext", "---\nname: x\ndescription:\n---\ntext"] {
            assert!(Skill::parse(broken).is_err(), "{broken:?}");
        }
        assert!(Skill::parse("---\nname: x\ndescription: y\n---").is_ok());
    }

    #[cfg(feature = "host")]
    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let skill = Skill {
            name: "review".into(),
            description: "d".into(),
            content: "text".into(),
            files: vec![("list.md".into(), "1. names".into())],
        };
        let read = |input: &str| Skill::read(std::slice::from_ref(&skill), &RawJson::parse(input).unwrap());
        assert_eq!(read(r#"{"name":"review"}"#), Ok(ToolOutput::text("text")));
        assert_eq!(read(r#"{"name":"review","file":"list.md"}"#), Ok(ToolOutput::text("1. names")));
        assert!(read(r#"{"name":"other"}"#).unwrap_err().contains("review"));
        assert!(read(r#"{"name":"review","file":"x"}"#).unwrap_err().contains("list.md"));
    }
}
