use std::sync::Arc;

use super::ServerCall;
use crate::agent::{Approval, ToolDefinition, ToolOutput};
use crate::host::{Tool, ToolContext};
use crate::mcp::protocol::{CallToolResult, ContentBlock, ToolAnnotations};
use crate::mcp::server::{Outcome, Request, ServerTool};
use crate::model::{CallId, Content, File, FileData};

/// A tool of an agent as one to serve.
pub(super) fn server_tool(definition: &ToolDefinition) -> ServerTool {
    let mut tool =
        ServerTool::new(definition.name.clone(), definition.description.clone(), definition.input_schema.clone());
    // Nothing is known of what the others do.
    tool.annotations =
        ToolAnnotations { idempotent: definition.repeatable.then_some(true), ..ToolAnnotations::default() };
    tool
}

pub(super) async fn run(definition: ToolDefinition, tool: Arc<dyn Tool>, call: ServerCall) -> Outcome {
    let Request::Tool { arguments, .. } = &call.request else {
        return Outcome::Failed("this is not a call of a tool".to_owned());
    };
    let mut input = arguments.clone();
    if definition.has_validator {
        match tool.validate(input.clone()).await {
            Ok(changed) => input = changed.unwrap_or(input),
            Err(reason) => return Outcome::Failed(format!("the arguments are not valid: {reason}")),
        }
    }
    if definition.needs_approval {
        match tool.decide(&input) {
            Some(Approval::Allow) => {}
            Some(Approval::Deny { reason }) => {
                return Outcome::Failed(reason.unwrap_or_else(|| "this call is not allowed".to_owned()));
            }
            None => {
                return Outcome::Failed(
                    "this call needs the approval of a person, and there is nobody to ask".to_owned(),
                );
            }
        }
    }
    let context = ToolContext::detached(CallId::new("mcp"), call.cancel.clone());
    match tool.execute(input, context).await {
        Ok(output) => Outcome::Tool(result(output)),
        Err(reason) => Outcome::Failed(reason),
    }
}

fn result(output: ToolOutput) -> CallToolResult {
    CallToolResult {
        content: output.content.into_iter().map(block).collect(),
        structured_content: None,
        is_error: output.is_error,
        meta: None,
    }
}

fn block(content: Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::Text { text },
        Content::File(File { media_type, data, name }) => file(media_type, data, name),
    }
}

fn file(mime_type: String, data: FileData, name: Option<String>) -> ContentBlock {
    match data {
        FileData::Base64(data) if mime_type.starts_with("image/") => {
            ContentBlock::Image { data: data.to_string(), mime_type }
        }
        FileData::Base64(data) if mime_type.starts_with("audio/") => {
            ContentBlock::Audio { data: data.to_string(), mime_type }
        }
        FileData::Base64(data) => {
            let uri = format!("file:///{}", name.as_deref().unwrap_or("result"));
            let body = crate::mcp::protocol::ResourceBody::Blob(data.to_string());
            ContentBlock::Resource(crate::mcp::protocol::ResourceContents { uri, mime_type: Some(mime_type), body })
        }
        FileData::Url(uri) => {
            ContentBlock::ResourceLink { uri, name, title: None, description: None, mime_type: Some(mime_type) }
        }
    }
}
