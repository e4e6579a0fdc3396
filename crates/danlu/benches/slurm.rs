//! What Danlu costs on a Slurm cluster: `cargo bench -p danlu --bench slurm`.
//!
//! The same short jobs by bare `sbatch` and through Danlu, in turns, on one cluster of four emulated nodes: how long from the
//! first submission to the last end, what the whole machine computed meanwhile, and how many messages Slurm's controller got
//! (`sdiag`). Both sides submit with as many clients at a time. Each line is a name, a value and a unit, separated by tabs;
//! ratios are those of each turn, and the median is what counts on a machine that does other things, too.

#![expect(clippy::print_stdout, reason = "a benchmark's output is its figures")]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use danlu_testkit::{SlurmRig, TestServer};
use danlu_types::JobSpec;
use danlu_types::api::JobQuery;

const JOBS: usize = 1000;
const CLIENTS: usize = 4;
const TURNS: usize = 3;
/// How often either side is asked whether all have ended.
const PAUSE: Duration = Duration::from_millis(500);

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return; // `cargo test` runs benchmarks too; figures are only taken on purpose.
    }
    let Some(rig) = SlurmRig::start() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut server = runtime.block_on(start(&rig));
    let mut turns = Vec::new();
    for turn in 1..=TURNS {
        server.kill();
        let bare = measured(&rig, || bare(&rig));
        let danlu = runtime.block_on(async {
            server.restart().await;
            let begun = Begun::now(&rig);
            danlu(&server, turn).await;
            begun.cost(&rig)
        });
        for (name, cost) in [("bare", &bare), ("danlu", &danlu)] {
            println!("{name} time\t{:.1}\ts", cost.seconds);
            println!("{name} processor time\t{:.1}\ts", cost.processor_seconds);
            println!("{name} messages to the controller\t{:.0}\t", cost.messages);
        }
        turns.push((bare, danlu));
    }
    let ratios = |of: fn(&Cost) -> f64| {
        let mut ratios: Vec<f64> = turns.iter().map(|(bare, danlu)| of(danlu) / of(bare)).collect();
        ratios.sort_by(f64::total_cmp);
        let shown: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        format!("{:.2}\t× bare\t({})", ratios[ratios.len() / 2], shown.join(" · "))
    };
    println!("time\t{}", ratios(|cost| cost.seconds));
    println!("processor time\t{}", ratios(|cost| cost.processor_seconds));
    println!("messages\t{}", ratios(|cost| cost.messages));
}

struct Cost {
    seconds: f64,
    /// Of all processors and everybody.
    processor_seconds: f64,
    messages: f64,
}

struct Begun {
    at: Instant,
    processor_seconds: f64,
}

impl Begun {
    fn now(rig: &SlurmRig) -> Self {
        rig.ask("sdiag", &["--reset"]);
        Begun { at: Instant::now(), processor_seconds: processor_seconds() }
    }

    fn cost(&self, rig: &SlurmRig) -> Cost {
        Cost {
            seconds: self.at.elapsed().as_secs_f64(),
            processor_seconds: processor_seconds() - self.processor_seconds,
            messages: messages(rig),
        }
    }
}

fn measured(rig: &SlurmRig, work: impl FnOnce()) -> Cost {
    let begun = Begun::now(rig);
    work();
    begun.cost(rig)
}

/// What the machine has computed since it started.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").expect("Linux says so");
    let ticks = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<f64> = ticks.filter_map(|word| word.parse().ok()).collect();
    // user, nice, system, and interrupts; the fourth and fifth are idleness.
    let busy: f64 = ticks.iter().take(3).chain(ticks.iter().skip(5).take(2)).sum();
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    busy / per_second as f64
}

/// What people do without Danlu: a submission for each job, and a look at the queue now and then.
fn bare(rig: &SlurmRig) {
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
}

async fn start(rig: &SlurmRig) -> TestServer {
    let folder = tempfile::Builder::new().prefix("danlu-bench-").tempdir().expect("a temporary folder");
    let settings = folder.path().join("slurm.yaml");
    let text = format!("configuration: {}\n", rig.configuration().display());
    std::fs::write(&settings, text).expect("the folder is ours");
    let settings = settings.display().to_string();
    let program = env!("CARGO_BIN_EXE_danlu");
    TestServer::start_in(program, &["--engine", "slurm", "--slurm", &settings], folder, &[]).await
}

async fn danlu(server: &TestServer, turn: usize) {
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
    while succeeded().await < (turn * JOBS) as u64 {
        tokio::time::sleep(PAUSE).await;
    }
}

/// All kinds together, since the last reset.
fn messages(rig: &SlurmRig) -> f64 {
    let text = rig.ask("sdiag", &[]);
    let by_type =
        text.lines().skip_while(|line| !line.starts_with("Remote Procedure Call statistics by message"));
    let counts = by_type
        .take_while(|line| !line.starts_with("Remote Procedure Call statistics by user"))
        .filter_map(|line| line.split("count:").nth(1)?.split_whitespace().next()?.parse::<f64>().ok());
    counts.sum()
}
