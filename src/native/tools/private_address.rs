use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Whether an address is not one of the public internet: this machine, its networks, and what stands for them in other
/// notations.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

/// Whether a URL names a private address itself; a name is looked at when it is resolved.
pub(super) fn names_private(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host.parse().is_ok_and(is_private)
}

/// <https://www.iana.org/assignments/iana-ipv4-special-registry>
fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || matches!(
            (first, second, third),
            (0 | 240..=255, ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _)
        )
}

/// <https://www.iana.org/assignments/iana-ipv6-special-registry>
fn is_private_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let [a, b, c, d, e, f, g, h] = segments;
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match [a, b, c, d, e, f] {
        // Loopback, unspecified, and IPv4 in its two old notations.
        [0, 0, 0, 0, 0, 0 | 0xffff] => (g, h) == (0, 0) || (g, h) == (0, 1) || is_private_v4(embedded(g, h)),
        // IPv4 behind a translator, or in 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0] => is_private_v4(embedded(g, h)),
        [0x64, 0xff9b, ..] | [0x100, 0, 0, 0, ..] => true,
        [0x2002, high, low, ..] => is_private_v4(embedded(high, low)),
        // Teredo, benchmarking, ORCHID and the like; documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => true,
        // Only 2000::/3 is given out.
        _ => !(0x2000..=0x3fff).contains(&a),
    }
}

/// Resolves names to public addresses only. The connection goes to what was looked at, so that a name that changes its
/// address in between wins nothing.
pub(super) struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> = found.iter().copied().filter(|found| !is_private(found.ip())).collect();
            if public.is_empty() && !found.is_empty() {
                return Err(io::Error::other("it is an address of a private network, which is not allowed").into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_its_networks_are_private() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "192.0.0.8",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "fec0::1",
            "100::1",
        ] {
            assert!(is_private(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "2002:101:101::",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(!is_private(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn an_address_is_known_in_every_notation() {
        for url in ["http://127.1/", "http://0x7f000001/", "http://2130706433/", "http://[::1]/", "http://0177.0.0.1/"]
        {
            assert!(names_private(&Url::parse(url).unwrap()), "{url}");
        }
        assert!(!names_private(&Url::parse("http://example.com/").unwrap()));
    }
}
