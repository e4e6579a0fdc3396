//! Whose program it is that connects from this machine: the kernel knows the user of each end of a connection.
//!
//! Everybody on a machine shares its address, so an address alone neither tells a proxy from a job nor one guesser from the
//! people beside them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::unistd::geteuid;

/// A connection, as the other side sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) remote: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// A connection that comes from a program of a job; nothing that it says of others is believed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromJob;

/// Of a system's own users, whose programs proxies are.
const FIRST_PERSON: u32 = 1000;

impl Peer {
    /// The user whose program connected, where it did so on this machine and still holds its end.
    pub(crate) fn user(self) -> Option<u32> {
        if !self.remote.ip().to_canonical().is_loopback() {
            return None;
        }
        // A socket that can speak both may be listed as either.
        ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
            .iter()
            .find_map(|table| user_in(&std::fs::read_to_string(table).ok()?, self))
    }
}

/// Whether jobs may have users like this one, where each account's jobs have one of their own. A connection of which the
/// kernel does not say whose it is could be a job's.
pub(crate) fn may_be_a_jobs(user: Option<u32>) -> bool {
    user.is_none_or(|user| user >= FIRST_PERSON && user != geteuid().as_raw())
}

/// The user of the far end in a table like `/proc/net/tcp`.
///
/// Only of one that is established and held: what was closed belongs to nobody, and nobody is user 0 there.
fn user_in(table: &str, peer: Peer) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (near, far) = (address(fields.next()?)?, address(fields.next()?)?);
        if near != canonical(peer.remote) || far != canonical(peer.local) {
            return None;
        }
        let state = fields.next()?;
        let user = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?;
        (state == "01" && inode != "0").then_some(user)
    })
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `0100007F:1F90`: words of the address in the machine's order, each as a number in base 16.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at * 8)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn connection(address: &str) -> Option<(TcpStream, TcpStream, Peer)> {
        let listener = TcpListener::bind(address).ok()?;
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, remote) = listener.accept().unwrap();
        let peer = Peer { remote, local: server.local_addr().unwrap() };
        Some((client, server, peer))
    }

    #[test]
    fn the_kernel_says_whose_a_connection_is() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may be without IPv6.
            let Some((client, _server, peer)) = connection(address) else { continue };
            assert_eq!(peer.user(), Some(geteuid().as_raw()), "{address}");
            drop(client);
            assert_eq!(peer.user(), None, "what is closed is nobody's, and not root's");
        }
        let elsewhere = "192.0.2.1:5".parse().unwrap();
        assert_eq!(Peer { remote: elsewhere, local: elsewhere }.user(), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn tables_are_read_to_the_letter() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:2232 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1\n\
            \x20  1: 0100007F:9C40 0100007F:2232 01 00000000:00000000 00:00000000 00000000 340000        0 101 1\n\
            \x20  2: 0100007F:9C41 0100007F:2232 06 00000000:00000000 03:00000000 00000000     0        0 0 3\n\
            \x20  3: 0100007F:9C42 0100007F:2232 04 00000000:00000000 03:00000000 00000000     0        0 105 3\n\
            \x20  4: 0000000000000000FFFF00000100007F:9C43 0000000000000000FFFF00000100007F:2232 01 00000000:00000000 00:00000000 00000000    33        0 104 1\n";
        let user = |port: u16| {
            let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
            user_in(table, Peer { remote: address(port), local: address(0x2232) })
        };
        assert_eq!(user(40_000), Some(340_000));
        assert_eq!(user(40_001), None, "waits to be forgotten");
        assert_eq!(user(40_002), None, "was closed on that side");
        assert_eq!(user(40_003), Some(33));
        assert_eq!(user(40_004), None);
        assert_eq!(
            user_in(
                "garbage\nx y z\n",
                Peer { remote: ([127, 0, 0, 1], 1).into(), local: ([127, 0, 0, 1], 2).into() }
            ),
            None
        );
    }

    #[test]
    fn users_of_the_system_are_no_jobs() {
        assert!(!may_be_a_jobs(Some(33)));
        assert!(!may_be_a_jobs(Some(geteuid().as_raw())));
        assert!(may_be_a_jobs(Some(1_900_000_000)));
        assert!(may_be_a_jobs(None));
    }
}
