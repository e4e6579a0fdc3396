//! From the text to the value. Forgiving where the meaning is clear, and saying so: what HCCL would not forgive is a
//! finding of the [`ParsedTable`]. Never panics, whatever the text.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use super::form;
use super::validate::{TableIssue, Weight};
use super::{
    LayeredRank, Level, RankAddress, RankTable, RankedDevice, Server, TableContent, Version, numbered,
};

/// A table, and what of its form is not as HCCL wants it: counts that do not fit, numbers that are not texts.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedTable {
    pub table: RankTable,
    pub findings: Vec<TableIssue>,
}

#[derive(Debug, Error)]
pub enum ParseError {
    #[error("the rank table is not JSON")]
    Json(#[source] serde_json::Error),
    #[error("line {line} has a comment, and JSON has none; remove the comments")]
    Comment { line: usize },
    #[error("the rank table is still being written: its status is `initializing`")]
    Initializing,
    #[error(
        "this is the topology file that belongs to a rank table of version 2.0, not the table itself; name the file with `rank_list`"
    )]
    TopologyFile,
    #[error("version `{0}` of rank tables is unknown; known are {accepted}", accepted = Version::ACCEPTED)]
    UnknownVersion(String),
    #[error("not a rank table: it has neither `server_list`, nor `group_list`, nor `rank_list`")]
    NotATable,
    #[error("`{path}` is missing")]
    Missing { path: String },
    #[error("`{path}` should be {expected}")]
    Kind { path: String, expected: &'static str },
    #[error("`{path}` names server `{server}`, which `server_list` does not have")]
    UnknownServer { path: String, server: String },
    #[error("`group_list` has {count} groups; rank tables with other than one are not known")]
    Groups { count: usize },
}

pub fn parse(text: &str) -> Result<ParsedTable, ParseError> {
    let (text, has_mark) = match text.strip_prefix(form::BYTE_ORDER_MARK) {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let value = serde_json::from_str(text).map_err(|error| match form::comment_line(text) {
        Some(line) => ParseError::Comment { line },
        None => ParseError::Json(error),
    })?;
    let mut fields = Fields::of(value, String::new())?;
    if fields.map.get("status").and_then(Value::as_str) == Some("initializing") {
        return Err(ParseError::Initializing);
    }
    let version = version_of(&fields)?;
    fields.map.remove("version");
    let mut reader = Reader { findings: Vec::new(), numbers: version == Version::RankList };
    if has_mark {
        let problem = "begins with a byte order mark; save it as UTF-8 without one".to_owned();
        reader.findings.push(TableIssue { weight: Weight::Doubtful, place: "the file".to_owned(), problem });
    }
    for path in form::doubled_keys(text) {
        reader.find(path, "is there twice; readers keep one of the two".to_owned());
    }
    let status = fields.optional_text("status")?;
    if status.as_deref().is_none_or(|status| status != "completed")
        && (status.is_some() || version != Version::RankList)
    {
        reader.find("status", "should be `completed`: readers wait until it is".to_owned());
    }
    let content = match version {
        Version::ServerList | Version::SuperPodList => reader.servers(&mut fields, version)?,
        Version::GroupList | Version::BoardId => reader.groups(&mut fields, version)?,
        Version::RankList => reader.ranks(&mut fields)?,
    };
    let table = RankTable { version, content, extra: fields.rest() };
    Ok(ParsedTable { table, findings: reader.findings })
}

fn version_of(fields: &Fields) -> Result<Version, ParseError> {
    let has = |name: &str| fields.map.contains_key(name);
    match fields.map.get("version").map(scalar_text) {
        _ if has("edge_list") || has("peer_list") => Err(ParseError::TopologyFile),
        Some(Some(version)) => match version.parse() {
            Ok(version @ (Version::ServerList | Version::SuperPodList | Version::RankList)) => Ok(version),
            _ => Err(ParseError::UnknownVersion(version.chars().take(40).collect())),
        },
        Some(None) => {
            Err(ParseError::Kind { path: "version".to_owned(), expected: "a text such as \"1.0\"" })
        }
        None if has("group_list") && (has("board_id") || has("para_plane_nic_num")) => Ok(Version::BoardId),
        None if has("group_list") => Ok(Version::GroupList),
        None if has("server_list") || has("rank_list") => {
            Err(ParseError::Missing { path: "version".to_owned() })
        }
        None => Err(ParseError::NotATable),
    }
}

struct Reader {
    findings: Vec<TableIssue>,
    /// Whether this version writes numbers as numbers.
    numbers: bool,
}

impl Reader {
    fn find(&mut self, place: impl Into<String>, problem: String) {
        self.findings.push(TableIssue { weight: Weight::Wrong, place: place.into(), problem });
    }

    fn servers(&mut self, fields: &mut Fields, version: Version) -> Result<TableContent, ParseError> {
        let mut super_pods = BTreeMap::new();
        // Without the list a `1.2` is no more than a `1.0`: that is for `validate` to say.
        if version == Version::SuperPodList && fields.map.contains_key("super_pod_list") {
            for mut pod in fields.list("super_pod_list")? {
                let id = pod.text("super_pod_id")?;
                for mut server in pod.list("server_list")? {
                    let name = server.text("server_id")?;
                    super_pods.insert(name, (id.clone(), server.path));
                }
                self.leave_out(pod);
            }
        }
        if version == Version::ServerList && fields.map.contains_key("super_pod_list") {
            let problem = "is of version 1.2, and `version` says 1.0: HCCL would see no super-pods";
            self.find("super_pod_list", problem.to_owned());
        }
        let mut servers = Vec::new();
        for mut server in fields.list("server_list")? {
            let id = server.text("server_id")?;
            let mut devices = Vec::new();
            for mut device in server.list("device")? {
                let rank = self.small_number(&mut device, "rank_id")?;
                devices.push(RankedDevice { rank, ..self.device(device, version)? });
            }
            let super_pod = super_pods.remove(&id).map(|(pod, _)| pod);
            let host = server.optional_text("host_ip")?;
            servers.push(Server { id, host, pod: None, super_pod, devices, extra: server.rest() });
        }
        if let Some((server, (_, path))) = super_pods.pop_first() {
            return Err(ParseError::UnknownServer { path, server });
        }
        self.count(fields, "server_count", servers.len(), version != Version::ServerList)?;
        Ok(TableContent::Servers(servers))
    }

    fn device(&mut self, mut fields: Fields, version: Version) -> Result<RankedDevice, ParseError> {
        let super_device = match version {
            Version::SuperPodList if fields.map.contains_key("super_device_id") => {
                Some(self.number(&mut fields, "super_device_id")?)
            }
            _ => None,
        };
        Ok(RankedDevice {
            device: self.small_number(&mut fields, "device_id")?,
            address: fields.optional_text("device_ip")?,
            super_device,
            rank: 0,
            extra: fields.rest(),
        })
    }

    fn groups(&mut self, fields: &mut Fields, version: Version) -> Result<TableContent, ParseError> {
        let groups = fields.list("group_list")?;
        let count = groups.len();
        self.count(fields, "group_count", count, false)?;
        let Ok([mut group]) = <[Fields; 1]>::try_from(groups) else {
            return Err(ParseError::Groups { count });
        };
        group.optional_text("group_name")?;
        let instances = group.list("instance_list")?;
        let instance_count = instances.len();
        let mut servers: Vec<Server> = Vec::new();
        for instance in instances {
            let server = self.instance(instance, version)?;
            match servers.last_mut() {
                Some(last) if version == Version::BoardId && last.id == server.id => {
                    last.devices.extend(server.devices);
                }
                _ => servers.push(server),
            }
        }
        let devices = servers.iter().map(|server| server.devices.len()).sum();
        self.count(&mut group, "instance_count", instance_count, false)?;
        if version == Version::GroupList {
            let numbers: Option<Vec<u64>> =
                servers.iter().map(|server| form::pod_number(server.pod.as_deref()?)).collect();
            if numbers.is_some_and(|numbers| !numbers.is_sorted()) {
                let problem = "is not in the order of the pods' numbers: some readers number ranks by those, others by place; sort it";
                self.find("group_list[0].instance_list", problem.to_owned());
            }
        }
        if version == Version::BoardId {
            self.count(&mut group, "device_num", devices, false)?;
            self.count(&mut group, "server_num", servers.len(), false)?;
        } else {
            self.count(&mut group, "device_count", devices, true)?;
            servers = numbered(servers);
        }
        self.leave_out(group);
        Ok(TableContent::Servers(servers))
    }

    fn instance(&mut self, mut fields: Fields, version: Version) -> Result<Server, ParseError> {
        let id = fields.text("server_id")?;
        let mut devices = Vec::new();
        for device in fields.list("devices")? {
            devices.push(self.device(device, version)?);
        }
        if version == Version::GroupList {
            let pod = fields.optional_text("pod_name")?;
            return Ok(Server { id, pod, devices, extra: fields.rest(), ..Server::default() });
        }
        let rank = self.small_number(&mut fields, "rank_id")?;
        let [device] = &mut devices[..] else {
            let path = format!("{}.devices", fields.path);
            return Err(ParseError::Kind { path, expected: "a list of one device" });
        };
        device.rank = rank;
        self.leave_out(fields);
        Ok(Server { id, devices, ..Server::default() })
    }

    fn ranks(&mut self, fields: &mut Fields) -> Result<TableContent, ParseError> {
        let mut ranks = Vec::new();
        for mut rank in fields.list("rank_list")? {
            let mut levels = Vec::new();
            for mut level in rank.list("level_list")? {
                let mut addresses = Vec::new();
                for address in level.list("rank_addr_list")? {
                    let ports_at = address.path_of("ports");
                    let address = rank_address(address)?;
                    if let Some(port) = address.ports.iter().find(|port| !form::is_port(port)) {
                        self.find(
                            ports_at,
                            format!("has `{port}`; a port is written as `die/port`, such as `0/1`"),
                        );
                    }
                    addresses.push(address);
                }
                levels.push(Level {
                    layer: self.number(&mut level, "net_layer")?,
                    instance: level.text("net_instance_id")?,
                    kind: level.text("net_type")?,
                    addresses,
                    extra: level.rest(),
                });
            }
            ranks.push(LayeredRank {
                rank: self.number(&mut rank, "rank_id")?,
                local: self.number(&mut rank, "local_id")?,
                device: self.number(&mut rank, "device_id")?,
                levels,
                extra: rank.rest(),
            });
        }
        self.count(fields, "rank_count", ranks.len(), false)?;
        Ok(TableContent::Ranks(ranks))
    }

    /// A number that the file states and that follows from the rest of it.
    fn count(
        &mut self,
        fields: &mut Fields,
        name: &'static str,
        counted: usize,
        optional: bool,
    ) -> Result<(), ParseError> {
        let path = fields.path_of(name);
        if !fields.map.contains_key(name) {
            if !optional {
                self.find(path, format!("is missing; it should be {counted}"));
            }
            return Ok(());
        }
        let stated = self.number(fields, name)?;
        if stated != counted as u64 {
            self.find(path, format!("says {stated}; counted are {counted}"));
        }
        Ok(())
    }

    fn number(&mut self, fields: &mut Fields, name: &'static str) -> Result<u64, ParseError> {
        let path = fields.path_of(name);
        let value = fields.required(name)?;
        if value.is_string() == self.numbers {
            let expected = if self.numbers { "a number" } else { "a text" };
            self.find(path.clone(), format!("is {value}; this version writes it as {expected}"));
        }
        let number: u64 = scalar_text(&value)
            .and_then(|text| text.parse().ok())
            .ok_or(ParseError::Kind { path: path.clone(), expected: "a whole number" })?;
        if value.as_str().is_some_and(|text| text != number.to_string()) {
            self.find(path, format!("is {value}; write it as \"{number}\""));
        }
        Ok(number)
    }

    fn small_number(&mut self, fields: &mut Fields, name: &'static str) -> Result<u32, ParseError> {
        let number = self.number(fields, name)?;
        u32::try_from(number)
            .map_err(|_| ParseError::Kind { path: fields.path_of(name), expected: "a smaller number" })
    }

    /// There is no place for these in the value.
    fn leave_out(&mut self, fields: Fields) {
        for name in fields.map.keys() {
            let problem = "is not a field of this version; it is left out".to_owned();
            let place = fields.path_of(name);
            self.findings.push(TableIssue { weight: Weight::Doubtful, place, problem });
        }
    }
}

fn rank_address(mut fields: Fields) -> Result<RankAddress, ParseError> {
    let ports_at = fields.path_of("ports");
    let not_texts = || ParseError::Kind { path: ports_at.clone(), expected: "a list of texts" };
    let ports = match fields.required("ports")? {
        Value::Array(ports) => ports
            .into_iter()
            .map(|port| port.as_str().map(str::to_owned).ok_or_else(not_texts))
            .collect::<Result<_, _>>()?,
        _ => return Err(not_texts()),
    };
    Ok(RankAddress {
        kind: fields.text("addr_type")?,
        address: fields.text("addr")?,
        ports,
        extra: fields.rest(),
    })
}

/// An object whose fields are taken out one by one; what is left at the end is not ours.
struct Fields {
    path: String,
    map: BTreeMap<String, Value>,
}

impl Fields {
    fn of(value: Value, path: String) -> Result<Self, ParseError> {
        if let Value::Object(map) = value {
            return Ok(Fields { path, map: map.into_iter().collect() });
        }
        let path = if path.is_empty() { "the file".to_owned() } else { path };
        Err(ParseError::Kind { path, expected: "an object" })
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn required(&mut self, name: &str) -> Result<Value, ParseError> {
        self.map.remove(name).ok_or_else(|| ParseError::Missing { path: self.path_of(name) })
    }

    fn text(&mut self, name: &str) -> Result<String, ParseError> {
        match self.required(name)? {
            Value::String(text) => Ok(text),
            _ => Err(ParseError::Kind { path: self.path_of(name), expected: "a text" }),
        }
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<String>, ParseError> {
        if self.map.contains_key(name) { self.text(name).map(Some) } else { Ok(None) }
    }

    fn list(&mut self, name: &str) -> Result<Vec<Fields>, ParseError> {
        let path = self.path_of(name);
        match self.required(name)? {
            Value::Array(items) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| Fields::of(item, format!("{path}[{index}]")))
                .collect(),
            _ => Err(ParseError::Kind { path, expected: "a list" }),
        }
    }

    fn rest(self) -> BTreeMap<String, Value> {
        self.map
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
