//! From fake tools on a path to a node with devices: everything between but the driver.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use danlu_device::inventory::{Inventory, look};
use danlu_device::machine::Machine;
use danlu_testkit::FakeAscend;
use danlu_types::Health;

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/npu-smi");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn machine(fake: &FakeAscend) -> Machine {
    let path = vec![fake.bin()];
    Machine { root: fake.root().to_owned(), path, nvml: false, tool_limit: Duration::from_secs(30) }
}

fn outline(found: &Inventory) -> String {
    let mut text = String::new();
    for device in &found.node.devices {
        let wiring = &device.wiring;
        let _ = writeln!(
            text,
            "{} {} {} {:?} island {} numa {:?} address {} super-device {:?}",
            device.index,
            device.model,
            device.memory,
            device.health,
            device.island,
            wiring.numa,
            wiring.address.map_or("-".to_owned(), |address| address.to_string()),
            wiring.super_device,
        );
    }
    for (node, cpus) in &found.node.topology.numa {
        let _ = writeln!(text, "memory node {node}: processors {cpus}");
    }
    if let Some(pod) = found.node.topology.super_pod {
        let _ = writeln!(text, "super-pod {pod}");
    }
    for remark in &found.remarks {
        let _ = writeln!(text, "remark: {remark}");
    }
    text
}

#[test]
fn a_machine_of_the_first_generation() {
    let fake = FakeAscend::new(&fixture("info-910A-8-one-warning.txt"));
    fake.write("etc/hccn.conf", "address_0=192.168.10.1\naddress_1=192.168.20.1\nnetmask_0=255.255.255.0\n");
    fake.answer("hccn_tool", "-i 2 -ip -g", "ipaddr:192.168.30.1\nnetmask:255.255.255.0\n");
    fake.write("sys/bus/pci/devices/0000:1b:00.0/numa_node", "1\n");
    fake.write("sys/devices/system/node/node0/cpulist", "0-23\n");
    fake.write("sys/devices/system/node/node1/cpulist", "24-47\n");
    insta::assert_snapshot!(outline(&look(machine(&fake))), @"
    0 910A 32Gi Ok island 0 numa Some(1) address 192.168.10.1 super-device None
    1 910A 32Gi Ok island 0 numa None address 192.168.20.1 super-device None
    2 910A 32Gi Ok island 0 numa None address 192.168.30.1 super-device None
    3 910A 32Gi Warning island 0 numa None address - super-device None
    4 910A 32Gi Ok island 1 numa None address - super-device None
    5 910A 32Gi Ok island 1 numa None address - super-device None
    6 910A 32Gi Ok island 1 numa None address - super-device None
    7 910A 32Gi Ok island 1 numa None address - super-device None
    memory node 0: processors 0-23
    memory node 1: processors 24-47
    ");
}

#[test]
fn a_machine_that_draws_its_topology() {
    let fake = FakeAscend::new(&fixture("info-910B3-8-busy.txt"));
    let mut topology = "       NPU0 NPU1 NPU2 NPU3 NPU4 NPU5 NPU6 NPU7 CPU Affinity\n".to_owned();
    for row in 0..8 {
        let links: Vec<_> = (0..8).map(|column| if row == column { "X" } else { "HCCS" }).collect();
        let near = if row < 4 { "24-47" } else { "0-23" };
        let _ = writeln!(topology, "NPU{row}   {} {near}", links.join(" "));
    }
    fake.answer("npu-smi", "info -t topo", &topology);
    fake.write("sys/devices/system/node/node0/cpulist", "0-23\n");
    fake.write("sys/devices/system/node/node1/cpulist", "24-47\n");
    insta::assert_snapshot!(outline(&look(machine(&fake))), @"
    0 910B3 64Gi Ok island 0 numa Some(1) address - super-device None
    1 910B3 64Gi Ok island 0 numa Some(1) address - super-device None
    2 910B3 64Gi Ok island 0 numa Some(1) address - super-device None
    3 910B3 64Gi Ok island 0 numa Some(1) address - super-device None
    4 910B3 64Gi Ok island 0 numa Some(0) address - super-device None
    5 910B3 64Gi Ok island 0 numa Some(0) address - super-device None
    6 910B3 64Gi Ok island 0 numa Some(0) address - super-device None
    7 910B3 64Gi Ok island 0 numa Some(0) address - super-device None
    memory node 0: processors 0-23
    memory node 1: processors 24-47
    ");
}

#[test]
fn a_super_pod_of_dies() {
    let fake = FakeAscend::new(&fixture("info-A3-8x2-busy.txt"));
    for card in 0..8 {
        for die in 0..2 {
            let text = format!("SDID : {}\nSuper Pod ID : 3\n", 4_194_304 + card * 2 + die);
            fake.answer("npu-smi", &format!("info -t spod-info -i {card} -c {die}"), &text);
        }
    }
    insta::assert_snapshot!(outline(&look(machine(&fake))), @"
    0 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194304)
    1 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194305)
    2 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194306)
    3 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194307)
    4 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194308)
    5 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194309)
    6 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194310)
    7 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194311)
    8 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194312)
    9 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194313)
    10 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194314)
    11 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194315)
    12 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194316)
    13 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194317)
    14 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194318)
    15 Ascend910 64Gi Ok island 0 numa None address - super-device Some(4194319)
    super-pod 3
    ");
}

#[test]
fn cards_of_two_chips_that_are_numbered_from_one() {
    let fake = FakeAscend::new(&fixture("info-310P3-duo-2cards.txt"));
    insta::assert_snapshot!(outline(&look(machine(&fake))), @"
    0 310P3 44280Mi Ok island 0 numa None address - super-device None
    1 310P3 44280Mi Ok island 1 numa None address - super-device None
    2 310P3 44280Mi Ok island 2 numa None address - super-device None
    3 310P3 44280Mi Ok island 3 numa None address - super-device None
    ");
}

#[test]
fn a_device_that_has_failed_is_not_usable() {
    let fake = FakeAscend::new(&fixture("info-910B4-1-alarm.txt"));
    let found = look(machine(&fake));
    assert_eq!(found.node.devices[0].health, Health::Failed);
    assert!(!found.node.devices[0].usable());
}

#[test]
fn a_machine_without_tools_has_no_devices_and_no_remarks() {
    let fake = FakeAscend::new("");
    let found = look(Machine { path: Vec::new(), ..machine(&fake) });
    assert!(found.node.devices.is_empty() && found.remarks.is_empty());
    assert!(found.reader.read().unwrap().is_empty());
}

#[test]
fn a_driver_in_trouble_is_a_remark() {
    let fake = FakeAscend::new("dcmi model initialized failed, because the device is used. ret is -8020\n");
    let found = look(machine(&fake));
    assert!(found.node.devices.is_empty());
    insta::assert_snapshot!(found.remarks.join("\n"), @"npu-smi cannot reach the driver: dcmi model initialized failed, because the device is used. ret is -8020");
}

#[test]
fn a_tool_that_hangs_is_given_up_and_killed() {
    let fake = FakeAscend::new("");
    fake.hang("npu-smi");
    let machine = Machine { tool_limit: Duration::from_millis(200), ..machine(&fake) };
    let begun = Instant::now();
    let found = look(machine);
    assert!(begun.elapsed() < Duration::from_mins(1), "it sleeps for 1000 s");
    insta::assert_snapshot!(found.remarks.join("\n"), @"`npu-smi info` gave no answer within 200ms; its devices are not offered until it does");
}

#[test]
fn readings_tell_who_holds_a_device() {
    let table = fixture("info-910B3-8-busy.txt");
    // A process of this test's own in place of one that the table names.
    let mut child =
        Command::new("sleep").arg("1000").env("DANLU_JOB_ID", "42").env("LC_ALL", "C").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let fake = FakeAscend::new(&table.replace("2563382 ", &format!("{pid:<8}")));
    let readings = look(machine(&fake)).reader.read();
    child.kill().unwrap();
    child.wait().unwrap();
    let readings = readings.unwrap();
    assert_eq!(readings.len(), 8);
    let [ours] = &readings[&2].processes[..] else { panic!("one process holds device 2") };
    assert_eq!((ours.pid, ours.name.as_str(), ours.job.map(|job| job.0)), (pid, "sleep", Some(42)));
    assert!(ours.user.is_some());
    let [other] = &readings[&3].processes[..] else { panic!("one process holds device 3") };
    assert_eq!((other.pid, other.job), (2_071_698, None));
    assert_eq!(readings[&2].utilisation_percent, Some(63));
    assert!(readings[&0].processes.is_empty());
}

#[test]
fn issue_15_a_container_with_gaps_is_known_by_physical_numbers() {
    let table = "+---+\n| npu-smi 26.0.rc2  Version: 26.0.rc2 |\n+---+\n\
        | NPU  Name      | Health | Power(W) Temp(C) Hugepages-Usage(page) |\n\
        | Chip Phy-ID    | Bus-Id | AICore(%) Memory-Usage(MB) HBM-Usage(MB) |\n+===+\n\
        | 0 Ascend910 | OK | 170.0 36 0 / 0 |\n| 0 0 | 0000:9D:00.0 | 0 0 / 0 2887 / 65536 |\n+---+\n\
        | 0 Ascend910 | OK | - 36 0 / 0 |\n| 1 1 | 0000:9F:00.0 | 0 0 / 0 2887 / 65536 |\n+===+\n\
        | 7 Ascend910 | OK | 170.0 36 0 / 0 |\n| 0 14 | 0000:19:00.0 | 0 0 / 0 2887 / 65536 |\n+---+\n\
        | 7 Ascend910 | OK | - 36 0 / 0 |\n| 1 15 | 0000:1B:00.0 | 0 0 / 0 2887 / 65536 |\n+===+\n";
    let fake = FakeAscend::new(table);
    let mapping = "\tNPU ID\tChip ID\tChip Logic ID\tChip Phy-ID\tChip Name\n\
        \t0\t0\t0\t0\tAscend910\n\t0\t1\t1\t1\tAscend910\n\
        \t7\t0\t2\t14\tAscend910\n\t7\t1\t3\t15\tAscend910\n";
    fake.answer("npu-smi", "info -m", mapping);
    for physical in [0, 1, 2, 3, 14, 15] {
        fake.answer("hccn_tool", &format!("-i {physical} -ip -g"), &format!("ipaddr:10.1.0.{physical}\n"));
    }
    let found = look(machine(&fake));
    let seen: Vec<String> = found
        .node
        .devices
        .iter()
        .map(|device| {
            let address = device.wiring.address.map(|address| address.to_string()).unwrap_or_default();
            format!("{} is davinci{} at {address}", device.index, device.physical())
        })
        .collect();
    assert_eq!(
        seen,
        [
            "0 is davinci0 at 10.1.0.0",
            "1 is davinci1 at 10.1.0.1",
            "2 is davinci14 at 10.1.0.14",
            "3 is davinci15 at 10.1.0.15"
        ]
    );
    let wiring = &found.node.devices[3].wiring;
    assert_eq!((wiring.bus.as_deref(), wiring.card, wiring.chip), (Some("0000:1B:00.0"), Some(7), Some(1)));
}

/// The rows of some cards of a table, with all that stands around them.
fn only_cards(table: &str, cards: &[u32]) -> String {
    let lines: Vec<&str> = table.lines().collect();
    let mut kept = String::new();
    let mut at = 0;
    while at < lines.len() {
        let card =
            lines[at].strip_prefix("| ").and_then(|row| row.split_whitespace().next()?.parse::<u32>().ok());
        match card.filter(|_| lines[at].contains("910")) {
            // Two rows and the border below them.
            Some(card) if !cards.contains(&card) => at += 3,
            _ => {
                let _ = writeln!(kept, "{}", lines[at]);
                at += 1;
            }
        }
    }
    kept
}

#[test]
fn issue_15_cards_of_a_910a_keep_their_rings_in_a_container() {
    let fake = FakeAscend::new(&only_cards(&fixture("info-910A-8-one-warning.txt"), &[1, 4]));
    fake.answer(
        "npu-smi",
        "info -m",
        "\tNPU ID\tChip ID\tChip Logic ID\tChip Name\n\t1\t0\t0\tAscend 910A\n\t4\t0\t1\tAscend 910A\n",
    );
    let seen = |found: Inventory| -> Vec<(u32, u32, u32)> {
        let devices = found.node.devices.iter();
        devices.map(|device| (device.index, device.physical(), device.island)).collect()
    };
    assert_eq!(seen(look(machine(&fake))), [(0, 1, 0), (1, 4, 1)], "index, number of HCCL, ring");
    // Some boards count their cards from elsewhere; then `/dev` has the numbers of the runtime.
    fake.write("dev/davinci0", "");
    fake.write("dev/davinci1", "");
    assert_eq!(seen(look(machine(&fake))), [(0, 0, 0), (1, 1, 0)]);
}

#[test]
fn issue_15_a_table_that_is_cut_off_is_told_and_not_believed() {
    let whole = fixture("info-910B3-8-busy.txt");
    let rows: Vec<&str> = whole.lines().take(13).collect();
    let fake = FakeAscend::new(&rows.join("\n"));
    let found = look(machine(&fake));
    let remarks = found.remarks.join("\n");
    assert!(remarks.contains("cut off after 2 devices"), "{remarks}");
    assert!(found.reader.read().unwrap_err().contains("cut off"));
    fake.answer("npu-smi", "info", &whole);
    assert_eq!(found.reader.read().unwrap().len(), 2);
}

#[test]
fn issue_15_colours_and_missing_figures_are_not_taken_for_values() {
    let plain = fixture("info-910B4-1-alarm.txt");
    let fake = FakeAscend::new(
        &plain.replace("910B4", "\u{1b}[1m910B4\u{1b}[0m").replace("Alarm", "\u{1b}[31mAlarm\u{1b}[0m"),
    );
    let device = look(machine(&fake)).node.devices.remove(0);
    assert_eq!((device.model.as_str(), device.health), ("910B4", Health::Failed));

    let used = |row: &str| {
        let fake = FakeAscend::new(&plain.lines().fold(String::new(), |text, line| {
            let line = if line.contains("32768") { row } else { line };
            text + line + "\n"
        }));
        look(machine(&fake)).reader.read().unwrap().remove(&0).unwrap().memory_used
    };
    assert_eq!(used("| 0 | 0000:C1:00.0 | 0 0 / 0 - / 32768 |"), None);
    assert_eq!(used("| 0 | 0000:C1:00.0 | 0 0 / 0 NA / 32768 |"), None);
    assert!(used("| 0 | 0000:C1:00.0 | 0 0 / 0 12 / 32768 |").is_some());
}
