//! The network interface that has an address.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

pub(crate) fn of_address(address: &str) -> Option<String> {
    let wanted: IpAddr = address.parse().ok()?;
    let has = |found: &SockaddrStorage| match wanted {
        IpAddr::V4(wanted) => found.as_sockaddr_in().is_some_and(|found| found.ip() == wanted),
        IpAddr::V6(wanted) => found.as_sockaddr_in6().is_some_and(|found| found.ip() == wanted),
    };
    getifaddrs()
        .ok()?
        .find(|interface| interface.address.as_ref().is_some_and(has))
        .map(|interface| interface.interface_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_loopback() {
        assert!(of_address("127.0.0.1").unwrap().starts_with("lo"));
        assert_eq!(of_address("192.0.2.1"), None);
        assert_eq!(of_address("node-b"), None);
    }
}
