//! Percent-encoding (RFC 3986, section 2.1).

/// The text with every byte escaped that is not unreserved, so that it can stand anywhere in an address.
#[cfg(any(feature = "host", feature = "shim", feature = "oauth"))]
pub(crate) fn encode(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().map_or('0', char::from);
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

/// The text with every escape replaced by its byte. What is no escape stays as it is.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(all(test, any(feature = "host", feature = "shim", feature = "oauth")))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_unreserved_bytes_stay() {
        assert_eq!(encode("files-2.0_x~"), "files-2.0_x~");
        assert_eq!(encode("a b/\u{e9}&=+"), "a%20b%2F%C3%A9%26%3D%2B");
        assert_eq!(decode("100%, %zz %2"), "100%, %zz %2");
        assert_eq!(decode("%+1%C3%a9"), "%+1\u{e9}");
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text: String) {
            prop_assert_eq!(decode(&encode(&text)), text);
        }
    }
}
