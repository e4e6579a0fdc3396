//! `danlu ranktable generate` on a machine whose devices are not counted from 0 without gaps.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use danlu_testkit::FakeAscend;
use serde_json::{Value, json};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// A container that has the dies of the first and the last card of an A3.
const TABLE: &str = "+---+\n| npu-smi 26.0.rc2  Version: 26.0.rc2 |\n+---+\n\
    | NPU  Name      | Health | Power(W) Temp(C) Hugepages-Usage(page) |\n\
    | Chip Phy-ID    | Bus-Id | AICore(%) Memory-Usage(MB) HBM-Usage(MB) |\n+===+\n\
    | 0 Ascend910 | OK | 170.0 36 0 / 0 |\n| 0 0 | 0000:9D:00.0 | 0 0 / 0 2887 / 65536 |\n+---+\n\
    | 0 Ascend910 | OK | - 36 0 / 0 |\n| 1 1 | 0000:9F:00.0 | 0 0 / 0 2887 / 65536 |\n+===+\n\
    | 7 Ascend910 | OK | 170.0 36 0 / 0 |\n| 0 14 | 0000:19:00.0 | 0 0 / 0 2887 / 65536 |\n+---+\n\
    | 7 Ascend910 | OK | - 36 0 / 0 |\n| 1 15 | 0000:1B:00.0 | 0 0 / 0 2887 / 65536 |\n+===+\n";
const MAPPING: &str = "\tNPU ID\tChip ID\tChip Logic ID\tChip Phy-ID\tChip Name\n\
    \t0\t0\t0\t0\tAscend910\n\t0\t1\t1\t1\tAscend910\n\
    \t7\t0\t2\t14\tAscend910\n\t7\t1\t3\t15\tAscend910\n";

fn generate(fake: &FakeAscend, arguments: &[&str]) -> Output {
    let path = format!("{}:{}", fake.bin().display(), std::env::var("PATH").expect("a path"));
    let mut command = Command::new(DANLU);
    command.args(["ranktable", "generate", "--server-id", "10.0.0.1"]).args(arguments).env("PATH", path);
    command.env("DANLU_DATA", fake.root().join("no-server")).env_remove("DANLU_SERVER");
    command.stdin(Stdio::null()).output().expect("the binary runs")
}

/// The numbers and addresses of the devices, in the order of their ranks.
fn devices(output: &Output) -> Vec<(Value, Value)> {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let table: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let device = table["server_list"][0]["device"].as_array().expect("devices").iter();
    device.map(|one| (one["device_id"].clone(), one["device_ip"].clone())).collect()
}

#[test]
fn issue_15_a_rank_table_of_a_container_with_gaps_has_physical_numbers_and_their_addresses() {
    let fake = FakeAscend::new(TABLE);
    fake.answer("npu-smi", "info -m", MAPPING);
    // Those that are not its own would answer too, with addresses of others.
    for physical in 0..16 {
        fake.answer("hccn_tool", &format!("-i {physical} -ip -g"), &format!("ipaddr:10.1.0.{physical}\n"));
    }
    let pair = |number: u32| (json!(number.to_string()), json!(format!("10.1.0.{number}")));
    let all = generate(&fake, &["--version", "1.0"]);
    assert_eq!(devices(&all), [pair(0), pair(1), pair(14), pair(15)]);
    // What is chosen is what programs call them: the logic ids of the container.
    let last = generate(&fake, &["--version", "1.0", "--devices", "2-3"]);
    assert_eq!(devices(&last), [pair(14), pair(15)]);
    let absent = generate(&fake, &["--devices", "14-15"]);
    let said = String::from_utf8_lossy(&absent.stderr);
    assert!(said.contains("this machine has no device 14; it has 0, 1, 2, 3"), "{said}");
}

#[test]
fn issue_15_a_file_that_lacks_the_address_of_a_device_is_refused() {
    let fake = FakeAscend::new(TABLE);
    let lines: Vec<String> = (0..8).map(|device| format!("address_{device}=192.168.10.{device}")).collect();
    let file = fake.write("hccn.conf", &lines.join("\n"));
    let file: &Path = &file;
    let of = |devices: &str| {
        let mut command = Command::new(DANLU);
        command.args([
            "ranktable",
            "generate",
            "--nodes",
            "10.0.0.1",
            "--family",
            "910B3",
            "--devices",
            devices,
        ]);
        command.arg("--device-ips").arg(file).env("DANLU_DATA", fake.root().join("no-server"));
        command.env_remove("DANLU_SERVER").stdin(Stdio::null()).output().expect("the binary runs")
    };
    assert_eq!(devices(&of("8")).len(), 8);
    let refused = of("9");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{said}");
    assert!(said.contains("hccn.conf` has no address of device 8"), "{said}");
}
