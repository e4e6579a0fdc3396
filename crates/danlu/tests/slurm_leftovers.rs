//! Jobs that Slurm runs on although nothing of them is left: it does not notice at once, and Danlu does not leave it to that.

use std::time::Duration;

use danlu_testkit::{
    Relay, SlurmRig, TestServer, alive, eventually, eventually_within, processes_of, slurm_programs, spec,
};
use danlu_types::api::{JobOutcome, JobState};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_which_nothing_is_left_is_taken_from_slurm() {
    let Some(rig) = SlurmRig::start() else { return };
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let settings = folder.path().join("slurm.yaml");
    std::fs::write(&settings, format!("configuration: {}\npoll: 200ms\n", rig.configuration().display()))
        .unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    let server = TestServer::start_in(DANLU, &["--engine", "slurm", "--slurm", &settings], folder, &[]).await;
    let command = format!("until [ -e {}/gate ]; do sleep 0.1; done", server.folder().display());
    let id = server.submit(&spec(&command)).await;
    let job = server.wait_for(id, JobState::Running).await;
    let listed = || rig.ask("squeue", &["--noheader", "--format=%i %T %j"]);
    let line = listed().lines().find(|line| line.contains(&format!("danlu-{id}."))).unwrap().to_owned();
    let number = line.split(' ').next().unwrap().to_owned();
    // With its node's daemon, and who watches over the step: nobody tells Slurm of its end.
    rig.kill_node_daemon(&job.attempts[0].workers[0].node.0);
    let own = format!("slurmstepd: [{number}.");
    let folder = rig.configuration().parent().unwrap().to_owned();
    let watchers = processes_of(&folder).into_iter().flat_map(|pid| [Some(pid), parent_of(pid)]).flatten();
    let is_own = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).starts_with(&own)
    };
    let watchers: Vec<i32> = watchers.filter(is_own).collect();
    assert!(!watchers.is_empty(), "nobody watches over job {number}");
    for pid in watchers {
        // It may be there twice.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    std::fs::write(server.folder().join("gate"), "").unwrap();
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}", ended.reason);
    let runs = || listed().lines().any(|line| line.starts_with(&format!("{number} RUNNING")));
    assert!(runs(), "Slurm has noticed by itself: {}", listed());
    eventually("Slurm's job to be cancelled", || async { (!runs()).then_some(()) }).await;
    assert!(server.log().contains("of which nothing is left"), "{}", server.log());
}

/// As it is left by a server that was killed while it submitted, or by a controller that forgot a job and found it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_in_slurm_and_of_which_nothing_is_left_is_taken_from_its_queue() {
    let Some(rig) = SlurmRig::start() else { return };
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let settings = folder.path().join("slurm.yaml");
    std::fs::write(&settings, format!("configuration: {}\npoll: 200ms\n", rig.configuration().display()))
        .unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    let server = TestServer::start_in(DANLU, &["--engine", "slurm", "--slurm", &settings], folder, &[]).await;
    let ended = server.run(&spec("true")).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    let order = server.data().join(format!("runs/{}/1.slurm.0/order.json", ended.id));
    let order: serde_json::Value = serde_json::from_slice(&std::fs::read(order).unwrap()).unwrap();
    let submit = |name: &str| {
        let name = format!("--job-name={name}");
        let words = ["--parsable", "--hold", "--output=/dev/null", "--wrap=true", &name];
        rig.ask("sbatch", &words).trim().to_owned()
    };
    let (twin, other) = (submit(order["name"].as_str().unwrap()), submit("danlu-1.1-0-0123456789abcdef"));
    eventually("the twin to be cancelled", || async {
        let waiting = rig.ask("squeue", &["--noheader", "--states=pending", "--format=%i"]);
        (!waiting.lines().any(|id| id.trim() == twin)).then_some(())
    })
    .await;
    let waiting = rig.ask("squeue", &["--noheader", "--states=pending", "--format=%i"]);
    assert_eq!(waiting.trim(), other, "the name is not that of an order of ours");
    assert!(server.log().contains("of which nothing is left"), "{}", server.log());
}

/// As a restore drill does it, against the advice, while the original is in use: by the guide's back-up, which has `runs/` and not
/// `live/`.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_copy_leaves_the_originals_jobs_in_slurm_alone() {
    let Some(rig) = SlurmRig::start() else { return };
    let folder = || tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let settings = |folder: &std::path::Path, more: &str| {
        let path = folder.join("slurm.yaml");
        let text = format!("configuration: {}\npoll: 200ms\n{more}", rig.configuration().display());
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let original = folder();
    let flags = settings(original.path(), "");
    let original =
        TestServer::start_in(DANLU, &["--engine", "slurm", "--slurm", &flags], original, &[]).await;
    let go = original.folder().join("go");
    let running = original.submit(&spec(&format!("until [ -e {} ]; do sleep 0.1; done", go.display()))).await;
    original.wait_for(running, JobState::Running).await;
    let number = rig.ask("squeue", &["--noheader", "--format=%i"]).trim().to_owned();

    let copy = folder();
    let mut cp = std::process::Command::new("cp");
    assert!(cp.arg("-a").args([original.data(), copy.path().join("data")]).status().unwrap().success());
    std::fs::remove_dir_all(copy.path().join("data/live")).unwrap();
    let count =
        "case \"$*\" in *'show reservation'*) echo >> \"$HERE/inventories\";; esac; exec $REAL \"$@\"";
    let cancel = "echo \"$*\" >> \"$HERE/cancelled\"; exec $REAL \"$@\"";
    let bin = slurm_programs(copy.path(), &[("scontrol", count), ("scancel", cancel)]);
    let flags = settings(copy.path(), &format!("programs: {}\n", bin.display()));
    let flags = ["--restored", "--engine", "slurm", "--slurm", &flags];
    let copy = TestServer::start_in(DANLU, &flags, copy, &[]).await;
    // By the third, what is left of a job of its own would be overdue; the fourth begins when that is done.
    let inventories = copy.folder().join("inventories");
    eventually_within(Duration::from_mins(3), "four inventories", || async {
        (std::fs::read_to_string(&inventories).unwrap_or_default().lines().count() >= 4).then_some(())
    })
    .await;
    let cancelled = std::fs::read_to_string(copy.folder().join("cancelled")).unwrap_or_default();
    assert_eq!(cancelled, "", "{}", copy.log());
    let nodes = copy.client().nodes_list().await.unwrap().items;
    let foreign: Vec<&str> =
        nodes.iter().flat_map(|view| view.node.foreign.iter().map(|hold| hold.job.as_str())).collect();
    assert_eq!(foreign, [number], "it is somebody else's there");
    drop(copy);
    std::fs::write(&go, "").unwrap();
    let ended = original.wait_for_end(running).await;
    assert_eq!((ended.outcome, ended.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", ended.reason);
}

/// Slurm calls a job over whose sidecar is gone, and the next attempt begins.
#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_is_killed_takes_its_worker_along() {
    let Some(rig) = SlurmRig::apart() else { return };
    let rigs = rig.configuration().parent().unwrap().to_owned();
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir_in(rig.hidden()).unwrap();
    let relay = Relay::start().await;
    let settings = folder.path().join("slurm.yaml");
    let text = format!(
        "configuration: {}\npoll: 200ms\nshared: false\nserver: {}\nwork: {}\nprogram: {DANLU}\n",
        rig.configuration().display(),
        relay.address(),
        rig.of_node().join("work").display(),
    );
    std::fs::write(&settings, text).unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    let server = TestServer::start_in(DANLU, &["--engine", "slurm", "--slurm", &settings], folder, &[]).await;
    relay.lead_to(&server.client().address());
    let word = rigs.join("rank");
    let id =
        server.submit(&spec(&format!("echo $$ > {}; trap '' TERM; exec sleep 600", word.display()))).await;
    server.wait_for(id, JobState::Running).await;
    let rank: i32 =
        eventually("the rank's word", || async { std::fs::read_to_string(&word).ok()?.trim().parse().ok() })
            .await;
    let is_sidecar = |pid: i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).nth(1) == Some(b"slurm-sidecar".as_slice())
    };
    let sidecars: Vec<i32> = processes_of(&rigs).into_iter().filter(|pid| is_sidecar(*pid)).collect();
    // The one below its guard, where there is one.
    let sidecar =
        sidecars.iter().find(|pid| parent_of(**pid).is_some_and(is_sidecar)).or(sidecars.first()).unwrap();
    kill(Pid::from_raw(*sidecar), Signal::SIGKILL).unwrap();
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.reason.word(), "launcher_lost", "{:?}", ended.reason);
    let runs_on = alive(rank);
    let _ = kill(Pid::from_raw(rank), Signal::SIGKILL);
    assert!(!runs_on, "its rank ran on");
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}
