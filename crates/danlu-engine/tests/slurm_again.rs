//! What Slurm refuses, takes back or forgets, on a real cluster: who is to blame, and what may be tried again.

#[path = "support/slurm.rs"]
mod sites;
mod support;

use std::fs;
use std::time::Duration;

use danlu_core::job::{FailureCause, WorkerEnd};
use danlu_core::launch::StopOrder;
use danlu_engine::conformance::{Site, TestWorker};
use danlu_engine::{Engine, Observation, ObservedState, Which};
use danlu_slurm::{PlacementMode, QueueWait};
use danlu_testkit::SlurmRig;
use danlu_types::{DeviceKind, JobId, Reason, Span, WorkerId};
use sites::{jobs_of, programs, site_of, site_with};
use support::{kill, status};

async fn observe(engine: &dyn Engine, worker: WorkerId) -> Observation {
    engine.observe(Which::These(&[worker])).await.expect("workers can be looked at").remove(0)
}

async fn until_requeued(site: &Site, engine: &dyn Engine, worker: WorkerId) -> String {
    match site.until_ended(engine, worker).await {
        WorkerEnd::Requeued { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_refusals_that_stay_are_final() {
    let Some(rig) = SlurmRig::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let refuse = "echo \"sbatch: error: Batch job submission failed: $(cat \"$HERE/words\")\" >&2; exit 1";
    let site = site_of(rig, Some(programs(folder.path(), &[("sbatch", refuse)])));
    let engine = site.engine();
    let refused = async |words: &str| {
        fs::write(folder.path().join("words"), words).unwrap();
        let launched = engine.launch(&site.draft("true").launch_file(0)).await;
        launched.unwrap_err()
    };
    for passing in [
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
        "Required partition not available (inactive or drain)",
        "Requested node configuration is not available",
        "Invalid account or account/partition combination specified",
        "a sentence of a later release",
    ] {
        let error = refused(passing).await;
        assert!(!error.is_transient() && error.not_now().is_some_and(|it| it.contains(passing)), "{error}");
    }
    let limit = "Requested time limit is invalid (missing or exceeds some limit)";
    let error = refused(limit).await;
    assert!(!error.is_transient() && error.not_now().is_none(), "{error}");
    let error = refused("Protocol authentication error").await;
    assert!(error.is_transient(), "{error}");
    assert!(engine.trouble().is_some_and(|it| it.contains("Protocol authentication error")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_requeued_starts_again_and_says_so() {
    let Some(rig) = SlurmRig::shared() else { return };
    let site = site_of(rig, None);
    let engine = site.engine();
    let draft = TestWorker { workers: 2, ..site.draft("exec sleep 600") };
    for index in 0..2 {
        engine.launch(&draft.launch_file(index)).await.unwrap();
    }
    for index in 0..2 {
        site.until_running(&*engine, draft.worker(index)).await;
    }
    let job = jobs_of(rig, draft.worker(0), &site).remove(0);
    rig.ask("scontrol", &["update", &format!("JobId={job}"), "Requeue=1"]);
    rig.ask("scontrol", &["requeue", &job]);
    for index in 0..2 {
        let reason = until_requeued(&site, &*engine, draft.worker(index)).await;
        assert_eq!(reason, format!("Slurm's job {job} was requeued, and not by Danlu"));
    }
    for index in 0..2 {
        engine.release(draft.worker(index)).await.unwrap();
    }
    site.until("nothing of it waits in Slurm's queue", async || {
        let waiting = rig.ask("squeue", &["--noheader", "--format=%i", "--states=pending"]);
        (!waiting.lines().any(|line| line.trim() == job)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_slurm_preempted_starts_again() {
    let Some(rig) = SlurmRig::start() else { return };
    let site = site_of(&rig, None);
    let engine = site.engine();
    let devices = vec![site.device(DeviceKind::Nvidia, 0)];
    let draft = TestWorker { devices, ..site.draft("exec sleep 600") };
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until_running(&*engine, draft.worker(0)).await;
    let urgent =
        ["--partition=urgent", "--nodelist=n1", "--gres=gpu:8", "--output=/dev/null", "--wrap=sleep 600"];
    rig.ask("sbatch", &urgent);
    let reason = until_requeued(&site, &*engine, draft.worker(0)).await;
    assert!(reason.ends_with("was preempted by Slurm"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_job_says_so() {
    let Some(rig) = SlurmRig::shared() else { return };
    let site = site_of(rig, None);
    let engine = site.engine();
    let draft = site.draft("exec sleep 600");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until_running(&*engine, draft.worker(0)).await;
    let job = jobs_of(rig, draft.worker(0), &site).remove(0);
    rig.ask("scontrol", &["suspend", &job]);
    let seen = site
        .until("Slurm says that it is suspended", async || {
            let seen = observe(&*engine, draft.worker(0)).await;
            seen.remark.is_some().then_some(seen)
        })
        .await;
    assert!(matches!(seen.seen, ObservedState::Running { .. }), "{seen:?}");
    assert!(matches!(seen.remark, Some(Reason::SlurmSuspended { .. })));
    rig.ask("scontrol", &["resume", &job]);
    site.until("it goes on", async || {
        observe(&*engine, draft.worker(0)).await.remark.is_none().then_some(())
    })
    .await;
    rig.ask("scancel", &["--full", &job]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_held_job_waits_for_is_no_node() {
    let Some(rig) = SlurmRig::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let site = site_of(rig, Some(programs(folder.path(), &[("sbatch", "exec $REAL --hold \"$@\"")])));
    let engine = site.engine();
    let draft = site.draft("true");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until("Slurm says why it waits", async || {
        (observe(&*engine, draft.worker(0)).await.wait == Some(QueueWait::Other)).then_some(())
    })
    .await;
    engine.signal(draft.worker(0), &StopOrder { grace: Span::default() }).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_launcher_leaves_nothing_running() {
    let Some(rig) = SlurmRig::shared() else { return };
    let site = site_of(rig, None);
    let engine = site.engine();
    // A child of the rank's that nothing but us would end, and one that has left its session.
    let command = "sleep 600 & echo $! > \"$DANLU_OUTPUT_DIR/child\"; \
                   setsid sh -c 'echo $$ > \"$DANLU_OUTPUT_DIR/stray\"; sleep 600' & \
                   until [ -s \"$DANLU_OUTPUT_DIR/stray\" ]; do sleep 0.01; done; \
                   echo up > \"$DANLU_OUTPUT_DIR/up\"; wait";
    let draft = site.draft(command);
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until_running(&*engine, draft.worker(0)).await;
    site.until_written(draft.job, "up").await;
    let mut left = Vec::new();
    for name in ["child", "stray"] {
        left.push(site.until_written(draft.job, name).await);
    }
    kill(status(&site, draft.worker(0)).launcher.pid);
    let exit = site.until_ended(&*engine, draft.worker(0)).await;
    for pid in left {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_gone = state.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z'));
        assert!(is_gone, "{state}");
    }
    let WorkerEnd::Failed(failure) = exit else { panic!("{exit:?}") };
    assert_eq!(failure.cause, FailureCause::LauncherLost);
    assert!(failure.detail.starts_with("it was killed by SIGKILL, and the "), "{}", failure.detail);
}

/// A comment, a name and a command line may each hold whole lines of an answer of Slurm's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_other_users_write_is_no_answer_of_slurms() {
    let Some(rig) = SlurmRig::start() else { return };
    let site = site_with(&rig, None, PlacementMode::Danlu, true);
    let engine = site.engine();
    let draft = site.draft("exec sleep 600");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until_running(&*engine, draft.worker(0)).await;
    let job = jobs_of(&rig, draft.worker(0), &site).remove(0);
    let record = "x\nJobId=999 JobName=evil\n   UserId=bob(1) GroupId=x\n   JobState=RUNNING Reason=None\n   EndTime=Unknown\n     \
                  Nodes=n[1-4] CPU_IDs=0-63 Mem=512000 GRES=gpu:a100:8(IDX:0-7)\n";
    let forged = ["--parsable", "--nodelist=n2", "--output=/dev/null"];
    let name = format!("--job-name=x\n{job}|FAILED|x|NonZeroExitCode\n{job}|NODE_FAIL|x|x");
    let words = [format!("--comment={record}"), name, format!("--wrap=sleep 600 #{record}")];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let foreign = rig.ask("sbatch", &[&forged[..], &words].concat());
    site.until("the foreign job runs", async || {
        let running = rig.ask("squeue", &["--noheader", "--states=running", "--format=%A"]);
        running.lines().any(|line| line.trim() == foreign.trim()).then_some(())
    })
    .await;
    let nodes = engine.inventory().await.unwrap();
    let held = nodes
        .iter()
        .flat_map(|node| node.foreign.iter().map(|hold| (node.name.0.as_str(), hold.job.as_str())));
    assert_eq!(held.collect::<Vec<_>>(), [("n2", foreign.trim())]);
    // An answer from after that has been read once this is seen.
    rig.ask("scontrol", &["suspend", &job]);
    let seen = site
        .until("something new is heard of ours", async || {
            let seen = observe(&*engine, draft.worker(0)).await;
            (seen.remark.is_some() || !matches!(seen.seen, ObservedState::Running { .. })).then_some(seen)
        })
        .await;
    assert!(matches!(seen.seen, ObservedState::Running { .. }), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submission_that_hangs_holds_up_no_other_job() {
    let Some(rig) = SlurmRig::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let hang = "case \"$*\" in *--job-name=danlu-1.1-*) echo > \"$HERE/hangs\"; exec sleep 600;; esac; exec $REAL \"$@\"";
    let site = site_of(rig, Some(programs(folder.path(), &[("sbatch", hang)])));
    let engine = site.engine();
    let of = |job| TestWorker { job: JobId(job), ..site.draft("true") };
    let (hanging, other) = (of(1), of(65));
    let hangs = tokio::spawn({
        let (engine, launch) = (engine.clone(), hanging.launch_file(0));
        async move { engine.launch(&launch).await }
    });
    let witness = folder.path().join("hangs");
    site.until("the first submission hangs", async || witness.exists().then_some(())).await;
    engine.launch(&other.launch_file(0)).await.unwrap();
    assert!(!hangs.is_finished(), "{:?}", hangs.await);
    assert!(matches!(site.until_ended(&*engine, other.worker(0)).await, WorkerEnd::Succeeded));
    hangs.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inventory_does_not_wait_for_what_is_cancelled() {
    let Some(rig) = SlurmRig::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let hang = "echo > \"$HERE/hangs\"; exec sleep 600";
    let site = site_of(&rig, Some(programs(folder.path(), &[("scancel", hang)])));
    let engine = site.engine();
    for _ in 0..2 {
        let draft = site.draft("exec sleep 600");
        engine.launch(&draft.launch_file(0)).await.unwrap();
        site.until_running(&*engine, draft.worker(0)).await;
        // Nothing of it is wanted any more, as after a release that Slurm has not noticed.
        fs::remove_file(site.layout().live_folder().join(draft.worker(0).to_string())).unwrap();
    }
    let witness = folder.path().join("hangs");
    site.until("what is left is cancelled", async || {
        // A program of Slurm's is waited for three times as long, each.
        let answered = tokio::time::timeout(Duration::from_secs(30), engine.inventory()).await;
        answered.expect("an inventory in time").unwrap();
        witness.exists().then_some(())
    })
    .await;
}
