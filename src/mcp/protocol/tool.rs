use super::content::ContentBlock;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};

/// The schema of a tool that takes nothing.
const NO_INPUT: &str = r#"{"type":"object","properties":{}}"#;

/// A tool that a server offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name it is called by.
    pub name: String,
    /// The name to show.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: Option<String>,
    /// The JSON Schema of its input, as the server wrote it; where it wrote none, that of an object without members.
    pub input_schema: RawJson,
    /// The JSON Schema of its structured output.
    pub output_schema: Option<RawJson>,
    /// What the server says of its effects. Hints of a stranger: never a reason to skip a question to the user.
    pub annotations: ToolAnnotations,
    /// Whether a call of it must be made a task that is asked after (revision 2025-11-25, "Tasks").
    pub needs_task: bool,
    /// Whether a model may call it. Some tools are for the user interfaces of others only (MCP Apps, `_meta.ui.visibility`).
    pub is_for_models: bool,
    /// The server's own data about it.
    pub meta: Option<RawJson>,
    /// The whole entry as it came.
    pub raw: RawJson,
}

impl Tool {
    /// Reads a tool; `None` when it has no name or its schema is no object. A tool without a schema takes nothing.
    pub fn read(raw: &RawJson) -> Option<Self> {
        let object = Object::parse(raw.as_str()).ok()?;
        let input_schema = object.raw("inputSchema").or_else(|| RawJson::parse(NO_INPUT).ok())?;
        Object::parse(input_schema.as_str()).ok()?;
        let task_support = object.object("execution").and_then(|execution| execution.string("taskSupport"));
        let ui = object.object("_meta").and_then(|meta| meta.object("ui"));
        let visibility: Option<Vec<String>> = ui.and_then(|ui| ui.read("visibility"));
        Some(Self {
            name: object.string("name").filter(|name| !name.is_empty())?,
            title: object.string("title"),
            description: object.string("description"),
            input_schema,
            output_schema: object.raw("outputSchema"),
            annotations: object.object("annotations").map(|hints| ToolAnnotations::read(&hints)).unwrap_or_default(),
            needs_task: task_support.as_deref() == Some("required"),
            is_for_models: visibility.is_none_or(|to| to.iter().any(|who| who == "model")),
            meta: object.raw("_meta"),
            raw: raw.clone(),
        })
    }

    /// The name to show to a person: the title, else the annotated title, else the name.
    pub fn display_name(&self) -> &str {
        self.title.as_deref().or(self.annotations.title.as_deref()).unwrap_or(&self.name)
    }
}

/// A server's hints about a tool; `None` where it gave none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// A name to show, from before tools had a title.
    pub title: Option<String>,
    /// It changes nothing. Taken as no when absent.
    pub read_only: Option<bool>,
    /// It may destroy something. Taken as yes when absent.
    pub destructive: Option<bool>,
    /// Calling it twice with the same input is the same as calling it once. Taken as no when absent.
    pub idempotent: Option<bool>,
    /// It reaches beyond what the server holds. Taken as yes when absent.
    pub open_world: Option<bool>,
}

impl ToolAnnotations {
    fn read(object: &Object<'_>) -> Self {
        Self {
            title: object.string("title"),
            read_only: object.boolean("readOnlyHint"),
            destructive: object.boolean("destructiveHint"),
            idempotent: object.boolean("idempotentHint"),
            open_world: object.boolean("openWorldHint"),
        }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallToolResult {
    /// What the tool said.
    pub content: Vec<ContentBlock>,
    /// The value it returned.
    pub structured_content: Option<RawJson>,
    /// Whether it failed, told in `content` for the model to read.
    pub is_error: bool,
    /// The server's own data.
    pub meta: Option<RawJson>,
}

impl CallToolResult {
    /// Reads the result of `tools/call`. Missing content counts as none, and a single block without the array around it as one.
    /// `toolResult` is what revision 2024-10-07 had in the place of all members.
    ///
    /// # Errors
    ///
    /// `protocol` when it is no object.
    pub fn read(raw: &RawJson) -> Result<Self, Error> {
        let object = Object::parse(raw.as_str())
            .map_err(|_| Error::new(ErrorKind::Protocol, "the server's tool result is not a JSON object"))?;
        let content = object.raw("content");
        let content = match (object.array("content"), content, object.raw("toolResult")) {
            (Some(blocks), ..) => blocks.into_iter().map(|block| ContentBlock::read(RawJson::from(block))).collect(),
            (None, Some(block), _) => vec![ContentBlock::read(block)],
            (None, None, Some(result)) => match Object::parse(result.as_str()) {
                Ok(nested) if nested.get("content").is_some() => return Self::read(&result),
                Ok(_) => vec![ContentBlock::Text { text: result.as_str().to_owned() }],
                Err(_) => vec![ContentBlock::read(result)],
            },
            (None, None, None) => Vec::new(),
        };
        Ok(Self {
            content,
            structured_content: object.raw("structuredContent"),
            is_error: object.boolean("isError").unwrap_or_default(),
            meta: object.raw("_meta"),
        })
    }

    /// The texts of the content, joined by line breaks.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_keep_their_text() {
        let text = r#"{"name":"t","inputSchema":{"type":"object", "x":1.0},"annotations":{"title":"T","readOnlyHint":true},"new":1}"#;
        let tool = Tool::read(&RawJson::parse(text).unwrap()).unwrap();
        assert_eq!(tool.input_schema.as_str(), r#"{"type":"object", "x":1.0}"#);
        assert_eq!(tool.display_name(), "T");
        assert_eq!(tool.annotations.read_only, Some(true));
        assert_eq!(tool.annotations.destructive, None);
    }

    #[test]
    fn tools_for_user_interfaces_only_are_told_apart() {
        for (ui, expected) in [
            ("{}", true),
            (r#"{"visibility":["app"]}"#, false),
            (r#"{"visibility":["model","app"]}"#, true),
            (r#"{"visibility":7}"#, true),
        ] {
            let text = format!(r#"{{"name":"t","inputSchema":{{}},"_meta":{{"ui":{ui}}}}}"#);
            assert_eq!(Tool::read(&RawJson::parse(text).unwrap()).unwrap().is_for_models, expected, "{ui}");
        }
    }

    #[test]
    fn what_cannot_be_called_is_no_tool() {
        for text in [
            r#"{"inputSchema":{}}"#,
            r#"{"name":"","inputSchema":{}}"#,
            r#"{"name":"t","inputSchema":true}"#,
            r#"{"name":"t","inputSchema":"{}"}"#,
        ] {
            assert_eq!(Tool::read(&RawJson::parse(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn a_tool_without_a_schema_takes_nothing() {
        for text in [r#"{"name":"t"}"#, r#"{"name":"t","inputSchema":null}"#] {
            assert_eq!(Tool::read(&RawJson::parse(text).unwrap()).unwrap().input_schema.as_str(), NO_INPUT);
        }
    }

    #[test]
    fn a_result_may_lack_everything() {
        let read = |text: &str| CallToolResult::read(&RawJson::parse(text).unwrap());
        assert_eq!(read("{}").unwrap(), CallToolResult::default());
        assert_eq!(
            read(r#"{"content":null,"structuredContent":[1]}"#).unwrap().structured_content.unwrap().as_str(),
            "[1]"
        );
        assert_eq!(read("[]").unwrap_err().kind(), ErrorKind::Protocol);
    }

    #[test]
    fn content_is_found_where_servers_put_it() {
        for text in [
            r#"{"content":"a"}"#,
            r#"{"content":["a"]}"#,
            r#"{"content":{"type":"text","text":"a"}}"#,
            r#"{"toolResult":"a"}"#,
            r#"{"toolResult":{"content":[{"type":"text","text":"a"}]}}"#,
        ] {
            assert_eq!(CallToolResult::read(&RawJson::parse(text).unwrap()).unwrap().text(), "a", "{text}");
        }
        let result = CallToolResult::read(&RawJson::parse(r#"{"toolResult":{"n":1}}"#).unwrap()).unwrap();
        assert_eq!(result.text(), r#"{"n":1}"#);
    }
}
