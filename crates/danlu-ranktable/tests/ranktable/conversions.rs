//! From version to version: what all know stays, and what one lacks is asked for rather than made up.

use danlu_ranktable::{RankTable, Version, convert, generate, left_out, parse, render};

use super::{cluster, outline, super_pods};

#[test]
fn the_first_generations_versions_turn_into_each_other_and_back() {
    let table = generate(cluster(2, 8), Version::ServerList).unwrap();
    for way in [[Version::GroupList, Version::BoardId], [Version::BoardId, Version::GroupList]] {
        let there = way.into_iter().fold(table.clone(), |table, to| convert(table, to).unwrap());
        assert_eq!(convert(there, Version::ServerList).unwrap(), table, "{way:?}");
    }
}

#[test]
fn pods_of_one_machine_become_one_server() {
    let text = r#"{"status": "completed", "group_count": "1", "group_list": [{"group_name": "x", "instance_count": "2", "instance_list": [
        {"pod_name": "job-0", "server_id": "10.0.0.1", "devices": [{"device_id": "4", "device_ip": "192.168.0.5"}]},
        {"pod_name": "job-1", "server_id": "10.0.0.1", "devices": [{"device_id": "5", "device_ip": "192.168.0.6"}]}]}]}"#;
    let table = convert(parse(text).unwrap().table, Version::ServerList).unwrap();
    insta::assert_snapshot!(outline(&table), @"
    version 1.0, 2 ranks
    10.0.0.1
      rank 0   device 4  192.168.0.5
      rank 1   device 5  192.168.0.6
    ");
}

#[test]
fn a_super_pod_can_be_taken_for_single_servers_but_not_back() {
    let pods = generate(super_pods(2, 1, 2), Version::SuperPodList).unwrap();
    let plain = convert(pods, Version::ServerList).unwrap();
    insta::assert_snapshot!(outline(&plain), @"
    version 1.0, 4 ranks
    10.0.0.1  host 172.16.0.100
      rank 0   device 0  192.168.0.1
      rank 1   device 1  192.168.0.2
    10.0.0.2  host 172.16.0.101
      rank 2   device 0  192.168.1.1
      rank 3   device 1  192.168.1.2
    ");
    insta::assert_snapshot!(convert(plain, Version::SuperPodList).unwrap_err(), @"a rank table of version 1.2 needs `super_device_id` of device 0 of server `10.0.0.1` and of 3 more; take `SDID` from `npu-smi info -t spod-info`");
}

#[test]
fn what_is_missing_is_said_with_the_place_to_find_it() {
    let refused = |table: RankTable, to| convert(table, to).unwrap_err().to_string();
    let mut servers = cluster(1, 4);
    for device in &mut servers[0].devices[1..] {
        device.address = None;
    }
    let table = generate(servers, Version::ServerList).unwrap();
    insta::assert_snapshot!(refused(table.clone(), Version::GroupList), @"a rank table of version group_list needs `device_ip` of device 1 of server `10.0.0.1` and of 2 more; take it from `address_N` in /etc/hccn.conf or from `hccn_tool -i N -ip -g`");
    insta::assert_snapshot!(refused(table, Version::RankList), @"a rank table of version 2.0 needs the addresses of each rank in every layer of the network, which version 1.0 does not have; take them from the machine's own `2.0` table");

    let mut known = super_pods(1, 1, 2);
    known[0].super_pod = None;
    insta::assert_snapshot!(generate(known, Version::SuperPodList).unwrap_err(), @"a rank table of version 1.2 needs the super-pod of server `10.0.0.1`; take `Super Pod ID` from `npu-smi info -t spod-info`");

    let mut mixed = cluster(2, 2);
    mixed[0].devices[1].rank = 2;
    mixed[1].devices[0].rank = 1;
    let mixed = generate(mixed, Version::ServerList).unwrap();
    insta::assert_snapshot!(refused(mixed, Version::GroupList), @"ranks of server `10.0.0.1` stand between those of others, which version group_list cannot say; list each server's devices together");
}

#[test]
fn unknown_fields_pass_through_where_the_versions_are_of_a_kind() {
    let text = r#"{"status": "completed", "version": "1.0", "server_count": "1", "cluster_list": [{"cluster_id": "c"}], "server_list": [
        {"server_id": "a", "pod_ip": "127.0.0.1", "device": [{"device_id": "0", "rank_id": "0", "numa_id": "1"}]}]}"#;
    let table = parse(text).unwrap().table;
    insta::assert_snapshot!(render(&table), @r#"
    {
      "status": "completed",
      "version": "1.0",
      "server_count": "1",
      "server_list": [
        {
          "server_id": "a",
          "device": [
            {
              "device_id": "0",
              "rank_id": "0",
              "numa_id": "1"
            }
          ],
          "pod_ip": "127.0.0.1"
        }
      ],
      "cluster_list": [
        {
          "cluster_id": "c"
        }
      ]
    }
    "#);
}

#[test]
fn issue_15_what_a_conversion_leaves_out_is_said() {
    let pods = generate(super_pods(2, 1, 2), Version::SuperPodList).unwrap();
    let said = |to| left_out(&pods, &convert(pods.clone(), to).unwrap()).join("\n");
    insta::assert_snapshot!(said(Version::ServerList), @"left out, because version 1.0 has no field for it: `super_device_id`, `super_pod_id`, `super_pod_list`");
    insta::assert_snapshot!(said(Version::GroupList), @"
    left out, because version group_list has no field for it: `host_ip`, `super_device_id`, `super_pod_id`, `super_pod_list`
    version group_list is for the 910A alone; an A3 cannot use it
    ");
    assert_eq!(said(Version::SuperPodList), "");
    let text = r#"{"status": "completed", "version": "1.0", "server_count": "1", "server_list": [{"server_id": "10.0.0.1", "device": [
        {"device_id": "0", "device_ip": "192.168.0.1", "device_port": "16666", "rank_id": "0"}]}]}"#;
    let table = parse(text).unwrap().table;
    let converted = convert(table.clone(), Version::GroupList).unwrap();
    assert_eq!(
        left_out(&table, &converted),
        ["left out, because version group_list has no field for it: `device_port`"]
    );
}
