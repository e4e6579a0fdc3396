//! Where a request really came from, when it came through a proxy.

use std::net::IpAddr;

/// The first address, from our side, that is not one of our proxies. What stands further left in `X-Forwarded-For` was
/// written by somebody whom we do not know.
pub(crate) fn origin<'a>(
    peer: IpAddr,
    forwarded_for: impl DoubleEndedIterator<Item = &'a str>,
    proxies: &[IpAddr],
) -> IpAddr {
    let mut nearest = peer.to_canonical();
    let mut hops = forwarded_for.rev().flat_map(|header| header.rsplit(','));
    while proxies.contains(&nearest) {
        let Some(hop) = hops.next() else { break };
        // A proxy that writes something else says nothing that could be believed.
        let Ok(address) = hop.trim().parse::<IpAddr>() else { break };
        nearest = address.to_canonical();
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(peer: &str, headers: &[&str], proxies: &[&str]) -> String {
        let ip = |text: &str| text.parse().expect("an address");
        let proxies: Vec<IpAddr> = proxies.iter().map(|text| ip(text)).collect();
        origin(ip(peer), headers.iter().copied(), &proxies).to_string()
    }

    #[test]
    fn only_proxies_are_believed() {
        assert_eq!(from("192.0.2.9", &["198.51.100.1"], &[]), "192.0.2.9");
        assert_eq!(from("192.0.2.9", &["198.51.100.1"], &["127.0.0.1"]), "192.0.2.9");
        assert_eq!(from("127.0.0.1", &["198.51.100.1"], &["127.0.0.1"]), "198.51.100.1");
        // What the caller wrote themselves stands on the left.
        assert_eq!(from("127.0.0.1", &["10.9.9.9, 198.51.100.1"], &["127.0.0.1"]), "198.51.100.1");
        assert_eq!(from("127.0.0.1", &["10.9.9.9", "198.51.100.1"], &["127.0.0.1"]), "198.51.100.1");
        let chain = ["127.0.0.1", "192.0.2.1"];
        assert_eq!(from("127.0.0.1", &["198.51.100.1, 192.0.2.1"], &chain), "198.51.100.1");
        assert_eq!(from("::ffff:127.0.0.1", &["198.51.100.1"], &["127.0.0.1"]), "198.51.100.1");
        for nonsense in ["", "unknown", "198.51.100.1:80, x"] {
            assert_eq!(from("127.0.0.1", &[nonsense], &["127.0.0.1"]), "127.0.0.1", "{nonsense}");
        }
    }
}
