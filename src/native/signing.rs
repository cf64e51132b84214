//! Signatures by aws-lc-rs, which rustls brings along.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};

use crate::base64url;
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, SigningKey, pkcs8, unreadable};
use crate::mcp::client::auth::{PrivateKey, SigningAlgorithm};

/// A private key in the memory of this process.
struct NativeKey {
    pair: Pair,
    public_key: String,
}

enum Pair {
    Es256(EcdsaKeyPair),
    Rs256(Box<RsaKeyPair>),
    EdDsa(Ed25519KeyPair),
}

/// This private key, or a new pair for ES256.
pub(super) fn signing_key(key: Option<PrivateKey>) -> Result<Arc<dyn SigningKey>, Error> {
    let pair = match &key {
        Some(key) => read(key)?,
        None => Pair::Es256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(failed)?),
    };
    let public_key = match &pair {
        Pair::Es256(pair) => public_key(pair.public_key().as_ref()),
        _ => String::new(),
    };
    Ok(Arc::new(NativeKey { pair, public_key }))
}

fn read(key: &PrivateKey) -> Result<Pair, Error> {
    let bytes = pkcs8(key)?;
    let pair = match key.algorithm {
        SigningAlgorithm::Es256 => EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &bytes).map(Pair::Es256),
        SigningAlgorithm::Rs256 => RsaKeyPair::from_pkcs8(&bytes).map(|pair| Pair::Rs256(Box::new(pair))),
        SigningAlgorithm::EdDsa => Ed25519KeyPair::from_pkcs8(&bytes).map(Pair::EdDsa),
    };
    pair.map_err(|_| unreadable(key))
}

/// The JSON Web Key of a point: one byte, and two numbers of equal length.
fn public_key(point: &[u8]) -> String {
    let numbers = point.get(1..).unwrap_or_default();
    let (x, y) = numbers.split_at(numbers.len() / 2);
    format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, base64url::encode(x), base64url::encode(y))
}

fn failed(_: Unspecified) -> Error {
    Error::new(ErrorKind::Internal, "the system could not make a signature")
}

impl NativeKey {
    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Es256(pair) => Ok(pair.sign(&random, message)?.as_ref().to_vec()),
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)?;
                Ok(signature)
            }
            Pair::EdDsa(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

impl SigningKey for NativeKey {
    fn public_key(&self) -> &str {
        &self.public_key
    }

    fn sign(&self, message: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(self.signature(&message).map_err(failed)))
    }
}

impl fmt::Debug for NativeKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NativeKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::AsDer;
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
    };

    use super::*;
    use crate::mcp::client::auth::Secret;

    fn pem(der: &[u8]) -> String {
        let text: String = base64url::encode(der)
            .chars()
            .map(|letter| match letter {
                '-' => '+',
                '_' => '/',
                other => other,
            })
            .collect();
        let padding = "=".repeat((4 - text.len() % 4) % 4);
        let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line)).collect();
        format!("-----BEGIN PRIVATE KEY-----\n{}{padding}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
    }

    async fn check(
        der: &[u8],
        algorithm: SigningAlgorithm,
        verification: &'static dyn VerificationAlgorithm,
        public: &[u8],
    ) {
        let key = PrivateKey { pem: Secret::new(pem(der)), algorithm, key_id: None };
        let signature = signing_key(Some(key)).unwrap().sign(b"message".to_vec()).await.unwrap();
        UnparsedPublicKey::new(verification, public).verify(b"message", &signature).unwrap();
    }

    #[tokio::test]
    async fn each_algorithm_signs_with_a_key_in_pem() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let der = pair.to_pkcs8v1().unwrap();
        check(der.as_ref(), SigningAlgorithm::Es256, &ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref()).await;
        let pair = Ed25519KeyPair::generate().unwrap();
        let der = pair.to_pkcs8v1().unwrap();
        check(der.as_ref(), SigningAlgorithm::EdDsa, &ED25519, pair.public_key().as_ref()).await;
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let der = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&pair).unwrap();
        check(der.as_ref(), SigningAlgorithm::Rs256, &RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref()).await;
    }

    #[test]
    fn what_is_no_key_is_told_without_showing_it() {
        for text in ["", "planted-secret", "-----BEGIN PRIVATE KEY-----\nplanted\n-----END PRIVATE KEY-----"] {
            let pem = Secret::new(text);
            let key = PrivateKey { pem, algorithm: SigningAlgorithm::Es256, key_id: None };
            let error = signing_key(Some(key)).err().unwrap();
            assert!(error.kind() == ErrorKind::InvalidInput && !error.to_string().contains("planted"), "{error}");
        }
    }

    #[test]
    fn a_new_key_shows_its_public_half() {
        let key = signing_key(None).unwrap();
        let object = crate::json::Object::parse(key.public_key()).unwrap();
        assert_eq!(object.string("kty").as_deref(), Some("EC"));
        assert_eq!(object.string("x").unwrap().len(), 43);
    }
}
