//! What a JavaScript tool or hook gave, read from JSON.

use crablet::agent::ToolOutput;
use crablet::json::Object;
use crablet::model::Content;
use serde_json::value::RawValue;

/// Reads `{content?, output?, details?, isError?, terminate?}`. Without content the model is told the output's JSON text.
pub(crate) fn read_tool_output(object: &Object<'_>) -> Result<ToolOutput, String> {
    let content = match (object.get("content"), object.get("output")) {
        (Some(content), _) => read_content(content)?,
        (None, Some(output)) => vec![Content::Text(output.get().to_owned())],
        (None, None) => return Err("the tool's result is nothing that JSON can hold, or lacks its content".to_owned()),
    };
    Ok(ToolOutput {
        content,
        output: object.get("output").map(Into::into),
        details: object.raw("details"),
        is_error: object.boolean("isError").unwrap_or(false),
        terminate: object.boolean("terminate").unwrap_or(false),
    })
}

/// Reads the content that a caller gives: text, or a list of parts. A part that cannot be read is an error: nobody would hear that
/// it was left out.
pub(crate) fn read_content(content: &RawValue) -> Result<Vec<Content>, String> {
    let read = Content::read_list(Some(content)).map_err(|error| error.to_string())?;
    let is_whole = match Object::parse_all(content.get()) {
        Some(parts) => parts.len() == read.len(),
        None => content.get().starts_with('"'),
    };
    if is_whole {
        Ok(read)
    } else {
        Err("its content is neither text nor a list of parts of text and files".to_owned())
    }
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

    #[test]
    fn content_that_cannot_be_read_is_not_left_out() {
        let read = |text: &str| read_content(&RawValue::from_string(text.to_owned()).unwrap()).map(|parts| parts.len());
        assert_eq!(read(r#""text""#), Ok(1));
        assert_eq!(read("[]"), Ok(0));
        assert_eq!(
            read(r#"[{"type":"text","text":"a"},{"type":"image","mediaType":"image/png","data":"eA=="}]"#),
            Ok(2)
        );
        for damaged in [
            r#"[{"type":"text","text":"a"},{"type":"image_url"}]"#,
            "[null]",
            r#"[{"type":"text","text":"a"},null]"#,
            "5",
            "{}",
            "null",
        ] {
            assert!(read(damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_result_without_anything_is_an_error() {
        assert!(read_tool_output(&Object::parse(r#"{"isError":true}"#).unwrap()).is_err());
    }
}
