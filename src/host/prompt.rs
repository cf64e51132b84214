//! What a user says, in the forms in which it is convenient to write it.

use crate::model::Content;

/// A user message: text, files, or both. Made from `&str`, `String`, [`Content`] or a vector of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt(pub Vec<Content>);

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self(vec![Content::Text(text)])
    }
}

impl From<Content> for Prompt {
    fn from(content: Content) -> Self {
        Self(vec![content])
    }
}

impl From<Vec<Content>> for Prompt {
    fn from(content: Vec<Content>) -> Self {
        Self(content)
    }
}
