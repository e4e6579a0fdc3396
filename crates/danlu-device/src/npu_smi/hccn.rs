//! The addresses of the devices' own network ports: `/etc/hccn.conf` and `hccn_tool`.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// `address_N=…` of `/etc/hccn.conf`, by physical device number.
pub fn configured_addresses(text: &str) -> BTreeMap<u32, IpAddr> {
    text.lines()
        .filter_map(|line| {
            let (name, address) = line.trim().strip_prefix("address_")?.split_once('=')?;
            Some((name.trim().parse().ok()?, address.trim().parse().ok()?))
        })
        .collect()
}

/// The address of `hccn_tool -i N -ip -g`; nothing where the port has none.
pub fn tool_address(text: &str) -> Option<IpAddr> {
    // Not split at the colon alone: addresses of version 6 have them too.
    text.lines().find_map(|line| line.trim().strip_prefix("ipaddr:")?.trim().parse().ok())
}
