//! Orders to end.

use danlu_core::job::WorkerExit;

use super::{AT_ONCE, PATIENTLY, SHORTLY, assert_gone, launch, stop};
use crate::Seen;
use crate::conformance::{Draft, Place, Program, Site, Step};

pub async fn a_stop_gives_grace(site: &Site) {
    let engine = site.engine();
    let saves = Step::OnStop(vec![Step::write("saved", "saved")]);
    let draft = site.job(&Program::new([saves, Step::write("pid", "$$"), Step::Forever]));
    launch(&*engine, &draft).await;
    let pid = site.until_written(draft.job, "pid").await;
    stop(&*engine, &draft, &PATIENTLY).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Stopped);
    assert_eq!(site.until_written(draft.job, "saved").await, "saved");
    assert_gone(site, &pid);
    stop(&*engine, &draft, &AT_ONCE).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Stopped);
}

pub async fn a_stop_kills_what_does_not_listen(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&Program::new([Step::IgnoreStop, Step::write("pid", "$$"), Step::Forever]));
    launch(&*engine, &draft).await;
    let pid = site.until_written(draft.job, "pid").await;
    stop(&*engine, &draft, &SHORTLY).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Stopped);
    assert_gone(site, &pid);
}

pub async fn no_process_outlives_its_worker(site: &Site) {
    let engine = site.engine();
    for (ending, expected) in [(Step::Exit(0), WorkerExit::Succeeded), (Step::Forever, WorkerExit::Stopped)] {
        let draft = site.job(&Program::new([Step::Daemon("daemon".to_owned()), ending]));
        launch(&*engine, &draft).await;
        let pid = site.until_written(draft.job, "daemon").await;
        if expected == WorkerExit::Stopped {
            stop(&*engine, &draft, &SHORTLY).await;
        }
        assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, expected);
        engine.release(draft.worker(0)).await.expect("an ended worker can be released");
        assert_gone(site, &pid);
    }
}

pub async fn a_stop_before_the_start_starts_nothing(site: &Site) {
    let engine = site.engine();
    let stranger = site.job(&Program::default());
    stop(&*engine, &stranger, &AT_ONCE).await;
    assert_eq!(site.seen(&*engine, stranger.worker(0)).await, Seen::Unknown);

    // Its gang is not complete, so it has not started when the order comes.
    let draft = Draft { workers: 2, ..site.job(&Program::new([Step::write("ran", "ran")])) };
    engine.launch(&draft.launch_file(0)).await.expect("a worker can be launched");
    stop(&*engine, &draft, &PATIENTLY).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Stopped);
    assert_eq!(site.ground().file(draft.job, Place::Output, "ran"), None);
}
