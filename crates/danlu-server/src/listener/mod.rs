//! Where requests come in: the address, TLS, and whom to believe about where a request came from.
//!
//! Secrets travel in requests, so an address that other machines can reach needs TLS: our own, or that of a proxy which
//! stands before us.

pub(crate) mod accept;
pub(crate) mod certificate;
pub(crate) mod peer;
pub(crate) mod places;
mod proxy;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use proxy::origin;

#[derive(Debug, Clone)]
pub struct ListenConfig {
    /// Port 0 lets the system choose.
    pub listen: SocketAddr,
    pub tls: Tls,
    /// Proxies that are believed when they say where a request came from; `None`: there is no proxy.
    pub proxies: Option<Vec<IpAddr>>,
    /// The address by which people reach it, for links; by default the one it listens on.
    pub public_address: Option<String>,
    /// How long a request may take to arrive: its head, and a body that is read whole.
    pub patience: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    Off,
    /// With a certificate that the server makes for itself, once.
    SelfSigned,
    Files {
        certificate: PathBuf,
        key: PathBuf,
    },
}

impl ListenConfig {
    /// Whether browsers reach it through TLS, so that cookies may insist on it.
    pub(crate) fn is_private(&self) -> bool {
        self.tls != Tls::Off || self.proxies.is_some()
    }

    /// Where programs on this machine find it.
    pub(crate) fn address(&self, bound: SocketAddr) -> String {
        let scheme = if self.tls == Tls::Off { "http" } else { "https" };
        let here = match bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        format!("{scheme}://{}", SocketAddr::new(here, bound.port()))
    }

    pub(crate) fn public_address<'a>(&'a self, local: &'a str) -> &'a str {
        self.public_address.as_deref().map_or(local, |address| address.trim_end_matches('/'))
    }

    /// What a proxy on this machine does not keep from jobs beside it, which have its address.
    pub(crate) fn warning(&self, jobs_have_users: bool) -> Option<String> {
        let is_here = |proxy: &IpAddr| proxy.to_canonical().is_loopback();
        let believes_jobs = !jobs_have_users && self.proxies.iter().flatten().any(is_here);
        believes_jobs.then(|| {
            "`X-Forwarded-For` is believed from this machine, and jobs of this machine run as this server's user: they can \
             pretend to come from anywhere; `--unix-users` tells them from the proxy"
                .to_owned()
        })
    }

    /// What is wrong with it, if anything.
    pub fn objection(&self) -> Option<String> {
        let is_open = !self.listen.ip().is_loopback() && !self.is_private();
        is_open
            .then(|| format!("will not listen on {} without TLS: other machines can reach it", self.listen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_entrances_are_open_to_others() {
        let listen_config = |listen: &str, tls: Tls, proxies: Option<Vec<IpAddr>>| {
            let patience = Duration::from_secs(30);
            let listen = listen.parse().expect("an address");
            ListenConfig { listen, tls, proxies, public_address: None, patience }
        };
        let refused = |listen_config: ListenConfig| listen_config.objection().is_some();
        assert!(refused(listen_config("0.0.0.0:80", Tls::Off, None)));
        assert!(!refused(listen_config("127.0.0.1:80", Tls::Off, None)));
        assert!(!refused(listen_config("[::]:443", Tls::SelfSigned, None)));
        assert!(!refused(listen_config("10.0.0.1:80", Tls::Off, Some(vec![]))));
        let behind = |proxies: Option<Vec<IpAddr>>| listen_config("127.0.0.1:80", Tls::Off, proxies);
        let here = Some(vec!["::1".parse().expect("an address")]);
        assert!(behind(here.clone()).warning(false).is_some_and(|warning| warning.contains("--unix-users")));
        assert_eq!(behind(here).warning(true), None);
        assert_eq!(behind(Some(vec!["10.0.0.5".parse().expect("an address")])).warning(false), None);
        assert_eq!(behind(None).warning(false), None);
    }
}
