//! Any bytes, whole and a byte at a time: the same messages and the same end, and no panic. What was read can be written
//! again.
#![no_main]

use crablet::mcp::transport::shim::{NativeMessageReader, write_native_message};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes.chunks(bytes.len().max(1)));
    assert_eq!(whole, read(bytes.chunks(1)));
    let (messages, _) = whole;
    if let Ok(written) = messages.iter().map(|message| write_native_message(message)).collect::<Result<Vec<_>, _>>() {
        assert!(bytes.starts_with(&written.concat()));
    }
});

/// The messages, and how the stream ended: failed, or between two messages.
fn read<'chunk>(chunks: impl Iterator<Item = &'chunk [u8]>) -> (Vec<Vec<u8>>, (bool, bool)) {
    let mut reader = NativeMessageReader::new();
    let mut messages = Vec::new();
    for chunk in chunks {
        reader.push(chunk);
        loop {
            match reader.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => return (messages, (true, false)),
            }
        }
    }
    (messages, (false, reader.is_between_messages()))
}
