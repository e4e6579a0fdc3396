//! Orders to end.

use danlu_core::job::WorkerEnd;

use super::{AT_ONCE, PATIENTLY, SHORTLY, assert_gone, launch, stop};
use crate::ObservedState;
use crate::conformance::{ProgramStep, Site, TestFolder, TestProgram, TestWorker};

pub async fn a_stop_gives_grace(site: &Site) {
    let engine = site.engine();
    let saves = ProgramStep::OnStop(vec![ProgramStep::write("saved", "saved")]);
    let draft = site.job(&TestProgram::new([saves, ProgramStep::write("pid", "$$"), ProgramStep::Forever]));
    launch(&*engine, &draft).await;
    let pid = site.until_written(draft.job, "pid").await;
    stop(&*engine, &draft, &PATIENTLY).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
    assert_eq!(site.until_written(draft.job, "saved").await, "saved");
    assert_gone(site, &pid);
    stop(&*engine, &draft, &AT_ONCE).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
}

pub async fn a_stop_kills_what_does_not_listen(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::new([
        ProgramStep::IgnoreStop,
        ProgramStep::write("pid", "$$"),
        ProgramStep::Forever,
    ]));
    launch(&*engine, &draft).await;
    let pid = site.until_written(draft.job, "pid").await;
    stop(&*engine, &draft, &SHORTLY).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
    assert_gone(site, &pid);
}

pub async fn no_process_outlives_its_worker(site: &Site) {
    let engine = site.engine();
    for (ending, expected) in
        [(ProgramStep::Exit(0), WorkerEnd::Succeeded), (ProgramStep::Forever, WorkerEnd::Stopped)]
    {
        let draft = site.job(&TestProgram::new([ProgramStep::Daemon("daemon".to_owned()), ending]));
        launch(&*engine, &draft).await;
        let pid = site.until_written(draft.job, "daemon").await;
        if expected == WorkerEnd::Stopped {
            stop(&*engine, &draft, &SHORTLY).await;
        }
        assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, expected);
        engine.release(draft.worker(0)).await.expect("an ended worker can be released");
        assert_gone(site, &pid);
    }
}

pub async fn a_stop_before_the_start_starts_nothing(site: &Site) {
    let engine = site.engine();
    let stranger = site.job(&TestProgram::default());
    stop(&*engine, &stranger, &AT_ONCE).await;
    assert_eq!(site.seen(&*engine, stranger.worker(0)).await, ObservedState::Unknown);

    // Its gang is not complete, so it has not started when the order comes.
    let draft = TestWorker { workers: 2, ..site.job(&TestProgram::new([ProgramStep::write("ran", "ran")])) };
    engine.launch(&draft.launch_file(0)).await.expect("a worker can be launched");
    stop(&*engine, &draft, &PATIENTLY).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
    assert_eq!(site.ground().file(draft.job, TestFolder::Output, "ran"), None);
}
