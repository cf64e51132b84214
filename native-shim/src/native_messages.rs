//! What an extension and the shim say to each other over native messaging, as JSON. `crablet::mcp::transport::shim` has the
//! table.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crablet::mcp::transport::shim::{MAX_HOST_MESSAGE_BYTES, write_native_message};
use serde::{Deserialize, Serialize};

/// A message of the extension.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExtensionMessage {
    /// It wants a server.
    Open { channel: u32, server: String, protocols: Vec<String> },
    /// An encoded frame.
    Frame { channel: u32, frame: Vec<u8> },
    /// It has no more use for a channel.
    Close { channel: u32 },
    /// Of a kind that a later version has.
    Unknown,
}

/// A message to the extension.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum ShimMessage<'a> {
    Open {
        channel: u32,
    },
    Refused {
        channel: u32,
        reason: &'a str,
    },
    Frame {
        channel: u32,
        data: String,
        /// Whether the channel's next frame message continues this frame.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        more: bool,
    },
    Close {
        channel: u32,
    },
    Failed {
        reason: &'a str,
    },
}

#[derive(Deserialize)]
struct Members<'a> {
    r#type: Cow<'a, str>,
    channel: Option<u32>,
    server: Option<String>,
    #[serde(default)]
    protocols: Vec<String>,
    #[serde(borrow)]
    data: Option<Cow<'a, str>>,
}

impl ExtensionMessage {
    /// Reads a message. The error says what is wrong with it and repeats nothing of it.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let Members { r#type, channel, server, protocols, data } = serde_json::from_slice(text)
            .map_err(|error| format!("a message came that is none of crablet's: {error}"))?;
        let channel = channel.ok_or("a message came that names no channel");
        Ok(match &*r#type {
            "open" => {
                let server = server.ok_or("a message came that opens no server")?;
                Self::Open { channel: channel?, server, protocols }
            }
            "frame" => {
                let frame = data.and_then(|data| STANDARD.decode(data.as_bytes()).ok());
                Self::Frame { channel: channel?, frame: frame.ok_or("a frame came that is not base64")? }
            }
            "close" => Self::Close { channel: channel? },
            _ => Self::Unknown,
        })
    }
}

impl ShimMessage<'_> {
    /// The message behind its length.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Texts and numbers can always be written, and reasons are sentences: only a frame's data is long, and cut below.
        serde_json::to_vec(self).ok().and_then(|text| write_native_message(&text).ok()).unwrap_or_default()
    }
}

/// An encoded frame as messages that a browser takes.
pub(crate) fn frame_messages(channel: u32, frame: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let count = frame.len().div_ceil(CHUNK_BYTES);
    frame.chunks(CHUNK_BYTES).enumerate().map(move |(index, chunk)| {
        ShimMessage::Frame { channel, data: STANDARD.encode(chunk), more: index + 1 < count }.to_bytes()
    })
}

/// So many bytes of a frame go in one message. A multiple of 3, so that the base64 of the pieces joins to that of the whole.
const CHUNK_BYTES: usize = 720 * 1024;
const _: () = assert!(CHUNK_BYTES.is_multiple_of(3) && CHUNK_BYTES / 3 * 4 + 256 < MAX_HOST_MESSAGE_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_extension_says_is_read() {
        let read = |text: &str| ExtensionMessage::parse(text.as_bytes());
        assert_eq!(
            read(r#"{"type":"open","channel":1,"server":"files","protocols":["a","b"]}"#).unwrap(),
            ExtensionMessage::Open { channel: 1, server: "files".into(), protocols: vec!["a".into(), "b".into()] }
        );
        assert_eq!(
            read(r#"{"channel":2,"data":"AQI=","type":"frame"}"#).unwrap(),
            ExtensionMessage::Frame { channel: 2, frame: vec![1, 2] }
        );
        assert_eq!(read(r#"{"type":"close","channel":2}"#).unwrap(), ExtensionMessage::Close { channel: 2 });
        assert_eq!(read(r#"{"type":"later","channel":2,"more":[]}"#).unwrap(), ExtensionMessage::Unknown);
    }

    #[test]
    fn what_is_no_message_is_refused_without_repeating_it() {
        for text in [
            "",
            "secret",
            "[]",
            r#"{"channel":1}"#,
            r#"{"type":"open","channel":1}"#,
            r#"{"type":"open","server":"secret"}"#,
            r#"{"type":"frame","channel":-1,"data":""}"#,
            r#"{"type":"frame","channel":1,"data":"s!cret"}"#,
            r#"{"type":"frame","channel":1}"#,
            "\u{0}\u{1}",
        ] {
            let error = ExtensionMessage::parse(text.as_bytes()).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_long_frame_goes_in_pieces_that_join() {
        let frame: Vec<u8> = (0..CHUNK_BYTES * 2 + 5).map(|index| u8::try_from(index % 251).unwrap()).collect();
        let mut joined = String::new();
        let mut more = Vec::new();
        for message in frame_messages(7, &frame) {
            assert!(message.len() <= MAX_HOST_MESSAGE_BYTES);
            let message: serde_json::Value = serde_json::from_slice(&message[4..]).unwrap();
            joined += message["data"].as_str().unwrap();
            more.push(message["more"] == true);
        }
        assert_eq!(more, [true, true, false]);
        assert_eq!(STANDARD.decode(joined).unwrap(), frame);
    }
}
