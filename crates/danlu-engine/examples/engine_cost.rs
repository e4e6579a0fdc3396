//! What the local engine costs: `cargo run --release -p danlu-engine --example engine_cost`.
//!
//! Launchers are `true` and `sleep`, so the figures are the engine's own and the kernel's; the floor is the same
//! program started by hand.
#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use danlu_core::launch::{LauncherState, LauncherStatus, RankProcess, RunLayout, STATUS_FILE, StopOrder};
use danlu_device::process;
use danlu_engine::conformance::TestWorker;
use danlu_engine::local::{Launchers, LocalEngine, LocalOptions, Offered};
use danlu_engine::{Engine, ObservedState, Which};
use danlu_types::{JobId, Rank, Span, WorkerId};
use jiff::Timestamp;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

const WORKERS: u32 = 200;
const ROUNDS: u32 = 20;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let begun = Begun::now();
    for _ in 0..WORKERS {
        Command::new("true").stdin(Stdio::null()).spawn()?.wait()?;
    }
    begun.report("floor: start and wait for `true`", WORKERS);

    let engine = open(&folder.path().join("brief"), ["true".into()])?;
    let begun = Begun::now();
    let workers = launch(&engine, &folder.path().join("brief")).await?;
    begun.report("launch, of a launcher that ends at once", WORKERS);
    let begun = Begun::now();
    for worker in &workers {
        while !matches!(engine.observe(Which::These(&[*worker])).await?[0].seen, ObservedState::Ended { .. })
        {
        }
    }
    begun.report("verdict on a lost launcher", WORKERS);
    let begun = Begun::now();
    for worker in &workers {
        engine.release(*worker).await?;
    }
    begun.report("release", WORKERS);

    let data = folder.path().join("lasting");
    let engine = open(&data, ["sh".into(), "-c".into(), "exec sleep 600".into()])?;
    let begun = Begun::now();
    let workers = launch(&engine, &data).await?;
    begun.report("launch, of one that lasts", WORKERS);
    let pids = speak_for_launchers(&data, &workers)?;
    let begun = Begun::now();
    for _ in 0..ROUNDS {
        let seen = engine.observe(Which::All).await?;
        assert!(seen.iter().all(|it| matches!(it.seen, ObservedState::Running { .. })));
    }
    begun.report("observe all of 200 that run", ROUNDS);
    let begun = Begun::now();
    for worker in &workers {
        engine.signal(*worker, &StopOrder { grace: Span::from_seconds(1) }).await?;
    }
    begun.report("signal", WORKERS);
    for pid in pids {
        while process::identity(pid).is_some() {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

fn open(data: &Path, launcher: impl Into<Vec<OsString>>) -> Result<LocalEngine> {
    let options = LocalOptions {
        data: data.to_owned(),
        launchers: Launchers::Programs(launcher.into()),
        environment: Vec::new(),
        offered: Offered::default(),
    };
    Ok(LocalEngine::new(options)?)
}

async fn launch(engine: &LocalEngine, data: &Path) -> Result<Vec<WorkerId>> {
    let layout = RunLayout { data: data.to_owned() };
    let mut workers = Vec::new();
    for job in 1..=WORKERS {
        let draft = TestWorker::new(&layout, JobId(job.into()), "true");
        engine.launch(&draft.launch_file(0)).await?;
        workers.push(draft.worker(0));
    }
    Ok(workers)
}

/// Writes the status that a launcher with eight ranks would.
fn speak_for_launchers(data: &Path, workers: &[WorkerId]) -> Result<Vec<i32>> {
    let layout = RunLayout { data: data.to_owned() };
    let mut pids = Vec::new();
    for worker in workers {
        let run = layout.run_folder(*worker);
        let log = fs::read_to_string(run.join("launcher.log"))?;
        let pid: i32 =
            log.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap_or_default().parse()?;
        let ranks = (0..8).map(|rank| RankProcess { rank: Rank(rank), pid }).collect();
        let launcher = process::identity(pid).ok_or("a launcher is gone")?;
        let phase = LauncherState::Running { since: Timestamp::now(), ranks };
        let status = LauncherStatus { worker: *worker, launcher, phase };
        fs::write(run.join(STATUS_FILE), status.to_line()?)?;
        pids.push(pid);
    }
    Ok(pids)
}

/// Time on the clock, and processor time of this process: on a busy machine only the second says much.
struct Begun {
    at: Instant,
    cpu: Duration,
}

impl Begun {
    fn now() -> Self {
        Begun { at: Instant::now(), cpu: cpu_time() }
    }

    fn report(self, what: &str, times: u32) {
        let each = |took: Duration| took.as_secs_f64() * 1e6 / f64::from(times);
        let (wall, cpu) = (each(self.at.elapsed()), each(cpu_time().saturating_sub(self.cpu)));
        println!("{what:<45} {wall:>9.1} µs each, {cpu:>9.1} µs of processor time");
    }
}

fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let microseconds = |time: TimeVal| time.num_microseconds().unsigned_abs();
    Duration::from_micros(microseconds(usage.user_time()) + microseconds(usage.system_time()))
}
