//! Who may come in, before anybody asks for a token: the names of the server that count, and the pages that may use it. It is
//! what keeps a page whose name was bound to this machine from using a server of it (2025-11-25, "Security Warning").

use super::{Answer, Headers, Origin};

/// Under which names a server is reached, as the `Host` header says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hosts {
    /// `localhost`, `127.0.0.1` and `[::1]`, with any port: the server is for programs of this machine.
    #[default]
    Loopback,
    /// These and no others. One without a port counts with any.
    Named(Vec<String>),
    /// Any. Only for a server that something else protects, such as a proxy that knows its names, or a token.
    Any,
}

/// The gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// The names of the server. Default: those of this machine only.
    pub hosts: Hosts,
    /// The pages of other origins that may use the server. A page of the server's own origin may, unless any host counts, and
    /// so may programs, which send no `Origin`. Default: none.
    pub origins: Vec<Origin>,
}

impl Gate {
    /// Checks `Host` and `Origin`. Gives the origin of the page that asks, if it is a page.
    ///
    /// # Errors
    ///
    /// The answer to whoever may not come in, a 403 that says why.
    pub fn check<'a>(&self, headers: &Headers<'a>) -> Result<Option<&'a str>, Answer> {
        let host = headers.once("host").ok().flatten();
        if !self.hosts.allow(host) {
            return Err(refused(&format!(
                "the host {} is none of this server's names; whoever runs it can add it to its hosts",
                shown(host.unwrap_or_default())
            )));
        }
        let Ok(origin) = headers.once("origin") else { return Err(refused("the header origin is not readable")) };
        match origin {
            Some(origin) if !self.allows_origin(origin, host) => Err(refused(&format!(
                "pages of {} may not use this server; whoever runs it can add it to its origins",
                shown(origin)
            ))),
            origin => Ok(origin),
        }
    }

    fn allows_origin(&self, origin: &str, host: Option<&str>) -> bool {
        // A host that was not checked says nothing: a page of a name that was bound to this machine has the same in both.
        let is_own = self.hosts != Hosts::Any
            && ["http://", "https://"]
                .iter()
                .any(|scheme| origin.strip_prefix(scheme).is_some_and(|own| Some(own) == host));
        is_own || self.origins.iter().any(|allowed| allowed.matches(origin))
    }
}

impl Hosts {
    fn allow(&self, host: Option<&str>) -> bool {
        let names: Vec<&str> = match self {
            Self::Any => return true,
            Self::Loopback => vec!["localhost", "127.0.0.1", "[::1]"],
            Self::Named(names) => names.iter().map(String::as_str).collect(),
        };
        let Some(host) = host else { return false };
        let is_bare = |name: &str| without_port(name) == name;
        names.iter().any(|name| {
            name.eq_ignore_ascii_case(host) || (is_bare(name) && name.eq_ignore_ascii_case(without_port(host)))
        })
    }
}

/// The answer to a browser that asks whether a page of an allowed origin may send a request; `None` for a request that is no such
/// question.
pub fn preflight(method: &str, headers: &Headers<'_>) -> Option<Answer> {
    if method != "OPTIONS" || !headers.has("origin") || !headers.has("access-control-request-method") {
        return None;
    }
    let mut answer = Answer::empty(204);
    answer.headers.push(("access-control-allow-methods", "POST, GET, DELETE".to_owned()));
    answer.headers.push(("access-control-max-age", "600".to_owned()));
    let is_ours = |name: &&str| {
        let name = name.to_ascii_lowercase();
        REQUEST_HEADERS.contains(&name.as_str()) || name.starts_with("mcp-")
    };
    let wanted = headers.text("access-control-request-headers").unwrap_or_default();
    let allowed: Vec<&str> = wanted.split(',').map(str::trim).filter(is_ours).collect();
    answer.headers.push(("access-control-allow-headers", allowed.join(", ")));
    // Chrome asks so before a page of a public address may reach this machine.
    if headers.text("access-control-request-private-network") == Some("true") {
        answer.headers.push(("access-control-allow-private-network", "true".to_owned()));
    }
    Some(answer)
}

/// The headers by which the page of an allowed origin can read an answer; nobody else's browser shows it to its page.
pub fn readable_by(origin: Option<&str>) -> Vec<(&'static str, String)> {
    let mut headers = vec![("vary", "Origin".to_owned())];
    if let Some(origin) = origin {
        headers.push(("access-control-allow-origin", origin.to_owned()));
        headers.push(("access-control-expose-headers", "Mcp-Session-Id, WWW-Authenticate".to_owned()));
    }
    headers
}

fn refused(reason: &str) -> Answer {
    use crate::jsonrpc::{RpcError, code};
    Answer::failed(403, None, RpcError::new(code::INVALID_REQUEST, reason))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// Text of a stranger, safe to stand in an answer.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(MAX_SHOWN).collect::<String>())
}

/// The headers beside `mcp-*` that a page may send.
const REQUEST_HEADERS: [&str; 4] = ["authorization", "content-type", "accept", "last-event-id"];

/// As much of a stranger's text as an answer shows.
const MAX_SHOWN: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(gate: &Gate, host: &str, origin: Option<&str>) -> bool {
        let mut headers = vec![("Host", host.as_bytes())];
        headers.extend(origin.map(|origin| ("Origin", origin.as_bytes())));
        gate.check(&Headers::from_iter(headers)).is_ok()
    }

    #[test]
    fn by_default_a_server_is_for_this_machine() {
        let gate = Gate::default();
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "[::1]"] {
            assert!(check(&gate, host, None), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "[::2]", "localhost:x"]
        {
            assert!(!check(&gate, host, None), "{host}");
        }
        assert!(gate.check(&Headers::default()).is_err());
        let twice = [("host", &b"localhost"[..]), ("host", b"evil.example")];
        assert!(gate.check(&Headers::from_iter(twice)).is_err());
    }

    #[test]
    fn pages_of_other_origins_are_named() {
        let gate = Gate { origins: vec![Origin::parse("https://app.example").unwrap()], ..Gate::default() };
        for origin in ["https://app.example", "http://localhost:8080", "https://localhost:8080"] {
            assert!(check(&gate, "localhost:8080", Some(origin)), "{origin}");
        }
        for origin in ["null", "", "https://evil.example", "http://localhost:9090", "https://app.example.evil.example"]
        {
            assert!(!check(&gate, "localhost:8080", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn where_any_host_counts_no_page_is_of_the_same_origin() {
        let gate = Gate { hosts: Hosts::Any, ..Gate::default() };
        assert!(check(&gate, "evil.example", None));
        assert!(!check(&gate, "evil.example", Some("http://evil.example")));
    }

    #[test]
    fn named_hosts_take_the_place_of_this_machine() {
        let gate =
            Gate { hosts: Hosts::Named(vec!["mcp.example".into(), "other.example:8443".into()]), ..Gate::default() };
        for (host, is_allowed) in [
            ("mcp.example", true),
            ("MCP.example:443", true),
            ("other.example:8443", true),
            ("other.example", false),
            ("localhost", false),
        ] {
            assert_eq!(check(&gate, host, None), is_allowed, "{host}");
        }
    }
}
