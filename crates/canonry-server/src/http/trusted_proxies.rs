//! The client's address behind a proxy. Only proxies that the operator named are trusted to forward it.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::HeaderMap;
use ipnet::IpNet;

/// The header to which each proxy appends the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// A network of proxies, such as `10.0.0.0/8`, or one proxy by its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedProxy(IpNet);

/// The text is neither an address nor a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an address such as 10.0.0.2 or a network such as 10.0.0.0/8")]
pub struct InvalidProxy;

impl FromStr for TrustedProxy {
    type Err = InvalidProxy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        text.parse::<IpNet>().or_else(|_| address()).map(Self).map_err(|_| InvalidProxy)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedProxies(pub(crate) Vec<TrustedProxy>);

impl TrustedProxies {
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|proxy| proxy.0.contains(&address))
    }

    /// The client behind a trusted proxy; `None` if the connected peer is the client itself.
    ///
    /// Each proxy appends the address of its client, so the last address that is not a trusted proxy is the one that
    /// a trusted proxy has seen. Any client may have written the addresses before it.
    pub(crate) fn forwarded_for(&self, peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        if !self.trusts(peer) {
            return None;
        }
        let told = headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
        let told: Vec<&str> = told.flat_map(|value| value.split(',')).map(str::trim).collect();
        told.into_iter().rev().map_while(address_of).find(|address| !self.trusts(*address))
    }
}

/// An address, with or without a port.
fn address_of(text: &str) -> Option<IpAddr> {
    let address = text.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    use super::{TrustedProxies, TrustedProxy};

    fn proxies(texts: &[&str]) -> TrustedProxies {
        TrustedProxies(texts.iter().map(|text| text.parse().expect("a network")).collect())
    }

    fn asks(proxies: &TrustedProxies, peer: &str, told: &[&str]) -> Option<String> {
        let value =
            |told: &&str| (HeaderName::from_static("x-forwarded-for"), HeaderValue::from_str(told).expect("text"));
        let mut headers = HeaderMap::new();
        for (name, value) in told.iter().map(value) {
            headers.append(name, value);
        }
        let peer: IpAddr = peer.parse().expect("an address");
        proxies.forwarded_for(peer, &headers).map(|address| address.to_string())
    }

    #[test]
    fn only_a_trusted_proxy_tells_who_asks() {
        let ours = proxies(&["10.0.0.0/8", "2001:db8::1"]);
        let asked = |peer: &str, told: &[&str]| asks(&ours, peer, told);
        assert_eq!(asked("192.0.2.9", &["198.51.100.1"]), None, "anybody can send the header");
        assert_eq!(asked("10.1.2.3", &["198.51.100.1"]).as_deref(), Some("198.51.100.1"));
        assert_eq!(asked("::ffff:10.1.2.3", &["198.51.100.1:4711"]).as_deref(), Some("198.51.100.1"));
        assert_eq!(asked("2001:db8::1", &["[2001:db8:1::5]:80"]).as_deref(), Some("2001:db8:1::5"));
        assert_eq!(asked("10.1.2.3", &[]), None, "the proxy asks for itself");
        assert_eq!(asks(&TrustedProxies::default(), "127.0.0.1", &["198.51.100.1"]), None);
    }

    #[test]
    fn what_a_stranger_puts_before_it_does_not_count() {
        let ours = proxies(&["10.0.0.0/8"]);
        let asked = |told: &[&str]| asks(&ours, "10.0.0.1", told);
        assert_eq!(asked(&["127.0.0.1, 198.51.100.1"]).as_deref(), Some("198.51.100.1"));
        assert_eq!(asked(&["127.0.0.1", "198.51.100.1, 10.0.0.7"]).as_deref(), Some("198.51.100.1"));
        assert_eq!(asked(&["198.51.100.1, unknown, 10.0.0.7"]), None, "what is behind it nobody has seen");
    }

    #[test]
    fn a_network_is_told_from_other_texts() {
        for good in ["10.0.0.0/8", "10.0.0.1", "::1", "2001:db8::/32"] {
            good.parse::<TrustedProxy>().unwrap_or_else(|error| panic!("{good}: {error}"));
        }
        for bad in ["", "10.0.0.0/33", "proxy.example", "*"] {
            assert!(bad.parse::<TrustedProxy>().is_err(), "{bad:?}");
        }
    }
}
