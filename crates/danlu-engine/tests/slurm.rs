//! The Slurm engine against a real controller and real nodes on this machine: the whole conformance suite, and what only
//! this engine has: submissions that get lost or doubled, a controller that is away, nodes that are.

#[path = "support/slurm.rs"]
mod sites;
mod support;

use std::fs;

use danlu_core::job::{FailureCause, WorkerEnd};
use danlu_core::launch::StopOrder;
use danlu_engine::conformance::TestWorker;
use danlu_engine::{ObservedState, Which};
use danlu_testkit::SlurmRig;
use danlu_types::reason::SlurmWait;
use danlu_types::{DeviceKind, NodeName, Reason, Span};
use sites::{allocation, jobs_of, programs, shared_site, site_of};
use support::{kill, status};

mod conforms {
    use crate::sites::{breakable_site, shared_site};

    danlu_engine::conformance_tests!(Slurm,
        match shared_site() {
            Some(site) => site,
            None => return,
        };
        match breakable_site() {
            Some(site) => site,
            None => return,
        } => a_lost_node_is_told_from_a_program_that_fails);
}

/// What could depend on who chooses the nodes.
mod conforms_where_slurm_places {
    use crate::sites::delegating_site;

    danlu_engine::conformance_tests!(match delegating_site() {
        Some(site) => site,
        None => return,
    };
        a_worker_runs_and_ends,
        launching_again_runs_nothing_twice,
        a_gang_starts_together_or_not_at_all,
        a_failing_worker_is_told_from_those_it_takes_along,
        a_stop_before_the_start_starts_nothing,
        a_restarted_server_adopts_what_runs,
        a_lost_launcher_is_told_and_takes_its_ranks_along,
        workers_see_their_devices_and_no_others,
        workers_at_the_same_time_share_no_device,
        commands_run_inside_a_worker,
    );
}

const AT_ONCE: StopOrder = StopOrder { grace: Span { milliseconds: 0 } };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_and_their_devices_are_slurms() {
    let Some(site) = shared_site() else { return };
    let nodes = site.engine().inventory().await.unwrap();
    let names: Vec<&str> = nodes.iter().map(|node| node.name.0.as_str()).collect();
    assert_eq!(names, ["n1", "n2", "n3", "n4"]);
    for node in nodes {
        assert_eq!(node.address, "127.0.0.1");
        assert_eq!((node.capacity.cpus.milli, node.capacity.memory.0), (64_000, 512_000 << 20));
        let count =
            |kind, model| node.devices.iter().filter(|it| it.kind == kind && it.model == model).count();
        assert_eq!(count(DeviceKind::Nvidia, "A100"), 8);
        assert_eq!(count(DeviceKind::Ascend, "910B"), 16);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_slurm_keeps_for_others_is_closed() {
    let Some(rig) = SlurmRig::start() else { return };
    let site = site_of(&rig, None);
    let reservation = ["ReservationName=night", "StartTime=now", "Duration=60", "Users=root", "Nodes=n[3-4]"];
    rig.ask("scontrol", &[&["create", "reservation"], &reservation[..]].concat());
    let nodes = site.engine().inventory().await.unwrap();
    let closed = nodes.into_iter().filter_map(|node| Some((node.name.0, node.cordoned?)));
    let kept = "Slurm keeps it for the reservation night".to_owned();
    assert_eq!(closed.collect::<Vec<_>>(), [("n3".to_owned(), kept.clone()), ("n4".to_owned(), kept)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_over_four_nodes_knows_its_ranks_its_peers_and_its_devices() {
    let Some(site) = shared_site() else { return };
    let engine = site.engine();
    let devices = (0..2).map(|number| site.device(DeviceKind::Nvidia, number)).collect();
    let command = "echo $RANK/$WORLD_SIZE local $LOCAL_RANK on $SLURMD_NODENAME with $CUDA_VISIBLE_DEVICES \
                   task ${SLURM_PROCID:-none}";
    let draft = TestWorker { workers: 4, ranks: 2, devices, ..site.draft(command) };
    for index in 0..4 {
        engine.launch(&draft.launch_file(index)).await.unwrap();
    }
    for index in 0..4 {
        assert_eq!(site.until_ended(&*engine, draft.worker(index)).await, WorkerEnd::Succeeded);
        for local in 0..2 {
            let rank = 2 * index + local;
            let [line] = &site.printed(draft.worker(index), rank)[..] else { panic!("one line each") };
            let begin = format!("{rank}/8 local {local} on n{} with ", index + 1);
            let rest = line.strip_prefix(&begin).unwrap_or_else(|| panic!("`{line}` begins otherwise"));
            assert!(rest.ends_with(" task none"), "{line}");
        }
    }
    assert_eq!(
        jobs_of(SlurmRig::shared().unwrap(), draft.worker(0), &site).len(),
        1,
        "one job for all of them"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_with_unequally_many_workers_are_one_gang() {
    let Some(site) = shared_site() else { return };
    let engine = site.engine();
    let nodes = ["n1", "n1", "n2"].map(|name| NodeName(name.to_owned())).to_vec();
    let devices = vec![site.device(DeviceKind::Nvidia, 0)];
    let draft = TestWorker {
        workers: 3,
        devices,
        nodes,
        ..site.draft("echo $RANK of $WORLD_SIZE on $SLURMD_NODENAME")
    };
    for index in 0..3 {
        engine.launch(&draft.launch_file(index)).await.unwrap();
    }
    for (index, expected) in (0..3).zip(["0 of 3 on n1", "1 of 3 on n1", "2 of 3 on n2"]) {
        assert_eq!(site.until_ended(&*engine, draft.worker(index)).await, WorkerEnd::Succeeded);
        assert_eq!(site.printed(draft.worker(index), index), [expected]);
    }
}

/// Slurm would kill what it was told to end after `KillWait`, two seconds here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_is_stopped_has_its_own_grace() {
    let Some(site) = shared_site() else { return };
    let engine = site.engine();
    let command = "trap 'echo told >> \"$DANLU_OUTPUT_DIR/told-$RANK\"; sleep 3; echo saved > \"$DANLU_OUTPUT_DIR/saved-$RANK\"; exit 0' TERM; \
                   echo up > \"$DANLU_OUTPUT_DIR/up-$RANK\"; while :; do sleep 0.05; done";
    let draft = TestWorker { workers: 2, ..site.draft(command) };
    for index in 0..2 {
        engine.launch(&draft.launch_file(index)).await.unwrap();
    }
    for index in 0..2 {
        site.until_written(draft.job, &format!("up-{index}")).await;
    }
    for index in 0..2 {
        engine.signal(draft.worker(index), &StopOrder { grace: Span::from_seconds(60) }).await.unwrap();
    }
    for index in 0..2 {
        assert_eq!(site.until_ended(&*engine, draft.worker(index)).await, WorkerEnd::Stopped);
        assert_eq!(site.until_written(draft.job, &format!("saved-{index}")).await, "saved");
        assert_eq!(
            site.until_written(draft.job, &format!("told-{index}")).await,
            "told",
            "once and not twice"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_loses_a_launcher_ends_and_says_so() {
    let Some(site) = shared_site() else { return };
    let engine = site.engine();
    let draft = TestWorker { workers: 2, ..site.draft("exec sleep 600") };
    for index in 0..2 {
        engine.launch(&draft.launch_file(index)).await.unwrap();
    }
    for index in 0..2 {
        site.until_running(&*engine, draft.worker(index)).await;
    }
    kill(status(&site, draft.worker(1)).launcher.pid);
    for (index, expected) in [(0, "lost the launcher of another worker"), (1, "it was killed by SIGKILL")] {
        let exit = site.until_ended(&*engine, draft.worker(index)).await;
        let WorkerEnd::Failed(failure) = exit else { panic!("{exit:?}") };
        assert_eq!(failure.cause, FailureCause::LauncherLost);
        assert!(failure.detail.contains(expected), "{}", failure.detail);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_died_before_it_wrote_the_number_down_finds_its_job() {
    let Some(rig) = SlurmRig::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let site = site_of(rig, Some(programs(folder.path(), &[("sbatch", "exec $REAL --hold \"$@\"")])));
    let first = site.engine();
    let draft = site.draft("echo ran >> \"$DANLU_OUTPUT_DIR/count\"");
    first.launch(&draft.launch_file(0)).await.unwrap();
    drop(first);
    let number = allocation(&site, draft.worker(0)).join("submitted");
    let before = fs::read_to_string(&number).unwrap();
    fs::remove_file(&number).unwrap();

    let second = site.engine();
    second.launch(&draft.launch_file(0)).await.unwrap();
    assert_eq!(fs::read_to_string(&number).unwrap(), before);
    assert_eq!(jobs_of(rig, draft.worker(0), &site), [before.trim()]);
    rig.ask("scontrol", &["release", before.trim()]);
    assert_eq!(site.until_ended(&*second, draft.worker(0)).await, WorkerEnd::Succeeded);
    assert_eq!(site.until_written(draft.job, "count").await, "ran");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_a_forgotten_job_ended_is_known_where_there_is_accounting() {
    let Some(rig) = SlurmRig::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let forgetful = "case \"$*\" in *'show job'*) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1;; esac; \
                     exec $REAL \"$@\"";
    let remembers = "for word; do case $word in --jobs=*) echo \"${word#--jobs=}|CANCELLED by 1000|danlu|None\";; esac; done";
    let scripts = [
        ("sbatch", "exec $REAL --hold \"$@\""),
        ("squeue", "exit 0"),
        ("scontrol", forgetful),
        ("sacct", remembers),
    ];
    let site = site_of(rig, Some(programs(folder.path(), &scripts)));
    let engine = site.engine();
    let draft = site.draft("true");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    let WorkerEnd::Failed(failure) = site.until_ended(&*engine, draft.worker(0)).await else {
        panic!("nobody here has stopped it")
    };
    assert!(failure.detail.ends_with("was cancelled, and not by Danlu"), "{}", failure.detail);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_slurm_lost_before_it_began_is_submitted_again() {
    let Some(rig) = SlurmRig::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    // A number that no job has, once.
    let lost = "[ -e \"$HERE/once\" ] && exec $REAL \"$@\"; touch \"$HERE/once\"; echo 4000000";
    let site = site_of(rig, Some(programs(folder.path(), &[("sbatch", lost)])));
    let engine = site.engine();
    let draft = site.draft("echo ran >> \"$DANLU_OUTPUT_DIR/count\"");
    site.until("the job is submitted again", async || {
        engine.launch(&draft.launch_file(0)).await.unwrap();
        matches!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Ended { .. }).then_some(())
    })
    .await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
    assert_eq!(site.until_written(draft.job, "count").await, "ran");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submission_whose_answer_is_lost_is_found_and_not_made_again() {
    let Some(rig) = SlurmRig::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lost =
        "$REAL \"$@\" > /dev/null; echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1";
    let site = site_of(rig, Some(programs(folder.path(), &[("sbatch", lost)])));
    let engine = site.engine();
    let draft = site.draft("echo ran >> \"$DANLU_OUTPUT_DIR/count\"; sleep 1");
    let error = engine.launch(&draft.launch_file(0)).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    let again = || async { engine.launch(&draft.launch_file(0)).await.ok() };
    site.until("Slurm is asked again", again).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
    assert_eq!(jobs_of(rig, draft.worker(0), &site).len(), 1);
    assert_eq!(site.until_written(draft.job, "count").await, "ran");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_submitted_twice_runs_once() {
    let Some(rig) = SlurmRig::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let twice = "cat > \"$HERE/script\"; for turn in first second; do number=$($REAL \"$@\" < \"$HERE/script\") || exit 1; done; \
                 echo $number";
    let site = site_of(rig, Some(programs(folder.path(), &[("sbatch", twice)])));
    let engine = site.engine();
    let draft =
        TestWorker { workers: 2, ..site.draft("echo ran >> \"$DANLU_OUTPUT_DIR/count-$RANK\"; sleep 0.5") };
    for index in 0..2 {
        engine.launch(&draft.launch_file(index)).await.unwrap();
    }
    for index in 0..2 {
        assert_eq!(site.until_ended(&*engine, draft.worker(index)).await, WorkerEnd::Succeeded);
        engine.release(draft.worker(index)).await.unwrap();
    }
    let jobs = jobs_of(rig, draft.worker(0), &site);
    assert_eq!(jobs.len(), 2);
    site.until("both jobs are over", async || {
        let states = rig.ask("squeue", &["--noheader", "--format=%i", &format!("--jobs={}", jobs.join(","))]);
        states.trim().is_empty().then_some(())
    })
    .await;
    for rank in 0..2 {
        assert_eq!(site.until_written(draft.job, &format!("count-{rank}")).await, "ran");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_job_waits_for_in_slurm_is_said_and_it_can_be_stopped_there() {
    let Some(rig) = SlurmRig::start() else { return };
    let site = site_of(&rig, None);
    let engine = site.engine();
    let foreign = rig.ask(
        "sbatch",
        &["--parsable", "--nodelist=n1", "--gres=gpu:8", "--output=/dev/null", "--wrap=sleep 600"],
    );
    site.until("the foreign job runs", async || {
        let state = rig.ask("squeue", &["--noheader", "--format=%T", &format!("--jobs={}", foreign.trim())]);
        (state.trim() == "RUNNING").then_some(())
    })
    .await;
    let devices = vec![site.device(DeviceKind::Nvidia, 0)];
    let draft = TestWorker { devices, ..site.draft("echo ran > \"$DANLU_OUTPUT_DIR/ran\"") };
    engine.launch(&draft.launch_file(0)).await.unwrap();
    let remark = site
        .until("Slurm says why it waits", async || {
            let seen = engine.observe(Which::These(&[draft.worker(0)])).await.unwrap().remove(0);
            assert_eq!(seen.seen, ObservedState::Preparing);
            let is_short =
                |remark: &Reason| matches!(remark, Reason::SlurmPending { cause: SlurmWait::Resources, .. });
            seen.remark.filter(is_short)
        })
        .await;
    assert!(remark.to_string().contains("too little is free on its nodes"), "{remark}");
    engine.signal(draft.worker(0), &AT_ONCE).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
    engine.release(draft.worker(0)).await.unwrap();
    assert!(!site.layout().output_folder(draft.job).join("ran").exists());
    rig.ask("scancel", &[foreign.trim()]);

    rig.ask("scontrol", &["update", "NodeName=n3", "State=DRAIN", "Reason=new fans"]);
    let nodes = engine.inventory().await.unwrap();
    let drained = nodes.iter().find(|node| node.name.0 == "n3").unwrap();
    let why = drained.cordoned.as_deref().unwrap();
    assert!(why.starts_with("Slurm says drain: new fans"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_controller_is_away_nothing_is_lost() {
    let Some(rig) = SlurmRig::start() else { return };
    let site = site_of(&rig, None);
    let engine = site.engine();
    let short = site.draft("until [ -e \"$DANLU_OUTPUT_DIR/go\" ]; do sleep 0.01; done");
    let long = site.draft("exec sleep 600");
    for draft in [&short, &long] {
        engine.launch(&draft.launch_file(0)).await.unwrap();
        site.until_running(&*engine, draft.worker(0)).await;
    }
    rig.kill_controller();
    fs::write(site.layout().output_folder(short.job).join("go"), "").unwrap();
    assert_eq!(site.until_ended(&*engine, short.worker(0)).await, WorkerEnd::Succeeded);
    assert!(matches!(site.seen(&*engine, long.worker(0)).await, ObservedState::Running { .. }));

    rig.restart_controller();
    let after = site.draft("echo ran");
    engine.launch(&after.launch_file(0)).await.unwrap();
    assert_eq!(site.until_ended(&*engine, after.worker(0)).await, WorkerEnd::Succeeded);
    assert!(matches!(site.seen(&*engine, long.worker(0)).await, ObservedState::Running { .. }));
    engine.signal(long.worker(0), &AT_ONCE).await.unwrap();
    assert_eq!(site.until_ended(&*engine, long.worker(0)).await, WorkerEnd::Stopped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_slurms_programs_may_print_loses_a_job() {
    let Some(rig) = SlurmRig::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    // Each look gets another kind of nonsense; `turns` counts them.
    let nonsense = "echo x >> \"$HERE/turns\"\ncase $(($(wc -l < \"$HERE/turns\") % 6)) in\n\
        0) ;;\n1) $REAL \"$@\" | head -c 5 ;;\n2) echo 'JOBID|ZUSTAND|NAME|GRUND'; echo '1|LÄUFT|x|Keiner' ;;\n\
        3) head -c 3000000 /dev/zero | tr '\\0' 'x' ;;\n4) $REAL \"$@\" | tr '|' ' ' ;;\n5) exit 7 ;;\nesac";
    let site = site_of(rig, Some(programs(folder.path(), &[("squeue", nonsense), ("scontrol", nonsense)])));
    let turns = folder.path().join("turns");
    let engine = site.engine();
    let draft = site.draft("until [ -e \"$DANLU_OUTPUT_DIR/go\" ]; do sleep 0.01; done");
    site.until("the node is found at last", async || engine.launch(&draft.launch_file(0)).await.ok()).await;
    site.until_running(&*engine, draft.worker(0)).await;
    site.until("all kinds of nonsense were heard", async || {
        assert!(matches!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Running { .. }));
        let heard = fs::read_to_string(&turns).unwrap_or_default().lines().count();
        (heard > 14).then_some(())
    })
    .await;
    fs::write(site.layout().output_folder(draft.job).join("go"), "").unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_somebody_else_cancels_says_so() {
    let Some(rig) = SlurmRig::shared() else { return };
    let site = site_of(rig, None);
    let engine = site.engine();
    let draft = site.draft("trap '' TERM; while :; do sleep 0.05; done");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until_running(&*engine, draft.worker(0)).await;
    rig.ask("scancel", &["--full", "--signal=KILL", &jobs_of(rig, draft.worker(0), &site)[0]]);
    match site.until_ended(&*engine, draft.worker(0)).await {
        WorkerEnd::Failed(failure) => {
            assert_eq!(failure.cause, FailureCause::LauncherLost);
            assert!(failure.detail.contains("Slurm's job"), "{}", failure.detail);
        }
        other => panic!("{other:?}"),
    }
}
