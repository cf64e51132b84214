use serde_json::Value;

use super::OpenApiError;
use super::document::{Fields, list, text};

/// Which servers operations are sent to.
pub(super) struct Servers {
    chosen: Option<Address>,
    allowed: Vec<(Address, bool)>,
}

/// An address that paths are put behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    scheme: String,
    host: String,
    port: Option<String>,
    /// The path in front, without a slash at its end.
    pub(super) path: String,
}

impl Servers {
    pub(super) fn new(server: Option<&str>, origins: &[String]) -> Result<Self, OpenApiError> {
        let no_address = |text: &str| OpenApiError::Address(text.to_owned());
        if server.is_none() && origins.is_empty() {
            return Err(OpenApiError::NoOrigins);
        }
        let chosen = server.map(|server| Address::parse(server).ok_or_else(|| no_address(server))).transpose()?;
        let mut allowed = Vec::new();
        for origin in origins {
            let (text, below) = match origin.split_once("://*.") {
                Some((scheme, host)) => (format!("{scheme}://{host}"), true),
                None => (origin.clone(), false),
            };
            let address = Address::parse(&text).filter(|address| address.path.is_empty());
            allowed.push((address.ok_or_else(|| no_address(origin))?, below));
        }
        Ok(Self { chosen, allowed })
    }

    /// The address that an operation's path is put behind: the one that was chosen, or the first that the operation, its
    /// path or the document names.
    pub(super) fn of(&self, holders: &[&Fields]) -> Result<Address, OpenApiError> {
        if let Some(chosen) = &self.chosen {
            return Ok(chosen.clone());
        }
        let server = holders.iter().find_map(|holder| list(holder, "servers").first()).and_then(Value::as_object);
        let url = server.and_then(|server| text(server, "url")).unwrap_or("/");
        let variables = server.and_then(|server| server.get("variables")).and_then(Value::as_object);
        let filled = filled(url, variables);
        let address = Address::parse(&filled).ok_or_else(|| OpenApiError::Address(filled.clone()))?;
        if self.allowed.iter().any(|(allowed, below)| address.is_of(allowed, *below)) {
            Ok(address)
        } else {
            Err(OpenApiError::NotAllowed(address.origin()))
        }
    }
}

impl Address {
    /// An http or https address without user name, query and fragment.
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let is_odd =
            |character: char| character.is_whitespace() || character.is_control() || "\\?#@*{}".contains(character);
        if !matches!(scheme.as_str(), "http" | "https") || text.contains(is_odd) {
            return None;
        }
        let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        if host.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return None;
        }
        let default_port = if scheme == "http" { "80" } else { "443" };
        let port = port.filter(|port| *port != default_port).map(str::to_owned);
        let path = path.trim_end_matches('/').to_owned();
        Some(Self { scheme, host: host.to_ascii_lowercase(), port, path })
    }

    /// Whether its origin is another's, or that of a host below it.
    fn is_of(&self, other: &Self, below: bool) -> bool {
        let is_below = || self.host.strip_suffix(&other.host).is_some_and(|start| start.ends_with('.'));
        self.scheme == other.scheme
            && self.port == other.port
            && if below { is_below() } else { self.host == other.host }
    }

    pub(super) fn origin(&self) -> String {
        let port = self.port.as_ref().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", self.scheme, self.host)
    }
}

/// An address with the defaults of its variables.
fn filled(url: &str, variables: Option<&Fields>) -> String {
    let mut filled = String::new();
    let mut rest = url;
    while let Some((start, (name, end))) =
        rest.split_once('{').and_then(|(start, after)| Some((start, after.split_once('}')?)))
    {
        filled.push_str(start);
        let variable = variables.and_then(|variables| variables.get(name)).and_then(Value::as_object);
        filled.push_str(variable.and_then(|variable| text(variable, "default")).unwrap_or_default());
        rest = end;
    }
    filled + rest
}
