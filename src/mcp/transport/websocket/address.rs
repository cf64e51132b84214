use crate::error::{Error, ErrorKind};

/// The host and port of an address whose host is this machine.
pub(crate) fn loopback_authority(url: &str) -> Result<String, Error> {
    let rest = url.strip_prefix("ws://").or_else(|| url.strip_prefix("wss://")).unwrap_or_default();
    let authority = rest.trim_end_matches('/');
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, "80"),
    };
    let is_port = port.parse::<u16>().is_ok_and(|number| number.to_string() == port);
    if !is_port || !["127.0.0.1", "localhost", "[::1]"].contains(&host) {
        let message = "the shim's address must be ws:// with the host 127.0.0.1, localhost or [::1] and a port, such as \
                       ws://127.0.0.1:6735";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(authority.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_not_this_machine_is_refused() {
        for url in [
            "ws://evil.example:6735",
            "http://127.0.0.1:6735",
            "ws://127.0.0.1.evil.example:1",
            "ws://evil@127.0.0.1:1",
            "ws://127.0.0.1:x",
            "ws://127.0.0.1:1/path",
            "",
        ] {
            assert_eq!(loopback_authority(url).unwrap_err().kind(), ErrorKind::InvalidInput, "{url}");
        }
        assert_eq!(loopback_authority("ws://127.0.0.1:6735/").unwrap(), "127.0.0.1:6735");
        assert_eq!(loopback_authority("ws://[::1]:6735").unwrap(), "[::1]:6735");
        assert_eq!(loopback_authority("ws://localhost").unwrap(), "localhost");
    }
}
