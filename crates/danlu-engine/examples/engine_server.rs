//! A server as plain as can be, to be killed by tests: `engine_server DATA LAUNCHER JOBS` launches whatever the engine
//! does not know of that many jobs, until all have ended.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use danlu_core::launch::RunLayout;
use danlu_engine::conformance::TestWorker;
use danlu_engine::local::{Launchers, LocalEngine, LocalOptions, Offered};
use danlu_engine::{Engine, ObservedState, Which};
use danlu_types::JobId;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [data, launcher, jobs] = &arguments[..] else { return Err("give DATA, LAUNCHER and JOBS".into()) };
    let data = PathBuf::from(data);
    let jobs: u64 = jobs.to_str().ok_or("JOBS is no number")?.parse()?;
    let layout = RunLayout { data: data.clone() };
    let drafts: BTreeMap<_, _> = (1..=jobs)
        .map(|job| TestWorker::new(&layout, JobId(job), "echo ran; echo ran >> \"$DANLU_OUTPUT_DIR/count\""))
        .map(|draft| (draft.worker(0), draft))
        .collect();
    let workers: Vec<_> = drafts.keys().copied().collect();

    let options = LocalOptions {
        data,
        launchers: Launchers::Nursery(vec![launcher.clone()]),
        environment: Vec::new(),
        offered: Offered::default(),
    };
    let engine = LocalEngine::new(options)?;
    loop {
        let seen = engine.observe(Which::These(&workers)).await?;
        if seen.iter().all(|it| matches!(it.seen, ObservedState::Ended { .. })) {
            return Ok(());
        }
        for unknown in seen.iter().filter(|it| it.seen == ObservedState::Unknown) {
            engine.launch(&drafts[&unknown.worker].launch_file(0)).await?;
        }
        // Hints may be lost: look again without one after a while.
        let _ = tokio::time::timeout(Duration::from_millis(50), engine.changed()).await;
    }
}
