//! Real trainings on the real binary: data-parallel over workers and ranks, preempted midway, resumed from a checkpoint,
//! and ending with the same loss as one process that nobody disturbs.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use danlu_testkit::{SlurmRig, TestServer, eventually_within, spec};
use danlu_types::api::{JobOutcome, JobState, JobView};
use danlu_types::{Cpus, Framework, JobId, JobSpec, RanksPerWorker, Span};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const PATIENCE: Duration = Duration::from_mins(5);
/// Sums in another order differ in the last digits; a wrong average, or a lost epoch, in the first.
const TOLERANCE: f64 = 1e-4;

struct Training {
    example: &'static str,
    python: &'static str,
    framework: Framework,
    /// Enough that it does not end by itself before it is preempted.
    epochs: u32,
    /// A folder with its Python, to go first on `PATH`.
    path: Option<String>,
}

impl Training {
    fn job(&self, workers: u32, ranks: u32) -> JobSpec {
        let folder = format!("{}/../../examples/{}", env!("CARGO_MANIFEST_DIR"), self.example);
        let system = std::env::var("PATH").expect("a PATH");
        let path = self.path.as_ref().map_or(system.clone(), |own| format!("{own}:{system}"));
        JobSpec {
            workers,
            ranks: Some(RanksPerWorker::Count(ranks)),
            devices: format!("nvidia:{ranks}").parse().expect("a request for devices"),
            framework: self.framework,
            cpus: Cpus::whole(1),
            command: format!("{} train.py --epochs={}", self.python, self.epochs),
            working_directory: Some(folder),
            checkpoint: Some("checkpoint".to_owned()),
            preemptible: true,
            env: [("PATH".to_owned(), path), ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())].into(),
            grace: Span { milliseconds: 500 },
            max_time: Some(Span::from_seconds(300)),
            ..spec("")
        }
    }
}

async fn losses(server: &TestServer, id: JobId) -> Vec<f64> {
    let lines = server.texts(id).await;
    let loss = |line: &String| line.strip_prefix("::danlu metric loss=")?.split(' ').next()?.parse().ok();
    lines.iter().filter_map(loss).collect()
}

/// Longer than the testkit's own patience: four ranks that import PyTorch on a busy machine take a minute for that alone.
async fn look(server: &TestServer, id: JobId, is_there: impl Fn(&JobView) -> bool) -> JobView {
    let ask = async || Some(server.job(id).await).filter(|job| is_there(job));
    eventually_within(PATIENCE, &format!("job {id}"), ask).await
}

async fn ended(server: &TestServer, id: JobId) -> JobView {
    look(server, id, |job| job.state == JobState::Ended).await
}

/// On one machine, with another job that needs all of it.
async fn preempted_and_alone_end_alike(training: Training) {
    let server = start(&["--simulate", "1x4:nvidia:A100"], |_| String::new()).await;
    let urgent = JobSpec { devices: "nvidia:4".parse().expect("devices"), ..spec("true") };
    end_alike(&server, &training, training.job(2, 2), urgent).await;
}

/// A server that lets jobs be pushed out at once; with settings of its engine, if it has any.
async fn start(flags: &[&str], settings: impl Fn(&Path) -> String) -> TestServer {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().expect("a temporary folder");
    let rules = folder.path().join("workspaces.yaml");
    std::fs::write(&rules, "minimum_run_time: 0s\n").expect("a file in it");
    let settings = settings(folder.path());
    let mut flags = [flags, &["--workspaces", rules.to_str().expect("a plain path")]].concat();
    if !settings.is_empty() {
        flags.extend(["--slurm", &settings]);
    }
    TestServer::start_in(DANLU, &flags, folder, &[]).await
}

/// Trains alone, then shared among workers that an urgent job pushes out once they have saved something.
async fn end_alike(server: &TestServer, training: &Training, shared: JobSpec, urgent: JobSpec) -> JobView {
    let alone = ended(server, server.submit(&training.job(1, 1)).await).await;
    assert_eq!(alone.outcome, Some(JobOutcome::Succeeded), "{:?}", server.texts(alone.id).await);
    let expected = *losses(server, alone.id).await.last().expect("a loss");

    let shared = server.submit(&shared).await;
    look(server, shared, |job| {
        assert_ne!(job.state, JobState::Ended, "it ended before anybody pushed it out: {}", job.reason);
        job.progress.as_ref().is_some_and(|progress| progress.checkpoint_step >= Some(2))
    })
    .await;
    let urgent = server.submit(&JobSpec { priority: Some(9), ..urgent }).await;
    assert_eq!(ended(server, urgent).await.outcome, Some(JobOutcome::Succeeded));

    let done = ended(server, shared).await;
    let texts = server.texts(shared).await;
    assert_eq!(done.outcome, Some(JobOutcome::Succeeded), "{texts:?}");
    let reasons: Vec<&str> = done.attempts.iter().map(|attempt| attempt.reason.word()).collect();
    assert_eq!(reasons, ["preempted", "succeeded"]);
    assert!(texts.iter().any(|line| line.starts_with("resuming after epoch ")), "{texts:?}");
    let found = *losses(server, shared).await.last().expect("a loss");
    assert!(((found - expected) / expected).abs() < TOLERANCE, "{found} instead of {expected}");
    done
}

#[tokio::test]
async fn a_training_without_any_library() {
    let python = "python3";
    let example = "digits-stdlib";
    let training = Training { example, python, framework: Framework::None, epochs: 40, path: None };
    preempted_and_alone_end_alike(training).await;
}

fn python_from(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("`scripts/test.sh training` sets {variable}"))
}

#[tokio::test]
#[ignore = "needs jax: `scripts/test.sh training`"]
async fn a_training_with_jax() {
    let path = Some(python_from("DANLU_PYTHON_DIGITS"));
    let example = "digits";
    let training = Training { example, python: "python", framework: Framework::None, epochs: 80, path };
    preempted_and_alone_end_alike(training).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs jax: `scripts/test.sh training`"]
async fn a_training_with_jax_over_nodes_of_slurm() {
    let Some(rig) = SlurmRig::start() else { return };
    let path = Some(python_from("DANLU_PYTHON_DIGITS"));
    let example = "digits";
    let training = Training { example, python: "python", framework: Framework::None, epochs: 80, path };
    let settings = |folder: &Path| {
        let file = folder.join("slurm.yaml");
        let text = format!("configuration: {}\npoll: 200ms\n", rig.configuration().display());
        std::fs::write(&file, text).expect("a file in it");
        file.display().to_string()
    };
    let server = start(&["--engine", "slurm"], settings).await;
    // Too many processors for two workers on one node; and all devices of all nodes.
    let shared = JobSpec { cpus: Cpus::whole(40), ..training.job(2, 2) };
    let urgent = JobSpec { workers: 4, devices: "nvidia:8".parse().expect("devices"), ..spec("true") };
    let done = end_alike(&server, &training, shared, urgent).await;
    for attempt in &done.attempts {
        let nodes: BTreeSet<&str> = attempt.workers.iter().map(|worker| worker.node.0.as_str()).collect();
        assert_eq!(nodes.len(), 2, "{nodes:?}");
    }
}

#[tokio::test]
#[ignore = "needs PyTorch: `scripts/test.sh training`"]
async fn a_training_with_pytorch() {
    let path = Some(python_from("DANLU_PYTHON_DIGITS_TORCH"));
    let example = "digits-torch";
    let training = Training { example, python: "python", framework: Framework::Pytorch, epochs: 80, path };
    preempted_and_alone_end_alike(training).await;
}

#[tokio::test]
#[ignore = "needs PyTorch: `scripts/test.sh training`"]
async fn torchrun_needs_no_arguments() {
    let path = Some(python_from("DANLU_PYTHON_DIGITS_TORCH"));
    let training =
        Training { example: "digits-torch", python: "", framework: Framework::Pytorch, epochs: 0, path };
    let command = r#"torchrun --no-python sh -c 'echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE here"'"#;
    let ranks = Some(RanksPerWorker::PerWorker);
    let server = TestServer::start(DANLU, &["--simulate", "1x4:nvidia:A100"]).await;
    let job = JobSpec { ranks, command: command.to_owned(), ..training.job(2, 2) };
    let job = ended(&server, server.submit(&job).await).await;
    let mut texts = server.texts(job.id).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{texts:?}");
    texts.retain(|line| line.starts_with("rank "));
    texts.sort();
    insta::assert_snapshot!(texts.join("\n"), @"
    rank 0 of 4, 0 of 2 here
    rank 1 of 4, 1 of 2 here
    rank 2 of 4, 0 of 2 here
    rank 3 of 4, 1 of 2 here
    ");
}
