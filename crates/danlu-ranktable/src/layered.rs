//! What version 2.0 says of each rank: the addresses it has in each layer of the network.

use super::Extra;

#[derive(Debug, Clone, PartialEq)]
pub struct LayeredRank {
    pub rank: u64,
    pub local: u64,
    pub device: u64,
    pub levels: Vec<Level>,
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// 0 is nearest: what the topology file beside the table describes.
    pub layer: u64,
    pub instance: String,
    /// `TOPO_FILE_DESC` or `CLOS`.
    pub kind: String,
    pub addresses: Vec<RankAddress>,
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RankAddress {
    /// `EID`, `IPV4` or `IPV6`.
    pub kind: String,
    pub address: String,
    pub ports: Vec<String>,
    pub extra: Extra,
}
