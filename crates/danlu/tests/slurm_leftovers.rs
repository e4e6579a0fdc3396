//! Jobs that Slurm runs on although nothing of them is left: it does not notice at once, and Danlu does not leave it to that.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use danlu_testkit::{SlurmRig, TestServer, eventually, processes_of, spec};
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

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}
