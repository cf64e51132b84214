//! Signature Version 4 (docs.aws.amazon.com/IAM, "Create a signed AWS API request").

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::super::http::{AwsKeys, HttpRequest};
use crate::error::{Error, ErrorKind};
use crate::ordered_map::sorted_by_key;
use crate::time::Millis;

/// Signs a request whose address is `https://SERVICE.REGION.amazonaws.com/…`.
pub(super) fn sign(request: &mut HttpRequest, keys: &AwsKeys, service: &str, now: Millis) -> Result<(), Error> {
    let (host, _) = split(&request.url);
    let named = host.split('.').nth(1).filter(|_| host.contains(".amazonaws.com"));
    let region = keys.region.as_deref().or(named).map(str::to_owned).ok_or_else(|| {
        let told = format!("the AWS region is not part of the address {host}; give it with the keys");
        Error::new(ErrorKind::InvalidInput, told)
    })?;
    sign_for(request, keys, &region, service, now);
    Ok(())
}

fn sign_for(request: &mut HttpRequest, keys: &AwsKeys, region: &str, service: &str, now: Millis) {
    let timestamp = timestamp(now);
    let date = timestamp.split('T').next().unwrap_or_default().to_owned();
    request.set_header("x-amz-date", timestamp.clone());
    if let Some(token) = &keys.session_token {
        request.set_header("x-amz-security-token", token.clone());
    }
    let (host, target) = split(&request.url);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let host = ("host".to_owned(), host.to_owned());
    let headers = request.headers.iter().filter(|(name, _)| name.starts_with("x-amz-") || name == "content-type");
    let headers = sorted_by_key(headers.chain([&host]), |header| *header);
    let signed = headers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";");
    let listed: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let parameters = sorted_by_key(parameters, |parameter| *parameter);
    // The path is encoded a second time, except for S3.
    let path = path.split('/').map(uri_encoded).collect::<Vec<_>>().join("/");
    let path = if path.is_empty() { "/" } else { &path };
    let canonical = format!(
        "{}\n{path}\n{}\n{listed}\n{signed}\n{}",
        request.method,
        parameters.join("&"),
        hexadecimal(&Sha256::digest(&request.body))
    );
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let to_sign =
        format!("AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{}", hexadecimal(&Sha256::digest(canonical.as_bytes())));
    let secret = format!("AWS4{}", keys.secret_access_key);
    let key =
        [date.as_str(), region, service, "aws4_request"].iter().fold(secret.into_bytes(), |key, text| mac(&key, text));
    let signature = hexadecimal(&mac(&key, &to_sign));
    let credential = format!("{}/{scope}", keys.access_key_id);
    request.set_header(
        "authorization",
        format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={signature}"),
    );
}

/// A segment of a path, with everything encoded but letters, digits and `-._~`.
pub(super) fn uri_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Host and path of an absolute address.
fn split(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.chain_update(text).finalize().into_bytes().to_vec()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `20150830T123600Z`
fn timestamp(now: Millis) -> String {
    now.to_rfc3339().replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2015-08-30T12:36:00Z, the moment of the published examples.
    const MOMENT: Millis = Millis(1_440_938_160_000);

    fn keys() -> AwsKeys {
        AwsKeys {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
            region: None,
        }
    }

    fn signed(url: &str, headers: &[(&str, &str)], service: &str) -> String {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut request = HttpRequest { method: "GET", url: url.to_owned(), headers, body: Vec::new() };
        sign_for(&mut request, &keys(), "us-east-1", service, MOMENT);
        let authorization = request.header("authorization").unwrap().to_owned();
        authorization.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    /// The vectors of AWS's own test suite (`get-vanilla`) and of its documentation (`ListUsers`).
    #[test]
    fn the_published_vectors_hold() {
        assert_eq!(
            signed("https://example.amazonaws.com/", &[], "service"),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
        assert_eq!(
            signed(
                "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
                &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
                "iam"
            ),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        assert_eq!(timestamp(MOMENT), "20150830T123600Z");
        assert_eq!(timestamp(Millis(0)), "19700101T000000Z");
        assert_eq!(timestamp(Millis(1_709_208_000_500)), "20240229T120000Z");
    }

    #[test]
    fn the_region_comes_from_the_address_or_the_keys() {
        let request =
            |url: &str| HttpRequest { method: "POST", url: url.into(), headers: Vec::new(), body: Vec::new() };
        let mut own = request("https://bedrock-runtime.eu-west-1.amazonaws.com/model/a%3A0/converse-stream");
        sign(&mut own, &AwsKeys { session_token: Some("token-1".into()), ..keys() }, "bedrock", MOMENT).unwrap();
        let authorization = own.header("authorization").unwrap();
        assert!(authorization.contains("/20150830/eu-west-1/bedrock/aws4_request"), "{authorization}");
        assert!(authorization.contains("SignedHeaders=host;x-amz-date;x-amz-security-token"), "{authorization}");
        let mut proxied = request("https://proxy.example/model/a");
        assert_eq!(sign(&mut proxied, &keys(), "bedrock", MOMENT).unwrap_err().kind(), ErrorKind::InvalidInput);
        sign(&mut proxied, &AwsKeys { region: Some("us-east-1".into()), ..keys() }, "bedrock", MOMENT).unwrap();
    }
}
