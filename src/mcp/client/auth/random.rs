use sha2::{Digest, Sha256};

use crate::base64url;

/// Unpredictable texts from one secret seed: each is a hash of the seed and a number that grows.
#[derive(Clone)]
pub(super) struct Random {
    seed: [u8; 32],
    drawn: u64,
}

impl Random {
    pub(super) const fn new(seed: [u8; 32]) -> Self {
        Self { seed, drawn: 0 }
    }

    /// 256 bits as 43 characters that may stand anywhere.
    pub(super) fn text(&mut self) -> String {
        self.drawn += 1;
        let hash = Sha256::new().chain_update(self.seed).chain_update(self.drawn.to_be_bytes()).finalize();
        base64url::encode(&hash)
    }
}

impl std::fmt::Debug for Random {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Random(..)")
    }
}

/// The hash of a text, as PKCE (RFC 7636, section 4.2) and DPoP (RFC 9449, section 4.2) write it.
pub(super) fn hash(text: &str) -> String {
    base64url::encode(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_the_standard() {
        assert_eq!(hash("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn no_text_comes_twice() {
        let mut random = Random::new([7; 32]);
        let (first, second) = (random.text(), random.text());
        assert!(first != second && first.len() == 43);
        assert_eq!(Random::new([7; 32]).text(), first);
        assert_ne!(Random::new([8; 32]).text(), first);
    }
}
