use crate::error::{Error, ErrorKind};

/// The parts of an `http` or `https` address that decide where credentials go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    is_https: bool,
    /// Scheme, host and port.
    pub(super) origin: String,
    host: String,
    /// Without query and fragment; empty or with a slash in front.
    pub(super) path: String,
}

impl Address {
    /// The parts of an absolute address, or `None` for anything that platforms could read in different ways.
    pub(super) fn parse(url: &str) -> Option<Self> {
        if url.bytes().any(|byte| byte <= b' ' || byte == b'\\' || byte >= 127) {
            return None;
        }
        let (is_https, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://")?),
        };
        let authority_end = position(rest, b"/?#");
        let (authority, rest) = rest.split_at(authority_end);
        let path = rest.get(..position(rest, b"?#"))?.to_owned();
        // What stands in brackets is a number with colons.
        let is_bracketed = authority.starts_with('[');
        let number_end = if is_bracketed { position(authority, b"]") } else { 0 };
        let host_end = number_end + position(authority.get(number_end..)?, b":");
        let (host, port) = authority.split_at(host_end);
        let is_port = port.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        let is_host = !host.is_empty() && is_bracketed == host.ends_with(']');
        if !is_host || !is_port || authority.bytes().any(|byte| byte == b'@' || byte == b'%') {
            return None;
        }
        let host = host.to_ascii_lowercase();
        let (scheme, usual_port) = if is_https { ("https://", ":443") } else { ("http://", ":80") };
        let origin = [scheme, &host, if port == usual_port { "" } else { port }].concat();
        Some(Self { is_https, origin, host, path })
    }

    /// The address of a server that tokens may be sent to.
    pub(super) fn of_server(url: &str) -> Result<Self, Error> {
        Self::parse(url).filter(Self::is_secret).ok_or_else(|| {
            let message =
                "tokens are only sent to addresses with https, or with http on this machine; use one of these";
            Error::new(ErrorKind::InvalidInput, message)
        })
    }

    /// Whether nobody on the way can read what is sent there.
    fn is_secret(&self) -> bool {
        self.is_https || self.is_loopback()
    }

    pub(super) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host == "[::1]" || self.ipv4().is_some_and(|octets| octets[0] == 127)
    }

    /// Whether it is a number or a name that leads into a private network.
    ///
    /// Names are taken for public: what they resolve to is not known here. Spellings of numbers that platforms read in
    /// different ways (`127.1`, `0x7f000001`) are taken for private.
    fn is_private(&self) -> bool {
        if let Some(address) = self.host.strip_prefix('[') {
            let is_global = address.starts_with(['2', '3']);
            return !is_global;
        }
        let host = self.host.trim_end_matches('.');
        let last = host.rsplit('.').next().unwrap_or_default();
        let is_number = last.starts_with(|first: char| first.is_ascii_digit());
        match self.ipv4() {
            Some([a, b, ..]) => matches!(
                (a, b),
                (0 | 10 | 127, _) | (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168) | (224..=255, _)
            ),
            None => is_number || host == "localhost" || host.ends_with(".localhost"),
        }
    }

    fn ipv4(&self) -> Option<[u8; 4]> {
        let octets: Vec<u8> = self
            .host
            .split('.')
            .map_while(|octet| {
                let number = octet.parse::<u8>().ok()?;
                (number.to_string() == octet).then_some(number)
            })
            .collect();
        (self.host.split('.').count() == 4).then(|| octets.try_into().ok()).flatten()
    }

    /// Whether an address that a server's metadata names may be asked on behalf of that server: `https`, or `http` on this
    /// machine for a server on this machine; and a server out there cannot point into a private network.
    pub(super) fn may_lead_to(&self, url: &str) -> bool {
        Self::parse(url).is_some_and(|target| match (self.is_loopback(), target.is_https) {
            (true, true) => true,
            (true, false) => target.is_loopback(),
            (false, is_https) => is_https && (!target.is_private() || self.is_private()),
        })
    }

    /// Whether this is the address of a resource that covers the server: the same origin, and a path that the server's
    /// begins with.
    pub(super) fn is_covered_by(&self, resource: &str) -> bool {
        Self::parse(resource).is_some_and(|resource| {
            let path = resource.path.trim_end_matches('/');
            let rest = self.path.strip_prefix(path);
            resource.origin == self.origin && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// Where the first of these bytes is, or the end.
fn position(text: &str, bytes: &[u8]) -> usize {
    text.bytes().position(|byte| bytes.contains(&byte)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    #[test]
    fn addresses_that_could_be_read_in_two_ways_are_refused() {
        for url in [
            "ftp://a.example",
            "//a.example",
            "https://",
            "https:///path",
            "https://u:p@a.example",
            "https://a.example:x",
            "https://a.example\\@b.example",
            "https://a b.example",
            "https://a.exämple",
            "https://a%2eexample",
            "https://[::1",
            "https://::1]",
            "https://[::1]x",
            "",
        ] {
            assert_eq!(Address::parse(url), None, "{url}");
        }
        let parsed = address("https://A.Example:8443/mcp?x=1#y");
        assert_eq!((parsed.origin.as_str(), parsed.path.as_str()), ("https://a.example:8443", "/mcp"));
        assert_eq!(address("https://a.example:443").origin, "https://a.example");
    }

    #[test]
    fn tokens_go_only_where_nobody_listens() {
        for url in ["https://a.example/mcp", "http://localhost:1/mcp", "http://127.0.0.1/mcp", "http://[::1]:8/mcp"] {
            Address::of_server(url).unwrap();
        }
        for url in
            ["http://a.example/mcp", "http://192.168.1.2/mcp", "http://127.0.0.1.evil.example/", "ws://localhost"]
        {
            assert_eq!(Address::of_server(url).unwrap_err().kind(), ErrorKind::InvalidInput, "{url}");
        }
    }

    #[test]
    fn a_server_out_there_cannot_point_into_a_private_network() {
        let public = address("https://mcp.example/mcp");
        assert!(public.may_lead_to("https://auth.example/token") && public.may_lead_to("https://8.8.8.8/"));
        for url in [
            "http://auth.example/",
            "http://localhost:1/",
            "https://localhost/",
            "https://127.0.0.1/",
            "https://10.0.0.1/",
            "https://169.254.169.254/latest",
            "https://[::1]/",
            "https://[fd00::1]/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://127.1/",
            "https://192.168.0.1./",
            "https://a.localhost/",
            "file:///etc/passwd",
            "javascript:alert(1)",
        ] {
            assert!(!public.may_lead_to(url), "{url}");
        }
        let local = address("http://localhost:3000/mcp");
        assert!(local.may_lead_to("http://127.0.0.1:4000/token") && local.may_lead_to("https://auth.example/token"));
        assert!(!local.may_lead_to("http://auth.example/token"));
    }

    #[test]
    fn a_resource_covers_the_paths_below_its_own() {
        let server = address("https://mcp.example/a/mcp");
        for resource in
            ["https://mcp.example", "https://mcp.example/", "https://mcp.example/a", "https://MCP.example/a/mcp"]
        {
            assert!(server.is_covered_by(resource), "{resource}");
        }
        for resource in ["https://evil.example/a/mcp", "http://mcp.example/a/mcp", "https://mcp.example/a/mc", "mcp"] {
            assert!(!server.is_covered_by(resource), "{resource}");
        }
    }
}
