//! A port on which rank 0 will listen, and nobody else meanwhile.
//!
//! Between our choice and the rank's own bind lies everything the program does first. A socket that we held until then
//! would have to be closed before the rank binds, and in that moment the kernel could give the port to anyone who asks for
//! "any". So the port is taken from below the range from which the kernel gives: nobody gets one there who does not ask for
//! that very number. Against other launchers of this machine, which do, a name is held for as long as the launcher lives: an
//! abstract socket, which belongs to the network namespace like the port itself and is gone with the process. What remains
//! is a foreign program that asks for this very number in the seconds until rank 0 binds; nothing can be done about it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Below lie the ports of well-known services.
const LOWEST: u16 = 20_000;
const RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Enough for every launcher of a machine to find one that is free.
const TRIES: u16 = 2048;

#[derive(Debug)]
pub(crate) struct Port {
    _name: Option<UnixListener>,
    pub(crate) number: u16,
}

impl Port {
    /// `seed`: where to begin to look, so that launchers that start together do not all begin at one end.
    pub(crate) fn reserve(address: &str, seed: u64) -> io::Result<Self> {
        let any = match address.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        let highest = lowest_given().unwrap_or(32_768);
        let span = u64::from(highest.saturating_sub(LOWEST));
        for step in 0..u64::from(TRIES).min(span) {
            let Ok(number) = u16::try_from(u64::from(LOWEST) + (seed.wrapping_add(step)) % span) else {
                break;
            };
            if let Some(port) = Port::take(any, number) {
                return Ok(port);
            }
        }
        // The machine gives from everywhere: the kernel's choice, which it is slow to give again.
        let number = TcpListener::bind((any, 0))?.local_addr()?.port();
        Ok(Port { _name: None, number })
    }

    fn take(any: IpAddr, number: u16) -> Option<Self> {
        let name = SocketAddr::from_abstract_name(format!("danlu-port-{number}")).ok()?;
        let name = UnixListener::bind_addr(&name).ok()?;
        // Closed at once: it never accepted anything, so nothing of it lingers.
        TcpListener::bind((any, number)).ok()?;
        Some(Port { _name: Some(name), number })
    }
}

fn lowest_given() -> Option<u16> {
    fs::read_to_string(RANGE_FILE).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_given_a_port_that_another_launcher_holds() {
        let first = Port::reserve("127.0.0.1", 7).unwrap();
        let second = Port::reserve("127.0.0.1", 7).unwrap();
        assert_ne!(first.number, second.number);
        // Free for the rank that it is meant for, all the same.
        let number = first.number;
        TcpListener::bind(("127.0.0.1", number)).unwrap();
        drop(first);
        assert_eq!(Port::reserve("127.0.0.1", 7).unwrap().number, number);
    }

    #[test]
    fn the_kernel_gives_it_to_nobody() {
        let port = Port::reserve("127.0.0.1", 40).unwrap();
        assert!(port.number < lowest_given().unwrap() && port.number >= LOWEST, "{port:?}");
    }
}
