//! The real binary on a machine with Ascend devices, as far as it can tell.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use danlu_testkit::{FakeAscend, TestServer, alive};
use danlu_types::api::JobOutcome;
use danlu_types::{DeviceRequest, Health, JobSpec};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../danlu-device/tests/fixtures/npu-smi");
    std::fs::read_to_string(folder.join(name)).expect("a fixture")
}

/// Eight 910B3 whose own network ports are known to `hccn_tool`.
fn machine(report: &str) -> FakeAscend {
    let fake = FakeAscend::new(report);
    for device in 0..8 {
        let text = format!("ipaddr:192.168.{}.1\nnetmask:255.255.255.0\n", 10 + device);
        fake.answer("hccn_tool", &format!("-i {device} -ip -g"), &text);
    }
    fake
}

fn path(fake: &FakeAscend) -> String {
    format!("{}:{}", fake.bin().display(), std::env::var("PATH").expect("a path"))
}

/// A command that finds no server.
fn danlu(fake: &FakeAscend, arguments: &[&str]) -> Output {
    let data = fake.root().join("no-server");
    let mut command = Command::new(DANLU);
    command.args(arguments).env("PATH", path(fake)).env("DANLU_DATA", data).stdin(Stdio::null());
    command.env_remove("DANLU_SERVER").output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_server_offers_what_npu_smi_shows_and_says_how_it_is_doing() {
    let fake = machine(&fixture("info-910B3-8-busy.txt"));
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start_in(DANLU, &[], folder, &[("PATH", &path(&fake))]).await;
    let devices = server.client().devices_list().await.expect("devices").items;
    assert_eq!(devices.len(), 8);
    assert!(devices.iter().all(|view| view.device.model == "910B3" && view.device.health == Health::Ok));
    let busy = devices[2].reading.as_ref().expect("a reading");
    assert_eq!(
        (busy.utilisation_percent, busy.temperature_celsius, busy.power_watts),
        (Some(63), Some(45), Some(108))
    );
    assert_eq!(busy.processes[0].pid, 2_563_382);
    assert_eq!(devices[0].device.wiring.address, "192.168.10.1".parse().ok());

    let request: DeviceRequest = "ascend:910B*:2".parse().expect("a request for devices");
    let spec = JobSpec { devices: request, ..danlu_testkit::spec("echo $ASCEND_RT_VISIBLE_DEVICES") };
    let job = server.submit(&spec).await;
    assert_eq!(server.wait_for_end(job).await.outcome, Some(JobOutcome::Succeeded));
}

#[test]
fn devices_of_this_machine_are_shown_where_no_server_runs() {
    let fake = machine(&fixture("info-910B4-1-alarm.txt"));
    let output = danlu(&fake, &["devices"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for word in ["Ascend 910B4", "failed", "178 W", "41 °C", "3.2 GiB of 32 GiB", "not given out"] {
        assert!(table.contains(word), "{word} is not in\n{table}");
    }
    assert!(text(&output.stderr).contains("no server runs"));
}

#[test]
fn a_rank_table_of_this_machine_passes_its_own_checks() {
    let fake = machine(&fixture("info-910B3-8-busy.txt"));
    let output = danlu(&fake, &["ranktable", "generate", "--devices", "4-7", "--server-id", "10.0.0.1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let written = fake.write("hccl.json", &table);
    let file = written.to_str().expect("a path");
    let checked = danlu(&fake, &["ranktable", "validate", file, "--family", "910B3"]);
    assert!(checked.status.success(), "{}{}", text(&checked.stdout), text(&checked.stderr));
    assert!(table.contains("\"192.168.14.1\"") && table.contains("\"server_id\": \"10.0.0.1\""), "{table}");
    let converted = danlu(&fake, &["ranktable", "convert", file, "--to", "group_list"]);
    assert!(text(&converted.stdout).contains("\"pod_name\": \"worker-0\""));
    let refused = danlu(&fake, &["ranktable", "convert", file, "--to", "1.2"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("`super_device_id` of device 4"), "{}", text(&refused.stderr));
    let wrong = danlu(&fake, &["ranktable", "validate", file, "--family", "A5"]);
    assert_eq!(wrong.status.code(), Some(1));
}

/// A process of the test's own, which the table says holds device 2.
fn squatter() -> (FakeAscend, Child) {
    let child = Command::new("sleep").arg("1000").spawn().expect("a process");
    let table = fixture("info-910B3-8-busy.txt").replace("2563382 ", &format!("{:<8}", child.id()));
    (machine(&table), child)
}

#[test]
fn a_sweep_names_programs_without_a_job_and_ends_them_only_when_asked_to() {
    let (fake, mut child) = squatter();
    let pid = i32::try_from(child.id()).expect("a number");
    let dry = danlu(&fake, &["sweep"]);
    assert!(text(&dry.stdout).contains("no job"), "{}{}", text(&dry.stdout), text(&dry.stderr));
    assert!(text(&dry.stdout).contains("in another container"), "the other that the table names is not here");
    let spared = danlu(&fake, &["sweep", "--end", "--except-name", "sle*"]);
    assert!(text(&spared.stdout).contains("left alone"), "{}", text(&spared.stdout));
    assert!(alive(pid));
    let ended = danlu(&fake, &["sweep", "--end", "--grace", "30s"]);
    assert!(text(&ended.stdout).contains("no job: ended"), "{}{}", text(&ended.stdout), text(&ended.stderr));
    assert!(!child.wait().expect("it has ended").success());
}
