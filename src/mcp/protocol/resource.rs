use super::content::ContentBlock;
use crate::json::Object;

/// A resource that a server offers, or with a template in the place of its address, a family of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The address, or the URI template (RFC 6570) of a family.
    pub uri: String,
    /// The name.
    pub name: String,
    /// The name to show.
    pub title: Option<String>,
    /// What it is, for the model.
    pub description: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The size in bytes, before any encoding.
    pub size: Option<u64>,
}

impl Resource {
    /// Reads an entry of `resources/list` or `resources/templates/list`; `None` without an address.
    pub fn read(object: &Object<'_>) -> Option<Self> {
        Some(Self {
            uri: object.string("uri").or_else(|| object.string("uriTemplate"))?,
            name: object.string("name").unwrap_or_default(),
            title: object.string("title"),
            description: object.string("description"),
            mime_type: object.string("mimeType"),
            size: object.integer("size"),
        })
    }
}

/// A prompt that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The name it is asked for by.
    pub name: String,
    /// The name to show.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt. Its value is a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Whether the prompt cannot be without it.
    pub required: bool,
}

impl Prompt {
    /// Reads an entry of `prompts/list`; `None` without a name.
    pub fn read(object: &Object<'_>) -> Option<Self> {
        let argument = |argument: &Object<'_>| {
            Some(PromptArgument {
                name: argument.string("name")?,
                description: argument.string("description"),
                required: argument.boolean("required").unwrap_or_default(),
            })
        };
        Some(Self {
            name: object.string("name")?,
            title: object.string("title"),
            description: object.string("description"),
            arguments: object.objects("arguments").iter().filter_map(argument).collect(),
        })
    }
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// Who speaks, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: ContentBlock,
}

impl PromptMessage {
    /// Reads a message of `prompts/get`; `None` without a role or content.
    pub fn read(object: &Object<'_>) -> Option<Self> {
        Some(Self { role: object.string("role")?, content: ContentBlock::read(object.raw("content")?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object<'_> {
        Object::parse(text).unwrap()
    }

    #[test]
    fn resources_and_their_families_need_an_address() {
        assert_eq!(Resource::read(&object(r#"{"uri":"f:///a","size":3}"#)).unwrap().size, Some(3));
        assert_eq!(Resource::read(&object(r#"{"uriTemplate":"f:///{a}","name":"n"}"#)).unwrap().uri, "f:///{a}");
        assert_eq!(Resource::read(&object(r#"{"name":"n"}"#)), None);
    }

    #[test]
    fn prompts_tell_what_they_take() {
        let prompt =
            Prompt::read(&object(r#"{"name":"p","arguments":[{"name":"a","required":true},{"required":true}]}"#));
        let arguments = prompt.unwrap().arguments;
        assert_eq!((arguments.len(), arguments[0].required), (1, true));
        let message = PromptMessage::read(&object(r#"{"role":"user","content":{"type":"text","text":"hi"}}"#)).unwrap();
        assert_eq!(message.content, ContentBlock::Text { text: "hi".to_owned() });
    }
}
