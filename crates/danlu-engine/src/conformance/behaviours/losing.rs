//! Servers, launchers and nodes that go away, and attempts that go on where another was cut off.

use danlu_core::job::{FailureCause, WorkerEnd};

use super::{AT_ONCE, PATIENTLY, assert_gone, launch, stop, until_failed};
use crate::conformance::{ProgramStep, Site, TestFolder, TestProgram, TestWorker};
use crate::{ObservedState, Which};

pub async fn a_restarted_server_adopts_what_runs(site: &Site) {
    let first = site.engine();
    let draft = site.job(&TestProgram::new([ProgramStep::write("pid", "$$"), ProgramStep::Forever]));
    launch(&*first, &draft).await;
    site.until_running(&*first, draft.worker(0)).await;
    let pid = site.until_written(draft.job, "pid").await;
    let before = site.seen(&*first, draft.worker(0)).await;
    drop(first);

    let second = site.engine();
    let all = second.observe(Which::All).await.expect("workers can be looked at");
    let found: Vec<&ObservedState> =
        all.iter().filter(|it| it.worker == draft.worker(0)).map(|it| &it.seen).collect();
    assert_eq!(found, [&before]);
    second.launch(&draft.launch_file(0)).await.expect("launching again is no error");
    stop(&*second, &draft, &AT_ONCE).await;
    assert_eq!(site.until_ended(&*second, draft.worker(0)).await, WorkerEnd::Stopped);
    assert_gone(site, &pid);
}

pub async fn workers_run_on_while_no_server_does(site: &Site) {
    let first = site.engine();
    let program = TestProgram::new([
        ProgramStep::write("up", "up"),
        ProgramStep::wait_for("go"),
        ProgramStep::Print("line".to_owned()),
        ProgramStep::write("done", "done"),
    ]);
    let draft = site.job(&program);
    launch(&*first, &draft).await;
    site.until_written(draft.job, "up").await;
    drop(first);
    site.ground().write_file(draft.job, TestFolder::Output, "go", "go\n");
    site.until_written(draft.job, "done").await;

    let second = site.engine();
    assert_eq!(site.until_ended(&*second, draft.worker(0)).await, WorkerEnd::Succeeded);
    assert_eq!(site.printed(draft.worker(0), 0), ["line"]);
}

pub async fn a_lost_launcher_is_told_and_takes_its_ranks_along(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::new([ProgramStep::write("pid", "$$"), ProgramStep::Forever]));
    launch(&*engine, &draft).await;
    site.until_running(&*engine, draft.worker(0)).await;
    let rank = site.until_written(draft.job, "pid").await;
    site.ground().lose_launcher(draft.worker(0));
    let failure = until_failed(site, &*engine, &draft, 0).await;
    assert_eq!(failure.cause, FailureCause::LauncherLost, "{}", failure.detail);
    let verdict = site.seen(&*engine, draft.worker(0)).await;
    drop(engine);

    let engine = site.engine();
    engine.signal(draft.worker(0), &AT_ONCE).await.expect("a worker that is gone already is no error");
    engine.launch(&draft.launch_file(0)).await.expect("launching again is no error");
    assert_eq!(site.seen(&*engine, draft.worker(0)).await, verdict, "a verdict stays");
    engine.release(draft.worker(0)).await.expect("an ended worker can be released");
    assert_gone(site, &rank);
}

pub async fn a_lost_launcher_leaves_no_daemon(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::new([ProgramStep::Daemon("daemon".to_owned()), ProgramStep::Forever]));
    launch(&*engine, &draft).await;
    site.until_running(&*engine, draft.worker(0)).await;
    let daemon = site.until_written(draft.job, "daemon").await;
    site.ground().lose_launcher(draft.worker(0));
    until_failed(site, &*engine, &draft, 0).await;
    engine.release(draft.worker(0)).await.expect("an ended worker can be released");
    assert_gone(site, &daemon);
}

/// The worker that was there is blamed, by the node's name; the others of its gang end when they are told to.
pub async fn a_lost_node_is_told_from_a_program_that_fails(site: &Site) {
    let engine = site.engine();
    let draft = TestWorker { workers: 2, ..site.job(&TestProgram::forever()) };
    launch(&*engine, &draft).await;
    for worker in [0, 1] {
        site.until_running(&*engine, draft.worker(worker)).await;
    }
    let lost = draft.launch_file(1).node;
    assert_ne!(lost, draft.launch_file(0).node, "a gang over two nodes");
    site.lose_node(&lost);
    let failure = until_failed(site, &*engine, &draft, 1).await;
    assert_eq!(failure.cause, FailureCause::NodeLost, "{}", failure.detail);
    assert!(failure.detail.contains(lost.0.as_str()), "{}", failure.detail);
    stop(&*engine, &draft, &AT_ONCE).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
    for worker in [0, 1] {
        engine.release(draft.worker(worker)).await.expect("an ended worker can be released");
    }
    let nodes = engine.inventory().await.expect("an engine knows its nodes");
    let closed = nodes.iter().find(|node| node.name == lost).and_then(|node| node.cordoned.as_deref());
    assert!(closed.is_some(), "nothing new starts on {lost}: {nodes:?}");
}

/// Preempted, and placed again: what was saved in the grace is there.
pub async fn the_next_attempt_finds_what_the_one_before_has_saved(site: &Site) {
    let engine = site.engine();
    let (step, text) = ("step".to_owned(), "step 40 of job $DANLU_JOB_ID".to_owned());
    let saves = ProgramStep::OnStop(vec![ProgramStep::Write(TestFolder::Checkpoint, step.clone(), text)]);
    let first = site.job(&TestProgram::new([saves, ProgramStep::write("up", "up"), ProgramStep::Forever]));
    launch(&*engine, &first).await;
    site.until_written(first.job, "up").await;
    stop(&*engine, &first, &PATIENTLY).await;
    assert_eq!(site.until_ended(&*engine, first.worker(0)).await, WorkerEnd::Stopped);
    engine.release(first.worker(0)).await.expect("an ended worker can be released");

    let resumes = TestProgram::new([
        ProgramStep::Await(TestFolder::Resume, step),
        ProgramStep::Print("attempt $DANLU_ATTEMPT goes on".to_owned()),
    ]);
    let command = site.ground().command(&resumes);
    let second = TestWorker { attempt: 2, command, ..first.clone() };
    launch(&*engine, &second).await;
    assert_eq!(site.until_ended(&*engine, second.worker(0)).await, WorkerEnd::Succeeded);
    assert_eq!(site.printed(second.worker(0), 0), ["attempt 2 goes on"]);
    let saved = site.ground().file(first.job, TestFolder::Checkpoint, "step").unwrap_or_default();
    assert_eq!(saved, format!("step 40 of job {}\n", first.job));
}
