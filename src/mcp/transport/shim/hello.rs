//! The three frames that are JSON of the shim's own: attach, hello and exit.

use serde::Serialize;

use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};

/// The client's first frame: which process it wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Attach {
    /// The resume id of the process to go on with; `None` for a new process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// Whether this client remembers the numbers it has seen and sent. One that only stored the resume id does not, and
    /// takes its numbers from the [`Hello`].
    pub continues: bool,
}

/// The shim's answer to [`Attach`]: what the client is now attached to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Names the process for a later [`Attach`]; unpredictable, and of use only with the same token.
    pub resume: String,
    /// A text that is different for every client that attached without remembering its numbers. Put before the ids of
    /// JSON-RPC requests it keeps answers to an earlier client's requests apart.
    pub id_prefix: String,
    /// The number of the next frame that this client gets.
    pub next: u64,
    /// How long the process lives without a client, in milliseconds.
    pub grace_ms: u64,
    /// The era that the server speaks, when the shim has found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<ServerEra>,
    /// The result of `initialize` (revision, capabilities, server info), when this process has already answered one. It
    /// must not be sent a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialized: Option<RawJson>,
}

/// The two kinds of MCP server behind a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerEra {
    /// Wants `initialize` first.
    Handshake,
    /// Takes every request by itself (revision 2026-07-28).
    Stateless,
}

/// How the process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// Its exit code; `None` when a signal ended it or it never started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What happened, as a sentence for the reader.
    pub message: String,
    /// The last lines of its error output; may be empty.
    pub stderr_tail: String,
}

impl Attach {
    /// Reads the payload of an attach frame.
    ///
    /// # Errors
    ///
    /// `protocol` when it is no JSON object.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let object = read_object("attach", text)?;
        Ok(Self { resume: object.string("resume"), continues: object.boolean("continues").unwrap_or(false) })
    }

    /// The payload of the frame.
    pub fn to_payload(&self) -> Vec<u8> {
        write_json(self)
    }
}

impl Hello {
    /// Reads the payload of a hello frame.
    ///
    /// # Errors
    ///
    /// `protocol` when it is no JSON object or lacks what every hello has.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let object = read_object("hello", text)?;
        let missing = |name| Error::new(ErrorKind::Protocol, format!("the shim's hello has no usable `{name}`"));
        Ok(Self {
            resume: object.string("resume").ok_or_else(|| missing("resume"))?,
            id_prefix: object.string("idPrefix").unwrap_or_default(),
            next: object.integer("next").filter(|next| *next > 0).ok_or_else(|| missing("next"))?,
            grace_ms: object.integer("graceMs").unwrap_or(0),
            era: match object.string("era").as_deref() {
                Some("handshake") => Some(ServerEra::Handshake),
                Some("stateless") => Some(ServerEra::Stateless),
                _ => None,
            },
            initialized: object.raw("initialized"),
        })
    }

    /// The payload of the frame.
    pub fn to_payload(&self) -> Vec<u8> {
        write_json(self)
    }
}

impl Exit {
    /// Reads the payload of an exit frame.
    ///
    /// # Errors
    ///
    /// `protocol` when it is no JSON object.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let object = read_object("exit", text)?;
        Ok(Self {
            code: object.read("code"),
            signal: object.read("signal"),
            message: object.string("message").unwrap_or_else(|| "the server's process ended".to_owned()),
            stderr_tail: object.string("stderrTail").unwrap_or_default(),
        })
    }

    /// The payload of the frame.
    pub fn to_payload(&self) -> Vec<u8> {
        write_json(self)
    }
}

fn read_object<'text>(kind: &str, text: &'text str) -> Result<Object<'text>, Error> {
    Object::parse(text)
        .map_err(|error| Error::new(ErrorKind::Protocol, format!("the {kind} frame is not a JSON object: {error}")))
}

/// These types have text keys and no failing parts, so that writing them cannot go wrong.
fn write_json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(payload: Vec<u8>) -> String {
        String::from_utf8(payload).unwrap()
    }

    #[test]
    fn the_wire_forms_are_pinned() {
        let attach = Attach { resume: Some("r".into()), continues: true };
        assert_eq!(text(attach.to_payload()), r#"{"resume":"r","continues":true}"#);
        assert_eq!(text(Attach::default().to_payload()), r#"{"continues":false}"#);

        let hello = Hello {
            resume: "r".into(),
            id_prefix: "1-".into(),
            next: 3,
            grace_ms: 60_000,
            era: Some(ServerEra::Handshake),
            initialized: Some(RawJson::parse(r#"{"protocolVersion":"2025-11-25"}"#).unwrap()),
        };
        let written = concat!(
            r#"{"resume":"r","idPrefix":"1-","next":3,"graceMs":60000,"era":"handshake","#,
            r#""initialized":{"protocolVersion":"2025-11-25"}}"#
        );
        assert_eq!(text(hello.to_payload()), written);
        assert_eq!(Hello::parse(written).unwrap(), hello);

        let exit = Exit { code: Some(3), signal: None, message: "gone".into(), stderr_tail: "boom".into() };
        let written = r#"{"code":3,"message":"gone","stderrTail":"boom"}"#;
        assert_eq!(text(exit.to_payload()), written);
        assert_eq!(Exit::parse(written).unwrap(), exit);
    }

    #[test]
    fn what_a_later_version_adds_is_skipped() {
        let hello = Hello::parse(r#"{"resume":"r","next":1,"era":"quantum","extra":{}}"#).unwrap();
        assert_eq!((hello.era, hello.grace_ms, hello.initialized), (None, 0, None));
        assert!(Hello::parse(r#"{"resume":"r","next":0}"#).is_err());
        assert!(Hello::parse(r#"{"next":1}"#).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = (Attach::parse(&text), Hello::parse(&text), Exit::parse(&text));
        }
    }
}
