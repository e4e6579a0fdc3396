//! The rank table of a running job.

use danlu_core::launch::{Present, rank_table};
use danlu_ranktable::render;
use danlu_types::{Bytes, Device, DeviceKind, Health, NodeName, Wiring};

fn worker(node: &str, address: &str, model: &str, devices: &[u32], with_addresses: bool) -> Present {
    let octet = address.rsplit('.').next().unwrap();
    let device = |index: &u32| Device {
        index: *index,
        kind: DeviceKind::Ascend,
        model: model.to_owned(),
        memory: Bytes(64 << 30),
        island: 0,
        health: Health::Ok,
        wiring: Wiring {
            address: with_addresses.then(|| format!("192.168.{index}.{octet}").parse().unwrap()),
            ..Wiring::default()
        },
    };
    Present {
        address: address.to_owned(),
        port: 0,
        node: Some(NodeName(node.to_owned())),
        super_pod: None,
        devices: devices.iter().map(device).collect(),
    }
}

fn made(workers: &[Present]) -> String {
    match rank_table(workers) {
        Ok(Some(table)) => render(&table),
        Ok(None) => "none".to_owned(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn two_workers_of_two_devices() {
    let workers =
        [worker("a", "10.0.0.1", "910B3", &[0, 1], true), worker("b", "10.0.0.2", "910B3", &[6, 7], true)];
    insta::assert_snapshot!(made(&workers));
}

#[test]
fn two_workers_of_one_node_are_one_server() {
    let workers =
        [worker("a", "10.0.0.1", "910B3", &[0, 1], true), worker("a", "10.0.0.1", "910B3", &[2, 3], true)];
    let table = rank_table(&workers).unwrap().unwrap();
    assert_eq!((table.servers().len(), table.ranks()), (1, 4));
    let between = worker("b", "10.0.0.2", "910B3", &[0, 1], true);
    let [first, last] = workers;
    insta::assert_snapshot!(made(&[first, between, last]), @"error: workers of node `a` do not follow each other, so their ranks would stand between those of others; ask for more devices per worker");
}

#[test]
fn nodes_that_share_a_name_go_by_their_addresses() {
    let same = "localhost.localdomain";
    let workers =
        [worker(same, "10.0.0.1", "910B3", &[0, 1], true), worker(same, "10.0.0.2", "910B3", &[0, 1], true)];
    let table = rank_table(&workers).unwrap().unwrap();
    let servers: Vec<&str> = table.servers().iter().map(|server| server.id.as_str()).collect();
    assert_eq!((servers, table.ranks()), (vec!["10.0.0.1", "10.0.0.2"], 4));
}

#[test]
fn nodes_that_share_an_address_go_by_their_names() {
    let workers =
        [worker("a", "127.0.0.1", "910B3", &[0], true), worker("b", "127.0.0.1", "910B3", &[1], true)];
    let table = rank_table(&workers).unwrap().unwrap();
    let ids: Vec<&str> = table.servers().iter().map(|server| server.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn a_missing_address_is_said_with_its_node_and_device() {
    let workers =
        [worker("a", "10.0.0.1", "910B3", &[0], true), worker("node-b", "10.0.0.2", "910B3", &[5], false)];
    insta::assert_snapshot!(made(&workers));
    assert!(rank_table(&workers[1..]).is_ok(), "one machine of this family needs none");
    assert!(rank_table(&[worker("a", "10.0.0.1", "910A", &[0], false)]).is_err(), "the first family does");
}

#[test]
fn what_hccl_would_refuse_is_refused_here() {
    insta::assert_snapshot!(made(&[worker("a", "10.0.0.1", "910A", &[2, 3, 4, 5], true)]));
    insta::assert_snapshot!(made(&[worker("a", "10.0.0.1", "TPU", &[0], true)]), @"error: unknown device family of model `TPU`; a rank table cannot be made");
    assert_eq!(made(&[worker("a", "10.0.0.1", "910B3", &[], true)]), "none");
}
