//! Any bytes, whole and a byte at a time: the same events, and no panic.
#![no_main]

use crablet::sse::SseParser;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(events(bytes.chunks(bytes.len().max(1))), events(bytes.chunks(1)));
});

fn events<'chunk>(chunks: impl Iterator<Item = &'chunk [u8]>) -> Vec<(String, String, Option<String>)> {
    let mut parser = SseParser::new();
    let mut events = Vec::new();
    for chunk in chunks {
        parser.push(chunk);
        while let Ok(Some(event)) = parser.next_event() {
            events.push((event.name.to_owned(), event.data.to_owned(), event.id.map(str::to_owned)));
        }
    }
    parser.finish();
    events
}
