use crate::json::{Object, RawJson, read_string};

/// A block of a tool's result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// The bytes in standard base64.
        data: String,
        /// The media type.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// The bytes in standard base64.
        data: String,
        /// The media type.
        mime_type: String,
    },
    /// The address of a resource that the client may read.
    ResourceLink {
        /// The address.
        uri: String,
        /// The resource's name.
        name: Option<String>,
        /// The name to show.
        title: Option<String>,
        /// What it is, for the model.
        description: Option<String>,
        /// The media type.
        mime_type: Option<String>,
    },
    /// A resource with its contents.
    Resource(ResourceContents),
    /// A block that this version does not know, or that lacks what its kind needs.
    Unknown {
        /// The `type` of the block; empty when it has none.
        kind: String,
        /// The block as it came.
        raw: RawJson,
    },
}

impl ContentBlock {
    /// Reads a block. What is not understood is kept as [`ContentBlock::Unknown`]; a bare text is a text.
    pub fn read(raw: RawJson) -> Self {
        if let Some(text) = read_string(raw.as_str()) {
            return Self::Text { text };
        }
        let known = Object::parse(raw.as_str()).ok().map(|object| {
            let kind = object.string("type").unwrap_or_default();
            (Self::known(&kind, &object), kind)
        });
        match known {
            Some((Some(block), _)) => block,
            Some((None, kind)) => Self::Unknown { kind, raw },
            None => Self::Unknown { kind: String::new(), raw },
        }
    }

    fn known(kind: &str, object: &Object<'_>) -> Option<Self> {
        let text = |name| object.string(name);
        Some(match kind {
            // Some servers put a value where its text should be.
            "text" => Self::Text { text: text("text").or_else(|| Some(object.raw("text")?.as_str().to_owned()))? },
            "image" => Self::Image { data: text("data")?, mime_type: text("mimeType")? },
            "audio" => Self::Audio { data: text("data")?, mime_type: text("mimeType")? },
            "resource_link" => Self::ResourceLink {
                uri: text("uri")?,
                name: text("name"),
                title: text("title"),
                description: text("description"),
                mime_type: text("mimeType"),
            },
            "resource" => Self::Resource(ResourceContents::read(&object.object("resource")?)?),
            // Frameworks have kinds of their own, such as `error`; a text is a text all the same.
            _ => Self::Text { text: text("text")? },
        })
    }
}

/// The contents of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContents {
    /// The resource's address.
    pub uri: String,
    /// The media type.
    pub mime_type: Option<String>,
    /// What it holds.
    pub body: ResourceBody,
}

impl ResourceContents {
    /// Reads the contents; `None` when there is no address or nothing in it.
    pub fn read(object: &Object<'_>) -> Option<Self> {
        let body = match (object.string("text"), object.string("blob")) {
            (Some(text), _) => ResourceBody::Text(text),
            (None, Some(blob)) => ResourceBody::Blob(blob),
            (None, None) => return None,
        };
        Some(Self { uri: object.string("uri")?, mime_type: object.string("mimeType"), body })
    }
}

/// What a resource holds.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes in standard base64.
    Blob(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ContentBlock {
        ContentBlock::read(RawJson::parse(text).unwrap())
    }

    #[test]
    fn blocks_of_every_known_kind_are_read() {
        assert_eq!(read(r#"{"type":"text","text":"a","annotations":{}}"#), ContentBlock::Text { text: "a".to_owned() });
        assert!(matches!(read(r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#), ContentBlock::Image { .. }));
        assert!(matches!(read(r#"{"type":"audio","data":"aGk=","mimeType":"audio/wav"}"#), ContentBlock::Audio { .. }));
        assert!(matches!(read(r#"{"type":"resource_link","uri":"f:///b"}"#), ContentBlock::ResourceLink { .. }));
        let ContentBlock::Resource(contents) = read(r#"{"type":"resource","resource":{"uri":"f:///a","blob":""}}"#)
        else {
            panic!("not read as a resource");
        };
        assert_eq!(contents.body, ResourceBody::Blob(String::new()));
    }

    #[test]
    fn a_text_is_a_text_however_it_is_written() {
        for (block, expected) in [
            (r#""a""#, "a"),
            (r#"{"type":"text","text":5}"#, "5"),
            (r#"{"type":"text","text":{"a":[1]}}"#, r#"{"a":[1]}"#),
            (r#"{"type":"error","text":"no"}"#, "no"),
            (r#"{"text":"a"}"#, "a"),
        ] {
            assert_eq!(read(block), ContentBlock::Text { text: expected.to_owned() }, "{block}");
        }
        assert!(matches!(read(r#"{"type":"text","text":null}"#), ContentBlock::Unknown { .. }));
        assert!(matches!(read(r#"{"type":"image","text":"a"}"#), ContentBlock::Unknown { .. }));
    }

    #[test]
    fn blocks_that_are_not_understood_are_kept() {
        for (text, expected) in
            [(r#"{"type":"hologram","x":1}"#, "hologram"), (r#"{"type":"image"}"#, "image"), ("7", "")]
        {
            let ContentBlock::Unknown { kind, raw } = read(text) else { panic!("{text} was understood") };
            assert_eq!((kind.as_str(), raw.as_str()), (expected, text));
        }
    }
}
