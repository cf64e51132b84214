//! The tools of MCP servers as tools of an agent: names that every provider accepts, and results that a model can read.

use super::protocol::{CallToolResult, ContentBlock, ResourceBody, ResourceContents, Tool};
use crate::agent::{ToolDefinition, ToolOutput};
use crate::json::{Object, quoted};
use crate::model::{Content, File, FileData};

/// The longest name that every provider accepts.
const NAME_LENGTH: usize = 64;

/// The most bytes of content of an unknown kind that a model is shown.
const UNKNOWN_LENGTH: usize = 8 * 1024;

/// The definition of a server's tool, under a name that is unique over all servers.
pub fn definition(server: &str, tool: &Tool) -> ToolDefinition {
    let description = tool.description.as_deref().unwrap_or_else(|| tool.display_name());
    let mut definition = ToolDefinition::new(agent_name(server, &tool.name), description, tool.input_schema.clone());
    definition.server = Some(server.to_owned());
    definition
}

/// The name by which a model calls a server's tool: `<server>__<tool>` in the characters that every provider accepts.
///
/// The same for every session, whatever other servers and tools there are, so that cached prompts stay valid. A name that
/// had to be changed ends in a mark made from the whole original, so that two of them stay apart.
pub fn agent_name(server: &str, tool: &str) -> String {
    let original = format!("{server}__{tool}");
    let is_accepted = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let mut name: String =
        original.chars().map(|character| if is_accepted(character) { character } else { '_' }).collect();
    // Gemini wants a letter or an underscore first.
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
    }
    if name == original && name.len() <= NAME_LENGTH {
        return name;
    }
    let mark = format!("_{:08x}", checksum(&original));
    name.truncate(NAME_LENGTH - mark.len());
    name + &mark
}

/// A tool's result as the model and the caller get it.
pub fn output(result: CallToolResult) -> ToolOutput {
    let has_text = result.content.iter().any(|block| matches!(block, ContentBlock::Text { text } if !text.is_empty()));
    let mut content: Vec<Content> = result.content.into_iter().filter_map(block).collect();
    if let Some(value) = result.structured_content.as_ref().filter(|_| !has_text) {
        content.push(Content::Text(value.as_str().to_owned()));
    }
    if content.is_empty() {
        // Providers refuse empty results.
        content.push(Content::Text("(the tool returned nothing)".to_owned()));
    }
    ToolOutput {
        content,
        output: result.structured_content,
        details: result.meta,
        is_error: result.is_error,
        terminate: false,
    }
}

fn block(block: ContentBlock) -> Option<Content> {
    Some(match block {
        ContentBlock::Text { text } if text.is_empty() => return None,
        ContentBlock::Text { text } => Content::Text(text),
        ContentBlock::Image { data, mime_type } | ContentBlock::Audio { data, mime_type } => {
            file(&data, mime_type, None)
        }
        ContentBlock::Resource(ResourceContents { uri, body: ResourceBody::Text(text), .. }) => {
            Content::Text(format!("Resource {uri}:\n{text}"))
        }
        ContentBlock::Resource(ResourceContents { uri, mime_type, body: ResourceBody::Blob(data) }) => {
            file(&data, mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()), Some(uri))
        }
        ContentBlock::ResourceLink { uri, name, title, description, .. } => {
            let name = title.or(name).map(|name| format!(" ({name})")).unwrap_or_default();
            let description = description.map(|text| format!(": {text}")).unwrap_or_default();
            Content::Text(format!("Link to the resource {uri}{name}{description}"))
        }
        ContentBlock::Unknown { kind, raw } => {
            let kind = if kind.is_empty() { "unknown".to_owned() } else { quoted(&kind) };
            let has_more = Object::parse(raw.as_str()).map_or(true, |object| object.iter().count() > 1);
            Content::Text(match has_more && raw.as_str().len() <= UNKNOWN_LENGTH {
                true => format!("Content of the kind {kind}, as it came: {}", raw.as_str()),
                false => format!("(content of the kind {kind}, which cannot be shown)"),
            })
        }
    })
}

/// A file for a model. One whose bytes no service could read would fail every request of the conversation from then on, and is told
/// of instead.
fn file(data: &str, media_type: String, name: Option<String>) -> Content {
    let (prefix, data) = data.strip_prefix("data:").and_then(|data| data.split_once(',')).unwrap_or(("", data));
    let data: String = data.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let is_base64 =
        data.trim_end_matches('=').bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    if data.starts_with("https://") || data.starts_with("http://") {
        return Content::Text(format!("Link to a file of the kind {}: {data}", quoted(&media_type)));
    }
    if data.is_empty() || !is_base64 {
        let what = if data.is_empty() { "is empty" } else { "has no readable bytes" };
        return Content::Text(format!("(a file of the kind {}, which {what})", quoted(&media_type)));
    }
    let named = prefix.split(';').next().filter(|named| named.contains('/')).map(str::to_owned);
    let media_type = picture_type(&data).map(str::to_owned).or(named).unwrap_or(media_type);
    Content::File(File { media_type, data: FileData::Base64(data.into()), name })
}

/// The media type of a picture by its first bytes. Services refuse one that is told to be of another type, as servers do that go
/// by the names of files.
fn picture_type(base64: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 3] = [("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif")];
    let known = STARTS.iter().find(|(start, _)| base64.starts_with(start)).map(|(_, media_type)| *media_type);
    let is_webp = base64.starts_with("UklGR") && base64.get(12..16) == Some("RUJQ");
    known.or(is_webp.then_some("image/webp"))
}

/// FNV-1a, 32 bits: a mark to tell names apart, not a secret.
fn checksum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::json::RawJson;

    #[test]
    fn names_are_accepted_by_every_provider_and_distinct() {
        let long = "x".repeat(90);
        let tools = ["read.file", "read_file", "größe", "a/b:c", &long, &format!("{long}y"), "admin.users.list"];
        for server in ["my files", "files", "7", "é"] {
            let names: BTreeSet<String> = tools.iter().map(|tool| agent_name(server, tool)).collect();
            assert_eq!(names.len(), tools.len());
            for name in &names {
                assert!(
                    name.len() <= 64 && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                );
                assert!(name.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character)));
            }
        }
        assert_eq!(agent_name("files", "read_file"), "files__read_file");
        assert_eq!(agent_name("my files", "read_file"), agent_name("my files", "read_file"));
        assert_ne!(agent_name("my files", "read_file"), agent_name("my_files", "read_file"));
    }

    fn of(text: &str) -> ToolOutput {
        output(CallToolResult::read(&RawJson::parse(text).unwrap()).unwrap())
    }

    fn texts(output: &ToolOutput) -> Vec<&str> {
        output
            .content
            .iter()
            .filter_map(|content| match content {
                Content::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_failure_is_told_to_the_model() {
        let output = of(r#"{"content":[{"type":"text","text":"no such file"}],"isError":true}"#);
        assert!(output.is_error);
        assert_eq!(texts(&output), ["no such file"]);
    }

    #[test]
    fn images_and_sounds_become_files() {
        let output = of(
            r#"{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"}]}"#,
        );
        let kinds: Vec<_> = output
            .content
            .iter()
            .map(|content| match content {
                Content::File(file) => file.media_type.as_str(),
                _ => "",
            })
            .collect();
        assert_eq!(kinds, ["image/png", "audio/wav"]);
    }

    #[test]
    fn a_file_that_no_service_reads_is_told_of() {
        let shown = |block: &str| {
            let output = of(&format!(r#"{{"content":[{block}]}}"#));
            match &output.content[0] {
                Content::File(File { media_type, data: FileData::Base64(data), .. }) => format!("{media_type} {data}"),
                Content::Text(text) => text.clone(),
                other => panic!("{other:?}"),
            }
        };
        for (data, media_type, expected) in [
            ("data:image/png;base64,aGk=", "image/png", "image/png aGk="),
            ("data:image/gif;base64,aGk=", "", "image/gif aGk="),
            (r"aG\nk=\r\n", "image/png", "image/png aGk="),
            ("/9j/4AAQ", "image/png", "image/jpeg /9j/4AAQ"),
            ("iVBORw0KGgoAAA", "image/jpg", "image/png iVBORw0KGgoAAA"),
            ("UklGRiIAAABXRUJQVlA4", "image/jpeg", "image/webp UklGRiIAAABXRUJQVlA4"),
            ("", "image/png", "(a file of the kind \"image/png\", which is empty)"),
            ("<svg>", "image/svg+xml", "(a file of the kind \"image/svg+xml\", which has no readable bytes)"),
            (
                "https://a.example/i.png",
                "image/png",
                "Link to a file of the kind \"image/png\": https://a.example/i.png",
            ),
        ] {
            let image = format!(r#"{{"type":"image","data":"{data}","mimeType":"{media_type}"}}"#);
            assert_eq!(shown(&image), expected, "{data}");
        }
        let resource = r#"{"type":"resource","resource":{"uri":"f:///a","mimeType":"image/png","blob":"/9j/4AAQ"}}"#;
        assert_eq!(shown(resource), "image/jpeg /9j/4AAQ");
    }

    #[test]
    fn content_of_an_unknown_kind_is_shown_as_it_came_unless_it_is_long() {
        let output = of(r#"{"content":[{"type":"json","json":{"n":1}},7]}"#);
        assert_eq!(
            texts(&output),
            [
                r#"Content of the kind "json", as it came: {"type":"json","json":{"n":1}}"#,
                "Content of the kind unknown, as it came: 7"
            ]
        );
        let long = format!(r#"{{"content":[{{"type":"video","data":"{}"}}]}}"#, "a".repeat(UNKNOWN_LENGTH));
        assert_eq!(texts(&of(&long)), [r#"(content of the kind "video", which cannot be shown)"#]);
    }

    #[test]
    fn resources_links_and_unknown_blocks_become_text() {
        let output = of(
            r#"{"content":[{"type":"resource","resource":{"uri":"f:///a","text":"A"}},{"type":"resource_link","uri":"f:///b","name":"b"},{"type":"hologram"}]}"#,
        );
        assert_eq!(
            texts(&output),
            [
                "Resource f:///a:\nA",
                "Link to the resource f:///b (b)",
                "(content of the kind \"hologram\", which cannot be shown)"
            ]
        );
    }

    #[test]
    fn a_result_is_never_empty_and_a_value_is_told_once() {
        assert_eq!(texts(&of(r#"{"content":[]}"#)), ["(the tool returned nothing)"]);
        assert_eq!(texts(&of(r#"{"content":[],"structuredContent":{"n":1}}"#)), [r#"{"n":1}"#]);
        let both = of(r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}"#);
        assert_eq!(texts(&both), ["one"]);
        assert_eq!(both.output.unwrap().as_str(), r#"{"n":1}"#);
    }
}
