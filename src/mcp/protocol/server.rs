use serde::Serialize;

use crate::json::{Object, RawJson};

/// The name a program gives itself. For display only: the peer may say anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Implementation {
    /// The program's name.
    pub name: String,
    /// The name to show, where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version.
    pub version: String,
}

impl Implementation {
    /// Reads an `Implementation` object; what is missing is empty.
    pub fn read(object: &Object<'_>) -> Self {
        Self {
            name: object.string("name").unwrap_or_default(),
            title: object.string("title"),
            version: object.string("version").unwrap_or_default(),
        }
    }
}

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    raw: Option<RawJson>,
}

impl Capabilities {
    /// Reads the `capabilities` of a result.
    pub fn read(object: &Object<'_>) -> Self {
        Self { raw: object.raw("capabilities") }
    }

    /// Whether the server offers this, such as `tools` or `resources`.
    pub fn has(&self, name: &str) -> bool {
        self.object().is_some_and(|object| object.object(name).is_some() || object.boolean(name) == Some(true))
    }

    /// Whether the server offers this part of a capability, such as `tools` with `listChanged`.
    pub fn has_part(&self, name: &str, part: &str) -> bool {
        self.object().and_then(|object| object.object(name)?.boolean(part)).unwrap_or_default()
    }

    /// The whole object as the server sent it.
    pub fn raw(&self) -> Option<&RawJson> {
        self.raw.as_ref()
    }

    fn object(&self) -> Option<Object<'_>> {
        Object::parse(self.raw.as_ref()?.as_str()).ok()
    }
}

/// What a server says of itself when a client connects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// The program, where it named itself.
    pub implementation: Option<Implementation>,
    /// What it offers; `None` when it did not say, or was not asked, as with a stateless server known from an era record.
    pub capabilities: Option<Capabilities>,
    /// How to use it, for the model.
    pub instructions: Option<String>,
}

impl ServerInfo {
    /// Reads the result of `initialize`.
    pub fn from_initialize(object: &Object<'_>) -> Self {
        Self {
            implementation: object.object("serverInfo").map(|info| Implementation::read(&info)),
            capabilities: object.raw("capabilities").map(|_| Capabilities::read(object)),
            instructions: object.string("instructions"),
        }
    }

    /// Reads the result of `server/discover`.
    pub fn from_discover(object: &Object<'_>) -> Self {
        let meta = object.object("_meta");
        let implementation = meta.as_ref().and_then(|meta| meta.object("io.modelcontextprotocol/serverInfo"));
        Self { implementation: implementation.map(|info| Implementation::read(&info)), ..Self::from_initialize(object) }
    }

    /// Whether the server may be asked for this. A server that was not asked what it offers may.
    pub fn may_offer(&self, capability: &str) -> bool {
        self.capabilities.as_ref().is_none_or(|capabilities| capabilities.has(capability))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_objects_or_true() {
        let text = r#"{"capabilities":{"tools":{"listChanged":true},"prompts":false,"logging":true,"tasks":1}}"#;
        let object = Object::parse(text).unwrap();
        let capabilities = Capabilities::read(&object);
        assert!(capabilities.has("tools") && capabilities.has_part("tools", "listChanged"));
        assert!(capabilities.has("logging") && !capabilities.has_part("logging", "listChanged"));
        assert!(!capabilities.has("prompts") && !capabilities.has("resources") && !capabilities.has("tasks"));
    }

    #[test]
    fn a_server_that_was_not_asked_may_offer_anything() {
        assert!(ServerInfo::default().may_offer("tools"));
        let empty = ServerInfo::from_initialize(&Object::parse(r#"{"capabilities":{}}"#).unwrap());
        assert!(!empty.may_offer("tools"));
        // One that says nothing is asked.
        let silent = ServerInfo::from_initialize(&Object::parse(r#"{"capabilities":null}"#).unwrap());
        assert!(silent.may_offer("tools"));
    }
}
