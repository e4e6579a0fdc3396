//! What is wrong, said with the place where it is.

use danlu_ranktable::{Server, Version, generate, parse, validate};
use danlu_types::Family;

use super::{cluster, listed, super_pods};

fn verdict(servers: Vec<Server>, version: Version, family: Family) -> String {
    listed(&validate(&generate(servers, version).unwrap(), Some(family)))
}

#[test]
fn ranks_with_gaps_or_twice_are_named() {
    let mut servers = cluster(2, 2);
    servers[1].devices[0].rank = 0;
    servers[1].devices[1].rank = 7;
    insta::assert_snapshot!(verdict(servers, Version::ServerList, Family::A2), @"
    wrong: `server_list[1].device[0].rank_id` is 0, as is `server_list[0].device[0].rank_id`
    wrong: `server_list[1]` has ranks from 0 to 7 with others between them; the ranks of a server must be a block
    wrong: `server_list` lacks rank 2 and 1 more; ranks run from 0 to 3
    ");
}

#[test]
fn ranks_of_one_server_must_stand_together() {
    let mut servers = cluster(2, 2);
    servers[0].devices[1].rank = 2;
    servers[1].devices[0].rank = 1;
    insta::assert_snapshot!(verdict(servers, Version::ServerList, Family::A2), @"
    wrong: `server_list[0]` has ranks from 0 to 2 with others between them; the ranks of a server must be a block
    wrong: `server_list[1]` has ranks from 1 to 3 with others between them; the ranks of a server must be a block
    ");
}

#[test]
fn the_first_generation_stays_within_a_ring() {
    let mut across = cluster(1, 2);
    across[0].devices[0].device = 3;
    across[0].devices[1].device = 4;
    insta::assert_snapshot!(verdict(across, Version::ServerList, Family::First), @"wrong: `server_list[0]` uses devices 3, 4 of both rings; take all from 0 to 3 or all from 4 to 7");
    insta::assert_snapshot!(verdict(cluster(1, 6), Version::ServerList, Family::First), @"wrong: `server_list[0]` uses 6 devices; the 910A trains with 1, 2, 4 or 8 per server");
    assert_eq!(verdict(cluster(1, 6), Version::ServerList, Family::A2), "nothing is wrong");
}

#[test]
fn servers_should_be_alike() {
    let mut servers = cluster(2, 4);
    servers[1].devices.truncate(2);
    insta::assert_snapshot!(verdict(servers.clone(), Version::ServerList, Family::First), @"wrong: `server_list` has servers with 2 and with 4 devices; the 910A needs the same number on each");
    insta::assert_snapshot!(verdict(servers, Version::ServerList, Family::A2), @"doubtful: `server_list` has servers with 2 and with 4 devices; HCCL is made for the same number on each");
}

#[test]
fn addresses_are_addresses_and_belong_to_one_device() {
    let mut servers = cluster(2, 2);
    servers[0].devices[1].address = Some("loop".to_owned());
    servers[1].devices[0].address = Some("192.168.10.1".to_owned());
    servers[1].devices[1].address = None;
    insta::assert_snapshot!(verdict(servers, Version::ServerList, Family::A2), @"
    wrong: `server_list[0].device[1].device_ip` is `loop`, which is not an address
    wrong: `server_list[1].device[0].device_ip` is 192.168.10.1, as is `server_list[0].device[0].device_ip`
    wrong: `server_list[1].device[1].device_ip` is missing: servers reach each other by it; on `10.0.0.2` ask `hccn_tool -i 1 -ip -g` or look for `address_1` in /etc/hccn.conf
    ");
}

#[test]
fn the_first_generation_needs_addresses_on_one_server_too() {
    let mut servers = cluster(1, 1);
    servers[0].devices[0].address = None;
    insta::assert_snapshot!(verdict(servers, Version::ServerList, Family::First), @"wrong: `server_list[0].device[0].device_ip` is missing: the 910A always needs it; on `10.0.0.1` ask `hccn_tool -i 0 -ip -g` or look for `address_0` in /etc/hccn.conf");
}

#[test]
fn super_pods_stand_together_and_count_their_devices() {
    let mut servers = super_pods(2, 2, 2);
    servers[1].super_pod = Some("1".to_owned());
    servers[2].super_pod = Some("0".to_owned());
    insta::assert_snapshot!(verdict(servers, Version::SuperPodList, Family::A3), @"
    wrong: `server_list[2]` is of super-pod `0`, whose other servers stand apart; list them together
    wrong: `server_list[2].device[0].super_device_id` is 0, as is `server_list[0].device[0].super_device_id` of the same super-pod
    wrong: `server_list[2].device[1].super_device_id` is 1, as is `server_list[0].device[1].super_device_id` of the same super-pod
    wrong: `server_list[3]` is of super-pod `1`, whose other servers stand apart; list them together
    wrong: `server_list[3].device[0].super_device_id` is 2, as is `server_list[1].device[0].super_device_id` of the same super-pod
    wrong: `server_list[3].device[1].super_device_id` is 3, as is `server_list[1].device[1].super_device_id` of the same super-pod
    ");
}

#[test]
fn an_a3_takes_both_dies_of_a_module() {
    let mut servers = cluster(1, 2);
    servers[0].devices[0].device = 1;
    servers[0].devices[1].device = 2;
    insta::assert_snapshot!(verdict(servers, Version::ServerList, Family::A3), @"doubtful: `server_list[0]` uses dies 1, 2; take both of each module, as 0 and 1");
    insta::assert_snapshot!(verdict(cluster(1, 3), Version::ServerList, Family::A3), @"wrong: `server_list[0]` uses 3 dies; the A3 trains with one or with whole pairs");
}

#[test]
fn a_version_that_the_hardware_does_not_read_is_refused() {
    insta::assert_snapshot!(verdict(cluster(1, 2), Version::GroupList, Family::A2), @"wrong: `version` is `group_list`; the A2 family reads `1.0`");
    insta::assert_snapshot!(verdict(cluster(1, 2), Version::BoardId, Family::First), @"doubtful: `version` is `board_id`, which is kept for old programs; use `1.0`");
}

#[test]
fn several_processes_of_one_device_need_ports_and_newer_hardware() {
    let mut servers = cluster(1, 2);
    servers[0].devices[1].device = 0;
    servers[0].devices[1].address = Some("192.168.10.1".to_owned());
    insta::assert_snapshot!(verdict(servers.clone(), Version::ServerList, Family::A2), @"wrong: `server_list[0].device[1].device_id` 0 is there twice on server `10.0.0.1`");
    for (device, port) in servers[0].devices.iter_mut().zip(["16666", "16667"]) {
        device.extra.insert("device_port".to_owned(), port.into());
    }
    assert_eq!(verdict(servers.clone(), Version::ServerList, Family::A2), "nothing is wrong");
    assert_ne!(verdict(servers, Version::ServerList, Family::First), "nothing is wrong");
}

#[test]
fn a_written_table_may_state_wrong_counts_and_kinds() {
    let text = r#"{"version": "1.0", "server_count": 3, "status": "done", "server_list": [
        {"server_id": "a", "device": [{"device_id": 0, "device_ip": "10.0.0.1", "rank_id": "0"}]}]}"#;
    insta::assert_snapshot!(listed(&parse(text).unwrap().findings), @"
    wrong: `status` should be `completed`: readers wait until it is
    wrong: `server_list[0].device[0].device_id` is 0; this version writes it as a text
    wrong: `server_count` is 3; this version writes it as a text
    wrong: `server_count` says 3; counted are 1
    ");
}

#[test]
fn what_is_no_table_is_refused_with_the_place() {
    let refusals: Vec<String> = [
        "",
        "[]",
        "{}",
        r#"{"version": "3.0", "server_list": []}"#,
        r#"{"server_list": []}"#,
        r#"{"version": "1.0", "server_list": {}}"#,
        r#"{"version": "1.0", "server_list": [{"server_id": "a", "device": [{"device_id": "0"}]}]}"#,
        r#"{"version": "1.0", "server_list": [{"server_id": "a", "device": [{"device_id": "x", "rank_id": "0"}]}]}"#,
        r#"{"group_list": [{"instance_list": []}, {"instance_list": []}]}"#,
        r#"{"version": "2.0", "peer_list": [], "edge_list": []}"#,
        r#"{"version": "1.2", "server_list": [], "super_pod_list": [{"super_pod_id": "0", "server_list": [{"server_id": "b"}]}]}"#,
    ]
    .iter()
    .map(|text| parse(text).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(refusals.join("\n"), @"
    the rank table is not JSON
    `the file` should be an object
    not a rank table: it has neither `server_list`, nor `group_list`, nor `rank_list`
    version `3.0` of rank tables is unknown; known are `1.0`, `group_list`, `board_id`, `1.2` or `2.0`
    `version` is missing
    `server_list` should be a list
    `server_list[0].device[0].rank_id` is missing
    `server_list[0].device[0].device_id` should be a whole number
    `group_list` has 2 groups; rank tables with other than one are not known
    this is the topology file that belongs to a rank table of version 2.0, not the table itself; name the file with `rank_list`
    `super_pod_list[0].server_list[0]` names server `b`, which `server_list` does not have
    ");
}

/// What `parse` finds in a text, or why it refuses it.
fn form(text: &str) -> String {
    match parse(text) {
        Ok(reading) => listed(&reading.findings),
        Err(error) => format!("refused: {error}"),
    }
}

#[test]
fn issue_15_tables_that_readers_take_differently_are_named() {
    let table = r#"{"status": "completed", "version": "1.0", "server_count": "1", "server_list": [
        {"server_id": "10.0.0.1", "device": [{"device_id": "0", "device_ip": "192.168.0.1", "rank_id": "0"}]}]}"#;
    assert_eq!(form(table), "nothing is wrong");
    let leading = table.replace(r#""rank_id": "0""#, r#""rank_id": "00""#);
    let twice = table.replace(r#""rank_id": "0""#, r#""rank_id": "1", "rank_id": "0""#);
    let pods = table.replace(r#""server_list""#, r#""super_pod_list": [], "server_list""#);
    let mark = format!("\u{feff}{table}");
    let comment = table.replace('\n', " // the first server\n");
    let unsorted = r#"{"status": "completed", "group_count": "1", "group_list": [{"group_name": "x", "instance_count": "2", "device_count": "2",
        "instance_list": [
        {"pod_name": "job-1", "server_id": "10.0.0.2", "devices": [{"device_id": "0", "device_ip": "192.168.0.6"}]},
        {"pod_name": "job-0", "server_id": "10.0.0.1", "devices": [{"device_id": "0", "device_ip": "192.168.0.5"}]}]}]}"#;
    let port = r#"{"status": "completed", "version": "2.0", "rank_count": 1, "rank_list": [{"rank_id": 0, "local_id": 0, "device_id": 0,
        "level_list": [{"net_layer": 0, "net_instance_id": "a", "net_type": "TOPO_FILE_DESC",
        "rank_addr_list": [{"addr_type": "EID", "addr": "0", "ports": ["0/1", "0-0"]}]}]}]}"#;
    let found = [&leading, &twice, &pods, &mark, &comment, unsorted, port].map(form);
    insta::assert_snapshot!(found.join("\n"), @r#"
    wrong: `server_list[0].device[0].rank_id` is "00"; write it as "0"
    wrong: `server_list[0].device[0].rank_id` is there twice; readers keep one of the two
    wrong: `super_pod_list` is of version 1.2, and `version` says 1.0: HCCL would see no super-pods
    doubtful: `the file` begins with a byte order mark; save it as UTF-8 without one
    refused: line 1 has a comment, and JSON has none; remove the comments
    wrong: `group_list[0].instance_list` is not in the order of the pods' numbers: some readers number ranks by those, others by place; sort it
    wrong: `rank_list[0].level_list[0].rank_addr_list[0].ports` has `0-0`; a port is written as `die/port`, such as `0/1`
    "#);
}
