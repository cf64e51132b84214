use std::fmt;

use serde::Serialize;

/// A web origin as browsers write it in the `Origin` header: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Origin(String);

/// Why a text is not an origin that can be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no origin; write scheme, host and port only, such as https://app.example or chrome-extension://<id>")]
pub struct NotAnOrigin(String);

impl Origin {
    /// Reads an origin that a person wrote. A slash at the end and a default port are forgiven, since browsers leave
    /// both out; `null` and patterns are not origins.
    ///
    /// # Errors
    ///
    /// When it is no origin.
    pub fn parse(text: &str) -> Result<Self, NotAnOrigin> {
        let refused = || NotAnOrigin(text.to_owned());
        let lower = text.trim().trim_end_matches('/').to_ascii_lowercase();
        let (scheme, authority) = lower.split_once("://").ok_or_else(refused)?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_lowercase())
            && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte));
        let is_authority = !authority.is_empty()
            && authority.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
        if !is_scheme || !is_authority {
            return Err(refused());
        }
        let default_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        let authority = match authority.strip_suffix(default_port) {
            Some(host) if !default_port.is_empty() => host,
            _ => authority,
        };
        Ok(Self(format!("{scheme}://{authority}")))
    }

    /// Whether a header names this origin, exactly.
    pub fn matches(&self, header: &str) -> bool {
        self.0 == header
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_becomes_what_browsers_send() {
        for (written, sent) in [
            ("https://App.Example/", "https://app.example"),
            ("https://app.example:443", "https://app.example"),
            ("http://localhost:5173", "http://localhost:5173"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ] {
            assert!(Origin::parse(written).unwrap().matches(sent), "{written}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in ["null", "*", "", "app.example", "https://", "https://*.example", "https://a.example/path", "://x"]
        {
            assert!(Origin::parse(text).is_err(), "{text}");
        }
    }
}
