use crate::error::{Error, ErrorKind};

/// The longest JSON-RPC message that either side takes, in bytes.
///
/// The protocol names no limit; servers answer with whole files, and 16 MiB is what carries those seen in practice.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// The longest WebSocket message that either side takes, in bytes.
pub const MAX_FRAME_BYTES: usize = HEADER_BYTES + MAX_MESSAGE_BYTES;

/// One WebSocket message of `crablet.v1`; the [module](super) says how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What the payload is.
    pub kind: FrameKind,
    /// The number of a frame that is not to be lost or repeated; 0 for the others.
    pub number: u64,
    /// The last number that the sender has seen of the receiver's frames.
    pub seen: u64,
    /// The payload; UTF-8 in every kind that is defined.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Reads a frame.
    ///
    /// # Errors
    ///
    /// `protocol` when it is shorter than its header or has a number that nobody can have counted to, `limit` when it is
    /// longer than [`MAX_FRAME_BYTES`].
    pub fn decode(mut bytes: Vec<u8>) -> Result<Self, Error> {
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(Error::new(
                ErrorKind::Limit,
                format!("a frame of {} bytes came; the longest allowed is {MAX_FRAME_BYTES}", bytes.len()),
            ));
        }
        let Some((&[kind, number @ .., s0, s1, s2, s3, s4, s5, s6, s7], _)) = bytes.split_first_chunk::<HEADER_BYTES>()
        else {
            let message = format!("a frame of {} bytes came; its header alone is {HEADER_BYTES}", bytes.len());
            return Err(Error::new(ErrorKind::Protocol, message));
        };
        let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let seen = u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        if number.max(seen) > MAX_NUMBER {
            return Err(Error::new(ErrorKind::Protocol, "a frame came with a number beyond 2^53"));
        }
        bytes.drain(..HEADER_BYTES);
        Ok(Self { kind: FrameKind::from_byte(kind), number, seen, payload: bytes })
    }

    /// Writes the frame.
    pub fn encode(&self) -> Vec<u8> {
        encode(self.kind, self.number, self.seen, &self.payload)
    }

    /// The payload as text.
    ///
    /// # Errors
    ///
    /// `protocol` when it is not UTF-8.
    pub fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.payload).map_err(|_| {
            Error::new(
                ErrorKind::Protocol,
                format!("a frame of the kind {} came that is not UTF-8", self.kind.to_byte()),
            )
        })
    }
}

/// What a frame carries. Messages and exits are numbered, the others are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FrameKind {
    /// 1, from the shim, first: its proof over the client's nonce.
    Proof,
    /// 2, from the client, first: [`Attach`](super::Attach) as JSON.
    Attach,
    /// 3, from the shim: [`Hello`](super::Hello) as JSON.
    Hello,
    /// 4, numbered, both ways: one JSON-RPC message, or a batch, as it was written.
    Message,
    /// 5, numbered, from the shim: [`Exit`](super::Exit) as JSON. Nothing numbered follows.
    Exit,
    /// 6, both ways: no payload, only the number seen.
    Seen,
    /// 7, from the shim: asks for a [`FrameKind::Seen`] frame, to find dead connections and to keep an extension's
    /// worker alive.
    Ping,
    /// 8, from the client: the process is no longer wanted.
    End,
    /// 9, from the shim: there is no such process to attach to. The payload is a sentence for the reader.
    Gone,
    /// A kind of a later version.
    Unknown(u8),
}

impl FrameKind {
    fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Proof,
            2 => Self::Attach,
            3 => Self::Hello,
            4 => Self::Message,
            5 => Self::Exit,
            6 => Self::Seen,
            7 => Self::Ping,
            8 => Self::End,
            9 => Self::Gone,
            other => Self::Unknown(other),
        }
    }

    fn to_byte(self) -> u8 {
        match self {
            Self::Proof => 1,
            Self::Attach => 2,
            Self::Hello => 3,
            Self::Message => 4,
            Self::Exit => 5,
            Self::Seen => 6,
            Self::Ping => 7,
            Self::End => 8,
            Self::Gone => 9,
            Self::Unknown(other) => other,
        }
    }
}

/// Writes a frame around a payload that stays where it is.
pub(super) fn encode(kind: FrameKind, number: u64, seen: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.push(kind.to_byte());
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&seen.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

const HEADER_BYTES: usize = 17;

/// The largest whole number that every language counts exactly; also keeps the arithmetic on numbers from overflowing.
const MAX_NUMBER: u64 = 1 << 53;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_wire_form_is_pinned() {
        let frame = Frame { kind: FrameKind::Message, number: 0x0102, seen: 7, payload: b"{}".to_vec() };
        let bytes = [4, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 7, b'{', b'}'];
        assert_eq!(frame.encode(), bytes);
        assert_eq!(Frame::decode(bytes.to_vec()).unwrap(), frame);
    }

    #[test]
    fn frames_of_a_wrong_size_are_refused() {
        assert_eq!(Frame::decode(vec![0; 16]).unwrap_err().kind(), ErrorKind::Protocol);
        assert_eq!(Frame::decode(vec![0; MAX_FRAME_BYTES + 1]).unwrap_err().kind(), ErrorKind::Limit);
        assert!(Frame::decode(vec![0; MAX_FRAME_BYTES]).is_ok());
    }

    proptest! {
        #[test]
        fn any_frame_comes_back(kind: u8, number in 0..=MAX_NUMBER, seen in 0..=MAX_NUMBER, payload: Vec<u8>) {
            let frame = Frame { kind: FrameKind::from_byte(kind), number, seen, payload };
            prop_assert_eq!(Frame::decode(frame.encode()).unwrap(), frame);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok(frame) = Frame::decode(bytes.clone()) {
                prop_assert_eq!(frame.encode(), bytes);
            }
        }
    }
}
