//! Rank tables: the file by which HCCL learns who takes part in a training, on which devices, in which order.
//!
//! Five versions are in use, and each belongs to certain hardware and frameworks. Here they are one value, which is
//! read ([`parse`]), written ([`render`]), checked ([`validate`]), put together ([`join`]) and turned into another version ([`convert`]). What we
//! have no word for is kept as it was read, so that a table that passes through loses nothing.
//!
//! The text is a function of the value alone: equal tables are equal bytes.

mod convert;
mod form;
mod join;
mod layered;
mod read;
mod render;
mod validate;
mod validate_hardware;
mod validate_layered;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use danlu_types::Family;
use serde_json::Value;
use thiserror::Error;

pub use convert::{MissingInformation, convert, left_out};
pub use join::{CannotJoin, join};
pub use layered::{LayeredRank, Level, RankAddress};
pub use read::{ParseError, ParsedTable, parse};
pub use render::render;
pub use validate::{TableIssue, Weight, validate};

/// What stands in the file before the devices are known; readers look again until it says `completed`.
pub const INITIALIZING: &str = "{\"status\":\"initializing\"}";

/// Fields that we carry without knowing them.
pub type Extra = BTreeMap<String, Value>;

/// Named after the field that tells each from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// `1.0`: servers with devices, each with its rank.
    ServerList,
    /// "Template 2": groups of pods with devices; ranks are the order. First generation only.
    GroupList,
    /// MindSpore up to 0.5 and Apulis: groups of devices with ranks, and the board they are on. First generation only.
    BoardId,
    /// `1.2`: as `1.0`, and which servers make a super-pod.
    SuperPodList,
    /// `2.0`: ranks with the addresses they have in each layer of the network.
    RankList,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid rank table version `{0}`: write {accepted}", accepted = Version::ACCEPTED)]
pub struct ParseVersionError(String);

impl Version {
    pub const ALL: [Version; 5] =
        [Version::ServerList, Version::GroupList, Version::BoardId, Version::SuperPodList, Version::RankList];
    pub const ACCEPTED: &str = "`1.0`, `group_list`, `board_id`, `1.2` or `2.0`";

    pub fn as_str(self) -> &'static str {
        match self {
            Version::ServerList => "1.0",
            Version::GroupList => "group_list",
            Version::BoardId => "board_id",
            Version::SuperPodList => "1.2",
            Version::RankList => "2.0",
        }
    }

    /// What HCCL wants of this family. An A3 gets super-pods only where all of theirs is known: with part of it HCCL
    /// would ignore them anyway.
    pub fn suited(family: Family, servers: &[Server]) -> Version {
        let in_super_pods = |server: &Server| {
            server.super_pod.is_some() && server.devices.iter().all(|device| device.super_device.is_some())
        };
        match family {
            Family::A5 => Version::RankList,
            Family::A3 if servers.iter().all(in_super_pods) => Version::SuperPodList,
            Family::A3 | Family::First | Family::A2 | Family::Small | Family::Inference => {
                Version::ServerList
            }
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Version::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
            .ok_or_else(|| ParseVersionError(text.chars().take(40).collect()))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RankTable {
    pub version: Version,
    pub content: TableContent,
    pub extra: Extra,
}

/// Servers in every version but `2.0`, which does not say what is on one machine.
#[derive(Debug, Clone, PartialEq)]
pub enum TableContent {
    Servers(Vec<Server>),
    Ranks(Vec<LayeredRank>),
}

/// A machine with the devices that take part; in a `group_list` one pod of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Server {
    /// An address or a name that no other server has.
    pub id: String,
    /// The address of the machine itself.
    pub host: Option<String>,
    pub pod: Option<String>,
    pub super_pod: Option<String>,
    pub devices: Vec<RankedDevice>,
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankedDevice {
    /// Its physical number on its machine, the N of `/dev/davinciN`.
    pub device: u32,
    /// Of its own network port. A text, because files in use have others than addresses here.
    pub address: Option<String>,
    pub super_device: Option<u64>,
    pub rank: u32,
    pub extra: Extra,
}

impl Server {
    /// Devices in the order of their ranks, which [`numbered`] gives.
    pub fn new(id: impl Into<String>, devices: impl IntoIterator<Item = RankedDevice>) -> Self {
        Server { id: id.into(), devices: devices.into_iter().collect(), ..Server::default() }
    }
}

impl RankedDevice {
    pub fn new(device: u32, address: Option<impl fmt::Display>) -> Self {
        RankedDevice {
            device,
            address: address.map(|address| address.to_string()),
            ..RankedDevice::default()
        }
    }
}

/// Ranks in the order of servers and, within each, of devices, from 0 on.
#[must_use]
pub fn numbered(mut servers: Vec<Server>) -> Vec<Server> {
    let devices = servers.iter_mut().flat_map(|server| &mut server.devices);
    for (rank, device) in (0..).zip(devices) {
        device.rank = rank;
    }
    servers
}

/// The table of these servers in this version; refuses where the version needs what they do not say. Whether the
/// hardware can work with it is for [`validate`] to say.
pub fn generate(servers: Vec<Server>, version: Version) -> Result<RankTable, MissingInformation> {
    let extra = if version == Version::BoardId { convert::board(&servers) } else { Extra::new() };
    let content = TableContent::Servers(convert::fit(servers, version)?);
    Ok(RankTable { version, content, extra })
}

impl RankTable {
    /// Sets the board that a `board_id` table names, by the architecture of its machines.
    #[must_use]
    pub fn on_architecture(mut self, architecture: &str) -> Self {
        if self.version == Version::BoardId {
            let board = if architecture == "x86_64" { "0x0000" } else { "0x0020" };
            self.extra.insert("board_id".to_owned(), Value::from(board));
        }
        self
    }

    pub fn servers(&self) -> &[Server] {
        match &self.content {
            TableContent::Servers(servers) => servers,
            TableContent::Ranks(_) => &[],
        }
    }

    pub fn ranks(&self) -> usize {
        match &self.content {
            TableContent::Servers(servers) => servers.iter().map(|server| server.devices.len()).sum(),
            TableContent::Ranks(ranks) => ranks.len(),
        }
    }
}
