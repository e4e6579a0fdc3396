//! Tables that were written for these tests, whole.

use danlu_device::npu_smi::{
    NpuLink, NpuSmiError, configured_addresses, mapping, matrix, report, super_pod_place, tool_address,
};

use super::{fixture_folder, outline, texts};

#[test]
fn tables_read_whole() {
    for (name, text) in texts(&fixture_folder(), "info") {
        insta::assert_snapshot!(name.trim_end_matches(".txt"), outline(&report(&text).unwrap()));
    }
}

#[test]
fn a_machine_without_devices_is_no_error_and_a_dead_driver_is() {
    assert!(report("There is no NPU card on this server.").unwrap().chips.is_empty());
    insta::assert_snapshot!(report("dcmi model initialized failed, because the device is used. ret is -8020").unwrap_err(), @"npu-smi cannot reach the driver: dcmi model initialized failed, because the device is used. ret is -8020");
    insta::assert_snapshot!(report("").unwrap_err(), @"npu-smi printed no table of devices: nothing at all");
    assert_eq!(report("bash: oops"), Err(NpuSmiError::NoTable("bash: oops".to_owned())));
}

#[test]
fn what_the_tool_says_beside_its_table_is_kept() {
    let text = texts(&fixture_folder(), "info-910B4-1").into_values().next().unwrap();
    let warned = format!("{text}\n[WARNING]The driver package may not be completely installed, check it.\n");
    let report = report(&warned).unwrap();
    assert_eq!(report.chips.len(), 1);
    assert_eq!(report.remarks, ["[WARNING]The driver package may not be completely installed, check it."]);
}

#[test]
fn an_a3_maps_two_chips_of_each_card_to_devices() {
    let text = "\tNPU ID                         Chip ID                        Chip Logic ID                  Chip Phy-ID                    Chip Name\n\
                \t0                              0                              0                              0                              Ascend910\n\
                \t0                              1                              1                              1                              Ascend910\n\
                \t0                              2                              -                              -                              Mcu\n\
                \t1                              0                              2                              2                              Ascend910\n";
    let devices: Vec<_> = mapping(text).iter().map(|chip| (chip.npu, chip.chip, chip.device)).collect();
    assert_eq!(devices, [(0, 0, 0), (0, 1, 1), (1, 0, 2)]);
}

#[test]
fn devices_that_reach_each_other_are_an_island() {
    let text = "       NPU0  NPU1  NPU2  NPU3  CPU Affinity\n\
                NPU0   X     HCCS  SYS   SYS   0-23\n\
                NPU1   HCCS  X     SYS   SYS   0-23\n\
                NPU2   SYS   SYS   X     SIO   24-47,72-95\n\
                NPU3   SYS   SYS   SIO   X     NA\n\nLegend:\n  X = Self\n";
    let matrix = matrix(text);
    assert_eq!(matrix.islands().into_values().collect::<Vec<_>>(), [0, 0, 2, 2]);
    assert_eq!(matrix.links[&0][&1], NpuLink::Direct);
    assert_eq!(matrix.links[&1][&2], NpuLink::Host);
    assert_eq!(matrix.near_cpus[&2], "24-47,72-95");
    assert!(!matrix.near_cpus.contains_key(&3));
}

#[test]
fn addresses_come_from_the_file_or_the_tool() {
    let file = "address_0=192.168.10.1\nnetmask_0=255.255.255.0\n address_11 = fd00::1 \naddress_2=\naddress_x=1.1.1.1\n";
    let found: Vec<String> =
        configured_addresses(file).iter().map(|(device, address)| format!("{device} {address}")).collect();
    assert_eq!(found, ["0 192.168.10.1", "11 fd00::1"]);
    assert_eq!(tool_address("ipaddr:fd00::2\nnetmask:64\n"), "fd00::2".parse().ok());
    assert_eq!(tool_address("Cmd os failed"), None);
}

#[test]
fn a_chip_says_where_in_its_super_pod_it_is() {
    let text = "\tSDID                           : 4194304\n\tScale Type                     : 1\n\tSuper Pod Size : 384\n\tSuper Pod ID                   : 3\n";
    let place = super_pod_place(text).unwrap();
    assert_eq!((place.super_device, place.super_pod), (4_194_304, Some(3)));
    assert_eq!(super_pod_place("SDID : 0x10\n").unwrap().super_device, 16);
    assert_eq!(super_pod_place("This device does not support querying spod-info."), None);
}
