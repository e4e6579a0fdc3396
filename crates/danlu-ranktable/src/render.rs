//! From the value to the text. Numbers are strings in every version but 2.0, as HCCL wants them.

use serde::Serialize;

use super::{Extra, LayeredRank, Level, RankAddress, RankTable, RankedDevice, Server, TableContent, Version};

/// The whole file, ending with a line break.
pub fn render(table: &RankTable) -> String {
    let servers = table.servers();
    let text = match (table.version, &table.content) {
        (_, TableContent::Ranks(ranks)) => pretty(&RankListFile {
            status: COMPLETED,
            version: table.version.as_str(),
            rank_count: ranks.len(),
            rank_list: ranks.iter().map(RankOut::from).collect(),
            extra: &table.extra,
        }),
        (Version::GroupList, _) => pretty(&GroupFile {
            status: COMPLETED,
            group_count: "1",
            group_list: [DeviceGroup {
                group_name: "hccl_world_group",
                instance_count: servers.len().to_string(),
                device_count: Some(table.ranks().to_string()),
                device_num: None,
                server_num: None,
                instance_list: servers.iter().map(pod).collect(),
            }],
            extra: &table.extra,
        }),
        (Version::BoardId, _) => pretty(&GroupFile {
            status: COMPLETED,
            group_count: "1",
            group_list: [DeviceGroup {
                group_name: "",
                instance_count: table.ranks().to_string(),
                device_count: None,
                device_num: Some(table.ranks().to_string()),
                server_num: Some(servers.len().to_string()),
                instance_list: servers.iter().flat_map(single_devices).collect(),
            }],
            extra: &table.extra,
        }),
        (Version::ServerList | Version::SuperPodList | Version::RankList, _) => pretty(&ServerFile {
            status: COMPLETED,
            version: table.version.as_str(),
            server_count: servers.len().to_string(),
            server_list: servers.iter().map(ServerOut::from).collect(),
            super_pod_list: (table.version == Version::SuperPodList).then(|| super_pods(servers)),
            extra: &table.extra,
        }),
    };
    text + "\n"
}

const COMPLETED: &str = "completed";

fn pretty(file: &impl Serialize) -> String {
    serde_json::to_string_pretty(file).expect("maps with text keys, texts and numbers are always JSON")
}

#[derive(Serialize)]
struct ServerFile<'a> {
    status: &'static str,
    version: &'static str,
    server_count: String,
    server_list: Vec<ServerOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    super_pod_list: Option<Vec<SuperPod<'a>>>,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
struct ServerOut<'a> {
    server_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_ip: Option<&'a str>,
    device: Vec<DeviceOut<'a>>,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
struct DeviceOut<'a> {
    device_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    super_device_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_ip: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_id: Option<String>,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
struct SuperPod<'a> {
    super_pod_id: &'a str,
    server_list: Vec<ServerName<'a>>,
}

#[derive(Serialize)]
struct ServerName<'a> {
    server_id: &'a str,
}

#[derive(Serialize)]
struct GroupFile<'a> {
    status: &'static str,
    group_count: &'static str,
    group_list: [DeviceGroup<'a>; 1],
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
struct DeviceGroup<'a> {
    group_name: &'static str,
    instance_count: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_count: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_num: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_num: Option<String>,
    instance_list: Vec<Instance<'a>>,
}

#[derive(Serialize)]
struct Instance<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_id: Option<String>,
    server_id: &'a str,
    devices: Vec<DeviceOut<'a>>,
    #[serde(flatten)]
    extra: Option<&'a Extra>,
}

#[derive(Serialize)]
struct RankListFile<'a> {
    status: &'static str,
    version: &'static str,
    rank_count: usize,
    rank_list: Vec<RankOut<'a>>,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
struct RankOut<'a> {
    rank_id: u64,
    local_id: u64,
    device_id: u64,
    level_list: Vec<LevelOut<'a>>,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
struct LevelOut<'a> {
    net_layer: u64,
    net_instance_id: &'a str,
    net_type: &'a str,
    rank_addr_list: Vec<AddressOut<'a>>,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
struct AddressOut<'a> {
    addr_type: &'a str,
    addr: &'a str,
    ports: &'a [String],
    #[serde(flatten)]
    extra: &'a Extra,
}

impl<'a> From<&'a Server> for ServerOut<'a> {
    fn from(server: &'a Server) -> Self {
        ServerOut {
            server_id: &server.id,
            host_ip: server.host.as_deref(),
            device: server.devices.iter().map(|device| device_out(device, true)).collect(),
            extra: &server.extra,
        }
    }
}

fn device_out(device: &RankedDevice, with_rank: bool) -> DeviceOut<'_> {
    DeviceOut {
        device_id: device.device.to_string(),
        super_device_id: device.super_device.map(|id| id.to_string()),
        device_ip: device.address.as_deref(),
        rank_id: with_rank.then(|| device.rank.to_string()),
        extra: &device.extra,
    }
}

fn pod(server: &Server) -> Instance<'_> {
    Instance {
        pod_name: server.pod.as_deref(),
        rank_id: None,
        server_id: &server.id,
        devices: server.devices.iter().map(|device| device_out(device, false)).collect(),
        extra: Some(&server.extra),
    }
}

fn single_devices(server: &Server) -> impl Iterator<Item = Instance<'_>> {
    server.devices.iter().map(|device| Instance {
        pod_name: None,
        rank_id: Some(device.rank.to_string()),
        server_id: &server.id,
        devices: vec![device_out(device, false)],
        extra: None,
    })
}

/// Servers that stand together and name the same super-pod are one entry.
fn super_pods(servers: &[Server]) -> Vec<SuperPod<'_>> {
    servers
        .chunk_by(|left, right| left.super_pod == right.super_pod)
        .filter_map(|run| {
            let super_pod_id = run.first()?.super_pod.as_deref()?;
            let server_list = run.iter().map(|server| ServerName { server_id: &server.id }).collect();
            Some(SuperPod { super_pod_id, server_list })
        })
        .collect()
}

impl<'a> From<&'a LayeredRank> for RankOut<'a> {
    fn from(rank: &'a LayeredRank) -> Self {
        RankOut {
            rank_id: rank.rank,
            local_id: rank.local,
            device_id: rank.device,
            level_list: rank.levels.iter().map(LevelOut::from).collect(),
            extra: &rank.extra,
        }
    }
}

impl<'a> From<&'a Level> for LevelOut<'a> {
    fn from(level: &'a Level) -> Self {
        LevelOut {
            net_layer: level.layer,
            net_instance_id: &level.instance,
            net_type: &level.kind,
            rank_addr_list: level.addresses.iter().map(AddressOut::from).collect(),
            extra: &level.extra,
        }
    }
}

impl<'a> From<&'a RankAddress> for AddressOut<'a> {
    fn from(address: &'a RankAddress) -> Self {
        AddressOut {
            addr_type: &address.kind,
            addr: &address.address,
            ports: &address.ports,
            extra: &address.extra,
        }
    }
}
