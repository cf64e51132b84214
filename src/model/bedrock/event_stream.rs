//! The frames of `application/vnd.amazon.eventstream`: lengths, headers, payload, and two checksums
//! (docs.aws.amazon.com/transcribe, "Event stream encoding").

use crate::work;

/// Cuts bytes into frames. A cursor moves over the buffer, so every byte is looked at once.
#[derive(Debug, Default)]
pub(super) struct FrameParser {
    buffer: Vec<u8>,
    start: usize,
    checksums: Checksums,
}

/// One frame.
#[derive(Debug, Default)]
pub(super) struct Frame {
    headers: Vec<(String, String)>,
    pub(super) payload: Vec<u8>,
}

/// The bytes are no frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("a frame of the event stream has a wrong checksum")]
    Checksum,
    #[error("a frame of the event stream has an impossible length")]
    Length,
    #[error("a frame of the event stream has malformed headers")]
    Headers,
}

/// The service's own limit of 16 MiB for a payload, and room for the headers.
const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024 + 128 * 1024;

/// Two lengths and the checksum of both.
const PRELUDE: usize = 12;

/// What a frame has beside headers and payload.
const OVERHEAD: usize = PRELUDE + 4;

impl Frame {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    }
}

impl FrameParser {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let moved = if self.start == 0 { 0 } else { self.buffer.len() - self.start };
        work::count(moved + bytes.len());
        self.buffer.drain(..std::mem::take(&mut self.start));
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame of what was pushed.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let Some((prelude, _)) = rest.split_at_checked(PRELUDE) else { return Ok(None) };
        let (total, header_length) = (number(prelude, 0), number(prelude, 4));
        if self.checksums.of(prelude.get(..8).unwrap_or_default()) != number(prelude, 8) {
            return Err(FrameError::Checksum);
        }
        let (total, header_length) = (total as usize, header_length as usize);
        if !(OVERHEAD..=MAX_FRAME_BYTES).contains(&total) || header_length > total - OVERHEAD {
            return Err(FrameError::Length);
        }
        let Some(frame) = rest.get(..total) else { return Ok(None) };
        let (checked, trailer) = frame.split_at_checked(total - 4).unwrap_or((frame, &[]));
        if self.checksums.of(checked) != number(trailer, 0) {
            return Err(FrameError::Checksum);
        }
        let body = checked.get(PRELUDE..).unwrap_or_default();
        let (headers, payload) = body.split_at_checked(header_length).unwrap_or((body, &[]));
        let headers = read_headers(headers).ok_or(FrameError::Headers)?;
        let frame = Frame { headers, payload: payload.to_vec() };
        self.start += total;
        Ok(Some(frame))
    }
}

/// Reads the headers that are texts; those of other types have no meaning here and are passed over.
fn read_headers(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first() {
        let (name, behind) = behind.split_at_checked(usize::from(*length))?;
        let (kind, behind) = behind.split_first()?;
        let length = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            9 => 16,
            6 | 7 => usize::from(u16::from_be_bytes([*behind.first()?, *behind.get(1)?])) + 2,
            _ => return None,
        };
        let (value, behind) = behind.split_at_checked(length)?;
        if *kind == 7 {
            let text = String::from_utf8_lossy(value.get(2..)?).into_owned();
            headers.push((String::from_utf8_lossy(name).into_owned(), text));
        }
        rest = behind;
    }
    Some(headers)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.iter().skip(at).take(4).fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

/// CRC-32 as of gzip. Its table is made for each stream: in a module it is 1 KB that cannot be compressed.
#[derive(Debug)]
struct Checksums {
    table: Vec<u32>,
}

impl Default for Checksums {
    fn default() -> Self {
        let shifted = |value: u32| if value & 1 == 1 { (value >> 1) ^ 0xedb8_8320 } else { value >> 1 };
        Self { table: (0..256).map(|index| (0..8).fold(index, |value, _| shifted(value))).collect() }
    }
}

impl Checksums {
    fn of(&self, bytes: &[u8]) -> u32 {
        work::count(bytes.len());
        let step = |crc: u32, byte: &u8| {
            let index = (crc ^ u32::from(*byte)) & 0xff;
            (crc >> 8) ^ self.table.get(index as usize).copied().unwrap_or_default()
        };
        !bytes.iter().fold(u32::MAX, step)
    }
}

/// A frame that holds an event.
#[cfg(test)]
pub(in crate::model) fn frame_of_event(name: &str, payload: &str) -> Vec<u8> {
    let header = |name: &str, value: &str| {
        let length = u16::try_from(value.len()).unwrap().to_be_bytes();
        [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), &[7], &length, value.as_bytes()].concat()
    };
    tests::frame(&[header(":event-type", name), header(":message-type", "event")].concat(), payload.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
        let total = u32::try_from(OVERHEAD + headers.len() + payload.len()).unwrap();
        let mut bytes = [total.to_be_bytes(), u32::try_from(headers.len()).unwrap().to_be_bytes()].concat();
        bytes.extend(Checksums::default().of(&bytes).to_be_bytes());
        bytes.extend_from_slice(headers);
        bytes.extend_from_slice(payload);
        bytes.extend(Checksums::default().of(&bytes).to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Vec<Frame>, FrameError> {
        let mut parser = FrameParser::default();
        let mut frames = Vec::new();
        for byte in bytes.chunks(1) {
            parser.push(byte);
            frames.extend(parser.next_frame()?);
        }
        Ok(frames)
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(Checksums::default().of(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn frames_are_read_a_byte_at_a_time() {
        let headers = b"\x01a\x07\x00\x02hi\x01b\x04\0\0\0\x01\x01c\0";
        let frames = parse(&[frame(headers, b"{}"), frame(b"", b"x")].concat()).unwrap();
        assert_eq!((frames[0].header("a"), frames[0].header("b")), (Some("hi"), None));
        assert_eq!((frames[0].payload.as_slice(), frames[1].payload.as_slice()), (b"{}".as_slice(), b"x".as_slice()));
    }

    #[test]
    fn broken_frames_are_refused() {
        let good = frame(b"", b"{}");
        for position in 0..good.len() {
            let mut bad = good.clone();
            bad[position] ^= 1;
            assert!(parse(&bad).is_err() || parse(&bad).unwrap().is_empty(), "{position}");
        }
        assert_eq!(parse(&frame(b"\x05ab", b"")).unwrap_err(), FrameError::Headers);
        let mut endless = [u32::MAX.to_be_bytes(), 0u32.to_be_bytes()].concat();
        endless.extend(Checksums::default().of(&endless).to_be_bytes());
        assert_eq!(parse(&endless).unwrap_err(), FrameError::Length);
    }
}
