//! The rank table of a running job, made of what its workers said of themselves when they met.
//!
//! Every launcher makes it for itself and all come to the same: it depends on nothing but what lies in the gang folder.

use std::collections::BTreeMap;
use std::net::IpAddr;

use danlu_types::{Device, Family};
use thiserror::Error;

use super::Present;
use danlu_ranktable::{
    MissingInformation, RankTable, RankedDevice, Server, Version, Weight, generate, numbered, validate,
};

/// In the run folder.
pub const RANK_TABLE_FILE: &str = "hccl.json";

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoRankTable {
    #[error("unknown device family of model `{0}`; a rank table cannot be made")]
    UnknownModel(String),
    #[error(
        "workers of node `{node}` do not follow each other, so their ranks would stand between those of others; \
         ask for more devices per worker"
    )]
    Interleaved { node: String },
    #[error("a rank table cannot be made")]
    Missing(#[from] MissingInformation),
    #[error("HCCL would refuse the rank table: {0}")]
    Refused(String),
}

/// `None` where no worker has an Ascend device.
pub fn rank_table(workers: &[Present]) -> Result<Option<RankTable>, NoRankTable> {
    let Some(first) = workers.iter().flat_map(|worker| &worker.devices).next() else { return Ok(None) };
    let family = Family::of(&first.model).ok_or_else(|| NoRankTable::UnknownModel(first.model.clone()))?;
    let servers = numbered(servers(workers)?);
    let version = Version::suited(family, &servers);
    let table = generate(servers.clone(), version)?;
    // By their names, because that is how people know their nodes; the file has addresses.
    let wrong = validate(&table, Some(family)).into_iter().find(|finding| finding.weight == Weight::Wrong);
    if let Some(finding) = wrong {
        return Err(NoRankTable::Refused(format!("`{}` {}", finding.place, finding.problem)));
    }
    Ok(Some(generate(with_addresses(servers, workers), version)?))
}

/// One for each node, in the order of workers; those of one node are together.
fn servers(workers: &[Present]) -> Result<Vec<Server>, NoRankTable> {
    let mut servers: Vec<Server> = Vec::new();
    for worker in workers {
        let name = name_of(worker, workers);
        let devices = worker.devices.iter().map(ranked);
        let place = servers.iter().position(|server| server.id == name);
        match place {
            Some(place) if place + 1 == servers.len() => servers[place].devices.extend(devices),
            Some(_) => return Err(NoRankTable::Interleaved { node: name }),
            None => servers.push(Server {
                host: Some(worker.address.clone()),
                super_pod: worker.super_pod.map(|pod| pod.to_string()),
                ..Server::new(name, devices)
            }),
        }
    }
    Ok(servers)
}

/// Machines that nobody has named, or that were copied from one image, share a name; then their addresses tell them apart.
fn name_of(worker: &Present, workers: &[Present]) -> String {
    let is_namesake = |other: &Present| other.node == worker.node && other.address != worker.address;
    let name = worker.node.as_ref().filter(|_| !workers.iter().any(is_namesake));
    name.map_or_else(|| worker.address.clone(), ToString::to_string)
}

fn ranked(device: &Device) -> RankedDevice {
    RankedDevice {
        super_device: device.wiring.super_device,
        ..RankedDevice::new(device.physical(), device.wiring.address)
    }
}

/// A server is known by its address, as every other maker of these files has it; by its name where several nodes have the
/// same address, which happens on one machine that plays several.
fn with_addresses(servers: Vec<Server>, workers: &[Present]) -> Vec<Server> {
    let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for worker in workers {
        let known = names.entry(&worker.address).or_default();
        let name = name_of(worker, workers);
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let own = |server: &Server| {
        let address = server.host.as_ref()?;
        let is_own = names.get(address.as_str()).is_some_and(|known| known.len() == 1);
        (is_own && address.parse::<IpAddr>().is_ok()).then(|| address.clone())
    };
    servers.into_iter().map(|server| Server { id: own(&server).unwrap_or(server.id), ..server }).collect()
}
