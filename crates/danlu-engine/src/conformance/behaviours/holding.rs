//! What workers are given, and what becomes of those who take more.

use danlu_core::job::{FailureCause, WorkerEnd};
use danlu_types::{Bytes, DeviceKind, Span};

use super::{AT_ONCE, assert_gone, launch, stop, until_failed};
use crate::conformance::{ProgramStep, Scheduling, Site, TestProgram, TestWorker};

pub async fn workers_see_their_devices_and_no_others(site: &Site) {
    let engine = site.engine();
    let program = TestProgram::print("ascend=$ASCEND_RT_VISIBLE_DEVICES nvidia=$CUDA_VISIBLE_DEVICES");
    for (kind, numbers, expected) in [
        (DeviceKind::Ascend, vec![2, 5], "ascend=2,5 nvidia="),
        (DeviceKind::Nvidia, vec![7], "ascend= nvidia=7"),
        (DeviceKind::Nvidia, vec![], "ascend= nvidia="),
    ] {
        let devices = numbers.into_iter().map(|number| site.device(kind, number)).collect();
        let draft = TestWorker { devices, ..site.job(&program) };
        launch(&*engine, &draft).await;
        assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
        let printed = site.printed(draft.worker(0), 0);
        match site.scheduling() {
            Scheduling::Ours | Scheduling::Simulated => assert_eq!(printed, [expected]),
            // Which ones is not ours to say; how many is.
            Scheduling::Theirs => {
                let without_digits = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
                assert_eq!(without_digits(&printed.join("\n")), without_digits(expected), "{printed:?}");
            }
        }
    }
}

pub async fn workers_at_the_same_time_share_no_device(site: &Site) {
    let engine = site.engine();
    let program =
        TestProgram::new([ProgramStep::write("devices", "$CUDA_VISIBLE_DEVICES"), ProgramStep::Forever]);
    let mut drafts = Vec::new();
    let mut seen = Vec::new();
    for numbers in [[0, 1], [2, 3], [4, 5]] {
        let devices = numbers.iter().map(|number| site.device(DeviceKind::Nvidia, *number)).collect();
        let draft = TestWorker { devices, ..site.job(&program) };
        launch(&*engine, &draft).await;
        let devices = site.until_written(draft.job, "devices").await;
        seen.extend(devices.split(',').map(str::to_owned));
        drafts.push(draft);
    }
    seen.sort();
    let all = seen.len();
    seen.dedup();
    assert_eq!((all, seen.len()), (6, 6), "{seen:?}");
    for draft in drafts {
        stop(&*engine, &draft, &AT_ONCE).await;
        assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
    }
}

/// What keeps them to it is each engine's own: a quota of the kernel's, Slurm's, or nothing.
pub async fn programs_know_their_share_of_processors(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::print("$OMP_NUM_THREADS threads"));
    launch(&*engine, &draft).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
    assert_eq!(site.printed(draft.worker(0), 0), ["1 threads"]);
}

pub async fn a_worker_that_runs_too_long_is_ended(site: &Site) {
    let engine = site.engine();
    let program = TestProgram::new([ProgramStep::write("pid", "$$"), ProgramStep::Forever]);
    let draft = TestWorker { max_time: Some(Span { milliseconds: 300 }), ..site.job(&program) };
    launch(&*engine, &draft).await;
    let failure = until_failed(site, &*engine, &draft, 0).await;
    assert_eq!(failure.cause, FailureCause::TimeLimit, "{}", failure.detail);
    assert_gone(site, &site.until_written(draft.job, "pid").await);
}

pub async fn a_worker_that_takes_too_much_memory_is_ended(site: &Site) {
    let engine = site.engine();
    let hungry = TestProgram::new([ProgramStep::UseMemory(512 << 20)]);
    let draft = TestWorker { memory: Some(Bytes(64 << 20)), ..site.job(&hungry) };
    launch(&*engine, &draft).await;
    let failure = until_failed(site, &*engine, &draft, 0).await;
    assert_eq!(failure.cause, FailureCause::OutOfMemory, "{failure:?}");

    let modest = TestProgram::new([ProgramStep::UseMemory(8 << 20)]);
    let draft = TestWorker { memory: Some(Bytes(64 << 20)), ..site.job(&modest) };
    launch(&*engine, &draft).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
}
