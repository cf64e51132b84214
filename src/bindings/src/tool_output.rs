//! What a JavaScript tool or hook gave, read from JSON.

use crablet::agent::ToolOutput;
use crablet::json::Object;
use crablet::model::Content;
use serde_json::value::RawValue;

/// Reads `{content?, output?, details?, isError?, terminate?}`. Without content the model is told the output's JSON text.
pub(crate) fn read_tool_output(object: &Object<'_>) -> Result<ToolOutput, String> {
    let mut content = Content::read_list(object.get("content")).map_err(|error| error.to_string())?;
    let says_something = |given: &&RawValue| !matches!(given.get(), "[]" | "null");
    if content.is_empty() && object.get("content").filter(says_something).is_some() {
        return Err("its content is neither text nor a list of parts of text and files".to_owned());
    }
    let output = object.get("output").map(Into::into);
    if let (None, Some(output)) = (object.get("content"), object.get("output")) {
        content.push(Content::Text(output.get().to_owned()));
    }
    Ok(ToolOutput {
        content,
        output,
        details: object.raw("details"),
        is_error: object.boolean("isError").unwrap_or(false),
        terminate: object.boolean("terminate").unwrap_or(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_value_is_told_as_its_json() {
        let object = Object::parse(r#"{"output":{"degrees":21}}"#).unwrap();
        let output = read_tool_output(&object).unwrap();
        assert_eq!(output.content, [Content::Text(r#"{"degrees":21}"#.into())]);
        assert!(!output.is_error);
    }
}
