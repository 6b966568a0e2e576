//! Tells whether a host's name or address means this machine.

use std::net::IpAddr;

/// Whether the host of a URL always means this machine; an IPv6 address may stand in brackets.
pub fn is_loopback_host(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback_host;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.8.0.1", "::1", "[::1]"] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in ["", "localhost.example", "127.0.0.1.example", "10.0.0.1", "[::2]", "0.0.0.0"] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }
}
