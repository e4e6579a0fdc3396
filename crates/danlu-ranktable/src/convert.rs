//! From one version to another, where nothing is missing that the other needs.
//!
//! What the other version has no field for is left out: an address of the host, a super-pod, fields that only one
//! framework reads. What it needs and nobody told us is never made up.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use thiserror::Error;

use super::{Extra, RankTable, RankedDevice, Server, TableContent, Version, numbered, render};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MissingInformation {
    #[error(
        "a rank table of version {to} needs `{field}` of device {device} of server `{server}`{more}; {remedy}",
        more = and_more(*others)
    )]
    OfDevice {
        to: Version,
        field: &'static str,
        server: String,
        device: u32,
        /// How many more devices lack it.
        others: usize,
        remedy: &'static str,
    },
    #[error(
        "a rank table of version 1.2 needs the super-pod of server `{server}`; take `Super Pod ID` from `npu-smi info -t spod-info`"
    )]
    SuperPod { server: String },
    #[error(
        "ranks of server `{server}` stand between those of others, which version {to} cannot say; list each server's devices together"
    )]
    Interleaved { to: Version, server: String },
    #[error(
        "a rank table of version 2.0 needs the addresses of each rank in every layer of the network, which version {from} does not have; take them from the machine's own `2.0` table"
    )]
    Layers { from: Version },
    #[error("a rank table of version 2.0 does not say which server a rank is on, which version {to} needs")]
    Servers { to: Version },
}

fn and_more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" and of {count} more") }
}

const ASK_HCCN: &str = "take it from `address_N` in /etc/hccn.conf or from `hccn_tool -i N -ip -g`";
const ASK_SUPER_POD: &str = "take `SDID` from `npu-smi info -t spod-info`";

pub fn convert(table: RankTable, to: Version) -> Result<RankTable, MissingInformation> {
    let from = table.version;
    if from == to {
        return Ok(table);
    }
    let servers = match table.content {
        TableContent::Servers(_) if to == Version::RankList => {
            return Err(MissingInformation::Layers { from });
        }
        TableContent::Servers(servers) => servers,
        TableContent::Ranks(_) => return Err(MissingInformation::Servers { to }),
    };
    let between_lists = matches!(from, Version::ServerList | Version::SuperPodList)
        && matches!(to, Version::ServerList | Version::SuperPodList);
    let extra = match to {
        Version::BoardId => board(&servers),
        // 1.0 and 1.2 share all their fields; the others share none that we do not know.
        _ if between_lists => table.extra,
        _ => Extra::new(),
    };
    let servers = if from == Version::GroupList { by_server(servers, to)? } else { servers };
    let servers = fit(servers, to)?;
    let servers = if between_lists { servers } else { servers.into_iter().map(without_extra).collect() };
    Ok(RankTable { version: to, content: TableContent::Servers(servers), extra })
}

/// What a conversion left out, because the other version has no field for it, in words; and for which hardware alone the other
/// version is.
pub fn left_out(before: &RankTable, after: &RankTable) -> Vec<String> {
    let names = |table: &RankTable| -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        gather_names(&serde_json::from_str(&render(table)).unwrap_or_default(), &mut names);
        names
    };
    let (old, new) = (names(before), names(after));
    let lost: Vec<String> = old
        .iter()
        .filter(|name| !new.contains(*name) && !STRUCTURE.contains(&name.as_str()))
        .map(|name| format!("`{name}`"))
        .collect();
    let mut sentences = Vec::new();
    if !lost.is_empty() {
        sentences.push(format!(
            "left out, because version {} has no field for it: {}",
            after.version,
            lost.join(", ")
        ));
    }
    if before.version == Version::SuperPodList
        && matches!(after.version, Version::GroupList | Version::BoardId)
    {
        sentences.push(format!("version {} is for the 910A alone; an A3 cannot use it", after.version));
    }
    sentences
}

/// Names of how a version is built, which follow from the rest of it.
const STRUCTURE: [&str; 17] = [
    "rank_id",
    "pod_name",
    "version",
    "status",
    "server_count",
    "server_list",
    "server_id",
    "device",
    "devices",
    "group_count",
    "group_list",
    "group_name",
    "instance_list",
    "instance_count",
    "device_count",
    "device_num",
    "server_num",
];

fn gather_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                names.insert(name.clone());
                gather_names(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather_names(item, names)),
        _ => {}
    }
}

/// Servers as this version says them, from servers of which everything may be known.
pub(super) fn fit(servers: Vec<Server>, to: Version) -> Result<Vec<Server>, MissingInformation> {
    match to {
        Version::ServerList => {
            Ok(servers.into_iter().map(plain).map(|server| Server { pod: None, ..server }).collect())
        }
        Version::SuperPodList => with_super_pods(servers),
        Version::GroupList => pods(servers),
        Version::BoardId => boards(servers),
        Version::RankList => Err(MissingInformation::Layers { from: Version::ServerList }),
    }
}

/// Several pods of one machine are one server, if they stand together.
fn by_server(pods: Vec<Server>, to: Version) -> Result<Vec<Server>, MissingInformation> {
    let mut servers: Vec<Server> = Vec::new();
    for pod in pods {
        if let Some(last) = servers.last_mut().filter(|last| last.id == pod.id) {
            last.devices.extend(pod.devices);
        } else if servers.iter().any(|server| server.id == pod.id) {
            return Err(MissingInformation::Interleaved { to, server: pod.id });
        } else {
            servers.push(Server { pod: None, ..pod });
        }
    }
    Ok(servers)
}

/// Without what only a 1.2 says.
fn plain(mut server: Server) -> Server {
    server.super_pod = None;
    for device in &mut server.devices {
        device.super_device = None;
    }
    server
}

fn with_super_pods(servers: Vec<Server>) -> Result<Vec<Server>, MissingInformation> {
    let to = Version::SuperPodList;
    all_have(&servers, to, "super_device_id", ASK_SUPER_POD, |device| device.super_device.is_some())?;
    if let Some(server) = servers.iter().find(|server| server.super_pod.is_none()) {
        return Err(MissingInformation::SuperPod { server: server.id.clone() });
    }
    Ok(servers.into_iter().map(|server| Server { pod: None, ..server }).collect())
}

/// Ranks are the order here, so that servers and devices are brought into theirs.
fn pods(mut servers: Vec<Server>) -> Result<Vec<Server>, MissingInformation> {
    let to = Version::GroupList;
    all_have(&servers, to, "device_ip", ASK_HCCN, |device| device.address.is_some())?;
    for server in &mut servers {
        server.devices.sort_by_key(|device| device.rank);
    }
    servers.sort_by_key(|server| server.devices.first().map(|device| device.rank));
    let ends = |server: &Server| Some((server.devices.first()?.rank, server.devices.last()?.rank));
    let overlaps =
        |pair: &[Server]| ends(&pair[0]).zip(ends(&pair[1])).is_some_and(|(left, right)| left.1 >= right.0);
    if let Some(pair) = servers.windows(2).find(|pair| overlaps(pair)) {
        return Err(MissingInformation::Interleaved { to, server: pair[0].id.clone() });
    }
    let named = servers.into_iter().map(plain).zip(0..).map(|(server, index)| Server {
        host: None,
        pod: server.pod.or_else(|| Some(format!("worker-{index}"))),
        ..server
    });
    Ok(numbered(named.collect()))
}

fn boards(servers: Vec<Server>) -> Result<Vec<Server>, MissingInformation> {
    let to = Version::BoardId;
    all_have(&servers, to, "device_ip", ASK_HCCN, |device| device.address.is_some())?;
    Ok(servers.into_iter().map(plain).map(|server| Server { host: None, pod: None, ..server }).collect())
}

/// What MindSpore up to 0.5 reads about the machine. The board is that of an Arm server, which most of these are;
/// [`RankTable::on_architecture`] says otherwise.
pub(super) fn board(servers: &[Server]) -> Extra {
    let cards = servers.iter().map(|server| server.devices.len()).max().unwrap_or(0);
    let ports: Vec<Value> = (0..cards).map(|card| Value::from(format!("eth{card}"))).collect();
    [
        ("board_id", json!("0x0020")),
        ("chip_info", json!("910")),
        ("deploy_mode", json!("lab")),
        ("para_plane_nic_location", json!("device")),
        ("para_plane_nic_name", Value::Array(ports)),
        ("para_plane_nic_num", json!(cards.to_string())),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn without_extra(mut server: Server) -> Server {
    server.extra.clear();
    for device in &mut server.devices {
        device.extra.clear();
    }
    server
}

fn all_have(
    servers: &[Server],
    to: Version,
    field: &'static str,
    remedy: &'static str,
    has: impl Fn(&RankedDevice) -> bool,
) -> Result<(), MissingInformation> {
    let devices = servers.iter().flat_map(|server| server.devices.iter().map(move |device| (server, device)));
    let mut lacking = devices.filter(|(_, device)| !has(device));
    let Some((server, device)) = lacking.next() else { return Ok(()) };
    let others = lacking.count();
    let (server, device) = (server.id.clone(), device.device);
    Err(MissingInformation::OfDevice { to, field, server, device, others, remedy })
}
