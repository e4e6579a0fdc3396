//! What is wrong with a table, and where: what HCCL would answer minutes later with a number, or with silence.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use danlu_types::Family;

use super::{RankTable, RankedDevice, Server, TableContent, Version, validate_layered};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableIssue {
    pub weight: Weight,
    /// The way to it in the file, such as `server_list[1].device[3].device_ip`.
    pub place: String,
    pub problem: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// HCCL refuses it, or hangs.
    Wrong,
    /// Works, but hardly as meant.
    Doubtful,
}

impl fmt::Display for TableIssue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Wrong => "wrong",
            Weight::Doubtful => "doubtful",
        };
        write!(f, "{weight}: `{}` {}", self.place, self.problem)
    }
}

const LONGEST_SERVER_ID: usize = 64;

/// Empty for a table with which the hardware can work. Without a family, only what holds for all of them is asked for.
pub fn validate(table: &RankTable, family: Option<Family>) -> Vec<TableIssue> {
    let mut findings = TableIssues { table, found: Vec::new() };
    if let Some(family) = family {
        findings.check_version(family);
    }
    match &table.content {
        TableContent::Ranks(ranks) => validate_layered::check(ranks, &mut findings.found),
        TableContent::Servers(servers) => {
            findings.check_servers(servers);
            findings.check_ranks(servers);
            findings.check_devices(servers, family);
            findings.check_addresses(servers, family);
            if table.version == Version::SuperPodList {
                findings.check_super_pods(servers);
            }
            findings.check_counts(servers, family);
        }
    }
    findings.found
}

pub(super) struct TableIssues<'a> {
    pub(super) table: &'a RankTable,
    found: Vec<TableIssue>,
}

impl TableIssues<'_> {
    pub(super) fn wrong(&mut self, place: String, problem: impl Into<String>) {
        self.found.push(TableIssue { weight: Weight::Wrong, place, problem: problem.into() });
    }

    pub(super) fn doubtful(&mut self, place: String, problem: impl Into<String>) {
        self.found.push(TableIssue { weight: Weight::Doubtful, place, problem: problem.into() });
    }

    pub(super) fn at_list(&self) -> &'static str {
        match self.table.version {
            Version::GroupList | Version::BoardId => "group_list[0].instance_list",
            Version::ServerList | Version::SuperPodList | Version::RankList => "server_list",
        }
    }

    /// Where a server stands in the file. In a `board_id` table it has no place of its own: that of its first device.
    pub(super) fn at_server(&self, index: usize) -> String {
        match self.table.version {
            Version::BoardId => format!("{}[{}]", self.at_list(), self.instance(index, 0)),
            _ => format!("{}[{index}]", self.at_list()),
        }
    }

    fn at_device(&self, server: usize, device: usize, field: &str) -> String {
        let list = self.at_list();
        match self.table.version {
            Version::BoardId if field == "rank_id" => {
                format!("{list}[{}].{field}", self.instance(server, device))
            }
            Version::BoardId => format!("{list}[{}].devices[0].{field}", self.instance(server, device)),
            Version::GroupList => format!("{list}[{server}].devices[{device}].{field}"),
            _ => format!("{list}[{server}].device[{device}].{field}"),
        }
    }

    fn instance(&self, server: usize, device: usize) -> usize {
        self.table.servers().iter().take(server).map(|server| server.devices.len()).sum::<usize>() + device
    }

    fn check_servers(&mut self, servers: &[Server]) {
        if servers.is_empty() {
            self.wrong(self.at_list().to_owned(), "is empty: at least one server must take part");
        }
        let mut first_at = BTreeMap::new();
        let mut pods = BTreeSet::new();
        for (index, server) in servers.iter().enumerate() {
            let place = format!("{}.server_id", self.at_server(index));
            if server.id.is_empty() {
                self.wrong(place.clone(), "is empty");
            }
            if server.id.chars().count() > LONGEST_SERVER_ID {
                self.wrong(place.clone(), format!("is longer than {LONGEST_SERVER_ID} characters"));
            }
            if server.devices.is_empty() {
                self.wrong(self.at_server(index), "has no devices");
            }
            let earlier = *first_at.entry(server.id.as_str()).or_insert(index);
            // Several pods may share a machine.
            if earlier != index && self.table.version != Version::GroupList {
                let other = self.at_server(earlier);
                self.wrong(place, format!("is `{}`, as is that of `{other}`", server.id));
            }
            if let Some(pod) = server.pod.as_deref().filter(|pod| !pods.insert(*pod)) {
                self.wrong(format!("{}.pod_name", self.at_server(index)), format!("`{pod}` is there twice"));
            }
        }
    }

    /// Ranks run from 0 without gaps, and those of one server stand together.
    fn check_ranks(&mut self, servers: &[Server]) {
        if self.table.version == Version::GroupList {
            return;
        }
        let mut seen: BTreeMap<u32, String> = BTreeMap::new();
        let mut previous = None;
        for (at, server) in servers.iter().enumerate() {
            for (index, device) in server.devices.iter().enumerate() {
                let place = self.at_device(at, index, "rank_id");
                if let Some(earlier) = seen.get(&device.rank) {
                    self.wrong(place, format!("is {}, as is `{earlier}`", device.rank));
                } else {
                    seen.insert(device.rank, place);
                }
            }
            let ranks: BTreeSet<u32> = server.devices.iter().map(|device| device.rank).collect();
            let (Some(&first), Some(&last)) = (ranks.first(), ranks.last()) else { continue };
            if (last - first) as usize >= server.devices.len() {
                let problem = format!(
                    "has ranks from {first} to {last} with others between them; the ranks of a server must be a block"
                );
                self.wrong(self.at_server(at), problem);
            }
            if previous.is_some_and(|previous| first < previous) {
                self.doubtful(
                    self.at_server(at),
                    "comes after a server with higher ranks; list servers by rank",
                );
            }
            previous = Some(first);
        }
        let ranks = self.table.ranks();
        let missing: Vec<u32> = (0..).take(ranks).filter(|rank| !seen.contains_key(rank)).collect();
        if let Some(first) = missing.first() {
            let more =
                if missing.len() > 1 { format!(" and {} more", missing.len() - 1) } else { String::new() };
            let problem =
                format!("lacks rank {first}{more}; ranks run from 0 to {}", ranks.saturating_sub(1));
            self.wrong(self.at_list().to_owned(), problem);
        }
    }

    fn check_devices(&mut self, servers: &[Server], family: Option<Family>) {
        let shares = !matches!(family, Some(Family::First));
        let mut seen: BTreeMap<(&str, u32), Option<&serde_json::Value>> = BTreeMap::new();
        for (at, server) in servers.iter().enumerate() {
            let mut host_ports = BTreeSet::new();
            for (index, device) in server.devices.iter().enumerate() {
                let port = device.extra.get("device_port");
                if let Some(earlier) = seen.insert((&server.id, device.device), port)
                    && !(shares && port.is_some() && earlier != port)
                {
                    let problem = format!("{} is there twice on server `{}`", device.device, server.id);
                    self.wrong(self.at_device(at, index, "device_id"), problem);
                }
                for name in ["device_port", "host_port", "backup_device_port"] {
                    let port = device.extra.get(name).and_then(|port| port.as_str());
                    if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
                        self.wrong(
                            self.at_device(at, index, name),
                            "is not a port; write \"1\" to \"65535\"",
                        );
                    }
                }
                if let Some(port) = device.extra.get("host_port").and_then(|port| port.as_str())
                    && !host_ports.insert(port)
                {
                    let problem = format!("{port} is there twice on server `{}`", server.id);
                    self.wrong(self.at_device(at, index, "host_port"), problem);
                }
            }
        }
    }

    fn check_addresses(&mut self, servers: &[Server], family: Option<Family>) {
        let need = self.address_need(servers, family);
        let mut seen: BTreeMap<&str, (String, &Server, u32)> = BTreeMap::new();
        for (at, server) in servers.iter().enumerate() {
            for (index, device) in server.devices.iter().enumerate() {
                let place = self.at_device(at, index, "device_ip");
                let address = device.address.as_deref().filter(|address| !address.is_empty());
                match (address, need) {
                    (Some(address), _) => {
                        self.check_address(&place, address);
                        if let Some((earlier, other, same_device)) = seen.get(address) {
                            // Several processes of one device have its one address.
                            if !(other.id == server.id && *same_device == device.device) {
                                self.wrong(place, format!("is {address}, as is `{earlier}`"));
                            }
                        } else {
                            seen.insert(address, (place, server, device.device));
                        }
                    }
                    (None, Some(why)) => self.wrong(place, missing_address(server, device, why)),
                    (None, None) => {}
                }
            }
        }
    }

    fn check_address(&mut self, place: &str, address: &str) {
        if address.parse::<IpAddr>().is_err() {
            self.wrong(place.to_owned(), format!("is `{address}`, which is not an address"));
        }
    }

    fn check_super_pods(&mut self, servers: &[Server]) {
        if servers.iter().all(|server| server.super_pod.is_none()) {
            let problem = "is missing or empty: HCCL then takes each server as one on its own, as in `1.0`";
            self.doubtful("super_pod_list".to_owned(), problem);
            return;
        }
        let mut ended: BTreeSet<&str> = BTreeSet::new();
        let mut super_devices: BTreeMap<(&str, u64), String> = BTreeMap::new();
        let mut current = None;
        for (at, server) in servers.iter().enumerate() {
            let Some(pod) = server.super_pod.as_deref() else {
                self.wrong(self.at_server(at), "is in no super-pod, while others are");
                continue;
            };
            if current != Some(pod) {
                ended.extend(current.replace(pod));
                if ended.contains(pod) {
                    let problem = format!(
                        "is of super-pod `{pod}`, whose other servers stand apart; list them together"
                    );
                    self.wrong(self.at_server(at), problem);
                }
            }
            for (index, device) in server.devices.iter().enumerate() {
                let place = self.at_device(at, index, "super_device_id");
                let Some(id) = device.super_device else {
                    self.wrong(place, "is missing: take `SDID` from `npu-smi info -t spod-info`");
                    continue;
                };
                if let Some(earlier) = super_devices.get(&(pod, id)) {
                    self.wrong(place, format!("is {id}, as is `{earlier}` of the same super-pod"));
                } else {
                    super_devices.insert((pod, id), place);
                }
            }
        }
    }
}

fn missing_address(server: &Server, device: &RankedDevice, why: &str) -> String {
    format!(
        "is missing: {why}; on `{}` ask `hccn_tool -i {} -ip -g` or look for `address_{}` in /etc/hccn.conf",
        server.id, device.device, device.device
    )
}
