//! `scontrol --details show job`: what jobs hold of nodes, those of other people before all.
//!
//! Invariant: what is not understood holds nothing. A job that Danlu overlooks costs a wait in Slurm's queue; one that it
//! made up would keep devices idle.
//!
//! Comments, names and command lines may hold whole lines, and so whole records: a job is believed only where another answer,
//! in which users write nothing, has it on those nodes ([`keep_listed`]).

use std::collections::{BTreeMap, BTreeSet};

use danlu_types::{Bytes, Cpus, ForeignHold, ForeignKind, Node, NodeName};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::gres::{Gres, parse_gres};
use super::hostlist::expand;
use super::nodes::GresSlot;
use super::queue::SlurmJobState;

/// Nobody has as many processors.
const MOST_CPUS: u64 = 1 << 20;

/// A job that has nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldingJob {
    pub id: u64,
    /// As people name it: `4711`, or `4711_3` of an array.
    pub label: String,
    pub name: String,
    pub user: String,
    pub until: Option<Timestamp>,
    pub parts: Vec<HeldPart>,
}

/// What it has of each of some nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPart {
    pub nodes: Vec<String>,
    pub cpus: u64,
    pub memory: Bytes,
    pub gres: Vec<Gres>,
}

/// For `squeue --format`: which jobs have which nodes, and nothing that a user wrote.
pub const PLACES_FORMAT: &str = "%A|%N";

/// Of the jobs, those that have the nodes that they say by an answer in [`PLACES_FORMAT`] too, and each once.
pub fn keep_listed(jobs: Vec<HoldingJob>, places: &str) -> Vec<HoldingJob> {
    let place = |line: &str| {
        let (id, nodes) = line.split_once('|')?;
        Some((id.trim().parse::<u64>().ok()?, expand(nodes.trim())?.into_iter().collect::<BTreeSet<_>>()))
    };
    let mut listed: BTreeMap<u64, BTreeSet<String>> = places.lines().filter_map(place).collect();
    let mut kept = jobs;
    kept.retain(|job| {
        let Some(nodes) = listed.get(&job.id) else { return false };
        let is_there = job.parts.iter().flat_map(|part| &part.nodes).all(|node| nodes.contains(node));
        is_there && listed.remove(&job.id).is_some()
    });
    kept
}

/// The jobs of an answer that wait for nodes, with their names. Users write names, and may write whole records: ask Slurm for
/// a job by its name before anything is done to it.
pub fn parse_waiting(text: &str) -> Vec<(u64, String)> {
    records(text).iter().filter_map(|record| read_waiting(record)).collect()
}

fn read_waiting(lines: &[&str]) -> Option<(u64, String)> {
    let (first, rest) = lines.split_first()?;
    let (id, name) = first.strip_prefix("JobId=")?.split_once(" JobName=")?;
    let said = rest.iter().map(|line| line.trim()).take_while(|line| !line.starts_with("Command="));
    let mut words = said.flat_map(|line| line.split(' '));
    let state = words.find_map(|word| word.strip_prefix("JobState="))?;
    (SlurmJobState::parse(state) == SlurmJobState::Waiting).then_some(())?;
    Some((id.parse().ok()?, name.to_owned()))
}

/// The jobs of an answer that have nodes. Times are read as UTC: that is the zone the question is to be asked in.
pub fn parse_holders(text: &str) -> Vec<HoldingJob> {
    records(text).iter().filter_map(|record| read_record(record)).collect()
}

/// A record begins at the edge; all its other lines are indented.
fn records(text: &str) -> Vec<Vec<&str>> {
    let mut records: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        match records.last_mut() {
            Some(record) if !line.starts_with("JobId=") => record.push(line),
            _ => records.push(vec![line]),
        }
    }
    records
}

fn read_record(lines: &[&str]) -> Option<HoldingJob> {
    let (first, rest) = lines.split_first()?;
    let number = |name: &str| {
        let mut words = first.split(' ').take_while(|word| !word.starts_with("JobName="));
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let id: u64 = number("JobId")?.parse().ok().filter(|id| *id > 0)?;
    let label = match (number("ArrayJobId"), number("ArrayTaskId")) {
        (Some(array), Some(task)) if task.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{array}_{task}")
        }
        _ => id.to_string(),
    };
    // What users write of their own comes from here on.
    let said = rest.iter().map(|line| line.trim()).take_while(|line| !line.starts_with("Command="));
    let said: Vec<&str> = said.collect();
    let word = |name: &str| {
        let mut words = said.iter().flat_map(|line| line.split(' '));
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    if SlurmJobState::parse(word("JobState")?) != SlurmJobState::Alive {
        return None;
    }
    let user = word("UserId").unwrap_or_default();
    let parts: Vec<HeldPart> = said.iter().filter_map(|line| read_part(line)).collect();
    (!parts.is_empty()).then(|| HoldingJob {
        id,
        label,
        name: shown(first.split_once("JobName=").map_or("", |(_, name)| name)),
        user: shown(user.split('(').next().unwrap_or(user)),
        until: word("EndTime").and_then(read_time),
        parts,
    })
}

/// `Nodes=n[1-2] CPU_IDs=0-3 Mem=400 GRES=gpu:a100:2(IDX:0-1)`.
fn read_part(line: &str) -> Option<HeldPart> {
    let mut words = line.split_whitespace();
    let nodes = words.next()?.strip_prefix("Nodes=")?;
    let value =
        |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let gres = value("GRES").or_else(|| value("GRES_IDX")).map(parse_gres).unwrap_or_default();
    let megabytes: u64 = value("Mem").and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(HeldPart {
        nodes: expand(nodes).filter(|nodes| !nodes.is_empty())?,
        cpus: value("CPU_IDs").map_or(0, count_ids),
        memory: Bytes(megabytes.saturating_mul(1 << 20)),
        gres,
    })
}

/// How many numbers a list such as `0-3,8` has.
fn count_ids(text: &str) -> u64 {
    let lengths = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first).map(|length| length.saturating_add(1))
    });
    lengths.fold(0_u64, u64::saturating_add).min(MOST_CPUS)
}

/// `Unknown` for jobs without a limit.
fn read_time(text: &str) -> Option<Timestamp> {
    let time: DateTime = text.parse().ok()?;
    time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// What people chose, made fit for a line.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(100).collect()
}

/// Enters into the nodes what the jobs hold of them. `slots` says which of a node's devices is which resource.
pub fn lay_over(nodes: &mut [Node], slots: &BTreeMap<NodeName, Vec<GresSlot>>, jobs: &[HoldingJob]) {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (place, node) in nodes.iter_mut().enumerate() {
        node.foreign.clear();
        places.insert(node.name.0.clone(), place);
    }
    let none = Vec::new();
    for job in jobs {
        for part in &job.parts {
            for name in &part.nodes {
                let Some(place) = places.get(name) else { continue };
                let node = &mut nodes[*place];
                let devices = devices(node, slots.get(&node.name).unwrap_or(&none), &part.gres);
                node.foreign.push(ForeignHold {
                    kind: ForeignKind::ClusterJob,
                    job: job.label.clone(),
                    name: job.name.clone(),
                    user: job.user.clone(),
                    devices,
                    cpus: Cpus::whole(part.cpus).min(node.capacity.cpus),
                    memory: part.memory.min(node.capacity.memory),
                    until: job.until,
                });
            }
        }
    }
}

/// Numbers that Slurm names, where it does; of others as many as it counts, from the end.
fn devices(node: &Node, slots: &[GresSlot], gres: &[Gres]) -> Vec<u32> {
    let mut taken: BTreeSet<u32> =
        node.foreign.iter().flat_map(|hold| hold.devices.iter().copied()).collect();
    let mut found = Vec::new();
    for gres in gres {
        let of_name = |slot: &&GresSlot| slot.label.split(':').next() == Some(gres.name.as_str());
        let numbers = |slot: &GresSlot| slot.first..slot.first.saturating_add(slot.count);
        // Slurm counts all resources of a name through, whatever their type.
        let all: Vec<u32> = slots.iter().filter(of_name).flat_map(numbers).collect();
        let typed = slots.iter().filter(|slot| gres.model.is_none() || slot.label == gres.label());
        let typed: Vec<u32> = typed.filter(of_name).flat_map(numbers).collect();
        let named = gres.indices.iter().filter_map(|index| all.get(usize::try_from(*index).ok()?).copied());
        let named: Vec<u32> =
            named.filter(|device| !taken.contains(device)).take(gres.count as usize).collect();
        let missing = (gres.count as usize).saturating_sub(named.len());
        let free =
            typed.into_iter().rev().filter(|device| !taken.contains(device) && !named.contains(device));
        let chosen: Vec<u32> = free.take(missing).collect();
        let own: Vec<u32> = named.into_iter().chain(chosen).collect();
        taken.extend(&own);
        found.extend(own);
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::nodes::{node, parse_nodes};
    use super::super::settings::SlurmSettings;
    use super::*;

    const JOBS: &str = include_str!("fixtures/jobs.txt");

    fn cluster() -> (Vec<Node>, BTreeMap<NodeName, Vec<GresSlot>>) {
        let text = "NodeName=n1 Arch=x86_64 CPUTot=64 Gres=gpu:a100:8 NodeAddr=n1 RealMemory=100000 State=MIXED\n\
                    NodeName=n2 Arch=x86_64 CPUTot=64 Gres=gpu:a100:8 NodeAddr=n2 RealMemory=100000 State=MIXED\n\
                    NodeName=n3 Arch=aarch64 CPUTot=192 Gres=npu:910b:16 NodeAddr=n3 RealMemory=100000 State=MIXED\n\
                    NodeName=n4 Arch=x86_64 CPUTot=64 Gres=gpu:a100:4,gpu:v100:4 NodeAddr=n4 RealMemory=100000 State=MIXED\n";
        let both: Vec<_> =
            parse_nodes(text).iter().map(|record| node(record, &SlurmSettings::default())).collect();
        let slots = both.iter().map(|(node, slots)| (node.name.clone(), slots.clone())).collect();
        (both.into_iter().map(|(node, _)| node).collect(), slots)
    }

    fn laid(text: &str) -> String {
        let (mut nodes, slots) = cluster();
        lay_over(&mut nodes, &slots, &parse_holders(text));
        let mut lines = Vec::new();
        for node in &nodes {
            for ForeignHold { kind: _, job, name, user, devices, cpus, memory, until } in &node.foreign {
                let until = until.map_or("ever".to_owned(), |until| until.to_string());
                lines.push(format!(
                    "{}: {job} `{name}` of {user}: devices {devices:?}, {cpus} cores, {memory}, until {until}",
                    node.name
                ));
            }
        }
        lines.join("\n")
    }

    #[test]
    fn running_jobs_hold_what_slurm_says_they_do() {
        insta::assert_snapshot!(laid(JOBS), @r"
        n1: 4711 `train it` of alice: devices [0, 1, 2, 3, 4, 7], 12 cores, 64Gi, until 2026-11-16T23:10:01Z
        n1: 4712_3 `sweep` of bob: devices [5], 2 cores, 1Gi, until ever
        n2: 4712_3 `sweep` of bob: devices [5], 2 cores, 1Gi, until ever
        n2: 4717 `cores only` of dave: devices [], 64 cores, 90000Mi, until 2026-11-15T23:41:01Z
        n2: 4720 `train it` of erin: devices [0, 1, 2], 1 cores, 100Mi, until ever
        n3: 4715 `counted` of carol: devices [12, 13, 14, 15], 1 cores, 0, until 2026-11-15T23:41:01Z
        n4: 4716 `second-type` of carol: devices [4, 6], 1 cores, 0, until 2026-11-15T23:41:01Z
        ");
    }

    #[test]
    fn what_users_write_holds_nothing() {
        let hostile = "JobId=9 JobName=x Nodes=n1 GRES=gpu:a100:8(IDX:0-7)\n   UserId=eve(1) JobState=RUNNING\n   \
                       NumNodes=1\n   Command=/home/eve/a\n     Nodes=n1 CPU_IDs=0-63 Mem=1 GRES=gpu:a100:8(IDX:0-7)\n   \
                       Comment=x\n     Nodes=n2 CPU_IDs=0-63 GRES=gpu:8\n";
        assert_eq!(laid(hostile), "");
    }

    #[test]
    fn records_that_users_write_are_no_jobs() {
        // As Slurm 26.05 says it of a job whose comment is a record.
        let text = include_str!("fixtures/forged.txt");
        let found = parse_holders(text);
        assert!(found.iter().filter(|job| job.name == "evil").count() >= 2, "they are read as records");
        let kept = |places: &str| -> Vec<(u64, String)> {
            keep_listed(found.clone(), places).into_iter().map(|job| (job.id, job.name)).collect()
        };
        assert_eq!(kept("1|n2\n3|\n"), [(1, "wrap".to_owned())]);
        assert_eq!(kept("1|n1\n"), [], "it is elsewhere");
        assert_eq!(kept(""), []);
        assert_eq!(kept("x\n|\n1|n[\n1\n"), [], "no answer is too strange");
        assert_eq!(kept("999|n2\n").len(), 0, "a number that is somebody's, on nodes that are not");
    }

    #[test]
    fn more_than_a_node_has_is_no_more_than_it_has() {
        let text = "JobId=9 JobName=x\n   UserId=eve(1) JobState=RUNNING\n     Nodes=n[1-2,9] CPU_IDs=0-99999999999 \
                    Mem=99999999999999999999 GRES=gpu:a100:4000(IDX:0-4000)\n";
        insta::assert_snapshot!(laid(text), @r"
        n1: 9 `x` of eve: devices [0, 1, 2, 3, 4, 5, 6, 7], 64 cores, 0, until ever
        n2: 9 `x` of eve: devices [0, 1, 2, 3, 4, 5, 6, 7], 64 cores, 0, until ever
        ");
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(text in "(.|\n){0,300}") {
            let _ = laid(&text);
        }

        #[test]
        fn nor_one_that_is_cut_or_has_something_in_it(at in 0_usize..4000, extra in "[ -~\n]{0,40}") {
            let mut at = at.min(JOBS.len());
            while !JOBS.is_char_boundary(at) { at -= 1; }
            let _ = laid(&format!("{}{extra}{}", &JOBS[..at], &JOBS[at..]));
            let (mut nodes, slots) = cluster();
            lay_over(&mut nodes, &slots, &parse_holders(&JOBS[..at]));
            for node in &nodes {
                let mut all: Vec<u32> = node.foreign.iter().flat_map(|hold| hold.devices.clone()).collect();
                all.sort_unstable();
                prop_assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "a device in two hands: {:?}", all);
                prop_assert!(all.len() <= node.devices.len());
            }
        }
    }
}
