//! The local engine with the real launcher: the whole conformance suite, and what its servers and nurseries leave.

mod support;

mod conforms {
    use crate::support::{memory_limited_site, real_site};

    danlu_engine::conformance_tests!(Local, real_site();
        real_site() => a_lost_launcher_leaves_no_daemon;
        match memory_limited_site() {
            Some(site) => site,
            None => return,
        } => a_worker_that_takes_too_much_memory_is_ended);
}

use std::fs;
use std::process::Command;

use danlu_core::job::WorkerEnd;
use danlu_device::process;
use danlu_engine::{ObservedState, Which};
use support::{example, kill, parent_of, real_site, status};

/// The example is a server as plain as can be: it launches whatever the engine does not know. Each round kills it a
/// few launches later than the one before, in the middle of whatever it is doing then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_again_and_again_starts_every_worker_exactly_once() {
    const JOBS: u64 = 60;
    let site = real_site();
    let live = site.layout().live_folder();
    let launched = || fs::read_dir(&live).map_or(0, Iterator::count);
    let serve = || {
        let mut server = Command::new(example("engine_server"));
        server.arg(&site.layout().data).arg(example("engine_launcher")).arg(JOBS.to_string());
        server.spawn().unwrap()
    };
    for enough in (1..50).step_by(3) {
        let mut server = serve();
        site.until("some are launched", async || (launched() >= enough).then_some(())).await;
        server.kill().unwrap();
        server.wait().unwrap();
    }
    let mut server = serve();
    site.until("the last server is done", async || server.try_wait().unwrap()).await;

    let engine = site.engine();
    let seen = engine.observe(Which::All).await.unwrap();
    assert_eq!(seen.len() as u64, JOBS);
    for observation in seen {
        assert!(
            matches!(observation.seen, ObservedState::Ended { exit: WorkerEnd::Succeeded, .. }),
            "{observation:?}"
        );
        assert_eq!(site.printed(observation.worker, 0), ["ran"], "{}", observation.worker);
        assert_eq!(
            site.until_written(observation.worker.job, "count").await,
            "ran",
            "{}",
            observation.worker
        );
    }
}

#[tokio::test]
async fn a_lost_nursery_loses_no_launcher_and_is_followed_by_another() {
    let site = real_site();
    let engine = site.engine();
    let before = site.draft("exec sleep 600");
    engine.launch(&before.launch_file(0)).await.unwrap();
    site.until_running(&*engine, before.worker(0)).await;
    let fork_server = parent_of(status(&site, before.worker(0)).launcher.pid);
    assert_ne!(fork_server, i32::try_from(std::process::id()).unwrap());
    kill(fork_server);
    site.until("the fork server is gone", async || process::identity(fork_server).is_none().then_some(()))
        .await;

    let after = site.draft("echo ran");
    engine.launch(&after.launch_file(0)).await.unwrap();
    assert_eq!(site.until_ended(&*engine, after.worker(0)).await, WorkerEnd::Succeeded);
    assert!(matches!(site.seen(&*engine, before.worker(0)).await, ObservedState::Running { .. }));
}

#[tokio::test]
async fn a_nursery_ends_with_its_engine_and_its_launchers_do_not() {
    let site = real_site();
    let engine = site.engine();
    let draft = site.draft("exec sleep 600");
    engine.launch(&draft.launch_file(0)).await.unwrap();
    site.until_running(&*engine, draft.worker(0)).await;
    let launcher = status(&site, draft.worker(0)).launcher;
    let fork_server = parent_of(launcher.pid);
    drop(engine);
    site.until("the fork server is gone", async || process::identity(fork_server).is_none().then_some(()))
        .await;
    assert!(process::is_alive(launcher));
}
