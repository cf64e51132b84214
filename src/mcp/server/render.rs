//! What is sent, in the words of each revision.

use serde::Serialize;

use super::super::protocol::{
    CallToolResult, ContentBlock, Era, PromptMessage, Resource, ResourceBody, ResourceContents, Revision,
    ToolAnnotations,
};
use super::catalog::{ServerPrompt, ServerTool};
use crate::json::{Object, RawJson};
use crate::jsonrpc::Params;

/// A message as one line. JSON has line breaks only where it may have blanks.
pub(super) fn line(message: &RawJson) -> String {
    let text = message.as_str();
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text.to_owned() }
}

/// Whether an era knows what came with a revision.
fn knows(era: Era, revision: Revision) -> bool {
    match era {
        Era::Stateless => true,
        Era::Handshake(spoken) => spoken >= revision,
    }
}

/// Sets what is there.
fn set<T: Serialize>(params: &mut Params, name: &str, value: Option<&T>) {
    if let Some(value) = value {
        params.set(name, value);
    }
}

pub(super) fn tool(tool: &ServerTool, era: Era) -> Params {
    let mut params = Params::new().with("name", &tool.name);
    if knows(era, Revision::V2025_06_18) {
        set(&mut params, "title", tool.title.as_ref());
    }
    params.set("description", &tool.description);
    params.set("inputSchema", &tool.input_schema);
    if let Some(schema) = tool.output_schema.as_ref().filter(|schema| takes_value(era, schema)) {
        params.set("outputSchema", schema);
    }
    if knows(era, Revision::V2025_03_26) {
        let annotations = annotations(&tool.annotations);
        set(&mut params, "annotations", Some(&annotations).filter(|annotations| !annotations.is_empty()));
    }
    set(&mut params, "_meta", tool.meta.as_ref());
    params
}

fn annotations(annotations: &ToolAnnotations) -> Params {
    let mut params = Params::new();
    set(&mut params, "title", annotations.title.as_ref());
    set(&mut params, "readOnlyHint", annotations.read_only.as_ref());
    set(&mut params, "destructiveHint", annotations.destructive.as_ref());
    set(&mut params, "idempotentHint", annotations.idempotent.as_ref());
    set(&mut params, "openWorldHint", annotations.open_world.as_ref());
    params
}

/// Whether an era has structured results of this schema: from 2025-06-18 on objects, from 2026-07-28 on any value.
fn takes_value(era: Era, schema: &RawJson) -> bool {
    let is_object =
        || Object::parse(schema.as_str()).is_ok_and(|schema| schema.string("type").as_deref() == Some("object"));
    era == Era::Stateless || (knows(era, Revision::V2025_06_18) && is_object())
}

/// A resource, or with the name `uriTemplate` for its address a family of them.
pub(super) fn resource(resource: &Resource, address: &str, era: Era) -> Params {
    let mut params = Params::new().with(address, &resource.uri).with("name", &resource.name);
    if knows(era, Revision::V2025_06_18) {
        set(&mut params, "title", resource.title.as_ref());
    }
    set(&mut params, "description", resource.description.as_ref());
    set(&mut params, "mimeType", resource.mime_type.as_ref());
    set(&mut params, "size", resource.size.as_ref());
    params
}

pub(super) fn prompt(prompt: &ServerPrompt, era: Era) -> Params {
    let mut params = Params::new().with("name", &prompt.name);
    if knows(era, Revision::V2025_06_18) {
        set(&mut params, "title", prompt.title.as_ref());
    }
    set(&mut params, "description", prompt.description.as_ref());
    let arguments: Vec<Params> = prompt
        .arguments
        .iter()
        .map(|argument| {
            let mut params = Params::new().with("name", &argument.name);
            set(&mut params, "description", argument.description.as_ref());
            params.with("required", &argument.required)
        })
        .collect();
    params.with("arguments", &arguments)
}

pub(super) fn tool_result(result: &CallToolResult, era: Era) -> Params {
    let mut content: Vec<Params> = result.content.iter().map(|block| content_block(block, era)).collect();
    let value = result.structured_content.as_ref();
    if let Some(value) = value.filter(|_| content.is_empty()) {
        // For clients that do not know structured results.
        content.push(text_block(value.as_str()));
    }
    let mut params = Params::new().with("content", &content);
    let is_object = |value: &&RawJson| value.as_str().starts_with('{');
    let is_known = |value: &&RawJson| era == Era::Stateless || (knows(era, Revision::V2025_06_18) && is_object(value));
    set(&mut params, "structuredContent", value.filter(is_known));
    set(&mut params, "_meta", result.meta.as_ref());
    params.with("isError", &result.is_error)
}

/// A failure as a result that a model reads.
pub(super) fn failed_tool(reason: &str) -> Params {
    Params::new().with("content", &[text_block(reason)]).with("isError", &true)
}

pub(super) fn contents(contents: &ResourceContents) -> Params {
    let mut params = Params::new().with("uri", &contents.uri);
    set(&mut params, "mimeType", contents.mime_type.as_ref());
    match &contents.body {
        ResourceBody::Text(text) => params.with("text", text),
        ResourceBody::Blob(blob) => params.with("blob", blob),
    }
}

pub(super) fn prompt_message(message: &PromptMessage, era: Era) -> Params {
    Params::new().with("role", &message.role).with("content", &content_block(&message.content, era))
}

fn text_block(text: &str) -> Params {
    Params::new().with("type", "text").with("text", text)
}

/// A block, as text where the revision does not know its kind.
fn content_block(block: &ContentBlock, era: Era) -> Params {
    let media = |kind: &str, data: &String, mime_type: &String| {
        Params::new().with("type", kind).with("data", data).with("mimeType", mime_type)
    };
    match block {
        ContentBlock::Text { text } => text_block(text),
        ContentBlock::Image { data, mime_type } => media("image", data, mime_type),
        ContentBlock::Audio { data, mime_type } if knows(era, Revision::V2025_03_26) => media("audio", data, mime_type),
        ContentBlock::Audio { mime_type, .. } => text_block(&format!("[a sound of the type {mime_type}]")),
        ContentBlock::ResourceLink { uri, name, title, description, mime_type } => {
            if !knows(era, Revision::V2025_06_18) {
                return text_block(uri);
            }
            let mut params = Params::new().with("type", "resource_link").with("uri", uri);
            params.set("name", name.as_ref().unwrap_or(uri));
            set(&mut params, "title", title.as_ref());
            set(&mut params, "description", description.as_ref());
            set(&mut params, "mimeType", mime_type.as_ref());
            params
        }
        ContentBlock::Resource(resource) => {
            Params::new().with("type", "resource").with("resource", &contents(resource))
        }
        ContentBlock::Unknown { raw, .. } => Params::from_object(raw).unwrap_or_else(|_| text_block(raw.as_str())),
    }
}
