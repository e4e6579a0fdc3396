//! The real binary on a machine with Ascend devices, as far as it can tell.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use danlu_testkit::{FakeAscend, TestServer, alive, eventually};
use danlu_types::api::{EventQuery, JobOutcome, SeriesQuery};
use danlu_types::{
    DeviceRequest, Framework, Health, JobSpec, OnHang, RankTableUse, RanksPerWorker, Retry, Span,
};
use serde_json::Value;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../danlu-device/tests/fixtures/npu-smi");
    std::fs::read_to_string(folder.join(name)).expect("a fixture")
}

/// Eight 910B3 whose own network ports are known to `hccn_tool`.
fn machine(report: &str) -> FakeAscend {
    machine_of_many(1, report)
}

/// One of several, which count from 1.
fn machine_of_many(number: u32, report: &str) -> FakeAscend {
    let fake = FakeAscend::new(report);
    for device in 0..8 {
        let text = format!("ipaddr:192.168.{}.{number}\nnetmask:255.255.255.0\n", 10 + device);
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

#[tokio::test]
async fn a_silent_job_hangs_only_when_its_devices_are_idle_too() {
    let busy = fixture("info-910B3-8-busy.txt");
    let fake = machine(&busy);
    let folder = tempfile::tempdir().expect("a folder");
    let server =
        TestServer::start_in(DANLU, &["--use-busy-devices"], folder, &[("PATH", &path(&fake))]).await;
    let spec = JobSpec {
        devices: "ascend:910B*:8".parse().expect("a request for devices"),
        ranks: Some(RanksPerWorker::PerWorker),
        hang_after: Some(Span::from_seconds(4)),
        on_hang: OnHang::Restart,
        retry: Retry { limit: 1, ..Retry::default() },
        ..danlu_testkit::spec("exec sleep 1000")
    };
    let job = server.submit(&spec).await;
    let ended = async || {
        let query = EventQuery { job: Some(job), ..EventQuery::default() };
        let events = server.client().events_list(&query).await.expect("events").items;
        events.into_iter().find(|event| event.kind == "attempt_ended").map(|event| event.message)
    };

    // At two seconds each, the last of them is twice as late as the first time at which it could have been called a hang.
    let samples = eventually("samples", || async {
        let samples = server.client().samples_read(job, &SeriesQuery::default()).await.expect("samples");
        Some(samples.items).filter(|samples| samples.len() >= 5)
    })
    .await;
    let last = &samples[4].devices;
    assert_eq!((last[&2].percent, last[&3].memory), (Some(63), Some(38_845 << 20)), "{samples:?}");
    assert_eq!(ended().await, None);

    fake.answer("npu-smi", "info", &busy.replace("| 63  ", "| 0   ").replace("| 94  ", "| 0   "));
    let message = eventually("the end of the attempt", ended).await;
    assert!(message.contains("it printed nothing and its devices did nothing for 4s"), "{message}");
}

#[tokio::test]
async fn workers_of_one_machine_are_one_server_of_their_rank_table() {
    let fake = machine(&fixture("info-910B3-8-busy.txt"));
    let folder = tempfile::tempdir().expect("a folder");
    let server =
        TestServer::start_in(DANLU, &["--use-busy-devices"], folder, &[("PATH", &path(&fake))]).await;
    let spec = JobSpec {
        devices: "ascend:910B*:4".parse().expect("a request for devices"),
        workers: 2,
        framework: Framework::Mindspore,
        rank_table: RankTableUse::Always,
        ..danlu_testkit::spec("[ $RANK_ID != 7 ] || cat $RANK_TABLE_FILE")
    };
    let job = server.run(&spec).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}", job.reason);
    insta::assert_snapshot!(summary(&server.texts(job.id).await.join("\n")), @r"
    version 1.0, completed, 1 servers
    127.0.0.1
      device 0 at 192.168.10.1 is rank 0
      device 1 at 192.168.11.1 is rank 1
      device 2 at 192.168.12.1 is rank 2
      device 3 at 192.168.13.1 is rank 3
      device 4 at 192.168.14.1 is rank 4
      device 5 at 192.168.15.1 is rank 5
      device 6 at 192.168.16.1 is rank 6
      device 7 at 192.168.17.1 is rank 7
    ");
}

#[test]
fn machines_that_meet_in_a_folder_are_two_servers_of_their_rank_table() {
    let machines = [1, 2].map(|number| machine_of_many(number, &fixture("info-910B3-8-busy.txt")));
    let folder = tempfile::tempdir().expect("a folder");
    let meet = folder.path().join("meet");
    let started = [0, 1].map(|rank: usize| {
        let mut command = Command::new(DANLU);
        command.args(["launch", "--nodes", "2", "--node-rank", &rank.to_string(), "--rendezvous"]).arg(&meet);
        command.args(["--devices", "0-7", "--address", ["127.0.0.1", "127.0.0.2"][rank]]);
        command.args(["--force", "--framework", "none", "--no-binding", "--"]);
        command.arg("[ $DANLU_LOCAL_RANK != 5 ] || cat $DANLU_RANK_TABLE");
        command.current_dir(folder.path()).env("TMPDIR", folder.path()).env("PATH", path(&machines[rank]));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the binary runs")
    });
    let tables = started.map(|child| {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = text(&output.stdout);
        lines.lines().map(|line| line.split_once("] ").expect("a rank and its line").1).collect::<String>()
    });
    assert_eq!(tables[0], tables[1]);
    insta::assert_snapshot!(summary(&tables[0]), @r"
    version 1.0, completed, 2 servers
    127.0.0.1
      device 0 at 192.168.10.1 is rank 0
      device 1 at 192.168.11.1 is rank 1
      device 2 at 192.168.12.1 is rank 2
      device 3 at 192.168.13.1 is rank 3
      device 4 at 192.168.14.1 is rank 4
      device 5 at 192.168.15.1 is rank 5
      device 6 at 192.168.16.1 is rank 6
      device 7 at 192.168.17.1 is rank 7
    127.0.0.2
      device 0 at 192.168.10.2 is rank 8
      device 1 at 192.168.11.2 is rank 9
      device 2 at 192.168.12.2 is rank 10
      device 3 at 192.168.13.2 is rank 11
      device 4 at 192.168.14.2 is rank 12
      device 5 at 192.168.15.2 is rank 13
      device 6 at 192.168.16.2 is rank 14
      device 7 at 192.168.17.2 is rank 15
    ");
}

/// What a rank table says, server by server: each device with its address and its rank.
fn summary(table: &str) -> String {
    let table: Value = serde_json::from_str(table).expect("a table");
    let word = |value: &Value| value.as_str().expect("words, as HCCL has them").to_owned();
    let mut lines = vec![format!(
        "version {}, {}, {} servers",
        word(&table["version"]),
        word(&table["status"]),
        word(&table["server_count"])
    )];
    for server in table["server_list"].as_array().expect("servers") {
        lines.push(word(&server["server_id"]));
        lines.extend(server["device"].as_array().expect("devices").iter().map(|device| {
            let [id, address, rank] = ["device_id", "device_ip", "rank_id"].map(|name| word(&device[name]));
            format!("  device {id} at {address} is rank {rank}")
        }));
    }
    lines.join("\n")
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

/// The same machine when nobody uses it.
fn idle() -> String {
    let busy = fixture("info-910B3-8-busy.txt");
    let busy = busy.replace("49002/ 65536", "3282 / 65536").replace("38845/ 65536", "3282 / 65536");
    let kept: Vec<&str> = busy.lines().filter(|line| !line.contains("python3")).collect();
    kept.join("\n") + "\n"
}

#[tokio::test]
async fn issue_15_devices_that_others_use_are_given_to_nobody_until_they_leave() {
    let (fake, mut child) = squatter();
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start_in(DANLU, &[], folder, &[("PATH", &path(&fake))]).await;
    let devices = server.client().devices_list().await.expect("devices").items;
    let in_use: Vec<u32> =
        devices.iter().filter(|view| view.foreign.is_some()).map(|view| view.device.index).collect();
    assert_eq!(in_use, [2, 3]);

    let all: DeviceRequest = "ascend:910B*:8".parse().expect("a request for devices");
    let spec = JobSpec { devices: all, ..danlu_testkit::spec("echo $ASCEND_RT_VISIBLE_DEVICES") };
    let squatter = format!("process {} (sleep) of", child.id());
    let dry = server.client().job_dry_run(&spec).await.expect("an answer");
    assert!(dry.text.contains(&squatter) && dry.text.contains("(device 2 of"), "{}", dry.text);
    let job = server.submit(&spec).await;
    let why = server.client().job_why(job).await.expect("an answer");
    assert!(why.text.contains(&squatter) && why.text.contains("of another container"), "{}", why.text);
    assert_eq!(why.supply[0].free, 6, "{why:?}");

    // Six are free, and none of them is one that somebody uses.
    let six: DeviceRequest = "ascend:910B*:6".parse().expect("a request for devices");
    let beside = server.run(&JobSpec { devices: six, ..spec.clone() }).await;
    assert_eq!(server.texts(beside.id).await, ["0,1,4,5,6,7"]);

    child.kill().expect("it is ours");
    child.wait().expect("it has ended");
    fake.answer("npu-smi", "info", &idle());
    assert_eq!(server.wait_for_end(job).await.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test]
async fn issue_15_devices_whose_tool_hangs_are_unknown_until_it_answers() {
    let fake = machine(&idle());
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start_in(DANLU, &[], folder, &[("PATH", &path(&fake))]).await;
    fake.hang("npu-smi");
    eventually("devices of which nobody knows anything", || async {
        let devices = server.client().devices_list().await.expect("devices").items;
        devices.iter().all(|view| view.device.health == Health::Unknown).then_some(())
    })
    .await;
    let request: DeviceRequest = "ascend:1".parse().expect("a request for devices");
    let spec = JobSpec { devices: request, ..danlu_testkit::spec("true") };
    let dry = server.client().job_dry_run(&spec).await.expect("an answer");
    assert_eq!(dry.supply[0].usable, 0, "{dry:?}");
    let job = server.submit(&spec).await;
    fake.answer_again("npu-smi");
    assert_eq!(server.wait_for_end(job).await.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test]
async fn devices_whose_tool_hangs_at_the_start_come_once_it_answers() {
    let fake = machine(&idle());
    fake.hang("npu-smi");
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start_in(DANLU, &[], folder, &[("PATH", &path(&fake))]).await;
    let request: DeviceRequest = "ascend:1".parse().expect("a request for devices");
    let spec = JobSpec { devices: request, ..danlu_testkit::spec("true") };
    let why = "`npu-smi info` gave no answer";
    for command in [&["nodes"][..], &["devices"], &["submit", "--devices", "ascend:1", "--", "true"]] {
        let mut danlu = Command::new(DANLU);
        danlu
            .args(command)
            .env("DANLU_DATA", server.data())
            .env_remove("DANLU_SERVER")
            .env_remove("DANLU_TOKEN");
        let output = danlu.stdin(Stdio::null()).output().expect("the binary runs");
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains(why), "{command:?}: {said}");
    }
    fake.answer_again("npu-smi");
    eventually("eight devices", || async {
        let devices = server.client().devices_list().await.expect("devices").items;
        (devices.len() == 8 && devices.iter().all(|view| view.reading.is_some())).then_some(())
    })
    .await;
    let nodes = server.client().nodes_list().await.expect("nodes").items;
    assert_eq!(nodes[0].notice, None);
    assert_eq!(server.run(&spec).await.outcome, Some(JobOutcome::Succeeded));
}

/// The table with some of its devices no longer well.
fn ill(report: &str) -> String {
    let mut seen = 0;
    let lines = report.lines().map(|line| {
        seen += usize::from(line.contains("910B3"));
        let word = match (line.contains("910B3"), seen) {
            (true, 2) => "Alarm",
            (true, 4) => "Critical",
            (true, 6) => "UNKNOWN",
            _ => return line.to_owned(),
        };
        line.replacen("OK ", &format!("{word} "), 1)
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn a_rank_table_leaves_ill_devices_to_whoever_names_them() {
    let fake = machine(&ill(&idle()));
    let refused = danlu(&fake, &["ranktable", "generate"]);
    let said = text(&refused.stderr);
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{said}");
    assert!(said.contains("devices 1, 3, 5 are unhealthy") && said.contains("--devices"), "{said}");
    let well = danlu(&fake, &["ranktable", "generate", "--devices", "0,2"]);
    assert!(well.status.success() && !text(&well.stderr).contains("unhealthy"), "{}", text(&well.stderr));
    let named = danlu(&fake, &["ranktable", "generate", "--devices", "0-1"]);
    assert!(named.status.success(), "{}", text(&named.stderr));
    assert!(text(&named.stderr).contains("device 1 is unhealthy"), "{}", text(&named.stderr));
}

#[test]
fn wide_tables_of_devices_show_how_each_is_connected() {
    let fake = FakeAscend::new(&fixture("info-A3-8x2-busy.txt"));
    let output = danlu(&fake, &["devices", "--wide"]);
    let table = text(&output.stdout);
    let lines: Vec<&str> = table.lines().collect();
    for column in ["PHYSICAL", "BUS", "CARD.CHIP", "NUMA", "ADDRESS"] {
        assert!(lines[0].contains(column), "{table}");
    }
    // A die's kind is in its model, and is not said twice.
    assert!(table.contains("Ascend910") && !table.contains("Ascend Ascend"), "{table}");
    assert!(lines[16].contains(" 15 ") && lines[16].contains(" 7.1 "), "{table}");
}

#[test]
fn issue_15_launch_refuses_devices_that_are_in_use_or_not_there() {
    let (fake, mut child) = squatter();
    let in_use = danlu(&fake, &["launch", "--devices", "1-2", "--", "true"]);
    let said = text(&in_use.stderr);
    assert!(said.contains(&format!("in use: device 2 by process {} (sleep) of", child.id())), "{said}");
    assert!(said.contains("--force") && !in_use.status.success(), "{said}");
    let absent = danlu(&fake, &["launch", "--devices", "ascend:9", "--", "true"]);
    assert!(text(&absent.stderr).contains("shows no device 9, it shows 0, 1, 2"), "{}", text(&absent.stderr));
    for taken in [&["--devices", "0,4"][..], &["--force", "--devices", "2"]] {
        let arguments: Vec<&str> =
            ["launch"].iter().chain(taken).chain(&["--ranks", "1", "--", "true"]).copied().collect();
        let done = danlu(&fake, &arguments);
        assert!(done.status.success(), "{taken:?}: {}", text(&done.stderr));
    }
    child.kill().expect("it is ours");
    child.wait().expect("it has ended");
}

#[tokio::test]
async fn issue_15_simulated_npus_of_two_nodes_have_a_rank_table() {
    let server = TestServer::start(DANLU, &["--simulate", "2x8:ascend:910A"]).await;
    let spec = JobSpec {
        devices: "ascend:910A:8".parse().expect("a request for devices"),
        workers: 2,
        framework: Framework::Mindspore,
        rank_table: RankTableUse::Always,
        ..danlu_testkit::spec("[ $RANK_ID != 9 ] || cat $RANK_TABLE_FILE")
    };
    let job = server.run(&spec).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}", job.reason);
    let table = summary(&server.texts(job.id).await.join("\n"));
    let servers: Vec<&str> = table.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(servers, ["version 1.0, completed, 2 servers", "sim-ascend-910a-0", "sim-ascend-910a-1"]);
    assert!(table.contains("  device 7 at 10.0.0.8 is rank 7\n"), "{table}");
    assert!(table.contains("  device 0 at 10.0.1.1 is rank 8\n"), "{table}");
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

/// A terminal of the test's own user that takes messages, and its other end.
fn open_terminal() -> (std::fs::File, std::os::fd::OwnedFd) {
    let pair = nix::pty::openpty(None, None).expect("a terminal can be had");
    nix::sys::stat::fchmod(&pair.slave, nix::sys::stat::Mode::from_bits_truncate(0o620)).expect("it is ours");
    (std::fs::File::from(pair.master), pair.slave)
}

#[test]
fn a_sweep_tells_owners_on_their_terminals_and_ends_programs_at_the_hour() {
    use std::io::Read as _;

    let (fake, mut child) = squatter();
    let Some(clock) = danlu_testkit::FakeClock::below(fake.root()) else { return };
    // Three seconds before eleven, by the clock that the sweep sees.
    let now = std::time::UNIX_EPOCH.elapsed().expect("it is later").as_secs() % 86_400;
    clock.jump(&format!("{:+}", 22 * 3600 + 59 * 60 + 57 - now.cast_signed()));
    let (mut screen, terminal) = open_terminal();
    let mut command = Command::new(DANLU);
    command.args(["sweep", "--end", "--at", "23:00", "--grace", "30s"]).envs(clock.environment());
    command.env("PATH", path(&fake)).env("TZ", "UTC").env("DANLU_DATA", fake.root()).stdin(Stdio::null());
    let swept = command.output().expect("the binary runs");
    let (report, said) = (text(&swept.stdout), text(&swept.stderr));
    assert!(said.contains("waiting until") && said.contains("23:00"), "{said}");
    assert!(report.contains("no job: ended"), "{report}{said}");
    assert!(!child.wait().expect("it has ended").success());

    drop(terminal);
    let mut shown = Vec::new();
    // A terminal that nobody has open any more is an error to read, not an end.
    let _ = screen.read_to_end(&mut shown);
    let shown = text(&shown);
    let expected =
        format!("your process {} (sleep) uses device 2 without a job. It will be ended at 23:00", child.id());
    assert!(shown.contains(&expected), "{shown}{said}");
}
