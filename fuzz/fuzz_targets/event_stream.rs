//! Frames of Amazon's event stream with any payloads: the same events however they are cut, and an error when any byte is
//! another one.
#![no_main]

#[allow(dead_code, reason = "the streams of this target all succeed")]
mod decoder;
#[allow(dead_code, reason = "all frames of this target are events")]
#[path = "../../tests/wire/frames.rs"]
mod frames;

use crablet::model::{ModelEvent, bedrock};

const NAMES: [&str; 6] =
    ["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"];

libfuzzer_sys::fuzz_target!(|input: (Vec<(u8, &str)>, Option<(u16, u8)>)| {
    let (events, change) = input;
    let name = |kind: u8| NAMES[usize::from(kind) % NAMES.len()];
    let mut bytes: Vec<u8> =
        events.into_iter().flat_map(|(kind, payload)| frames::frame(name(kind), payload)).collect();
    let length = bytes.len().max(1);
    let place = change.filter(|(_, bits)| *bits != 0).map(|(at, bits)| (usize::from(at) % length, bits));
    let changed = place.and_then(|(at, bits)| bytes.get_mut(at).map(|byte| *byte ^= bits));
    let model = bedrock::model("r", "m");
    let whole = decoder::events(&model, 200, [bytes.as_slice()]);
    assert_eq!(whole, decoder::events(&model, 200, bytes.chunks(1)));
    assert!(changed.is_none() || matches!(whole.last(), Some(ModelEvent::Failed(_))), "{whole:#?}");
});
