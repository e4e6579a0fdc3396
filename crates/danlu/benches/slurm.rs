//! What Danlu costs on a Slurm cluster: `cargo bench -p danlu --bench slurm`.
//!
//! The same short jobs, first by bare `sbatch` and then through Danlu, on one cluster of four emulated nodes; how long from
//! the first submission to the last end, and how many messages Slurm's controller got meanwhile (`sdiag`). Both sides
//! submit with as many clients at a time. Each line is a name, a value and a unit, separated by tabs.

#![expect(clippy::print_stdout, reason = "a benchmark's output is its figures")]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use danlu_testkit::{SlurmRig, TestServer};
use danlu_types::JobSpec;
use danlu_types::api::JobQuery;

const JOBS: usize = 1000;
const CLIENTS: usize = 4;
/// How often either side is asked whether all have ended.
const PAUSE: Duration = Duration::from_millis(500);

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return; // `cargo test` runs benchmarks too; figures are only taken on purpose.
    }
    let Some(rig) = SlurmRig::start() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let bare = bare(&rig);
    let danlu = runtime.block_on(danlu(&rig));
    for (name, cost) in [("bare", &bare), ("danlu", &danlu)] {
        println!("{name} time\t{:.1}\ts", cost.seconds);
        println!("{name} messages to the controller\t{}\t", cost.messages);
    }
    println!("time\t{:.2}\t× bare", danlu.seconds / bare.seconds);
    println!("messages\t{:.2}\t× bare", danlu.messages as f64 / bare.messages as f64);
}

struct Cost {
    seconds: f64,
    messages: u64,
}

/// What people do without Danlu: a submission for each job, and a look at the queue now and then.
fn bare(rig: &SlurmRig) -> Cost {
    rig.ask("sdiag", &["--reset"]);
    let begin = Instant::now();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < JOBS {
                    let status = Command::new("sbatch")
                        .args(["--parsable", "--output=/dev/null", "--wrap=true"])
                        .env("SLURM_CONF", rig.configuration())
                        .stdout(Stdio::null())
                        .status()
                        .expect("Slurm's programs are installed");
                    assert!(status.success(), "sbatch refused a job");
                }
            });
        }
    });
    while !rig.ask("squeue", &["--noheader", "--format=%i"]).is_empty() {
        std::thread::sleep(PAUSE);
    }
    Cost { seconds: begin.elapsed().as_secs_f64(), messages: messages(rig) }
}

async fn danlu(rig: &SlurmRig) -> Cost {
    let folder = tempfile::Builder::new().prefix("danlu-bench-").tempdir().expect("a temporary folder");
    let settings = folder.path().join("slurm.yaml");
    let text = format!("configuration: {}\n", rig.configuration().display());
    std::fs::write(&settings, text).expect("the folder is ours");
    let settings = settings.display().to_string();
    let program = env!("CARGO_BIN_EXE_danlu");
    let server =
        TestServer::start_in(program, &["--engine", "slurm", "--slurm", &settings], folder, &[]).await;
    rig.ask("sdiag", &["--reset"]);
    let begin = Instant::now();
    let next = AtomicUsize::new(0);
    let client = async || {
        while next.fetch_add(1, Ordering::Relaxed) < JOBS {
            server.submit(&JobSpec::of_command("true")).await;
        }
    };
    tokio::join!(client(), client(), client(), client());
    let succeeded = async || {
        let counts = server.client().jobs_count(&JobQuery::default()).await.expect("the server answers");
        counts.by_state.get("succeeded").copied().unwrap_or_default()
    };
    while succeeded().await < JOBS as u64 {
        tokio::time::sleep(PAUSE).await;
    }
    Cost { seconds: begin.elapsed().as_secs_f64(), messages: messages(rig) }
}

/// All kinds together, since the last reset.
fn messages(rig: &SlurmRig) -> u64 {
    let text = rig.ask("sdiag", &[]);
    let by_type =
        text.lines().skip_while(|line| !line.starts_with("Remote Procedure Call statistics by message"));
    let counts = by_type
        .take_while(|line| !line.starts_with("Remote Procedure Call statistics by user"))
        .filter_map(|line| line.split("count:").nth(1)?.split_whitespace().next()?.parse::<u64>().ok());
    counts.sum()
}
