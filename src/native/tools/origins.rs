use std::borrow::Cow;

use reqwest::Url;

use crate::error::{Error, ErrorKind};

/// The origins that requests may go to.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    told: String,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    origin: Url,
    /// Whether it is for every host below that one, and not for that one.
    below: bool,
}

impl Origins {
    /// # Errors
    ///
    /// `invalid-input` when there is none, or one that is no origin.
    pub(super) fn parse(origins: &[String]) -> Result<Self, Error> {
        if origins.is_empty() {
            return Err(invalid("a fetch tool needs the origins that requests may go to"));
        }
        let rules = origins.iter().map(|origin| Rule::parse(origin)).collect::<Result<_, _>>()?;
        Ok(Self { told: origins.join(", "), rules })
    }

    pub(super) fn allow(&self, url: &Url) -> bool {
        url.username().is_empty() && url.password().is_none() && self.rules.iter().any(|rule| rule.allows(url))
    }

    /// An address as a model wrote it, where it is allowed.
    ///
    /// # Errors
    ///
    /// A message for the model.
    pub(super) fn check(&self, text: &str) -> Result<Url, String> {
        let url = Url::parse(text)
            .map_err(|_| "the address is not a URL: write all of it, such as https://example.com/page".to_owned())?;
        if self.allow(&url) {
            return Ok(url);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address with a user name or password is not allowed".to_owned());
        }
        let origin = url.origin().ascii_serialization();
        Err(format!("requests to {origin} are not allowed; allowed are: {}", self.told))
    }

    /// As the caller wrote them.
    pub(super) fn told(&self) -> &str {
        &self.told
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, Error> {
        let not_one = || {
            invalid(format!(
                "{text:?} is not an origin: write one such as \"https://example.com\" or \"https://*.example.com\""
            ))
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(not_one)?;
        let (below, host) = rest.strip_prefix("*.").map_or((false, rest), |host| (true, host));
        let host = host.strip_suffix('/').unwrap_or(host);
        if !matches!(scheme, "http" | "https") || host.contains(['/', '?', '#', '@', '*', '\\']) {
            return Err(not_one());
        }
        let origin = Url::parse(&format!("{scheme}://{host}")).map_err(|_| not_one())?;
        Ok(Self { origin, below })
    }

    fn allows(&self, url: &Url) -> bool {
        if !self.below {
            return url.origin() == self.origin.origin();
        }
        let is_below = |host: &str, above: &str| host.strip_suffix(above).is_some_and(|start| start.ends_with('.'));
        url.scheme() == self.origin.scheme()
            && url.port_or_known_default() == self.origin.port_or_known_default()
            && url.host_str().zip(self.origin.host_str()).is_some_and(|(host, above)| is_below(host, above))
    }
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_allowed() {
        let origins = ["https://example.com", "https://*.example.org", "http://127.0.0.1:8080"].map(str::to_owned);
        let origins = Origins::parse(&origins).unwrap();
        for allowed in [
            "https://example.com/a?b",
            "https://EXAMPLE.com:443/",
            "https://a.b.example.org/",
            "http://127.0.0.1:8080/x",
        ] {
            assert!(origins.check(allowed).is_ok(), "{allowed}");
        }
        for refused in [
            "http://example.com/",
            "https://example.com:8443/",
            "https://example.com.evil.test/",
            "https://evil-example.com/",
            "https://example.org/",
            "https://badexample.org/",
            "https://example.com@127.0.0.1/",
            "http://user:secret@127.0.0.1:8080/",
            "http://127.0.0.1/",
            "file:///etc/passwd",
            "data:text/plain,hi",
            "/relative",
            "",
        ] {
            assert!(origins.check(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for text in
            ["", "*", "example.com", "https://example.com/path", "https://*", "ftp://a", "https://a@b", "https://a?b"]
        {
            assert!(Origins::parse(&[text.to_owned()]).is_err(), "{text}");
        }
        assert!(Origins::parse(&[]).is_err());
    }
}
