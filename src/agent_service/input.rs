//! What a client sends a session, and its JSON form.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::agent::ToolOutput;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};
use crate::model::Content;

/// An input of a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Input {
    pub(super) id: String,
    pub(super) body: InputBody,
}

/// What an input says beside its id.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum InputBody {
    Prompt(Vec<Content>),
    FollowUp(Vec<Content>),
    Steer(Vec<Content>),
    Abort { reason: Option<String> },
    Approve { call_id: String, allow: bool, reason: Option<String>, input_hash: Option<String> },
    ToolResult { call_id: String, output: ToolOutput },
}

impl Input {
    /// Reads an input.
    ///
    /// # Errors
    ///
    /// `invalid-input` when it is none.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let object = Object::parse(text).map_err(|_| invalid("an input is a JSON object with an id"))?;
        let named = |name: &str| object.string(name).filter(|text| !text.is_empty());
        let id = named("id").ok_or_else(|| invalid("an input is a JSON object with an id"))?;
        let kind = object.string("type").unwrap_or_default();
        let content = || read_content(&kind, &object);
        let body = match kind.as_str() {
            "prompt" => InputBody::Prompt(content()?),
            "follow-up" => InputBody::FollowUp(content()?),
            "steer" => InputBody::Steer(content()?),
            "abort" => InputBody::Abort { reason: object.string("reason") },
            "approve" => match (named("callId"), object.boolean("allow")) {
                (Some(call_id), Some(allow)) => InputBody::Approve {
                    call_id,
                    allow,
                    reason: object.string("reason"),
                    input_hash: object.string("inputHash"),
                },
                _ => return Err(invalid("an approval has a callId and allow")),
            },
            "tool-result" => InputBody::ToolResult {
                call_id: named("callId").ok_or_else(|| invalid("a tool-result has a callId"))?,
                output: read_output(object.get("output"))?,
            },
            unknown => return Err(invalid(format!("there is no input of type {unknown:?}"))),
        };
        Ok(Self { id, body })
    }
}

impl InputBody {
    /// The `type` of the JSON form.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Prompt(_) => "prompt",
            Self::FollowUp(_) => "follow-up",
            Self::Steer(_) => "steer",
            Self::Abort { .. } => "abort",
            Self::Approve { .. } => "approve",
            Self::ToolResult { .. } => "tool-result",
        }
    }

    /// Whether it begins a run when none is at work.
    pub(super) const fn is_prompt(&self) -> bool {
        matches!(self, Self::Prompt(_) | Self::FollowUp(_))
    }

    /// Whether a run that waits for a person goes on for it.
    pub(super) const fn is_decision(&self) -> bool {
        !self.is_prompt()
    }
}

impl Serialize for Input {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("v", &1)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", self.body.name())?;
        match &self.body {
            InputBody::Prompt(content) | InputBody::FollowUp(content) | InputBody::Steer(content) => {
                map.serialize_entry("content", content)?;
            }
            InputBody::Abort { reason } => crate::model::optional(&mut map, "reason", reason.as_ref())?,
            InputBody::Approve { call_id, allow, reason, input_hash } => {
                map.serialize_entry("callId", call_id)?;
                map.serialize_entry("allow", allow)?;
                crate::model::optional(&mut map, "reason", reason.as_ref())?;
                crate::model::optional(&mut map, "inputHash", input_hash.as_ref())?;
            }
            InputBody::ToolResult { call_id, output } => {
                map.serialize_entry("callId", call_id)?;
                map.serialize_entry("output", &Output(output))?;
            }
        }
        map.end()
    }
}

/// What a tool gave, as the npm package writes it.
struct Output<'output>(&'output ToolOutput);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(output) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("content", &output.content)?;
        crate::model::optional(&mut map, "output", output.output.as_ref())?;
        crate::model::optional(&mut map, "details", output.details.as_ref())?;
        crate::model::optional(&mut map, "isError", output.is_error.then_some(&true))?;
        crate::model::optional(&mut map, "terminate", output.terminate.then_some(&true))?;
        map.end()
    }
}

fn read_content(kind: &str, object: &Object<'_>) -> Result<Vec<Content>, Error> {
    let parts = object.array("content");
    let has_types = |parts: &Vec<&RawValue>| {
        parts.iter().all(|part| Object::parse(part.get()).is_ok_and(|part| part.string("type").is_some()))
    };
    if !parts.as_ref().is_some_and(has_types) {
        return Err(invalid(format!("the content of a {kind} is a list of parts, each with a type")));
    }
    Content::read_list(object.get("content")).map_err(|error| invalid(error.to_string()))
}

/// What a client gave as the output of a call: an object with content, or with a bare value as its `output`; or the value.
fn read_output(given: Option<&RawValue>) -> Result<ToolOutput, Error> {
    let Some(given) = given else { return Ok(ToolOutput::text("done")) };
    let Ok(object) = Object::parse(given.get()) else { return Ok(told(given)) };
    if object.get("content").is_some() {
        return Ok(ToolOutput {
            content: Content::read_list(object.get("content")).map_err(|error| invalid(error.to_string()))?,
            output: object.raw("output"),
            details: object.raw("details"),
            is_error: object.boolean("isError").unwrap_or(false),
            terminate: object.boolean("terminate").unwrap_or(false),
        });
    }
    Ok(object.get("output").map_or_else(|| ToolOutput::text("done"), told))
}

/// A value as the model is told of it: a text as it is, everything else as its JSON.
fn told(value: &RawValue) -> ToolOutput {
    let output = Some(RawJson::from(value));
    match serde_json::from_str::<String>(value.get()) {
        Ok(text) => ToolOutput { output, ..ToolOutput::text(text) },
        Err(_) => ToolOutput { output, ..ToolOutput::text(value.get()) },
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    #[test]
    fn inputs_are_written_and_read_as_the_npm_package_does() {
        for text in [
            r#"{"v":1,"id":"a","type":"prompt","content":[{"type":"text","text":"Hello"}]}"#,
            r#"{"v":1,"id":"a","type":"steer","content":[{"type":"text","text":"Faster"}]}"#,
            r#"{"v":1,"id":"a","type":"abort"}"#,
            r#"{"v":1,"id":"a","type":"abort","reason":"enough"}"#,
            r#"{"v":1,"id":"a","type":"approve","callId":"c","allow":false,"reason":"no","inputHash":"00"}"#,
            r#"{"v":1,"id":"a","type":"tool-result","callId":"c","output":{"content":[{"type":"text","text":"red"}],"output":"red"}}"#,
        ] {
            assert_eq!(serde_json::to_string(&Input::parse(text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn what_is_no_input_is_refused_with_what_is_wrong() {
        for (text, expected) in [
            ("[]", "an input is a JSON object with an id"),
            (r#"{"id":""}"#, "an input is a JSON object with an id"),
            (r#"{"id":"a","type":"dance"}"#, "there is no input of type \"dance\""),
            (
                r#"{"id":"a","type":"prompt","content":"x"}"#,
                "the content of a prompt is a list of parts, each with a type",
            ),
            (
                r#"{"id":"a","type":"steer","content":[{}]}"#,
                "the content of a steer is a list of parts, each with a type",
            ),
            (r#"{"id":"a","type":"approve","callId":"c"}"#, "an approval has a callId and allow"),
            (r#"{"id":"a","type":"tool-result"}"#, "a tool-result has a callId"),
        ] {
            assert_eq!(Input::parse(text).unwrap_err().message(), expected);
        }
    }

    #[test]
    fn an_output_is_a_value_or_content() {
        let output = |text: &str| {
            let input = format!(r#"{{"id":"a","type":"tool-result","callId":"c","output":{text}}}"#);
            match Input::parse(&input).unwrap().body {
                InputBody::ToolResult { output, .. } => output,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(output("\"red\"").content, [Content::Text("red".into())]);
        assert_eq!(output(r#"{"output":{"degrees":21}}"#).content, [Content::Text(r#"{"degrees":21}"#.into())]);
        assert_eq!(output("7").output.unwrap().as_str(), "7");
        assert!(output(r#"{"content":"no","isError":true}"#).is_error);
    }
}
