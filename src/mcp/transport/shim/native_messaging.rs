//! The framing of native messaging: how a browser and the program that it starts for an extension exchange JSON over the
//! program's standard input and output. Each message follows its length, 32 bits in the machine's own byte order.

use std::mem;

use super::frame::MAX_FRAME_BYTES;
use crate::error::{Error, ErrorKind};

/// The longest message that a program takes from a browser, in bytes: the longest frame in base64, and what is around it.
///
/// Chrome would send 64 MiB and Firefox 4 GiB.
pub const MAX_BROWSER_MESSAGE_BYTES: usize = MAX_FRAME_BYTES.div_ceil(3) * 4 + ENVELOPE_BYTES;

/// The longest message that a browser takes from a program, in bytes; Chrome and Firefox end the program after a longer
/// one.
pub const MAX_HOST_MESSAGE_BYTES: usize = 1024 * 1024;

/// The browser's own token for the handshake proof in a native messaging connection, where there is nothing to prove: the
/// browser itself says which extension it is. Opens nothing elsewhere.
pub const NATIVE_MESSAGING_TOKEN: &str = "native-messaging.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Cuts what a browser writes into messages.
///
/// No more memory is taken than bytes came, whatever length a message claims to have.
#[derive(Debug, Default)]
pub struct NativeMessageReader {
    buffer: Vec<u8>,
    /// So many bytes of the buffer belong to messages that were given.
    taken: usize,
}

impl NativeMessageReader {
    /// A reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..mem::take(&mut self.taken));
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message; `None` until more was pushed.
    ///
    /// # Errors
    ///
    /// `limit` when the message is longer than [`MAX_BROWSER_MESSAGE_BYTES`]. Where the next one begins cannot be known
    /// then without reading all of it, so that the stream is of no further use.
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let waiting = self.buffer.get(self.taken..).unwrap_or_default();
        let Some((length, rest)) = waiting.split_first_chunk() else { return Ok(None) };
        let length = usize::try_from(u32::from_ne_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_BROWSER_MESSAGE_BYTES {
            return Err(Error::new(
                ErrorKind::Limit,
                format!(
                    "a message of {length} bytes was announced; the longest allowed is {MAX_BROWSER_MESSAGE_BYTES}"
                ),
            ));
        }
        let message = rest.get(..length).map(<[u8]>::to_vec);
        if message.is_some() {
            self.taken += LENGTH_BYTES + length;
        }
        Ok(message)
    }

    /// Whether the stream may end here: no message has begun.
    pub fn is_between_messages(&self) -> bool {
        self.taken == self.buffer.len()
    }
}

/// A message behind its length, as it is written.
///
/// # Errors
///
/// `limit` when the message is longer than [`MAX_HOST_MESSAGE_BYTES`].
pub fn write_native_message(message: &[u8]) -> Result<Vec<u8>, Error> {
    match u32::try_from(message.len()) {
        Ok(length) if message.len() <= MAX_HOST_MESSAGE_BYTES => Ok([&length.to_ne_bytes(), message].concat()),
        _ => Err(Error::new(
            ErrorKind::Limit,
            format!("a message of {} bytes is more than a browser takes ({MAX_HOST_MESSAGE_BYTES})", message.len()),
        )),
    }
}

const LENGTH_BYTES: usize = 4;

/// Room for what stands around the base64 in a message.
const ENVELOPE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mcp::transport::shim::Token;

    fn stream(messages: &[Vec<u8>]) -> Vec<u8> {
        messages.iter().flat_map(|message| write_native_message(message).unwrap()).collect()
    }

    #[test]
    fn a_length_that_is_too_great_ends_the_stream_before_it_is_read() {
        for length in [u32::MAX, u32::try_from(MAX_BROWSER_MESSAGE_BYTES + 1).unwrap()] {
            let mut reader = NativeMessageReader::new();
            reader.push(&length.to_ne_bytes());
            assert_eq!(reader.next_message().unwrap_err().kind(), ErrorKind::Limit);
        }
        let mut reader = NativeMessageReader::new();
        reader.push(&u32::try_from(MAX_BROWSER_MESSAGE_BYTES).unwrap().to_ne_bytes());
        assert_eq!(reader.next_message().unwrap(), None);
        assert!(reader.buffer.capacity() < 1024, "memory is taken for bytes that came, not for a length");
    }

    #[test]
    fn what_a_browser_would_not_take_is_not_written() {
        assert!(write_native_message(&vec![0; MAX_HOST_MESSAGE_BYTES]).is_ok());
        assert_eq!(write_native_message(&vec![0; MAX_HOST_MESSAGE_BYTES + 1]).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn the_token_that_proves_nothing_is_one() {
        assert_eq!(Token::parse(NATIVE_MESSAGING_TOKEN).unwrap().key_id(), "native-messaging");
    }

    proptest! {
        #[test]
        fn messages_come_back_however_the_stream_is_cut(messages: Vec<Vec<u8>>, size in 1usize..20) {
            let mut reader = NativeMessageReader::new();
            let mut read = Vec::new();
            for chunk in stream(&messages).chunks(size) {
                reader.push(chunk);
                while let Some(message) = reader.next_message().unwrap() {
                    read.push(message);
                }
            }
            prop_assert_eq!(read, messages);
            prop_assert!(reader.is_between_messages());
        }
    }
}
