//! What we write: whole files where they fit a screen, outlines where not. All of it passes our own checks.

use danlu_ranktable::{INITIALIZING, RankTable, Server, Version, generate, parse, render, validate};
use danlu_types::Family;

use super::{cluster, outline, super_pods};

/// A table that its family has nothing against and that reads back as it was.
fn sound(servers: Vec<Server>, family: Family) -> RankTable {
    let version = Version::suited(family, &servers);
    let table = generate(servers, version).unwrap();
    assert_eq!(validate(&table, Some(family)), []);
    let text = render(&table);
    let reading = parse(&text).unwrap();
    assert_eq!((reading.findings, &reading.table), (vec![], &table));
    assert_eq!(render(&reading.table), text);
    table
}

#[test]
fn one_device() {
    for family in [Family::First, Family::A2] {
        insta::assert_snapshot!("one_device", render(&sound(cluster(1, 1), family)));
    }
}

#[test]
fn one_server_of_eight() {
    for family in [Family::First, Family::A2] {
        insta::assert_snapshot!("one_server_of_eight", render(&sound(cluster(1, 8), family)));
    }
}

#[test]
fn two_servers_of_eight() {
    for family in [Family::First, Family::A2] {
        insta::assert_snapshot!("two_servers_of_eight", render(&sound(cluster(2, 8), family)));
    }
}

#[test]
fn sixteen_servers_of_eight() {
    for family in [Family::First, Family::A2] {
        insta::assert_snapshot!("sixteen_servers_of_eight", outline(&sound(cluster(16, 8), family)));
    }
}

#[test]
fn two_super_pods_of_two_servers() {
    let table = sound(super_pods(2, 2, 4), Family::A3);
    assert_eq!(table.version, Version::SuperPodList);
    insta::assert_snapshot!(render(&table));
}

#[test]
fn an_a3_whose_super_pods_are_not_all_known_gets_none() {
    let mut servers = super_pods(2, 2, 4);
    servers[3].devices[1].super_device = None;
    let table = sound(servers, Family::A3);
    assert_eq!(table.version, Version::ServerList);
    assert!(!render(&table).contains("super"), "a 1.0 has no word of super-pods");
}

#[test]
fn the_same_machines_for_old_programs() {
    let pods = generate(cluster(2, 2), Version::GroupList).unwrap();
    insta::assert_snapshot!("for_old_tensorflow", render(&pods));
    let boards = generate(cluster(2, 2), Version::BoardId).unwrap();
    insta::assert_snapshot!("for_old_mindspore", render(&boards.on_architecture("x86_64")));
}

#[test]
fn a_table_without_network_addresses_is_one_for_a_single_a2() {
    let mut servers = cluster(1, 2);
    for device in &mut servers[0].devices {
        device.address = None;
    }
    sound(servers, Family::A2);
}

#[test]
fn before_the_devices_are_known_the_file_says_only_that() {
    assert_eq!(INITIALIZING, r#"{"status":"initializing"}"#);
    insta::assert_snapshot!(parse(INITIALIZING).unwrap_err(), @"the rank table is still being written: its status is `initializing`");
}
