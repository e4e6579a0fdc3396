//! Outputs of real machines and of documentation, where the folder with them is at hand: what each comes to.

use std::collections::BTreeMap;

use danlu_device::npu_smi::{configured_addresses, fields, mapping, matrix, report, tool_address};

use super::{sample_folder, texts};

#[test]
fn every_table_of_the_samples_comes_to_its_devices() {
    let Some(folder) = sample_folder() else {
        println!("skipped: there are no samples here");
        return;
    };
    let mut lines = Vec::new();
    let is_table =
        |name: &str| !["info-l-", "info-m-", "info-t-"].iter().any(|other| name.starts_with(other));
    for (name, text) in texts(&folder, "info-").into_iter().filter(|(name, _)| is_table(name)) {
        let report = report(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!report.is_cut_off, "{name} is whole");
        let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
        for chip in &report.chips {
            let kind = format!("{} {:?} {}", chip.name, chip.health, chip.memory.total);
            *kinds.entry(kind).or_default() += 1;
        }
        let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
        let numbers: Vec<String> =
            report.chips.iter().map(|chip| format!("{}.{}", chip.npu, chip.number)).collect();
        let used: u64 = report.chips.iter().map(|chip| chip.memory.used.unwrap_or_default().0 >> 20).sum();
        let processes: Vec<String> =
            report.processes.iter().map(|process| format!("{} {}", process.name, process.memory)).collect();
        lines.push(format!(
            "{name}\n  {} [{}], {used}Mi in use, processes {processes:?}, with power {}, with bus {}",
            kinds.join(", "),
            numbers.join(" "),
            report.chips.iter().filter(|chip| chip.power_watts.is_some()).count(),
            report.chips.iter().filter(|chip| chip.bus.is_some()).count(),
        ));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    info-1.8.21-910A-8cards-legacy.txt
      8 × 910A Ok 32Gi [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0], 0Mi in use, processes [], with power 8, with bus 8
    info-1.9.3-910A-4cards-legacy-container.txt
      4 × 910A Ok 32Gi [4.0 5.0 6.0 7.0], 0Mi in use, processes [], with power 4, with bus 4
    info-21.0.4-910A-2cards.txt
      2 × 910A Ok 32Gi [0.0 1.0], 2Mi in use, processes [], with power 2, with bus 2
    info-24.1.0-910ProB-8cards-idle.txt
      8 × 910ProB Ok 32Gi [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0], 64Mi in use, processes [], with power 8, with bus 8
    info-24.1.rc1.b030-910B3-8cards.txt
      8 × 910B3 Ok 64Gi [0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0], 26517Mi in use, processes [], with power 8, with bus 8
    info-25.2.1-A3-Ascend910-16dies-idle.txt
      16 × Ascend910 Ok 64Gi [0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1 4.0 4.1 5.0 5.1 6.0 6.1 7.0 7.1], 48180Mi in use, processes [], with power 8, with bus 16
    info-25.x-910B4-2cards-busy-multiproc.txt
      2 × 910B4 Ok 32Gi [0.0 1.0], 28838Mi in use, processes ["mindie_llm_back 21835Mi", "python 2122Mi"], with power 2, with bus 2
    info-26.0.rc1-910B4-1card-wide-pid-in-container.txt
      1 × 910B4 Ok 32Gi [0.0], 2871Mi in use, processes [], with power 1, with bus 1
    info-x.x.x-950-1card-doc.txt
      1 × xxx Ok 84Gi [0.0], 4439Mi in use, processes [], with power 1, with bus 1
    info-xxx-310-device-column-doc.txt
      1 × xxx Ok 10810Mi [0.0], 957Mi in use, processes [], with power 1, with bus 0
    "#);
}

#[test]
fn the_other_queries_of_the_samples_come_to_their_values() {
    let Some(folder) = sample_folder() else {
        println!("skipped: there are no samples here");
        return;
    };
    let mut lines = Vec::new();
    for (name, text) in texts(&folder, "info-m-") {
        let devices: Vec<String> = mapping(&text)
            .iter()
            .map(|chip| format!("{}.{} is {} {}", chip.npu, chip.chip, chip.device, chip.name))
            .collect();
        lines.push(format!("{name}: {}", devices.join(", ")));
    }
    for (name, text) in texts(&folder, "info-t-topo-") {
        let matrix = matrix(&text);
        let islands: Vec<_> = matrix.islands().into_values().map(|island| island.to_string()).collect();
        let near: Vec<_> = matrix.near_cpus.into_values().collect();
        lines.push(format!("{name}: islands {}, near {}", islands.join(""), near.join(" ")));
    }
    for (name, text) in texts(&folder, "info-l-") {
        let cards = fields(&text).into_iter().filter(|(name, _)| *name == "NPU ID").count();
        lines.push(format!("{name}: {cards} cards"));
    }
    for (name, text) in texts(&folder, "info-t-").into_iter().filter(|(name, _)| !name.contains("topo")) {
        lines.push(format!("{name}: {} fields", fields(&text).len()));
    }
    for (name, text) in texts(&folder, "hccn") {
        let addresses = configured_addresses(&text);
        lines.push(format!(
            "{name}: {} in the file, tool says {}",
            addresses.len(),
            tool_address(&text).is_some()
        ));
    }
    for (name, text) in texts(&folder, "err-") {
        let outcome = match report(&text) {
            Ok(report) => format!("{} devices", report.chips.len()),
            Err(error) => error.to_string(),
        };
        lines.push(format!("{name}: {outcome}"));
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    info-m-910B3.txt: 0.0 is 0 Ascend 910B3, 1.0 is 1 Ascend 910B3
    info-m-950-doc.txt: 0.0 is 0 xxx
    info-t-topo-910B3-8cards-hccs.txt: islands 00000000, near 144-167 144-167 96-119 96-119 0-23 0-23 48-71 48-71
    info-t-topo-950-4p-ub-doc.txt: islands 00004444, near 0-63,128-191 0-63,128-191 0-63,128-191 0-63,128-191 64-127,192-255 64-127,192-255 64-127,192-255 64-127,192-255
    info-l-310-cardcount.txt: 1 cards
    info-l-910B-8cards.txt: 8 cards
    info-l-950-doc.txt: 1 cards
    info-l-A3-8npu-16die.txt: 8 cards
    info-t-board-950-doc.txt: 25 fields
    info-t-common-910B1.txt: 13 fields
    info-t-common-950-doc.txt: 9 fields
    info-t-health-950-doc.txt: 4 fields
    info-t-power-910B.txt: 4 fields
    info-t-proc-mem-950-doc.txt: 2 fields
    info-t-temp-910B.txt: 7 fields
    info-t-usages-910B1.txt: 15 fields
    hccn.conf-8cards.txt: 2 in the file, tool says false
    hccn_tool-ip-g.txt: 0 in the file, tool says true
    hccn_tool-ping-g.txt: 0 in the file, tool says false
    err-dcmi-init-failed.txt: npu-smi cannot reach the driver: dcmi model initialized failed
    err-no-card.txt: 0 devices
    err-topo-unsupported.txt: npu-smi printed no table of devices: This device does not support querying topo.
    ");
}
