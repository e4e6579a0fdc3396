//! `scontrol --oneliner show reservation`: nodes that are kept for somebody.
//!
//! Only what is reserved now is looked at: what will be is Slurm's to heed, which lets no job begin that would not be over
//! by then.

use danlu_types::Node;

use super::hostlist::expand;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmReservation {
    pub name: String,
    pub nodes: Vec<String>,
    /// Of all its nodes together, where Slurm says so: some reserve a few processors of each.
    pub cpus: Option<u64>,
}

/// Those that have begun and not ended. What is no reservation's record is passed over.
pub fn parse_reservations(text: &str) -> Vec<SlurmReservation> {
    text.lines().filter_map(parse_record).collect()
}

fn parse_record(line: &str) -> Option<SlurmReservation> {
    let word = |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let name = line.strip_prefix("ReservationName=")?.split(' ').next().filter(|name| !name.is_empty())?;
    if word("State")? != "ACTIVE" {
        return None;
    }
    let cpus = word("TRES").and_then(|tres| tres.split(',').find_map(|part| part.strip_prefix("cpu=")));
    Some(SlurmReservation {
        name: name.to_owned(),
        nodes: expand(word("Nodes")?)?,
        cpus: cpus.and_then(|cpus| cpus.parse().ok()),
    })
}

/// Closes nodes that are kept for others; and, for a site whose jobs have reservations of their own (`--reservation` of
/// `sbatch`), all others.
pub fn keep_to_reservations(nodes: &mut [Node], reservations: &[SlurmReservation], own: Option<&str>) {
    let is_own = |reservation: &&SlurmReservation| {
        own.is_some_and(|own| own.split(',').any(|name| name == reservation.name))
    };
    let closed: Vec<Option<String>> = nodes
        .iter()
        .map(|node| {
            let here = || reservations.iter().filter(|it| it.nodes.contains(&node.name.0));
            if here().any(|reservation| is_own(&reservation)) {
                return None;
            }
            match (here().find(|reservation| is_whole(reservation, nodes)), own) {
                (Some(reservation), _) => {
                    Some(format!("Slurm keeps it for the reservation {}", reservation.name))
                }
                (None, Some(own)) => Some(format!("it is not in the reservation {own} now")),
                (None, None) => None,
            }
        })
        .collect();
    for (node, closed) in nodes.iter_mut().zip(closed) {
        node.cordoned = node.cordoned.take().or(closed);
    }
}

/// Whether nothing of its nodes is left to others.
fn is_whole(reservation: &SlurmReservation, nodes: &[Node]) -> bool {
    let of_it = nodes.iter().filter(|node| reservation.nodes.contains(&node.name.0));
    let there: u64 = of_it.map(|node| node.capacity.cpus.milli / 1000).sum();
    reservation.cpus.is_none_or(|cpus| cpus >= there)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{SlurmSettings, node, parse_nodes};
    use super::*;

    // As Slurm 22.05 writes them; the values are made up.
    const RECORDS: &str = "\
ReservationName=night StartTime=2026-11-16T06:04:38 EndTime=2026-11-16T07:04:38 Duration=01:00:00 Nodes=n[3-4] NodeCnt=2 CoreCnt=128 Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=128 Users=ada Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)
ReservationName=later StartTime=2026-11-17T08:04:38 EndTime=2026-11-17T09:04:38 Duration=01:00:00 Nodes=n1 NodeCnt=1 CoreCnt=64 Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=64 Users=ada Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)
ReservationName=cores StartTime=2026-11-16T06:04:38 EndTime=2026-11-16T07:04:38 Duration=01:00:00 Nodes=n2 NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=(null) Flags=IGNORE_JOBS TRES=cpu=4 Users=ada Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)
";

    fn shown(text: &str, own: Option<&str>) -> String {
        let record = |number| {
            format!("NodeName=n{number} Arch=x86_64 CPUTot=64 RealMemory=1000 State=IDLE Partitions=main\n")
        };
        let records: String = (1..=4).map(record).collect();
        let settings = SlurmSettings::default();
        let mut nodes: Vec<Node> =
            parse_nodes(&records).iter().map(|record| node(record, &settings).0).collect();
        keep_to_reservations(&mut nodes, &parse_reservations(text), own);
        let line = |node: &Node| format!("{}: {}", node.name, node.cordoned.as_deref().unwrap_or("open"));
        nodes.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn nodes_that_are_kept_for_others_are_closed() {
        insta::assert_snapshot!(shown(RECORDS, None), @r"
        n1: open
        n2: open
        n3: Slurm keeps it for the reservation night
        n4: Slurm keeps it for the reservation night
        ");
        insta::assert_snapshot!(shown("No reservations in the system\n", None).replace('\n', " "), @"n1: open n2: open n3: open n4: open");
    }

    #[test]
    fn a_site_with_a_reservation_of_its_own_has_its_nodes_only() {
        insta::assert_snapshot!(shown(RECORDS, Some("evening,night")), @r"
        n1: it is not in the reservation evening,night now
        n2: it is not in the reservation evening,night now
        n3: open
        n4: open
        ");
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(text in "(ReservationName=|Nodes=|State=ACTIVE|TRES=cpu=|[ a-z0-9,=\\[\\]-]|\n){0,60}") {
            shown(&text, Some("night"));
        }
    }
}
