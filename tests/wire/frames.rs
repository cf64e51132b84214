//! Frames of `application/vnd.amazon.eventstream`, as Bedrock sends them
//! (docs.aws.amazon.com/transcribe/latest/dg/event-stream.html).

/// A frame that holds an event.
pub(crate) fn frame(event: &str, payload: &str) -> Vec<u8> {
    frame_with(&[(":event-type", event), (":content-type", "application/json"), (":message-type", "event")], payload)
}

/// The same with any headers.
pub(crate) fn frame_with(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let headers: Vec<u8> = headers.iter().copied().flat_map(text_header).collect();
    let length = |length: usize| u32::try_from(length).unwrap().to_be_bytes();
    let mut frame = [length(16 + headers.len() + payload.len()), length(headers.len())].concat();
    frame.extend(checksum(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend_from_slice(payload.as_bytes());
    frame.extend(checksum(&frame).to_be_bytes());
    frame
}

fn text_header((name, value): (&str, &str)) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap().to_be_bytes();
    [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), &[7], &length, value.as_bytes()].concat()
}

/// CRC-32 as of gzip, a bit at a time.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 })
    })
}
