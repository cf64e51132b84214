//! Base64 with the URL alphabet and without padding (RFC 4648, section 5): its characters may stand in addresses and
//! subprotocols.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for position in 0..=group.len() {
            let index = (bits >> (18 - 6 * position)) & 63;
            text.push(ALPHABET.get(index as usize).copied().map_or('A', char::from));
        }
    }
    text
}

/// The bytes of a text, or `None` when it is not exactly what [`encode`] writes for some bytes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0u32);
    for character in text.bytes() {
        let value = ALPHABET.iter().position(|candidate| *candidate == character)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    // Leftover bits must be padding zeros, and a single leftover character carries no byte.
    let leftover_is_padding = count < 6 && bits & ((1 << count) - 1) == 0;
    leftover_is_padding.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_vectors_of_the_standard() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(encode(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn a_text_has_one_spelling() {
        for text in ["Zh", "Zg==", "Z", "Zm9vY", "Zm+v", "Zm 9"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn what_decodes_is_canonical(text in "[A-Za-z0-9_-]{0,12}") {
            if let Some(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes), text);
            }
        }
    }
}
