//! Tables of single machines, put together.

use std::collections::BTreeMap;

use danlu_ranktable::{
    CannotJoin, LayeredRank, Level, RankAddress, RankTable, RankedDevice, Server, TableContent, Version,
    generate, join, numbered, parse, render, validate,
};
use danlu_types::Family;

fn server(number: u32, devices: u32) -> Vec<Server> {
    let device = |device| RankedDevice::new(device, Some(format!("192.168.{device}.{number}")));
    numbered(vec![Server::new(format!("10.0.0.{number}"), (0..devices).map(device))])
}

/// A machine of two devices that have addresses in two layers of the network.
fn layered(number: u64) -> RankTable {
    let level = |layer, kind: &str, address: String| Level {
        layer,
        instance: if layer == 0 { format!("superpod_0_{number}") } else { "cluster".to_owned() },
        kind: if layer == 0 { "TOPO_FILE_DESC" } else { "CLOS" }.to_owned(),
        addresses: vec![RankAddress {
            kind: kind.to_owned(),
            address,
            ports: vec!["0/4".to_owned()],
            extra: BTreeMap::default(),
        }],
        extra: BTreeMap::default(),
    };
    let rank = |device: u64| LayeredRank {
        rank: device,
        local: device,
        device,
        levels: vec![
            level(0, "EID", format!("{:032x}", 0x10_0000 + 16 * number + device)),
            level(3, "IPV4", format!("192.168.{number}.{device}")),
        ],
        extra: BTreeMap::default(),
    };
    RankTable {
        version: Version::RankList,
        content: TableContent::Ranks((0..2).map(rank).collect()),
        extra: BTreeMap::default(),
    }
}

#[test]
fn tables_of_one_machine_each_become_one_of_all_in_every_version() {
    for version in [Version::ServerList, Version::GroupList, Version::BoardId] {
        let one = |number| generate(server(number, 8), version).unwrap();
        let joined = join(vec![one(1), one(2)]).unwrap();
        assert_eq!(joined.ranks(), 16, "{version}");
        let together = generate(numbered([server(1, 8), server(2, 8)].concat()), version).unwrap();
        let unnamed = |table: &RankTable| render(table).replace("worker-1", "worker-0");
        assert_eq!(unnamed(&joined), unnamed(&together), "{version}");
    }
}

#[test]
fn a_layered_table_is_joined_and_passes_the_checks() {
    let joined = join(vec![layered(1), layered(2)]).unwrap();
    assert_eq!(validate(&joined, Some(Family::A5)), []);
    let text = render(&joined);
    assert_eq!(parse(&text).unwrap().table, joined);
    insta::assert_snapshot!(text);
}

#[test]
fn what_cannot_be_joined_is_said() {
    assert_eq!(join(Vec::new()), Err(CannotJoin::Nothing));
    let mixed = join(vec![layered(1), generate(server(1, 8), Version::ServerList).unwrap()]);
    insta::assert_snapshot!(mixed.unwrap_err(), @"table 1 is of version 2.0, table 2 of version 1.0; convert them to one version first");
    let twice = join(vec![layered(1), layered(1)]).unwrap();
    assert!(!validate(&twice, Some(Family::A5)).is_empty(), "the same machine twice has addresses twice");
}
