//! Tables that HCCL's, MindSpore's and Apulis' own documentation shows, where the folder with them is at hand.
//! Several mask their addresses with stars, which are rightly found wrong. What differs when they are written again is
//! part of the snapshot.

#![expect(clippy::disallowed_methods, reason = "the samples are files beside the repository")]

use std::fmt::Write as _;
use std::path::Path;

use danlu_ranktable::{Weight, parse, render, validate};
use danlu_types::Family;
use serde_json::Value;

const FAMILIES: [(&str, Family); 12] = [
    ("apulis-a910-hccl-1p-group_list.json", Family::First),
    ("apulis-mindspore-16p-board_id-group_list.json", Family::First),
    ("group_list-910-template2.json", Family::First),
    ("mindspore-r0.5-rank_table_2pcs-board_id.json", Family::First),
    ("mindspore-r0.5-rank_table_8pcs-board_id.json", Family::First),
    ("mindspore-rank_table_8pcs.json", Family::First),
    ("mindspore-rank_table_cross_cluster_16pcs.json", Family::A2),
    ("v1.0-300i-duo.json", Family::Inference),
    ("v1.0-910-template1.json", Family::First),
    ("v1.0-a3-ai-server-mode.json", Family::A3),
    ("v1.2-a3-superpod-2x2x4.json", Family::A3),
    ("v2.0-a5-eid-2rank.json", Family::A5),
];

#[test]
fn tables_of_others_are_read_checked_and_written_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/ranktable");
    if !folder.is_dir() {
        println!("skipped: there are no samples here");
        return;
    }
    let mut report = String::new();
    for (name, family) in FAMILIES {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let reading = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let written = render(&reading.table);
        assert_eq!(parse(&written).unwrap().table, reading.table, "{name}");
        let mut findings = reading.findings;
        findings.extend(validate(&reading.table, Some(family)));
        let wrong = findings.iter().filter(|finding| finding.weight == Weight::Wrong).count();
        let (version, servers) = (reading.table.version, reading.table.servers().len());
        let ranks = reading.table.ranks();
        let doubtful = findings.len() - wrong;
        let _ = writeln!(
            report,
            "{name}: {version} on {family}, {servers} servers, {ranks} ranks, {wrong} wrong, {doubtful} doubtful"
        );
        let before = serde_json::from_str(&text).unwrap();
        differences("", &before, &serde_json::from_str(&written).unwrap(), &mut report);
    }
    insta::assert_snapshot!(report, @r#"
    apulis-a910-hccl-1p-group_list.json: group_list on 910A, 1 servers, 1 ranks, 1 wrong, 1 doubtful
      written again: /group_list/0/group_name "worker" is "hccl_world_group"
      written again: with /group_list/0/device_count "1"
    apulis-mindspore-16p-board_id-group_list.json: board_id on 910A, 2 servers, 16 ranks, 0 wrong, 1 doubtful
    group_list-910-template2.json: group_list on 910A, 2 servers, 2 ranks, 0 wrong, 1 doubtful
    mindspore-r0.5-rank_table_2pcs-board_id.json: board_id on 910A, 1 servers, 2 ranks, 0 wrong, 1 doubtful
    mindspore-r0.5-rank_table_8pcs-board_id.json: board_id on 910A, 1 servers, 8 ranks, 0 wrong, 1 doubtful
    mindspore-rank_table_8pcs.json: 1.0 on 910A, 1 servers, 8 ranks, 8 wrong, 0 doubtful
    mindspore-rank_table_cross_cluster_16pcs.json: 1.0 on A2, 2 servers, 16 ranks, 16 wrong, 0 doubtful
    v1.0-300i-duo.json: 1.0 on 310P, 2 servers, 4 ranks, 0 wrong, 0 doubtful
    v1.0-910-template1.json: 1.0 on 910A, 2 servers, 4 ranks, 0 wrong, 0 doubtful
    v1.0-a3-ai-server-mode.json: 1.0 on A3, 2 servers, 4 ranks, 0 wrong, 0 doubtful
    v1.2-a3-superpod-2x2x4.json: 1.2 on A3, 4 servers, 16 ranks, 0 wrong, 0 doubtful
    v2.0-a5-eid-2rank.json: 2.0 on A5, 0 servers, 2 ranks, 0 wrong, 0 doubtful
    "#);
    let topology = std::fs::read_to_string(folder.join("v2.0-a5-topology-file.json")).unwrap();
    insta::assert_snapshot!(parse(&topology).unwrap_err(), @"this is the topology file that belongs to a rank table of version 2.0, not the table itself; name the file with `rank_list`");
}

fn differences(path: &str, before: &Value, after: &Value, report: &mut String) {
    match (before, after) {
        (Value::Object(left), Value::Object(right)) => {
            for (name, value) in left {
                match right.get(name) {
                    Some(other) => differences(&format!("{path}/{name}"), value, other, report),
                    None => drop(writeln!(report, "  written again: without {path}/{name}")),
                }
            }
            for (name, value) in right.iter().filter(|(name, _)| !left.contains_key(*name)) {
                let _ = writeln!(report, "  written again: with {path}/{name} {value}");
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}/{index}"), value, other, report);
            }
        }
        _ if before == after => {}
        _ => drop(writeln!(report, "  written again: {path} {before} is {after}")),
    }
}
