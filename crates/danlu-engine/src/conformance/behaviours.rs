//! The behaviours. Each ends with nothing running; after one that fails its site cleans up.

mod holding;
mod losing;
mod running;
mod sessions;
mod stopping;

pub use holding::*;
pub use losing::*;
pub use running::*;
pub use sessions::*;
pub use stopping::*;

use danlu_core::job::{WorkerEnd, WorkerFailure};
use danlu_core::launch::StopOrder;
use danlu_types::Span;

use super::{Site, TestWorker};
use crate::Engine;

const AT_ONCE: StopOrder = StopOrder { grace: Span { milliseconds: 0 } };
const SHORTLY: StopOrder = StopOrder { grace: Span { milliseconds: 300 } };
const PATIENTLY: StopOrder = StopOrder { grace: Span::from_seconds(60) };

async fn launch(engine: &dyn Engine, draft: &TestWorker) {
    for index in 0..draft.workers {
        engine.launch(&draft.launch_file(index)).await.expect("a worker can be launched");
    }
}

async fn stop(engine: &dyn Engine, draft: &TestWorker, order: &StopOrder) {
    for index in 0..draft.workers {
        engine.signal(draft.worker(index), order).await.expect("a worker can be stopped");
    }
}

async fn until_failed(site: &Site, engine: &dyn Engine, draft: &TestWorker, worker: u32) -> WorkerFailure {
    match site.until_ended(engine, draft.worker(worker)).await {
        WorkerEnd::Failed(failure) => failure,
        other => panic!("worker {worker} of job {} ended as {other:?}", draft.job),
    }
}

/// A worker has ended only when its processes have.
fn assert_gone(site: &Site, process: &str) {
    let process = process.parse().expect("the worker wrote a process number");
    assert!(!site.ground().is_alive(process), "process {process} outlived its worker");
}
