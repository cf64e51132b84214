//! Signatures by WebCrypto.

use std::fmt;
use std::sync::Arc;

use js_sys::{JSON, Object, Promise, Uint8Array};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use super::property;
use crate::error::{Error, ErrorKind};
use crate::host::{BoxFuture, SigningKey, pkcs8, unreadable};
use crate::mcp::client::auth::{PrivateKey, SigningAlgorithm};

/// A `CryptoKey`, whose private half the platform keeps.
struct WebKey {
    key: JsValue,
    algorithm: SigningAlgorithm,
    public_key: String,
}

/// This private key, or a new pair for ES256.
pub(super) async fn signing_key(key: Option<PrivateKey>) -> Result<Arc<dyn SigningKey>, Error> {
    let usages = parsed(r#"["sign"]"#);
    let Some(key) = key else {
        let algorithm = SigningAlgorithm::Es256;
        let pair = settled(generate_key(&parameters(algorithm), false, &usages)).await?;
        let exported = settled(export_key("jwk", &property(&pair, "publicKey"))).await?;
        let text = |name| property(&exported, name).as_string().unwrap_or_default();
        let public_key = [r#"{"crv":"P-256","kty":"EC","x":""#, &text("x"), r#"","y":""#, &text("y"), r#""}"#].concat();
        return Ok(Arc::new(WebKey { key: property(&pair, "privateKey"), algorithm, public_key }));
    };
    let bytes = Uint8Array::from(pkcs8(&key)?.as_slice());
    let imported = settled(import_key("pkcs8", &bytes, &parameters(key.algorithm), false, &usages)).await;
    let imported = imported.map_err(|_| unreadable(&key))?;
    Ok(Arc::new(WebKey { key: imported, algorithm: key.algorithm, public_key: String::new() }))
}

impl SigningKey for WebKey {
    fn public_key(&self) -> &str {
        &self.public_key
    }

    fn sign(&self, message: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let signing = sign(&parameters(self.algorithm), &self.key, &Uint8Array::from(message.as_slice()));
        Box::pin(async move { Ok(Uint8Array::new(&settled(signing).await?).to_vec()) })
    }
}

impl fmt::Debug for WebKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WebKey(..)")
    }
}

/// What WebCrypto calls an algorithm; the same object does for making, reading and using a key.
fn parameters(algorithm: SigningAlgorithm) -> Object {
    parsed(match algorithm {
        SigningAlgorithm::Es256 => r#"{"name":"ECDSA","namedCurve":"P-256","hash":"SHA-256"}"#,
        SigningAlgorithm::Rs256 => r#"{"name":"RSASSA-PKCS1-v1_5","hash":"SHA-256"}"#,
        SigningAlgorithm::EdDsa => r#"{"name":"Ed25519"}"#,
    })
}

fn parsed(text: &str) -> Object {
    JSON::parse(text).unwrap_or_default().unchecked_into()
}

async fn settled(started: Result<Promise, JsValue>) -> Result<JsValue, Error> {
    let settled = match started {
        Ok(promise) => JsFuture::from(promise).await,
        Err(thrown) => Err(thrown),
    };
    settled.map_err(|_| {
        Error::new(ErrorKind::Internal, "this platform could not sign; crypto.subtle needs a secure context (https)")
    })
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = ["crypto", "subtle"], js_name = generateKey, catch)]
    fn generate_key(algorithm: &Object, extractable: bool, usages: &Object) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_namespace = ["crypto", "subtle"], js_name = importKey, catch)]
    fn import_key(
        format: &str,
        key: &Uint8Array,
        algorithm: &Object,
        extractable: bool,
        usages: &Object,
    ) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_namespace = ["crypto", "subtle"], js_name = exportKey, catch)]
    fn export_key(format: &str, key: &JsValue) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_namespace = ["crypto", "subtle"], catch)]
    fn sign(algorithm: &Object, key: &JsValue, message: &Uint8Array) -> Result<Promise, JsValue>;
}
