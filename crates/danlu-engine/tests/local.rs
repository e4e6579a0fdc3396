//! The local engine with a launcher of a hundred lines: the conformance suite without sessions, and what only this
//! engine has: locks, verdicts, and what a killed server leaves behind.

mod support;

mod conforms {
    use crate::support::fake_site;

    danlu_engine::conformance_tests!(fake_site();
        a_worker_runs_and_ends,
        exit_codes_are_told,
        launching_again_runs_nothing_twice,
        a_gang_starts_together_or_not_at_all,
        the_first_failing_rank_ends_its_worker,
        a_stop_gives_grace,
        a_stop_kills_what_does_not_listen,
        no_process_outlives_its_worker,
        a_stop_before_the_start_starts_nothing,
        a_restarted_server_adopts_what_runs,
        workers_run_on_while_no_server_does,
        no_log_line_is_lost,
        workers_see_their_devices_and_no_others,
        workers_at_the_same_time_share_no_device,
        changes_are_hinted,
        released_workers_are_unknown,
    );
}

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use danlu_core::job::{FailureCause, WorkerEnd};
use danlu_core::launch::{LAUNCH_FILE, STATUS_FILE, STOP_FILE, StopOrder};
use danlu_device::process;
use danlu_engine::local::Launchers;
use danlu_engine::{EngineError, ObservedState, Which};
use danlu_types::{JobId, Span};
use support::{fake_site, kill, open_engine, site_with, status};

const STOP: StopOrder = StopOrder { grace: Span { milliseconds: 0 } };

/// As the first line of its log says: `… launcher started as process 4711`.
fn launcher_pid(run: &Path) -> i32 {
    let log = fs::read_to_string(run.join("launcher.log")).expect("a started launcher has a log");
    let first = log.lines().next().unwrap_or_default();
    first
        .rsplit(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .expect("the log begins with the process number")
}

#[tokio::test]
async fn a_lost_launcher_takes_its_ranks_along_and_is_told_for_ever() {
    let site = fake_site();
    let engine = site.engine();
    let draft =
        site.draft("setsid sh -c 'echo $$ > \"$DANLU_OUTPUT_DIR/pid\"; exec sleep 600' & exec sleep 600");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until_running(&*engine, draft.worker(0)).await;
    let pid: i32 = site.until_written(draft.job, "pid").await.parse().unwrap();

    kill(status(&site, draft.worker(0)).launcher.pid);
    let WorkerEnd::Failed(failure) = site.until_ended(&*engine, draft.worker(0)).await else {
        panic!("a lost launcher is a failure")
    };
    assert_eq!(failure.cause, FailureCause::LauncherLost);
    assert_eq!(process::identity(pid), None);

    let verdict = site.seen(&*engine, draft.worker(0)).await;
    assert!(matches!(verdict, ObservedState::Ended { running_since: Some(_), .. }));
    drop(engine);
    let engine = site.engine();
    engine.signal(draft.worker(0), &STOP).await.unwrap();
    engine.launch(&draft.launch_file(0)).await.unwrap();
    assert_eq!(site.seen(&*engine, draft.worker(0)).await, verdict);
    engine.release(draft.worker(0)).await.unwrap();
}

#[tokio::test]
async fn a_launcher_lost_while_stopping_was_stopped() {
    let site = fake_site();
    let engine = site.engine();
    let draft = site.draft("trap '' TERM; while :; do sleep 0.01; done");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until_running(&*engine, draft.worker(0)).await;
    let order = StopOrder { grace: Span::from_seconds(600) };
    engine.signal(draft.worker(0), &order).await.unwrap();
    kill(status(&site, draft.worker(0)).launcher.pid);
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
}

#[tokio::test]
async fn a_later_order_counts_only_if_it_is_shorter() {
    let site = site_with(Launchers::Programs(vec!["sleep".into(), "600".into()]));
    let engine = site.engine();
    let draft = site.draft("");
    // `sleep` refuses the run folder as an argument and ends; what matters here is the file.
    engine.launch(&draft.launch_file(0)).await.unwrap();
    let path = site.layout().run_folder(draft.worker(0)).join(STOP_FILE);
    for (grace, standing) in [(20, 20), (30, 20), (5, 5), (20, 5)] {
        let order = StopOrder { grace: Span::from_seconds(grace) };
        engine.signal(draft.worker(0), &order).await.unwrap();
        let read: StopOrder = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read.grace, Span::from_seconds(standing));
    }
}

#[tokio::test]
async fn a_launcher_that_never_speaks_is_lost_with_its_last_words_and_not_started_again() {
    let script = "echo started >> \"$0/starts\"; echo no such library >&2; exit 3";
    let site = site_with(Launchers::Programs(vec!["sh".into(), "-c".into(), script.into()]));
    let engine = site.engine();
    let draft = site.draft("");
    for _ in 0..3 {
        engine.launch(&draft.launch_file(0)).await.unwrap();
        let WorkerEnd::Failed(failure) = site.until_ended(&*engine, draft.worker(0)).await else {
            panic!("a launcher that never speaks is a failure")
        };
        assert_eq!((failure.cause, failure.detail.as_str()), (FailureCause::LauncherLost, "no such library"));
    }
    let starts = site.layout().run_folder(draft.worker(0)).join("starts");
    assert_eq!(fs::read_to_string(starts).unwrap(), "started\n");
}

/// Everything that a server killed between two lines of `launch` can leave.
#[tokio::test]
async fn a_launch_cut_short_is_unknown_and_begun_again() {
    let site = fake_site();
    let engine = site.engine();
    for left in
        [&[][..], &["run"], &["run", "lock"], &["run", "lock", "file"], &["run", "lock", "file", "marker"]]
    {
        let draft = site.draft("echo ran");
        let run = site.layout().run_folder(draft.worker(0));
        for thing in left {
            match *thing {
                "run" => fs::create_dir_all(&run).unwrap(),
                "lock" => fs::write(run.join("launcher.log"), "").unwrap(),
                "file" => fs::write(run.join(LAUNCH_FILE), "{}").unwrap(),
                _ => {
                    let marker = site.layout().live_folder().join(draft.worker(0).to_string());
                    fs::write(marker, "").unwrap();
                }
            }
        }
        assert_eq!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Unknown, "{left:?}");
        engine.launch(&draft.launch_file(0)).await.unwrap();
        assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded, "{left:?}");
        assert_eq!(site.printed(draft.worker(0), 0), ["ran"]);
    }
}

#[tokio::test]
async fn a_launch_cut_short_and_then_stopped_never_starts() {
    let site = fake_site();
    let engine = site.engine();
    let draft = site.draft("echo ran");
    let run = site.layout().run_folder(draft.worker(0));
    fs::create_dir_all(&run).unwrap();
    fs::write(run.join(LAUNCH_FILE), "{}").unwrap();
    fs::write(run.join("launcher.log"), "").unwrap();
    fs::write(site.layout().live_folder().join(draft.worker(0).to_string()), "").unwrap();
    engine.signal(draft.worker(0), &STOP).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
    engine.launch(&draft.launch_file(0)).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
    assert!(!run.join("rank-0.log").exists());
}

#[tokio::test]
async fn a_marker_without_a_run_folder_is_cleared_away() {
    let site = fake_site();
    let engine = site.engine();
    let live = site.layout().live_folder();
    fs::write(live.join("77.1.0"), "").unwrap();
    fs::write(live.join("not a worker"), "").unwrap();
    let all = engine.observe(Which::All).await.unwrap();
    assert_eq!(all.iter().map(|it| &it.seen).collect::<Vec<_>>(), [&ObservedState::Unknown]);
    assert!(engine.observe(Which::All).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_child_that_got_the_lock_does_not_keep_a_dead_launcher_alive() {
    let site = fake_site();
    let engine = site.engine();
    let draft = site.draft("exec sleep 600");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until_running(&*engine, draft.worker(0)).await;
    let launcher = status(&site, draft.worker(0)).launcher.pid;
    let run = site.layout().run_folder(draft.worker(0));
    // Its standard input is the locked file; a process of the worker holds a copy of it.
    let lock = fs::File::open(format!("/proc/{launcher}/fd/0")).unwrap();
    kill(launcher);
    site.until("the launcher is gone", async || {
        fs::metadata(format!("/proc/{launcher}/fd/0")).is_err().then_some(())
    })
    .await;
    lock.lock().unwrap();
    let mut stray =
        Command::new("sleep").arg("600").env("DANLU_RUN_DIR", &run).stdin(Stdio::from(lock)).spawn().unwrap();
    let reaper = std::thread::spawn(move || stray.wait().unwrap());
    let WorkerEnd::Failed(failure) = site.until_ended(&*engine, draft.worker(0)).await else {
        panic!("a lost launcher is a failure")
    };
    assert_eq!(failure.cause, FailureCause::LauncherLost);
    reaper.join().unwrap();
}

#[tokio::test]
async fn scribbles_in_the_run_folder_are_no_status() {
    let site = site_with(Launchers::Programs(vec!["sh".into(), "-c".into(), "exec sleep 600".into()]));
    let engine = site.engine();
    let draft = site.draft("");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    let run = site.layout().run_folder(draft.worker(0));
    let foreign = r#"{"worker":"9.9.9","launcher":{"pid":1,"start_ticks":1},"phase":"preparing"}"#;
    for scribble in ["", "{", "null", foreign] {
        fs::write(run.join(STATUS_FILE), format!("{scribble}\n")).unwrap();
        assert_eq!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Preparing, "{scribble}");
    }
    // Known by the note of its start, it hears the order all the same; `sleep` ends of it.
    engine.signal(draft.worker(0), &STOP).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
}

#[tokio::test]
async fn a_full_disk_is_a_transient_error_and_loses_nothing() {
    let site = fake_site();
    let engine = site.engine();
    let draft = site.draft("echo ran");
    let run = site.layout().run_folder(draft.worker(0));
    fs::create_dir_all(&run).unwrap();
    let draft_path = run.join(format!(".{LAUNCH_FILE}.draft"));
    std::os::unix::fs::symlink("/dev/full", &draft_path).unwrap();
    let error = engine.launch(&draft.launch_file(0)).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert_eq!(error.to_string(), format!("could not launch worker {}", draft.worker(0)));
    assert_eq!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Unknown);

    engine.launch(&draft.launch_file(0)).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
}

#[tokio::test]
async fn a_missing_launcher_is_an_error_and_the_worker_can_be_launched_later() {
    let site = site_with(Launchers::Programs(vec!["/nowhere/danlu".into()]));
    let engine = site.engine();
    let draft = site.draft("echo ran");
    let error = engine.launch(&draft.launch_file(0)).await.unwrap_err();
    assert!(
        matches!(error, EngineError::Worker { doing: "launch", .. }) && error.is_transient(),
        "{error:?}"
    );
    assert_eq!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Unknown);
    drop(engine);

    let engine = open_engine(&site.layout().data, Launchers::Programs(support::fake_launcher()));
    engine.launch(&draft.launch_file(0)).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
}

/// As a database wants it that was restored from before the worker ran.
#[tokio::test]
async fn a_released_run_folder_is_not_used_again_and_tells_what_it_ran() {
    let site = fake_site();
    let engine = site.engine();
    let draft = site.draft("true");
    let launch = draft.launch_file(0);
    engine.launch(&launch).await.unwrap();
    let ended = site.until_ended(&*engine, draft.worker(0)).await;
    engine.release(draft.worker(0)).await.unwrap();
    let log = fs::read(launch.folders.run.join("launcher.log")).unwrap();

    let mut other = launch.clone();
    other.command = "something else".to_owned();
    let error = engine.launch(&other).await.unwrap_err();
    assert!(!error.is_transient(), "{error:?}");
    assert_eq!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Unknown);

    engine.launch(&launch).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, ended);
    engine.release(draft.worker(0)).await.unwrap();
    assert_eq!(fs::read(launch.folders.run.join("launcher.log")).unwrap(), log, "nothing was started again");

    // What lies there was copied while it ran.
    fs::remove_file(launch.folders.run.join(STATUS_FILE)).unwrap();
    engine.launch(&launch).await.unwrap();
    match site.until_ended(&*engine, draft.worker(0)).await {
        WorkerEnd::Failed(failure) => assert_eq!(failure.cause, FailureCause::LauncherLost),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn launchers_leave_no_zombies() {
    let site = site_with(Launchers::Programs(vec!["true".into()]));
    let engine = site.engine();
    let drafts: Vec<_> = (0..20).map(|_| site.draft("")).collect();
    for draft in &drafts {
        engine.launch(&draft.launch_file(0)).await.unwrap();
    }
    // Each end is hinted, and by then it has been waited for.
    let mut left: std::collections::BTreeSet<JobId> = drafts.iter().map(|draft| draft.job).collect();
    while !left.is_empty() {
        let hinted = tokio::time::timeout(Duration::from_secs(30), engine.changed()).await.unwrap();
        for worker in hinted {
            left.remove(&worker.job);
            let pid = launcher_pid(&site.layout().run_folder(worker));
            assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "process {pid} is a zombie");
        }
    }
}

#[tokio::test]
async fn launchers_do_not_get_the_servers_own_settings() {
    let script = "tr '\\0' '\\n' < /proc/self/environ > \"$0/environ\"; echo > \"$0/written\"";
    let site = site_with(Launchers::Programs(vec!["sh".into(), "-c".into(), script.into()]));
    let engine = site.engine();
    let draft = site.draft("");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    let run = site.layout().run_folder(draft.worker(0));
    site.until("the launcher has run", async || run.join("written").exists().then_some(())).await;
    let environ = fs::read_to_string(run.join("environ")).unwrap();
    assert!(environ.contains("PATH=") && !environ.contains("DANLU_"), "{environ}");
}
