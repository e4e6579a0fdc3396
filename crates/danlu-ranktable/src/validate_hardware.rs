//! Which tables a generation of hardware can work with: versions, numbers of devices, which of them together.

use std::collections::{BTreeMap, BTreeSet};

use danlu_types::Family;

use super::validate::TableIssues;
use super::{Server, Version};

/// Devices 0 to 3 and 4 to 7 of the first generation.
const RING: u32 = 4;

impl TableIssues<'_> {
    pub(super) fn check_version(&mut self, family: Family) {
        let version = self.table.version;
        let accepted: &[Version] = match family {
            Family::First => &[Version::ServerList, Version::GroupList, Version::BoardId],
            Family::A2 | Family::Small | Family::Inference => &[Version::ServerList],
            Family::A3 => &[Version::ServerList, Version::SuperPodList],
            Family::A5 => &[Version::RankList],
        };
        if !accepted.contains(&version) {
            let names: Vec<_> = accepted.iter().map(|version| format!("`{version}`")).collect();
            let problem = format!("is `{version}`; the {family} family reads {}", names.join(" or "));
            self.wrong("version".to_owned(), problem);
        } else if version != accepted[0] && family == Family::First {
            let problem = format!("is `{version}`, which is kept for old programs; use `{}`", accepted[0]);
            self.doubtful("version".to_owned(), problem);
        }
    }

    /// Why each device must have an address of its own, where it must.
    pub(super) fn address_need(&self, servers: &[Server], family: Option<Family>) -> Option<&'static str> {
        let machines: BTreeSet<&str> = servers.iter().map(|server| server.id.as_str()).collect();
        let super_pods: BTreeSet<Option<&str>> =
            servers.iter().map(|server| server.super_pod.as_deref()).collect();
        match family {
            Some(Family::First) => Some("the 910A always needs it"),
            _ if self.table.version == Version::SuperPodList => {
                (super_pods.len() > 1).then_some("super-pods reach each other by it")
            }
            _ => (machines.len() > 1).then_some("servers reach each other by it"),
        }
    }

    pub(super) fn check_counts(&mut self, servers: &[Server], family: Option<Family>) {
        match family {
            Some(Family::First) => self.check_rings(servers),
            Some(Family::A3) => self.check_modules(servers),
            _ => {}
        }
        self.check_evenness(servers, family);
    }

    fn check_rings(&mut self, servers: &[Server]) {
        for (machine, devices) in machines(servers) {
            let place = self.at_machine(servers, machine);
            let rings: BTreeSet<u32> = devices.iter().map(|device| device / RING).collect();
            match devices.len() {
                2 | 4 if rings.len() > 1 => {
                    let problem = format!(
                        "uses devices {} of both rings; take all from 0 to 3 or all from 4 to 7",
                        numbers(&devices)
                    );
                    self.wrong(place, problem);
                }
                1 | 2 | 4 | 8 => {}
                count => self.wrong(
                    place,
                    format!("uses {count} devices; the 910A trains with 1, 2, 4 or 8 per server"),
                ),
            }
        }
    }

    fn check_modules(&mut self, servers: &[Server]) {
        for (machine, devices) in machines(servers) {
            let place = self.at_machine(servers, machine);
            if devices.len() > 1 && devices.len() % 2 == 1 {
                let problem =
                    format!("uses {} dies; the A3 trains with one or with whole pairs", devices.len());
                self.wrong(place, problem);
            } else if devices.len() > 1 && devices.iter().any(|die| !devices.contains(&(die ^ 1))) {
                let problem =
                    format!("uses dies {}; take both of each module, as 0 and 1", numbers(&devices));
                self.doubtful(place, problem);
            }
        }
    }

    /// Where the machine stands first.
    fn at_machine(&self, servers: &[Server], machine: &str) -> String {
        let first = servers.iter().position(|server| server.id == machine).unwrap_or(0);
        self.at_server(first)
    }

    fn check_evenness(&mut self, servers: &[Server], family: Option<Family>) {
        let machines = machines(servers);
        let counts: BTreeSet<usize> = machines.values().map(BTreeSet::len).collect();
        let (Some(least), Some(most)) = (counts.first(), counts.last()) else { return };
        if least == most {
            return;
        }
        let problem = format!("has servers with {least} and with {most} devices");
        if family == Some(Family::First) {
            self.wrong(self.at_list().to_owned(), problem + "; the 910A needs the same number on each");
        } else {
            self.doubtful(self.at_list().to_owned(), problem + "; HCCL is made for the same number on each");
        }
    }
}

/// The devices of each machine, however many entries it has.
fn machines(servers: &[Server]) -> BTreeMap<&str, BTreeSet<u32>> {
    let mut machines: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for server in servers {
        machines.entry(&server.id).or_default().extend(server.devices.iter().map(|device| device.device));
    }
    machines
}

fn numbers(devices: &BTreeSet<u32>) -> String {
    devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
